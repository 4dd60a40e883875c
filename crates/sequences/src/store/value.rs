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

/// Appends sequence `at` of a value to a list. `None` if the value does not have it, or has other
/// bytes than its numbers say.
pub(crate) fn append_to(
    list: &mut SequenceList,
    value: &[u8],
    at: usize,
    with_names: bool,
) -> Option<()> {
    let number = |idx: usize| {
        let bytes = value.get(idx * NUMBER..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    let n_sequences = number(0)?;
    if n_sequences <= at {
        return None;
    }
    let start = NUMBER * (1 + 2 * n_sequences);
    let before = (1..=2 * at).try_fold(start, |start, idx| start.checked_add(number(idx)?))?;
    let n_letters = number(1 + 2 * at)?;
    let n_name = number(2 + 2 * at)?;
    let letters = value.get(before..before.checked_add(n_letters)?)?;
    let name = value.get(before + n_letters..(before + n_letters).checked_add(n_name)?)?;
    list.push(letters, with_names.then_some(name));
    Some(())
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
            for at in 0..sequences.len() {
                append_to(&mut found, &value, at, true).unwrap();
            }
            prop_assert_eq!(&found, &list);
            prop_assert!(append_to(&mut found, &value, sequences.len(), true).is_none());
        }

        #[test]
        fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..40), at in 0_usize..4) {
            append_to(&mut SequenceList::default(), &value, at, true);
        }

        #[test]
        fn a_cut_value_lacks_its_last_sequence(n in 1_usize..5, cut in 1_usize..6) {
            let mut list = SequenceList::default();
            (0..n).for_each(|_| list.push(b"ACGT", Some(b"a")));
            let value = pack(&list, 0..n).unwrap();
            let value = &value[..value.len() - cut.min(value.len())];
            prop_assert!(append_to(&mut SequenceList::default(), value, n - 1, true).is_none());
        }
    }
}
