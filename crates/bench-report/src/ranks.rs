//! Ranks that loaded together: their rate, their accelerator utilisation, and the largest number of
//! them that still has enough of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{EpochRecord, GridPoint, PointSummary, Spread};

/// Accelerator utilisation that MLPerf Storage asks for most of its workloads.
pub const LEAST_UTILIZATION: f64 = 0.9;

/// The ranks of a point together, over its epochs. An epoch counts if the rows of all ranks are
/// there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RanksSummary {
    /// Samples of all ranks per second: over the time of the slowest rank, since all begin at once.
    pub samples_per_sec: Option<Spread>,
    /// The least accelerator utilisation of a rank; `None` without a consumer.
    pub least_utilization: Option<Spread>,
    /// The mean accelerator utilisation over the ranks.
    pub mean_utilization: Option<Spread>,
    /// Seconds of the slowest rank.
    pub slowest_secs: Option<Spread>,
    /// Seconds of the fastest rank.
    pub fastest_secs: Option<Spread>,
    /// The rank that was the slowest in the slowest epoch.
    pub slowest_rank: u64,
    /// The ranks one by one.
    pub ranks: Vec<RankSummary>,
}

/// One of several ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankSummary {
    /// The rank, from 0.
    pub rank: u64,
    /// Its machine.
    pub hostname: String,
    /// Samples delivered, without padding.
    pub n_rows: Option<Spread>,
    /// Seconds of an epoch.
    pub elapsed: Option<Spread>,
    /// Samples per second.
    pub samples_per_sec: Option<Spread>,
    /// Accelerator utilisation.
    pub accelerator_utilization: Option<Spread>,
    /// Seconds until the first batch arrived.
    pub time_to_first_batch_secs: Option<Spread>,
    /// 99th percentile of the waits for a batch, in seconds.
    pub wait_p99_secs: Option<Spread>,
    /// Share of the time in which the consumer waited.
    pub stall_share: Option<Spread>,
    /// Peak resident memory in bytes.
    pub max_mem: Option<Spread>,
}

/// The rows of all ranks in one epoch.
struct Together<'a>(Vec<&'a EpochRecord>);

impl Together<'_> {
    fn elapsed(&self) -> impl Iterator<Item = (u64, f64)> {
        let rank_and_secs = |row: &&EpochRecord| Some((row.measured.rank?, row.measured.elapsed?));
        self.0.iter().filter_map(rank_and_secs)
    }

    /// The slowest rank and its seconds.
    fn slowest(&self) -> Option<(u64, f64)> {
        self.elapsed().max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn samples_per_sec(&self) -> Option<f64> {
        let (_, secs) = self.slowest().filter(|(_, secs)| 0.0 < *secs)?;
        let rows: Option<Vec<u64>> = self.0.iter().map(|row| row.measured.n_rows).collect();
        Some(rows?.into_iter().sum::<u64>() as f64 / secs)
    }

    /// The utilisation of each rank; `None` if that of one is missing.
    fn utilizations(&self) -> Option<Vec<f64>> {
        self.0.iter().map(|row| row.measured.accelerator_utilization).collect()
    }
}

/// An epoch of one run: the run, the repetition, the epoch's number.
type EpochKey<'a> = (&'a str, Option<u64>, Option<u64>);

/// The epochs in which all ranks are there, each rank once.
fn together<'a>(epochs: &[&'a EpochRecord]) -> Vec<Together<'a>> {
    let mut all: BTreeMap<EpochKey<'_>, Vec<&'a EpochRecord>> = BTreeMap::new();
    for epoch in epochs {
        let measured = &epoch.measured;
        let key = (epoch.run.run_id.as_str(), measured.repeat, measured.epoch);
        all.entry(key).or_default().push(epoch);
    }
    let whole = all.into_values().filter_map(|mut rows| {
        rows.sort_by_key(|row| row.measured.rank);
        let ranks = rows.iter().map(|row| row.measured.rank);
        let n = rows.first()?.point.world_size?;
        ranks.eq((0..n).map(Some)).then_some(Together(rows))
    });
    whole.collect()
}

