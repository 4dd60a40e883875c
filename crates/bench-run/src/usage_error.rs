//! A command line that asks for something that cannot be done.

use std::fmt;

/// The command line asks for something that cannot be done; programs exit with code 2.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    /// An error with a message of one line.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Makes a usage error of any error, with its causes.
    pub fn of(error: &anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
