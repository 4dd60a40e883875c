//! What is said while long steps run: one line at the start, one at the end, and in between for those without a terminal.
//! Everything goes to stderr, so that what a command prints on stdout can be read by another.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// How often a long step says how far it is.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Whether a person sees what we say, so that a child may draw its own bar.
pub(crate) fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// One line.
pub(crate) fn say(text: &str) {
    eprintln!("xtask: {text}");
}

/// A step that takes a while: announced when made, its seconds said when done.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    started: Instant,
}

impl Step {
    pub(crate) fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        say(&format!("{name} ..."));
        Self { name, started: Instant::now() }
    }

    /// Says how many bytes there are so far.
    pub(crate) fn so_far(&self, bytes: u64, total: u64) {
        let secs = self.started.elapsed().as_secs();
        say(&format!(
            "{}: {} of {} after {secs} s",
            self.name,
            megabytes(bytes.min(total)),
            megabytes(total)
        ));
    }

    /// Says that the step goes on.
    pub(crate) fn still(&self) {
        say(&format!("{}: {} s so far", self.name, self.started.elapsed().as_secs()));
    }

    pub(crate) fn done(self) {
        say(&format!("{}: done in {:.1} s", self.name, self.started.elapsed().as_secs_f64()));
    }
}

/// `530.6 MB`; decimal, as package indexes show it.
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