impl RanksSummary {
    /// Summarizes the successful epochs of a point; `None` if it has no epoch of ranks in which all
    /// of them are there.
    pub fn from_epochs(epochs: &[&EpochRecord]) -> Option<Self> {
        let together = together(epochs);
        let slowest = together.iter().filter_map(Together::slowest);
        let (slowest_rank, _) = slowest.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let spread = |figure: &dyn Fn(&Together<'_>) -> Option<f64>| {
            Spread::from_values(together.iter().filter_map(figure))
        };
        let n = together.first().map_or(0, |rows| rows.0.len());
        Some(Self {
            samples_per_sec: spread(&|rows| rows.samples_per_sec()),
            least_utilization: spread(&|rows| rows.utilizations()?.into_iter().reduce(f64::min)),
            mean_utilization: spread(&|rows| {
                let all = rows.utilizations().filter(|all| !all.is_empty())?;
                Some(all.iter().sum::<f64>() / all.len() as f64)
            }),
            slowest_secs: spread(&|rows| rows.slowest().map(|(_, secs)| secs)),
            fastest_secs: spread(&|rows| rows.elapsed().map(|(_, secs)| secs).reduce(f64::min)),
            slowest_rank,
            ranks: (0..n).map(|rank| RankSummary::from_rows(&together, rank)).collect(),
        })
    }

    /// All figures by name.
    pub(crate) fn figures(&self) -> [(&'static str, Option<Spread>); 5] {
        [
            ("samples_per_sec", self.samples_per_sec),
            ("least_utilization", self.least_utilization),
            ("mean_utilization", self.mean_utilization),
            ("slowest_secs", self.slowest_secs),
            ("fastest_secs", self.fastest_secs),
        ]
    }
}

impl RankSummary {
    fn from_rows(together: &[Together<'_>], rank: usize) -> Self {
        let spread = |figure: fn(&EpochRecord) -> Option<f64>| {
            Spread::from_values(together.iter().filter_map(|rows| figure(rows.0[rank])))
        };
        let first = together.first().map(|rows| rows.0[rank].host.hostname.clone());
        Self {
            rank: rank as u64,
            hostname: first.unwrap_or_default(),
            n_rows: spread(|row| row.measured.n_rows.map(|n| n as f64)),
            elapsed: spread(|row| row.measured.elapsed),
            samples_per_sec: spread(|row| row.measured.samples_per_sec),
            accelerator_utilization: spread(|row| row.measured.accelerator_utilization),
            time_to_first_batch_secs: spread(|row| row.measured.time_to_first_batch_secs),
            wait_p99_secs: spread(|row| row.measured.wait_p99_secs),
            stall_share: spread(|row| row.measured.stall_share),
            max_mem: spread(|row| row.measured.max_mem.map(|bytes| bytes as f64)),
        }
    }
}

/// Points that differ in the number of ranks alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RanksSeries<'a> {
    /// By ascending number of ranks.
    pub(crate) points: Vec<(u64, &'a PointSummary, &'a RanksSummary)>,
}

/// What the points of a series share: the settings without the number of ranks, the host, the data,
/// and the folder.
type SeriesKey<'a> = (String, &'a str, &'a str, Option<&'a str>);

/// Groups the points that have ranks, in order of first appearance.
pub(crate) fn series(points: &[PointSummary]) -> Vec<RanksSeries<'_>> {
    let mut all: Vec<(SeriesKey<'_>, RanksSeries<'_>)> = Vec::new();
    for summary in points {
        let Some((ranks, n)) = summary.ranks.as_ref().zip(summary.point.world_size) else {
            continue;
        };
        let alone = GridPoint { world_size: None, ..summary.point.clone() };
        let (host, uri) = (summary.hostname.as_str(), summary.data.uri.as_str());
        let key = (alone.id(), host, uri, summary.folder.as_deref());
        let point = (n, summary, ranks);
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, series)) => series.points.push(point),
            None => all.push((key, RanksSeries { points: vec![point] })),
        }
    }
    let sorted = all.into_iter().map(|(_, mut series)| {
        series.points.sort_by_key(|(n, ..)| *n);
        series
    });
    sorted.collect()
}

