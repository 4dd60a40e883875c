//! Experiments of which tiledbsoma deletes cells.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use serde_json::Value;

use crate::python;

/// How often the scripts may begin again.
const ATTEMPTS: usize = 4;

/// Runs scripts that make the experiment at `path`, with their further arguments, and returns what
/// the last one prints.
///
/// tiledbsoma 2.3.0 now and then damages its own memory when it deletes by a value filter: one run
/// of fifty ended with a signal. What such a run has written says nothing, so all begins again.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a test prints what it ran again")]
pub(crate) fn make(python: &Path, path: &Path, scripts: &[(&str, &[&str])]) -> Value {
    let mut attempts = 0..ATTEMPTS;
    'attempt: loop {
        attempts.next();
        let mut last = Value::Null;
        for (script, others) in scripts {
            let arguments = [&[path.to_str().unwrap()], *others].concat();
            let output = python::output(python, script, &arguments);
            if let (Some(signal), false) = (output.status.signal(), attempts.is_empty()) {
                eprintln!("{script} of tiledbsoma ended with signal {signal}: once more");
                if path.exists() {
                    fs::remove_dir_all(path).unwrap();
                }
                continue 'attempt;
            }
            last = python::printed(&output, script);
        }
        return last;
    }
}
