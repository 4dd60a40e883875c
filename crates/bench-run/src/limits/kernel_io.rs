//! Limits a device's reads for a control group, by the kernel: `io.max` of cgroup v2, or
//! `blkio.throttle.read_bps_device` of v1.
//!
//! Only a trial shows whether this is permitted.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::control_group::{Controller, Group, Place, Version};

/// A control group that limits the read rate of the processes in it.
#[derive(Debug)]
pub struct KernelLimit {
    group: Group,
}

impl KernelLimit {
    /// Makes a group that limits reads from the disk with `path`; `None` means data that is not on
    /// a local disk.
    ///
    /// # Errors
    /// The reasons, if no group can be made.
    pub fn make(path: Option<&Path>, bytes_per_second: NonZeroU64) -> Result<Self, String> {
        let path = path.ok_or_else(|| "the data is not on a disk of this machine".to_owned())?;
        let device = device(path)?;
        let mut reasons = Vec::new();
        for place in Place::all(Controller::Io)? {
            match Self::below(&place, &device, bytes_per_second) {
                Ok(made) => return Ok(made),
                Err(error) => reasons.push(format!("{}: {error}", place.folder.display())),
            }
        }
        Err(reasons.join("; "))
    }

    fn below(place: &Place, device: &str, bytes_per_second: NonZeroU64) -> io::Result<Self> {
        let group = place.make()?;
        let (file, limit) = match group.version() {
            Version::One => {
                ("blkio.throttle.read_bps_device", format!("{device} {bytes_per_second}"))
            }
            Version::Two => ("io.max", format!("{device} rbps={bytes_per_second}")),
        };
        group.set(file, &limit)?;
        group.try_add()?;
        Ok(Self { group })
    }

    /// Returns the group's folder, which a process needs to join it.
    pub fn folder(&self) -> &Path {
        self.group.folder()
    }

    /// Returns the version of the kernel's interface.
    pub fn version(&self) -> Version {
        self.group.version()
    }
}

/// Returns `major:minor` of the disk with `path`; for a partition, of the whole disk.
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

/// Unpacks the major and minor numbers, which the kernel packs into 64 bits.
fn major_minor(number: u64) -> (u64, u64) {
    let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
    let minor = (number & 0xff) | ((number >> 12) & !0xff & 0xffff_ffff);
    (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_unpacked_as_the_kernel_packs_them() {
        assert_eq!(major_minor(65_024), (254, 0));
        assert_eq!(major_minor(0x801), (8, 1));
        assert_eq!(major_minor(0x0000_1001_2003_45ab), (0x1345, 0x0012_00ab));
    }

    #[test]
    fn what_is_not_on_a_disk_is_told() {
        let rate = NonZeroU64::new(1_000_000).unwrap();
        let why = |path: &str| KernelLimit::make(Some(Path::new(path)), rate).unwrap_err();
        let not_local = KernelLimit::make(None, rate).unwrap_err();
        assert!(not_local.contains("not on a disk of this machine"));
        assert!(why("/proc/self").contains("without a disk of its own"), "{}", why("/proc/self"));
        assert!(why("/nonexistent").contains("/nonexistent: "));
    }
}
