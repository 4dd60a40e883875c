//! The folder of a cache: finds and keeps blocks, within their limit. Knows nothing of files: a
//! block is any bytes that an object's number and its own identify.
//!
//! ```text
//! usage              bytes of all blocks, and the lock under which blocks are added and removed
//! blocks/<2 digits>/ the blocks, by name; a file's time of change is that of its last reading, to
//!                    the minute
//! unfinished/<n>/    blocks that a process is writing, and a lock that says it lives, with the
//!                    objects that it uses
//! ```
//!
//! A block is written without the lock and renamed under it. So whoever has the lock sees every
//! block that counts, and no other can appear: a scan under the lock is exact. Finding takes no
//! lock. Nothing is synced to the disk (`fsync`): blocks damaged by a power failure fail their
//! checksum.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::block::{BlockId, HEADER_BYTES, ObjectId};
use super::scan::{Scan, cost};
use super::unfinished::{self, Unfinished, UnfinishedFile};
use super::usage::{LockedUsage, Usage};

/// How long opening waits for another process that is removing blocks.
const OPEN_MILLIS: u32 = 30_000;
/// How long a read waits for it, before it goes on without keeping the block.
const KEEP_MILLIS: u32 = 50;
/// One part in this many of the limit is freed at once, so that scans are rare.
const FREED_PART: u64 = 16;
/// Blocks that are not kept after one could not be written.
const PAUSE_BLOCKS: u64 = 64;
/// Most bytes of a block's file. Larger ones are not ours.
const MOST_BYTES: u64 = u32::MAX as u64;
/// Times of reading are known to this precision.
const READ_PRECISION: Duration = Duration::from_mins(1);

/// The blocks that make room for others at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Those that were not read for the longest time.
    LongestUnread,
    /// Those of objects that no living process [uses](BlockStore::note_use), first those that were
    /// not read for the longest time. If all are in use, new blocks are left out. So what is read
    /// in another random order each time, and is larger than the limit, stays in part.
    Unused,
}

/// A folder of blocks within a limit of bytes, shared by threads and processes.
///
/// [`CachedStorage`](crate::CachedStorage) states the promises. Every block has a checksum; a
/// killed process leaves nothing that could be taken for a block.
///
/// ```
/// use storage::{BlockId, BlockStore, Eviction, KeepOutcome, Lookup};
///
/// let folder = tempfile::tempdir()?;
/// let (store, _) = BlockStore::open(folder.path(), 1 << 30, Eviction::Unused)?;
/// let id = BlockId { object: [7; 16], idx: 3 };
/// store.note_use(&id.object)?;
/// assert!(matches!(store.keep(&id, b"any bytes"), KeepOutcome::Yes { n_left_out: 0, .. }));
/// let mut buffer = Vec::new();
/// assert_eq!(store.read(&id, &mut buffer), Lookup::Whole);
/// assert_eq!(BlockStore::payload(&buffer), b"any bytes");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockStore {
    blocks: PathBuf,
    limit_bytes: u64,
    eviction: Eviction,
    usage: Usage,
    unfinished: Unfinished,
    /// Objects whose use was noted.
    used: Mutex<HashSet<ObjectId>>,
    /// Blocks that will still not be kept, after a failure or because there is no room.
    pause: AtomicU64,
}

/// Result of looking for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// It is there.
    Whole,
    /// There is no file of its name.
    Absent,
    /// There is a file, but it is not the block.
    Damaged,
}

/// Result of keeping blocks.
#[derive(Debug)]
pub enum KeepOutcome {
    /// They are kept.
    Yes {
        /// Number of others that were removed for them.
        n_removed: u64,
        /// Number of them that are not kept because all that is there is in use.
        n_left_out: u64,
    },
    /// None is kept, for others locked the folder for too long.
    Busy,
    /// Not all are kept, for writing failed.
    Failed(io::Error),
}

/// A block that is written, and not in its place yet. Dropped, it is removed.
#[derive(Debug)]
pub struct WrittenBlock {
    id: BlockId,
    file: UnfinishedFile,
    cost: u64,
}

