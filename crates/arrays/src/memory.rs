//! Memory for chunks, whose sizes come from metadata that may be wrong.

use std::sync::LazyLock;

use crate::error::Cause;

/// The limit where the machine does not say how much memory it has.
const UNKNOWN_MACHINE: u64 = 1 << 34;

/// Where containers say how much memory they allow, by control groups of version 2 and 1.
const CONTAINER_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// The most bytes that one chunk may take when it is decoded, or one row: a quarter of the memory
/// of the machine, or of the container.
pub(crate) fn most_bytes() -> u64 {
    static MOST: LazyLock<u64> = LazyLock::new(|| {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let limits = CONTAINER_LIMITS.map(|file| read(file).trim().parse().ok());
        let memory = limits.into_iter().flatten().chain(machine_bytes(&read("/proc/meminfo")));
        memory.min().map_or(UNKNOWN_MACHINE, |bytes| bytes / 4)
    });
    *MOST
}

/// The machine's memory, by the text of `/proc/meminfo`.
fn machine_bytes(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"))?;
    total.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Fails if a chunk of this many bytes is too large to be decoded.
pub(crate) fn check_chunk(n_bytes: usize) -> Result<(), Cause> {
    let most = most_bytes();
    if n_bytes as u64 <= most {
        return Ok(());
    }
    let text = format!(
        "it has {n_bytes} bytes when it is decoded, more than a quarter of the memory of this \
         machine or container ({most}): store the array in smaller chunks"
    );
    Err(text.into())
}

/// The first `n_bytes` of a buffer, which grows if needed: by an eighth more, as chunks of an array
/// have slightly different sizes.
pub(crate) fn words(buffer: &mut Vec<u64>, n_bytes: usize) -> Result<&mut [u8], Cause> {
    let n_words = n_bytes.div_ceil(size_of::<u64>());
    if buffer.len() < n_words {
        *buffer = bytemuck::try_zeroed_vec(n_words + n_words / 8).map_err(|()| lacking(n_bytes))?;
    }
    Ok(&mut bytemuck::cast_slice_mut(buffer)[..n_bytes])
}

/// Bytes that are copied at once, which the processor's cache holds.
pub(crate) const COPIED_BYTES: usize = 32 << 10;

/// Copies bytes piece by piece. Megabytes at once, C libraries would copy past the cache, and the
/// consumer, who reads them soon, would wait for memory.
#[inline]
pub(crate) fn copy(from: &[u8], into: &mut [u8]) {
    if from.len() <= COPIED_BYTES {
        return into.copy_from_slice(from);
    }
    for (from, into) in from.chunks(COPIED_BYTES).zip(into.chunks_mut(COPIED_BYTES)) {
        into.copy_from_slice(from);
    }
}

/// As many bytes, all of them zero.
pub(crate) fn zeroed(n_bytes: usize) -> Result<Vec<u8>, std::io::Error> {
    bytemuck::try_zeroed_vec(n_bytes)
        .map_err(|()| std::io::Error::new(std::io::ErrorKind::OutOfMemory, lacking(n_bytes)))
}

fn lacking(n_bytes: usize) -> Cause {
    format!("there is too little memory for {n_bytes} bytes").into()
}
