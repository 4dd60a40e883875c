//! Prepares a comparison: asks each peer for its loader's abilities and makes the copies that
//! loaders read.

use std::path::Path;

use anyhow::bail;
use bench_run::{Ended, ProcessSpec, Session, format_versions};
use grid_point::{Data, environment_secrets};
use relayout::RelayoutSpec;

use super::copies::{CopySpec, DataCopy};
use super::own::{OwnWork, own_process};
use super::peer::{Peer, PeerAnswer, PeerConversion, PeerFacts};
use super::side::{PeerSide, RELAID, Side};
use crate::script::script_process;

/// Folder and data of the copies.
pub(crate) struct Preparing<'a> {
    pub(crate) session: &'a Session,
    pub(crate) root: &'a Path,
    pub(crate) data: &'a Data,
    /// Whether the data will be read over a link.
    pub(crate) over_link: bool,
}

/// A peer's sides, and its copy if it reads a format of its own.
#[derive(Default)]
pub(crate) struct PreparedPeer {
    pub(crate) sides: Vec<Side>,
    pub(crate) copy: Option<DataCopy>,
    /// Why it has no sides, if it cannot take part.
    pub(crate) skipped: Option<String>,
}

impl Preparing<'_> {
    /// Asks a peer for its abilities and makes its copy. Fails if the script or the copy fails.
    pub(crate) fn peer(&self, peer: &Peer) -> anyhow::Result<PreparedPeer> {
        let facts = self.facts(peer)?;
        if self.over_link && !facts.over_link {
            let why = format!("{}: it reads a local disk only, and --link has none", peer.name);
            return Ok(PreparedPeer { skipped: Some(why), ..PreparedPeer::default() });
        }
        let copy = match &facts.conversion {
            None => None,
            Some(format) => {
                let spec = CopySpec {
                    loader: peer.name.clone(),
                    version: facts.versions.get(&peer.name).cloned().unwrap_or_default(),
                    format: format.clone(),
                    versions: format_versions(&facts.versions, &peer.name),
                };
                Some(self.copy(&spec, |target| {
                    let command = peer.convert(self.data, target);
                    self.converted(&peer.name, script_process(command, self.data)?)
                })?)
            }
        };
        let mut sides: Vec<Side> = Vec::new();
        for variant in facts.variants {
            let side = Side::Peer(PeerSide {
                peer: peer.clone(),
                variant,
                gene_subsets: facts.gene_subsets,
                copy: copy.as_ref().map(|copy| copy.folder.clone()),
                link: None,
            });
            if let (Some(files), Some(copy)) = (side.shared_files(), &copy)
                && !sides.iter().any(|other| other.shared_files().as_ref() == Some(&files))
            {
                let uri = copy.folder.join(&files.anndata).display().to_string();
                sides.push(Side::AnnData { files, uri, link: None });
            }
            sides.push(side);
        }
        Ok(PreparedPeer { sides, copy, skipped: None })
    }

    /// Returns our loader's side on a copy that `relayout` makes. Fails if the copy fails.
    pub(crate) fn relaid(&self) -> anyhow::Result<(Side, DataCopy)> {
        let version = env!("CARGO_PKG_VERSION");
        let spec = CopySpec {
            loader: RELAID.to_owned(),
            version: version.to_owned(),
            format: format!(
                "relayout, chunks of {} rows, not shuffled",
                RelayoutSpec::default().chunk_rows
            ),
            versions: format!("somafeed {version}"),
        };
        let copy = self.copy(&spec, |target| {
            let target = target.join("experiment").display().to_string();
            let work = OwnWork::Relayout { target };
            self.converted(RELAID, own_process(self.session, self.data, work)?)
        })?;
        let uri = copy.folder.join("experiment").display().to_string();
        Ok((Side::Relaid { uri, link: None }, copy))
    }

    fn copy(
        &self,
        spec: &CopySpec,
        make: impl FnOnce(&Path) -> anyhow::Result<PeerConversion>,
    ) -> anyhow::Result<DataCopy> {
        let copy = spec.prepare(self.root, self.data, make)?;
        self.session.display.line(&format!(
            "{}: {} copy: {:.1} s, {:.2} GB on disk, {:.2} GB of memory at peak: {}",
            copy.loader,
            if copy.kept { "has its" } else { "made its" },
            copy.secs,
            copy.bytes as f64 / 1e9,
            copy.max_mem_bytes as f64 / 1e9,
            copy.folder.display()
        ));
        Ok(copy)
    }

    fn facts(&self, peer: &Peer) -> anyhow::Result<PeerFacts> {
        let mut facts = None;
        let process = ProcessSpec::without_input(peer.describe(), environment_secrets());
        let name = format!("{} is asked what it can do", peer.name);
        let ended = self.session.run(&name, process, &mut |answer| {
            if let PeerAnswer::Facts(answer) = answer {
                facts = Some(*answer);
            }
            Ok(())
        })?;
        finished(ended)?;
        let Some(facts) = facts.filter(|facts| !facts.variants.is_empty()) else {
            bail!("its script does not say what it can do");
        };
        Ok(facts)
    }

    /// Runs a process that makes a copy. Records the memory of its whole process tree.
    fn converted(&self, name: &str, process: ProcessSpec<'_>) -> anyhow::Result<PeerConversion> {
        let mut took = None;
        let name = format!("{name}: its copy of the data is made");
        let ended = self.session.run(&name, process, &mut |answer| {
            if let PeerAnswer::Conversion(conversion) = answer {
                took = Some(conversion);
            }
            Ok(())
        })?;
        let tree = finished(ended)?;
        let Some(took) = took.filter(|took| (0.0..1e11).contains(&took.secs)) else {
            bail!("it does not say what its copy of the data took");
        };
        Ok(PeerConversion { max_mem: took.max_mem.max(tree), ..took })
    }
}

/// Returns the peak memory of a process and its child processes together, in bytes; 0 without child
/// processes. Fails if the process failed or was interrupted.
fn finished(ended: Ended) -> anyhow::Result<u64> {
    match ended {
        Ended::Done { tree } => Ok(tree.map_or(0, |tree| tree.bytes)),
        Ended::Failed(failure) => bail!(failure.message),
        Ended::Interrupted => bail!("interrupted"),
    }
}
