//! The commands of the `sweep` program, from `cargo xtask sweep` to `bench-readers`: builds it in
//! release mode and becomes it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cargo;
use crate::native::{self, Wanted};
use crate::progress::print_line;

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match build("sweep", "sweep", needs(name, arguments))? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let mut command = program.command(name)?;
    if matches!(name, "sweep" | "tune" | "growth" | "ranks") {
        command.args(results_arguments());
    }
    command.args(arguments);
    Program::exec(command)
}

/// What a command of the program needs. libtiledb is a download, so it is prepared only for what
/// cannot do without it: `bench-readers` measures it, `--consolidate` runs it, and a reader may be
/// asked for by its name.
fn needs(name: &str, arguments: &[OsString]) -> Needs {
    let values = |argument: &OsString| -> Vec<String> {
        let words = argument.to_str().unwrap_or_default().split([',', '=', ' ', '[', ']']);
        words.map(str::to_owned).collect()
    };
    let is_named = |word: String| word == "--consolidate" || word == "libtiledb";
    if name == "bench-readers" || arguments.iter().flat_map(values).any(is_named) {
        Needs::LibtorchAndLibtiledb
    } else {
        Needs::Libtorch
    }
}

/// A program, built in release mode.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    native: native::Native,
}

/// Libraries that a program links or loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// libtorch; libtiledb if it is there.
    Libtorch,
    /// libtorch, by the Cargo feature `torch`.
    TorchFeature,
    LibtorchAndLibtiledb,
}

/// Builds the program `name` of a package with what it needs in place; the exit code if cargo
/// failed and printed why.
pub(crate) fn build(
    package: &str,
    name: &str,
    needs: Needs,
) -> anyhow::Result<Result<Program, ExitCode>> {
    let native = match needs {
        Needs::Nothing => native::Native::default(),
        Needs::Libtorch | Needs::TorchFeature => native::prepare(Wanted::Libtorch)?,
        Needs::LibtorchAndLibtiledb => native::prepare(Wanted::Both)?,
    };
    let path = target_folder(&native)?.join("release").join(name);
    if !path.exists() {
        print_line(
            "building the program: about six minutes on two cores, later builds take seconds",
        );
    }
    let mut build =
        cargo::cargo(["build", "--release", "--package", package, "--bin", name], &native);
    if needs == Needs::TorchFeature {
        build.args(["--features", "torch"]);
    }
    let built = cargo::run(&mut build)?;
    if !built.success() {
        return Ok(Err(cargo::exit_code(built)));
    }
    Ok(Ok(Program { path, native }))
}

impl Program {
    /// Its subcommand `name`, without arguments yet.
    pub(crate) fn command(&self, name: impl AsRef<OsStr>) -> anyhow::Result<Command> {
        let mut command = cargo::command(self.path.as_os_str(), &self.native);
        // Paths among the arguments are relative to the user's folder.
        command.current_dir(std::env::current_dir().context("the current folder is gone")?);
        command.arg(name);
        Ok(command)
    }

    /// Replaces this process by it (exec). Ctrl-C then reaches a single process, which keeps the
    /// measurements.
    pub(crate) fn exec(mut command: Command) -> anyhow::Result<ExitCode> {
        let error = command.exec();
        Err(error).with_context(|| format!("cannot run {}", command.get_program().display()))
    }
}

/// Arguments for subcommands that keep results: the measured revision, and the folder for results.
pub(crate) fn results_arguments() -> [OsString; 4] {
    [
        "--revision".into(),
        revision().into(),
        "--results-root".into(),
        cargo::workspace_root().join("results").into(),
    ]
}

/// Cargo's target folder; the user may have set it in several ways.
fn target_folder(native: &native::Native) -> anyhow::Result<PathBuf> {
    let output = cargo::cargo(["metadata", "--no-deps", "--format-version", "1"], native)
        .output()
        .context("cannot run `cargo metadata`")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cannot read `cargo metadata`")?;
    match metadata.get("target_directory").and_then(serde_json::Value::as_str) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => bail!("`cargo metadata` names no target folder"),
    }
}

/// The measured commit, with `-dirty` if files differ from it; `unknown` outside of a git checkout.
pub(crate) fn revision() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(cargo::workspace_root())
            .args(arguments)
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    // Uncommitted results do not change the measured program.
    let changed = git(&["status", "--porcelain", "--", ".", ":(exclude)results"]);
    if changed.is_some_and(|files| !files.is_empty()) { format!("{commit}-dirty") } else { commit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_it_builds() {
        let folder = target_folder(&native::Native::default()).unwrap();
        assert!(folder.is_absolute(), "{}", folder.display());
    }

    #[track_caller]
    fn check_needs(name: &str, arguments: &[&str], expect: Needs) {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        assert_eq!(needs(name, &arguments), expect, "{name} {arguments:?}");
    }

    #[test]
    fn libtiledb_is_prepared_where_it_runs() {
        let both = Needs::LibtorchAndLibtiledb;
        check_needs("bench-readers", &[], both);
        check_needs("generate", &["x", "--consolidate"], both);
        check_needs("growth", &["--cells", "1000", "--consolidate"], both);
        check_needs("sweep", &["--reader=native,libtiledb"], both);
        check_needs("sweep", &["--reader", "[native, libtiledb]"], both);
        check_needs("generate", &["x", "--cells", "10"], Needs::Libtorch);
        check_needs("sweep", &["--uri", "/data/libtiledb-tests"], Needs::Libtorch);
    }

    #[test]
    fn the_revision_is_a_commit_or_unknown() {
        let found = revision();
        let commit = found.strip_suffix("-dirty").unwrap_or(&found);
        assert!(commit == "unknown" || commit.bytes().all(|b| b.is_ascii_hexdigit()), "{found}");
    }
}
