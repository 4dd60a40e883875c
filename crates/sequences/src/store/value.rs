//! Several sequences as one value.
//!
//! For each sequence two numbers of 32 bits, little-endian: its letters and the bytes of its name.
//! After all numbers, for each sequence its letters and then its name. The first number of all is
//! the number of sequences.

use std::ops::Range;

use crate::error::Error;
use crate::sequence_list::SequenceList;

/// Bytes of a number.
const NUMBER: usize = 4;

/// Packs sequences of a list, which has names.
pub(crate) fn pack(list: &SequenceList, range: Range<usize>) -> Result<Vec<u8>, Error> {
    let mut value = Vec::new();
    let number = |value: &mut Vec<u8>, number: usize| {
        let number = u32::try_from(number).map_err(|_| {
            Error::settings(format!("a sequence of {number} letters is too long for a value"))
        })?;
        value.extend_from_slice(&number.to_le_bytes());
        Ok::<(), Error>(())
    };
    let parts =
        |idx: usize| [list.get(idx).unwrap_or_default(), list.name(idx).unwrap_or_default()];
    number(&mut value, range.len())?;
    for idx in range.clone() {
        for part in parts(idx) {
            number(&mut value, part.len())?;
        }
    }
    for idx in range {
        for part in parts(idx) {
            value.extend_from_slice(part);
        }
    }
    Ok(value)
}

/// The sequences of a value. Asked for in ascending order, each number is read once.
#[derive(Debug)]
pub(crate) struct Value<'a> {
    bytes: &'a [u8],
    n_sequences: usize,
    /// The next sequence, and where it begins.
    next: usize,
    start: usize,
}

impl<'a> Value<'a> {
    /// `None` if there is not even the number of sequences.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let n_sequences = number(bytes, 0)?;
        Some(Self { bytes, n_sequences, next: 0, start: Self::start(n_sequences) })
    }

    /// Appends sequence `at` to a list. `None` if the value does not have it, or has other bytes
    /// than its numbers say.
    pub(crate) fn append_to(
        &mut self,
        list: &mut SequenceList,
        at: usize,
        with_names: bool,
    ) -> Option<()> {
        if self.n_sequences <= at {
            return None;
        }
        if at < self.next {
            (self.next, self.start) = (0, Self::start(self.n_sequences));
        }
        loop {
            let (letters, name) = self.parts()?;
            self.next += 1;
            self.start += letters.len() + name.len();
            if at < self.next {
                list.push(letters, with_names.then_some(name));
                return Some(());
            }
        }
    }

    /// Letters and name of the next sequence.
    fn parts(&self) -> Option<(&'a [u8], &'a [u8])> {
        let lengths = 1 + 2 * self.next;
        let (n_letters, n_name) = (number(self.bytes, lengths)?, number(self.bytes, lengths + 1)?);
        let rest = self.bytes.get(self.start..)?;
        let (letters, rest) = rest.split_at_checked(n_letters)?;
        Some((letters, rest.get(..n_name)?))
    }

    /// Where the first sequence begins.
    fn start(n_sequences: usize) -> usize {
        NUMBER * (1 + 2 * n_sequences)
    }
}

/// The number at a place among the numbers of a value.
fn number(value: &[u8], idx: usize) -> Option<usize> {
    let bytes = value.get(idx * NUMBER..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_is_found(
            sequences in proptest::collection::vec(("[ACGT]{0,9}", "[a-z]{0,5}"), 0..8),
        ) {
            let mut list = SequenceList::default();
            for (letters, name) in &sequences {
                list.push(letters.as_bytes(), Some(name.as_bytes()));
            }
            let value = pack(&list, 0..list.len()).unwrap();
            let mut found = SequenceList::default();
            let mut value = Value::new(&value).unwrap();
            for at in 0..sequences.len() {
                value.append_to(&mut found, at, true).unwrap();
            }
            prop_assert_eq!(&found, &list);
            prop_assert!(value.append_to(&mut found, sequences.len(), true).is_none());
            // Values may be read in any order.
            for at in (0..sequences.len()).rev().step_by(2) {
                let mut one = SequenceList::default();
                value.append_to(&mut one, at, false).unwrap();
                prop_assert_eq!(one.get(0), list.get(at));
                prop_assert_eq!(one.name(0), None);
            }
        }

        #[test]
        fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..40), at in 0_usize..4) {
            if let Some(mut value) = Value::new(&value) {
                value.append_to(&mut SequenceList::default(), at, true);
            }
        }

        #[test]
        fn a_cut_value_lacks_its_last_sequence(n in 1_usize..5, cut in 1_usize..6) {
            let mut list = SequenceList::default();
            (0..n).for_each(|_| list.push(b"ACGT", Some(b"a")));
            let value = pack(&list, 0..n).unwrap();
            let value = &value[..value.len() - cut.min(value.len())];
            let mut found = SequenceList::default();
            let last = Value::new(value).and_then(|mut of| of.append_to(&mut found, n - 1, true));
            prop_assert!(last.is_none());
        }
    }
}
