//! All samplers through the engine: the same rows for any number of threads, ranks and blocks, and
//! from any state.

use pipeline::{Error, LoaderState, Pipeline, PipelineSpec, World};
use proptest::prelude::*;
use shuffle::sample::{ClassDraw, ClassSets, Hierarchical, Replacement, Sampling};
use shuffle::{Order, Remainder};

use crate::numbers::{Numbers, NumbersError, batches, numbers_of, pipeline};

const N_ROWS: u64 = 30;
/// Rows of a global batch, which 1 to 4 ranks divide.
const GLOBAL_ROWS: u64 = 12;
const N_BATCHES: u64 = 5;
const N_SAMPLES: u64 = N_BATCHES * GLOBAL_ROWS;

/// Cameras, subjects and classes of the rows.
fn hierarchical(batch_rows: u64, draw: Option<ClassDraw>) -> Sampling {
    let sets = ClassSets::new((0..N_ROWS as u32).map(|row| [row % 4, 9])).unwrap();
    let spec = Hierarchical {
        domains: &(0..N_ROWS as u32).map(|row| row % 3).collect::<Vec<_>>(),
        subjects: &(0..N_ROWS as u32).map(|row| row / 5).collect::<Vec<_>>(),
        classes: draw.map(|draw| (&sets, draw)),
        batch_rows,
        n_batches: N_SAMPLES / batch_rows,
    };
    Sampling::hierarchical(&spec).unwrap()
}

/// Every sampler, with its order.
fn samplers() -> Vec<(Order, Option<Sampling>)> {
    let labels: Vec<u32> = (0..N_ROWS as u32).map(|row| row % 3 / 2).collect();
    let sets = ClassSets::new(labels.iter().map(|label| [*label, 5])).unwrap();
    let with = Replacement::With;
    let drawn = [
        Sampling::with_replacement(N_ROWS, N_SAMPLES),
        Sampling::weighted(&[0.5; N_ROWS as usize], GLOBAL_ROWS, Replacement::Without),
        Sampling::by_group(&labels, &[1.0, 2.0], N_SAMPLES, with),
        Sampling::class_balanced(&labels, N_SAMPLES, with),
        Sampling::class_sets_balanced(&sets, N_SAMPLES, with),
        Sampling::stratified(&labels, 2 * GLOBAL_ROWS),
    ];
    let list: Vec<u32> = (0..N_SAMPLES as u32).map(|at| at * at % N_ROWS as u32).collect();
    let listed = [
        Sampling::listed(N_ROWS, list).unwrap(),
        hierarchical(6, None),
        hierarchical(4, Some(ClassDraw::Uniform)),
        hierarchical(12, Some(ClassDraw::LeastDrawn)),
    ];
    let drawn = drawn.into_iter().map(|sampling| (Order::Shuffled, Some(sampling.unwrap())));
    let listed = listed.into_iter().map(|sampling| (Order::Listed, Some(sampling)));
    drawn.chain(listed).chain([(Order::Shuffled, None), (Order::InOrder, None)]).collect()
}

#[derive(Debug, Clone)]
struct Settings {
    order: Order,
    sampling: Option<Sampling>,
    chunks_per_block: u64,
    read_threads: usize,
    prefetch_blocks: usize,
    prefetch_batches: usize,
}

impl Settings {
    /// The lanes are set, so that a shuffled order is the same for any number of ranks.
    fn pipeline(&self, rank: u64, size: u64) -> Pipeline<Numbers> {
        let spec = PipelineSpec {
            chunk_rows: 1,
            chunks_per_block: self.chunks_per_block,
            order: self.order,
            seed: 7,
            batch_rows: GLOBAL_ROWS / size,
            world: World { rank, size },
            lanes: Some(if self.order == Order::Shuffled { 2 } else { 1 }),
            remainder: Remainder::Drop,
            sampling: self.sampling.clone(),
            read_threads: self.read_threads,
            prefetch_blocks: self.prefetch_blocks,
            prefetch_batches: self.prefetch_batches,
            ..PipelineSpec::default()
        };
        pipeline(numbers_of(N_ROWS), spec)
    }

    /// The global batches of an epoch, put together from all ranks, from a state or the beginning.
    fn global_batches(&self, size: u64, from: Option<&LoaderState>) -> Vec<Vec<u64>> {
        let of_ranks: Vec<Vec<Vec<u64>>> = (0..size)
            .map(|rank| {
                let pipeline = self.pipeline(rank, size);
                let epoch = match from {
                    Some(state) => pipeline.resume(state).unwrap(),
                    None => pipeline.epoch(3).unwrap(),
                };
                epoch.map(|batch| batch.unwrap().rows).collect()
            })
            .collect();
        assert!(of_ranks.iter().flatten().all(|rows| rows.len() as u64 == GLOBAL_ROWS / size));
        assert!(of_ranks.iter().all(|batches| batches.len() == of_ranks[0].len()));
        let n_batches = of_ranks[0].len();
        (0..n_batches)
            .map(|idx| of_ranks.iter().flat_map(|rank| rank[idx].clone()).collect())
            .collect()
    }
}

