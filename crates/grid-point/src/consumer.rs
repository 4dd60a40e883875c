//! Consumers of the loader's batches: a model, or a stand-in for one.

use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::feed::{Classifier, NO_TORCH, PointBatch, PointLoader};

/// Work on each batch before it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Consumer {
    /// Nothing.
    #[default]
    None,
    /// Sleep, like a processor that waits for a device.
    Fixed {
        /// Milliseconds of sleep.
        millis: f64,
    },
    /// Train a linear classifier on it.
    Linear {
        /// obs column with the classes.
        label: String,
    },
}

/// Longer than a day per batch is surely a typo.
const MOST_MILLIS: f64 = 86_400_000.0;

/// Label that a linear classifier learns by default.
const DEFAULT_LABEL: &str = "cell_type";

/// Name of the encoder of the classes; no obs column has this name.
pub(crate) const CLASSES: &str = "classes of --consumer linear";

impl Consumer {
    /// Returns the milliseconds of sleep per batch.
    pub fn millis(&self) -> f64 {
        match self {
            Self::Fixed { millis } => *millis,
            Self::None | Self::Linear { .. } => 0.0,
        }
    }

    /// Returns the obs column with the classes to learn.
    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Linear { label } => Some(label),
            Self::None | Self::Fixed { .. } => None,
        }
    }

    /// Returns the name recorded in each row; `None` if batches are only dropped.
    pub fn noted(&self) -> Option<String> {
        (*self != Self::None).then(|| self.to_string())
    }

    fn fixed(millis: &str) -> Result<Self, String> {
        let number = millis.parse::<f64>().ok();
        let number = number.filter(|n| (0.0..=MOST_MILLIS).contains(n));
        let millis = number.ok_or_else(|| format!("{millis:?} is no number of milliseconds"))?;
        Ok(Self::Fixed { millis })
    }

    /// Makes the consumer of the batches of `loader`. To learn, it needs codes of `n_classes`
    /// classes in the data set.
    ///
    /// # Errors
    /// It learns, and the program has no torch.
    pub(crate) fn ready(&self, loader: &PointLoader, n_classes: usize) -> anyhow::Result<Taker> {
        Ok(match self {
            Self::None => Taker::Drop,
            Self::Fixed { millis } => Taker::Sleep(Duration::from_secs_f64(millis / 1e3)),
            Self::Linear { .. } => Taker::Learn(Box::new(Classifier::new(loader, n_classes)?)),
        })
    }
}

/// A consumer that takes batches.
#[derive(Debug)]
pub(crate) enum Taker {
    Drop,
    Sleep(Duration),
    Learn(Box<Classifier>),
}

impl Taker {
    /// Consumes a batch; returns the time that it computed, `None` if it only drops batches. Fails
    /// if the model cannot train on it.
    pub(crate) fn take(&mut self, batch: &PointBatch) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Drop => Ok(None),
            Self::Sleep(time) => {
                if !time.is_zero() {
                    thread::sleep(*time);
                }
                // A sleep takes longer than asked for; an accelerator would not.
                Ok(Some(*time))
            }
            Self::Learn(model) => {
                let began = Instant::now();
                model.step_on(batch, CLASSES)?;
                Ok(Some(began.elapsed()))
            }
        }
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Fixed { millis } => write!(f, "fixed:{millis}"),
            Self::Linear { label } => write!(f, "linear:{label}"),
        }
    }
}

impl FromStr for Consumer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            _ if text.starts_with("linear") && !cfg!(feature = "torch") => Err(NO_TORCH.to_owned()),
            None if text == "none" => Ok(Self::None),
            None if text.ends_with("ms") => Self::fixed(text.trim_end_matches("ms")),
            None if text == "linear" => Ok(Self::Linear { label: DEFAULT_LABEL.to_owned() }),
            Some(("linear", "")) => Err("linear: names no obs column".to_owned()),
            Some(("linear", label)) => Ok(Self::Linear { label: label.to_owned() }),
            Some(("fixed", millis)) => Self::fixed(millis),
            _ => Err("expected none, fixed:MILLIS, linear or linear:COLUMN".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_understood_as_they_are_written() {
        for text in ["none", "fixed:0", "fixed:2.5", "fixed:1000", "linear:tissue:x"] {
            assert_eq!(text.parse::<Consumer>().unwrap().to_string(), text);
        }
        assert_eq!("2.5ms".parse::<Consumer>().unwrap(), Consumer::Fixed { millis: 2.5 });
        assert_eq!("linear".parse::<Consumer>().unwrap().label(), Some("cell_type"));
        assert_eq!(Consumer::None.noted(), None);
        for bad in [
            "",
            "fixed",
            "fixed:",
            "fixed:-1",
            "fixed:nan",
            "fixed:1e300",
            "linear:",
            "other:x",
            "ms",
            "2s",
        ] {
            bad.parse::<Consumer>().unwrap_err();
        }
    }
}
