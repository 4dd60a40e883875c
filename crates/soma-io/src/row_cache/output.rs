//! The rows that a read fills, whole or packed.

use std::ops::Range;

use csr::{CsrBuffers, PackedCsr, PackedValues, PackedValuesMut};

use crate::row_cache::page::{Column, Value};

/// Rows that a read fills.
#[derive(Debug)]
pub(crate) enum Output<'a> {
    /// With whole columns and values.
    Csr(&'a mut CsrBuffers),
    /// Packed.
    Packed(&'a mut PackedCsr),
}

/// Work on the parts of rows, whatever their types.
pub(crate) trait PartsMut {
    type Answer;
    fn work<C: Column, V: Value>(
        self,
        row_offsets: &[usize],
        columns: &mut [C],
        values: &mut [V],
    ) -> Self::Answer;
}

/// Work that only looks at the parts of rows.
pub(crate) trait Parts {
    type Answer;
    fn work<C: Column, V: Value>(
        self,
        row_offsets: &[usize],
        columns: &[C],
        values: &[V],
    ) -> Self::Answer;
}

impl Output<'_> {
    /// The same rows, for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Output<'_> {
        match self {
            Self::Csr(csr) => Output::Csr(csr),
            Self::Packed(packed) => Output::Packed(packed),
        }
    }

    /// Begins rows of these lengths, of any content.
    pub(crate) fn begin(&mut self, lengths: &[Option<usize>]) {
        let write = |places: &mut [usize]| {
            let places = places[1..].iter_mut().zip(lengths);
            places.for_each(|(to, length)| *to = length.unwrap_or(0));
        };
        match self {
            Self::Csr(csr) => csr.begin(lengths.len(), write),
            Self::Packed(packed) => packed.begin(lengths.len(), write),
        }
    }

    /// Inserts rows, as [`CsrBuffers::insert_rows`].
    pub(crate) fn insert(&mut self, lengths: &[Option<usize>]) {
        match self {
            Self::Csr(csr) => csr.insert_rows(lengths),
            Self::Packed(packed) => packed.insert_rows(lengths),
        }
    }

    /// The number of rows that are there.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Csr(csr) => csr.n_rows(),
            Self::Packed(packed) => packed.n_rows(),
        }
    }

    /// Removes packed rows, and keeps values as counts, or else as floats, from now on.
    pub(crate) fn keep_counts(&mut self, are_counts: bool) {
        if let Self::Packed(packed) = self {
            packed.keep_counts(are_counts);
        }
    }

    /// Keeps the values of the rows that are there as floats.
    pub(crate) fn widen(&mut self) {
        if let Self::Packed(packed) = self {
            packed.widen();
        }
    }

    /// Whether rows are packed and keep values as floats.
    pub(crate) fn holds_packed_floats(&self) -> bool {
        matches!(self, Self::Packed(packed) if !packed.keeps_counts())
    }

    pub(crate) fn with_parts_mut<W: PartsMut>(&mut self, work: W) -> W::Answer {
        match self {
            Self::Csr(csr) => work.work(&csr.row_offsets, &mut csr.columns, &mut csr.values),
            Self::Packed(packed) => match packed.parts_mut() {
                (offsets, columns, PackedValuesMut::Counts(values)) => {
                    work.work(offsets, columns, values)
                }
                (offsets, columns, PackedValuesMut::Floats(values)) => {
                    work.work(offsets, columns, values)
                }
            },
        }
    }

    pub(crate) fn with_parts<W: Parts>(&self, work: W) -> W::Answer {
        match self {
            Self::Csr(csr) => work.work(&csr.row_offsets, &csr.columns, &csr.values),
            Self::Packed(packed) => match packed.values() {
                PackedValues::Counts(values) => {
                    work.work(packed.row_offsets(), packed.columns(), values)
                }
                PackedValues::Floats(values) => {
                    work.work(packed.row_offsets(), packed.columns(), values)
                }
            },
        }
    }
}

/// Splits off the parts of values for ascending, disjoint ranges of rows.
pub(crate) fn split<'a, T>(
    row_offsets: &[usize],
    mut values: &'a mut [T],
    rows: impl Iterator<Item = Range<usize>>,
) -> Vec<&'a mut [T]> {
    let mut begin = 0;
    rows.filter_map(|rows| {
        let place = row_offsets[rows.start]..row_offsets[rows.end];
        values.split_off_mut(..place.start - begin)?;
        begin = place.end;
        values.split_off_mut(..place.len())
    })
    .collect()
}
