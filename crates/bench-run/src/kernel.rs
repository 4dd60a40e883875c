//! What only Linux's kernel does for a measurement. On other systems these are errors that say so,
//! or have no effect where a measurement goes on without.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, IoSliceMut};
    use std::num::NonZeroU64;

    use rustix::fs::{Advice, fadvise};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use rustix::process::{
        Pid, Resource, Rlimit, Signal, prlimit, set_parent_process_death_signal,
    };
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Has the kernel kill this process when its parent ends.
    pub(crate) fn end_with_parent() {
        let _unsupported = set_parent_process_death_signal(Some(Signal::KILL));
    }

    /// Limits the private memory of another process.
    pub(crate) fn limit_data(process: Pid, bytes: u64) -> io::Result<()> {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        prlimit(Some(process), Resource::Data, limit)?;
        Ok(())
    }

    /// Advises the kernel that a part of a file is not needed; `None` is the rest of the file.
    pub(crate) fn forget_pages(
        file: &File,
        start: u64,
        length: Option<NonZeroU64>,
    ) -> io::Result<()> {
        Ok(fadvise(file, start, length, Advice::DontNeed)?)
    }

    /// Advises the kernel to read no pages beside those that are asked for.
    pub(crate) fn read_single_pages(file: &File) -> io::Result<()> {
        Ok(fadvise(file, 0, None, Advice::Random)?)
    }

    /// Whether a byte can be read without waiting for the disk.
    pub(crate) fn is_cached(file: &File, at: u64) -> io::Result<bool> {
        let mut byte = [0];
        match preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The cores on which this thread may run.
    pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
        let allowed = sched_getaffinity(None)?;
        Ok((0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect())
    }

    /// Binds this thread, and those that it starts from now on, to `cores`.
    pub(crate) fn bind(cores: &[usize]) -> io::Result<()> {
        let mut set = CpuSet::new();
        for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
            set.set(*core);
        }
        Ok(sched_setaffinity(None, &set)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::fs::File;
    use std::io;
    use std::num::NonZeroU64;

    use rustix::process::Pid;

    pub(crate) fn end_with_parent() {}

    pub(crate) fn limit_data(_process: Pid, _bytes: u64) -> io::Result<()> {
        Err(needs_linux("a limit of a process's memory"))
    }

    pub(crate) fn forget_pages(
        _file: &File,
        _start: u64,
        _length: Option<NonZeroU64>,
    ) -> io::Result<()> {
        Err(needs_linux("removing files from the page cache"))
    }

    pub(crate) fn read_single_pages(_file: &File) -> io::Result<()> {
        Err(needs_linux("looking at the page cache"))
    }

    pub(crate) fn is_cached(_file: &File, _at: u64) -> io::Result<bool> {
        Err(needs_linux("looking at the page cache"))
    }

    pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
        Ok(Vec::new())
    }

    pub(crate) fn bind(_cores: &[usize]) -> io::Result<()> {
        Ok(())
    }

    fn needs_linux(what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, format!("{what} needs Linux"))
    }
}
