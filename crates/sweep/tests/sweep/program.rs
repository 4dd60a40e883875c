//! The program as tests start it.

use std::path::Path;
use std::process::{Command, Stdio};

/// The program with these arguments, in a folder that has its cache, too.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweep"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::null());
    command
}
