//! Columns that are collected batch by batch, of which only the wanted rows are kept.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use tiledb_schema::Attribute;

use crate::soma_object::StoredColumn;

/// The values of the rows that were kept of a column, in the form of [`StoredColumn`]; which rows
/// have a value takes a bit for each.
#[derive(Debug)]
pub(crate) struct CollectedColumn {
    bytes: Vec<u8>,
    offsets: Option<Vec<i64>>,
    validity: Option<BooleanBufferBuilder>,
}

/// A column of TileDB whose validity is in Arrow's form.
#[derive(Debug)]
pub(crate) struct ColumnParts {
    pub(crate) bytes: Vec<u8>,
    /// Start of each cell of a var-sized column, followed by the total number of bytes.
    pub(crate) offsets: Option<Vec<i64>>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl From<StoredColumn> for ColumnParts {
    fn from(column: StoredColumn) -> Self {
        let nulls = column.validity.map(|valid| NullBuffer::new(BooleanBuffer::from(valid)));
        Self { bytes: column.bytes, offsets: column.offsets, nulls }
    }
}

impl CollectedColumn {
    /// No rows of a column; `None` is the joinid.
    pub(crate) fn new(attribute: Option<&Attribute>) -> Self {
        Self {
            bytes: Vec::new(),
            offsets: attribute.filter(|attribute| attribute.var_sized).map(|_| vec![0]),
            validity: attribute
                .filter(|attribute| attribute.nullable)
                .map(|_| BooleanBufferBuilder::new(0)),
        }
    }

    /// Appends those of `n_rows` rows that `keep` has, or all.
    ///
    /// # Errors
    /// There is too little memory: the number of bytes, in words. Parts of the column do not have
    /// `n_rows` rows.
    pub(crate) fn append(
        &mut self,
        column: &StoredColumn,
        n_rows: usize,
        keep: Option<&BooleanBuffer>,
    ) -> Result<(), String> {
        let n_offsets = column.offsets.as_ref().map_or(n_rows + 1, Vec::len);
        let n_valid = column.validity.as_ref().map_or(n_rows, Vec::len);
        let is_whole = column.offsets.is_some() || column.bytes.len().is_multiple_of(n_rows.max(1));
        if (n_offsets, n_valid) != (n_rows + 1, n_rows) || !is_whole {
            return Err(format!("it does not have the {n_rows} rows of its data frame"));
        }
        match keep {
            Some(keep) if keep.count_set_bits() < n_rows => {
                keep.set_slices().try_for_each(|(start, end)| self.add(column, n_rows, start..end))
            }
            _ => self.add(column, n_rows, 0..n_rows),
        }
    }

    /// Appends a range of the rows.
    fn add(
        &mut self,
        column: &StoredColumn,
        n_rows: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<(), String> {
        let bytes = if let (Some(ends), Some(offsets)) = (&mut self.offsets, &column.offsets) {
            let place = |row: usize| offsets.get(row).and_then(|at| usize::try_from(*at).ok());
            let range = place(rows.start).zip(place(rows.end));
            let (start, end) = range.ok_or("its offsets are below 0")?;
            let shift = self.bytes.len() as i64 - start as i64;
            ends.try_reserve(rows.len()).map_err(|_| no_memory(8 * rows.len()))?;
            for end in &offsets[rows.start + 1..=rows.end] {
                ends.push(end.checked_add(shift).ok_or("its offsets do not ascend")?);
            }
            column.bytes.get(start..end).ok_or("its offsets do not ascend")?
        } else {
            let width = column.bytes.len() / n_rows.max(1);
            &column.bytes[rows.start * width..rows.end * width]
        };
        self.bytes.try_reserve(bytes.len()).map_err(|_| no_memory(bytes.len()))?;
        self.bytes.extend_from_slice(bytes);
        if let (Some(builder), Some(valid)) = (&mut self.validity, &column.validity) {
            builder.append_slice(&valid[rows]);
        }
        Ok(())
    }

    /// The column of the rows that were kept.
    pub(crate) fn finish(mut self) -> ColumnParts {
        self.bytes.shrink_to_fit();
        if let Some(offsets) = &mut self.offsets {
            offsets.shrink_to_fit();
        }
        let nulls = self.validity.map(|mut validity| NullBuffer::new(validity.finish()));
        ColumnParts { bytes: self.bytes, offsets: self.offsets, nulls }
    }
}

fn no_memory(n_bytes: usize) -> String {
    format!("there is no memory for {n_bytes} more bytes: select fewer rows or columns")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tiledb_schema::Datatype;

    use super::*;

    /// A column of texts or of 16-bit numbers, each row null or not.
    fn stored(rows: &[Option<String>], var_sized: bool) -> StoredColumn {
        let mut column =
            StoredColumn { offsets: var_sized.then(|| vec![0]), ..StoredColumn::default() };
        for row in rows {
            let text = row.clone().unwrap_or_default();
            if let Some(offsets) = &mut column.offsets {
                column.bytes.extend(text.as_bytes());
                offsets.push(column.bytes.len() as i64);
            } else {
                column.bytes.extend((text.len() as u16).to_le_bytes());
            }
        }
        column.validity = Some(rows.iter().map(Option::is_some).collect());
        column
    }

    proptest! {
        #[test]
        fn kept_rows_are_those_of_one_batch(
            batches in prop::collection::vec(prop::collection::vec((prop::option::of("[a-z]{0,4}"), any::<bool>()), 0..40), 0..5),
            var_sized in any::<bool>(),
            is_filtered in any::<bool>(),
        ) {
            let attribute = Attribute { nullable: true, var_sized, ..Attribute::new("a", Datatype::StringUtf8) };
            let mut collected = CollectedColumn::new(Some(&attribute));
            let mut expected = Vec::new();
            for batch in &batches {
                let (rows, keep): (Vec<_>, Vec<bool>) = batch.iter().cloned().unzip();
                let mask = is_filtered.then(|| BooleanBuffer::from(keep.clone()));
                collected.append(&stored(&rows, var_sized), rows.len(), mask.as_ref()).unwrap();
                expected.extend(rows.into_iter().zip(keep).filter(|(_, keep)| !is_filtered || *keep).map(|(row, _)| row));
            }
            let (found, expected) = (collected.finish(), ColumnParts::from(stored(&expected, var_sized)));
            prop_assert_eq!((found.bytes, found.offsets), (expected.bytes, expected.offsets));
            prop_assert_eq!(found.nulls, expected.nulls);
        }
    }

    #[test]
    fn parts_of_other_lengths_are_an_error() {
        let mut collected = CollectedColumn::new(None);
        let column = StoredColumn { bytes: vec![0; 7], ..StoredColumn::default() };
        assert!(collected.append(&column, 2, None).is_err());
        let column = StoredColumn { validity: Some(vec![true]), ..column };
        assert!(collected.append(&column, 7, None).unwrap_err().contains("7 rows"));
    }
}
