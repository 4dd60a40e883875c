//! The load of each core of the machine, sampled while a measurement runs.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::device::Clock;
use crate::sampler::{INTERVAL, Sampler};

const STAT: &str = "/proc/stat";

/// Samples the load of all cores until it is dropped.
#[derive(Debug)]
pub(crate) struct CoreLoads(Sampler<Vec<f64>>);

impl CoreLoads {
    /// Starts the thread that samples. Fails if the kernel does not report the use of cores.
    pub(crate) fn start(clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut before = read()?;
        // The load of each core since the sample before, 0 to 1.
        let sample = move || {
            let now = read()?;
            let loads = loads(&before, &now);
            before = now;
            Ok(loads)
        };
        Ok(Self(Sampler::start("core-loads", clock, INTERVAL, sample)?))
    }

    /// The samples between two times: all cores of the first, then those of the second, and so on.
    /// Fails if the use of cores could not be read.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> anyhow::Result<Vec<f64>> {
        self.0.samples(|samples| {
            let inside = samples.iter().filter(|(at, _)| (from..=to).contains(at));
            inside.flat_map(|(_, loads)| loads.iter().copied()).collect()
        })
    }
}

/// Ticks of a core since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
}

fn read() -> anyhow::Result<Vec<Ticks>> {
    let text = fs::read_to_string(STAT).with_context(|| format!("cannot read {STAT}"))?;
    let ticks = parse(&text);
    anyhow::ensure!(!ticks.is_empty(), "{STAT} names no core");
    Ok(ticks)
}

/// The ticks of each core. A line of a core is `cpu0 user nice system idle iowait irq softirq
/// steal` and more; guests' time is part of the user's.
fn parse(text: &str) -> Vec<Ticks> {
    let of_core = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        // The line of all cores together has no number.
        words.next().filter(|_| !line.starts_with("cpu "))?;
        let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
        Some(Ticks { all: ticks.iter().sum(), idle })
    };
    text.lines().filter_map(of_core).collect()
}

/// The load of each core between two reads; 0 if no tick has passed.
fn loads(before: &[Ticks], now: &[Ticks]) -> Vec<f64> {
    let of_core = |(before, now): (&Ticks, &Ticks)| {
        let all = now.all.saturating_sub(before.all);
        let idle = now.idle.saturating_sub(before.idle).min(all);
        if all == 0 { 0.0 } else { (all - idle) as f64 / all as f64 }
    };
    before.iter().zip(now).map(of_core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SystemClock;

    #[test]
    fn the_load_of_each_core_follows_from_its_ticks() {
        let before = parse(
            "cpu  10 0 10 180 0 0 0 0 0 0\ncpu0 5 0 5 90 0 0 0 0 0 0\n\
             cpu1 5 0 5 90 0 0 0 0 0 0\nintr 1 2 3\nctxt 5\n",
        );
        assert_eq!(before, [Ticks { all: 100, idle: 90 }; 2]);
        let now = parse("cpu0 15 0 5 95 5 0 0 0 99 0\ncpu1 5 0 5 90 0 0 0 0 0 0\n");
        assert_eq!(loads(&before, &now), [0.5, 0.0]);
        assert_eq!(parse("cpu0 1 2\n"), []);
    }

    #[test]
    fn this_machine_can_be_sampled() {
        let loads = CoreLoads::start(Arc::new(SystemClock::default())).unwrap();
        assert!(loads.between(Duration::MAX, Duration::MAX).unwrap().is_empty());
        drop(loads);
    }
}
