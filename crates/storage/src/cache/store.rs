//! The folder of a cache: finds and keeps blocks, within their limit.
//!
//! ```text
//! usage              bytes of all blocks, and the lock under which blocks are added and removed
//! blocks/<2 digits>/ the blocks, by name; a file's time of change is that of its last reading, to
//!                    the minute
//! unfinished/<n>/    blocks that a process is writing, and a lock that says it lives
//! ```
//!
//! A block is written without the lock and renamed under it. So whoever has the lock sees every
//! block that counts, and no other can appear: a scan under the lock is exact. Finding takes no
//! lock. Nothing is synced to the disk (`fsync`): blocks damaged by a power failure fail their
//! checksum.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::block::{BlockId, HEADER_BYTES};
use super::scan::{Scan, cost};
use super::unfinished::{self, Unfinished};
use super::usage::{LockedUsage, Usage};

/// How long opening waits for another process that is removing blocks.
const OPEN_MILLIS: u32 = 30_000;
/// How long a read waits for it, before it goes on without keeping the block.
const KEEP_MILLIS: u32 = 50;
/// One part in this many of the limit is freed at once, so that scans are rare.
const FREED_PART: u64 = 16;
/// Blocks that are not kept after one could not be written.
const PAUSE_BLOCKS: u64 = 64;
/// Times of reading are known to this precision.
const READ_PRECISION: Duration = Duration::from_mins(1);

/// A cache's folder, open.
#[derive(Debug)]
pub(super) struct BlockStore {
    blocks: PathBuf,
    limit_bytes: u64,
    usage: Usage,
    unfinished: Unfinished,
    /// Blocks that will still not be kept after a failure.
    pause: AtomicU64,
}

/// Result of looking for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Whole,
    Absent,
    /// There is a file, but it is not the block.
    Damaged,
}

/// Result of keeping a block.
#[derive(Debug)]
pub(super) enum KeepOutcome {
    /// It is kept, and `n_removed` others were removed for it.
    Yes {
        n_removed: u64,
    },
    /// Others locked the folder for too long.
    Busy,
    Failed(io::Error),
}

impl BlockStore {
    /// Opens the cache in `folder`, which is made if it does not exist, and returns the number of
    /// blocks that it removed. Scans all blocks if no living process has it open.
    pub(super) fn open(folder: &Path, limit_bytes: u64) -> io::Result<(Self, u64)> {
        let [blocks, unfinished] = ["blocks", "unfinished"].map(|name| folder.join(name));
        for path in [&blocks, &unfinished] {
            new_folder().recursive(true).create(path)?;
        }
        let usage = Usage::open(&folder.join("usage"))?;
        let locked = usage.lock(OPEN_MILLIS)?.ok_or_else(|| {
            let what = format!("another process has locked it for {} s", OPEN_MILLIS / 1000);
            io::Error::new(io::ErrorKind::TimedOut, what)
        })?;
        let n_living = unfinished::remove_dead(&unfinished)?;
        let unfinished = Unfinished::begin(&unfinished)?;
        // Without a living process the number may be older than the blocks: the machine may have
        // lost power.
        let known = if n_living > 0 { locked.used()? } else { None };
        let used = match known {
            Some(used) => used,
            None => Scan::new(&blocks)?.cost,
        };
        locked.set(used)?;
        let mut n_removed = 0;
        if used > limit_bytes {
            n_removed = make_room(&locked, &blocks, limit_bytes)?.1;
        }
        drop(locked);
        Ok((Self { blocks, limit_bytes, usage, unfinished, pause: AtomicU64::new(0) }, n_removed))
    }

    fn path(&self, id: &BlockId) -> PathBuf {
        self.blocks.join(id.folder()).join(id.name())
    }

