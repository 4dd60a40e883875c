//! Every selected cell comes once per epoch, with its own values and obs row, for any settings.

use std::sync::Arc;

use loader::{
    BatchForm, BlockForm, Cells, GeneSelection, Loader, LoaderSpec, Order, PipelineSpec, Remainder,
};
use proptest::prelude::*;

use crate::pipeline::sample::{self, WAYS, check_rows, dense_rows};

#[derive(Debug, Clone)]
struct Case {
    x_rows: u64,
    x_columns: u64,
    cells: Cells,
    genes: GeneSelection,
    spec: LoaderSpec,
    epoch: u64,
}

fn cells(x_rows: u64) -> impl Strategy<Value = Cells> {
    prop_oneof![
        Just(Cells::Range(0..x_rows)),
        (0..=x_rows, 0..=x_rows).prop_map(|(a, b)| Cells::Range(a.min(b)..a.max(b))),
        proptest::collection::vec(any::<bool>(), x_rows as usize).prop_map(|chosen| {
            let ids =
                chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(id, _)| id as u64);
            Cells::List(ids.collect())
        }),
    ]
}

fn genes(x_columns: u64) -> impl Strategy<Value = GeneSelection> {
    let all: Vec<u64> = (0..x_columns).collect();
    prop_oneof![
        Just(GeneSelection::All),
        (0..x_columns).prop_map(move |a| GeneSelection::Range(a..x_columns)),
        proptest::sample::subsequence(all, 1..=x_columns as usize)
            .prop_shuffle()
            .prop_map(GeneSelection::List),
    ]
}

