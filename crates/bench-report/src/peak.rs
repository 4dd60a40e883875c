//! Memory and CPU time of this process, as counted by the kernel.
//!
//! The peak is `VmHWM` of `/proc/self/status`, a true high-water mark rather than a sample. It
//! covers the process's whole life, so each grid point has a process of its own.
//! [`ProcessMeter::start`] resets the kernel's mark at the beginning of each epoch to learn the
//! epoch's own peak; the highest mark before a reset is kept, so [`peak_bytes`] still covers the
//! whole life. `getrusage` is not used, because its peak survives an exec: a small child of a large
//! parent would report the parent's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use rustix::{
    param::clock_ticks_per_second,
    time::{ClockId, clock_gettime},
};

use crate::{Error, Measured, kernel_entry};

const STATUS: &str = "/proc/self/status";
const STAT: &str = "/proc/self/stat";
const SMAPS_ROLLUP: &str = "/proc/self/smaps_rollup";
const CLEAR_REFS: &str = "/proc/self/clear_refs";

/// Highest peak that the kernel had counted when it was reset; 0 before the first reset.
static PEAK_BEFORE_RESET: AtomicU64 = AtomicU64::new(0);

/// Peak resident memory of this process in bytes since it began, whether the kernel's mark was
/// reset or not.
pub fn peak_bytes() -> Result<u64, Error> {
    Ok(peak_since_reset()?.max(PEAK_BEFORE_RESET.load(Ordering::Relaxed)))
}

/// Peak resident memory in bytes since the process began or since the last [`reset_peak`].
fn peak_since_reset() -> Result<u64, Error> {
    entry_bytes(STATUS, "VmHWM:")
}

/// Resident memory of this process in bytes.
pub fn resident_bytes() -> Result<u64, Error> {
    entry_bytes(STATUS, "VmRSS:")
}

/// Proportional set size of this process in bytes: a page that n processes share counts as 1/n.
pub fn proportional_bytes() -> Result<u64, Error> {
    entry_bytes(SMAPS_ROLLUP, "Pss:")
}

/// Resets the kernel's peak to the memory that is resident now. [`peak_bytes`] still knows the peak
/// from before.
///
/// # Errors
/// [`Error::ReadProcess`] if the system does not permit it (some containers and hardened kernels).
pub fn reset_peak() -> Result<(), Error> {
    PEAK_BEFORE_RESET.fetch_max(peak_since_reset()?, Ordering::Relaxed);
    fs::write(CLEAR_REFS, "5").map_err(|source| Error::ReadProcess { path: CLEAR_REFS, source })
}

/// CPU time used by this process, summed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// User and system seconds, in nanosecond resolution.
    pub total_secs: f64,
    /// Seconds in user mode, in ticks of 10 ms.
    pub user_secs: f64,
    /// Seconds in the kernel, in ticks of 10 ms.
    pub system_secs: f64,
}

impl CpuTime {
    /// CPU time until now.
    pub fn now() -> Result<Self, Error> {
        let total = clock_gettime(ClockId::ProcessCPUTime);
        let (user, system) = cpu_ticks(&read(STAT)?)
            .ok_or(Error::ProcessEntry { path: STAT, entry: "utime and stime" })?;
        let ticks_a_second = clock_ticks_per_second() as f64;
        Ok(Self {
            total_secs: total.tv_sec as f64 + total.tv_nsec as f64 * 1e-9,
            user_secs: user as f64 / ticks_a_second,
            system_secs: system as f64 / ticks_a_second,
        })
    }
}

/// CPU seconds used by this thread.
pub fn thread_cpu_secs() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Measures this process's memory and CPU time between [`start`](Self::start) and
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct ProcessMeter {
    cpu: CpuTime,
    start_mem_bytes: u64,
    peak_reset: bool,
}

impl ProcessMeter {
    /// Resets the peak if that is permitted, and reads memory and CPU time.
    pub fn start() -> Result<Self, Error> {
        let peak_reset = reset_peak().is_ok();
        Ok(Self { cpu: CpuTime::now()?, start_mem_bytes: resident_bytes()?, peak_reset })
    }

    /// Stores both peaks (the process's, and that since the start), memory, and CPU time since the
    /// start in `measured`.
    pub fn finish(self, measured: &mut Measured) -> Result<(), Error> {
        let cpu = CpuTime::now()?;
        measured.cpu_secs = Some(cpu.total_secs - self.cpu.total_secs);
        measured.cpu_user_secs = Some(cpu.user_secs - self.cpu.user_secs);
        measured.cpu_system_secs = Some(cpu.system_secs - self.cpu.system_secs);
        measured.max_mem = Some(peak_bytes()?);
        measured.epoch_max_mem = self.peak_reset.then(peak_since_reset).transpose()?;
        measured.peak_reset = Some(self.peak_reset);
        measured.start_mem_bytes = Some(self.start_mem_bytes);
        // Older kernels lack this file; a measurement can do without.
        measured.pss_bytes = proportional_bytes().ok();
        Ok(())
    }
}

fn read(path: &'static str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source: io::Error| Error::ReadProcess { path, source })
}

fn entry_bytes(path: &'static str, entry: &'static str) -> Result<u64, Error> {
    kernel_entry(&read(path)?, entry).ok_or(Error::ProcessEntry { path, entry })
}

/// User and system ticks of `/proc/self/stat`.
///
/// The second field is the program's name in parentheses, which may contain blanks and parentheses,
/// so parsing starts after the last one.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    // `rest` begins with field 3, the state; utime is field 14, stime field 15.
    let mut fields = rest.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "77 (a ) (b) R 1 2 3 4 5 6 7 8 9 10 1234 56 0 0 20 0";
        assert_eq!(cpu_ticks(stat), Some((1234, 56)));
        assert_eq!(cpu_ticks("77 (short) R 1"), None);
    }

    /// A single test, because the peak belongs to the process and another test might reset it in
    /// between.
    #[test]
    fn an_epoch_is_charged_with_its_peak_and_its_cpu_time() {
        const BYTES: usize = 64 << 20;
        let meter = ProcessMeter::start().unwrap();
        drop(black_box(vec![1_u8; BYTES]));
        let mut sum = 0_u64;
        while CpuTime::now().unwrap().total_secs - meter.cpu.total_secs < 0.02 {
            sum = black_box(sum.wrapping_add(1));
        }
        let mut measured = Measured::default();
        meter.finish(&mut measured).unwrap();
        assert!(measured.cpu_secs.unwrap() >= 0.02, "{measured:?}");
        // Other tests of this process may free memory in the meantime, so expect half of the
        // buffer.
        let start = measured.start_mem_bytes.unwrap();
        assert!(measured.max_mem.unwrap() >= start + BYTES as u64 / 2, "{measured:?}");

        // A reset is not permitted everywhere: then the record says so, and the epoch's own peak is
        // not known.
        let next = ProcessMeter::start().unwrap();
        assert_eq!(next.peak_reset, reset_peak().is_ok());
        let mut second = Measured::default();
        next.finish(&mut second).unwrap();
        assert_eq!(second.epoch_max_mem.is_some(), second.peak_reset.unwrap());
        // The first epoch's peak is still the process's, though this one needed less.
        assert!(second.max_mem >= measured.max_mem, "{second:?} after {measured:?}");
        assert!(second.epoch_max_mem <= second.max_mem, "{second:?}");
    }
}
