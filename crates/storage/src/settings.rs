//! Parameters as numbers, truth values and times, and the time limits of requests.

use std::time::Duration;

use object_store::{BackoffConfig, RetryConfig};

use crate::error::Error;
use crate::options::Config;

/// No try begins later than this after the first.
const RETRY_LIMIT: &str = "soma.retry_limit_ms";
/// One try, from its beginning to its last byte.
const REQUEST_LIMIT: &str = "soma.request_limit_ms";

/// The parameters for an address.
pub(crate) struct Settings<'a> {
    address: &'a str,
    config: &'a Config,
}

/// Bounds on tries and times of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) tries: u64,
    pub(crate) retry_limit: Duration,
    pub(crate) connect: Duration,
    /// Without a byte arriving.
    pub(crate) stall: Duration,
    pub(crate) request: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tries: 8,
            retry_limit: Duration::from_mins(1),
            connect: Duration::from_millis(10_800),
            stall: Duration::from_secs(10),
            request: Duration::from_mins(2),
        }
    }
}

impl Limits {
    /// The defaults, changed by the parameters that all stores share.
    pub(crate) fn from_settings(settings: &Settings<'_>) -> Result<Self, Error> {
        let mut limits = Self::default();
        settings.put(&mut limits.retry_limit, RETRY_LIMIT)?;
        settings.put(&mut limits.request, REQUEST_LIMIT)?;
        Ok(limits)
    }

    pub(crate) fn retry(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: self.tries.saturating_sub(1) as usize,
            retry_timeout: self.retry_limit,
        }
    }
}

#[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "S3 has parameters of more kinds"))]
impl<'a> Settings<'a> {
    pub(crate) fn new(address: &'a str, config: &'a Config) -> Self {
        Self { address, config }
    }

    pub(crate) fn address(&self) -> &'a str {
        self.address
    }

    /// An error for settings that these clients cannot follow.
    pub(crate) fn unsupported(&self, reason: String) -> Error {
        Error::Unsupported { address: self.address.to_owned(), reason }
    }

    /// An error of making the store's client.
    pub(crate) fn client_error(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::Client { address: self.address.to_owned(), source: source.into() }
    }

    /// An error for a parameter that these clients do not know.
    pub(crate) fn unknown(&self, name: &str) -> Error {
        self.unsupported(format!("only libtiledb knows the parameter {name}"))
    }

    /// A parameter that is set and not empty: to TileDB an empty text is not set.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.config.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn truth(&self, name: &str) -> Result<Option<bool>, Error> {
        let truth = |value: &str| match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(refused(name, "it is neither true nor false")),
        };
        self.text(name).map(truth).transpose()
    }

    /// A number above 0.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let number = |value: &str| match value.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(refused(name, "it is not a number above 0")),
        };
        self.text(name).map(number).transpose()
    }

    /// Sets `time` to the parameter's milliseconds, if it is set.
    pub(crate) fn put(&self, time: &mut Duration, name: &str) -> Result<(), Error> {
        if let Some(milliseconds) = self.number(name)? {
            *time = Duration::from_millis(milliseconds);
        }
        Ok(())
    }

    /// The first parameter whose name begins with `prefix`.
    pub(crate) fn below(&self, prefix: &str) -> Option<&'a str> {
        self.config.keys().map(String::as_str).find(|name| name.starts_with(prefix))
    }
}

/// A parameter whose value cannot be used.
pub(crate) fn refused(name: &str, problem: &str) -> Error {
    Error::Parameter { name: name.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_or_refused_by_name() {
        let config = Config::from(
            [
                ("yes", "TRUE"),
                ("no", "0"),
                ("empty", ""),
                ("word", "often"),
                ("zero", "0"),
                (RETRY_LIMIT, "250"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let settings = Settings::new("s3://b/x", &config);
        assert_eq!(settings.truth("yes").unwrap(), Some(true));
        assert_eq!(settings.truth("no").unwrap(), Some(false));
        assert_eq!((settings.text("empty"), settings.truth("empty").unwrap()), (None, None));
        assert_eq!(settings.number("absent").unwrap(), None);
        for refused in [settings.number("zero").map(drop), settings.truth("word").map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert!(
                error.contains("parameter zero ") || error.contains("parameter word "),
                "{error}"
            );
            assert!(!error.contains("often"), "{error}");
        }
        let limits = Limits::from_settings(&settings).unwrap();
        assert_eq!(limits.retry_limit, Duration::from_millis(250));
        assert_eq!(
            Limits { retry_limit: Limits::default().retry_limit, ..limits },
            Limits::default()
        );
        assert_eq!(limits.retry().max_retries, 7);
    }
}
