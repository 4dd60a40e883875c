//! The command `demo`: writes a small experiment, measures some settings on it, and says what comes
//! next. It starts `generate` and `sweep` as a user would.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use bench_run::{Program, UsageError, print_line};
use clap::Args;

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the experiment and the results; must not exist
    #[arg(default_value = "somafeed-demo", value_name = "FOLDER")]
    folder: PathBuf,
}

/// The size of the experiment: some megabytes, fed in a fraction of a second.
const SIZE: [&str; 4] = ["--cells", "20000", "--genes", "2000"];

/// The settings: blocks of one length in long and in short chunks, which mix more and cost more.
const GRID: [&str; 7] = ["-b", "4096 / [16,256]", "-m", "csr", "-B", "256", "-q"];

/// Writes, measures, and prints the next commands.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let DemoArgs { folder } = args;
    if folder.exists() {
        let shown = folder.display();
        return Err(UsageError::new(format!("{shown} exists: name another folder")).into());
    }
    let (cells, results) = (folder.join("cells"), folder.join("results"));
    let program = Program::this()?;
    let mut generate = program.command();
    generate.args([OsStr::new("generate"), cells.as_os_str()]).args(SIZE);
    if let Some(failed) = failure(&mut generate)? {
        return Ok(failed);
    }
    let mut sweep = program.command();
    sweep.args([OsStr::new("sweep"), OsStr::new("--uri"), cells.as_os_str()]).args(GRID);
    sweep.arg("--results").arg(&results);
    if let Some(failed) = failure(&mut sweep)? {
        return Ok(failed);
    }
    let (called, uri) = (Program::called(), cells.display());
    print_line!(
        "\nA row is a setting: how many cells come in a second, the most memory that the process \
         took, and how mixed the cell types of a batch are.\n\nNext, and on your own data:\n  \
         {called} sweep --uri path/to/experiment-or.h5ad\n  \
         {called} tune --uri {uri} --memory 1GiB --entropy 99%\n  \
         {called} relayout {uri} {}",
        folder.join("for-training").display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The exit code of a command, if it failed.
fn failure(command: &mut Command) -> anyhow::Result<Option<ExitCode>> {
    let status = command.status().context("cannot start the program again")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok((!status.success()).then(|| ExitCode::from(code)))
}
