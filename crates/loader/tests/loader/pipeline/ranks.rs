//! Tests of several ranks: the part of each, and resuming with another number of ranks.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int8Array, Int64Array, RecordBatch,
    StringArray,
};
use loader::sample::{Replacement, Sampling};
use loader::{
    Batch, Cells, Dataset, GeneSelection, Loader, LoaderError, LoaderSpec, LoaderState, Order,
    PipelineSpec, Remainder, World,
};

use pipeline::Error as Engine;

use crate::pipeline::sample::{self, WAYS, dense_rows};

const N_ROWS: u64 = 150;

fn spec(global_rows: u64, rank: u64, size: u64) -> LoaderSpec {
    LoaderSpec {
        pipeline: PipelineSpec {
            batch_rows: global_rows / size,
            world: World { rank, size },
            remainder: Remainder::Drop,
            ..sample::spec().pipeline
        },
        ..sample::spec()
    }
}

fn loader(spec: LoaderSpec) -> Loader {
    Loader::new(sample::whole(N_ROWS, 5), spec).unwrap()
}

/// Joinids, values and padding of one step, rank after rank.
type Step = (Vec<i64>, Vec<Vec<f32>>, usize);

fn join(batches: Vec<Batch>) -> Step {
    let mut step: Step = (Vec::new(), Vec::new(), 0);
    for batch in batches {
        step.0.extend(&batch.joinids);
        step.1.extend(dense_rows(&batch.x));
        step.2 += batch.n_padding;
    }
    step
}

/// Runs all ranks from a state, or from the start of the epoch, for a number of steps at most.
/// Returns the steps and the last state.
fn steps(
    of_rank: impl Fn(u64) -> LoaderSpec,
    from: Result<&LoaderState, u64>,
    most: usize,
) -> (Vec<Step>, LoaderState) {
    let size = of_rank(0).pipeline.world.size;
    let loaders: Vec<Loader> = (0..size).map(|rank| loader(of_rank(rank))).collect();
    let mut epochs: Vec<_> = loaders
        .iter()
        .map(|loader| match from {
            Ok(state) => loader.resume(state).unwrap(),
            Err(epoch) => loader.epoch(epoch).unwrap(),
        })
        .collect();
    let mut steps = Vec::new();
    while steps.len() < most {
        let batches: Vec<Batch> =
            epochs.iter_mut().filter_map(Iterator::next).map(Result::unwrap).collect();
        if batches.is_empty() {
            break;
        }
        assert_eq!(batches.len() as u64, size, "all ranks have as many batches");
        steps.push(join(batches));
    }
    // All ranks have the same state.
    assert!(epochs.iter().all(|epoch| epoch.state() == epochs[0].state()));
    (steps, epochs[0].state())
}

#[test]
fn ranks_share_the_data_in_equal_parts() {
    for size in [1, 2, 3, 4, 6, 8] {
        for (remainder, n_steps) in [(Remainder::Drop, 6), (Remainder::Pad, 7)] {
            let of_rank = |rank| LoaderSpec {
                pipeline: PipelineSpec { remainder, ..spec(24, rank, size).pipeline },
                ..spec(24, rank, size)
            };
            let (steps, _) = steps(of_rank, Err(0), usize::MAX);
            assert_eq!(steps.len(), n_steps);
            assert!(steps.iter().all(|(joinids, _, _)| joinids.len() == 24));
            let n_padding: usize = steps.iter().map(|(_, _, n_padding)| n_padding).sum();
            let mut joinids: Vec<i64> = steps.into_iter().flat_map(|step| step.0).collect();
            assert_eq!(n_padding, if remainder == Remainder::Pad { 18 } else { 0 });
            joinids.truncate(joinids.len() - n_padding);
            joinids.sort_unstable();
            let n_all = joinids.len();
            joinids.dedup();
            assert_eq!(
                (joinids.len(), n_all),
                if remainder == Remainder::Pad { (150, 150) } else { (144, 144) }
            );
        }
    }
}

#[test]
fn the_same_global_batches_come_from_eight_then_four_then_six_ranks() {
    for (block_form, batch_form) in WAYS {
        let spec_of =
            |size| move |rank| LoaderSpec { block_form, batch_form, ..spec(24, rank, size) };
        for epoch in [0, 1] {
            let (whole, end) = steps(spec_of(8), Err(epoch), usize::MAX);
            assert_eq!((whole.len(), end.batches_delivered()), (6, 6));
            let (first, state) = steps(spec_of(8), Err(epoch), 2);
            let state = LoaderState::from_json(&state.to_json().unwrap()).unwrap();
            let (second, state) = steps(spec_of(4), Ok(&state), 3);
            let (third, state) = steps(spec_of(6), Ok(&state), usize::MAX);
            assert_eq!(state, end);
            assert_eq!([first, second, third].concat(), whole, "{block_form} {batch_form}");
            assert!(steps(spec_of(3), Ok(&end), usize::MAX).0.is_empty());
        }
    }
}

