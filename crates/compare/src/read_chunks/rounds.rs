//! Runs the ways in rounds, each run in a process of its own. All runs must read the same values.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use bench_run::{Ended, Order, ProcessSpec, Session, grouped};
use grid_point::Data;

use super::reads::{Chunks, ChunksRead, ChunksTask, SUBCOMMAND};
use super::way::Way;
use crate::equality;
use crate::script::script_process;

/// A run that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) way: Way,
    /// Counted from 1.
    pub(crate) repetition: u64,
    pub(crate) read: ChunksRead,
}

/// Inputs of all runs.
pub(crate) struct Rounds {
    pub(crate) session: Session,
    /// Interpreter and script, if a way needs them.
    pub(crate) python: Option<(PathBuf, PathBuf)>,
    pub(crate) data: Data,
    pub(crate) chunks: Chunks,
    pub(crate) n_cells: u64,
}

impl Rounds {
    /// Runs each way once per round. After Ctrl-C, returns the runs of complete rounds. Fails if a
    /// run fails or its values differ from those of the first.
    pub(crate) fn run(&self, ways: &[Way], repetitions: u64) -> anyhow::Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for repetition in 1..=repetitions {
            for way in ways {
                let Some(read) = self.run_one(*way, repetition)? else {
                    runs.retain(|run| run.repetition < repetition);
                    return Ok(runs);
                };
                if let Some(first) = runs.first() {
                    let ours = (first.way.name(), &first.read.tally);
                    equality::same(ours, (way.name(), &read.tally)).map_err(|why| {
                        anyhow!("nothing is reported, for not all ways read the same: {why}")
                    })?;
                }
                self.session.display.line(&format!(
                    "{way} {repetition}: {:.2} s, {} values",
                    read.read_secs,
                    grouped(read.tally.n_values)
                ));
                runs.push(Run { way: *way, repetition, read });
                self.session.display.position(runs.len() as u64);
            }
        }
        Ok(runs)
    }

    /// Runs a way once. Returns `None` after Ctrl-C.
    fn run_one(&self, way: Way, repetition: u64) -> anyhow::Result<Option<ChunksRead>> {
        let mut read = None;
        let name = format!("{way} {repetition}");
        let ended = self.session.run(&name, self.process(way)?, &mut |answer| {
            read = Some(answer);
            Ok(())
        })?;
        match (ended, read) {
            (Ended::Interrupted, _) => Ok(None),
            (Ended::Failed(failure), _) => bail!(
                "nothing is reported, for {way} failed: {}; --ways leaves ways out",
                failure.message
            ),
            (Ended::Done { .. }, Some(read)) => {
                plausible(&read, self.n_cells)
                    .map_err(|why| anyhow!("nothing is reported: {way}: {why}"))?;
                Ok(Some(read))
            }
            (Ended::Done { .. }, None) => bail!("{way} ended without a result"),
        }
    }

    fn process(&self, way: Way) -> anyhow::Result<ProcessSpec<'static>> {
        let Some(reader) = way.reader() else {
            return script_process(self.command(way)?, &self.data);
        };
        let data = Data { reader: reader.name().to_owned(), ..self.data.clone() };
        let secrets = data.secrets();
        let task = ChunksTask { data, chunks: self.chunks.clone() };
        let order = Order { cache: self.session.cache.to_owned(), task };
        ProcessSpec::new(self.session.command(SUBCOMMAND), &order, secrets)
    }

    /// Returns the command of a way that Python runs.
    fn command(&self, way: Way) -> anyhow::Result<Command> {
        let (python, script) = self.python.as_ref().context("there is no Python to read by")?;
        let mut command = Command::new(python);
        // Without bytecode files beside the script, which would change the checkout.
        command.arg("-B").arg(script).arg(way.name());
        command.args(["--measurement", &self.data.measurement]);
        command.args(["--layer", &self.data.layer]).arg("--joinids").arg(&self.chunks.joinids);
        command.args(["--chunk-rows", &self.chunks.chunk_rows.to_string()]);
        command.args(["--genes", &self.chunks.n_genes.to_string()]);
        Ok(command)
    }
}

/// Fails if the numbers of a run are impossible; another program may have written them.
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
