//! Cells that cannot be read: left out of batches of every form, counted and named.

use loader::{
    BatchForm, BlockForm, Cells, Dataset, GeneSelection, Loader, LoaderError, LoaderSpec,
    PipelineSpec, WhenDamaged,
};

use crate::pipeline::sample::{self, WAYS};
use crate::pipeline::scripted::{At, ScriptedReader};

const N_ROWS: u64 = 64;
const GENES: [u64; 4] = [0, 1, 2, 3];

fn dataset(damaged: u64) -> Dataset {
    let reader = ScriptedReader::new(N_ROWS, 4, At::Row(damaged));
    sample::dataset(reader, Cells::Range(0..N_ROWS), GeneSelection::All)
}

fn spec(block_form: BlockForm, batch_form: BatchForm, when_damaged: WhenDamaged) -> LoaderSpec {
    let pipeline = PipelineSpec { when_damaged, ..sample::spec().pipeline };
    LoaderSpec { pipeline, block_form, batch_form, ..sample::spec() }
}

#[test]
fn batches_of_every_form_come_without_the_cell() {
    let ways = WAYS.into_iter().chain([(BlockForm::Csr, BatchForm::F16)]);
    for (block_form, batch_form) in ways {
        let whole = Loader::new(sample::whole(N_ROWS, 4), sample::spec()).unwrap();
        let skipping = spec(block_form, batch_form, WhenDamaged::Skip);
        let loader = Loader::new(dataset(13), skipping).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let mut n_short = 0;
        for (found, whole) in epoch.by_ref().zip(whole.epoch(0).unwrap()) {
            let (found, mut expected) = (found.unwrap(), whole.unwrap().joinids);
            expected.retain(|joinid| *joinid != 13);
            n_short += usize::from(found.n_rows() == 2);
            if batch_form != BatchForm::F16 {
                sample::check_rows(&found, &GENES, &mut Vec::new());
            }
            assert_eq!(sample::dense_rows(&found.x).len(), expected.len());
            assert_eq!(found.joinids, expected, "{block_form} {batch_form}");
        }
        assert_eq!(n_short, 1);
        let stats = epoch.stats().engine;
        assert_eq!((stats.n_skipped, stats.n_rows, epoch.n_skipped()), (1, N_ROWS - 1, 1));
        assert_eq!(stats.skipped[0].name, "cell 13");
        assert!(stats.skipped[0].error.contains("row 13"), "{:?}", stats.skipped);
    }
}

#[test]
fn otherwise_the_error_ends_the_epoch() {
    for (block_form, batch_form) in WAYS {
        let loader = Loader::new(dataset(13), spec(block_form, batch_form, WhenDamaged::Fail));
        let mut epoch = loader.unwrap().epoch(0).unwrap();
        let error = epoch.find_map(Result::err).unwrap();
        assert!(matches!(error, LoaderError::Read { .. }), "{error}");
        assert!(epoch.next().is_none());
    }
}

#[test]
fn cells_of_several_experiments_are_named_with_theirs() {
    let parts = [sample::whole(N_ROWS, 4), dataset(13)];
    let both = Dataset::concat(&parts).unwrap();
    let spec = spec(BlockForm::Csr, BatchForm::Csr, WhenDamaged::Skip);
    let mut epoch = Loader::new(both, spec).unwrap().epoch(0).unwrap();
    let n_rows: usize = epoch.by_ref().map(|batch| batch.unwrap().n_rows()).sum();
    assert_eq!(n_rows as u64, 2 * N_ROWS - 1);
    assert_eq!(epoch.stats().engine.skipped[0].name, "cell 13 of experiment 1");
}
