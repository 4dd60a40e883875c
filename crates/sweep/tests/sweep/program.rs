//! Starts the program in tests.

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the program with these arguments, run in `folder`, which also has its cache.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweep"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::null());
    command
}