#[test]
fn any_number_of_ranks_delivers_any_number_of_lanes() {
    // With blocks of 8 rows and global batches of 24, some ranks have no rows of a block.
    for (block_form, batch_form) in WAYS {
        for lanes in [1, 3, 24] {
            let spec_of = |size| {
                move |rank| LoaderSpec {
                    pipeline: PipelineSpec { lanes: Some(lanes), ..spec(24, rank, size).pipeline },
                    block_form,
                    batch_form,
                    ..spec(24, rank, size)
                }
            };
            let (alone, _) = steps(spec_of(1), Err(3), usize::MAX);
            for size in [2, 8, 24] {
                let (found, _) = steps(spec_of(size), Err(3), usize::MAX);
                assert!(found == alone, "{block_form} {batch_form}, {lanes} lanes, {size} ranks");
            }
        }
    }
}

#[test]
fn rows_in_order_are_in_order_across_ranks() {
    for size in [1, 3] {
        let of_rank = |rank| LoaderSpec {
            pipeline: PipelineSpec {
                order: Order::InOrder,
                remainder: Remainder::Pad,
                ..spec(12, rank, size).pipeline
            },
            ..spec(12, rank, size)
        };
        let (steps, state) = steps(of_rank, Err(0), usize::MAX);
        assert_eq!(state.lanes(), 1);
        let joinids: Vec<i64> = steps.into_iter().flat_map(|step| step.0).collect();
        assert_eq!(joinids, (0..150).chain(0..6).collect::<Vec<_>>());
    }
}

#[test]
fn a_loader_that_resumed_keeps_the_lanes_in_later_epochs() {
    let (epoch_1, _) = steps(|rank| spec(24, rank, 8), Err(1), usize::MAX);
    let (_, state) = steps(|rank| spec(24, rank, 8), Err(0), 1);
    let alone = loader(spec(24, 0, 1));
    drop(alone.resume(&state).unwrap());
    let later: Vec<Step> =
        alone.epoch(1).unwrap().map(|batch| join(vec![batch.unwrap()])).collect();
    assert_eq!(later, epoch_1);
    // An epoch that a single rank started has one lane.
    let begun = loader(spec(24, 0, 1));
    drop(begun.epoch(0).unwrap());
    let error = begun.resume(&state).unwrap_err().to_string();
    assert!(error.contains("number of lanes 8, and this loader has 1"), "{error}");
    // The stats have the settings that ran.
    assert_eq!(alone.epoch(2).unwrap().stats().spec.pipeline.lanes, Some(8));
}

#[test]
fn what_was_made_ahead_does_not_count_as_taken() {
    let ahead = LoaderSpec {
        pipeline: PipelineSpec {
            prefetch_blocks: 3,
            prefetch_batches: 4,
            ..spec(10, 0, 1).pipeline
        },
        ..spec(10, 0, 1)
    };
    let whole: Vec<Batch> = loader(ahead.clone()).epoch(0).unwrap().map(Result::unwrap).collect();
    for n_taken in 0..=whole.len() {
        let started = loader(ahead.clone());
        let mut epoch = started.epoch(0).unwrap();
        assert_eq!(epoch.by_ref().take(n_taken).count(), n_taken);
        let state = epoch.state();
        drop(epoch);
        let other = loader(LoaderSpec {
            pipeline: PipelineSpec {
                prefetch_batches: 0,
                prefetch_blocks: 0,
                ..ahead.pipeline.clone()
            },
            ..ahead.clone()
        });
        let mut rest = other.resume(&state).unwrap();
        assert_eq!(rest.size_hint().1, Some(whole.len() - n_taken));
        for batch in &whole[n_taken..] {
            let found = rest.next().unwrap().unwrap();
            assert_eq!((found.batch_idx, &found.joinids), (batch.batch_idx, &batch.joinids));
            assert_eq!(dense_rows(&found.x), dense_rows(&batch.x));
            assert_eq!(found.obs, batch.obs);
        }
        assert!(rest.next().is_none());
        assert_eq!(rest.state().batches_delivered(), rest.n_batches());
    }
}

