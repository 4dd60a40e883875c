//! `cargo xtask scvi`: trains scVI from an experiment by somafeed's data module and by that of
//! scvi-tools, dense and sparse, and draws their times and memory (`benches/scvi/figure.py`).

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::peers::asks_for_help;
use crate::progress::print_line;
use crate::sweep::Program;
use crate::{cargo, ecosystem, wheel};

/// Writes the experiment for those who have none, to the folder in the first argument.
const GENERATE: &str = "\
import sys, somafeed
somafeed.generate_example(sys.argv[1], n_cells=100_000, n_genes=2_000)";
/// Where it is, below the workspace.
const EXAMPLE: &str = "target/scvi-example-100000x2000";
/// Where results go unless `--out` is given, below the workspace.
const OUT: &str = "target/scvi-figure";

/// Passes `arguments` on to the script, with an experiment and a folder for results if they name
/// none.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let root = cargo::workspace_root();
    if asks_for_help(arguments) {
        // The script's help needs no packages.
        return Program::exec(script(Path::new("python3"), &root, arguments));
    }
    let python = ecosystem::environment()?;
    let mut command = script(&python, &root, arguments);
    if !is_given(arguments, "--out") {
        command.arg("--out").arg(root.join(OUT));
    }
    if is_given(arguments, "--redraw") {
        return Program::exec(command);
    }
    // Users have this wheel, and it is faster than that of the tests.
    let installed = match wheel::unpacked_release(&python)? {
        Ok(installed) => installed,
        Err(code) => return Ok(code),
    };
    command.env("PYTHONPATH", &installed);
    if !is_given(arguments, "--uri") {
        let example = root.join(EXAMPLE);
        if let Some(code) = generate(&python, &installed, &example)? {
            return Ok(code);
        }
        command.arg("--uri").arg(example);
    }
    Program::exec(command)
}

/// The script in the user's folder, since paths among the arguments are relative to it.
fn script(python: &Path, root: &Path, arguments: &[OsString]) -> Command {
    let mut command = Command::new(python);
    command.arg("-B").arg(root.join("benches/scvi/figure.py")).args(arguments);
    command
}

/// Whether an option is among the arguments, as `--option` or `--option=value`.
fn is_given(arguments: &[OsString], option: &str) -> bool {
    arguments.iter().filter_map(|word| word.to_str()).any(|word| {
        word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Writes the example experiment unless it is there; returns the exit code if that failed.
fn generate(python: &Path, installed: &Path, example: &Path) -> anyhow::Result<Option<ExitCode>> {
    if example.exists() {
        return Ok(None);
    }
    print_line("writing an example experiment; --uri names another one");
    let mut command = Command::new(python);
    command.args([OsStr::new("-c"), OsStr::new(GENERATE), example.as_os_str()]);
    command.env("PYTHONPATH", installed);
    let status = cargo::run(&mut command)?;
    Ok((!status.success()).then(|| cargo::exit_code(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_given(words: &[&str], option: &str, expect: bool) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        assert_eq!(is_given(&words, option), expect, "{option} in {words:?}");
    }

    #[test]
    fn options_are_found_in_both_forms() {
        check_given(&["--uri", "x"], "--uri", true);
        check_given(&["--epochs", "2", "--uri=x"], "--uri", true);
        check_given(&["--epochs", "2"], "--uri", false);
        check_given(&["--output", "x"], "--out", false);
        check_given(&[], "--redraw", false);
    }

    #[test]
    fn the_script_is_there() {
        let root = cargo::workspace_root();
        let command = script(Path::new("python3"), &root, &["--redraw".into()]);
        let words: Vec<&Path> = command.get_args().map(Path::new).collect();
        assert!(words[1].is_file(), "{words:?}");
        assert_eq!(words[2], Path::new("--redraw"));
        assert!(root.join("benches/scvi/training.py").is_file());
    }
}
