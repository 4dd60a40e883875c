//! The summary of a grid point's epochs: the unit of table, picture and page.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    DataInfo, EpochRecord, GridPoint, LinkSummary, OrderEntropy, RanksSummary, STAGES, Spread,
    Status,
};

/// Summary of the epochs and repetitions of one grid point on one machine and one data set.
///
/// A spread is over the successful epochs that have the figure; `None` if there are none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// The results folder, if a report has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The settings; the seed is the first epoch's.
    #[serde(flatten)]
    pub point: GridPoint,
    /// The data.
    #[serde(flatten)]
    pub data: DataInfo,
    /// The machine.
    pub hostname: String,
    /// Number of successful epochs.
    pub n_ok: usize,
    /// Number of failed epochs.
    pub n_failed: usize,
    /// Status and message of the last failed epoch.
    pub failure: Option<String>,
    /// Seconds of an epoch, including the first batch.
    pub elapsed_secs: Option<Spread>,
    /// Rows per second, including the first batch.
    pub samples_per_sec: Option<Spread>,
    /// Rows per second, without the first batch.
    pub samples_per_sec_after_first: Option<Spread>,
    /// Peak resident memory in bytes.
    pub max_mem: Option<Spread>,
    /// Seconds until the first batch arrived.
    pub time_to_first_batch_secs: Option<Spread>,
    /// Median wait for a batch, in seconds.
    pub wait_p50_secs: Option<Spread>,
    /// 99th percentile of the waits for a batch, in seconds.
    pub wait_p99_secs: Option<Spread>,
    /// Share of the time in which the consumer waited.
    pub stall_share: Option<Spread>,
    /// Accelerator utilisation (AU) of MLPerf Storage, 0 to 1.
    pub accelerator_utilization: Option<Spread>,
    /// CPU seconds per epoch.
    pub cpu_secs: Option<Spread>,
    /// Non-zeros decoded per non-zero delivered.
    pub amplification: Option<Spread>,
    /// Bytes decoded per byte needed.
    pub bytes_amplification: Option<Spread>,
    /// Share of the time in which the consumer worked on a batch.
    pub busy_share: Option<Spread>,
    /// Mean number of batches that were ready when the consumer asked for one.
    pub ready_batches_mean: Option<Spread>,
    /// Mean number of blocks that were ready then.
    pub ready_blocks_mean: Option<Spread>,
    /// Times of each of [`STAGES`].
    pub stages: Vec<StageSummary>,
    /// CPU seconds that belong to no stage.
    pub other_cpu_secs: Option<Spread>,
    /// Requests of the epochs over a link; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSummary>,
    /// The ranks together; `None` if the point was no number of ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksSummary>,
    /// How random the order was, by each label of the first successful epoch.
    pub order_entropy: Vec<EntropySummary>,
}

/// Times of one stage, summed over each epoch's threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSummary {
    /// Name of the stage.
    pub stage: &'static str,
    /// Wall-clock seconds.
    pub wall_secs: Option<Spread>,
    /// CPU seconds.
    pub cpu_secs: Option<Spread>,
}

impl PointSummary {
    /// Whether the time of any stage is known.
    pub(crate) fn has_stages(&self) -> bool {
        self.stages.iter().any(|one| one.wall_secs.is_some() || one.cpu_secs.is_some())
    }
}

/// How random the order of a point's epochs was by one label: entropy within batches, in bits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntropySummary {
    /// Name of the obs column.
    pub label: String,
    /// Measured: the mean over each epoch's full batches.
    pub mean: Option<Spread>,
    /// Expected under the settings.
    pub expected: Option<Spread>,
    /// Entropy of a perfect shuffle.
    pub perfect: Option<Spread>,
    /// Entropy of all selected cells.
    pub data: Option<Spread>,
}

/// Summarizes `records` by grid point, machine and data set, in order of first appearance.
pub fn summarize(records: &[EpochRecord]) -> Vec<PointSummary> {
    group(records).iter().map(|epochs| summarize_point(epochs)).collect()
}

