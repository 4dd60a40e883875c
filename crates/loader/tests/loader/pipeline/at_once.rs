//! Memory bounds for any number of blocks, reads in many pieces, and epochs in several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use loader::{
    BatchBuffer, BatchBuffers, BatchForm, BlockForm, BufferError, Cells, Dataset, DatasetSpec,
    ElementType, Elements, ElementsMut, GeneSelection, HeapBuffer, HeapBuffers, Loader, LoaderSpec,
    PipelineSpec, ReadableBuffer, ReaderChoice,
};
use soma_io::{Experiment, OpenOptions, RowRanges};

use crate::pipeline::counted::CountedReader;
use crate::pipeline::sample::{self, WAYS, dense_rows};

/// A pool that counts its live buffers, now and at most.
struct CountedBuffers {
    heap: HeapBuffers,
    live: Arc<AtomicUsize>,
    most: AtomicUsize,
}

#[derive(Debug)]
struct CountedBuffer {
    inner: HeapBuffer,
    live: Arc<AtomicUsize>,
}

impl BatchBuffers for CountedBuffers {
    type Buffer = CountedBuffer;

    fn take(
        &self,
        n_values: usize,
        element_type: ElementType,
    ) -> Result<CountedBuffer, BufferError> {
        let inner = self.heap.take(n_values, element_type)?;
        let n_live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(n_live, Ordering::SeqCst);
        Ok(CountedBuffer { inner, live: Arc::clone(&self.live) })
    }
}

impl BatchBuffer for CountedBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        self.inner.elements_mut()
    }

    fn truncate(&mut self, n: usize) {
        self.inner.truncate(n);
    }
}

impl ReadableBuffer for CountedBuffer {
    fn elements(&self) -> Elements<'_> {
        self.inner.elements()
    }
}

impl Drop for CountedBuffer {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn what_is_held_does_not_grow_with_the_number_of_blocks() {
    const BLOCK_ROWS: u64 = 8;
    for (prefetch_blocks, prefetch_batches) in [(0, 0), (1, 1), (2, 3)] {
        for n_blocks in [6, 60] {
            for (block_form, batch_form) in WAYS {
                let n_rows = n_blocks * BLOCK_ROWS;
                let reader = Arc::new(CountedReader::new(sample::reader(n_rows, 6), 0));
                let x: Arc<CountedReader> = Arc::clone(&reader);
                let dataset = sample::dataset(x, Cells::Range(0..n_rows), GeneSelection::All);
                let spec = LoaderSpec {
                    pipeline: PipelineSpec {
                        prefetch_blocks,
                        prefetch_batches,
                        ..sample::spec().pipeline
                    },
                    block_form,
                    batch_form,
                    ..sample::spec()
                };
                let batch_rows = spec.pipeline.batch_rows;
                let live = Arc::new(AtomicUsize::default());
                let buffers = Arc::new(CountedBuffers {
                    heap: HeapBuffers::new(2),
                    live: Arc::clone(&live),
                    most: AtomicUsize::default(),
                });
                let loader = Loader::with_buffers(dataset, spec, Arc::clone(&buffers)).unwrap();
                let mut n_delivered = 0;
                for batch in loader.epoch(0).unwrap() {
                    n_delivered += batch.unwrap().n_rows() as u64;
                    // Batches that are ready, and the one in the making.
                    let n_made = n_delivered + (prefetch_batches as u64 + 1) * batch_rows;
                    let n_used_up = n_made / BLOCK_ROWS;
                    let n_read = reader.n_started.load(Ordering::SeqCst) as u64;
                    assert!(
                        n_read <= n_used_up + 1 + prefetch_blocks as u64,
                        "{block_form} {batch_form}"
                    );
                }
                assert_eq!((n_delivered, live.load(Ordering::SeqCst)), (n_rows, 0));
                assert_eq!(reader.n_started.load(Ordering::SeqCst) as u64, n_blocks);
                // Ready, in the making, and with the consumer. A sparse batch that outgrows its
                // buffers has twice as many for a moment.
                let most = buffers.most.load(Ordering::SeqCst);
                let (parts, grown) = match batch_form {
                    BatchForm::Dense | BatchForm::F16 => (1, 0),
                    BatchForm::Csr | BatchForm::Packed => (2, 2),
                    BatchForm::Coo => (3, 2),
                    other => panic!("{other}"),
                };
                let allowed = parts * (prefetch_batches + 2) + grown;
                assert!((1..=allowed).contains(&most), "{most} buffers at once");
                let n_fresh = reader.n_fresh.load(Ordering::SeqCst);
                // Fewer if one is used up before the next is needed.
                let expected =
                    if block_form == BlockForm::Csr { 1..=1 + prefetch_blocks } else { 0..=0 };
                assert!(expected.contains(&n_fresh), "{n_fresh} blocks were made");
            }
        }
    }
}

/// The joinids and dense rows of all batches.
fn collect(loader: &Loader, epoch: u64) -> Vec<(Vec<i64>, Vec<Vec<f32>>)> {
    let batches = loader.epoch(epoch).unwrap().map(Result::unwrap);
    batches.map(|batch| (batch.joinids.clone(), dense_rows(&batch.x))).collect()
}

/// Epochs in concurrent threads deliver the same batches as alone.
fn check_at_once(dataset: &Dataset) {
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let loader = Loader::new(dataset.clone(), spec).unwrap();
        let alone: Vec<_> = (0..4).map(|epoch| collect(&loader, epoch)).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|idx| {
                    (
                        idx % 4,
                        scope.spawn({
                            let loader = &loader;
                            move || collect(loader, idx % 4)
                        }),
                    )
                })
                .collect();
            // One epoch is dropped half-way, among the others.
            let mut dropped = loader.epoch(9).unwrap();
            dropped.next().unwrap().unwrap();
            drop(dropped);
            for (epoch, thread) in threads {
                assert_eq!(
                    thread.join().unwrap(),
                    alone[epoch as usize],
                    "{block_form} {batch_form}"
                );
            }
        });
    }
}

