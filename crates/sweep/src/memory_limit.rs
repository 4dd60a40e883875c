//! A limit on the memory of a point's process, above which it is ended: by a control group where one may be made, else by a limit on
//! the private memory that it may ask for.
//!
//! A control group counts what is used, the page cache that a process brings in among it (which is given up before a process is
//! ended), in version 1 and 2 of the kernel's interface. `RLIMIT_DATA` counts what is asked for: libraries and files that are mapped
//! are not in it, as they would be in `RLIMIT_AS`, but stacks of threads and memory never touched are. A process that is past its
//! group's limit is killed; one that is past the other is refused memory, and says so and ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;
use bytesize::ByteSize;
use rustix::process::{Pid, Resource, Rlimit};

/// A limit for one process after another.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    bytes: u64,
    means: Means,
    n_held: AtomicU64,
}

/// What names of our groups begin with; the sweep's process and the group's number follow.
const GROUP: &str = "somafeed-point-";

#[derive(Debug)]
enum Means {
    Cgroup(Hierarchy),
    Rlimit,
}

/// A folder of control groups in which groups may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }

    /// Where the kernel notes how often it killed, and under which word.
    fn kills(self) -> &'static str {
        match self {
            Self::One => "memory.oom_control",
            Self::Two => "memory.events",
        }
    }
}

impl MemoryLimit {
    /// Finds out what is permitted, with a process that `program` starts and that waits on its stdin.
    pub(crate) fn new(bytes: u64, program: &Path) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let found = candidates(&read("/proc/self/mounts"), &read("/proc/self/cgroup"));
        let usable = found.into_iter().find(|hierarchy| is_usable(hierarchy, program));
        if let Some(hierarchy) = &usable {
            remove_stale(&hierarchy.folder);
        }
        let means = usable.map_or(Means::Rlimit, Means::Cgroup);
        Self { bytes, means, n_held: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// As it is noted with each row.
    pub(crate) fn by(&self) -> &'static str {
        match self.means {
            Means::Cgroup(_) => "cgroup",
            Means::Rlimit => "rlimit",
        }
    }

    /// Holds a process that has not begun to work to the limit.
    pub(crate) fn hold(&self, process: u32) -> anyhow::Result<Held> {
        let number = self.n_held.fetch_add(1, Ordering::Relaxed);
        let limit = ByteSize(self.bytes).to_string();
        match &self.means {
            Means::Cgroup(hierarchy) => {
                let group = Group::make(hierarchy, number, self.bytes)
                    .and_then(|group| group.add(process).map(|()| group))
                    .with_context(|| {
                        format!("cannot hold a point's process to --point-memory-limit {limit}")
                    })?;
                Ok(Held { group: Some(group), limit })
            }
            Means::Rlimit => {
                let most = Some(self.bytes);
                let both = Rlimit { current: most, maximum: most };
                let id = i32::try_from(process).ok().and_then(Pid::from_raw);
                hold_data(id.context("a process has a number")?, both).with_context(|| {
                    format!("cannot hold a point's process to --point-memory-limit {limit}")
                })?;
                Ok(Held { group: None, limit })
            }
        }
    }
}

/// Limits the private memory that another process may have.
fn hold_data(id: Pid, limit: Rlimit) -> io::Result<()> {
    rustix::process::prlimit(Some(id), Resource::Data, limit)?;
    Ok(())
}

/// A process that is held to a limit, until it has ended and this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    group: Option<Group>,
    limit: String,
}

impl Held {
    /// Why the process was killed, if its limit was the reason.
    pub(crate) fn verdict(&self) -> Option<String> {
        let group = self.group.as_ref()?;
        group.has_killed().then(|| {
            format!(
                "out of memory: killed at --point-memory-limit {} by its control group",
                self.limit
            )
        })
    }
}

/// A control group of one process.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    version: Version,
}

impl Group {
    fn make(hierarchy: &Hierarchy, number: u64, bytes: u64) -> io::Result<Self> {
        let name = format!("{GROUP}{}-{number}", std::process::id());
        let folder = hierarchy.folder.join(name);
        fs::create_dir(&folder)?;
        let group = Self { folder, version: hierarchy.version };
        group.write(group.version.limit_file(), &bytes.to_string())?;
        // Without these a process at its limit is slowed down rather than ended. Not every kernel counts swap.
        let swap = match group.version {
            Version::One => [("memory.swappiness", "0"), ("memory.oom_control", "0")],
            Version::Two => [("memory.swap.max", "0"), ("memory.oom.group", "1")],
        };
        for (file, value) in swap {
            let _unsupported = group.write(file, value);
        }
        Ok(group)
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), value)
    }

    fn add(&self, process: u32) -> io::Result<()> {
        self.write("cgroup.procs", &process.to_string())
    }

    fn has_killed(&self) -> bool {
        let noted = fs::read_to_string(self.folder.join(self.version.kills())).unwrap_or_default();
        n_kills(&noted) > 0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel lets go of a process a moment after it can be waited for.
        for _ in 0..20 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

fn n_kills(noted: &str) -> u64 {
    let lines = noted.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(word, _)| *word == "oom_kill")
        .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
        .sum()
}

