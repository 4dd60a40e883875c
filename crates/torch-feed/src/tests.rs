//! Tests without a GPU: no memory is written while it is copied from, copies under way are bounded,
//! and batches arrive intact.

#[cfg(feature = "images")]
mod copies_of_images;
#[cfg(all(feature = "images", feature = "sequences"))]
mod hand_over;
mod late_device;
#[cfg(feature = "arrays")]
mod on_device;
#[cfg(feature = "sequences")]
mod sequences_as_tensors;

use std::sync::Arc;
use std::thread;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use half::f16;
use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::{
    BatchBuffer as _, BatchBuffers as _, BatchForm, BlockForm, Cells, CsrBatch, Dataset,
    ElementType, ElementsMut, GeneSelection, Loader, LoaderSpec, Matrix, NeighbourSpec,
    PipelineSpec, Transform,
};
use proptest::prelude::*;
use soma_io::{CsrBuffers, MemoryReader};
use tch::{Device, Kind, Tensor};

use self::late_device::{LateDevice, values};
use crate::buffers::{TensorBuffer, TensorBuffers};
use crate::device::{CopyDevice, TorchDevice};
use crate::memory::{Memory, ValueType, ValuesMut};
use crate::pool::Pool;
use crate::staging::{Staging, remove_duplicates};
use crate::{Error, TensorBatch, TensorLoader};

fn fill(memory: &mut Memory, n_values: usize, value: u8) {
    match memory.values_mut() {
        ValuesMut::F32(values) => values[..n_values].fill(f32::from(value)),
        ValuesMut::F16(values) => values[..n_values].fill(f16::from_f32(f32::from(value))),
        ValuesMut::U32(values) => values[..n_values].fill(u32::from(value)),
        ValuesMut::U16(values) => values[..n_values].fill(u16::from(value)),
        ValuesMut::U8(values) => values[..n_values].fill(value),
        ValuesMut::I64(values) => values[..n_values].fill(i64::from(value)),
    }
}

/// An operation of a test on a pool and its device.
#[derive(Debug, Clone)]
enum Action {
    /// Takes memory, fills it with a number, and keeps it.
    Take { n_values: usize, value_type: ValueType, value: u8 },
    /// Begins the copy of one of the kept pieces, and returns it.
    Send(usize),
    /// Returns an unused piece.
    Return(usize),
    /// The device does this many copies.
    Work(u64),
    /// The host learns which copies are done.
    Report,
}

fn action() -> impl Strategy<Value = Action> {
    let types = [
        ValueType::F32,
        ValueType::F16,
        ValueType::U32,
        ValueType::U16,
        ValueType::U8,
        ValueType::I64,
    ];
    let take = (0_usize..40, prop::sample::select(types.to_vec()), 0_u8..100);
    prop_oneof![
        4 => take.prop_map(|(n_values, value_type, value)| Action::Take { n_values, value_type, value }),
        4 => (0_usize..4).prop_map(Action::Send),
        1 => (0_usize..4).prop_map(Action::Return),
        1 => (0_u64..4).prop_map(Action::Work),
        1 => Just(Action::Report),
    ]
}

proptest! {
    /// In any order of operations, each copy has the data written for it, and memory is bounded.
    #[test]
    fn no_memory_is_written_before_its_copy_is_done(
        actions in prop::collection::vec(action(), 0..120),
        most in 1_usize..5,
    ) {
        let device = LateDevice::new();
        let pool = Pool::new(Arc::clone(&device) as Arc<dyn CopyDevice>, most);
        let mut kept: Vec<(Memory, usize, u8)> = Vec::new();
        let mut sent: Vec<(Tensor, usize, u8)> = Vec::new();
        for action in actions {
            match action {
                Action::Take { n_values, value_type, value } => {
                    let mut memory = pool.take(n_values, value_type).unwrap();
                    prop_assert!(n_values <= memory.n_values());
                    prop_assert_eq!(memory.value_type(), value_type);
                    fill(&mut memory, n_values, value);
                    kept.push((memory, n_values, value));
                }
                Action::Send(place) if place < kept.len() => {
                    let (memory, n_values, value) = kept.swap_remove(place);
                    let host = memory.source(n_values).unwrap();
                    let (copy, ticket) = device.begin_copy(&host).unwrap();
                    pool.give_back_after(memory, ticket);
                    sent.push((copy, n_values, value));
                }
                Action::Return(place) if place < kept.len() => {
                    pool.give_back(kept.swap_remove(place).0);
                }
                Action::Send(_) | Action::Return(_) => {}
                Action::Work(n_copies) => device.work(n_copies),
                Action::Report => device.report(),
            }
            prop_assert!(pool.n_free() <= most);
        }
        drop(kept);
        drop(pool);
        prop_assert_eq!(device.n_queued(), 0, "memory was freed while it was copied from");
        for (copy, n_values, value) in sent {
            prop_assert_eq!(values(&copy), vec![f64::from(value); n_values]);
        }
    }
}

