//! Transforms of values, and conversions of batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use half::f16;
use loader::{
    Batch, BatchForm, BlockForm, Cells, Dataset, DatasetError, GeneSelection, Loader, LoaderError,
    LoaderSpec, ToArrowError, ToSprsError, Totals, Transform,
};
use soma_io::{CsrBuffers, MemoryReader};

use crate::pipeline::sample::{self, WAYS, dense_rows};

const N_ROWS: u64 = 50;
const N_GENES: u64 = 6;

fn batches(dataset: &Dataset, spec: LoaderSpec) -> Vec<Batch> {
    let loader = Loader::new(dataset.clone(), spec).unwrap();
    loader.epoch(2).unwrap().map(Result::unwrap).collect()
}

#[test]
fn half_floats_are_the_rounded_values() {
    for block_form in BlockForm::ALL {
        let spec = LoaderSpec { block_form, ..sample::spec() };
        let whole = batches(&sample::whole(N_ROWS, N_GENES), spec.clone());
        let spec = LoaderSpec { batch_form: BatchForm::F16, ..spec };
        let half = batches(&sample::whole(N_ROWS, N_GENES), spec);
        assert_eq!(whole.len(), half.len());
        for (whole, half) in whole.iter().zip(&half) {
            let rounded: Vec<f16> =
                whole.x.dense().unwrap().iter().copied().map(f16::from_f32).collect();
            assert_eq!(half.x.dense_f16().unwrap(), rounded, "{block_form}");
            assert!(half.x.dense().is_none() && whole.x.dense_f16().is_none());
            assert_eq!(half.joinids, whole.joinids);
        }
    }
}

#[test]
fn values_are_transformed_whatever_the_method_form_and_totals() {
    let total = |joinid: u64| 1.0 + joinid as f64 / 3.0;
    let plain = sample::whole(N_ROWS, N_GENES);
    let dataset = plain.with_totals((0..N_ROWS).map(total).collect()).unwrap();
    let transform = Transform { target_sum: Some(1e4), log1p: true, clip: Some((-1.0, 9.25)) };
    let mut n_clipped = 0;
    for totals in [Totals::Genes, Totals::Obs] {
        for (block_form, batch_form) in WAYS.into_iter().chain([(BlockForm::Csr, BatchForm::F16)]) {
            let spec = LoaderSpec { block_form, batch_form, transform, totals, ..sample::spec() };
            for batch in batches(&dataset, spec) {
                for (row, joinid) in dense_rows(&batch.x).iter().zip(&batch.joinids) {
                    let joinid = *joinid as u64;
                    let stored = |gene| sample::value(joinid, gene).map_or(0.0, f64::from);
                    let total = match totals {
                        Totals::Genes => (0..N_GENES).map(stored).sum(),
                        Totals::Obs => total(joinid),
                        other => panic!("{other:?}"),
                    };
                    for (gene, found) in (0..).zip(row) {
                        let value = stored(gene);
                        let scaled = if value == 0.0 { 0.0 } else { value * (1e4 / total) };
                        let expected = (scaled.ln_1p() as f32).min(9.25);
                        n_clipped += usize::from(expected == 9.25);
                        let expected = match batch_form {
                            BatchForm::F16 => f16::from_f32(expected).to_f32(),
                            _ => expected,
                        };
                        assert_eq!(
                            *found, expected,
                            "{block_form} {batch_form} {totals:?}: {joinid} {gene}"
                        );
                    }
                }
            }
        }
    }
    assert!(n_clipped > 100, "{n_clipped}");
}

#[test]
fn a_cell_without_a_total_is_named() {
    let mut totals = vec![5.0; N_ROWS as usize];
    // Cell 14 has no values, so its total does not matter; cell 15 has values.
    (totals[14], totals[15]) = (0.0, f64::NAN);
    let dataset = sample::whole(N_ROWS, N_GENES).with_totals(totals).unwrap();
    let transform = Transform { target_sum: Some(1.0), ..Transform::default() };
    for (block_form, batch_form) in WAYS {
        let spec =
            LoaderSpec { block_form, batch_form, transform, totals: Totals::Obs, ..sample::spec() };
        let mut epoch = Loader::new(dataset.clone(), spec).unwrap().epoch(0).unwrap();
        match epoch.find_map(Result::err).unwrap() {
            LoaderError::Total { experiment: 0, joinid: 15, total } => assert_eq!(total, "NaN"),
            error => panic!("{error:?}"),
        }
        assert!(epoch.next().is_none());
    }
    let error = sample::whole(3, 2).with_totals(vec![1.0]).unwrap_err();
    assert!(matches!(error, DatasetError::TotalsLength { found: 1, n_cells: 3 }), "{error}");
}

