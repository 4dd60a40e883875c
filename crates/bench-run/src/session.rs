//! The session of a command: runs tasks in processes one after another, shows progress, writes
//! rows, and stops on Ctrl-C.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use bench_report::{EpochRecord, HostInfo, RunInfo, append, append_unless_there, grouped};
use serde::de::DeserializeOwned;

use crate::display::Display;
use crate::interrupt;
use crate::order::Event;
use crate::page_cache::{self, Cold, PageCache};
use crate::process::{Ended, ProcessSpec};
use crate::program::Program;
use crate::results_folder::ResultsFolder;
use crate::row_line::format_row;

/// Runs measured processes for a command.
#[derive(Debug)]
pub struct Session {
    program: &'static Program,
    /// Shows progress.
    pub display: Display,
    /// State of the page cache, recorded with each measurement.
    pub cache: &'static str,
    interrupted: &'static AtomicBool,
}

/// Error of a command that the user interrupted.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Session {
    /// Begins to watch for Ctrl-C. Fails if the path of this program, which runs again for each
    /// task, is unknown.
    pub fn begin(display: Display) -> anyhow::Result<Self> {
        let interrupted = interrupt::watch();
        let program = Program::this()?;
        Ok(Self { program, display, cache: "", interrupted })
    }

    /// Returns the file of the program's code; digests of conditions cover it.
    pub fn program(&self) -> &Path {
        &self.program.code
    }

    /// Returns the command that starts this program again for orders of the subcommand `name`.
    pub fn command(&self, name: &str) -> Command {
        let mut command = self.program.command();
        command.arg(name);
        command
    }

    /// Whether the user has interrupted the command.
    pub fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The flag that Ctrl-C sets.
    pub fn interrupted(&self) -> &'static AtomicBool {
        self.interrupted
    }

    /// Reads all files of `folders` into the page cache.
    pub fn warm(&mut self, folders: Option<&[PathBuf]>) {
        self.cache = self.state("warm", &page_cache::warm(folders));
    }

    /// Removes all files of `folders` from the page cache; returns the state's name.
    pub fn cool(&self, folders: Option<&[PathBuf]>, how: Cold) -> &'static str {
        self.state("cold", &page_cache::cool(folders, how))
    }

    /// The name of the state. Says why it is not the one that was `wanted`.
    fn state(&self, wanted: &str, state: &PageCache) -> &'static str {
        if let PageCache::Unknown(why) = state {
            self.display.line(&format!("the page cache is not {wanted}: {why}"));
        }
        state.name()
    }

    /// Prints the path of a written file: to stdout, or to stderr if that has JSON objects.
    pub fn print_path(&self, path: &Path, has_json: bool) {
        if has_json {
            self.display.line(&path.display().to_string());
        } else {
            crate::print_line!("{}", path.display());
        }
    }

    /// Reads the data's files into the page cache again if it was warm.
    pub fn warm_again(&mut self, folders: Option<&[PathBuf]>) {
        let display = &self.display;
        self.cache = page_cache::warm_again(self.cache, folders, |why| display.line(why));
    }

    /// Runs a process to its end. Shows `name` with its progress and its warnings, and passes its
    /// answers to `on_answer`. Kills the process and fails if `on_answer` fails.
    pub fn run<Answer: DeserializeOwned>(
        &self,
        name: &str,
        process: ProcessSpec<'_>,
        on_answer: &mut dyn FnMut(Answer) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        self.display.now(name);
        let mut started = Instant::now();
        process.run(self.interrupted, &mut |event| {
            match event {
                Event::Progress { n_rows, of_rows } => {
                    self.display.now(format_progress(name, n_rows, of_rows, started));
                }
                Event::Warning { message } => {
                    self.display.line(&format!("warning: {name}: {message}"));
                }
                Event::Answer(answer) => {
                    on_answer(answer)?;
                    // Rows are counted anew after each answer, like opened data or an epoch.
                    started = Instant::now();
                }
                Event::Ready | Event::Failed { .. } | Event::Done => {}
            }
            Ok(())
        })
    }
}

fn format_progress(name: &str, n_rows: u64, of_rows: u64, started: Instant) -> String {
    let rate = n_rows as f64 / started.elapsed().as_secs_f64();
    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
    format!("{name}: {share:.0} %, {} rows/s", grouped(rate as u64))
}

/// Writes the rows of a run to its results folder, one by one.
#[derive(Debug)]
pub struct Rows {
    /// Folder of the rows.
    pub folder: ResultsFolder,
    /// Run of the rows.
    pub run: RunInfo,
    /// Machine of the rows.
    pub host: HostInfo,
    /// Number of rows written so far.
    pub n_rows: usize,
}

impl Rows {
    /// Writes rows to `folder`.
    pub fn new(folder: ResultsFolder, run: RunInfo, host: HostInfo) -> Self {
        Self { folder, run, host, n_rows: 0 }
    }

    /// Completes the record with run and machine, and writes it. A failure should end the command:
    /// further measurements would be lost too.
    pub fn keep(&mut self, record: &mut EpochRecord) -> anyhow::Result<()> {
        self.complete(record);
        let kept = append(&self.folder.path, std::slice::from_ref(record));
        self.count(kept.map(|()| true), record).map(drop)
    }

    /// Completes and writes several records at once: all of them, or none if it fails.
    pub fn keep_all(&mut self, records: &mut [EpochRecord]) -> anyhow::Result<()> {
        for record in records.iter_mut() {
            self.complete(record);
        }
        let kept = append(&self.folder.path, records);
        kept.with_context(|| {
            format!("the command ends; {} rows are kept, the last are not", self.n_rows)
        })?;
        self.folder.to_remove = false;
        self.n_rows += records.len();
        Ok(())
    }

    /// Does the same as `keep`, unless the folder has a row of the same measurement. Returns
    /// whether the row was added.
    pub fn keep_unless_there(&mut self, record: &mut EpochRecord) -> anyhow::Result<bool> {
        self.complete(record);
        let kept = append_unless_there(&self.folder.path, record);
        self.count(kept, record)
    }

    fn complete(&self, record: &mut EpochRecord) {
        let metadata = std::mem::take(&mut record.run.metadata);
        record.run = self.run.clone();
        record.run.metadata.extend(metadata);
        // A rank may run on another machine than the command.
        if record.host == HostInfo::default() {
            record.host = self.host.clone();
        }
    }

    fn count(
        &mut self,
        kept: Result<bool, bench_report::Error>,
        record: &EpochRecord,
    ) -> anyhow::Result<bool> {
        let is_new = kept.with_context(|| {
            let row = format_row(record, 1);
            format!("the command ends; {} rows are kept, this one is not: {row}", self.n_rows)
        })?;
        self.folder.to_remove = false;
        self.n_rows += usize::from(is_new);
        Ok(is_new)
    }
}
