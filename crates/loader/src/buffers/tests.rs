//! Buffers that are not of the type asked for.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use soma_io::CsrBuffers;

use super::*;
use crate::elements::ElementTypeError;
use crate::{BatchForm, Dataset, DatasetError, Loader, LoaderError, LoaderSpec};

/// Gives buffers of one type, whatever is asked for.
struct Only(ElementType, HeapBuffers);

impl BatchBuffers for Only {
    type Buffer = HeapBuffer;

    fn take(&self, n: usize, _: ElementType) -> Result<HeapBuffer, BufferError> {
        self.1.take(n, self.0)
    }
}

fn dataset() -> Dataset {
    let csr = CsrBuffers {
        row_offsets: vec![0, 1, 2],
        columns: vec![1, 0],
        values: vec![5.0, 6.0],
        n_columns: 2,
    };
    let rows = || {
        let options = RecordBatchOptions::new().with_row_count(Some(2));
        let schema = Arc::new(arrow_schema::Schema::empty());
        RecordBatch::try_new_with_options(schema, Vec::new(), &options).unwrap()
    };
    Dataset::in_memory(csr, rows(), rows()).unwrap()
}

#[test]
fn a_buffer_of_another_type_is_an_error_and_no_empty_batch() {
    for (form, given) in [
        (BatchForm::Dense, ElementType::U32),
        (BatchForm::Csr, ElementType::F32),
        (BatchForm::Coo, ElementType::U32),
    ] {
        let spec = LoaderSpec { batch_form: form, ..LoaderSpec::default() };
        let buffers = Arc::new(Only(given, HeapBuffers::new(2)));
        let loader = Loader::with_buffers(dataset(), spec, buffers).unwrap();
        let found: Result<Vec<_>, _> = loader.epoch(0).unwrap().collect();
        let error = found.unwrap_err();
        assert!(
            matches!(error, LoaderError::ElementType(ElementTypeError { found, .. }) if found == given),
            "{error}"
        );
    }
}

#[test]
fn obs_and_var_must_have_a_row_for_each_row_and_column() {
    let (obs, var) = (dataset().obs().clone(), dataset().var().clone());
    let csr = |n_columns| CsrBuffers { n_columns, row_offsets: vec![0, 0, 0], ..CsrBuffers::new() };
    let error = Dataset::in_memory(csr(3), obs.clone(), var.clone()).unwrap_err();
    assert!(matches!(error, DatasetError::VarLength { n_genes: 3, n_var: 2 }), "{error}");
    let error = Dataset::in_memory(csr(2), obs.slice(0, 1), var.clone()).unwrap_err();
    assert!(matches!(error, DatasetError::ObsLength { n_cells: 2, n_obs: 1 }), "{error}");
    let broken = CsrBuffers { row_offsets: vec![0, 7], ..csr(2) };
    let error = Dataset::in_memory(broken, obs, var).unwrap_err();
    assert!(matches!(error, DatasetError::Open(_)), "{error}");
}

#[test]
fn memory_that_fits_best_is_lent_first() {
    let pool = HeapBuffers::new(4);
    let take = |n| pool.take(n, ElementType::F32).unwrap();
    let address = |buffer: &HeapBuffer| match buffer.elements() {
        Elements::F32(values) => values.as_ptr(),
        other => panic!("{other:?}"),
    };
    let held = [100, 10, 1000].map(take);
    let [hundred, ten, thousand] = held.each_ref().map(address);
    drop(held);
    let lent = [9, 500, 50].map(take);
    assert_eq!(lent.each_ref().map(address), [ten, thousand, hundred]);
    drop(lent);
    // Too small ones make way, the largest first.
    let _large = take(2000);
    let lent = [take(10), take(100)];
    assert_eq!(lent.each_ref().map(address), [ten, hundred]);
}