#[test]
fn batches_become_matrices_of_ndarray_and_sprs() {
    let dataset = sample::whole(N_ROWS, N_GENES);
    let of_form = |batch_form| batches(&dataset, LoaderSpec { batch_form, ..sample::spec() });
    let dense = of_form(BatchForm::Dense);
    let half = of_form(BatchForm::F16);
    let sparse = of_form(BatchForm::Csr).into_iter().zip(of_form(BatchForm::Coo));
    for ((dense, half), (csr, coo)) in dense.iter().zip(&half).zip(sparse) {
        let matrix = dense.x.as_ndarray().unwrap();
        assert_eq!(matrix.dim(), (dense.n_rows(), N_GENES as usize));
        for (row, joinid) in matrix.rows().into_iter().zip(&dense.joinids) {
            for (gene, value) in (0..).zip(row) {
                assert_eq!(*value, sample::value(*joinid as u64, gene).unwrap_or(0.0));
            }
        }
        let rounded = matrix.mapv(f16::from_f32);
        assert_eq!(half.x.as_ndarray_f16().unwrap(), rounded);
        assert!(half.x.as_ndarray().is_none() && csr.x.as_ndarray().is_none());
        assert!(matches!(coo.x.into_sprs_csr(), Err(ToSprsError::OtherForm { .. })));
    }
    let sparse = of_form(BatchForm::Csr).into_iter().zip(of_form(BatchForm::Coo));
    for (dense, (csr, coo)) in dense.iter().zip(sparse) {
        let matrix = dense.x.as_ndarray().unwrap();
        assert_eq!(csr.x.into_sprs_csr().unwrap().to_dense(), matrix);
        let triplets = coo.x.into_sprs_coo().unwrap();
        assert_eq!(triplets.to_csr::<usize>().to_dense(), matrix);
    }
    // sprs rejects two values for one gene: an error, not a panic.
    let twice = CsrBuffers {
        row_offsets: vec![0, 2],
        columns: vec![1, 1],
        values: vec![1.0, 2.0],
        n_columns: 3,
    };
    let obs = sample::obs(&[0]);
    let x = Arc::new(MemoryReader::new(twice).unwrap());
    let dataset = Dataset::new(x, Cells::Range(0..1), obs, GeneSelection::All).unwrap();
    for batch in batches(&dataset, LoaderSpec { batch_form: BatchForm::Csr, ..sample::spec() }) {
        assert!(matches!(batch.x.into_sprs_csr(), Err(ToSprsError::Sprs { .. })));
    }
}

#[test]
fn batches_become_arrow_record_batches() {
    let dataset = sample::whole(N_ROWS, N_GENES);
    for batch_form in BatchForm::ALL {
        for batch in batches(&dataset, LoaderSpec { batch_form, ..sample::spec() }) {
            let arrow = batch.to_arrow().unwrap();
            assert_eq!(arrow.num_rows(), batch.n_rows());
            let joinids = arrow.column_by_name("soma_joinid").unwrap();
            assert_eq!(joinids.as_primitive::<Int64Type>().values().as_ref(), batch.joinids);
            assert_eq!(arrow.column_by_name("label"), batch.obs.column_by_name("label"));
            let experiments = arrow.column_by_name("experiment").unwrap();
            assert_eq!(
                experiments.as_primitive::<UInt32Type>().values().as_ref(),
                batch.experiments
            );
            for (idx, row) in dense_rows(&batch.x).iter().enumerate() {
                if let Some(x) = arrow.column_by_name("x") {
                    let of_row = x.as_fixed_size_list().value(idx);
                    let found: Vec<f32> = match batch_form {
                        BatchForm::F16 => {
                            let values = of_row.as_primitive::<Float16Type>().values();
                            values.iter().map(|value| value.to_f32()).collect()
                        }
                        _ => of_row.as_primitive::<Float32Type>().values().to_vec(),
                    };
                    assert_eq!(&found, row);
                    continue;
                }
                let list = |name| arrow.column_by_name(name).unwrap().as_list::<i32>().value(idx);
                let (genes, values) = (list("genes"), list("values"));
                let genes = genes.as_primitive::<UInt32Type>();
                let values = values.as_primitive::<Float32Type>();
                assert_eq!(genes.len(), values.len());
                let mut found = vec![0.0; row.len()];
                for (gene, value) in genes.values().iter().zip(values.values()) {
                    found[*gene as usize] = *value;
                }
                assert_eq!(&found, row, "{batch_form}");
            }
        }
    }
    // An obs column of the same name is an error, not overwritten.
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let obs = RecordBatch::try_from_iter([("x", x)]).unwrap();
    let reader = Arc::new(sample::reader(1, 2));
    let dataset = Dataset::new(reader, Cells::Range(0..1), obs, GeneSelection::All).unwrap();
    let error = batches(&dataset, sample::spec())[0].to_arrow().unwrap_err();
    assert!(matches!(error, ToArrowError { batch_idx: 0, .. }), "{error}");
}