fn spec() -> impl Strategy<Value = LoaderSpec> {
    let sizes = (1..20_u64, 1..6_u64, 1..40_u64);
    let ahead = (0..4_usize, 0..4_usize);
    (sizes, ahead, any::<u64>(), any::<[bool; 2]>(), 0..WAYS.len()).prop_map(
        |((chunk_rows, chunks_per_block, batch_rows), ahead, seed, [in_order, drop_last], way)| {
            LoaderSpec {
                pipeline: PipelineSpec {
                    chunk_rows,
                    chunks_per_block,
                    order: if in_order { Order::InOrder } else { Order::Shuffled },
                    seed,
                    batch_rows,
                    remainder: if drop_last { Remainder::Drop } else { Remainder::Short },
                    prefetch_blocks: ahead.0,
                    prefetch_batches: ahead.1,
                    ..PipelineSpec::default()
                },
                block_form: WAYS[way].0,
                batch_form: WAYS[way].1,
                ..LoaderSpec::default()
            }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    (0..120_u64, 1..8_u64).prop_flat_map(|(x_rows, x_columns)| {
        (cells(x_rows), genes(x_columns), spec(), 0..1000_u64).prop_map(
            move |(cells, genes, spec, epoch)| Case {
                x_rows,
                x_columns,
                cells,
                genes,
                spec,
                epoch,
            },
        )
    })
}

fn loader(case: &Case, spec: LoaderSpec) -> Loader {
    let reader = Arc::new(sample::reader(case.x_rows, case.x_columns));
    Loader::new(sample::dataset(reader, case.cells.clone(), case.genes.clone()), spec).unwrap()
}

/// The joinids and dense rows of all batches.
fn collect(loader: &Loader, epoch: u64) -> Vec<(Vec<i64>, Vec<Vec<f32>>)> {
    let batches = loader.epoch(epoch).unwrap().map(Result::unwrap);
    batches.map(|batch| (batch.joinids.clone(), dense_rows(&batch.x))).collect()
}

fn gene_list(case: &Case) -> Vec<u64> {
    match &case.genes {
        GeneSelection::Range(range) => range.clone().collect(),
        GeneSelection::List(list) => list.clone(),
        GeneSelection::All => (0..case.x_columns).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_cell_once_with_its_values_and_obs(case in case()) {
        let loader = loader(&case, case.spec.clone());
        let genes = gene_list(&case);
        let n_rows = case.cells.n_rows() as usize;
        let batch_rows = case.spec.pipeline.batch_rows as usize;
        let mut seen = Vec::new();
        let mut epoch = loader.epoch(case.epoch).unwrap();
        for (idx, batch) in epoch.by_ref().enumerate() {
            let batch = batch.unwrap();
            let left = n_rows - seen.len();
            check_rows(&batch, &genes, &mut seen);
            prop_assert_eq!(batch.batch_idx, idx as u64);
            prop_assert_eq!(batch.n_rows(), batch_rows.min(left));
        }
        let n_delivered = if case.spec.pipeline.remainder == Remainder::Drop { n_rows - n_rows % batch_rows } else { n_rows };
        prop_assert_eq!(seen.len(), n_delivered);
        let stats = epoch.stats();
        prop_assert_eq!(stats.engine.n_rows as usize, n_delivered);
        prop_assert_eq!(stats.engine.n_batches, loader.n_batches());
        prop_assert_eq!(stats.engine.wait_secs.len() as u64, stats.engine.n_batches);
        let selected = sample::joinids(&case.cells);
        if case.spec.pipeline.order == Order::InOrder {
            prop_assert_eq!(&seen, &selected[..n_delivered]);
        }
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), n_delivered);
        prop_assert!(seen.iter().all(|id| selected.binary_search(id).is_ok()));
    }

    #[test]
    fn methods_forms_and_reading_ahead_change_nothing(case in case()) {
        let base = collect(&loader(&case, case.spec.clone()), case.epoch);
        for (block_form, batch_form) in WAYS {
            let ahead = (case.spec.pipeline.prefetch_blocks + 1) % 4;
            let spec = LoaderSpec { pipeline: PipelineSpec { prefetch_blocks: ahead, prefetch_batches: ahead, ..case.spec.pipeline.clone() }, block_form, batch_form, ..case.spec.clone() };
            prop_assert_eq!(&collect(&loader(&case, spec), case.epoch), &base, "{} {}", block_form, batch_form);
        }
    }
}

#[track_caller]
fn check_sizes(n_rows: u64, batch_rows: u64, drop_last: bool, expect: &[usize]) {
    for (block_form, batch_form) in WAYS {
        let remainder = if drop_last { Remainder::Drop } else { Remainder::Short };
        let spec = LoaderSpec {
            pipeline: PipelineSpec { batch_rows, remainder, ..sample::spec().pipeline },
            block_form,
            batch_form,
            ..sample::spec()
        };
        let loader = Loader::new(sample::whole(n_rows, 5), spec).unwrap();
        let sizes: Vec<usize> =
            loader.epoch(0).unwrap().map(|batch| batch.unwrap().n_rows()).collect();
        assert_eq!(sizes, expect, "{block_form} {batch_form}");
        assert_eq!(loader.n_batches(), expect.len() as u64);
    }
}

#[test]
fn only_the_last_batch_is_short() {
    check_sizes(0, 3, false, &[]);
    check_sizes(0, 3, true, &[]);
    check_sizes(1, 3, false, &[1]);
    check_sizes(1, 3, true, &[]);
    check_sizes(1, 1, true, &[1]);
    // Blocks have 8 rows: batches larger than one block, of two blocks, and of all rows.
    check_sizes(20, 11, false, &[11, 9]);
    check_sizes(20, 11, true, &[11]);
    check_sizes(20, 16, false, &[16, 4]);
    check_sizes(20, 20, true, &[20]);
    check_sizes(20, 1000, false, &[20]);
    check_sizes(20, 1000, true, &[]);
    check_sizes(20, 8, false, &[8, 8, 4]);
}

#[test]
fn epochs_differ_and_can_be_repeated() {
    let case = Case {
        x_rows: 100,
        x_columns: 3,
        cells: Cells::Range(0..100),
        genes: GeneSelection::All,
        spec: sample::spec(),
        epoch: 0,
    };
    let first = loader(&case, sample::spec());
    let again = loader(&case, sample::spec());
    let other_seed = loader(
        &case,
        LoaderSpec {
            pipeline: PipelineSpec { seed: 43, ..sample::spec().pipeline },
            ..sample::spec()
        },
    );
    for epoch in 0..3 {
        assert_eq!(collect(&first, epoch), collect(&again, epoch));
        assert_ne!(collect(&first, epoch), collect(&first, epoch + 1));
        assert_ne!(collect(&first, epoch), collect(&other_seed, epoch));
    }
    let in_order = loader(
        &case,
        LoaderSpec {
            pipeline: PipelineSpec { order: Order::InOrder, ..sample::spec().pipeline },
            ..sample::spec()
        },
    );
    assert_eq!(collect(&in_order, 0), collect(&in_order, 7));
}

#[test]
fn two_epochs_at_once_do_not_disturb_each_other() {
    let loader = Loader::new(sample::whole(50, 4), sample::spec()).unwrap();
    let alone: Vec<_> = [0, 1].map(|epoch| collect(&loader, epoch)).into();
    let together = loader.epoch(0).unwrap().zip(loader.epoch(1).unwrap());
    for (idx, (a, b)) in together.enumerate() {
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((a.joinids.clone(), dense_rows(&a.x)), alone[0][idx]);
        assert_eq!((b.joinids.clone(), dense_rows(&b.x)), alone[1][idx]);
    }
}

#[test]
fn a_selection_without_obs_columns_or_genes_still_counts_cells() {
    use arrow_array::{RecordBatch, RecordBatchOptions};
    let options = RecordBatchOptions::new().with_row_count(Some(10));
    let schema = Arc::new(arrow_schema::Schema::empty());
    let obs = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    for (block_form, batch_form) in WAYS {
        let reader = Arc::new(sample::reader(10, 4));
        let genes = GeneSelection::List(vec![]);
        let dataset =
            loader::Dataset::new(reader, Cells::Range(0..10), obs.clone(), genes).unwrap();
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let batches: Vec<_> =
            Loader::new(dataset, spec).unwrap().epoch(0).unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(|batch| batch.obs.num_rows()).sum::<usize>(), 10);
        assert!(
            batches.iter().all(|batch| batch.x.shape() == (batch.n_rows(), 0)),
            "{block_form} {batch_form}"
        );
        assert!(
            batches
                .iter()
                .all(|batch| (batch_form == BatchForm::Dense) == batch.x.dense().is_some())
        );
    }
    assert!(
        BlockForm::ALL
            .iter()
            .all(|block_form| block_form.name().parse::<BlockForm>().unwrap() == *block_form)
    );
}