/// Where groups could be made: in the group that this process is in, beside it, or at the root; of version 2 first.
fn candidates(mounts: &str, groups: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for version in [Version::Two, Version::One] {
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (at, kind, options) = (words.next()?, words.next()?, words.next()?);
            let fits = match version {
                Version::Two => kind == "cgroup2",
                Version::One => kind == "cgroup" && options.split(',').any(|one| one == "memory"),
            };
            fits.then(|| PathBuf::from(at))
        });
        let own = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let fits = match version {
                Version::Two => controllers.is_empty(),
                Version::One => controllers.split(',').any(|one| one == "memory"),
            };
            fits.then(|| path.trim_start_matches('/').to_owned())
        });
        let (Some(mount), Some(own)) = (mount, own) else { continue };
        let own = mount.join(own);
        let beside = own.parent().filter(|folder| folder.starts_with(&mount)).map(Path::to_owned);
        for folder in [Some(own), beside, Some(mount)].into_iter().flatten() {
            let folder = PathBuf::from(folder.to_string_lossy().trim_end_matches('/'));
            let one = Hierarchy { folder, version };
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// Removes the groups of sweeps that were killed. One that is not empty stays, and so does one of a sweep that runs.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let sweep = name.to_str().and_then(|name| name.strip_prefix(GROUP)?.split('-').next());
        if sweep.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            // What cannot be removed does no harm.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}

/// Whether a group can be made there, limits memory, and takes a process of ours.
fn is_usable(hierarchy: &Hierarchy, program: &Path) -> bool {
    let Ok(group) = Group::make(hierarchy, u64::MAX, 1 << 30) else { return false };
    if !group.folder.join(hierarchy.version.limit_file()).is_file() {
        return false;
    }
    let mut waiting = Command::new(program);
    waiting.arg("point").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut waiting) = waiting.spawn() else { return false };
    let added = group.add(waiting.id());
    let ended = waiting.kill().and_then(|()| waiting.wait());
    added.is_ok() && ended.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mounts: &str, groups: &str, expect: &[(&str, Version)]) {
        let expect =
            expect.iter().map(|&(folder, version)| Hierarchy { folder: folder.into(), version });
        assert_eq!(candidates(mounts, groups), expect.collect::<Vec<_>>());
    }

    #[test]
    fn groups_are_looked_for_where_they_could_be() {
        check(
            "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
            "0::/user.slice/app.slice/run.scope\n",
            &[
                ("/sys/fs/cgroup/user.slice/app.slice/run.scope", Version::Two),
                ("/sys/fs/cgroup/user.slice/app.slice", Version::Two),
                ("/sys/fs/cgroup", Version::Two),
            ],
        );
        check(
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "0::/\n",
            &[("/sys/fs/cgroup", Version::Two)],
        );
        check(
            "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/memory cgroup rw,memory 0 0\n",
            "4:memory:/a\n1:cpu:/b\n0::/\n",
            &[("/c/memory/a", Version::One), ("/c/memory", Version::One)],
        );
        check("tmpfs /tmp tmpfs rw 0 0\n", "4:memory:/a\n", &[]);
        check("", "", &[]);
    }

    #[test]
    fn kills_are_counted_under_their_word() {
        assert_eq!(n_kills("low 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n"), 1);
        assert_eq!(n_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
        assert_eq!(n_kills(""), 0);
    }

    #[test]
    fn groups_of_dead_sweeps_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let names = [format!("{GROUP}999999999-0"), format!("{GROUP}{own}-0"), "other".to_owned()];
        for name in &names {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        remove_stale(folder.path());
        let is_there = names.map(|name| folder.path().join(name).exists());
        assert_eq!(is_there, [false, true, true]);
    }

    /// By the limit that is permitted everywhere.
    #[test]
    fn a_process_past_its_limit_is_refused_memory() {
        let limit =
            MemoryLimit { bytes: 64 << 20, means: Means::Rlimit, n_held: AtomicU64::new(0) };
        let mut shell = Command::new("sh")
            .args(["-c", "read go; exec head -c 300000000 /dev/zero | tail -n 1 >/dev/null"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let held = limit.hold(shell.id()).unwrap();
        drop(shell.stdin.take());
        let output = shell.wait_with_output().unwrap();
        assert!(!output.status.success());
        assert_eq!((held.verdict(), limit.by()), (None, "rlimit"));
    }
}
