//! A consumer may keep, clone, view, write to and resize tensors: no later batch is written into
//! memory that a tensor still uses.

use std::thread;

use loader::{BatchForm, BlockForm, LoaderSpec, PipelineSpec};
use proptest::prelude::*;
use tch::{Kind, Tensor};
use torch_feed::{TensorBatch, TensorLoader};

use crate::tensors::{N_GENES, WAYS, check_batch, dataset, expected, joinids, loader, spec};

/// The values of a tensor that is not CSR. (Asking torch takes milliseconds if it is not.)
fn plain(tensor: &Tensor) -> Vec<f32> {
    let dense = if tensor.is_sparse() {
        tensor.f_to_dense(None::<Kind>, false).unwrap()
    } else {
        tensor.shallow_clone()
    };
    Vec::try_from(dense.f_flatten(0, -1).unwrap().to_kind(Kind::Float)).unwrap()
}

/// A tensor that outlives its batch, with its expected values.
struct Kept {
    tensor: Tensor,
    values: Vec<f32>,
}

impl Kept {
    fn new(tensor: Tensor) -> Self {
        // Copied now, before the batch is dropped.
        let values = plain(&tensor);
        Self { tensor, values }
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(plain(&self.tensor), self.values);
    }
}

/// All ways in which safe code can share the memory of a batch.
fn ways_to_keep(batch: &TensorBatch, batch_form: BatchForm) -> Vec<Kept> {
    let x = batch.x();
    let shared = match batch_form {
        BatchForm::Csr => vec![
            x.f_values().unwrap(),
            x.shallow_clone().f_values().unwrap().f_narrow(0, 0, 1).unwrap(),
            x.f_col_indices().unwrap(),
        ],
        BatchForm::Coo => vec![x.shallow_clone(), x.f_internal_values().unwrap()],
        BatchForm::Dense | BatchForm::F16 => vec![
            x.shallow_clone(),
            x.detach(),
            x.f_narrow(0, 0, 1).unwrap(),
            x.f_select(1, N_GENES as i64 - 1).unwrap(),
            x.f_view([-1]).unwrap(),
            x.f_transpose(0, 1).unwrap(),
        ],
        other => panic!("{other}"),
    };
    shared.into_iter().map(Kept::new).collect()
}

#[test]
fn what_a_consumer_keeps_of_a_batch_stays() {
    for (block_form, batch_form) in WAYS {
        let feed = loader(block_form, batch_form);
        let mut kept = Vec::new();
        for epoch in 0..2 {
            for batch in feed.epoch(epoch).unwrap() {
                kept.extend(ways_to_keep(&batch.unwrap(), batch_form));
            }
        }
        // The tensors own the memory: neither the loader nor its pool need exist.
        drop(feed);
        kept.iter().for_each(Kept::check);
    }
}

#[test]
fn a_single_small_view_keeps_the_memory() {
    let feed = loader(BlockForm::Csr, BatchForm::Dense);
    let rows: Vec<Kept> = feed
        .epoch(0)
        .unwrap()
        .map(|batch| Kept::new(batch.unwrap().x().f_narrow(0, 0, 1).unwrap()))
        .collect();
    rows.iter().for_each(Kept::check);
}

/// Growing a storage would move its memory away from its writer. (A clone is the same tensor, so
/// the batch gets its new shape, too.)
#[test]
fn a_clone_cannot_grow_the_memory_that_batches_share() {
    let feed = loader(BlockForm::Csr, BatchForm::Dense);
    let mut clones = Vec::new();
    for batch in feed.epoch(0).unwrap() {
        let batch = batch.unwrap();
        check_batch(&batch);
        // torch fails, and leaves the rejected shape on the tensor, which must not be read.
        assert!(batch.x().f_narrow(0, 0, 1).unwrap().f_resize_([1 << 16]).is_err());
        check_batch(&batch);
        let mut clone = batch.x().shallow_clone();
        clones.push(Kept::new(clone.f_resize_([1, N_GENES as i64]).unwrap()));
    }
    feed.epoch(1).unwrap().for_each(|batch| check_batch(&batch.unwrap()));
    clones.iter().for_each(Kept::check);
}

