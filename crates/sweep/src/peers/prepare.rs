//! What is done before the works: asking each peer what its loader can do, and making the copies of the data that loaders read.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::bail;
use relayout::{RelayoutEvent, RelayoutSpec};
use soma_io::{Experiment, OpenOptions};

use super::copies::{CopySpec, DataCopy};
use super::peer::{Peer, PeerConversion, PeerFacts};
use super::side::{PeerSide, RELAID, Side};
use crate::display::Display;
use crate::job::{Data, Event, Job, Task};
use crate::process::{self, Ended};

/// Where copies are made, of what, and by which program.
pub(crate) struct Preparing<'a> {
    pub(crate) program: &'a Path,
    pub(crate) root: &'a Path,
    pub(crate) data: &'a Data,
    pub(crate) display: &'a Display,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Preparing<'_> {
    /// A peer's sides, and its copy where it has one.
    pub(crate) fn peer(&self, peer: &Peer) -> anyhow::Result<(Vec<Side>, Option<DataCopy>)> {
        self.display.now(format!("{} is asked what it can do", peer.name));
        let facts = self.facts(peer)?;
        let copy = match &facts.conversion {
            None => None,
            Some(format) => {
                let spec = CopySpec {
                    loader: peer.name.clone(),
                    version: facts.versions.get(&peer.name).cloned().unwrap_or_default(),
                    format: format.clone(),
                    versions: told_versions(&facts, &peer.name),
                };
                Some(self.copy(&spec, |target| {
                    let command = peer.convert(self.data, target);
                    self.converted(&peer.name, |on_event| {
                        process::run_script(command, Some(self.data), self.interrupted, on_event)
                    })
                })?)
            }
        };
        let sides = facts.variants.into_iter().map(|variant| {
            Side::Peer(PeerSide {
                peer: peer.clone(),
                variant,
                gene_subsets: facts.gene_subsets,
                copy: copy.as_ref().map(|copy| copy.folder.clone()),
            })
        });
        Ok((sides.collect(), copy))
    }

    /// Ours on a copy that `relayout` makes.
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
            let task = Task::Relayout { target };
            let job = Job { data: self.data.clone(), cache: String::new(), task };
            let command = process::point_command(self.program);
            self.converted(RELAID, |on_event| {
                process::run(command, &job, self.interrupted, on_event)
            })
        })?;
        let uri = copy.folder.join("experiment").display().to_string();
        Ok((Side::Relaid { uri }, copy))
    }

    fn copy(
        &self,
        spec: &CopySpec,
        make: impl FnOnce(&Path) -> anyhow::Result<PeerConversion>,
    ) -> anyhow::Result<DataCopy> {
        let copy = spec.prepare(self.root, self.data, make)?;
        self.display.line(&format!(
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
        let ended = process::run_script(peer.describe(), None, self.interrupted, &mut |event| {
            if let Event::PeerFacts(told) = event {
                facts = Some(*told);
            }
            Ok(())
        })?;
        finished(ended)?;
        let Some(facts) = facts.filter(|facts| !facts.variants.is_empty()) else {
            bail!("its script does not say what it can do");
        };
        Ok(facts)
    }

    /// Follows a process that makes a copy to its end; memory is that of its whole tree.
    fn converted(
        &self,
        name: &str,
        run: impl FnOnce(&mut dyn FnMut(Event) -> anyhow::Result<()>) -> anyhow::Result<Ended>,
    ) -> anyhow::Result<PeerConversion> {
        let mut took = None;
        self.display.now(format!("{name}: its copy of the data is made"));
        let ended = run(&mut |event| {
            match event {
                Event::PeerConversion(told) => took = Some(told),
                Event::Progress { n_rows, of_rows } => {
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    self.display.now(format!("{name}: its copy of the data is made: {share:.0} %"));
                }
                _ => {}
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

/// The most memory that the process and those below it had together, where there were any.
fn finished(ended: Ended) -> anyhow::Result<u64> {
    match ended {
        Ended::Done { tree } => Ok(tree.map_or(0, |tree| tree.bytes)),
        Ended::Failed(failure) => bail!(failure.message),
        Ended::Interrupted => bail!("interrupted"),
    }
}

fn told_versions(facts: &PeerFacts, name: &str) -> String {
    let own = facts.versions.iter().filter(|(package, _)| *package == name);
    let others = facts.versions.iter().filter(|(package, _)| *package != name);
    own.chain(others)
        .map(|(name, version)| format!("{name} {version}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Writes the experiment anew in this process. The time is without that for measuring what it gains.
pub(crate) fn relayout(
    data: &Data,
    target: &str,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<PeerConversion> {
    let options = OpenOptions { config: data.config.clone(), timestamp: None };
    let source = Experiment::open(data.uri.full(), &options)?;
    let spec = RelayoutSpec {
        measurement: data.measurement.clone(),
        layer: data.layer.clone(),
        config: data.config.clone(),
        ..RelayoutSpec::default()
    };
    let (mut of_rows, mut told, mut broken) = (0, Instant::now(), None);
    let report = ::relayout::relayout(&source, target, &spec, &mut |event| {
        match event {
            RelayoutEvent::Opened { n_cells, .. } => of_rows = n_cells,
            RelayoutEvent::Written { n_rows } if 0.2 < told.elapsed().as_secs_f64() => {
                told = Instant::now();
                broken = tell(&Event::Progress { n_rows, of_rows }).err();
            }
            _ => {}
        }
        if broken.is_some() {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    })?;
    Ok(PeerConversion {
        secs: report.seconds - report.measuring_seconds,
        max_mem: bench_report::peak_bytes()?,
    })
}
