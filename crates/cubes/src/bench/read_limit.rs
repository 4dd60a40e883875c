//! The limit on the rate of reads: what enforces it, and what was read under it.

use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;
use std::str::FromStr;

use bench_run::{Holder, IoLimit, KernelLimit, LimitBy, Rate, UsageError, format_rate};
use clap::Args;

/// A limit as typed: a rate, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitName(Option<NonZeroU64>);

impl FromStr for LimitName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let rate = text.parse::<Rate>().map_err(|error| format!("{error}, or none"))?;
        Ok(Self(Some(rate.bytes_per_second())))
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => f.write_str(&format_rate(rate.get() as f64)),
            None => f.write_str("none"),
        }
    }
}

/// Flags of the limits.
#[derive(Debug, Args)]
pub(crate) struct LimitFlags {
    /// Limits on the rate of reads: none, or a rate like 1000MiB/s, separated by commas
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "none")]
    pub(crate) io_limit: Vec<LimitName>,
    /// What enforces them: bucket counts the bytes that are asked for; kernel counts those that the
    /// disk reads, by a control group, where that is permitted
    #[arg(long, value_name = "MEANS", default_value = "bucket", value_parser = means)]
    io_limit_by: LimitBy,
}

fn means(text: &str) -> Result<LimitBy, String> {
    match text {
        "bucket" => Ok(LimitBy::Bucket),
        "kernel" => Ok(LimitBy::Kernel),
        _ => Err("expected bucket or kernel".to_owned()),
    }
}

/// The limits of a command, in force until this is dropped.
#[derive(Debug)]
pub(crate) struct LimitsInForce {
    pub(crate) limits: Vec<Option<IoLimit>>,
    _groups: Vec<KernelLimit>,
}

impl LimitFlags {
    /// Makes what enforces the limits for data in `folder`. Fails if the kernel's limit cannot be
    /// had.
    pub(crate) fn enforce(&self, folder: &Path) -> anyhow::Result<LimitsInForce> {
        let mut groups = Vec::new();
        let mut limits = Vec::new();
        for LimitName(rate) in &self.io_limit {
            let Some(bytes_per_second) = *rate else {
                limits.push(None);
                continue;
            };
            let by = if self.io_limit_by == LimitBy::Kernel {
                let group = KernelLimit::make(Some(folder), bytes_per_second).map_err(|why| {
                    UsageError::new(format!("--io-limit-by kernel cannot be had: {why}"))
                })?;
                let path = group.folder().to_owned();
                groups.push(group);
                Holder::Kernel(path)
            } else {
                Holder::Bucket
            };
            limits.push(Some(IoLimit { bytes_per_second, by }));
        }
        Ok(LimitsInForce { limits, _groups: groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(limits: &[&str], io_limit_by: LimitBy) -> LimitFlags {
        LimitFlags {
            io_limit: limits.iter().map(|text| text.parse().unwrap()).collect(),
            io_limit_by,
        }
    }

    #[test]
    fn limits_are_none_or_rates() {
        assert_eq!("none".parse(), Ok(LimitName(None)));
        assert_eq!("1000MiB/s".parse::<LimitName>().unwrap().to_string(), "1048.6 MB/s");
        assert!("fast".parse::<LimitName>().unwrap_err().ends_with("or none"));
        let limits = flags(&["none", "1MB/s"], LimitBy::Bucket).enforce(Path::new("x")).unwrap();
        assert_eq!(limits.limits[0], None);
        assert_eq!(limits.limits[1].as_ref().unwrap().to_string(), "1.0 MB/s by bucket");
    }

    #[test]
    fn the_kernel_limits_only_data_on_a_disk() {
        let error = flags(&["1MB/s"], LimitBy::Kernel).enforce(Path::new("/absent")).unwrap_err();
        assert!(error.to_string().contains("/absent"), "{error}");
        assert!(flags(&["none"], LimitBy::Kernel).enforce(Path::new("/absent")).is_ok());
    }
}
