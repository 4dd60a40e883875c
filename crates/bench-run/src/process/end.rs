//! How a measured process ended, and why.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use bench_report::{Measured, Status};

use super::tree::TreePeak;

const SIGKILL: i32 = 9;

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It reported that it was done.
    Done {
        /// Peak memory of the process and its child processes together, if it had child processes.
        tree: Option<TreePeak>,
    },
    /// It did not finish.
    Failed(Failure),
    /// The user interrupted it.
    Interrupted,
}

/// Why a process did not finish.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub status: Status,
    /// Reason in one line.
    pub message: String,
    /// Highest sampled peak memory, in bytes: the process can no longer report it.
    pub peak_bytes: Option<u64>,
}

impl Failure {
    /// Returns the outcome of an epoch that this failure ended.
    pub fn measured(&self) -> Measured {
        let measured = Measured::failed(self.status, self.message.clone());
        Measured { max_mem: self.peak_bytes, ..measured }
    }
}

/// Interprets the end of a process that gave no reason.
pub(super) fn death(status: ExitStatus, stderr: &str) -> (Status, String) {
    let words = last_words(stderr);
    let quoted = if words.is_empty() { String::new() } else { format!(": {words}") };
    match (status.signal(), status.code()) {
        (Some(SIGKILL), _) => (
            Status::Oom,
            "killed (signal 9), as the kernel does when memory runs out: take smaller blocks"
                .to_owned(),
        ),
        (Some(_), _) if looks_like_oom(stderr) => (Status::Oom, format!("out of memory{quoted}")),
        (Some(signal), _) => (
            Status::Crashed,
            format!("crashed with signal {signal}{}{quoted}", signal_name(signal)),
        ),
        (None, Some(0)) => (Status::Crashed, "the process ended without a result".to_owned()),
        (None, Some(code)) => {
            (Status::Crashed, format!("the process ended with exit code {code}{quoted}"))
        }
        (None, None) => (Status::Crashed, format!("the process ended unexpectedly{quoted}")),
    }
}

/// Whether a text is an out-of-memory message of Rust, C++, Python, libtorch, the system or ours.
pub(super) fn looks_like_oom(text: &str) -> bool {
    [
        "memory allocation of",
        "memory allocation failed",
        "bad_alloc",
        "not enough memory",
        "an't allocate memory",
        "annot allocate memory",
        "out of memory",
        "MemoryError",
    ]
    .iter()
    .any(|words| text.contains(words))
        // This is our own message.
        || (text.contains("cannot get ") && text.contains(" bytes for "))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        11 => " (segmentation fault)",
        15 => " (asked to end)",
        _ => "",
    }
}

/// Returns the most informative line: the message of a panic, otherwise the last line.
fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let panic = lines
        .iter()
        .position(|line| line.contains("panicked at"))
        .and_then(|idx| lines.get(idx + 1));
    panic.or_else(|| lines.last()).map_or_else(String::new, |line| (*line).to_owned())
}
