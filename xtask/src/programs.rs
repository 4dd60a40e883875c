//! `cargo xtask fields`, `cubes` and `sequences`: builds the program for fields on a grid, image
//! cubes or sequences and becomes it. For its command `peers` it makes the Python environment with
//! the other readers first.
//!
//! None needs a native library, except `cubes sweep` if it trains on the batches (`--consumer cpu`
//! or `cuda`): then libtorch is installed and `cubes` built with its feature `torch`.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::sweep::{self, Needs, Program};
use crate::{cargo, peers, redis};

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build(package(name), name, &needs(name, arguments))? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let Some((subcommand, rest)) = arguments.split_first() else {
        return Program::exec(program.command("help")?);
    };
    if name == "sequences" && starts_servers(rest) {
        redis::prepare()?;
    }
    let mut command = program.command(subcommand)?;
    if matches!(subcommand.to_str(), Some("sweep" | "queue" | "tune" | "peers")) {
        command.args(sweep::results_arguments());
    }
    if subcommand == "peers" && !peers::asks_for_help(rest) {
        let scripts = cargo::workspace_root().join("benches/peers");
        let uses_wheel = reads_with_wheel(rest);
        command.arg("--python").arg(peers::prepare(name, &scripts, uses_wheel)?);
        command.arg("--script").arg(scripts.join(format!("{name}.py")));
    }
    command.args(rest);
    Program::exec(command)
}

/// The package with a program.
fn package(program: &str) -> &str {
    // `sequences` is the library below it.
    if program == "sequences" { "sequence-bench" } else { program }
}

/// What the program needs for these arguments: torch if it trains on the batches, the client of an
/// object store if there is an address or a link.
fn needs(name: &str, arguments: &[OsString]) -> Needs {
    let trains = name == "cubes"
        && arguments.first().is_some_and(|first| first == "sweep")
        && value_of("--consumer", arguments)
            .is_some_and(|kind| kind == "cpu" || kind.starts_with("cuda"));
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let is_remote =
        name == "fields" && words.any(|word| word.contains("://") || word.starts_with("--link"));
    let features = [(trains, "torch"), (is_remote, "s3")];
    let features = features.into_iter().filter_map(|(is_needed, name)| is_needed.then_some(name));
    Needs { libtorch: trains, libtiledb: false, features: features.collect() }
}

/// Whether the command starts a cluster of servers.
fn starts_servers(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    words.any(|word| word == "--cluster" || word.starts_with("--cluster="))
}

/// Whether `peers` runs the wheel of this workspace: one of its readers, which all run by default.
fn reads_with_wheel(arguments: &[OsString]) -> bool {
    let readers = value_of("--readers", arguments);
    readers.is_none_or(|readers| readers.split(',').any(|name| name == "somafeed-python"))
}

/// The value of a flag. If it comes twice, the program refuses it.
fn value_of<'a>(flag: &str, arguments: &'a [OsString]) -> Option<&'a str> {
    let words = || arguments.iter().filter_map(|word| word.to_str());
    let after = words().zip(words().skip(1)).filter(|(name, _)| *name == flag);
    let joined = words().filter_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
    after.map(|(_, value)| value).chain(joined).last()
}

/// `cargo xtask preprocess`: short for the command of `cubes`.
pub(crate) fn preprocess(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let subcommand = std::iter::once("preprocess".into());
    let arguments: Vec<OsString> = subcommand.chain(arguments.iter().cloned()).collect();
    run("cubes", &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, features: &[&str]) {
        let arguments: Vec<OsString> = arguments.split(' ').map(Into::into).collect();
        let found = needs(name, &arguments);
        assert_eq!(found.features, features, "{name} {arguments:?}");
        assert_eq!(found.libtorch, features.contains(&"torch"));
    }

    #[test]
    fn a_program_has_what_its_arguments_need() {
        check("cubes", "sweep data --consumer cuda -B 6", &["torch"]);
        check("cubes", "sweep data --consumer=cuda:1", &["torch"]);
        check("cubes", "sweep --consumer cpu data", &["torch"]);
        check("cubes", "sweep data --consumer stand-in", &[]);
        check("cubes", "sweep data --consumer", &[]);
        check("cubes", "peers data --consumer cuda", &[]);
        check("fields", "queue data --consumer 500", &[]);
        check("fields", "sweep data --link 30ms", &["s3"]);
        check("fields", "sweep s3://bucket/data", &["s3"]);
    }
    #[test]
    fn the_wheel_is_made_if_a_reader_is_it() {
        let uses = |arguments: &str| {
            let arguments: Vec<OsString> = arguments.split(' ').map(Into::into).collect();
            reads_with_wheel(&arguments)
        };
        assert!(uses("data") && uses("data --readers ring,somafeed-python"));
        assert!(!uses("data --readers ring") && !uses("data --readers=ring,spdl -w 2"));
    }
}
