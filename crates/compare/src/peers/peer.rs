//! A peer: another loader, which a script of `benches/peers` runs in its own Python environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use bench_report::{EpochRecord, GridPoint, Measured, Status};
use bench_run::{LinkAccess, LinkCounts, ReadEpoch};
use grid_point::{Data, Point};
use serde::{Deserialize, Serialize};

use super::delivered::Delivered;

/// A loader whose script and environment exist.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) python: PathBuf,
    pub(crate) script: PathBuf,
    /// Environment variables of its processes.
    pub(crate) variables: BTreeMap<String, String>,
}

/// The task of a peer's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerTask {
    Describe,
    Convert,
    Measure,
    Tally,
}

impl PeerTask {
    fn name(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Convert => "convert",
            Self::Measure => "measure",
            Self::Tally => "tally",
        }
    }
}

/// Abilities of a peer's loader, as its script reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerFacts {
    /// Versions of the loader and its libraries.
    pub(crate) versions: BTreeMap<String, String>,
    /// Whether the loader can select the first N genes.
    pub(crate) gene_subsets: bool,
    /// The loader's own format; `None` if it reads the experiment.
    pub(crate) conversion: Option<String>,
    /// Whether the loader reads from an object store, and so over a link.
    #[serde(default)]
    pub(crate) over_link: bool,
    /// Settings at which the loader is measured.
    pub(crate) variants: Vec<Variant>,
}

/// Settings of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Description of the settings in one line.
    pub(crate) summary: String,
    /// Whether the work sets its chunks and blocks.
    pub(crate) takes_blocks: bool,
    /// Supported forms of batches.
    pub(crate) forms: Vec<String>,
    /// Path in its copy of the AnnData that it reads, if our loader reads the same files.
    #[serde(default)]
    pub(crate) anndata: Option<String>,
}

/// Name of the variant with the work's settings.
pub(crate) const OUR_SETTINGS: &str = "ours";

/// An answer of a peer's script, or of our own process for the same task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum PeerAnswer {
    /// Abilities of the loader.
    Facts(Box<PeerFacts>),
    /// A copy of the data was made.
    Conversion(PeerConversion),
    /// An epoch was measured.
    Epoch(Box<PeerEpoch>),
    /// An epoch was counted.
    Delivered(Delivered),
}

/// Cost of making a copy of the data in a loader's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerConversion {
    pub(crate) secs: f64,
    /// Peak memory of the process, in bytes.
    pub(crate) max_mem: u64,
}

/// A peer's measurement of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerEpoch {
    #[serde(flatten)]
    pub(crate) times: ReadEpoch,
    /// Rows per chunk in this run.
    pub(crate) chunk_rows: u64,
    /// Chunks per block in this run.
    pub(crate) chunks_per_block: u64,
    /// Counts of the link's server; `None` without a link.
    #[serde(default)]
    pub(crate) link: Option<PeerLink>,
    /// Bytes in those files of its copy that hold X's values; `None` if it has no copy, or if its
    /// script cannot separate them from the rest.
    #[serde(default)]
    pub(crate) stored_bytes: Option<u64>,
}

/// Counts of a link's server, as a peer's process got them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerLink {
    /// Before the loader was opened.
    pub(crate) start: LinkCounts,
    /// When the epoch began.
    pub(crate) before: LinkCounts,
    /// When it had ended.
    pub(crate) after: LinkCounts,
}

impl Peer {
    /// Returns a command for the peer's script; the caller adds more arguments.
    fn script(&self, task: PeerTask) -> Command {
        let mut command = Command::new(&self.python);
        // Without bytecode files beside the script, which would change the checkout.
        command.arg("-B").arg(&self.script).envs(&self.variables).arg(task.name());
        command
    }

    pub(crate) fn describe(&self) -> Command {
        self.script(PeerTask::Describe)
    }

    /// Returns the command that writes the peer's copy of the data to the empty folder `copy`.
    pub(crate) fn convert(&self, data: &Data, copy: &Path) -> Command {
        let mut command = self.script(PeerTask::Convert);
        name_data(&mut command, data, Some(copy));
        command
    }