#[test]
fn a_state_is_small_and_says_what_it_is() {
    let sampling = Sampling::weighted(&[0.5; N_ROWS as usize], 100, Replacement::With).unwrap();
    let settings = LoaderSpec {
        pipeline: PipelineSpec {
            seed: u64::MAX,
            sampling: Some(sampling),
            ..spec(24, 1, 2).pipeline
        },
        ..spec(24, 1, 2)
    };
    let text = loader(settings).epoch(u64::MAX).unwrap().state().to_json().unwrap();
    // Other numbers are short here, but can have up to 20 digits.
    assert!(text.len() + 6 * 20 < 1000, "{text}");
    let state = LoaderState::from_json(&text).unwrap();
    assert_eq!((state.epoch(), state.lanes(), state.global_batch_rows()), (u64::MAX, 2, 24));
    let newer = text.replace("\"version\":1", "\"version\":2").replace("\"seed\"", "\"seeds\"");
    let error = LoaderState::from_json(&newer).unwrap_err();
    assert!(matches!(error, Engine::StateVersion { found: 2, supported: 1 }), "{error}");
    let error = LoaderState::from_json(&text.replace("loader state", "encoder")).unwrap_err();
    assert!(error.to_string().contains("not the state of a loader"), "{error}");
    for broken in ["", "{}", "[1]", &text[..40], &text.replace("\"seed\"", "\"seeds\"")] {
        assert!(
            matches!(LoaderState::from_json(broken), Err(Engine::StateJson { .. })),
            "{broken}"
        );
    }
}

#[track_caller]
fn check_refused(other: Result<Loader, LoaderError>, expect: &str) {
    let sampling = Sampling::weighted(&[1.0; N_ROWS as usize], 100, Replacement::With).unwrap();
    let saved = loader(LoaderSpec {
        pipeline: PipelineSpec { sampling: Some(sampling), ..spec(24, 0, 2).pipeline },
        ..spec(24, 0, 2)
    });
    let mut epoch = saved.epoch(3).unwrap();
    epoch.next().unwrap().unwrap();
    let error = other.unwrap().resume(&epoch.state()).unwrap_err().to_string();
    assert!(error.contains(expect), "{error}");
}

#[test]
fn a_state_of_another_order_is_refused_by_what_differs() {
    let sampling = |weight| {
        let mut weights = [1.0; N_ROWS as usize];
        weights[7] = weight;
        Sampling::weighted(&weights, 100, Replacement::With).unwrap()
    };
    let same = || LoaderSpec {
        pipeline: PipelineSpec { sampling: Some(sampling(1.0)), ..spec(24, 0, 2).pipeline },
        ..spec(24, 0, 2)
    };
    let with = |spec: LoaderSpec| Loader::new(sample::whole(N_ROWS, 5), spec);
    with(same()).unwrap().resume(&with(same()).unwrap().epoch(0).unwrap().state()).unwrap();
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { seed: 1, ..same().pipeline }, ..same() }),
        "seed 42, and this loader has 1",
    );
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { chunk_rows: 8, ..same().pipeline }, ..same() }),
        "chunk size 4, and this loader has 8",
    );
    check_refused(
        with(LoaderSpec {
            pipeline: PipelineSpec { chunks_per_block: 3, ..same().pipeline },
            ..same()
        }),
        "chunks per block 2",
    );
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { ramp_blocks: 1, ..same().pipeline }, ..same() }),
        "number of blocks that grow 0, and this loader has 1",
    );
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { batch_rows: 13, ..same().pipeline }, ..same() }),
        "global batch size (batch size x world size) 24, and this loader has 26",
    );
    check_refused(
        with(LoaderSpec {
            pipeline: PipelineSpec { remainder: Remainder::Pad, ..same().pipeline },
            ..same()
        }),
        "remainder drop, and this loader has pad",
    );
    check_refused(
        with(LoaderSpec {
            pipeline: PipelineSpec { order: Order::InOrder, ..same().pipeline },
            ..same()
        }),
        "order shuffled, and this loader has in order",
    );
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { lanes: Some(4), ..same().pipeline }, ..same() }),
        "number of lanes 2, and this loader has 4",
    );
    check_refused(
        with(LoaderSpec { pipeline: PipelineSpec { sampling: None, ..same().pipeline }, ..same() }),
        "sampling ",
    );
    check_refused(
        with(LoaderSpec {
            pipeline: PipelineSpec { sampling: Some(sampling(0.5)), ..same().pipeline },
            ..same()
        }),
        "sampling ",
    );
    let reader = || Arc::new(sample::reader(N_ROWS + 1, 5));
    let other = sample::dataset(reader(), Cells::Range(1..N_ROWS + 1), GeneSelection::All);
    check_refused(Loader::new(other, same()), "selected samples");
    let whole = sample::whole(N_ROWS - 1, 5);
    check_refused(
        Loader::new(
            whole,
            LoaderSpec { pipeline: PipelineSpec { sampling: None, ..same().pipeline }, ..same() },
        ),
        "number of samples 150, and this loader has 149",
    );
    // A list of the same cells is accepted.
    let list = Cells::List((0..N_ROWS).collect());
    let listed = Loader::new(sample::dataset(reader(), list, GeneSelection::All), same()).unwrap();
    listed.resume(&with(same()).unwrap().epoch(0).unwrap().state()).unwrap();
}

