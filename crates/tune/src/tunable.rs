//! A kind of samples, as `tune` sees it.

use std::path::PathBuf;

use bench_run::{BlockSpec, Workload};
use serde_json::Value;

use crate::runs::Runs;

/// Settings of a run, which `tune` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Sizes of chunks and blocks.
    pub spec: BlockSpec,
    /// Blocks read ahead.
    pub prefetch_blocks: u64,
    /// Batches after which the epoch is cut off.
    pub max_batches: Option<u64>,
}

/// Samples for which settings are proposed: a workload whose points can have them.
///
/// A record of its points has, besides what every record has, the time of reading, the decoded
/// bytes if they are counted, and first the entropy of the label that was surveyed.
pub trait Tunable {
    /// The kind of samples.
    type Samples: Workload;

    /// The samples that are measured.
    fn samples(&self) -> &Self::Samples;

    /// The point with these settings, of one epoch and therefore one record.
    fn point(&self, run: &RunSettings) -> <Self::Samples as Workload>::Point;

    /// The folders of the data, which are read into the page cache; `None` if it is not on a local
    /// disk.
    fn folders(&self) -> Option<Vec<PathBuf>>;

    /// Settings of all runs that are part of the proposal, by name: threads, for example.
    fn fixed(&self) -> Vec<(&'static str, Value)>;

    /// The proposal as users write it, by what it is written for: the command that sweeps it alone
    /// (`command`), the data set in Python (`python`).
    fn written(&self, settings: &RunSettings) -> Vec<(&'static str, String)>;

    /// Chooses among fixed settings by short runs; `first` are the settings of one. By default
    /// there is nothing to choose.
    ///
    /// # Errors
    /// A run fails, or Ctrl-C.
    fn choose(_runs: &mut Runs<Self>, _first: &RunSettings) -> anyhow::Result<()>
    where
        Self: Sized,
    {
        Ok(())
    }
}
