//! How sequences of different lengths lie in a batch.

use crate::alphabet::Alphabet;

/// How the words and letters of sequences of different lengths lie in a batch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One sequence after another, with the end of each.
    #[default]
    Ragged,
    /// In rows as long as the longest sequence of the batch.
    Longest,
    /// In rows of this length: longer sequences are cut.
    Padded(usize),
}

/// Sequences in rows of equal length, filled up at their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaddedRows<T> {
    /// The rows one after another: `[sequences, width]`.
    pub values: Vec<T>,
    /// True for the words or letters of the sequence itself: `[sequences, width]`.
    pub mask: Vec<bool>,
    /// Number of words or letters in each row without those that fill it up.
    pub lengths: Vec<usize>,
    /// Length of a row.
    pub width: usize,
}

impl<T: Copy> PaddedRows<T> {
    /// Puts sequences into rows; `None` if the layout has none.
    pub(crate) fn new<'a>(
        sequences: impl Iterator<Item = &'a [T]> + Clone,
        layout: Layout,
        fill: T,
    ) -> Option<Self>
    where
        T: 'a,
    {
        let width = match layout {
            Layout::Ragged => return None,
            Layout::Longest => sequences.clone().map(<[T]>::len).max().unwrap_or(0),
            Layout::Padded(width) => width,
        };
        let lengths: Vec<usize> =
            sequences.clone().map(|sequence| sequence.len().min(width)).collect();
        let mut values = vec![fill; lengths.len() * width];
        let mut mask = vec![false; lengths.len() * width];
        for (row, (sequence, length)) in sequences.zip(&lengths).enumerate() {
            let begin = row * width;
            values[begin..begin + length].copy_from_slice(&sequence[..*length]);
            mask[begin..begin + length].fill(true);
        }
        Some(Self { values, mask, lengths, width })
    }
}

/// A row of zeros for each byte, with a one for its letter: `[bytes, letters of the alphabet]`. A
/// byte that is no letter of the alphabet has zeros alone.
pub(crate) fn one_hot(bytes: &[u8], alphabet: &Alphabet) -> Vec<f32> {
    let n_letters = alphabet.letters().len();
    let mut values = vec![0.0; bytes.len() * n_letters];
    for (row, byte) in values.chunks_exact_mut(n_letters).zip(bytes) {
        if let Some(code) = alphabet.code(*byte) {
            row[usize::from(code)] = 1.0;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_filled_up_and_cut() {
        let sequences: [&[u32]; 3] = [&[1, 2, 3], &[], &[4]];
        let rows = |layout| PaddedRows::new(sequences.iter().copied(), layout, 9);
        assert_eq!(rows(Layout::Ragged), None);
        let longest = rows(Layout::Longest).unwrap();
        assert_eq!(longest.values, [1, 2, 3, 9, 9, 9, 4, 9, 9]);
        assert_eq!((longest.lengths, longest.width), (vec![3, 0, 1], 3));
        let cut = rows(Layout::Padded(2)).unwrap();
        assert_eq!(cut.values, [1, 2, 9, 9, 4, 9]);
        assert_eq!(cut.mask, [true, true, false, false, true, false]);
        assert!(rows(Layout::Padded(0)).unwrap().values.is_empty());
    }

    #[test]
    fn a_letter_has_its_column() {
        let values = one_hot(b"GaN\0", &Alphabet::DNA.folding_case());
        let expected = [[0., 0., 1., 0.], [1., 0., 0., 0.], [0.; 4], [0.; 4]];
        assert_eq!(values, expected.concat());
    }
}