    /// Returns the command that measures or tallies with these settings.
    pub(crate) fn command(
        &self,
        task: PeerTask,
        job: (&Data, &Point),
        variant: &str,
        copy: Option<&Path>,
    ) -> Command {
        let (data, point) = job;
        let engine = &point.spec.pipeline;
        let mut command = self.script(task);
        name_data(&mut command, data, copy);
        let mut set = |flag: &str, value: &str| {
            command.args([flag, value]);
        };
        set("--variant", variant);
        set("--form", point.spec.batch_form.name());
        set("--batch-rows", &engine.batch_rows.to_string());
        set("--chunk-rows", &engine.chunk_rows.to_string());
        set("--chunks-per-block", &engine.chunks_per_block.to_string());
        set("--seed", &engine.seed.to_string());
        set("--epochs", &point.n_epochs.to_string());
        set("--consumer-millis", &point.consumer.millis().to_string());
        command
    }

    /// Returns the requested settings, for a record.
    pub(crate) fn settings(
        &self,
        variant: &str,
        (data, point): (&Data, &Point),
        cache: &str,
    ) -> GridPoint {
        let engine = &point.spec.pipeline;
        GridPoint {
            loader: Some(self.name.clone()),
            workload: Some("cells".to_owned()),
            chunk_method: self.label(variant),
            batch_size: engine.batch_rows,
            chunk_size: engine.chunk_rows,
            chunks_per_block: engine.chunks_per_block,
            block_size: engine.chunk_rows * engine.chunks_per_block,
            order: "shuffled".to_owned(),
            form: point.spec.batch_form.name().to_owned(),
            reader: self.name.clone(),
            seed: engine.seed,
            consumer: point.consumer.noted(),
            cache: cache.to_owned(),
            settings: data.conditions(),
            ..GridPoint::default()
        }
    }

    /// Returns the peer's name, with the variant's name unless it is [`OUR_SETTINGS`].
    pub(crate) fn label(&self, variant: &str) -> String {
        match variant {
            OUR_SETTINGS => self.name.clone(),
            _ => format!("{} {variant}", self.name),
        }
    }
}

/// Adds arguments for the data, except its address and settings, which a script receives on stdin.
fn name_data(command: &mut Command, data: &Data, copy: Option<&Path>) {
    if let Some(copy) = copy {
        command.arg("--copy").arg(copy);
    }
    command.args(["--measurement", &data.measurement, "--layer", &data.layer]);
    if let Some(n_genes) = data.n_genes {
        command.args(["--genes", &n_genes.to_string()]);
    }
    for column in &data.obs_columns {
        command.args(["--obs-column", column]);
    }
}

impl PeerEpoch {
    /// The outcome of the epoch; a failure if it did not deliver all cells.
    pub(crate) fn measured(&self, n_cells: u64) -> Measured {
        let measured = self.times.measured();
        match measured.n_rows {
            Some(n_rows) if n_rows != n_cells => {
                Measured::failed(Status::Error, format!("it delivered {n_rows} cells of {n_cells}"))
            }
            _ => Measured { peak_reset: Some(false), ..measured },
        }
    }
}

