//! Runs cargo in the environment that the native libraries need.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::native::Native;
use crate::progress::print_line;

/// The cargo that runs this process, so that a toolchain chosen on the command line stays.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    // cargo sets the variable when it runs us; the compile-time folder is for a binary started by
    // hand.
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = PathBuf::from(package);
    package.parent().map_or_else(|| package.clone(), Path::to_owned)
}

/// A command in the workspace's folder, in the environment of `native`; it may run cargo.
pub(crate) fn command(program: &OsStr, native: &Native) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace_root());
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_our_package(name)) {
        command.env_remove(name);
    }
    for name in &native.unset {
        command.env_remove(name);
    }
    command.envs(native.set.iter().map(|(name, value)| (name, value)));
    command
}

/// `cargo <arguments>`, not started yet.
pub(crate) fn cargo<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    native: &Native,
) -> Command {
    let mut command = command(&program(), native);
    command.args(arguments);
    command
}

/// Whether this variable describes `xtask` as cargo's current package.
///
/// Some build scripts (ring's) watch such variables. Passed on, by way of maturin too, they would
/// force a rebuild at each change between `cargo xtask test`, the wheel and `cargo test`.
fn is_of_our_package(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let exact = ["CARGO", "CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    exact.contains(&name) || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// The output of `cargo <arguments>`. Fails if cargo does.
pub(crate) fn output<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    native: &Native,
) -> anyhow::Result<String> {
    let mut command = cargo(arguments, native);
    let output = command.output().with_context(|| format!("cannot run `{}`", shown(&command)))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}", shown(&command), reason.trim());
    }
    String::from_utf8(output.stdout).context("cargo's answer is not UTF-8")
}

/// cargo's metadata of our packages; it neither builds nor downloads for this.
pub(crate) fn metadata(native: &Native) -> anyhow::Result<Value> {
    let text = output(["metadata", "--no-deps", "--format-version", "1"], native)?;
    serde_json::from_str(&text).context("cannot read `cargo metadata`")
}

/// Prints the command, runs it with our streams, and returns its exit status.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let shown = shown(command);
    print_line(&shown);
    command.status().with_context(|| format!("cannot run `{shown}`"))
}

/// The command as one could type it, without the folder of the program.
fn shown(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_else(|| command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(quoted);
    words.collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The child's exit code as ours; 128 + the signal if a signal ended it, like in a shell.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/somewhere/cargo");
        command.args(["run", "-b", "65536 / [1,4]", "it's", ""]);
        assert_eq!(shown(&command), r"cargo run -b '65536 / [1,4]' 'it'\''s' ''");
    }

    #[test]
    fn only_what_describes_this_package_is_kept_from_cargo() {
        for ours in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
            assert!(is_of_our_package(OsStr::new(ours)), "{ours}");
        }
        for users in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_NET_OFFLINE"] {
            assert!(!is_of_our_package(OsStr::new(users)), "{users}");
        }
    }

    #[test]
    fn workspace_root_holds_the_workspace() {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn the_environment_is_as_asked() {
        let native =
            Native { set: vec![("LIBTORCH", "/x".into())], unset: vec!["LIBTORCH_USE_PYTORCH"] };
        let command = command(OsStr::new("true"), &native);
        let changes: Vec<_> = command.get_envs().collect();
        assert!(changes.contains(&(OsStr::new("LIBTORCH"), Some(OsStr::new("/x")))));
        assert!(changes.contains(&(OsStr::new("LIBTORCH_USE_PYTORCH"), None)));
    }
}
