//! The commands of the `sweep` program, from `cargo xtask sweep` to `bench-readers`: builds it in
//! release mode and becomes it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cargo;
use crate::git::git;
use crate::native::{self, Wanted};
use crate::progress::print_line;

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match build("sweep", "sweep", &needs(name, arguments))? {
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

/// What a command of the program needs: as little as its arguments allow, because a first build
/// takes minutes. Batches become tensors where the loader is measured. Data that the user names may
/// be an AnnData, or lie in an object store, as data behind a link does.
///
/// libtiledb is a download, so it is prepared only for what cannot do without it: `bench-readers`
/// measures it, `--consolidate` runs it, and a reader may be asked for by its name.
fn needs(name: &str, arguments: &[OsString]) -> Needs {
    let values = |argument: &OsString| -> Vec<String> {
        let words = argument.to_str().unwrap_or_default().split([',', '=', ' ', '[', ']']);
        words.map(str::to_owned).collect()
    };
    let is_libtiledb = |word: String| word == "--consolidate" || word == "libtiledb";
    let is_data = |argument: &&str| {
        argument.contains("://")
            || ["-u", "--uri", "--link"].iter().any(|flag| argument.starts_with(flag))
    };
    let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
    let is_named = matches!(name, "import" | "slice" | "relayout") || texts.any(|of| is_data(&of));
    let is_measured = matches!(name, "sweep" | "tune" | "growth" | "ranks" | "bench-readers");
    Needs {
        libtorch: is_measured,
        libtiledb: name == "bench-readers" || arguments.iter().flat_map(values).any(is_libtiledb),
        features: [
            (is_measured, "torch"),
            (is_named, "anndata"),
            (is_named, "cloud"),
            (name == "bench-readers", "compare"),
        ]
        .into_iter()
        .filter_map(|(is_needed, feature)| is_needed.then_some(feature))
        .collect(),
    }
}

/// A program, built in release mode.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    native: native::Native,
}

/// What a program is built with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Whether it links libtorch.
    pub(crate) libtorch: bool,
    /// Whether it loads libtiledb for certain; else it does if libtiledb is there.
    pub(crate) libtiledb: bool,
    /// The Cargo features of its package, which are off otherwise.
    pub(crate) features: Vec<&'static str>,
}

impl Needs {
    /// All that `sweep` can have.
    pub(crate) fn all(libtiledb: bool) -> Self {
        Self { libtorch: true, libtiledb, features: vec!["torch", "anndata", "cloud", "compare"] }
    }
}

/// Builds the program `name` of a package with what it needs in place; the exit code if cargo
/// failed and printed why.
pub(crate) fn build(
    package: &str,
    name: &str,
    needs: &Needs,
) -> anyhow::Result<Result<Program, ExitCode>> {
    let native = match needs {
        Needs { libtiledb: true, .. } => native::prepare(Wanted::Both)?,
        Needs { libtorch: true, .. } => native::prepare(Wanted::Libtorch)?,
        Needs { .. } => native::Native::default(),
    };
    let path = target_folder(&native)?.join("release").join(name);
    if !path.exists() {
        print_line(
            "building the program: about six minutes on two cores, later builds take seconds",
        );
    }
    let mut build =
        cargo::cargo(["build", "--release", "--package", package, "--bin", name], &native);
    build.args(["--no-default-features", "--features", &needs.features.join(",")]);
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
    let metadata = cargo::metadata(native)?;
    match metadata.get("target_directory").and_then(serde_json::Value::as_str) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => bail!("`cargo metadata` names no target folder"),
    }
}

/// The measured commit, with `-dirty` if files differ from it; `unknown` outside of a git checkout.
pub(crate) fn revision() -> String {
    let Ok(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    let commit = commit.trim();
    // Uncommitted results do not change the measured program.
    let changed = git(&["status", "--porcelain", "--", ".", ":(exclude)results"]);
    let is_dirty = changed.is_ok_and(|files| !files.trim().is_empty());
    if is_dirty { format!("{commit}-dirty") } else { commit.to_owned() }
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
    fn check_needs(name: &str, arguments: &[&str], (features, libtiledb): (&str, bool)) {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let found = needs(name, &arguments);
        assert_eq!(
            (found.features.join(" ").as_str(), found.libtiledb),
            (features, libtiledb),
            "{name} {arguments:?}"
        );
        assert_eq!(found.libtorch, features.contains("torch"));
    }

    #[test]
    fn a_program_has_what_its_arguments_need() {
        let (example, named) = ("torch", "torch anndata cloud");
        check_needs("sweep", &[], (example, false));
        check_needs("sweep", &["-b", "1024x64", "-m", "native"], (example, false));
        check_needs("sweep", &["--uri", "/data/libtiledb-tests"], (named, false));
        check_needs("tune", &["-u/data/x"], (named, false));
        check_needs("growth", &["--", "--link=30ms"], (named, false));
        check_needs("generate", &["x", "--cells", "10"], ("", false));
        check_needs("generate", &["s3://bucket/x"], ("anndata cloud", false));
        check_needs("growth", &["--data=s3://bucket/x"], (named, false));
        check_needs("report", &["results/x"], ("", false));
        check_needs("import", &["x.h5ad", "y"], ("anndata cloud", false));
        check_needs("bench-readers", &[], ("torch compare", true));
        check_needs("generate", &["x", "--consolidate"], ("", true));
        check_needs("growth", &["--cells", "1000", "--consolidate"], (example, true));
        check_needs("sweep", &["--reader=native,libtiledb"], (example, true));
        check_needs("sweep", &["--reader", "[native, libtiledb]"], (example, true));
    }

    #[test]
    fn the_revision_is_a_commit_or_unknown() {
        let found = revision();
        let commit = found.strip_suffix("-dirty").unwrap_or(&found);
        assert!(commit == "unknown" || commit.bytes().all(|b| b.is_ascii_hexdigit()), "{found}");
    }
}
