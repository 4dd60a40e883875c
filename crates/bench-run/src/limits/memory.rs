//! Limits the memory of a measured process: by a control group if one may be made, otherwise by
//! `RLIMIT_DATA`, a limit on the private memory that it may request.
//!
//! A control group, in versions 1 and 2 of the kernel's interface, counts used memory, including
//! the page cache of the process's reads; the kernel gives up that cache before it kills a process.
//! `RLIMIT_DATA` counts requested memory: thread stacks and untouched memory count, mapped
//! libraries and files do not, unlike in `RLIMIT_AS`. A process that exceeds its group's limit is
//! killed; one that exceeds `RLIMIT_DATA` is refused memory, reports that and ends.

use std::io;

use anyhow::Context as _;
use bytesize::ByteSize;
use rustix::process::Pid;

use super::control_group::{Controller, Group, Place, Version};
use crate::kernel;

/// A memory limit, which is applied to one process after another.
#[derive(Debug)]
pub struct MemoryLimit {
    bytes: u64,
    means: Means,
}

#[derive(Debug)]
enum Means {
    Cgroup(Place),
    Rlimit,
}

/// Name of a group's file for the limit.
fn limit_file(version: Version) -> &'static str {
    match version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    }
}

/// Name of a group's file that counts the kernel's kills.
fn kills(version: Version) -> &'static str {
    match version {
        Version::One => "memory.oom_control",
        Version::Two => "memory.events",
    }
}

impl MemoryLimit {
    /// Makes a limit of `bytes`. A trial finds out whether a control group may enforce it. `taken`
    /// is the version of a group that processes join for another limit: a process can be in one
    /// group of version 2 only.
    pub fn new(bytes: u64, taken: Option<Version>) -> Self {
        let places = Place::all(Controller::Memory).unwrap_or_default().into_iter();
        let free = |place: &Place| (place.version, taken) != (Version::Two, Some(Version::Two));
        let usable = places
            .filter(free)
            .find(|place| group(place, 1 << 30).and_then(|group| group.try_add()).is_ok());
        Self { bytes, means: usable.map_or(Means::Rlimit, Means::Cgroup) }
    }

    /// Returns the limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How the limit is enforced; recorded in each row.
    pub fn by(&self) -> &'static str {
        match self.means {
            Means::Cgroup(_) => "cgroup",
            Means::Rlimit => "rlimit",
        }
    }

    /// Limits a process that has not begun to work. Fails if the kernel refuses.
    pub fn apply(&self, process: u32) -> anyhow::Result<LimitedProcess> {
        let limit = ByteSize(self.bytes).to_string();
        match &self.means {
            Means::Cgroup(place) => {
                let group = group(place, self.bytes)
                    .and_then(|group| group.add(process).map(|()| group))
                    .with_context(|| {
                        format!("cannot hold a point's process to --point-memory-limit {limit}")
                    })?;
                Ok(LimitedProcess { group: Some(group), limit })
            }
            Means::Rlimit => {
                let id = i32::try_from(process).ok().and_then(Pid::from_raw);
                kernel::limit_data(id.context("a process has a number")?, self.bytes)
                    .with_context(|| {
                        format!("cannot hold a point's process to --point-memory-limit {limit}")
                    })?;
                Ok(LimitedProcess { group: None, limit })
            }
        }
    }
}

/// A process under a limit. Must be dropped after the process has ended.
#[derive(Debug)]
pub struct LimitedProcess {
    group: Option<Group>,
    limit: String,
}

impl LimitedProcess {
    /// Returns a message if the control group killed the process at its limit.
    pub fn verdict(&self) -> Option<String> {
        let group = self.group.as_ref()?;
        let has_killed = n_kills(&group.read(kills(group.version()))) > 0;
        has_killed.then(|| {
            format!(
                "out of memory: killed at --point-memory-limit {} by its control group",
                self.limit
            )
        })
    }
}

/// Makes a group with this limit.
fn group(place: &Place, bytes: u64) -> io::Result<Group> {
    let group = place.make()?;
    group.set(limit_file(group.version()), &bytes.to_string())?;
    // Without these settings, the kernel slows down a process at its limit instead of killing it.
    // Not every kernel counts swap.
    let swap = match group.version() {
        Version::One => [("memory.swappiness", "0"), ("memory.oom_control", "0")],
        Version::Two => [("memory.swap.max", "0"), ("memory.oom.group", "1")],
    };
    for (file, value) in swap {
        let _unsupported = group.set(file, value);
    }
    Ok(group)
}

fn n_kills(noted: &str) -> u64 {
    let lines = noted.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(word, _)| *word == "oom_kill")
        .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn kills_are_counted_under_their_word() {
        assert_eq!(n_kills("low 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n"), 1);
        assert_eq!(n_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
        assert_eq!(n_kills(""), 0);
    }

    /// Uses `RLIMIT_DATA`, which is permitted everywhere.
    #[test]
    fn a_process_past_its_limit_is_refused_memory() {
        let limit = MemoryLimit { bytes: 64 << 20, means: Means::Rlimit };
        let mut shell = Command::new("sh")
            .args(["-c", "read go; exec head -c 300000000 /dev/zero | tail -n 1 >/dev/null"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let limited = limit.apply(shell.id()).unwrap();
        drop(shell.stdin.take());
        let output = shell.wait_with_output().unwrap();
        assert!(!output.status.success());
        assert_eq!((limited.verdict(), limit.by()), (None, "rlimit"));
    }
}