/// The largest number of ranks of which each has at least the utilisation `least`; `None` if no
/// measured number has it. `utilizations` has numbers of ranks, each with the utilisation of the
/// rank that has the least.
pub fn most_ranks(utilizations: &[(u64, f64)], least: f64) -> Option<u64> {
    let enough = utilizations.iter().filter(|(_, utilization)| least <= *utilization);
    enough.map(|(n, _)| *n).max()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{fixture, summarize};

    /// The row of a rank that took `secs` for its rows.
    fn row(
        world_size: u64,
        rank: u64,
        n_rows: u64,
        (secs, utilization): (f64, f64),
    ) -> EpochRecord {
        let mut row = fixture::epoch("native", (64, 16), 0.25);
        row.point.world_size = Some(world_size);
        row.point.consumer = Some("fixed:20".to_owned());
        let measured = &mut row.measured;
        (measured.rank, measured.n_rows) = (Some(rank), Some(n_rows));
        (measured.elapsed, measured.accelerator_utilization) = (Some(secs), Some(utilization));
        row
    }

    #[test]
    fn the_rate_of_all_is_that_of_the_slowest_ranks_time() {
        let rows =
            [row(3, 2, 10, (4.0, 0.5)), row(3, 0, 20, (5.0, 0.75)), row(3, 1, 70, (2.0, 1.0))];
        let points = summarize(&rows);
        let [point] = points.as_slice() else { panic!("{points:?}") };
        let ranks = point.ranks.as_ref().unwrap();
        assert_eq!(ranks.samples_per_sec.unwrap().median, 20.0);
        assert_eq!((ranks.slowest_rank, ranks.slowest_secs.unwrap().median), (0, 5.0));
        assert_eq!(ranks.fastest_secs.unwrap().median, 2.0);
        assert_eq!(ranks.least_utilization.unwrap().median, 0.5);
        assert_eq!(ranks.mean_utilization.unwrap().median, 0.75);
        let rows: Vec<f64> = ranks.ranks.iter().map(|rank| rank.n_rows.unwrap().median).collect();
        assert_eq!(rows, [20.0, 70.0, 10.0]);
    }

    #[test]
    fn ranks_of_several_machines_are_one_point() {
        let mut rows = vec![row(2, 0, 10, (1.0, 1.0)), row(2, 1, 10, (1.0, 1.0))];
        rows[1].host.hostname = "bench-2".to_owned();
        let points = summarize(&rows);
        let [point] = points.as_slice() else { panic!("{points:?}") };
        assert_eq!(point.hostname, "bench-1, bench-2");
        assert_eq!(point.ranks.as_ref().unwrap().ranks[1].hostname, "bench-2");
    }

    #[test]
    fn an_epoch_with_a_missing_rank_has_no_figures() {
        let rows = [row(3, 0, 10, (1.0, 1.0)), row(3, 1, 10, (1.0, 1.0))];
        assert_eq!(summarize(&rows)[0].ranks, None);
        let twice = [row(2, 1, 10, (1.0, 1.0)), row(2, 1, 10, (1.0, 1.0))];
        assert_eq!(summarize(&twice)[0].ranks, None);
        assert_eq!(summarize(&fixture::grid())[0].ranks, None);
    }

    #[test]
    fn numbers_of_ranks_are_one_series_and_other_settings_another() {
        let mut rows = vec![
            row(2, 0, 10, (1.0, 1.0)),
            row(2, 1, 10, (1.0, 1.0)),
            row(1, 0, 10, (1.0, 1.0)),
            row(1, 0, 10, (1.0, 1.0)),
        ];
        rows[3].point.batch_size = 7;
        let points = summarize(&rows);
        let numbers = |series: &RanksSeries<'_>| -> Vec<u64> {
            series.points.iter().map(|(n, ..)| *n).collect()
        };
        let all: Vec<Vec<u64>> = series(&points).iter().map(numbers).collect();
        assert_eq!(all, [vec![1, 2], vec![1]]);
    }

    proptest! {
        #[test]
        fn the_figures_equal_naive_ones(
            ranks in prop::collection::vec((1_u64..1000, 0.1_f64..10.0, 0.0_f64..=1.0), 1..9),
        ) {
            let n = ranks.len() as u64;
            let numbered = ranks.iter().zip(0..);
            let rows: Vec<EpochRecord> = numbered
                .map(|((n_rows, secs, utilization), rank)| row(n, rank, *n_rows, (*secs, *utilization)))
                .collect();
            let points = summarize(&rows);
            let found = points[0].ranks.as_ref().unwrap();
            let mut longest = 0.0;
            let (mut total, mut sum, mut least) = (0, 0.0, 1.0);
            for (n_rows, secs, utilization) in &ranks {
                total += n_rows;
                sum += utilization;
                longest = f64::max(longest, *secs);
                least = f64::min(least, *utilization);
            }
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            prop_assert!(close(found.samples_per_sec.unwrap().median, total as f64 / longest));
            prop_assert_eq!(found.least_utilization.unwrap().median, least);
            let mean = found.mean_utilization.unwrap().median;
            prop_assert!((mean - sum / n as f64).abs() <= 1e-12);
            prop_assert!(least <= mean + 1e-12);
        }

        #[test]
        fn the_most_ranks_are_the_largest_number_with_enough(
            utilizations in prop::collection::vec((1_u64..20, 0.0_f64..=1.0), 0..20),
            least in 0.0_f64..=1.0,
        ) {
            let mut naive = None;
            for n in 1..20 {
                if utilizations.iter().any(|(of, utilization)| *of == n && least <= *utilization) {
                    naive = Some(n);
                }
            }
            prop_assert_eq!(most_ranks(&utilizations, least), naive);
        }
    }
}
