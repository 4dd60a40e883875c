//! The array of a variable, in one store or several.

use std::ops::Range;

use crate::open_array::OpenArray;
use crate::times::Times;

/// An array in one store or several: the steps of the first, then those of the second, and so on.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) first: OpenArray,
    /// The arrays of later stores, each with its first step.
    pub(crate) later: Vec<(u64, OpenArray)>,
}

impl Member {
    /// Its arrays, each with its first step.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (u64, &OpenArray)> {
        let later = self.later.iter().map(|(start, array)| (*start, array));
        std::iter::once((0, &self.first)).chain(later)
    }

    /// The array that has a step, and the step in it.
    pub(crate) fn array_of(&self, step: u64) -> (&OpenArray, u64) {
        match self.later.partition_point(|(start, _)| *start <= step).checked_sub(1) {
            Some(at) => {
                let (start, array) = &self.later[at];
                (array, step - start)
            }
            None => (&self.first, step),
        }
    }

    /// Bytes of the selected part of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.first.row_bytes()
    }

    /// The steps that are valid by what the stores say.
    pub(crate) fn valid_steps(
        &self,
        n_steps: u64,
        times: &Times,
    ) -> Result<Vec<Range<u64>>, String> {
        let ends = self.later.iter().map(|(start, _)| *start).chain([n_steps]);
        let valid = self.arrays().zip(ends).map(|((start, array), end)| {
            let Some((first, last)) = &array.valid else { return Ok(start..end) };
            let first = first.as_deref().map_or(Ok(0), |date| times.first_from(date))?;
            let last = last.as_deref().map_or(Ok(end), |date| times.first_after(date))?;
            Ok(first.max(start)..last.min(end))
        });
        valid.collect()
    }

    /// Its arrays, to be changed.
    pub(crate) fn arrays_mut(&mut self) -> impl Iterator<Item = &mut OpenArray> {
        std::iter::once(&mut self.first).chain(self.later.iter_mut().map(|(_, array)| array))
    }

    /// Whether rows of `other` are rows of this one, in all stores.
    pub(crate) fn has_rows_of(&self, other: &Self) -> bool {
        self.later.len() == other.later.len()
            && self
                .arrays()
                .zip(other.arrays())
                .all(|((first, one), (start, other))| first == start && one.has_rows_of(other))
    }

    /// What distinguishes it from other arrays, and from other parts of them.
    pub(crate) fn fingerprint(&self) -> String {
        let later = self.later.iter();
        let later = later.map(|(start, array)| format!("from {start} {}", array.fingerprint()));
        let first = std::iter::once(self.first.fingerprint());
        first.chain(later).collect::<Vec<_>>().join(", ")
    }
}
