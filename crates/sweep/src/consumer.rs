//! What takes the batches from the loader, in place of a model.

use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done with each batch before it is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Consumer {
    /// Nothing.
    #[default]
    None,
    /// Sleep, as a device computes while the processor waits for it.
    Fixed {
        /// So many milliseconds.
        millis: f64,
    },
}

/// More than a day a batch is a slip of the hand.
const MOST_MILLIS: f64 = 86_400_000.0;

impl Consumer {
    /// Takes the time that a batch takes.
    pub(crate) fn take(self) {
        let millis = self.millis();
        if 0.0 < millis {
            thread::sleep(Duration::from_secs_f64(millis / 1e3));
        }
    }

    /// How long that is.
    pub(crate) fn millis(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Fixed { millis } => millis,
        }
    }

    /// As it is noted with each row.
    pub(crate) fn noted(self) -> Option<String> {
        (self != Self::None).then(|| self.to_string())
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Fixed { millis } => write!(f, "fixed:{millis}"),
        }
    }
}

impl FromStr for Consumer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let millis = text.strip_prefix("fixed:").ok_or("expected none or fixed:MILLIS")?;
        let number = millis.parse::<f64>().ok().filter(|n| (0.0..=MOST_MILLIS).contains(n));
        let millis = number.ok_or_else(|| format!("{millis:?} is no number of milliseconds"))?;
        Ok(Self::Fixed { millis })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_understood_as_they_are_written() {
        for text in ["none", "fixed:0", "fixed:2.5", "fixed:1000"] {
            assert_eq!(text.parse::<Consumer>().unwrap().to_string(), text);
        }
        assert_eq!(Consumer::None.noted(), None);
        for bad in ["", "fixed", "fixed:", "fixed:-1", "fixed:nan", "fixed:1e300", "linear"] {
            bad.parse::<Consumer>().unwrap_err();
        }
    }

    #[test]
    fn a_batch_takes_at_least_its_time() {
        let start = std::time::Instant::now();
        Consumer::Fixed { millis: 5.0 }.take();
        assert!(Duration::from_millis(5) <= start.elapsed());
        Consumer::None.take();
    }
}