    /// Whether there is a file of the block's name.
    pub(super) fn has(&self, id: &BlockId) -> bool {
        self.path(id).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Reads the file of a block that has a payload of `len` bytes into `file`.
    pub(super) fn find(&self, id: &BlockId, len: usize, file: &mut Vec<u8>) -> Lookup {
        match read(&self.path(id), HEADER_BYTES + len, file) {
            Ok(true) if id.payload(file).is_some() => Lookup::Whole,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Lookup::Absent,
            _ => Lookup::Damaged,
        }
    }

    /// Whether blocks are not kept for a while because one could not be written.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed) > 0
    }

    /// Counts `n` blocks that are not kept.
    pub(super) fn leave_out(&self, n: u64) {
        let less = |left: u64| Some(left.saturating_sub(n));
        // The closure always gives a number.
        let _ = self.pause.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Keeps a block, replacing a file of its name.
    pub(super) fn keep(&self, id: &BlockId, payload: &[u8]) -> KeepOutcome {
        match self.try_keep(id, payload) {
            Ok(Some(n_removed)) => KeepOutcome::Yes { n_removed },
            Ok(None) => KeepOutcome::Busy,
            Err(error) => {
                self.pause.store(PAUSE_BLOCKS, Ordering::Relaxed);
                KeepOutcome::Failed(error)
            }
        }
    }

    fn try_keep(&self, id: &BlockId, payload: &[u8]) -> io::Result<Option<u64>> {
        let mut unfinished = self.unfinished.file();
        let mut file = File::create_new(unfinished.path())?;
        file.write_all(&id.header(payload))?;
        file.write_all(payload)?;
        drop(file);
        let Some(locked) = self.usage.lock(KEEP_MILLIS)? else { return Ok(None) };
        let path = self.path(id);
        let cost = cost((HEADER_BYTES + payload.len()) as u64);
        let (mut used, mut n_removed) = match locked.used()? {
            Some(used) => (used, 0),
            None => (Scan::new(&self.blocks)?.cost, 0),
        };
        if used.saturating_add(cost) > self.limit_bytes {
            self.unfinished.remove_dead_others()?;
            (used, n_removed) = make_room(&locked, &self.blocks, self.room_for(cost))?;
            if used.saturating_add(cost) > self.limit_bytes {
                return Err(io::Error::other("blocks cannot be removed to keep within the limit"));
            }
        }
        let replaced = fs::symlink_metadata(&path).map_or(0, |replaced| self::cost(replaced.len()));
        locked.set(used + cost)?;
        if let Err(error) = unfinished.rename(&path) {
            let (io::ErrorKind::NotFound, Some(parent)) = (error.kind(), path.parent()) else {
                return Err(error);
            };
            new_folder().create(parent)?;
            unfinished.rename(&path)?;
        }
        if replaced > 0 {
            locked.set((used + cost).saturating_sub(replaced))?;
        }
        Ok(Some(n_removed))
    }

    /// Bytes to leave so that `cost` fits, with room for later blocks.
    fn room_for(&self, cost: u64) -> u64 {
        self.limit_bytes - cost.max(self.limit_bytes / FREED_PART).min(self.limit_bytes)
    }
}

/// Bytes read with one user's rights are not for every user of the machine.
fn new_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Removes blocks until at most `most` bytes are left, and records the rest. Returns the bytes left
/// and the number of blocks removed.
fn make_room(locked: &LockedUsage<'_>, blocks: &Path, most: u64) -> io::Result<(u64, u64)> {
    let mut scan = Scan::new(blocks)?;
    let n_removed = scan.shrink(blocks, most);
    locked.set(scan.cost)?;
    Ok((scan.cost, n_removed))
}

/// Reads a file, if it has `len` bytes. Returns whether it has.
fn read(path: &Path, len: usize, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() != len as u64 {
        return Ok(false);
    }
    into.clear();
    into.reserve(len);
    if (&mut file).take(len as u64).read_to_end(into)? != len {
        return Ok(false);
    }
    let now = SystemTime::now();
    let is_noted = metadata
        .modified()
        .ok()
        .and_then(|read| now.duration_since(read).ok())
        .is_some_and(|ago| ago < READ_PRECISION);
    if !is_noted {
        // If this fails (another user's block), the block is evicted as if it had not been read.
        drop(file.set_modified(now));
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