#[test]
fn a_pool_waits_once_for_all_that_is_on_its_way() {
    let device = LateDevice::new();
    let pool = Pool::new(Arc::clone(&device) as Arc<dyn CopyDevice>, 4);
    let mut copies = Vec::new();
    for value in 0..40 {
        let mut memory = pool.take(10, ValueType::F32).unwrap();
        fill(&mut memory, 10, value);
        let (copy, ticket) = device.begin_copy(&memory.source(10).unwrap()).unwrap();
        pool.give_back_after(memory, ticket);
        copies.push(copy);
        assert!(pool.n_on_the_way() <= 4);
        // The device works while the host does: one copy beyond the oldest that is waited for.
        device.work(1);
    }
    assert!(device.n_waits() <= 36 && device.n_waits() >= 9, "{} waits", device.n_waits());
    assert!(device.n_addresses() <= 4, "{} pieces of memory", device.n_addresses());
    drop(pool);
    for (value, copy) in copies.iter().enumerate() {
        assert_eq!(values(copy), vec![value as f64; 10]);
    }
}

#[test]
fn threads_share_a_pool() {
    let device = LateDevice::new();
    let pool = Pool::new(Arc::clone(&device) as Arc<dyn CopyDevice>, 2);
    let sent: Vec<(u8, Tensor)> = thread::scope(|scope| {
        let send = |thread: u8| {
            let (device, pool) = (&device, &pool);
            move || {
                let mut sent = Vec::new();
                for round in 0..100 {
                    let value = thread * 100 + round;
                    let mut memory = pool.take(50, ValueType::I64).unwrap();
                    fill(&mut memory, 50, value);
                    let (copy, ticket) = device.begin_copy(&memory.source(50).unwrap()).unwrap();
                    pool.give_back_after(memory, ticket);
                    sent.push((value, copy));
                }
                sent
            }
        };
        let threads = [0, 1].map(|thread| scope.spawn(send(thread)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    drop(pool);
    for (value, copy) in sent {
        assert_eq!(values(&copy), vec![f64::from(value); 50]);
    }
}

const N_ROWS: u64 = 60;
const N_GENES: usize = 9;

/// Every sixth cell has no values; some repeat a gene three times, of which densify takes the last
/// value.
fn dataset() -> Dataset {
    dataset_with_repeats(3)
}

fn dataset_with_repeats(n_repeats: u64) -> Dataset {
    let mut csr = CsrBuffers { row_offsets: vec![0], n_columns: N_GENES, ..CsrBuffers::default() };
    for cell in 0..N_ROWS {
        for gene in 0..N_GENES as u64 {
            if !cell.is_multiple_of(6) && (cell * 7 + gene * 3) % 5 < 2 {
                let n_times = if (cell + gene).is_multiple_of(11) { n_repeats } else { 1 };
                for time in 0..n_times {
                    csr.columns.push(gene as u32);
                    csr.values.push((cell * 100 + gene * 10 + time) as f32 / 3.0);
                }
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    let kinds: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..N_ROWS).map(|cell| cell as i64 % 4)));
    let obs = RecordBatch::try_from_iter([("kind", kinds)]).unwrap();
    let encoder = LabelEncoder::fit("kind", obs.column(0), Rules::default()).unwrap();
    let reader = Arc::new(MemoryReader::new(csr).unwrap());
    let dataset = Dataset::new(reader, Cells::Range(0..N_ROWS), obs, GeneSelection::All).unwrap();
    dataset.with_encoders(&Encoders::new(vec![Arc::new(encoder)]).unwrap()).unwrap()
}

fn spec(batch_form: BatchForm) -> LoaderSpec {
    LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 4,
            chunks_per_block: 3,
            batch_rows: 7,
            ..PipelineSpec::default()
        },
        batch_form,
        block_form: BlockForm::Csr,
        ..LoaderSpec::default()
    }
}

/// The loader's dense values without torch, by batch, with joinids and codes.
fn expected(batch_form: BatchForm, epoch: u64) -> Vec<(Vec<f64>, Vec<i64>)> {
    let dense = if batch_form == BatchForm::F16 { BatchForm::F16 } else { BatchForm::Dense };
    let batches = Loader::new(dataset(), spec(dense)).unwrap().epoch(epoch).unwrap();
    let values = |x: &Matrix| match (x.dense(), x.dense_f16()) {
        (Some(values), _) => values.iter().map(|value| f64::from(*value)).collect(),
        (_, Some(values)) => values.iter().map(|value| f64::from(*value)).collect(),
        _ => panic!("a dense batch"),
    };
    batches.map(Result::unwrap).map(|batch| (values(&batch.x), batch.joinids)).collect()
}

#[test]
fn batches_arrive_whole_however_late_the_device_copies() {
    for batch_form in [BatchForm::Dense, BatchForm::F16] {
        let both = |prefetch| [(LateDevice::new(), prefetch), (LateDevice::beside(), prefetch)];
        for (device, prefetch_batches) in [0, 1, 3].into_iter().flat_map(both) {
            let spec = LoaderSpec {
                pipeline: PipelineSpec { prefetch_batches, ..spec(batch_form).pipeline },
                ..spec(batch_form)
            };
            let copies = Arc::clone(&device) as Arc<dyn CopyDevice>;
            let feed = TensorLoader::new(dataset(), spec).unwrap();
            let feed = feed.copied_by(Some(copies), Device::Cpu).unwrap();
            for epoch in 0..3 {
                let ordered = |batch: Result<TensorBatch, Error>| {
                    let batch = batch.unwrap();
                    assert!(device.is_ordered(batch.x()), "{batch_form} {prefetch_batches}");
                    batch
                };
                let batches: Vec<_> = feed.epoch(epoch).unwrap().map(ordered).collect();
                device.work(u64::MAX / 2);
                for (batch, (x, joinids)) in batches.iter().zip(expected(batch_form, epoch)) {
                    assert_eq!(values(batch.x()), x, "{batch_form} {prefetch_batches}");
                    let ids = Vec::<i64>::try_from(batch.joinids()).unwrap();
                    assert_eq!(ids, joinids);
                    let codes = Vec::<i64>::try_from(batch.codes("kind").unwrap()).unwrap();
                    assert!(codes.iter().zip(&ids).all(|(code, id)| *code == id % 4));
                }
            }
            // Dense memory: being copied; ready, in the making or delivered; and as many pieces
            // prepared while the first block is read. Memory of joinids and codes: being copied,
            // and one more.
            let n_prepared = if prefetch_batches == 0 { 0 } else { prefetch_batches + 2 };
            let most = 2 * (prefetch_batches + 2) + prefetch_batches + 3 + n_prepared;
            assert!(device.most_queued() <= most, "{} copies on their way", device.most_queued());
            assert!(device.n_addresses() <= most, "{} pieces of memory", device.n_addresses());
            assert!(
                most < 2 * 3 * feed.loader().n_batches() as usize,
                "too few batches to test anything"
            );
        }
    }
}

#[test]
fn dropped_half_way_nothing_is_on_its_way() {
    for n_taken in 0..9 {
        let both = |keep| [(LateDevice::new(), keep), (LateDevice::beside(), keep)];
        for (device, keep) in [false, true].into_iter().flat_map(both) {
            let copies = Arc::clone(&device) as Arc<dyn CopyDevice>;
            let feed = TensorLoader::new(dataset(), spec(BatchForm::Dense)).unwrap();
            let feed = feed.copied_by(Some(copies), Device::Cpu).unwrap();
            let mut epoch = feed.epoch(0).unwrap();
            let taken: Vec<_> = epoch.by_ref().take(n_taken).map(Result::unwrap).collect();
            let kept = if keep { taken } else { Vec::new() };
            // Drops the epoch last: it owns memory, too.
            drop(feed);
            drop(epoch);
            assert_eq!(device.n_queued(), 0);
            for (batch, (x, _)) in kept.iter().zip(expected(BatchForm::Dense, 0)) {
                assert_eq!(values(batch.x()), x);
            }
        }
    }
}

#[test]
fn a_device_that_fails_ends_the_epoch() {
    let device = LateDevice::new();
    let copies = Arc::clone(&device) as Arc<dyn CopyDevice>;
    let feed = TensorLoader::new(dataset(), spec(BatchForm::Dense)).unwrap();
    let feed = feed.copied_by(Some(copies), Device::Cpu).unwrap();
    let mut epoch = feed.epoch(0).unwrap();
    assert!(epoch.next().unwrap().is_ok());
    device.fail();
    assert!(matches!(epoch.next(), Some(Err(Error::Torch { .. }))));
    assert!(epoch.next().is_none());
}

#[test]
fn what_is_made_dense_on_the_device_is_what_the_loader_makes() {
    let log1p = Transform { log1p: true, ..Transform::default() };
    let scaled = Transform { target_sum: Some(1e4), ..log1p };
    for batch_form in [BatchForm::Dense, BatchForm::F16] {
        // Only scaling by a row's own total treats repeated values differently.
        for (transform, n_repeats) in [(Transform::default(), 3), (log1p, 3), (scaled, 1)] {
            let spec = LoaderSpec { transform, ..spec(batch_form) };
            let dataset = dataset_with_repeats(n_repeats);
            let plain = TensorLoader::new(dataset.clone(), spec.clone()).unwrap();
            let feed = TensorLoader::new(dataset, spec).unwrap().densify_on_device().unwrap();
            let feed = feed.to_device(Device::Cpu).unwrap();
            assert_eq!(
                feed.loader().spec().batch_form,
                BatchForm::Packed,
                "the settings that ran are reported"
            );
            for epoch in 0..2 {
                let mut n_rows = 0;
                let batches = feed.epoch(epoch).unwrap().zip(plain.epoch(epoch).unwrap());
                for (found, wanted) in batches {
                    let (found, wanted) = (found.unwrap(), wanted.unwrap());
                    assert_eq!(found.x().kind(), wanted.x().kind());
                    assert_eq!(found.x().size(), wanted.x().size());
                    assert_eq!(values(found.x()), values(wanted.x()));
                    assert_eq!(values(found.joinids()), values(wanted.joinids()));
                    assert_eq!(found.obs(), wanted.obs());
                    n_rows += found.n_rows() as u64;
                }
                assert_eq!(n_rows, N_ROWS);
            }
        }
    }
}

#[test]
fn there_are_no_tensors_of_neighbours() {
    let n_cells = dataset().n_rows() as usize;
    let graph = CsrBuffers {
        row_offsets: vec![0; n_cells + 1],
        n_columns: n_cells,
        ..CsrBuffers::default()
    };
    let graph = Arc::new(MemoryReader::new(graph).unwrap());
    let neighbours = NeighbourSpec::new("distances", 2);
    let refused = dataset().with_neighbours(neighbours, graph).unwrap();
    let refused = TensorLoader::new(refused, spec(BatchForm::Dense));
    assert!(matches!(refused, Err(Error::Neighbours)), "{refused:?}");
}

#[test]
fn only_dense_batches_are_made_dense_on_the_device() {
    for batch_form in [BatchForm::Csr, BatchForm::Coo] {
        let refused = TensorLoader::new(dataset(), spec(batch_form)).unwrap().densify_on_device();
        assert!(matches!(refused, Err(Error::DensifySparse { form }) if form == batch_form));
    }
    let blockwise = LoaderSpec { block_form: BlockForm::Dense, ..spec(BatchForm::Dense) };
    let refused = TensorLoader::new(dataset(), blockwise).unwrap().densify_on_device();
    assert!(matches!(refused, Err(Error::Loader(loader::LoaderError::SparseFromDense))));
}

#[test]
fn a_gpu_that_is_not_there_is_told() {
    let n_gpus = tch::Cuda::device_count();
    let idx = usize::try_from(n_gpus).unwrap();
    let feed = TensorLoader::new(dataset(), spec(BatchForm::Dense)).unwrap();
    let refused = feed.to_device(Device::Cuda(idx)).unwrap_err();
    assert!(
        matches!(refused, Error::NoGpu { idx: refused_idx, .. } if refused_idx == idx),
        "{refused}"
    );
}

/// Rows of up to 12 columns in any order, with repetitions; each value with its column.
type Rows = Vec<Vec<(u32, f32)>>;

fn rows() -> impl Strategy<Value = Rows> {
    let cell = (0_u32..12, -50_i8..50).prop_map(|(column, value)| (column, f32::from(value)));
    prop::collection::vec(prop::collection::vec(cell, 0..20), 0..10)
}

/// Types of columns and values.
type Types = (ElementType, ElementType);

fn types() -> impl Strategy<Value = Types> {
    let columns = prop_oneof![Just(ElementType::U32), Just(ElementType::U16)];
    let values = [ElementType::F32, ElementType::U16, ElementType::U8];
    (columns, prop::sample::select(values.to_vec()))
}

/// Rows whose values are of this type: counts of 16 bits go up to the last, which int16 has as -1.
fn of_type(rows: &Rows, of_values: ElementType) -> Rows {
    let value = |value: f32| match of_values {
        ElementType::U16 => f32::from(value as i16 as u16),
        ElementType::U8 => f32::from(value as i8 as u8),
        _ => value,
    };
    let row = |row: &Vec<(u32, f32)>| row.iter().map(|cell| (cell.0, value(cell.1))).collect();
    rows.iter().map(row).collect()
}

fn batch(rows: &Rows, types: Types, buffers: &TensorBuffers) -> CsrBatch<TensorBuffer> {
    let cells: Vec<(u32, f32)> = rows.iter().flatten().copied().collect();
    let mut columns = buffers.take(cells.len(), types.0).unwrap();
    let mut values = buffers.take(cells.len(), types.1).unwrap();
    for (idx, (column, value)) in cells.into_iter().enumerate() {
        match columns.elements_mut() {
            ElementsMut::U16(columns) => columns[idx] = column as u16,
            columns => columns.into_u32().unwrap()[idx] = column,
        }
        match values.elements_mut() {
            ElementsMut::U8(values) => values[idx] = value as u8,
            ElementsMut::U16(values) => values[idx] = value as u16,
            values => values.into_f32().unwrap()[idx] = value,
        }
    }
    let ends = rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    });
    CsrBatch { row_offsets: [0].into_iter().chain(ends).collect(), columns, values, n_columns: 12 }
}

