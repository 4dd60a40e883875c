//! Memory and CPU time of this process, as counted by the kernel.
//!
//! The peak is `VmHWM` of `/proc/self/status`, a true high-water mark rather than a sample. It
//! covers the process's whole life unless it is reset; [`ProcessMeter::start`] resets it at the
//! beginning of each epoch, and each grid point has a process of its own. `getrusage` is not used,
//! because its peak survives an exec: a small child of a large parent would report the parent's.

use std::{fs, io};

use rustix::{
    param::clock_ticks_per_second,
    time::{ClockId, clock_gettime},
};

use crate::{Error, Measured};

const STATUS: &str = "/proc/self/status";
const STAT: &str = "/proc/self/stat";
const SMAPS_ROLLUP: &str = "/proc/self/smaps_rollup";
const CLEAR_REFS: &str = "/proc/self/clear_refs";

/// Peak resident memory of this process in bytes, since it began or since the last [`reset_peak`].
pub fn peak_bytes() -> Result<u64, Error> {
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

/// Resets the peak to the memory that is resident now.
///
/// # Errors
/// [`Error::ReadProcess`] if the system does not permit it (some containers and hardened kernels).
pub fn reset_peak() -> Result<(), Error> {
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

    /// Stores peak, memory and CPU time since the start in `measured`.
    pub fn finish(self, measured: &mut Measured) -> Result<(), Error> {
        let cpu = CpuTime::now()?;
        measured.cpu_secs = Some(cpu.total_secs - self.cpu.total_secs);
        measured.cpu_user_secs = Some(cpu.user_secs - self.cpu.user_secs);
        measured.cpu_system_secs = Some(cpu.system_secs - self.cpu.system_secs);
        measured.max_mem = Some(peak_bytes()?);
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
    kib_entry(&read(path)?, entry)
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or(Error::ProcessEntry { path, entry })
}

/// The number in the line `entry number kB`.
fn kib_entry(text: &str, entry: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(entry))?;
    rest.trim().strip_suffix("kB")?.trim().parse().ok()
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
    fn entries_are_found_and_nothing_else() {
        let text = "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    5000 kB\nVmRSS:\t 12 pages\n";
        assert_eq!(kib_entry(text, "VmHWM:"), Some(5000));
        assert_eq!(kib_entry(text, "VmRSS:"), None);
        assert_eq!(kib_entry(text, "Pss:"), None);
    }

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

        // Not permitted everywhere: then the record says so, and the peak is that of the whole
        // process.
        let next = ProcessMeter::start().unwrap();
        assert_eq!(next.peak_reset, reset_peak().is_ok());
    }
}
