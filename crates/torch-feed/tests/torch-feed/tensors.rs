//! Tensors contain the loader's numbers, and reused memory disturbs no batch that lives.

mod beside;
mod kept;

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::{
    BatchForm, BlockForm, Cells, Dataset, DatasetSpec, GeneSelection, Loader, LoaderSpec, Order,
    PipelineSpec, Remainder,
};
use soma_io::{CsrBuffers, Experiment, MemoryReader, OpenOptions, XReader};
use tch::{Device, Kind, Tensor};
use torch_feed::{TensorBatch, TensorLoader};

const N_ROWS: u64 = 50;
const N_GENES: u64 = 6;
const WAYS: [(BlockForm, BatchForm); 8] = [
    (BlockForm::Dense, BatchForm::Dense),
    (BlockForm::ConvertedCsr, BatchForm::Dense),
    (BlockForm::Csr, BatchForm::Dense),
    (BlockForm::ConvertedCsr, BatchForm::Csr),
    (BlockForm::Csr, BatchForm::Csr),
    (BlockForm::Dense, BatchForm::F16),
    (BlockForm::Csr, BatchForm::F16),
    (BlockForm::Csr, BatchForm::Coo),
];

/// A third of the values is stored, each encoding its cell and gene; every seventh cell has none.
/// All are exact in f16.
fn value(joinid: u64, gene: u64) -> Option<f32> {
    let stored = !joinid.is_multiple_of(7) && (joinid + gene).is_multiple_of(3);
    stored.then(|| (joinid * 40 + gene + 1) as f32)
}

