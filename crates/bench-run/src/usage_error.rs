//! Error for a command line that cannot be executed.

use std::fmt;

/// The command line cannot be executed; programs exit with code 2.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    /// Makes an error with a message of one line.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Makes a usage error from any error, with its causes.
    pub fn from_error(error: &anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