impl BlockStore {
    /// Opens the cache in `folder`, which is made if it does not exist, and returns the number of
    /// blocks that it removed. Scans all blocks if no living process has it open. `limit_bytes` is
    /// on disk, in whole 4 KiB for each block.
    ///
    /// # Errors
    /// The folder cannot be made, read or written, or another process locks it for half a minute.
    pub fn open(folder: &Path, limit_bytes: u64, eviction: Eviction) -> io::Result<(Self, u64)> {
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
            let spared = eviction.spared(&unfinished)?;
            n_removed = make_room(&locked, &blocks, limit_bytes, &spared)?.n_removed;
        }
        drop(locked);
        let (used, pause) = (Mutex::default(), AtomicU64::new(0));
        Ok((Self { blocks, limit_bytes, eviction, usage, unfinished, used, pause }, n_removed))
    }

    fn path(&self, id: &BlockId) -> PathBuf {
        self.blocks.join(id.folder()).join(id.name())
    }

    /// Whether there is a file of the block's name.
    pub(super) fn has(&self, id: &BlockId) -> bool {
        self.path(id).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Records that this process uses an object's blocks, so that [`Eviction::Unused`] leaves them
    /// where they are. The record ends with the store.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn note_use(&self, object: &ObjectId) -> io::Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.contains(object) {
            self.unfinished.note_use(object)?;
            used.insert(*object);
        }
        Ok(())
    }

    /// Reads the file of a block that has a payload of `len` bytes into `file`.
    pub(super) fn find(&self, id: &BlockId, len: usize, file: &mut Vec<u8>) -> Lookup {
        self.read_if(id, |found| found == (HEADER_BYTES + len) as u64, file)
    }

    /// Reads a block of any length into `buffer`, whose [`payload`](Self::payload) it then is.
    pub fn read(&self, id: &BlockId, buffer: &mut Vec<u8>) -> Lookup {
        self.read_if(id, |_| true, buffer)
    }

    fn read_if(&self, id: &BlockId, is_len: impl Fn(u64) -> bool, file: &mut Vec<u8>) -> Lookup {
        match read(&self.path(id), is_len, file) {
            Ok(true) if id.payload(file).is_some() => Lookup::Whole,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Lookup::Absent,
            _ => Lookup::Damaged,
        }
    }

    /// The payload of a block that was [read](Self::read).
    pub fn payload(buffer: &[u8]) -> &[u8] {
        buffer.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Reads the first `len` bytes of a block, or all if it has fewer, into `buffer`. They may be
    /// damaged, because the checksum is that of the whole block, and do not count as read.
    pub fn read_start(&self, id: &BlockId, len: usize, buffer: &mut Vec<u8>) -> Lookup {
        let mut start = || -> io::Result<bool> {
            let file = File::open(self.path(id))?;
            let metadata = file.metadata()?;
            buffer.clear();
            file.take((HEADER_BYTES + len) as u64).read_to_end(buffer)?;
            Ok(metadata.is_file() && id.payload_start(buffer, metadata.len()).is_some())
        };
        match start() {
            Ok(true) => Lookup::Whole,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Lookup::Absent,
            _ => Lookup::Damaged,
        }
    }

    /// Bytes of all blocks on disk, if they are known.
    pub fn used_bytes(&self) -> Option<u64> {
        self.usage.peek()
    }

    /// Whether blocks are not kept for a while, because one could not be written or there is no
    /// room.
    pub fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed) > 0
    }

    /// Counts `n` blocks that are not kept. After some of them writing is tried again.
    pub fn leave_out(&self, n: u64) {
        let less = |left: u64| Some(left.saturating_sub(n));
        // The closure always gives a number.
        let _ = self.pause.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Keeps a block, replacing a file of its name.
    pub fn keep(&self, id: &BlockId, payload: &[u8]) -> KeepOutcome {
        match self.write(id, payload) {
            Ok(written) => self.keep_written(vec![written]),
            Err(error) => self.failed(error),
        }
    }

    /// Writes a block that [`keep_written`](Self::keep_written) puts in its place. Takes no lock.
    ///
    /// # Errors
    /// The block cannot be written, for instance because the disk is full.
    /// [`failed`](Self::failed) counts such an error.
    pub fn write(&self, id: &BlockId, payload: &[u8]) -> io::Result<WrittenBlock> {
        let unfinished = self.unfinished.file();
        let mut file = File::create_new(unfinished.path())?;
        file.write_all(&id.header(payload))?;
        file.write_all(payload)?;
        let cost = cost((HEADER_BYTES + payload.len()) as u64);
        Ok(WrittenBlock { id: *id, file: unfinished, cost })
    }

    /// Pauses keeping after an error of [`write`](Self::write).
    pub fn failed(&self, error: io::Error) -> KeepOutcome {
        self.pause.store(PAUSE_BLOCKS, Ordering::Relaxed);
        KeepOutcome::Failed(error)
    }

    /// Puts written blocks in their places, replacing files of their names. Takes the lock once.
    pub fn keep_written(&self, blocks: Vec<WrittenBlock>) -> KeepOutcome {
        self.try_keep(blocks).unwrap_or_else(|error| self.failed(error))
    }

    fn try_keep(&self, blocks: Vec<WrittenBlock>) -> io::Result<KeepOutcome> {
        let Some(locked) = self.usage.lock(KEEP_MILLIS)? else { return Ok(KeepOutcome::Busy) };
        let mut used = match locked.used()? {
            Some(used) => used,
            None => Scan::new(&self.blocks)?.cost,
        };
        let (mut n_removed, mut n_left_out) = (0, 0);
        for block in blocks {
            let is_over = |used: u64| used.saturating_add(block.cost) > self.limit_bytes;
            if is_over(used) && self.eviction == Eviction::Unused && self.is_paused() {
                self.leave_out(1);
                n_left_out += 1;
                continue;
            }
            if is_over(used) {
                self.unfinished.remove_dead_others()?;
                let spared = self.eviction.spared(&self.unfinished)?;
                let most = self.room_for(block.cost);
                let made = make_room(&locked, &self.blocks, most, &spared)?;
                used = made.used;
                n_removed += made.n_removed;
                if is_over(used) && self.eviction == Eviction::LongestUnread {
                    let what = "blocks cannot be removed to keep within the limit";
                    return Err(io::Error::other(what));
                }
                if is_over(used) {
                    // The next scan comes after as many blocks as this one looked at.
                    self.pause.store(PAUSE_BLOCKS.max(made.n_blocks), Ordering::Relaxed);
                    n_left_out += 1;
                    continue;
                }
            }
            used = self.place(&locked, block, used)?;
        }
        Ok(KeepOutcome::Yes { n_removed, n_left_out })
    }

    /// Gives a written block its name, and returns the bytes that are then used.
    fn place(
        &self,
        locked: &LockedUsage<'_>,
        mut block: WrittenBlock,
        used: u64,
    ) -> io::Result<u64> {
        let path = self.path(&block.id);
        let replaced = fs::symlink_metadata(&path).map_or(0, |replaced| cost(replaced.len()));
        let raised = used + block.cost;
        locked.set(raised)?;
        if let Err(error) = block.file.rename(&path) {
            let (io::ErrorKind::NotFound, Some(parent)) = (error.kind(), path.parent()) else {
                return Err(error);
            };
            new_folder().create(parent)?;
            block.file.rename(&path)?;
        }
        let used = raised.saturating_sub(replaced);
        if replaced > 0 {
            locked.set(used)?;
        }
        Ok(used)
    }

    /// Bytes to leave so that `cost` fits, with room for later blocks.
    fn room_for(&self, cost: u64) -> u64 {
        self.limit_bytes - cost.max(self.limit_bytes / FREED_PART).min(self.limit_bytes)
    }
}