#[test]
fn ranks_that_do_not_fit_are_refused() {
    let error = |spec| Loader::new(sample::whole(N_ROWS, 5), spec).unwrap_err();
    let cause = |error: LoaderError| std::error::Error::source(&error).unwrap().to_string();
    let rank = error(spec(24, 2, 2)).to_string();
    assert_eq!(rank, "there is no rank 2 in a world of 2: ranks count from 0");
    let short = cause(error(LoaderSpec {
        pipeline: PipelineSpec { remainder: Remainder::Short, ..spec(24, 0, 2).pipeline },
        ..spec(24, 0, 2)
    }));
    assert!(short.contains("drop the remainder or pad it"), "{short}");
    let lanes = cause(error(LoaderSpec {
        pipeline: PipelineSpec { lanes: Some(5), ..spec(24, 0, 2).pipeline },
        ..spec(24, 0, 2)
    }));
    assert!(
        lanes.contains("5 lanes cannot give equal parts of global batches of 24 rows"),
        "{lanes}"
    );
    let sampling = Sampling::stratified(&[1, 2, 3], 2).unwrap();
    let error = error(LoaderSpec {
        pipeline: PipelineSpec { sampling: Some(sampling), ..spec(24, 0, 2).pipeline },
        ..spec(24, 0, 2)
    })
    .to_string();
    assert!(error.contains("draws from 3 rows, but 150 are selected"), "{error}");
}

#[test]
fn rows_that_are_sampled_several_times_are_delivered_as_often() {
    // A few rows repeat often, also within a batch and a block.
    let weights: Vec<f64> = (0..N_ROWS).map(|row| if row < 9 { 40.0 } else { 1.0 }).collect();
    let sampling = Sampling::weighted(&weights, 130, Replacement::With).unwrap();
    let mut expect: Vec<i64> =
        sampling.rows(42, 5).unwrap().iter().map(|row| i64::from(*row)).collect();
    expect.sort_unstable();
    for (block_form, batch_form) in WAYS {
        for size in [1, 2, 5] {
            let of_rank = |rank| LoaderSpec {
                pipeline: PipelineSpec {
                    sampling: Some(sampling.clone()),
                    ..spec(10, rank, size).pipeline
                },
                block_form,
                batch_form,
                ..spec(10, rank, size)
            };
            let (steps, _) = steps(of_rank, Err(5), usize::MAX);
            assert_eq!(steps.len(), 13);
            let mut found = Vec::new();
            for (joinids, rows, _) in steps {
                for (joinid, row) in joinids.iter().zip(rows) {
                    let value = |gene| sample::value(*joinid as u64, gene).unwrap_or(0.0);
                    assert_eq!(row, (0..5).map(value).collect::<Vec<_>>());
                }
                found.extend(joinids);
            }
            found.sort_unstable();
            assert_eq!(found, expect, "{block_form} {batch_form}, {size} ranks");
        }
    }
}

#[test]
fn weights_and_classes_come_from_obs() {
    let columns: [(&str, ArrayRef); 5] = [
        ("type", Arc::new(StringArray::from(vec!["B", "T", "B", "B"]))),
        ("weight", Arc::new(Float32Array::from(vec![0.5, 0.0, 2.0, 1.0]))),
        ("is_primary", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        (
            "binned",
            Arc::new(DictionaryArray::<Int8Type>::new(
                Int8Array::from(vec![1, 0, 1, 1]),
                Arc::new(Int64Array::from(vec![3, 5])),
            )),
        ),
        ("gap", Arc::new(Float32Array::from(vec![Some(0.5), None, None, Some(1.0)]))),
    ];
    let obs = RecordBatch::try_from_iter(columns).unwrap();
    let x = Arc::new(sample::reader(4, 3));
    let dataset = Dataset::new(x, Cells::Range(0..4), obs, GeneSelection::All).unwrap();
    assert_eq!(dataset.weights("weight").unwrap(), [0.5, 0.0, 2.0, 1.0]);
    assert_eq!(dataset.weights("is_primary").unwrap(), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(dataset.weights("binned").unwrap(), [5.0, 3.0, 5.0, 5.0]);
    let types = dataset.groups(&["type"]).unwrap();
    let sampling = Sampling::class_balanced(&types, 1000, Replacement::With).unwrap();
    let n_t = sampling.rows(0, 0).unwrap().iter().filter(|row| **row == 1).count();
    assert!((430..570).contains(&n_t), "{n_t}");
    for (column, problem) in
        [("gap", "2 cells have no weight"), ("type", "Utf8"), ("absent", "the data set lacks it")]
    {
        let error = dataset.weights(column).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains(column), "{error}");
    }
}
