//! Makes control groups, which limit the processes in them. Supports versions 1 and 2 of the
//! kernel's interface. A group is made below the group of this process, beside it, or at the top of
//! the mount.
//!
//! A trial with an idle process shows whether this is permitted. Dropping a group removes it.
//! Groups that killed processes left behind are removed when another group is made in the same
//! place.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Prefix of our groups' names. The id of the process that made the group and a number follow.
const PREFIX: &str = "somafeed-";

static N_MADE: AtomicU64 = AtomicU64::new(0);

/// The part of the kernel that enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Io,
    Memory,
}

/// Version of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller.
    One,
    /// One hierarchy for all controllers.
    Two,
}

impl Controller {
    fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Io, Version::One) => "blkio",
            (Self::Io, Version::Two) => "io",
            (Self::Memory, _) => "memory",
        }
    }
}

/// An existing group, below which another one may be made if that is permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) version: Version,
    controller: Controller,
}

impl Place {
    /// Lists the places for a group with this controller, the group of this process first.
    ///
    /// # Errors
    /// The reason, if there is no place.
    pub(crate) fn all(controller: Controller) -> Result<Vec<Self>, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        Self::find(controller, &read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    /// Prefers version 1 if it has the controller: a controller cannot be in both versions.
    fn find(controller: Controller, cgroup: &str, mountinfo: &str) -> Result<Vec<Self>, String> {
        let place = |version| Self::in_hierarchy(controller, version, cgroup, mountinfo);
        place(Version::One).or_else(|| place(Version::Two)).ok_or_else(|| {
            format!("no control groups with {} are mounted", controller.name(Version::Two))
        })
    }

    fn in_hierarchy(
        controller: Controller,
        version: Version,
        cgroup: &str,
        mountinfo: &str,
    ) -> Option<Vec<Self>> {
        let name = controller.name(version);
        let mount = mountinfo.lines().find_map(|line| mount(line, version, name))?;
        let path = cgroup.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_wanted = match version {
                Version::One => controllers.split(',').any(|one| one == name),
                Version::Two => controllers.is_empty(),
            };
            is_wanted.then(|| PathBuf::from(path))
        })?;
        // In a container, possibly only its own part is mounted; then the mount is its group.
        let below = path.strip_prefix(&mount.root).unwrap_or_else(|_| Path::new(""));
        let own: PathBuf = mount.place.join(below).components().collect();
        let beside = own.parent().filter(|folder| folder.starts_with(&mount.place));
        let mut folders = vec![own.clone()];
        for folder in beside.into_iter().chain([mount.place.as_path()]) {
            if !folders.iter().any(|one| one == folder) {
                folders.push(folder.to_owned());
            }
        }
        Some(folders.into_iter().map(|folder| Self { folder, version, controller }).collect())
    }

    /// Makes a group below this one. Fails if that is not permitted.
    pub(crate) fn make(&self) -> io::Result<Group> {
        let Self { folder: parent, version, controller } = self;
        if *version == Version::Two {
            let enabled = parent.join("cgroup.subtree_control");
            let name = controller.name(*version);
            if !fs::read_to_string(&enabled)?.split_whitespace().any(|one| one == name) {
                write(&enabled, &format!("+{name}"))?;
            }
        }
        remove_left_behind(parent);
        let number = N_MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs::create_dir(&folder) {
            // It belonged to an earlier process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_dir(&folder).and_then(|()| fs::create_dir(&folder))?;
            }
            made => made?,
        }
        Ok(Group { folder, version: *version })
    }
}

/// Where a hierarchy is mounted.
struct Mount {
    /// The group that is mounted.
    root: PathBuf,
    place: PathBuf,
}

/// The mount of a line of `mountinfo`, if the line is of a hierarchy with the controller.
fn mount(line: &str, version: Version, controller: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    let mut kind = after.split(' ');
    let (file_system, options) = (kind.next()?, kind.nth(1)?);
    let fits = match version {
        Version::One => {
            file_system == "cgroup" && options.split(',').any(|name| name == controller)
        }
        Version::Two => file_system == "cgroup2",
    };
    fits.then(|| Mount { root: root.into(), place: place.into() })
}

/// A group that we made. It is removed on drop, which needs an empty group.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
    version: Version,
}

