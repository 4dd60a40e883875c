//! Runs in turn, each in a process of its own, and the gate that they pass: the same elements from all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::elements::{self, Elements};
use super::reads::ChunksJob;
use super::way::Way;
use crate::display::{Display, grouped};
use crate::job::{Data, Event, Job, Task};
use crate::process::{self, Ended};

/// What a process says of its run. Seconds and bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChunksRead {
    /// Of the reader and of what it stands on.
    pub(crate) versions: BTreeMap<String, String>,
    /// From opening the experiment until X could be read.
    pub(crate) open_secs: f64,
    /// Of all reads together.
    pub(crate) read_secs: f64,
    /// Processor seconds of the process, all threads, in the same time.
    pub(crate) cpu_secs: f64,
    /// Resident when X was open.
    pub(crate) start_mem_bytes: u64,
    /// Most resident memory of the process's whole life.
    pub(crate) max_mem: u64,
    pub(crate) n_cells: u64,
    pub(crate) elements: Elements,
}

/// A run that ended well.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) way: Way,
    /// From 1.
    pub(crate) repetition: u64,
    pub(crate) read: ChunksRead,
}

/// All that runs need.
pub(crate) struct Session<'a> {
    pub(crate) program: PathBuf,
    /// Interpreter and script, where a way needs them.
    pub(crate) python: Option<(PathBuf, PathBuf)>,
    pub(crate) data: Data,
    pub(crate) job: ChunksJob,
    pub(crate) n_cells: u64,
    pub(crate) display: Display,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Session<'_> {
    /// Rounds in which each way has its run; those of whole rounds where the user wants to stop. Fails where a run fails, and where
    /// one has not read what the first has.
    pub(crate) fn rounds(&self, ways: &[Way], repetitions: u64) -> anyhow::Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for repetition in 1..=repetitions {
            for way in ways {
                let Some(read) = self.run(*way, repetition)? else {
                    runs.retain(|run| run.repetition < repetition);
                    return Ok(runs);
                };
                if let Some(first) = runs.first() {
                    let ours = (first.way.name(), &first.read.elements);
                    elements::same(ours, (way.name(), &read.elements)).map_err(|why| {
                        anyhow::anyhow!(
                            "nothing is reported, for not all ways read the same: {why}"
                        )
                    })?;
                }
                self.display.line(&format!(
                    "{way} {repetition}: {:.2} s, {} values",
                    read.read_secs,
                    grouped(read.elements.n_values)
                ));
                runs.push(Run { way: *way, repetition, read });
                self.display.position(runs.len() as u64);
            }
        }
        Ok(runs)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// One run; `None` when the user wants to stop.
    fn run(&self, way: Way, repetition: u64) -> anyhow::Result<Option<ChunksRead>> {
        let what = format!("{way} {repetition}");
        self.display.now(what.clone());
        let mut found = None;
        let mut on_event = |event| {
            match event {
                Event::ChunksRead(read) => found = Some(*read),
                Event::Progress { n_rows, of_rows } => {
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    self.display.now(format!("{what}: {share:.0} %"));
                }
                _ => {}
            }
            Ok(())
        };
        let ended = if let Some(reader) = way.reader() {
            let data = Data { reader: reader.name().to_owned(), ..self.data.clone() };
            let task = Task::ReadChunks(self.job.clone());
            let job = Job { data, cache: String::new(), task };
            let command = process::point_command(&self.program);
            process::run(command, &job, self.interrupted, &mut on_event)?
        } else {
            let command = self.command(way)?;
            process::run_script(command, Some(&self.data), self.interrupted, &mut on_event)?
        };
        match (ended, found) {
            (Ended::Interrupted, _) => Ok(None),
            (Ended::Failed(failure), _) => bail!(
                "nothing is reported, for {way} failed: {}; --ways leaves ways out",
                failure.message
            ),
            (Ended::Done { .. }, Some(read)) => {
                plausible(&read, self.n_cells)
                    .map_err(|why| anyhow::anyhow!("nothing is reported: {way}: {why}"))?;
                Ok(Some(read))
            }
            (Ended::Done { .. }, None) => bail!("{way} ended without a result"),
        }
    }

    /// The process of a way that Python reads. Address and settings of the data come on its stdin.
    fn command(&self, way: Way) -> anyhow::Result<Command> {
        let (python, script) = self.python.as_ref().context("there is no Python to read by")?;
        let mut command = Command::new(python);
        // Without compiled files beside the script, which would be changes to the checkout.
        command.arg("-B").arg(script).arg(way.name());
        command.args(["--measurement", &self.data.measurement]);
        command.args(["--layer", &self.data.layer]).arg("--joinids").arg(&self.job.joinids);
        command.args(["--chunk-rows", &self.job.chunk_rows.to_string()]);
        command.args(["--genes", &self.job.n_genes.to_string()]);
        Ok(command)
    }
}

/// Fails where what a process says of its run cannot be: it may be another program.
fn plausible(read: &ChunksRead, n_cells: u64) -> Result<(), String> {
    let secs = [read.open_secs, read.read_secs, read.cpu_secs];
    if let Some(bad) = secs.iter().find(|secs| !(0.0..1e11).contains(*secs)) {
        return Err(format!("it says that something took {bad} s"));
    }
    if read.n_cells != n_cells {
        return Err(format!("it read {} cells of {n_cells}", read.n_cells));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let good = ChunksRead { n_cells: 5, read_secs: 1.0, ..ChunksRead::default() };
        plausible(&good, 5).unwrap();
        assert_eq!(plausible(&good, 6).unwrap_err(), "it read 5 cells of 6");
        for secs in [-1.0, f64::NAN] {
            plausible(&ChunksRead { cpu_secs: secs, ..good.clone() }, 5).unwrap_err();
        }
    }
}
