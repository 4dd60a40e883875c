//! Tests of the program: files that are generated, imported, counted and measured.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod generator;
mod measurements;
mod peers;
mod program;
mod servers;
mod training;
mod tune;

use std::path::Path;
use std::process::Command;

/// Runs the program in `folder`; returns its exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sequences"));
    let output = command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Makes the store `store` of 48 sequences in `folder`.
fn store(folder: &Path) {
    for arguments in ["generate file.txt --size 48KB -q", "import file.txt store -q"] {
        let (code, _, messages) = run(folder, arguments);
        assert_eq!((code, messages.as_str()), (Some(0), ""));
    }
}
