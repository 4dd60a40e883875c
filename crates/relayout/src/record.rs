//! The bytes of a row that waits in a file for its place. Counts of single cells take three bytes
//! each instead of eight.
//!
//! A record consists of the row's number and its number of values, as 32-bit words, the size of a
//! value in bytes (one byte), its columns and its values, all in this machine's byte order: no
//! other machine reads them. Columns are 16-bit words if all columns fit. Values are 8-bit or
//! 16-bit words if that keeps every value of the row bit for bit, otherwise 32-bit floats.

use soma_io::CsrBuffers;

const HEADER: usize = 9;
/// Floats from here to twice as much are whole numbers, one apart.
const WHOLE: f32 = (1 << 23) as f32;

/// Bytes per column for this number of columns.
pub(crate) fn column_bytes(n_columns: usize) -> usize {
    if n_columns <= 1 << 16 { 2 } else { 4 }
}

/// Appends the record of a row; each column takes `column_bytes` bytes.
pub(crate) fn push(
    out: &mut Vec<u8>,
    row: u32,
    columns: &[u32],
    values: &[f32],
    column_bytes: usize,
) {
    let value_bytes = value_bytes(values);
    out.extend_from_slice(&row.to_ne_bytes());
    out.extend_from_slice(&(columns.len() as u32).to_ne_bytes());
    out.push(value_bytes);
    match column_bytes {
        2 => push_words(out, columns, |column| (column as u16).to_ne_bytes()),
        _ => out.extend_from_slice(bytemuck::cast_slice(columns)),
    }
    match value_bytes {
        1 => push_words(out, values, |value| [whole_bits(value) as u8]),
        2 => push_words(out, values, |value| (whole_bits(value) as u16).to_ne_bytes()),
        _ => out.extend_from_slice(bytemuck::cast_slice(values)),
    }
}

/// The fewest bytes per value that keep every value bit for bit.
fn value_bytes(values: &[f32]) -> u8 {
    // Floats that are not negative order like their bits; negative ones and NaN come out larger
    // than any value that fits.
    let (most, are_whole) = values.iter().fold((0, true), |(most, are_whole), value| {
        let whole = value + WHOLE - WHOLE;
        (value.to_bits().max(most), are_whole & (whole.to_bits() == value.to_bits()))
    });
    if !are_whole {
        4
    } else if most <= f32::from(u8::MAX).to_bits() {
        1
    } else if most <= f32::from(u16::MAX).to_bits() {
        2
    } else {
        4
    }
}

/// A whole value below 2^16 as an integer: the last bits of its sum with 2^23, where floats are one
/// apart. Unlike a checked cast, the processor does this for several values at once.
fn whole_bits(value: f32) -> u32 {
    (value + WHOLE).to_bits()
}

fn push_words<T: Copy, const N: usize>(
    out: &mut Vec<u8>,
    from: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) {
    let start = out.len();
    out.resize(start + N * from.len(), 0);
    for (word, value) in out[start..].chunks_exact_mut(N).zip(from) {
        word.copy_from_slice(&to_bytes(*value));
    }
}

/// A record in the bytes of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) row: u32,
    columns: &'a [u8],
    values: &'a [u8],
    column_bytes: usize,
    value_bytes: usize,
}

impl<'a> Record<'a> {
    /// Reads the record at the beginning of `bytes`; `None` if it is not complete.
    pub(crate) fn at(bytes: &'a [u8], column_bytes: usize) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|idx| header[at + idx]));
        let n_values = word(4) as usize;
        let value_bytes = usize::from(header[8]);
        if ![1, 2, 4].contains(&value_bytes) {
            return None;
        }
        let (columns, rest) = rest.split_at_checked(column_bytes.checked_mul(n_values)?)?;
        let values = rest.get(..value_bytes.checked_mul(n_values)?)?;
        Some(Self { row: word(0), columns, values, column_bytes, value_bytes })
    }

    /// Size of the record in bytes.
    pub(crate) fn len(&self) -> usize {
        HEADER + self.columns.len() + self.values.len()
    }

    /// Appends it to `out` as a row.
    pub(crate) fn append(&self, out: &mut CsrBuffers) {
        match self.column_bytes {
            2 => read_words(self.columns, &mut out.columns, |word| u16::from_ne_bytes(word).into()),
            _ => read_words(self.columns, &mut out.columns, u32::from_ne_bytes),
        }
        match self.value_bytes {
            1 => read_words(self.values, &mut out.values, |[value]| f32::from(value)),
            2 => read_words(self.values, &mut out.values, |word| u16::from_ne_bytes(word).into()),
            _ => read_words(self.values, &mut out.values, f32::from_ne_bytes),
        }
        out.row_offsets.push(out.values.len());
    }
}

fn read_words<T, const N: usize>(from: &[u8], out: &mut Vec<T>, read: impl Fn([u8; N]) -> T) {
    let (words, _) = from.as_chunks::<N>();
    out.extend(words.iter().map(|word| read(*word)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Vec<f32>> {
        let value = prop_oneof![
            (0_u8..=255).prop_map(f32::from),
            (0_u16..=u16::MAX).prop_map(f32::from),
            any::<u32>().prop_map(f32::from_bits),
            Just(-0.0),
            Just(256.0),
            Just(65_536.0),
        ];
        let small = prop::collection::vec((0_u8..=255).prop_map(f32::from), 0..50);
        let middle = prop::collection::vec((0_u16..=u16::MAX).prop_map(f32::from), 0..50);
        prop_oneof![small, middle, prop::collection::vec(value, 0..50)]
    }

    proptest! {
        #[test]
        fn rows_are_the_same_to_the_bit(rows in prop::collection::vec(values(), 1..6), first in 0_u32..65_000, wide in any::<bool>()) {
            let column_bytes = column_bytes(if wide { 1 << 17 } else { 1 << 16 });
            let columns = |values: &[f32]| -> Vec<u32> {
                (first..).step_by(7).take(values.len()).collect()
            };
            let mut bytes = Vec::new();
            for (row, values) in (0..).zip(&rows) {
                push(&mut bytes, row, &columns(values), values, column_bytes);
            }
            let (mut at, mut found) = (0, CsrBuffers::default());
            for (row, values) in (0_u32..).zip(&rows) {
                let record = Record::at(&bytes[at..], column_bytes).unwrap();
                prop_assert_eq!(record.row, row);
                at += record.len();
                record.append(&mut found);
                let (found_columns, found_values) = found.row(row as usize);
                prop_assert_eq!(found_columns, columns(values));
                let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
                prop_assert_eq!(bits(found_values), bits(values));
            }
            prop_assert_eq!(at, bytes.len());
            for end in 0..at {
                prop_assert!(end == 0 || walk(&bytes[..end], column_bytes) < rows.len());
            }
        }
    }

    /// Number of complete records from the beginning.
    fn walk(bytes: &[u8], column_bytes: usize) -> usize {
        let (mut at, mut n_records) = (0, 0);
        while let Some(record) = Record::at(&bytes[at..], column_bytes) {
            at += record.len();
            n_records += 1;
        }
        n_records
    }

    #[test]
    fn counts_take_a_byte_and_what_is_not_one_takes_four() {
        assert_eq!(value_bytes(&[0.0, 1.0, 255.0]), 1);
        assert_eq!(value_bytes(&[1.0, 256.0]), 2);
        for value in [65_536.0, 0.5, -0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(value_bytes(&[1.0, value]), 4, "{value}");
        }
    }
}
