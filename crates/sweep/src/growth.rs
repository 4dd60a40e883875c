//! The command `growth`: measures how the cost grows with the number of cells.
//!
//! Generates an experiment of each size, sweeps it into one results folder, and relates time per
//! cell and memory to size. The memory that grows with the cells is shown part by part.
//!
//! It starts `generate` and `sweep` as a user would. An existing experiment is used again.

mod args;
mod line;
mod parts;
mod report;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use bench_report::{EPOCHS_FILE, EpochRecord, HostInfo, read, write_text};
use bench_run::{
    Display, INTERRUPTED_EXIT_CODE, Program, ResultsFolder, TASK_VARIABLES, UsageError,
    command_line, first_hidden, grouped, print_line, print_message, watch_interrupts,
};

pub(crate) use args::GrowthArgs;

/// Name of the report in the results folder, beside the sweep's README.
const REPORT: &str = "growth.md";

/// Name of the picture of memory by part in the results folder.
const PARTS_PICTURE: &str = "growth-parts.svg";

/// Runs the command and prints the table.
pub(crate) fn run(args: &GrowthArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let sizes = sizes(args)?;
    check_sweep(&args.sweep)?;
    let interrupted = watch_interrupts();
    let mut folder = args.output.results_flags.folder(
        args.output.results.as_deref(),
        &HostInfo::gather(),
        "growth",
    )?;
    // Sweeps write to the folder from their own processes, so it must stay.
    folder.to_remove = false;
    fs::create_dir_all(&args.data)
        .with_context(|| format!("cannot make the folder {}", args.data.display()))?;
    let growth = Growth {
        args,
        program: Program::this()?,
        folder,
        interrupted,
        command: command_line(arguments)?,
    };
    let display = Display::new(sizes.len() as u64, "sizes", args.output.quiet);
    display.line(&format!("results: {}", growth.folder.path.display()));
    let mut ended = ExitCode::SUCCESS;
    for (size, done) in sizes.iter().zip(1..) {
        display.now(format!("{} cells", grouped(*size)));
        let code = growth.measure(*size)?;
        growth.report(&sizes)?;
        if growth.stopped() {
            display.finish();
            print_message!(
                "interrupted: what was measured is kept in {}",
                growth.folder.path.display()
            );
            return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
        }
        if code != 0 {
            print_message!("error: points of {} cells failed; their rows say why", grouped(*size));
            ended = ExitCode::FAILURE;
        }
        display.position(done);
    }
    display.finish();
    print_line!("{}\n{}", growth.report(&sizes)?, growth.folder.path.join(REPORT).display());
    Ok(ended)
}

/// Returns the sizes in ascending order without duplicates. Fails if one is 0.
fn sizes(args: &GrowthArgs) -> anyhow::Result<Vec<u64>> {
    let mut sizes = args.cells.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.first() == Some(&0) {
        return Err(UsageError::new("--cells must be numbers of 1 or more").into());
    }
    Ok(sizes)
}

/// Rejects arguments that may hold a secret.
///
/// The sweeps get them on the command line, which every user of the machine sees.
fn check_sweep(words: &[String]) -> anyhow::Result<()> {
    match first_hidden(words) {
        None => Ok(()),
        Some(word) => Err(UsageError::new(format!(
            "{word} behind -- may hold a secret, and every user of this machine could see it; \
             leave it out: the sweeps read files that growth writes, which need no credentials"
        ))
        .into()),
    }
}

struct Growth<'a> {
    args: &'a GrowthArgs,
    program: &'static Program,
    folder: ResultsFolder,
    interrupted: &'a AtomicBool,
    command: String,
}

