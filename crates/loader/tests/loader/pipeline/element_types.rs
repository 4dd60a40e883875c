//! Buffers whose elements have another type than a batch needs are errors, never empty batches.

use std::sync::Arc;

use loader::{
    BatchBuffer as _, BatchBuffers, BatchForm, BufferError, ElementType, HeapBuffer, HeapBuffers,
    Loader, LoaderSpec, Matrix, ReadableBuffer as _,
};

use crate::pipeline::sample;

/// A pool that returns buffers of another type than the requested one.
struct WrongBuffers {
    heap: HeapBuffers,
    requested: ElementType,
    returned: ElementType,
}

impl BatchBuffers for WrongBuffers {
    type Buffer = HeapBuffer;

    fn take(&self, n: usize, element_type: ElementType) -> Result<HeapBuffer, BufferError> {
        let wrong = element_type == self.requested;
        self.heap.take(n, if wrong { self.returned } else { element_type })
    }
}

/// Checks the text of the error, which names both types.
#[track_caller]
fn check<T>(result: Result<T, impl std::fmt::Display>, [expected, found]: [ElementType; 2]) {
    let Err(error) = result else { panic!("{found} was accepted for {expected}") };
    let text = error.to_string();
    assert!(
        text.contains(&format!("elements of type {found}, but {expected} is required")),
        "{text}"
    );
}

#[test]
fn a_pool_that_returns_another_type_ends_the_epoch() {
    use ElementType::{F16, F32, U8, U16, U32};
    for (batch_form, requested, returned) in [
        (BatchForm::Dense, F32, U32),
        (BatchForm::Dense, F32, F16),
        (BatchForm::F16, F16, U32),
        (BatchForm::Csr, F32, F16),
        (BatchForm::Csr, U32, F32),
        (BatchForm::Coo, U32, F32),
        (BatchForm::Packed, U8, F32),
        (BatchForm::Packed, U16, U32),
    ] {
        let buffers = WrongBuffers { heap: HeapBuffers::new(1), requested, returned };
        let spec = LoaderSpec { batch_form, ..sample::spec() };
        let loader = Loader::with_buffers(sample::whole(20, 3), spec, Arc::new(buffers)).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        check(epoch.next().unwrap(), [requested, returned]);
        assert!(epoch.next().is_none(), "{batch_form}");
    }
}

#[test]
fn sparse_batches_of_another_type_are_no_empty_batches() {
    use ElementType::{F16, F32, U32};
    let spec = LoaderSpec { batch_form: BatchForm::Csr, ..sample::spec() };
    let loader = Loader::new(sample::whole(20, 3), spec).unwrap();
    let pool = HeapBuffers::new(2);
    let batches = || loader.epoch(0).unwrap().map(Result::unwrap);
    for mut batch in batches() {
        let Matrix::Csr(csr) = &mut batch.x else { panic!("{batch:?}") };
        (csr.columns, csr.values) = (pool.take(9, F32).unwrap(), pool.take(9, F16).unwrap());
        check(csr.columns(), [U32, F32]);
        check(csr.values(), [F32, F16]);
        check(csr.values.elements_mut().into_u32(), [U32, F16]);
        check(csr.values.elements().into_u32(), [U32, F16]);
        check(csr.unpacked(), [U32, F32]);
        let error = batch.to_arrow().unwrap_err();
        assert!(error.to_string().contains("to an Arrow record batch"), "{error}");
        check(batch.x.into_sprs_csr(), [U32, F32]);
    }
}
