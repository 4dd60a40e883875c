//! Starts the program in tests.

use std::path::Path;
use std::process::{Command, Stdio};

use bench_run::TASK_VARIABLES;

/// Returns the program with these arguments, run in `folder`, which also has its cache.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweep"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::null());
    // A launcher that started the tests must not have them measure a part.
    for variable in TASK_VARIABLES {
        command.env_remove(variable);
    }
    command
}