fn dataset() -> Dataset {
    let mut csr =
        CsrBuffers { row_offsets: vec![0], n_columns: N_GENES as usize, ..CsrBuffers::default() };
    for joinid in 0..N_ROWS {
        for gene in 0..N_GENES {
            if let Some(value) = value(joinid, gene) {
                csr.columns.push(gene as u32);
                csr.values.push(value);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    let doubled = Int64Array::from_iter_values((0..N_ROWS).map(|joinid| 2 * joinid as i64));
    let obs = RecordBatch::try_from_iter([("doubled", Arc::new(doubled) as ArrayRef)]).unwrap();
    let reader: Arc<dyn XReader> = Arc::new(MemoryReader::new(csr).unwrap());
    Dataset::new(reader, Cells::Range(0..N_ROWS), obs, GeneSelection::All).unwrap()
}

fn spec(block_form: BlockForm, batch_form: BatchForm) -> LoaderSpec {
    LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 4,
            chunks_per_block: 2,
            order: Order::Shuffled,
            seed: 7,
            batch_rows: 3,
            ..PipelineSpec::default()
        },
        block_form,
        batch_form,
        ..LoaderSpec::default()
    }
}

fn loader(block_form: BlockForm, batch_form: BatchForm) -> TensorLoader {
    TensorLoader::new(dataset(), spec(block_form, batch_form)).unwrap()
}

fn joinids(tensor: &Tensor) -> Vec<i64> {
    assert_eq!((tensor.kind(), tensor.size().len()), (Kind::Int64, 1));
    Vec::try_from(tensor).unwrap()
}

/// Dense values, row-major.
fn values(x: &Tensor) -> Vec<f32> {
    let dense = if x.is_sparse_csr() || x.is_sparse() {
        x.f_to_dense(None::<Kind>, false).unwrap()
    } else {
        x.shallow_clone()
    };
    assert!(matches!(dense.kind(), Kind::Float | Kind::Half));
    Vec::try_from(dense.f_flatten(0, -1).unwrap().to_kind(Kind::Float)).unwrap()
}

trait Layout {
    fn is_sparse_csr(&self) -> bool;
}

impl Layout for Tensor {
    /// Only CSR tensors have row offsets.
    fn is_sparse_csr(&self) -> bool {
        self.f_crow_indices().is_ok()
    }
}

fn expected(joinids: &[i64]) -> Vec<f32> {
    let row = |&id: &i64| (0..N_GENES).map(move |gene| value(id as u64, gene).unwrap_or(0.0));
    joinids.iter().flat_map(row).collect()
}

#[track_caller]
fn check_batch(batch: &TensorBatch) {
    let ids = joinids(batch.joinids());
    assert_eq!(ids.len(), batch.n_rows());
    assert_eq!(batch.x().size(), [ids.len() as i64, N_GENES as i64]);
    assert_eq!(values(batch.x()), expected(&ids));
    let doubled = batch.obs().column(0).as_primitive::<Int64Type>();
    assert!(ids.iter().zip(doubled.values()).all(|(id, doubled)| 2 * id == *doubled));
}

#[test]
fn tensors_hold_what_the_loader_gives_without_torch() {
    for (block_form, batch_form) in WAYS {
        let plain = Loader::new(dataset(), spec(block_form, BatchForm::Dense)).unwrap();
        let feed = loader(block_form, batch_form);
        for epoch in 0..2 {
            let mut n_rows = 0;
            let batches = feed.epoch(epoch).unwrap().map(Result::unwrap);
            for (tensors, batch) in batches.zip(plain.epoch(epoch).unwrap().map(Result::unwrap)) {
                check_batch(&tensors);
                assert_eq!(tensors.x().is_sparse_csr(), batch_form == BatchForm::Csr);
                assert_eq!(tensors.x().is_sparse(), batch_form == BatchForm::Coo);
                let kind = if batch_form == BatchForm::F16 { Kind::Half } else { Kind::Float };
                assert_eq!(tensors.x().kind(), kind);
                assert_eq!(tensors.experiments(), vec![0; tensors.n_rows()]);
                assert_eq!(values(tensors.x()), batch.x.dense().unwrap());
                assert_eq!(joinids(tensors.joinids()), batch.joinids);
                assert_eq!(tensors.obs(), &batch.obs);
                assert_eq!(tensors.batch_idx(), batch.batch_idx);
                n_rows += tensors.n_rows() as u64;
            }
            assert_eq!(n_rows, N_ROWS);
        }
    }
}

#[test]
fn codes_are_tensors_beside_the_rows() {
    let doubled = LabelEncoder::fit("doubled", dataset().obs().column(0), Rules::default());
    let encoders = Encoders::new(vec![Arc::new(doubled.unwrap())]).unwrap();
    let dataset = dataset().with_encoders(&encoders).unwrap();
    let feed = TensorLoader::new(dataset, spec(BlockForm::Csr, BatchForm::Dense)).unwrap();
    for batch in feed.epoch(0).unwrap() {
        let batch = batch.unwrap().to_device(Device::Cpu).unwrap();
        // The labels ascend with the cells, so each cell's code is its joinid.
        assert_eq!(joinids(batch.codes("doubled").unwrap()), joinids(batch.joinids()));
        assert!(batch.codes("donor").is_none());
    }
}

#[test]
fn sums_over_an_epoch_are_the_datas_own() {
    let expected: f64 = (0..N_ROWS)
        .flat_map(|id| (0..N_GENES).filter_map(move |gene| value(id, gene)))
        .map(f64::from)
        .sum();
    for (block_form, batch_form) in WAYS {
        let mut epoch = loader(block_form, batch_form).epoch(0).unwrap();
        let mut sum = 0.0;
        for batch in epoch.by_ref() {
            let sum_of_batch = batch.unwrap().x().f_sum(Kind::Double).unwrap();
            sum += sum_of_batch.f_double_value(&[]).unwrap();
        }
        assert_eq!(sum, expected, "{block_form} {batch_form}");
        assert_eq!(epoch.stats().engine.n_batches, epoch.n_batches());
    }
}

#[test]
fn batches_that_live_are_not_written_over() {
    for (block_form, batch_form) in WAYS {
        let feed = loader(block_form, batch_form);
        let kept: Vec<TensorBatch> = feed.epoch(0).unwrap().map(Result::unwrap).collect();
        feed.epoch(1).unwrap().map(Result::unwrap).for_each(|batch| check_batch(&batch));
        kept.iter().for_each(check_batch);
    }
}

#[test]
fn memory_of_dropped_batches_is_used_again() {
    let feed = loader(BlockForm::Csr, BatchForm::Dense);
    let address = |batch: &TensorBatch| batch.x().data_ptr() as usize;
    let mut addresses: Vec<usize> =
        feed.epoch(0).unwrap().map(|batch| address(&batch.unwrap())).collect();
    assert_eq!(addresses.len(), 17);
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() <= 4, "{} tensors for one batch at a time", addresses.len());
    assert!(1 <= feed.loader().buffers().n_free());
}

#[test]
fn parts_are_the_users_own() {
    let feed = loader(BlockForm::Dense, BatchForm::Dense);
    let parts: Vec<_> = feed.epoch(0).unwrap().map(|batch| batch.unwrap().into_parts()).collect();
    feed.epoch(1).unwrap().map(Result::unwrap).for_each(|batch| check_batch(&batch));
    for (x, obs, ids) in &parts {
        assert_eq!(values(x), expected(&joinids(ids)));
        assert_eq!(obs.num_rows() as i64, x.size()[0]);
    }
}

