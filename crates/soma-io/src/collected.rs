//! Columns that are collected batch by batch, of which only the wanted rows are kept.

use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, FieldRef};

use crate::Error;
use crate::arrow::{ColumnParts, column_array};

/// The rows that were kept of a column.
///
/// Its memory grows with them, and to need too much is an error.
#[derive(Debug)]
pub(crate) struct CollectedColumn {
    field: FieldRef,
    bytes: Vec<u8>,
    /// Offsets of texts.
    offsets: Option<Vec<i64>>,
    validity: Option<BooleanBufferBuilder>,
    categories: Option<ArrayRef>,
}

impl CollectedColumn {
    /// No rows of a column.
    pub(crate) fn new(field: &FieldRef) -> Self {
        let is_text = matches!(field.data_type(), DataType::LargeUtf8 | DataType::LargeBinary);
        Self {
            field: FieldRef::clone(field),
            bytes: Vec::new(),
            offsets: is_text.then(|| vec![0]),
            validity: field.is_nullable().then(|| BooleanBufferBuilder::new(0)),
            categories: None,
        }
    }

    /// Appends those rows that `keep` has, or all.
    ///
    /// # Errors
    /// There is too little memory: the number of bytes, in words.
    pub(crate) fn append(
        &mut self,
        rows: &ArrayRef,
        keep: Option<&BooleanBuffer>,
    ) -> Result<(), String> {
        let stored: &dyn Array = match rows.as_any_dictionary_opt() {
            Some(dictionary) => {
                self.categories.get_or_insert_with(|| ArrayRef::clone(dictionary.values()));
                dictionary.keys()
            }
            None => rows,
        };
        match keep {
            Some(keep) if keep.count_set_bits() < stored.len() => {
                keep.set_slices().try_for_each(|(start, end)| self.add(stored, &(start..end)))
            }
            _ => self.add(stored, &(0..stored.len())),
        }
    }

    /// Appends a range of the rows.
    fn add(&mut self, stored: &dyn Array, rows: &Range<usize>) -> Result<(), String> {
        if let Some(texts) = stored.as_string_opt::<i64>() {
            self.add_texts(texts.value_offsets(), texts.value_data(), rows)?;
        } else if let Some(texts) = stored.as_binary_opt::<i64>() {
            self.add_texts(texts.value_offsets(), texts.value_data(), rows)?;
        } else if let Some(truths) = stored.as_boolean_opt() {
            let truths = truths.values().slice(rows.start, rows.len());
            self.add_bytes(&truths.iter().map(u8::from).collect::<Vec<_>>())?;
        } else {
            let (data, width) = (stored.to_data(), stored.data_type().primitive_width());
            let width = width.ok_or_else(|| format!("it has {} values", stored.data_type()))?;
            let bytes = data.buffers().first().map_or(&[][..], |bytes| bytes.as_slice());
            let place = |row: usize| (data.offset() + row) * width;
            self.add_bytes(&bytes[place(rows.start)..place(rows.end)])?;
        }
        match (&mut self.validity, stored.nulls()) {
            (Some(validity), Some(nulls)) => {
                validity.append_buffer(&nulls.inner().slice(rows.start, rows.len()));
            }
            (Some(validity), None) => validity.append_n(rows.len(), true),
            (None, _) => {}
        }
        Ok(())
    }

    fn add_texts(&mut self, from: &[i64], bytes: &[u8], rows: &Range<usize>) -> Result<(), String> {
        let (start, end) = (from[rows.start], from[rows.end]);
        let shift = self.bytes.len() as i64 - start;
        let offsets = self.offsets.as_mut().ok_or("it has texts, not numbers")?;
        offsets.try_reserve(rows.len()).map_err(|_| no_memory(8 * rows.len()))?;
        offsets.extend(from[rows.start + 1..=rows.end].iter().map(|end| end + shift));
        self.add_bytes(&bytes[start as usize..end as usize])
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes.try_reserve(bytes.len()).map_err(|_| no_memory(bytes.len()))?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The rows that were kept. `categories` of a column are asked for if no row was read.
    pub(crate) fn finish(
        mut self,
        uri: &str,
        categories: &dyn Fn(&str) -> Result<Option<ArrayRef>, Error>,
    ) -> Result<ArrayRef, Error> {
        self.bytes.shrink_to_fit();
        if let Some(offsets) = &mut self.offsets {
            offsets.shrink_to_fit();
        }
        let nulls = self.validity.map(|mut validity| NullBuffer::new(validity.finish()));
        let column = ColumnParts { bytes: self.bytes, offsets: self.offsets, nulls };
        let categories = match self.categories {
            None if matches!(self.field.data_type(), DataType::Dictionary(..)) => {
                categories(self.field.name())?
            }
            known => known,
        };
        column_array(column, &self.field, categories.as_ref(), uri)
    }
}

fn no_memory(n_bytes: usize) -> String {
    format!("there is no memory for {n_bytes} more bytes: select fewer rows or columns")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Array;
    use arrow_array::types::Int8Type;
    use arrow_array::{BooleanArray, DictionaryArray, LargeStringArray, UInt16Array};
    use arrow_schema::Field;
    use arrow_select::{concat::concat, filter::filter};
    use proptest::prelude::*;

    use super::*;

    /// A column of one of the kinds that are stored in different ways, each row null or not.
    fn column(kind: u8, rows: &[Option<String>]) -> ArrayRef {
        let lens = rows.iter().map(|row| row.as_ref().map(|text| text.len() as u16));
        match kind {
            0 => Arc::new(rows.iter().map(Option::as_deref).collect::<LargeStringArray>()),
            1 => Arc::new(lens.collect::<UInt16Array>()),
            2 => Arc::new(lens.map(|len| len.map(|len| len > 2)).collect::<BooleanArray>()),
            _ => {
                let keys = lens.map(|len| len.map(|len| len as i8)).collect::<Vec<_>>();
                let values = Arc::new(LargeStringArray::from_iter_values(["", "a", "b", "c", "d"]));
                Arc::new(DictionaryArray::<Int8Type>::new(keys.into(), values))
            }
        }
    }

    proptest! {
        #[test]
        fn kept_rows_are_those_of_one_batch(
            batches in prop::collection::vec(prop::collection::vec((prop::option::of("[a-z]{0,4}"), any::<bool>()), 0..40), 1..5),
            kind in 0..4_u8,
            is_filtered in any::<bool>(),
            n_skipped in 0..3_usize,
        ) {
            let whole: Vec<ArrayRef> =
                batches.iter().map(|rows| column(kind, &rows.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>())).collect();
            let field = Arc::new(Field::new("a", whole[0].data_type().clone(), true));
            let mut collected = CollectedColumn::new(&field);
            let mut kept = Vec::new();
            for (rows, array) in batches.iter().zip(&whole) {
                // Also arrays that do not begin at the start of their memory.
                let n_skipped = n_skipped.min(array.len());
                let array = array.slice(n_skipped, array.len() - n_skipped);
                let keep: Vec<bool> = rows.iter().skip(n_skipped).map(|(_, keep)| *keep || !is_filtered).collect();
                collected.append(&array, is_filtered.then(|| BooleanBuffer::from(keep.clone())).as_ref()).unwrap();
                kept.push(filter(&array, &keep.into()).unwrap());
            }
            let kept: Vec<&dyn Array> = kept.iter().map(AsRef::as_ref).collect();
            let expected = concat(&kept).unwrap();
            let found = collected.finish("", &|_| Ok(None)).unwrap();
            prop_assert_eq!(found.to_data(), expected.to_data());
        }
    }
}
