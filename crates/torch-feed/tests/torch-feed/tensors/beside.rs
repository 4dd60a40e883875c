//! Layers and arrays of obsm as tensors, made in place or sent to a device.

use std::sync::Arc;

use loader::{BatchForm, BlockForm, Dataset};
use soma_io::{CsrBuffers, MemoryReader};
use tch::{Device, Kind, Tensor};
use torch_feed::{TensorBatch, TensorLoader};

use super::{Layout as _, N_GENES, N_ROWS, WAYS, dataset, joinids, spec, value, values};

/// Columns of the array of obsm.
const N_COLUMNS: u64 = 3;

/// The layer: negative, where X has a value. Every value is exact in f16.
fn of_layer(joinid: u64, gene: u64) -> Option<f32> {
    value(joinid, gene).map(|value| -value)
}

/// The array of obsm: a fifth of the values is not stored.
fn of_obsm(joinid: u64, column: u64) -> Option<f32> {
    (joinid + column).is_multiple_of(5).then_some(joinid as f32 + column as f32 / 4.0 - 20.0)
}

fn reader(of: fn(u64, u64) -> Option<f32>, n_columns: u64) -> Arc<MemoryReader> {
    let mut csr =
        CsrBuffers { row_offsets: vec![0], n_columns: n_columns as usize, ..CsrBuffers::default() };
    for joinid in 0..N_ROWS {
        for column in 0..n_columns {
            csr.columns.extend(of(joinid, column).map(|_| column as u32));
            csr.values.extend(of(joinid, column));
        }
        csr.row_offsets.push(csr.values.len());
    }
    Arc::new(MemoryReader::new(csr).unwrap())
}

fn with_matrices() -> Dataset {
    let dataset = dataset().with_layer("negative", reader(of_layer, N_GENES)).unwrap();
    dataset.with_obsm("X_pca", reader(of_obsm, N_COLUMNS)).unwrap()
}

fn check(tensor: &Tensor, ids: &[i64], of: fn(u64, u64) -> Option<f32>, n_columns: u64) {
    assert_eq!(tensor.size(), [ids.len() as i64, n_columns as i64]);
    let row = |id: &i64| {
        let id = *id as u64;
        (0..n_columns).map(move |column| of(id, column).unwrap_or(0.0))
    };
    assert_eq!(values(tensor), ids.iter().flat_map(row).collect::<Vec<f32>>());
}

/// Checks the values of kept batches, and the kinds and layouts of their tensors.
fn check_all(batches: &[TensorBatch], batch_form: BatchForm) {
    let kind = if batch_form == BatchForm::F16 { Kind::Half } else { Kind::Float };
    for batch in batches {
        let ids = joinids(batch.joinids());
        let (layer, array) = (batch.layer("negative").unwrap(), batch.obsm("X_pca").unwrap());
        assert_eq!((layer.kind(), array.kind()), (kind, kind));
        assert_eq!(layer.is_sparse_csr(), batch_form == BatchForm::Csr);
        assert_eq!(layer.is_sparse(), batch_form == BatchForm::Coo);
        assert!(!array.is_sparse_csr() && !array.is_sparse());
        check(batch.x(), &ids, value, N_GENES);
        check(layer, &ids, of_layer, N_GENES);
        check(array, &ids, of_obsm, N_COLUMNS);
        assert!(batch.layer("X_pca").is_none() && batch.obsm("negative").is_none());
    }
    assert_eq!(batches.iter().map(TensorBatch::n_rows).sum::<usize>(), N_ROWS as usize);
}

fn all(feed: &TensorLoader, epoch: u64) -> Vec<TensorBatch> {
    feed.epoch(epoch).unwrap().map(Result::unwrap).collect()
}

#[test]
fn tensors_of_all_matrices_have_the_rows_of_x() {
    for (block_form, batch_form) in WAYS {
        let feed = TensorLoader::new(with_matrices(), spec(block_form, batch_form)).unwrap();
        let kept = all(&feed, 0);
        // The batches of the next epoch do not overwrite them.
        assert_eq!(all(&feed, 1).len(), kept.len());
        let moved = kept.into_iter().map(|batch| batch.to_device(Device::Cpu).unwrap());
        check_all(&moved.collect::<Vec<_>>(), batch_form);
    }
}

#[test]
fn a_device_makes_layers_dense_as_it_does_x() {
    for (block_form, batch_form) in WAYS {
        if block_form == BlockForm::Dense || batch_form.dense_type().is_none() {
            continue;
        }
        let feed = TensorLoader::new(with_matrices(), spec(block_form, batch_form)).unwrap();
        let feed = feed.densify_on_device().unwrap();
        let kept = all(&feed, 0);
        assert_eq!(all(&feed, 1).len(), kept.len());
        check_all(&kept, batch_form);
    }
}