impl Group {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Writes to a file of the group. Fails if there is no such file or the kernel rejects the
    /// value.
    pub(crate) fn set(&self, file: &str, value: &str) -> io::Result<()> {
        write(&self.folder.join(file), value)
    }

    /// Reads a file of the group. Returns an empty text if it cannot be read.
    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// Moves a process into the group. Fails if that is not permitted.
    pub(crate) fn add(&self, process: u32) -> io::Result<()> {
        join(&self.folder, process)
    }

    /// Moves an idle process into the group. Fails if that is not permitted.
    pub(crate) fn try_add(&self) -> io::Result<()> {
        let mut waiting = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let added = self.add(waiting.id());
        drop(waiting.stdin.take());
        waiting.wait()?;
        added
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process may leave its group a moment after `wait` returns.
        for _ in 0..20 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// Moves a process into the group at `folder`. Fails if that is not permitted.
pub(crate) fn join(folder: &Path, process: u32) -> io::Result<()> {
    write(&folder.join("cgroup.procs"), &process.to_string())
}

/// Writes `text` in one call. Fails if the file does not exist.
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

/// Removes groups that killed processes left behind. The kernel refuses to remove a group that is
/// not empty.
fn remove_left_behind(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let maker = maker.and_then(|maker| maker.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists()) {
            // Another run may have removed it first.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTED_TWO: &str = "25 20 0:22 / /proc rw - proc proc rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const MOUNTED_BOTH: &str = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 30 0:28 /docker/1a /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
        33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[track_caller]
    fn check(
        controller: Controller,
        cgroup: &str,
        mountinfo: &str,
        version: Version,
        expect: &[&str],
    ) {
        let found = Place::find(controller, cgroup, mountinfo).unwrap();
        let folders: Vec<_> = found.iter().map(|place| place.folder.to_str().unwrap()).collect();
        assert_eq!(folders, expect);
        assert!(
            found.iter().all(|place| (place.version, place.controller) == (version, controller))
        );
    }

    #[test]
    fn groups_are_looked_for_where_they_could_be() {
        for controller in [Controller::Io, Controller::Memory] {
            check(
                controller,
                "0::/user.slice/app.slice/run.scope\n",
                MOUNTED_TWO,
                Version::Two,
                &[
                    "/sys/fs/cgroup/user.slice/app.slice/run.scope",
                    "/sys/fs/cgroup/user.slice/app.slice",
                    "/sys/fs/cgroup",
                ],
            );
            check(controller, "0::/\n", MOUNTED_TWO, Version::Two, &["/sys/fs/cgroup"]);
        }
        // Version 1 has both controllers; of `blkio`, only a container's part is mounted.
        let cgroup = "9:name=systemd:/\n7:blkio:/docker/1a/b\n4:memory:/docker/1a\n0::/\n";
        check(
            Controller::Io,
            cgroup,
            MOUNTED_BOTH,
            Version::One,
            &["/sys/fs/cgroup/blkio/b", "/sys/fs/cgroup/blkio"],
        );
        check(
            Controller::Memory,
            cgroup,
            MOUNTED_BOTH,
            Version::One,
            &[
                "/sys/fs/cgroup/memory/docker/1a",
                "/sys/fs/cgroup/memory/docker",
                "/sys/fs/cgroup/memory",
            ],
        );
        for (cgroup, mountinfo) in [("", MOUNTED_TWO), ("0::/\n", ""), ("rubbish", "rubbish")] {
            Place::find(Controller::Memory, cgroup, mountinfo).unwrap_err();
        }
    }

    #[test]
    fn nothing_is_made_where_there_is_no_group() {
        let folder = tempfile::tempdir().unwrap();
        let (at, controller) = (folder.path().to_owned(), Controller::Io);
        Place { folder: at.clone(), version: Version::Two, controller }.make().unwrap_err();
        let group = Place { folder: at, version: Version::One, controller }.make().unwrap();
        group.set("blkio.throttle.read_bps_device", "8:0 1").unwrap_err();
        group.try_add().unwrap_err();
        drop(group);
        join(folder.path(), 1).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn groups_of_processes_that_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}-7", std::process::id());
        let names = [
            "somafeed-1-0",
            "somafeed-4294967295-3",
            "somafeed-4294967295",
            "somafeed-x",
            "other",
            &own,
        ];
        for name in names {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        remove_left_behind(folder.path());
        let is_left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(is_left, [true, false, false, true, true, true]);
    }
}
