//! Memory, threads and descriptors of this process.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// Runs from this length on must be flat within [`FLAT`].
const LONG: Duration = Duration::from_mins(10);
/// Growth of memory in a long run, and in a short one, whose pools still fill.
const FLAT: f64 = 1.05;
const SHORT: f64 = 1.3;

/// Watches the process from before the first round to after the last.
pub(crate) struct Watch {
    started: Instant,
    duration: Duration,
    before: Open,
    /// Resident bytes, once a second.
    memory: Vec<(Duration, u64)>,
}

/// What is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    threads: usize,
    descriptors: usize,
}

impl Open {
    fn is_less_than(self, other: Self) -> bool {
        self.threads < other.threads || self.descriptors < other.descriptors
    }
}

/// What a run ended with.
pub(crate) struct Verdict {
    before: Open,
    after: Open,
    /// Median of resident bytes in the first and in the last quarter after the warm-up.
    early: u64,
    late: u64,
    most: f64,
}

impl Watch {
    pub(crate) fn start(duration: Duration) -> Self {
        Self { started: Instant::now(), duration, before: open(), memory: Vec::new() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The machine, in words.
    pub(crate) fn machine(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = model.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown");
        format!("{cores} cores of {model}; {} at the start", words(self.before))
    }

    /// Takes note of the memory, at most once a second.
    pub(crate) fn note(&mut self) {
        let at = self.elapsed();
        if self.memory.last().is_none_or(|last| last.0 + Duration::from_secs(1) <= at) {
            self.memory.push((at, status("VmRSS:")));
        }
    }

    /// The process now, in words.
    pub(crate) fn now() -> String {
        let mib = |entry: &str| status(entry) >> 20;
        format!("{} MiB, peak {} MiB, {}", mib("VmRSS:"), mib("VmHWM:"), words(open()))
    }

    /// Compares the end with the beginning. Threads that have ended may take a moment to go.
    pub(crate) fn verdict(&self) -> Verdict {
        let until = Instant::now() + Duration::from_secs(20);
        let mut after = open();
        while self.before.is_less_than(after) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            after = open();
        }
        let warm = Duration::from_mins(1).min(self.duration / 4);
        let first = self.memory.partition_point(|(at, _)| *at < warm);
        let mut warmed: Vec<u64> = self.memory[first..].iter().map(|(_, bytes)| *bytes).collect();
        let quarter = warmed.len().div_ceil(4);
        let late = median(&mut warmed.split_off(warmed.len() - quarter));
        warmed.truncate(quarter);
        let early = median(&mut warmed);
        let most = if LONG <= self.duration { FLAT } else { SHORT };
        Verdict { before: self.before, after, early, late, most }
    }
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        !self.before.is_less_than(self.after) && self.late as f64 <= self.early as f64 * self.most
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, early, late, most } = self;
        let grown = 100.0 * (*late as f64 / (*early).max(1) as f64 - 1.0);
        let (early, late, most) = (early >> 10, late >> 10, 100.0 * (most - 1.0));
        write!(
            f,
            "{}: memory {early} KiB, then {late} KiB ({grown:+.1} %, at most {most:.0} %; medians of \
             the first and last quarter after the first minute); {}, then {}",
            if self.is_good() { "good" } else { "BAD" },
            words(*before),
            words(*after)
        )?;
        if after.threads > before.threads {
            write!(f, ": {}", thread_names().join(", "))?;
        }
        Ok(())
    }
}

fn median(bytes: &mut [u64]) -> u64 {
    bytes.sort_unstable();
    bytes.get(bytes.len() / 2).copied().unwrap_or(0)
}

fn words(open: Open) -> String {
    format!("{} threads, {} descriptors", open.threads, open.descriptors)
}

fn open() -> Open {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    Open { threads: count("/proc/self/task"), descriptors: count("/proc/self/fd") }
}

fn thread_names() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
}

/// An entry of the process's status, in bytes.
fn status(entry: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(entry)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