prop_compose! {
    fn settings()(
        (order, sampling) in prop::sample::select(samplers()),
        chunks_per_block in 1_u64..20,
        read_threads in 0_usize..4,
        prefetch_blocks in 0_usize..4,
        prefetch_batches in 0_usize..3,
    ) -> Settings {
        Settings { order, sampling, chunks_per_block, read_threads, prefetch_blocks, prefetch_batches }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_same_rows_come_whatever_reads_them(settings in settings()) {
        let mut expected: Vec<u64> = match &settings.sampling {
            Some(sampling) => sampling.rows(7, 3).unwrap().iter().map(|row| u64::from(*row)).collect(),
            None => (0..N_ROWS).collect(),
        };
        let alone = settings.global_batches(1, None);
        for size in 2..=4 {
            prop_assert_eq!(&settings.global_batches(size, None), &alone);
        }
        let mut found = alone.concat();
        if settings.order == Order::Shuffled {
            expected.sort_unstable();
            found.sort_unstable();
        }
        if settings.sampling.is_none() {
            // Six rows do not fill a batch.
            prop_assert_eq!(found.len(), 24);
            prop_assert!(found.iter().all(|row| expected.contains(row)));
        } else {
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_rest_comes_from_any_state(settings in settings(), before in 1_u64..5, after in 1_u64..5, n_taken in 0_usize..6) {
        let whole = settings.global_batches(before, None);
        let first = settings.pipeline(0, before);
        let mut epoch = first.epoch(3).unwrap();
        let n_taken = epoch.by_ref().take(n_taken).count();
        let state = LoaderState::from_json(&epoch.state().to_json().unwrap()).unwrap();
        prop_assert_eq!(&settings.global_batches(after, Some(&state))[..], &whole[n_taken..]);
    }
}

/// Four rows per batch and three cameras, on each of two ranks.
#[test]
fn each_rank_has_every_domain() {
    for rank in 0..2 {
        let spec = PipelineSpec {
            sampling: Some(hierarchical(4, None)),
            world: World { rank, size: 2 },
            batch_rows: 4,
            ..listed()
        };
        let found = batches(&pipeline(numbers_of(N_ROWS), spec), 0);
        assert_eq!(found.len(), 7);
        for batch in found {
            let has = |domain| batch.rows.iter().any(|row| row % 3 == domain);
            assert!((0..3).all(has), "{batch:?}");
        }
    }
}

fn listed() -> PipelineSpec {
    PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: 4,
        order: Order::Listed,
        batch_rows: GLOBAL_ROWS,
        remainder: Remainder::Drop,
        sampling: Some(hierarchical(6, None)),
        ..PipelineSpec::default()
    }
}

#[test]
fn a_state_of_another_sampler_is_refused() {
    let saved = pipeline(numbers_of(N_ROWS), listed()).epoch(0).unwrap().state();
    pipeline(numbers_of(N_ROWS), listed()).resume(&saved).unwrap();
    for sampling in [
        hierarchical(12, None),
        hierarchical(6, Some(ClassDraw::Uniform)),
        hierarchical(6, Some(ClassDraw::LeastDrawn)),
        Sampling::listed(N_ROWS, vec![0; N_SAMPLES as usize]).unwrap(),
    ] {
        let other =
            pipeline(numbers_of(N_ROWS), PipelineSpec { sampling: Some(sampling), ..listed() });
        let error = other.resume(&saved).unwrap_err();
        let NumbersError::Engine(Error::State { field: "sampling", .. }) = error else {
            panic!("{error}")
        };
    }
    let shuffled = PipelineSpec { order: Order::Shuffled, sampling: None, ..listed() };
    let error = pipeline(numbers_of(N_ROWS), shuffled).resume(&saved).unwrap_err().to_string();
    assert!(error.contains("order listed, and this loader has shuffled"), "{error}");
}

#[test]
fn samplers_that_do_not_fit_are_refused() {
    let refused = |spec: PipelineSpec| {
        let error =
            Pipeline::new(numbers_of(N_ROWS).into(), spec, |batch| batch.rows.len()).unwrap_err();
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    };
    for (spec, expect) in [
        (PipelineSpec { sampling: None, ..listed() }, "need a sampling that lists them"),
        (PipelineSpec { order: Order::Shuffled, ..listed() }, "use Order::Listed"),
        (PipelineSpec { order: Order::InOrder, ..listed() }, "use Order::Listed"),
        (PipelineSpec { chunk_rows: 2, ..listed() }, "use chunks of 1 row"),
        (PipelineSpec { batch_rows: 9, ..listed() }, "batches of 6 rows, which do not divide"),
        (PipelineSpec { lanes: Some(2), ..listed() }, "need a single lane, not 2"),
    ] {
        let error = refused(spec);
        assert!(error.contains(expect), "{error}");
    }
}
