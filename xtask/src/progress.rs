//! Messages about long steps: one line at the start, one at the end, and a heartbeat in between if
//! there is no terminal. Everything goes to stderr, so that another program can read stdout.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Time between two heartbeats of a long step.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Whether stderr is a terminal, so that a child may draw its own progress bar.
pub(crate) fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints one line.
pub(crate) fn print_line(text: &str) {
    print_message(format_args!("xtask: {text}"));
}

/// Prints a message to stderr, which may be closed.
pub(crate) fn print_message(text: impl Display) {
    let _unread = writeln!(std::io::stderr(), "{text}");
}

/// Prints what was asked for to stdout. No failure if nobody reads it to its end, as `head` does.
///
/// # Errors
/// It cannot be written, for example to a full disk.
pub(crate) fn print_answer(text: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(()),
    }
}

/// A long step: prints a line when created, and its seconds when done.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    started: Instant,
}

impl Step {
    pub(crate) fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        print_line(&format!("{name} ..."));
        Self { name, started: Instant::now() }
    }

    /// Prints the number of bytes so far.
    pub(crate) fn so_far(&self, bytes: u64, total: u64) {
        let secs = self.started.elapsed().as_secs();
        print_line(&format!(
            "{}: {} of {} after {secs} s",
            self.name,
            megabytes(bytes.min(total)),
            megabytes(total)
        ));
    }

    /// Prints that the step is still running.
    pub(crate) fn still(&self) {
        print_line(&format!("{}: {} s so far", self.name, self.started.elapsed().as_secs()));
    }

    pub(crate) fn done(self) {
        print_line(&format!(
            "{}: done in {:.1} s",
            self.name,
            self.started.elapsed().as_secs_f64()
        ));
    }
}

/// Formats bytes like `530.6 MB`, in decimal units like package indexes.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_are_decimal() {
        assert_eq!(megabytes(530_604_548), "530.6 MB");
        assert_eq!(megabytes(0), "0.0 MB");
    }
}