/// Enters a peer's counts of a link in its row. Every epoch is whole, so it needs all stored bytes
/// of X, unless it takes a part of the genes. For a loader with a copy, its script reports them.
pub(crate) fn enter_link(
    link: &LinkAccess,
    epoch: &PeerEpoch,
    data: &Data,
    record: &mut EpochRecord,
) {
    link.enter(&mut record.point);
    if let Some(PeerLink { start, before, after }) = &epoch.link {
        let share = data.n_genes.is_none().then_some(1.0);
        let stored_bytes = link.stored_bytes.or(epoch.stored_bytes);
        let link = LinkAccess { stored_bytes, ..link.clone() };
        link.enter_counts(&after.since(before), share, &mut record.measured);
        let opening = before.since(start).requests;
        record.measured.link_open_requests = (epoch.times.number() == 0).then_some(opening);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_report::LINK;
    use bench_run::Event;

    const LINE: &str = r#"{"Answer": {"Epoch": {"epoch": 0, "open_secs": 0.5, "versions": {"Python": "3.11.7", "numpy": "2.4.6", "other": "1.0"},
        "chunk_rows": 64, "chunks_per_block": 8, "batches": [[2.0, 0.5, 64], [0.25, 0.5, 36]], "end_wait_secs": 0.125, "start_time": 1795273417.5, "end_time": 1795273423,
        "cpu_user_secs": 5.5, "cpu_system_secs": 0.25, "start_mem_bytes": 100, "max_mem": 300, "something": "new"}}}"#;

    fn epoch(line: &str) -> PeerEpoch {
        match serde_json::from_str(line).unwrap() {
            Event::Answer(PeerAnswer::Epoch(epoch)) => *epoch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_peers_line_becomes_a_record() {
        let epoch = epoch(LINE);
        assert_eq!(epoch.times.format_versions("other"), "other 1.0, Python 3.11.7, numpy 2.4.6");
        let measured = epoch.measured(100);
        assert_eq!((measured.n_rows, measured.n_batches, measured.nnz), (Some(100), Some(2), None));
        assert_eq!(measured.elapsed, Some(3.375));
        assert_eq!(measured.samples_per_sec_after_first, Some(36.0 / 0.875));
        assert_eq!((measured.cpu_secs, measured.max_mem), (Some(5.75), Some(300)));
        assert_eq!(measured.open_secs, Some(0.5));
        assert_eq!(measured.start_dt.unwrap().as_microsecond(), 1_795_273_417_500_000);
    }

    #[test]
    fn a_peers_counts_of_the_link_become_those_of_the_epoch() {
        let start = LinkCounts { requests: 5, ..LinkCounts::default() };
        let before = LinkCounts { requests: 25, cpu_secs: 1.0, ..LinkCounts::default() };
        let after = LinkCounts {
            requests: 125,
            bytes_sent: 900,
            most_under_way: 8,
            cpu_secs: 4.375,
            ..LinkCounts::default()
        };
        let link = serde_json::to_string(&PeerLink { start, before, after }).unwrap();
        let line = LINE.replace("\"something\": \"new\"", &format!("\"link\": {link}"));
        let epoch = epoch(&line);
        let link = LinkAccess {
            link: "30ms,1kB/s".into(),
            stored_bytes: Some(500),
            ..LinkAccess::default()
        };
        let mut record = EpochRecord { measured: epoch.measured(100), ..EpochRecord::default() };
        enter_link(&link, &epoch, &Data::default(), &mut record);
        assert_eq!(record.point.settings.get(LINK), Some("30ms,1kB/s"));
        let measured = &record.measured;
        let counts = [measured.link_requests, measured.link_open_requests, measured.link_bytes];
        assert_eq!(counts, [Some(100), Some(20), Some(900)]);
        assert_eq!(measured.link_server_cpu_share, Some(1.0));
        assert_eq!(measured.link_bytes_floor_secs, Some(0.5));
        // A copy's bytes are those that the script reports, or unknown.
        let copy = LinkAccess { stored_bytes: None, ..link.clone() };
        let mut enter_copy = |stored_bytes| {
            let epoch = PeerEpoch { stored_bytes, ..epoch.clone() };
            enter_link(&copy, &epoch, &Data::default(), &mut record);
            (record.measured.link_needed_bytes, record.measured.link_bytes_floor_secs)
        };
        assert_eq!(enter_copy(Some(700)), (Some(700), Some(0.7)));
        assert_eq!(enter_copy(None), (None, None));
        let part = Data { n_genes: Some(3), ..Data::default() };
        enter_link(&link, &epoch, &part, &mut record);
        assert_eq!(record.measured.link_needed_bytes, None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |line: &str, n_cells| epoch(line).measured(n_cells).message.unwrap();
        assert_eq!(error(LINE, 101), "it delivered 100 cells of 101");
        let error = error(&LINE.replace("0.125", "-1"), 100);
        assert!(error.contains("took -1 s"), "{error}");
        for bad in
            [LINE.replace("\"max_mem\": 300", "\"max_mem\": -3"), LINE.replace("0.125", "NaN")]
        {
            serde_json::from_str::<Event<PeerAnswer>>(&bad).unwrap_err();
        }
    }
}
