//! The kernel's limit on what a device reads for a control group: `io.max` of cgroup v2, or `blkio.throttle.read_bps_device` of v1.
//!
//! A group of its own is made below this process's own, or with v2 beside it, where a group with processes may have none below with
//! controllers. Whether all of it is permitted is found by doing it, with a process that does nothing. The group is removed again.

use std::fs;
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::page_cache;

/// A control group that holds what is in it to a rate. Dropping it removes the group, which must be empty then.
#[derive(Debug)]
pub(crate) struct KernelLimit {
    folder: PathBuf,
}

impl KernelLimit {
    /// Holds what is read from the disk of the data at `uri`. The error says why that cannot be.
    pub(crate) fn make(uri: &str, bytes_per_second: NonZeroU64) -> Result<Self, String> {
        let path = page_cache::local_path(uri)
            .ok_or_else(|| "the data is not on a disk of this machine".to_owned())?;
        let device = device(&path)?;
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let groups = Groups::find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
        let mut reasons = Vec::new();
        for parent in groups.parents() {
            match Self::below(&parent, groups.version, &device, bytes_per_second) {
                Ok(made) => return Ok(made),
                Err(error) => reasons.push(format!("{}: {error}", parent.display())),
            }
        }
        Err(reasons.join("; "))
    }

    fn below(
        parent: &Path,
        version: Version,
        device: &str,
        bytes_per_second: NonZeroU64,
    ) -> io::Result<Self> {
        if version == Version::Two {
            let enabled = parent.join("cgroup.subtree_control");
            if !fs::read_to_string(&enabled)?.split_whitespace().any(|name| name == "io") {
                write(&enabled, "+io")?;
            }
        }
        remove_left_behind(parent);
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let made = Self { folder };
        let (file, limit) = match version {
            Version::One => {
                ("blkio.throttle.read_bps_device", format!("{device} {bytes_per_second}"))
            }
            Version::Two => ("io.max", format!("{device} rbps={bytes_per_second}")),
        };
        write(&made.folder.join(file), &limit)?;
        made.try_to_join()?;
        Ok(made)
    }

