//! Packed batches have the numbers of CSR batches, in the narrowest types that have all of them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use loader::{
    Batch, BatchForm, BlockForm, Cells, Dataset, ElementType, GeneSelection, Loader, LoaderSpec,
    Matrix, ReadableBuffer as _, Transform,
};
use proptest::prelude::*;
use soma_io::{CsrBuffers, MemoryReader};

use crate::pipeline::sample;

/// Values of cells of a kind: those that bytes have, those that 16 bits have, any, and few that 16
/// bits lack.
fn value(kind: u8) -> BoxedStrategy<f32> {
    match kind {
        0 => any::<u8>().prop_map(f32::from).boxed(),
        1 => any::<u16>().prop_map(f32::from).boxed(),
        2 => prop::num::f32::ANY.boxed(),
        _ => prop_oneof![30 => Just(7.0), 1 => Just(-0.0), 1 => Just(65_536.0)].boxed(),
    }
}

fn cells() -> impl Strategy<Value = CsrBuffers> {
    let n_columns = prop_oneof![Just(9_u32), Just(1 << 16), Just((1 << 16) + 1)];
    let kinds = prop::collection::vec(0_u8..4, 1..3);
    (n_columns, kinds).prop_flat_map(|(n_columns, kinds)| {
        let row = prop::sample::select(kinds).prop_flat_map(move |kind| {
            let columns = prop::collection::btree_set(0..n_columns, 0..8);
            columns.prop_flat_map(move |columns| {
                let values = prop::collection::vec(value(kind), columns.len());
                (Just(columns), values)
            })
        });
        prop::collection::vec(row, 1..40).prop_map(move |rows| {
            let mut csr = CsrBuffers::empty(n_columns as usize);
            for (columns, values) in rows {
                csr.columns.extend(columns);
                csr.values.extend(values);
                csr.row_offsets.push(csr.values.len());
            }
            csr
        })
    })
}

fn batches(dataset: &Dataset, spec: LoaderSpec, epoch: u64) -> Vec<Batch> {
    let loader = Loader::new(dataset.clone(), spec).unwrap();
    loader.epoch(epoch).unwrap().map(Result::unwrap).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The narrowest type that has all values; that of any if they are transformed.
fn narrowest(values: &[f32], are_transformed: bool) -> ElementType {
    let has_all = |numbers: RangeInclusive<u32>| {
        let is_one = |value: &f32| {
            let number = *value as u32;
            numbers.contains(&number) && (number as f32).to_bits() == value.to_bits()
        };
        !are_transformed && values.iter().all(is_one)
    };
    if has_all(0..=255) {
        ElementType::U8
    } else if has_all(0..=65_535) {
        ElementType::U16
    } else {
        ElementType::F32
    }
}

proptest! {
    #[test]
    fn they_have_the_numbers_of_csr(
        csr in cells(),
        block_form in prop_oneof![Just(BlockForm::Csr), Just(BlockForm::ConvertedCsr)],
        batch_rows in 1_u64..20,
        log1p in any::<bool>(),
    ) {
        let (n_rows, n_columns) = (csr.n_rows() as u64, csr.n_columns);
        let obs = sample::obs(&(0..n_rows).collect::<Vec<_>>());
        let reader = Arc::new(MemoryReader::new(csr).unwrap());
        let dataset =
            Dataset::new(reader, Cells::Range(0..n_rows), obs, GeneSelection::All).unwrap();
        let transform = Transform { log1p, ..Transform::default() };
        let mut spec = LoaderSpec { block_form, transform, ..sample::spec() };
        spec.pipeline.batch_rows = batch_rows;
        let of_form = |batch_form| batches(&dataset, LoaderSpec { batch_form, ..spec.clone() }, 3);
        let mut widest = 0;
        for (packed, plain) in of_form(BatchForm::Packed).iter().zip(of_form(BatchForm::Csr)) {
            prop_assert_eq!(&packed.joinids, &plain.joinids);
            let (Matrix::Csr(packed), Matrix::Csr(plain)) = (&packed.x, &plain.x) else {
                panic!("{packed:?}")
            };
            prop_assert_eq!(&packed.row_offsets, &plain.row_offsets);
            let (columns, values) = packed.unpacked().unwrap();
            prop_assert_eq!(&columns, plain.columns().unwrap());
            prop_assert_eq!(bits(&values), bits(plain.values().unwrap()));
            // Not wider than needed, unless a batch before needed it.
            let needed = narrowest(&values, log1p);
            widest = widest.max(needed.bytes());
            let found = packed.values.elements().element_type().bytes();
            prop_assert!((needed.bytes()..=widest).contains(&found), "{found}, {needed}, {widest}");
            let is_narrow = n_columns <= 1 << 16;
            let of_columns = if is_narrow { ElementType::U16 } else { ElementType::U32 };
            prop_assert_eq!(packed.columns.elements().element_type(), of_columns);
        }
    }
}
