//! What the ranks of a run reported: facts, cells and records, and whether they delivered each cell
//! once.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use bench_report::{EpochRecord, HostInfo};
use grid_point::{CellDigest, Data, Opened, PointAnswer};

/// The answers of all ranks.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The opened data, by the first rank that opened it.
    pub(crate) opened: Option<Opened>,
    /// The machine of each rank.
    pub(crate) hosts: BTreeMap<u64, HostInfo>,
    /// The cells that rank 0 expects of all, by epoch.
    expected: BTreeMap<u64, CellDigest>,
    /// The cells that all ranks delivered together, by epoch.
    delivered: BTreeMap<u64, CellDigest>,
    /// The records, each with its rank.
    records: Vec<(u64, EpochRecord)>,
}

impl Outcome {
    /// Keeps an answer of a rank.
    pub(crate) fn add(&mut self, rank: u64, answer: PointAnswer) {
        match answer {
            PointAnswer::Opened(opened) => self.opened = self.opened.take().or(Some(opened)),
            PointAnswer::Expected { epoch, cells } => drop(self.expected.insert(epoch, cells)),
            PointAnswer::Delivered { epoch, cells } => {
                *self.delivered.entry(epoch).or_default() += cells;
            }
            PointAnswer::Epoch(record) => self.records.push((rank, *record)),
        }
    }

    /// Returns the records of all ranks with their data and machines, epoch by epoch. Fails unless
    /// each rank has one for each epoch, and together they delivered each cell once.
    pub(crate) fn checked(
        self,
        (world_size, n_epochs): (u64, u64),
        data: &Data,
    ) -> anyhow::Result<Vec<EpochRecord>> {
        let opened = self.opened.context("no rank opened the data")?;
        let mut records = self.records;
        let number = |of: &(u64, EpochRecord)| (of.1.measured.epoch, of.0);
        records.sort_by_key(number);
        let all = (0..n_epochs).flat_map(|epoch| (0..world_size).map(move |rank| (epoch, rank)));
        ensure!(
            records.iter().map(number).eq(all.map(|(epoch, rank)| (Some(epoch), rank))),
            "the {world_size} ranks reported {} epochs of {}",
            records.len(),
            world_size * n_epochs
        );
        for epoch in 0..n_epochs {
            let (found, expected) = (self.delivered.get(&epoch), self.expected.get(&epoch));
            let (found, expected) = found.zip(expected).context("the ranks counted no cells")?;
            ensure!(
                found == expected,
                "the {world_size} ranks did not deliver each cell once in epoch {epoch}: together \
                 {found}, expected {expected}; no figure is kept"
            );
        }
        let complete = |(rank, mut record): (u64, EpochRecord)| {
            record.data = data.info(&opened);
            if let Some(host) = self.hosts.get(&rank) {
                record.host = host.clone();
            }
            record
        };
        Ok(records.into_iter().map(complete).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(cells: &[u64]) -> CellDigest {
        let mut digest = CellDigest::default();
        for cell in cells {
            digest.add(*cell);
        }
        digest
    }

    /// Two ranks of which each delivers these cells in the only epoch.
    fn outcome(ranks: [&[u64]; 2]) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.add(0, PointAnswer::Opened(Opened { n_cells: 4, ..Opened::default() }));
        outcome.add(0, PointAnswer::Expected { epoch: 0, cells: digest(&[0, 1, 2, 3]) });
        // The second rank is the faster one.
        for (rank, cells) in [(1, ranks[1]), (0, ranks[0])] {
            outcome.add(rank, PointAnswer::Delivered { epoch: 0, cells: digest(cells) });
            let mut record = EpochRecord::default();
            (record.measured.rank, record.measured.epoch) = (Some(rank), Some(0));
            outcome.add(rank, PointAnswer::Epoch(Box::new(record)));
        }
        outcome
    }

    #[test]
    fn records_come_by_rank_with_data_and_machine() {
        let mut outcome = outcome([&[3, 0], &[2, 1]]);
        let host = HostInfo { hostname: "there".to_owned(), ..HostInfo::default() };
        outcome.hosts.insert(1, host);
        let records = outcome.checked((2, 1), &Data::default()).unwrap();
        let ranks: Vec<_> = records.iter().map(|record| record.measured.rank).collect();
        assert_eq!(ranks, [Some(0), Some(1)]);
        assert_eq!((records[1].host.hostname.as_str(), records[1].data.total_rows), ("there", 4));
    }

    #[test]
    fn cells_that_are_missing_or_come_twice_are_no_result() {
        for ranks in [[&[0_u64, 1][..], &[2]], [&[0, 1], &[1, 2, 3]], [&[0, 1], &[2, 2]]] {
            let error = outcome(ranks).checked((2, 1), &Data::default()).unwrap_err().to_string();
            assert!(error.contains("did not deliver each cell once in epoch 0"), "{error}");
        }
        let missing = outcome([&[0, 1], &[2, 3]]).checked((2, 2), &Data::default());
        let error = missing.unwrap_err().to_string();
        assert!(error.contains("reported 2 epochs of 4"), "{error}");
    }
}