/// A loader whose pool has more room than it needs.
fn one_at_a_time() -> TensorLoader {
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            prefetch_batches: 0,
            ..spec(BlockForm::Csr, BatchForm::Dense).pipeline
        },
        ..spec(BlockForm::Csr, BatchForm::Dense)
    };
    TensorLoader::new(dataset(), spec).unwrap()
}

#[test]
fn a_clone_that_takes_other_data_lets_the_memory_go() {
    let feed = one_at_a_time();
    let mut batches = feed.epoch(0).unwrap().map(Result::unwrap);
    let batch = batches.next().unwrap();
    let mut clone = batch.x().shallow_clone();
    drop(batch);
    batches.for_each(drop);
    let n_free = feed.loader().buffers().n_free();
    clone.set_data(&Tensor::from_slice(&[1.0_f32, 2.0]));
    assert_eq!(feed.loader().buffers().n_free(), n_free + 1);
    assert_eq!(plain(&clone), [1.0, 2.0]);
}

#[test]
fn memory_comes_back_with_the_last_tensor_wherever_it_is_dropped() {
    let feed = one_at_a_time();
    let mut epoch = feed.epoch(0).unwrap();
    let batch = epoch.next().unwrap().unwrap();
    let view = batch.x().f_narrow(0, 0, 1).unwrap();
    epoch.for_each(|batch| check_batch(&batch.unwrap()));
    drop(batch);
    let n_free = feed.loader().buffers().n_free();
    thread::spawn(move || drop(view)).join().unwrap();
    assert_eq!(feed.loader().buffers().n_free(), n_free + 1);
}

/// A consumer's use of a batch.
#[derive(Debug, Clone, Copy)]
enum Use {
    Drop,
    KeepBatch,
    KeepClone,
    KeepView,
    Write,
    Shrink,
    Forget(usize),
}

fn usage() -> impl Strategy<Value = Use> {
    prop_oneof![
        2 => Just(Use::Drop),
        1 => Just(Use::KeepBatch),
        2 => Just(Use::KeepClone),
        2 => Just(Use::KeepView),
        2 => Just(Use::Write),
        1 => Just(Use::Shrink),
        3 => (0_usize..8).prop_map(Use::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However a consumer keeps, writes and drops tensors, every batch and every kept tensor is
    /// right.
    #[test]
    fn no_use_of_tensors_disturbs_another(
        uses in prop::collection::vec(usage(), 17),
        prefetch_batches in 0_usize..3,
    ) {
        let spec = LoaderSpec { pipeline: PipelineSpec { prefetch_batches, ..spec(BlockForm::Csr, BatchForm::Dense).pipeline }, ..spec(BlockForm::Csr, BatchForm::Dense) };
        let feed = TensorLoader::new(dataset(), spec).unwrap();
        let (mut batches, mut kept) = (Vec::new(), Vec::<Kept>::new());
        for (batch, usage) in feed.epoch(0).unwrap().map(Result::unwrap).zip(uses) {
            prop_assert_eq!(plain(batch.x()), expected(&joinids(batch.joinids())));
            match usage {
                Use::Drop => {}
                Use::KeepBatch => batches.push(batch),
                Use::KeepClone => kept.push(Kept::new(batch.x().shallow_clone())),
                Use::KeepView => kept.push(Kept::new(batch.x().f_select(0, 0).unwrap())),
                Use::Write => {
                    let mut clone = batch.x().shallow_clone();
                    kept.push(Kept::new(clone.f_fill_(-1.0).unwrap()));
                }
                Use::Shrink => {
                    let mut clone = batch.x().shallow_clone();
                    kept.push(Kept::new(clone.f_resize_([2]).unwrap()));
                }
                Use::Forget(which) => {
                    if !kept.is_empty() {
                        drop(kept.swap_remove(which % kept.len()));
                    }
                }
            }
        }
        kept.iter().for_each(Kept::check);
        batches.iter().for_each(check_batch);
    }
}
