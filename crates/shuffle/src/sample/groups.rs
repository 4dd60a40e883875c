//! Draws rows of groups in proportion to the groups' shares.

use super::{Error, Replacement, Sampling, check_size};
use crate::stop;

impl Sampling {
    /// Draws `n_samples` rows so that each group has its share of them, whatever its number of
    /// rows: with replacement, a draw takes a group in proportion to `shares`, and then each of its
    /// rows with equal probability. Groups are, for instance, the data sets that the rows are from.
    ///
    /// `groups` has the group of each row, as a position in `shares`; the shares may have any sum.
    /// A row's weight is (share of its group) / (rows of its group), like in htc's setting
    /// `input/dataset_sampling` ([`HTCDataset.get_sample_weights`]). Without replacement a group
    /// runs out of rows, and its part of the sample falls behind its share.
    ///
    /// [`HTCDataset.get_sample_weights`]: https://github.com/IMSY-DKFZ/htc/blob/main/htc/models/common/HTCDataset.py
    ///
    /// ```
    /// use shuffle::sample::{Replacement, Sampling};
    ///
    /// // One row of the first data set and three of the second, each data set equally often.
    /// let sampling = Sampling::by_group(&[0, 1, 1, 1], &[1.0, 1.0], 1000, Replacement::With)?;
    /// let n_first = sampling.rows(0, 0)?.iter().filter(|row| **row == 0).count();
    /// assert!((450..550).contains(&n_first));
    /// # Ok::<(), shuffle::sample::Error>(())
    /// ```
    ///
    /// # Errors
    /// A group is not below the number of shares; a share is negative, infinite or not a number, or
    /// belongs to a group without rows; the same as [`Sampling::weighted`].
    pub fn by_group(
        groups: &[u32],
        shares: &[f64],
        n_samples: u64,
        replacement: Replacement,
    ) -> Result<Self, Error> {
        check_size(groups.len(), n_samples)?;
        let weights = weights(groups, shares)?;
        Self::weighted(&weights, n_samples, replacement)
    }
}

fn weights(groups: &[u32], shares: &[f64]) -> Result<Vec<f64>, Error> {
    let mut n_rows = vec![0_u32; shares.len()];
    for piece in stop::pieces(groups) {
        for code in piece? {
            let n_rows = n_rows.get_mut(*code as usize);
            *n_rows.ok_or(Error::LabelCode { code: *code, n_classes: shares.len() })? += 1;
        }
    }
    for (group, share) in shares.iter().copied().enumerate() {
        if !share.is_finite() || share < 0.0 {
            return Err(Error::GroupShare { group, share });
        }
        if share > 0.0 && n_rows[group] == 0 {
            return Err(Error::EmptyGroup { group, share });
        }
    }
    // Shares are relative to the largest, so that no quotient is rounded to 0.
    let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let of_row =
        |group: &u32| shares[*group as usize] / largest / f64::from(n_rows[*group as usize]);
    Ok(stop::map(groups, of_row)?)
}
