//! Rows that the folder of a resumed sweep (`--resume`) already has.

use std::collections::BTreeSet;
use std::path::Path;

use bench_report::{EPOCHS_FILE, EpochRecord, Status};

/// Rows of the sweep's points measured under the same conditions.
#[derive(Debug, Default)]
pub(crate) struct EarlierRows {
    rows: Vec<EpochRecord>,
    n_others: usize,
}

impl EarlierRows {
    /// Reads the rows of `folder` that match one of `conditions`, the digests of the sweep's
    /// points.
    ///
    /// A folder without results has no rows. Fails if the results cannot be read.
    pub(crate) fn read(folder: &Path, conditions: &[String]) -> anyhow::Result<Self> {
        if !folder.join(EPOCHS_FILE).exists() {
            return Ok(Self::default());
        }
        let wanted: BTreeSet<&String> = conditions.iter().collect();
        let (rows, others): (Vec<_>, Vec<_>) =
            bench_report::read(folder)?.into_iter().partition(|row| {
                row.measured.conditions.as_ref().is_some_and(|digest| wanted.contains(digest))
            });
        Ok(Self { rows, n_others: others.len() })
    }

    /// Returns the matching rows.
    pub(crate) fn rows(&self) -> &[EpochRecord] {
        &self.rows
    }

    /// Returns the number of rows of other points or other conditions.
    pub(crate) fn n_others(&self) -> usize {
        self.n_others
    }

    /// Whether a repeat of a point need not be measured again.
    ///
    /// Either all its epochs are there, or memory ran out, which would happen again.
    pub(crate) fn has(&self, conditions: &str, repeat: u64, n_epochs: u64) -> bool {
        let of_it = || {
            self.rows.iter().map(|row| &row.measured).filter(|measured| {
                measured.conditions.as_deref() == Some(conditions)
                    && measured.repeat.unwrap_or(0) == repeat
            })
        };
        let well = of_it().filter(|measured| measured.status == Status::Ok);
        let epochs: BTreeSet<u64> = well.filter_map(|measured| measured.epoch).collect();
        (0..n_epochs).all(|epoch| epochs.contains(&epoch))
            || of_it().any(|measured| measured.status == Status::Oom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_report::append;

    fn row(conditions: Option<&str>, repeat: u64, epoch: u64, status: Status) -> EpochRecord {
        let mut row = EpochRecord::default();
        row.measured.conditions = conditions.map(str::to_owned);
        (row.measured.repeat, row.measured.epoch) = (Some(repeat), Some(epoch));
        row.measured.status = status;
        row
    }

    #[test]
    fn whole_repeats_and_those_without_memory_are_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = ["a", "b", "c"].map(str::to_owned);
        assert!(!EarlierRows::read(folder.path(), &wanted).unwrap().has("a", 0, 1));
        let rows = vec![
            row(Some("a"), 0, 0, Status::Ok),
            row(Some("a"), 0, 1, Status::Ok),
            row(Some("a"), 1, 0, Status::Ok),
            row(Some("b"), 0, 0, Status::Oom),
            row(Some("c"), 0, 0, Status::Crashed),
            row(Some("d"), 0, 0, Status::Ok),
            row(None, 0, 0, Status::Ok),
        ];
        append(folder.path(), &rows).unwrap();
        let earlier = EarlierRows::read(folder.path(), &wanted).unwrap();
        assert_eq!((earlier.rows().len(), earlier.n_others()), (5, 2));
        assert!(earlier.has("a", 0, 2) && earlier.has("a", 1, 1) && earlier.has("b", 0, 3));
        for (conditions, repeat, n_epochs) in
            [("a", 1, 2), ("a", 2, 1), ("b", 1, 1), ("c", 0, 1), ("d", 0, 1)]
        {
            assert!(!earlier.has(conditions, repeat, n_epochs), "{conditions} {repeat} {n_epochs}");
        }
    }
}