/// Dense rows, row-major; a later value overwrites an earlier one.
fn dense(rows: &Rows) -> Vec<f64> {
    let mut dense = vec![0.0; rows.len() * 12];
    for (row, cells) in rows.iter().enumerate() {
        for (column, value) in cells {
            dense[row * 12 + *column as usize] = f64::from(*value);
        }
    }
    dense
}

proptest! {
    #[test]
    fn sent_rows_become_dense_as_densify_makes_them(
        batches in prop::collection::vec(rows(), 1..8), types in types(),
    ) {
        let batches: Vec<Rows> = batches.iter().map(|rows| of_type(rows, types.1)).collect();
        let cpu = Staging::new(Arc::new(TorchDevice::cpu()), 2);
        let on_cpu = TensorBuffers::new(4);
        let late = LateDevice::new();
        let staging = Staging::new(Arc::clone(&late) as Arc<dyn CopyDevice>, 2);
        let buffers = TensorBuffers::copied_to(Arc::clone(&late) as Arc<dyn CopyDevice>, 4);
        let mut sent = Vec::new();
        for rows in &batches {
            let mut once = batch(rows, types, &on_cpu);
            remove_duplicates(&mut once).unwrap();
            let ids: Vec<u32> = match once.columns.elements_mut() {
                ElementsMut::U16(ids) => ids.iter().copied().map(u32::from).collect(),
                ids => ids.into_u32().unwrap().to_vec(),
            };
            for ends in once.row_offsets.windows(2) {
                let ids = &ids[ends[0]..ends[1]];
                prop_assert!(ids.iter().enumerate().all(|(idx, id)| !ids[..idx].contains(id)));
            }
            prop_assert_eq!(values(&cpu.send_rows(once).unwrap().to_dense(Kind::Float).unwrap()), dense(rows));
            let mut late_rows = batch(rows, types, &buffers);
            remove_duplicates(&mut late_rows).unwrap();
            sent.push(staging.send_rows(late_rows).unwrap());
        }
        // The copies are late: tensors made from them are complete once they are done.
        drop(staging);
        drop(buffers);
        for (sent, rows) in sent.iter().zip(&batches) {
            let rounded = dense(rows).into_iter().map(|value| f16::from_f64(value).to_f64());
            let half = values(&sent.to_dense(Kind::Half).unwrap());
            prop_assert_eq!(half, rounded.collect::<Vec<_>>());
            let sparse = sent.to_sparse().unwrap();
            prop_assert_eq!(sparse.size(), vec![rows.len() as i64, 12]);
            prop_assert_eq!(values(&sparse.to_dense(None::<Kind>, false)), dense(rows));
        }
    }
}