/// The records of each grid point; no group is empty.
pub(crate) fn group(records: &[EpochRecord]) -> Vec<Vec<&EpochRecord>> {
    let hosts = hosts_of_ranks(records);
    let mut groups: Vec<(PointKey, Vec<&EpochRecord>)> = Vec::new();
    for record in records {
        let key = PointKey::from_record(record, &hosts);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, epochs)) => epochs.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups.into_iter().map(|(_, epochs)| epochs).collect()
}

/// The names of settings that not every kind of samples has.
pub(crate) fn further_settings(points: &[PointSummary]) -> Vec<String> {
    let names = points.iter().flat_map(|summary| summary.point.settings.iter());
    let names: BTreeSet<&str> = names.map(|(name, _)| name).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The machines of each run of ranks, by the name of the run: ranks on several machines are one
/// point.
fn hosts_of_ranks(records: &[EpochRecord]) -> BTreeMap<&str, String> {
    let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.measured.rank.is_some()) {
        hosts.entry(&record.run.run_id).or_default().insert(&record.host.hostname);
    }
    let join = |(run, hosts): (_, BTreeSet<&str>)| (run, Vec::from_iter(hosts).join(", "));
    hosts.into_iter().map(join).collect()
}

/// The key that repetitions of an epoch share.
#[derive(Clone, Debug, PartialEq)]
struct PointKey {
    id: String,
    data: DataInfo,
    hostname: String,
}

impl PointKey {
    fn from_record(record: &EpochRecord, hosts_of_ranks: &BTreeMap<&str, String>) -> Self {
        let of_ranks = hosts_of_ranks.get(record.run.run_id.as_str());
        let of_ranks = of_ranks.filter(|_| record.measured.rank.is_some());
        Self {
            id: record.point.id(),
            data: record.data.clone(),
            hostname: of_ranks.unwrap_or(&record.host.hostname).clone(),
        }
    }
}

fn summarize_point(epochs: &[&EpochRecord]) -> PointSummary {
    let first = epochs[0];
    let (ok, failed): (Vec<_>, Vec<_>) =
        epochs.iter().copied().partition(|epoch| epoch.measured.status == Status::Ok);
    let spread = |figure: fn(&EpochRecord) -> Option<f64>| {
        Spread::from_values(ok.iter().filter_map(|epoch| figure(epoch)))
    };
    let failure = failed.last().map(|epoch| {
        let status = epoch.measured.status.name();
        epoch
            .measured
            .message
            .as_ref()
            .map_or_else(|| status.to_owned(), |message| format!("{status}: {message}"))
    });
    PointSummary {
        folder: None,
        point: first.point.clone(),
        data: first.data.clone(),
        hostname: hostnames(epochs),
        n_ok: ok.len(),
        n_failed: failed.len(),
        failure,
        elapsed_secs: spread(|epoch| epoch.measured.elapsed),
        samples_per_sec: spread(|epoch| epoch.measured.samples_per_sec),
        samples_per_sec_after_first: spread(|epoch| epoch.measured.samples_per_sec_after_first),
        max_mem: spread(|epoch| epoch.measured.max_mem.map(|bytes| bytes as f64)),
        time_to_first_batch_secs: spread(|epoch| epoch.measured.time_to_first_batch_secs),
        wait_p50_secs: spread(|epoch| epoch.measured.wait_p50_secs),
        wait_p99_secs: spread(|epoch| epoch.measured.wait_p99_secs),
        stall_share: spread(|epoch| epoch.measured.stall_share),
        accelerator_utilization: spread(|epoch| epoch.measured.accelerator_utilization),
        cpu_secs: spread(|epoch| epoch.measured.cpu_secs),
        amplification: spread(|epoch| epoch.measured.amplification),
        bytes_amplification: spread(|epoch| epoch.measured.bytes_amplification),
        busy_share: spread(|epoch| epoch.measured.busy_share),
        ready_batches_mean: spread(|epoch| epoch.measured.ready_batches_mean),
        ready_blocks_mean: spread(|epoch| epoch.measured.ready_blocks_mean),
        stages: summarize_stages(&ok),
        other_cpu_secs: spread(|epoch| {
            Some((epoch.measured.cpu_secs? - epoch.stages.known_cpu_secs()?).max(0.0))
        }),
        link: LinkSummary::from_epochs(&ok),
        ranks: RanksSummary::from_epochs(&ok),
        order_entropy: summarize_entropy(&ok),
    }
}