    /// Sees whether a process can be put into the group.
    fn try_to_join(&self) -> io::Result<()> {
        let mut waiting = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let joined = join(&self.folder, waiting.id());
        drop(waiting.stdin.take());
        waiting.wait()?;
        joined
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for KernelLimit {
    fn drop(&mut self) {
        // One that stays is empty and holds nobody; a later run removes it.
        let _removed = fs::remove_dir(&self.folder);
    }
}

/// What the names of our groups begin with; the number of the process that made it follows.
const PREFIX: &str = "somafeed-";

/// Removes groups of processes that were killed. The kernel refuses to remove one that is not empty.
fn remove_left_behind(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let maker = process.and_then(|process| process.parse::<u32>().ok());
        let is_own = maker == Some(std::process::id());
        let is_gone = |maker: u32| !Path::new(&format!("/proc/{maker}")).exists();
        if is_own || maker.is_some_and(is_gone) {
            // Another run may have been quicker.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}

/// Puts a process into a group.
pub(crate) fn join(folder: &Path, process: u32) -> io::Result<()> {
    write(&folder.join("cgroup.procs"), &process.to_string())
}

/// In one call, and never making a file where there is none.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let named = |error: io::Error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::new(error.kind(), format!("cannot write {name}: {error}"))
    };
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(named)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where this process's control group for I/O is.
#[derive(Debug, PartialEq, Eq)]
struct Groups {
    version: Version,
    mounted_at: PathBuf,
    own: PathBuf,
}

impl Groups {
    /// From `/proc/self/cgroup` and `/proc/self/mountinfo`. Version 1 where it has the controller, for it cannot be in both.
    fn find(cgroup: &str, mountinfo: &str) -> Result<Self, String> {
        let of_two = |controllers: &str| controllers.is_empty();
        let of_one = |controllers: &str| controllers.split(',').any(|name| name == "blkio");
        let one = Self::of(Version::One, cgroup, mountinfo, &of_one);
        one.or_else(|| Self::of(Version::Two, cgroup, mountinfo, &of_two))
            .ok_or_else(|| "no control groups for I/O are mounted".to_owned())
    }

    fn of(
        version: Version,
        cgroup: &str,
        mountinfo: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        let (mounted_root, mounted_at) = mountinfo.lines().find_map(|line| mount(line, version))?;
        let path = cgroup.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            is_wanted(controllers).then(|| PathBuf::from(path))
        })?;
        // Of a container only its own part may be mounted; then what is mounted is its group.
        let below = path.strip_prefix(&mounted_root).unwrap_or_else(|_| Path::new(""));
        Some(Self { version, own: mounted_at.join(below), mounted_at })
    }

    /// Groups below which one may be made, the own one first.
    fn parents(&self) -> Vec<PathBuf> {
        let mut parents = vec![self.own.clone()];
        if self.version == Version::Two && self.own != self.mounted_at {
            parents.extend(self.own.parent().map(Path::to_owned));
        }
        parents
    }
}

/// Root and place of a line of `mountinfo`, where it is one of a hierarchy with the controller.
fn mount(line: &str, version: Version) -> Option<(PathBuf, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    let mut kind = after.split(' ');
    let (file_system, options) = (kind.next()?, kind.nth(1)?);
    let fits = match version {
        Version::One => file_system == "cgroup" && options.split(',').any(|name| name == "blkio"),
        Version::Two => file_system == "cgroup2",
    };
    fits.then(|| (PathBuf::from(root), PathBuf::from(place)))
}

/// `major:minor` of the disk that holds `path`: of a partition, that of the whole.
fn device(path: &Path) -> Result<String, String> {
    let number = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.dev();
    let (major, minor) = major_minor(number);
    let place = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let place = fs::canonicalize(&place).map_err(|_| {
        format!(
            "{} is on a file system without a disk of its own ({major}:{minor})",
            path.display()
        )
    })?;
    let whole = match place.parent() {
        Some(whole) if place.join("partition").exists() => whole,
        _ => &place,
    };
    let name = whole.join("dev");
    let text = fs::read_to_string(&name).map_err(|error| format!("{}: {error}", name.display()))?;
    Ok(text.trim().to_owned())
}

/// As the kernel packs them into 64 bits.
fn major_minor(number: u64) -> (u64, u64) {
    let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
    let minor = (number & 0xff) | ((number >> 12) & !0xff & 0xffff_ffff);
    (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTED_TWO: &str = "25 20 0:22 / /proc rw - proc proc rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const MOUNTED_BOTH: &str = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 30 0:28 /docker/1a /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
        33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found() {
        let found = Groups::find("0::/user.slice/a.scope\n", MOUNTED_TWO).unwrap();
        assert_eq!(found.version, Version::Two);
        let folders =
            ["/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice"].map(PathBuf::from);
        assert_eq!(found.parents(), folders);
        // A hierarchy of version 1 with the controller, of which a container's part is mounted.
        let cgroup = "9:name=systemd:/\n7:blkio:/docker/1a/b\n0::/\n";
        let found = Groups::find(cgroup, MOUNTED_BOTH).unwrap();
        assert_eq!(found.version, Version::One);
        assert_eq!(found.parents(), [PathBuf::from("/sys/fs/cgroup/blkio/b")]);
        let found = Groups::find("0::/\n", MOUNTED_TWO).unwrap();
        assert_eq!(found.parents(), [PathBuf::from("/sys/fs/cgroup")]);
        for (cgroup, mountinfo) in [("", MOUNTED_TWO), ("0::/\n", ""), ("rubbish", "rubbish")] {
            Groups::find(cgroup, mountinfo).unwrap_err();
        }
    }

    #[test]
    fn devices_are_unpacked_as_the_kernel_packs_them() {
        assert_eq!(major_minor(65_024), (254, 0));
        assert_eq!(major_minor(0x801), (8, 1));
        assert_eq!(major_minor(0x0000_1001_2003_45ab), (0x1345, 0x0012_00ab));
    }

    #[test]
    fn nothing_is_made_where_there_is_no_group() {
        let folder = tempfile::tempdir().unwrap();
        let rate = NonZeroU64::new(1_000_000).unwrap();
        for version in [Version::One, Version::Two] {
            KernelLimit::below(folder.path(), version, "8:0", rate).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        join(folder.path(), 1).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn groups_of_processes_that_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["somafeed-1", "somafeed-4294967295", "somafeed-x", "other"];
        for name in names {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        remove_left_behind(folder.path());
        let is_left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(is_left, [true, false, true, true]);
    }

    #[test]
    fn what_is_not_on_a_disk_is_told() {
        let rate = NonZeroU64::new(1_000_000).unwrap();
        let why = |uri: &str| KernelLimit::make(uri, rate).unwrap_err();
        assert!(why("s3://bucket/x").contains("not on a disk of this machine"));
        assert!(why("/proc/self").contains("without a disk of its own"), "{}", why("/proc/self"));
        assert!(why("/nonexistent").contains("/nonexistent: "));
    }
}
