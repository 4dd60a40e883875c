//! Decoded values that are kept between blocks and epochs: batches do not depend on them, and more
//! of them leave less to decode.

use std::sync::OnceLock;

use loader::{
    BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, Order, PipelineSpec, Remainder, World,
};
use proptest::prelude::*;
use soma_io::{Experiment, OpenOptions};
use tempfile::TempDir;

use crate::pipeline::sample::{self, dense_rows};

const N_CELLS: u64 = 1200;

/// The joinids of a batch, and its rows.
type Cells = (Vec<i64>, Vec<Vec<f32>>);

/// A data set of its own, in fragments of 50 cells or in one.
fn opened(is_one: bool) -> Dataset {
    static STORED: OnceLock<TempDir> = OnceLock::new();
    let folder = STORED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for (name, fragment_rows) in [("one", None), ("several", Some(50))] {
            let spec = example_data::GenerateSpec {
                n_cells: N_CELLS,
                n_genes: 400,
                fragment_rows,
                ..example_data::GenerateSpec::default()
            };
            let path = folder.path().join(name);
            example_data::generate(path.to_str().unwrap(), &spec, &mut |_| {}).unwrap();
        }
        folder
    });
    let path = folder.path().join(if is_one { "one" } else { "several" });
    let experiment = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    Dataset::from_experiment(&experiment, &DatasetSpec::default()).unwrap()
}

fn keeping(spec: &PipelineSpec, keep_bytes: u64) -> LoaderSpec {
    let pipeline = PipelineSpec { keep_bytes: Some(keep_bytes), ..spec.clone() };
    LoaderSpec { pipeline, batch_form: BatchForm::Csr, ..sample::spec() }
}

/// The joinids and rows of the batches of two epochs, of which the first is resumed after some
/// batches, and the bytes decoded in each. Checks the bytes kept after each batch.
fn two_epochs(
    spec: &PipelineSpec,
    dataset: &Dataset,
    (keep_bytes, first_batch): (u64, usize),
) -> (Vec<Cells>, [u64; 2]) {
    let loader = Loader::new(dataset.clone(), keeping(spec, keep_bytes)).unwrap();
    let mut batches = Vec::new();
    let decoded = [0, 1].map(|epoch| {
        let mut running = loader.epoch(epoch).unwrap();
        if epoch == 0 && first_batch > 0 {
            running.by_ref().take(first_batch).for_each(|batch| drop(batch.unwrap()));
            running = loader.resume(&running.state()).unwrap();
        }
        for batch in running.by_ref() {
            let batch = batch.unwrap();
            batches.push((batch.joinids.clone(), dense_rows(&batch.x)));
            assert!(dataset.decoded_bytes() <= keep_bytes);
        }
        running.stats().engine.read.bytes_decoded.unwrap()
    });
    (batches, decoded)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn batches_do_not_depend_on_what_is_kept(
        (chunk_rows, chunks_per_block, batch_rows) in (1_u64..60, 1_u64..12, 20_u64..200),
        (rank, size) in (1_u64..4).prop_flat_map(|size| (0..size, Just(size))),
        order in prop_oneof![Just(Order::Shuffled), Just(Order::InOrder)],
        (read_threads, prefetch_blocks, seed) in (0_usize..3, 0_usize..3, any::<u64>()),
        (keep_bytes, first_batch) in (1000_u64..400_000, 0_usize..4),
        is_one in any::<bool>(),
    ) {
        let spec = PipelineSpec {
            chunk_rows,
            chunks_per_block,
            batch_rows,
            world: World { rank, size },
            remainder: if size == 1 { Remainder::Short } else { Remainder::Pad },
            order,
            seed,
            read_threads,
            prefetch_blocks,
            ..PipelineSpec::default()
        };
        let (expected, without) = two_epochs(&spec, &opened(is_one), (0, first_batch));
        let (batches, with) = two_epochs(&spec, &opened(is_one), (keep_bytes, first_batch));
        prop_assert_eq!(batches, expected);
        // In the first epoch the places of rows are read, too, part of them before it resumes.
        prop_assert!(with[1] <= without[1], "{with:?}, {without:?}");
    }
}

/// Chunks are read in random order, several of a fragment's in each epoch.
#[test]
fn more_memory_leaves_less_to_decode() {
    let spec = PipelineSpec {
        chunk_rows: 10,
        chunks_per_block: 4,
        batch_rows: 40,
        ..sample::spec().pipeline
    };
    let (_, without) = two_epochs(&spec, &opened(false), (0, 0));
    let dataset = opened(false);
    let (_, whole) = two_epochs(&spec, &dataset, (1 << 30, 0));
    assert_eq!(whole[1], 0, "everything fits");
    let loader = Loader::new(dataset.clone(), keeping(&spec, 1 << 30)).unwrap();
    loader.epoch(2).unwrap().for_each(|batch| drop(batch.unwrap()));
    let all = dataset.decoded_bytes();
    let (_, half) = two_epochs(&spec, &opened(false), (all / 2, 0));
    assert!(half[0] < without[0], "{half:?} of {without:?}");
    assert!(10 * half[1] < 9 * without[1], "{half:?} of {without:?}");
    assert!(whole[0] < half[0], "{whole:?}, {half:?}");
}