/// The machine, or all machines of ranks.
fn hostnames(epochs: &[&EpochRecord]) -> String {
    let names: BTreeSet<&str> = epochs.iter().map(|epoch| epoch.host.hostname.as_str()).collect();
    Vec::from_iter(names).join(", ")
}

fn summarize_stages(epochs: &[&EpochRecord]) -> Vec<StageSummary> {
    let stage_summary = |idx: usize, stage| {
        let each = || epochs.iter().map(|epoch| epoch.stages.by_stage()[idx]);
        StageSummary {
            stage,
            wall_secs: Spread::from_values(each().filter_map(|(wall, _)| wall)),
            cpu_secs: Spread::from_values(each().filter_map(|(_, cpu)| cpu)),
        }
    };
    STAGES.into_iter().enumerate().map(|(idx, stage)| stage_summary(idx, stage)).collect()
}

fn summarize_entropy(epochs: &[&EpochRecord]) -> Vec<EntropySummary> {
    let of_first = epochs.first().map_or(&[][..], |epoch| &epoch.measured.order_entropy);
    let summary = |label: &String| {
        let spread = |figure: fn(&OrderEntropy) -> Option<f64>| {
            let all = epochs.iter().flat_map(|epoch| &epoch.measured.order_entropy);
            Spread::from_values(all.filter(|one| one.label == *label).filter_map(figure))
        };
        EntropySummary {
            label: label.clone(),
            mean: spread(|one| one.mean),
            expected: spread(|one| one.expected),
            perfect: spread(|one| one.perfect),
            data: spread(|one| one.data),
        }
    };
    of_first.iter().map(|one| summary(&one.label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn epochs_of_a_point_are_summed_up_and_failures_counted() {
        let mut other_seed = fixture::epoch("native", (64, 16), 0.25);
        other_seed.point.seed = 1;
        let records = [
            fixture::epoch("native", (64, 16), 0.5),
            fixture::killed("native", (64, 16)),
            other_seed,
        ];
        let points = summarize(&records);
        let [point] = points.as_slice() else { panic!("{points:?}") };
        assert_eq!((point.n_ok, point.n_failed), (2, 1));
        assert_eq!(point.failure.as_deref(), Some("oom: killed by signal 9 | no memory"));
        let [cell_type, tissue] = point.order_entropy.as_slice() else { panic!("{point:?}") };
        assert_eq!((cell_type.label.as_str(), tissue.label.as_str()), ("cell_type", "tissue"));
        let bits = [tissue.mean, tissue.expected, tissue.perfect, tissue.data];
        assert_eq!(bits.map(|spread| spread.unwrap().median), [2.4375, 2.453_125, 2.5, 2.75]);
        assert_eq!(cell_type.mean.unwrap().n, 2);
        let first_batch = point.time_to_first_batch_secs.unwrap();
        assert_eq!((first_batch.min, first_batch.median, first_batch.max), (1.25, 1.875, 2.5));
    }

    #[test]
    fn another_setting_machine_or_data_set_is_another_point() {
        let record = fixture::epoch("native", (64, 16), 0.5);
        let mut records = vec![record.clone(); 4];
        records[1].point.cache = "cold".to_owned();
        records[2].host.hostname = "bench-2".to_owned();
        records[3].data.n_cols = 60_000;
        records.push(record);
        let n_epochs: Vec<usize> = summarize(&records).iter().map(|point| point.n_ok).collect();
        assert_eq!(n_epochs, [2, 1, 1, 1]);
    }
}