impl Growth<'_> {
    /// Generates and sweeps one size, and returns the sweep's exit code.
    fn measure(&self, n_cells: u64) -> anyhow::Result<i32> {
        let args = self.args;
        let data = self.data(n_cells);
        let uri = data.to_str().with_context(|| format!("{} is not UTF-8", data.display()))?;
        if !data.is_dir() && !self.generate(n_cells, uri)? {
            return Ok(0);
        }
        let swept = if self.stopped() { Ok(0) } else { self.sweep(uri) };
        if !args.keep {
            fs::remove_dir_all(&data)
                .with_context(|| format!("cannot remove {}", data.display()))?;
        }
        swept
    }

    /// Writes the experiment of one size in its own process. Returns false after Ctrl-C.
    fn generate(&self, n_cells: u64, uri: &str) -> anyhow::Result<bool> {
        let GrowthArgs { genes, seed, fragment_rows, consolidate, output, .. } = self.args;
        let mut command = self.program.command();
        let number = |flag: &str, number: u64| [flag.to_owned(), number.to_string()];
        command.args(["generate", uri]).args(number("--cells", n_cells));
        command.args(number("--genes", *genes)).args(number("--seed", *seed));
        if *fragment_rows != 0 {
            command.args(number("--fragment-rows", *fragment_rows));
        }
        command.args(consolidate.then_some("--consolidate"));
        command.args(output.quiet.then_some("--quiet"));
        let status = command.status().context("cannot start the generator")?;
        if !status.success() && !self.stopped() {
            bail!("the experiment of {} cells could not be written: {status}", grouped(n_cells));
        }
        Ok(status.success())
    }

    /// Returns the path of one size's experiment; its name contains all settings it is generated
    /// from.
    fn data(&self, n_cells: u64) -> PathBuf {
        let GrowthArgs { genes, seed, fragment_rows, consolidate, data, .. } = self.args;
        let consolidated = if *consolidate { "-consolidated" } else { "" };
        data.join(format!(
            "growth-{n_cells}x{genes}-seed{seed}-fragments{fragment_rows}{consolidated}"
        ))
    }

    fn sweep(&self, uri: &str) -> anyhow::Result<i32> {
        let mut command = self.program.command();
        command.args(["sweep", "--uri", uri, "--results"]).arg(&self.folder.path);
        if let Some(revision) = &self.args.output.results_flags.revision {
            command.args(["--revision", revision]);
        }
        if self.args.output.quiet {
            command.arg("--quiet");
        }
        // The sweep's table and paths are not output of this command.
        let quietly = self.args.output.quiet;
        let stdout = if quietly { Stdio::null() } else { Stdio::from(std::io::stderr()) };
        command.args(&self.args.sweep).stdout(stdout);
        // All points of a size belong together, also in a launcher's task.
        for variable in TASK_VARIABLES {
            command.env_remove(variable);
        }
        let status = command.status().context("cannot start the sweep")?;
        match status.code() {
            // The arguments are invalid, and would be for every size.
            Some(2) => bail!(UsageError::new("what stands behind -- is no sweep's command line")),
            Some(code) if code == i32::from(INTERRUPTED_EXIT_CODE) => {
                self.interrupted.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Some(code) => Ok(code),
            None => bail!("the sweep of {uri} was ended: {status}"),
        }
    }

    /// Writes the report of all rows so far and returns its tables.
    fn report(&self, sizes: &[u64]) -> anyhow::Result<String> {
        if !self.folder.path.join(EPOCHS_FILE).exists() {
            return Ok("nothing was measured".to_owned());
        }
        let rows: Vec<EpochRecord> = read(&self.folder.path)?
            .into_iter()
            .filter(|row| row.data.n_cols != 0 && self.is_of(&row.data.uri, sizes))
            .collect();
        let points = report::points(&rows);
        let mut tables = format!("{}\n\n{}", report::tables(&points), parts::table(&points));
        if let Some(svg) = parts::picture(&points)? {
            write_text(&self.folder.path, PARTS_PICTURE, &svg)?;
            tables = format!("{tables}\n![bytes of memory per cell by part]({PARTS_PICTURE})\n");
        }
        let host = rows.first().map_or_else(String::new, |row| row.host.host.clone());
        let text = format!(
            "# How the cost grows\n\n- command: {}\n- machine: {host}\n\n{tables}\n",
            self.command
        );
        write_text(&self.folder.path, REPORT, &text)?;
        Ok(tables)
    }

    /// Whether an experiment is one of this run's; the folder may have rows of others.
    fn is_of(&self, uri: &str, sizes: &[u64]) -> bool {
        let name = Path::new(uri).file_name();
        sizes.iter().any(|size| self.data(*size).file_name() == name)
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