impl Eviction {
    /// The objects whose blocks stay.
    fn spared(self, unfinished: &Unfinished) -> io::Result<HashSet<ObjectId>> {
        match self {
            Self::LongestUnread => Ok(HashSet::new()),
            Self::Unused => unfinished.objects_in_use(),
        }
    }
}

/// Removes blocks until at most `most` bytes are left, or none that may go, and records the rest.
fn make_room(
    locked: &LockedUsage<'_>,
    blocks: &Path,
    most: u64,
    spared: &HashSet<ObjectId>,
) -> io::Result<MadeRoom> {
    let mut scan = Scan::new(blocks)?;
    let n_removed = scan.shrink(blocks, most, spared);
    locked.set(scan.cost)?;
    Ok(MadeRoom { used: scan.cost, n_removed, n_blocks: scan.n_blocks() as u64 })
}

/// What is left after blocks were removed.
struct MadeRoom {
    /// Bytes of the blocks that are left.
    used: u64,
    n_removed: u64,
    /// Number of blocks before.
    n_blocks: u64,
}

/// Bytes read with one user's rights are not for every user of the machine.
fn new_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Reads a file, if its length is one of a block. Returns whether it is.
fn read(path: &Path, is_len: impl Fn(u64) -> bool, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_len(metadata.len()) || metadata.len() > MOST_BYTES {
        return Ok(false);
    }
    let len = metadata.len() as usize;
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