#[test]
fn a_device_is_where_the_tensors_are() {
    let devices = if tch::Cuda::is_available() {
        vec![Device::Cpu, Device::Cuda(0)]
    } else {
        vec![Device::Cpu]
    };
    for device in devices {
        for (block_form, batch_form) in WAYS {
            let feed = loader(block_form, batch_form).to_device(device).unwrap();
            let batches: Vec<_> = feed.epoch(0).unwrap().map(Result::unwrap).collect();
            for batch in batches {
                assert_eq!((batch.x().device(), batch.joinids().device()), (device, device));
                check_batch(&batch.to_device(Device::Cpu).unwrap());
            }
            if let (BlockForm::Csr, BatchForm::Dense | BatchForm::F16) = (block_form, batch_form) {
                let feed = loader(block_form, batch_form).to_device(device).unwrap();
                let mut n_rows = 0;
                for batch in feed.densify_on_device().unwrap().epoch(0).unwrap() {
                    let batch = batch.unwrap();
                    assert_eq!(batch.x().device(), device);
                    n_rows += batch.n_rows() as u64;
                    check_batch(&batch.to_device(Device::Cpu).unwrap());
                }
                assert_eq!(n_rows, N_ROWS);
            }
        }
    }
}

#[test]
fn dropped_half_way_nothing_holds_the_data() {
    for (block_form, batch_form) in WAYS {
        for n_taken in 0..17 {
            let dataset = dataset();
            let reader = Arc::clone(dataset.readers().next().unwrap());
            let feed = TensorLoader::new(dataset, spec(block_form, batch_form)).unwrap();
            let mut epoch = feed.epoch(0).unwrap();
            let taken: Vec<_> = epoch.by_ref().take(n_taken).map(Result::unwrap).collect();
            drop(epoch);
            assert_eq!(Arc::strong_count(&reader), 2, "the test's and the loader's");
            taken.iter().for_each(check_batch);
        }
    }
}

#[test]
fn an_epoch_goes_on_and_says_what_is_padding() {
    let padded = LoaderSpec {
        pipeline: PipelineSpec {
            remainder: Remainder::Pad,
            ..spec(BlockForm::Csr, BatchForm::Dense).pipeline
        },
        ..spec(BlockForm::Csr, BatchForm::Dense)
    };
    let feed = TensorLoader::new(dataset(), padded).unwrap();
    let describe =
        |batch: TensorBatch| (batch.batch_idx(), batch.n_padding(), joinids(batch.joinids()));
    let whole: Vec<_> = feed.epoch(2).unwrap().map(|batch| describe(batch.unwrap())).collect();
    assert_eq!((whole.len(), whole[16].1), (17, 1), "51 rows of 50");
    let mut epoch = feed.epoch(2).unwrap();
    assert_eq!(epoch.by_ref().take(9).count(), 9);
    let rest: Vec<_> =
        feed.resume(&epoch.state()).unwrap().map(|batch| describe(batch.unwrap())).collect();
    assert_eq!(rest, &whole[9..]);
}

#[test]
fn real_counts_come_through_as_tensors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/visium-2898x19465/soma");
    let experiment = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let wanted = DatasetSpec { obs_columns: vec!["nnz".into()], ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &wanted).unwrap();
    for batch_form in BatchForm::ALL {
        let sizes = LoaderSpec {
            pipeline: PipelineSpec {
                chunk_rows: 64,
                chunks_per_block: 16,
                batch_rows: 100,
                ..spec(BlockForm::Csr, batch_form).pipeline
            },
            ..spec(BlockForm::Csr, batch_form)
        };
        let feed = TensorLoader::new(dataset.clone(), sizes).unwrap();
        let (mut sum, mut nnz) = (0.0, 0);
        let mut ids: Vec<i64> = Vec::new();
        for batch in feed.epoch(0).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.x().size(), [batch.n_rows() as i64, 19465]);
            sum += batch.x().f_sum(Kind::Double).unwrap().f_double_value(&[]).unwrap();
            nnz += match batch_form {
                BatchForm::Dense | BatchForm::F16 => {
                    batch.x().f_count_nonzero(None).unwrap().f_int64_value(&[]).unwrap()
                }
                BatchForm::Csr | BatchForm::Packed => batch.x().f_values().unwrap().size()[0],
                BatchForm::Coo => batch.x().f_internal_values().unwrap().size()[0],
                other => panic!("{other}"),
            };
            ids.extend(joinids(batch.joinids()));
        }
        assert_eq!((nnz, sum), (1_069_459, 3_085_005.0), "{batch_form}");
        ids.sort_unstable();
        assert_eq!(ids, (0..2898).collect::<Vec<i64>>());
    }
}