#[test]
fn a_loader_gives_epochs_to_several_threads_at_once() {
    check_at_once(&sample::whole(50, 4));
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    crate::pipeline::experiment::write(&uri);
    let experiment = crate::pipeline::experiment::open(&uri);
    for reader in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
        let spec = DatasetSpec { reader, ..crate::pipeline::experiment::selection() };
        check_at_once(&Dataset::from_experiment(&experiment, &spec).unwrap());
    }
}

#[test]
fn a_read_that_comes_in_many_pieces_is_one_block() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    crate::pipeline::experiment::write(&uri);
    let config = soma_io::Config::from([("soma.init_buffer_bytes".into(), "256".into())]);
    let small = OpenOptions { config, ..OpenOptions::default() };
    let experiment = Experiment::open(&uri, &small).unwrap();
    let spec =
        DatasetSpec { reader: ReaderChoice::Libtiledb, ..crate::pipeline::experiment::selection() };
    let dataset = Dataset::from_experiment(&experiment, &spec).unwrap();
    let reader = dataset.readers().next().unwrap();
    let all = RowRanges::new(vec![0..dataset.n_rows()]).unwrap();
    let mut n_pieces = 0;
    let mut count = |_: &RecordBatch| {
        n_pieces += 1;
        Ok(())
    };
    reader.read_coo(&all, &GeneSelection::All, &mut count).unwrap();
    assert!(n_pieces > 4, "{n_pieces} pieces");
    for (block_form, batch_form) in WAYS {
        for chunk_rows in [16, 1000] {
            let spec = LoaderSpec {
                pipeline: PipelineSpec { chunk_rows, ..sample::spec().pipeline },
                block_form,
                batch_form,
                ..sample::spec()
            };
            let whole = LoaderSpec { block_form: BlockForm::Csr, ..spec.clone() };
            let expected = Loader::new(sample::whole(dataset.n_rows(), 9), whole).unwrap();
            let loader = Loader::new(dataset.clone(), spec).unwrap();
            assert_eq!(collect(&loader, 2), collect(&expected, 2), "{block_form} {batch_form}");
        }
    }
}
