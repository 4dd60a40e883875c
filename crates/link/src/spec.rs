//! The shape of a link, and its text.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use crate::error::SpecError;

/// The word for a rate without a limit.
const UNLIMITED: &str = "unlimited";

/// Units of a rate. Those of 1,024 are read, but not written.
const RATE_UNITS: [(&str, u64); 7] = [
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("kB/s", 1_000),
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("KiB/s", 1 << 10),
    ("B/s", 1),
];

/// Units of a latency, in microseconds.
const TIME_UNITS: [(&str, u64); 3] = [("ms", 1_000), ("us", 1), ("s", 1_000_000)];

/// The longest latency; a longer one is surely a typo.
const MOST_LATENCY: Duration = Duration::from_mins(1);

/// The latency and the rates of a link.
///
/// As text: parts with commas between them, like `30ms,90MB/s,1GB/s`. The first part may be the
/// latency (`30ms`, `0.5s`, `200us`). Two rates are the rate of each connection and the rate of
/// all connections together; one rate is that of all connections together. A rate may be
/// `unlimited`: `30ms,90MB/s,unlimited` limits each connection alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSpec {
    /// Time from the end of a request to the first byte of its answer; rounded up to whole
    /// milliseconds when it is waited for.
    pub latency: Duration,
    /// Bytes per second of each connection; `None` for no limit.
    pub connection_bytes_per_sec: Option<NonZeroU64>,
    /// Bytes per second of all connections together; `None` for no limit.
    pub total_bytes_per_sec: Option<NonZeroU64>,
}

impl FromStr for LinkSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let refused = |problem: String| SpecError { text: text.to_owned(), problem };
        let mut parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_rate = |part: &str| part == UNLIMITED || part.ends_with("/s");
        let latency = match parts.first() {
            Some(first) if !is_rate(first) => {
                let latency = latency(first).ok_or_else(|| {
                    refused(format!("`{first}` is neither a time up to a minute nor a rate"))
                })?;
                parts.remove(0);
                latency
            }
            _ => Duration::ZERO,
        };
        let rate = |part: &&str| {
            if *part == UNLIMITED {
                return Ok(None);
            }
            let rate = rate(part);
            rate.map(Some).ok_or_else(|| refused(format!("`{part}` is not a rate above 0")))
        };
        let rates: Vec<Option<NonZeroU64>> = parts.iter().map(rate).collect::<Result<_, _>>()?;
        let (connection, total) = match rates[..] {
            [] => (None, None),
            [total] => (None, total),
            [connection, total] => (connection, total),
            _ => return Err(refused("it has more than two rates".to_owned())),
        };
        Ok(Self { latency, connection_bytes_per_sec: connection, total_bytes_per_sec: total })
    }
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.latency.as_micros();
        if micros.is_multiple_of(1_000) {
            write!(f, "{}ms", micros / 1_000)?;
        } else {
            write!(f, "{micros}us")?;
        }
        if let Some(rate) = self.connection_bytes_per_sec {
            write!(f, ",{}", RateText(Some(rate)))?;
        }
        if self.connection_bytes_per_sec.is_some() || self.total_bytes_per_sec.is_some() {
            write!(f, ",{}", RateText(self.total_bytes_per_sec))?;
        }
        Ok(())
    }
}

/// A rate in the largest decimal unit that divides it.
struct RateText(Option<NonZeroU64>);

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.0 else { return f.write_str(UNLIMITED) };
        let decimal = RATE_UNITS.iter().filter(|(name, _)| !name.contains('i'));
        for (name, bytes) in decimal {
            if rate.get().is_multiple_of(*bytes) {
                return write!(f, "{}{name}", rate.get() / bytes);
            }
        }
        write!(f, "{rate}B/s")
    }
}

/// A number above or equal to 0 with one of `units` after it, in the smallest unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<f64> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && 0.0 <= number).then(|| (number * factor as f64).round())
}

fn latency(text: &str) -> Option<Duration> {
    if text == "0" { Some(Duration::ZERO) } else { time(text) }
}

/// A time with its unit, up to a minute.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let time = Duration::from_micros(with_unit(text, &TIME_UNITS)? as u64);
    (time <= MOST_LATENCY).then_some(time)
}

fn rate(text: &str) -> Option<NonZeroU64> {
    NonZeroU64::new(with_unit(text, &RATE_UNITS)? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(millis: u64, connection: u64, total: u64) -> LinkSpec {
        LinkSpec {
            latency: Duration::from_millis(millis),
            connection_bytes_per_sec: NonZeroU64::new(connection),
            total_bytes_per_sec: NonZeroU64::new(total),
        }
    }

    #[test]
    fn links_have_a_latency_and_rates() {
        for (text, expected, shown) in [
            ("30ms,90MB/s,1GB/s", spec(30, 90_000_000, 1_000_000_000), "30ms,90MB/s,1GB/s"),
            ("30ms", spec(30, 0, 0), "30ms"),
            ("0", spec(0, 0, 0), "0ms"),
            ("0.5s, 1.5GB/s", spec(500, 0, 1_500_000_000), "500ms,1500MB/s"),
            ("90MB/s,unlimited", spec(0, 90_000_000, 0), "0ms,90MB/s,unlimited"),
            ("1ms,unlimited,2kB/s", spec(1, 0, 2_000), "1ms,2kB/s"),
            ("1MiB/s", spec(0, 0, 1 << 20), "0ms,1048576B/s"),
        ] {
            let parsed: LinkSpec = text.parse().unwrap();
            assert_eq!(parsed, expected, "{text}");
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(shown.parse::<LinkSpec>().unwrap(), expected, "{shown}");
        }
        let odd: LinkSpec = "250us".parse().unwrap();
        assert_eq!((odd.latency, odd.to_string().as_str()), (Duration::from_micros(250), "250us"));
    }

    #[test]
    fn other_texts_are_refused_with_an_example() {
        for text in
            ["", "fast", "30", "30ms,", "-1ms", "30ms,0MB/s", "1GB/s,30ms", "61s", "NaNms", "1GB"]
        {
            let error = text.parse::<LinkSpec>().unwrap_err().to_string();
            assert!(error.contains("30ms,90MB/s,1GB/s"), "{text}: {error}");
        }
        let error = "1ms,1MB/s,1MB/s,1MB/s".parse::<LinkSpec>().unwrap_err().to_string();
        assert!(error.contains("more than two rates"), "{error}");
    }
}
