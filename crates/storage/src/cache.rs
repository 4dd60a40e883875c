//! A cache on disk around another storage: bytes that were read from a remote store are kept and
//! served from disk, in this process and in later ones.
//!
//! [`CachedStorage`] documents its promises. [`plan`] cuts a read into blocks, [`store`] finds and
//! keeps blocks within the limit, [`block`] recognizes damaged blocks, and [`flights`] lets threads
//! that miss the same block share one fetch.
//!
//! Why blocks of 256 KiB: opening two TileDB arrays of 43 and 490 MB behind 30 ms per request, and
//! reading 16 random chunks of 64 rows, took 10 and 38 requests for 36 and 80 MB with an empty
//! cache (16 KiB: 26 and 46 requests for 29 and 70 MB; 1 MiB: 10 and 32 for 39 and 110; without a
//! cache: 38 and 42 for 28 and 69). Smaller blocks leave gaps that the reader announces again and
//! again and never reads; larger ones fetch what nobody asked for (example `through_cache` of
//! tiledb-native). Cached blocks were read at 3 to 6 GB/s, 8 kB in 48 µs.

pub(crate) mod block;
mod flights;
mod plan;
mod scan;
mod stats;
mod store;
mod unfinished;
mod usage;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use self::block::object_id;
use self::flights::{Claim, Fetcher, Flight, Flights};
use self::plan::{Known, Plan, Wanted, runs};
use self::stats::Counters;
use crate::storage::{
    Coalesce, Entry, Expected, FileVersion, ListedFile, Piece, RequestCounts, Storage,
    read_files_by_size,
};

pub use self::block::{BlockId, ObjectId};
pub use self::stats::{CacheStats, CacheUse};
pub use self::store::{BlockStore, Eviction, KeepOutcome, Lookup, WrittenBlock};

/// Whether a file, named by its path, keeps the bytes that it has once it is there.
pub type NeverChanges = fn(&str) -> bool;

/// Allowed sizes of blocks.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 20;

/// The place and size of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSpec {
    /// Its folder, on a disk of this machine. It is made if it does not exist, readable by this
    /// user only.
    pub folder: PathBuf,
    /// Most bytes of its blocks on disk, in whole 4 KiB, for all processes together and after
    /// crashes, too. Only blocks that are being written come on top: one for each thread that
    /// fetches. Storages that share a folder each keep their own limit.
    pub limit_bytes: u64,
    /// Bytes of a block: a power of two from 4 KiB to 64 MiB. Storages with blocks of another size
    /// do not find these blocks.
    pub block_bytes: u64,
}

impl CacheSpec {
    /// A cache in `folder` of up to `limit_bytes` in blocks of 256 KiB.
    pub fn new(folder: impl Into<PathBuf>, limit_bytes: u64) -> Self {
        Self { folder: folder.into(), limit_bytes, block_bytes: 256 << 10 }
    }

    fn check(&self) -> io::Result<()> {
        let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if !self.block_bytes.is_power_of_two() || !BLOCK_BYTES.contains(&self.block_bytes) {
            return refuse(format!(
                "blocks of {} bytes; they are to be a power of two of 4,096 to 67,108,864 bytes",
                self.block_bytes
            ));
        }
        let least = scan::cost(self.block_bytes + block::HEADER_BYTES as u64);
        if self.limit_bytes < least {
            return refuse(format!(
                "a limit of {} bytes, and one block takes {least}; allow more",
                self.limit_bytes
            ));
        }
        Ok(())
    }
}

/// A storage that keeps on disk what it read from another one, for later reads in this process and
/// in others.
///
/// # What is cached
///
/// Bytes of files that never change once they are there, which the caller names by a function
/// ([`NeverChanges`]). Everything else, and every listing, always comes from the storage behind.
///
/// Each `CachedStorage` asks for the size and tag of such a file ([`Storage::versions`]) once, when
/// the file is first touched: one request per file. Blocks belong to place, name, size and tag. A
/// file that was replaced all the same is another file to a storage made later, unless it has the
/// same size and the storage behind knows no tag. Any number of data sets may share a folder if
/// they have different [places](Storage::place).
///
/// # Promises
///
/// A read gives the bytes of the storage behind, or its error. Blocks that are not in the folder
/// are fetched in one call, in as few ranges as the storage behind [allows](Storage::coalesce);
/// threads of a process that miss the same block fetch it once. Each block has a checksum: a block
/// that is cut short, damaged or foreign is fetched again and replaced. If blocks cannot be kept (a
/// full disk, a removed folder), reads go on without: [`CacheStats::not_kept`] counts them and
/// [`CachedStorage::problem`] names the reason.
///
/// Any number of processes may fill a folder at once. A killed process leaves nothing that could be
/// taken for a block, and its remains are removed when the cache is next opened or full. At the
/// limit a sixteenth is freed, blocks first that were not read for the longest time, to the minute.
/// That scans all blocks, as does opening a cache that no living process has open: 200,000 blocks
/// took 0.8 s, and 2.7 s when the system did not have them cached. Other reads wait 50 ms for a
/// scan and then go on without keeping what they fetched. The thread that fetched a block writes it
/// before its read returns, so a first read waits for the disk as well. The folder's file system
/// must support `flock`.
///
/// ```
/// use std::sync::Arc;
/// use storage::{CacheSpec, CachedStorage, LocalStorage, Piece, Storage};
///
/// # let (far, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// # std::fs::write(far.path().join("chunk-7"), vec![7; 1000])?;
/// let spec = CacheSpec::new(folder.path(), 100 << 30);
/// let behind = Arc::new(LocalStorage::new(far.path()));
/// let cached = CachedStorage::new(behind, &spec, |file| file.starts_with("chunk-"))?;
/// cached.read(&[Piece { file: "chunk-7", range: 0..100 }], &mut [0; 100])?;
/// let stats = cached.stats();
/// println!("{} blocks found, {} fetched", stats.hits, stats.misses);
/// if let Some(problem) = cached.problem() {
///     eprintln!("{} blocks could not be kept: {problem}", stats.not_kept);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct CachedStorage {
    inner: Arc<dyn Storage>,
    spec: CacheSpec,
    never_changes: NeverChanges,
    store: BlockStore,
    flights: Flights,
    counters: Counters,
    /// Files that never change.
    known: Mutex<HashMap<String, (FileVersion, Known)>>,
    /// Locked by the thread that asks about files.
    asking: Mutex<()>,
    problem: Mutex<Option<String>>,
}

impl CachedStorage {
    /// Caches the files of `inner` that `never_changes` names. Removes what killed processes left
    /// behind, and blocks beyond the limit.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if `spec` is out of range; other kinds if the folder cannot
    /// be made, read or written, or if another process locks it for half a minute.
    pub fn new(
        inner: Arc<dyn Storage>,
        spec: &CacheSpec,
        never_changes: NeverChanges,
    ) -> io::Result<Self> {
        let opened = spec.check().and_then(|()| {
            BlockStore::open(&spec.folder, spec.limit_bytes, Eviction::LongestUnread)
        });
        let (store, n_removed) = opened.map_err(|error| {
            let what = format!("could not open the cache in {}: {error}", spec.folder.display());
            io::Error::new(error.kind(), what)
        })?;
        let counters = Counters::default();
        counters.evictions.add(n_removed);
        Ok(Self {
            inner,
            spec: spec.clone(),
            never_changes,
            store,
            flights: Flights::default(),
            counters,
            known: Mutex::default(),
            asking: Mutex::default(),
            problem: Mutex::default(),
        })
    }

    /// Its counts so far.
    pub fn stats(&self) -> CacheStats {
        self.counters.stats()
    }

    /// Its counts and its last problem.
    pub fn usage(&self) -> CacheUse {
        CacheUse { stats: self.stats(), problem: self.problem() }
    }

    /// Why a block could not be kept, the last time this happened; `None` if all could. Reads go on
    /// without the cache: after such a failure some reads are not cached at all, then writing is
    /// tried again.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The version of a file, if it was asked for before.
    fn recall(&self, file: &str) -> Option<(FileVersion, Known)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned()
    }

    /// The version of each of `files`; `None` for files that are not cached. All that are missing
    /// are asked for in one call, and once.
    fn know<'a>(&self, files: &[&'a str]) -> Vec<io::Result<Option<(FileVersion, Known)>>> {
        let is_unknown = |file: &&str| (self.never_changes)(file) && self.recall(file).is_none();
        let mut failed: HashMap<&'a str, Arc<io::Error>> = HashMap::new();
        if files.iter().any(is_unknown) {
            // Another thread may be asking about the same.
            let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            let mut unknown: Vec<&'a str> = files.iter().copied().filter(is_unknown).collect();
            unknown.sort_unstable();
            unknown.dedup();
            for (file, version) in unknown.iter().zip(self.inner.versions(&unknown)) {
                match version {
                    Ok(version) => self.learn(file, version),
                    Err(error) => drop(failed.insert(file, Arc::new(error))),
                }
            }
        }
        let answer = |file: &&str| match failed.get(file) {
            Some(error) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            None => Ok(self.recall(file)),
        };
        files.iter().map(answer).collect()
    }

    fn learn(&self, file: &str, version: FileVersion) {
        let object = object_id(&self.inner.place(), file, &version, self.spec.block_bytes);
        let known = Known { object, size: version.size };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(file.to_owned(), (version, known));
    }

    fn plan<'a>(&self, pieces: &[Piece<'a>], len: usize) -> io::Result<Plan<'a>> {
        let mut files: Vec<&str> = pieces.iter().map(|piece| piece.file).collect();
        files.sort_unstable();
        files.dedup();
        let mut known = HashMap::with_capacity(files.len());
        for (file, found) in files.iter().zip(self.know(&files)) {
            known.insert(*file, found?.map(|(_, known)| known));
        }
        Plan::new(pieces, len, self.spec.block_bytes, |file| known.get(file).copied().flatten())
    }

    /// Copies from the block's file, if it is whole.
    fn copy_found(&self, block: &Wanted<'_>, buffer: &mut Vec<u8>, into: &mut [u8]) -> Lookup {
        let found = self.store.find(&block.id, block.len(), buffer);
        if found == Lookup::Whole {
            self.counters.hits.add(1);
            let copied = block.copy(&buffer[block::HEADER_BYTES..], into);
            self.counters.bytes_from_cache.add(copied);
        }
        found
    }

    /// Fetches blocks and uncached pieces in one call, and keeps the blocks.
    fn fetch(
        &self,
        blocks: Vec<(Wanted<'_>, Claim<'_>)>,
        whole: &[(Piece<'_>, usize)],
        into: &mut [u8],
    ) -> io::Result<()> {
        let mut pieces =
            runs(blocks.iter().map(|(block, _)| block), self.inner.coalesce().gap_bytes);
        let n_runs = pieces.len();
        pieces.extend(whole.iter().map(|(piece, _)| piece.clone()));
        let lens: Vec<usize> =
            pieces.iter().map(|piece| (piece.range.end - piece.range.start) as usize).collect();
        let mut bytes = vec![0; lens.iter().sum()];
        self.inner.read(&pieces, &mut bytes)?;
        self.counters.bytes_fetched.add(bytes.len() as u64);
        self.counters.misses.add(blocks.len() as u64);
        let bytes = Bytes::from(bytes);
        let mut begin = lens[..n_runs].iter().sum();
        for ((_, at), len) in whole.iter().zip(&lens[n_runs..]) {
            into[*at..at + len].copy_from_slice(&bytes[begin..begin + len]);
            begin += len;
        }
        let (mut run, mut begin) = (0, 0);
        let mut to_keep = Vec::with_capacity(blocks.len());
        for (block, claim) in blocks {
            while pieces[run].file != block.file || pieces[run].range.end < block.range.end {
                begin += lens[run];
                run += 1;
            }
            let start = begin + (block.range.start - pieces[run].range.start) as usize;
            let of_block = bytes.slice(start..start + block.len());
            block.copy(&of_block, into);
            claim.give(of_block.clone());
            to_keep.push((block.id, of_block, claim));
        }
        // A claim ends once its block is kept: later threads find it there.
        for (id, of_block, _claim) in to_keep {
            self.keep(&id, &of_block);
        }
        Ok(())
    }

    fn keep(&self, id: &BlockId, payload: &[u8]) {
        if self.store.is_paused() {
            self.store.leave_out(1);
            self.counters.not_kept.add(1);
            return;
        }
        match self.store.keep(id, payload) {
            KeepOutcome::Yes { n_removed, .. } => self.counters.evictions.add(n_removed),
            KeepOutcome::Busy => self.counters.not_kept.add(1),
            KeepOutcome::Failed(error) => {
                self.counters.not_kept.add(1);
                let folder = self.spec.folder.display();
                let text = format!("could not keep a block in {folder}: {error}");
                *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
        }
    }

    /// Gets the missing blocks of `plan` from the storage behind, or from threads that are fetching
    /// them, and its uncached pieces.
    fn get(&self, plan: Plan<'_>, buffer: &mut Vec<u8>, into: &mut [u8]) -> io::Result<()> {
        let Plan { mut blocks, mut whole } = plan;
        while !blocks.is_empty() || !whole.is_empty() {
            let mut ours = Vec::new();
            let mut others: Vec<(Wanted<'_>, Arc<Flight>)> = Vec::new();
            for block in blocks.drain(..) {
                match self.flights.assign(block.id) {
                    // Between looking and claiming another thread may have kept it.
                    Fetcher::Us(claim) => match self.copy_found(&block, buffer, into) {
                        Lookup::Whole => drop(claim),
                        Lookup::Absent | Lookup::Damaged => ours.push((block, claim)),
                    },
                    Fetcher::Others(flight) => others.push((block, flight)),
                }
            }
            // Our own first, so that nobody waits for a thread that waits.
            if !ours.is_empty() || !whole.is_empty() {
                self.fetch(ours, &whole, into)?;
                whole.clear();
            }
            for (block, flight) in others {
                if let Some(bytes) = flight.wait() {
                    self.counters.shared.add(1);
                    block.copy(&bytes, into);
                } else {
                    blocks.push(block);
                }
            }
        }
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods)]
impl Storage for CachedStorage {
    crate::forward! { inner:
        fn place() -> String;
        fn list(folder: &str) -> io::Result<Vec<Entry>>;
        fn list_each(folders: &[&str]) -> Vec<io::Result<Vec<Entry>>>;
        fn list_all(most: usize) -> io::Result<Option<Vec<ListedFile>>>;
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        match self.know(&[file]).pop() {
            Some(Ok(Some((version, _)))) => Ok(version.size),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => self.inner.size(file),
        }
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.versions(files).into_iter().map(|version| Ok(version?.size)).collect()
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let (cached, others): (Vec<&str>, Vec<&str>) =
            files.iter().partition(|file| (self.never_changes)(file));
        let (mut cached, mut others) =
            (self.know(&cached).into_iter(), self.inner.versions(&others).into_iter());
        let none = || io::Error::from(io::ErrorKind::NotFound);
        let answer = |file: &&str| {
            if (self.never_changes)(file) {
                cached.next().ok_or_else(none)??.map(|(version, _)| version).ok_or_else(none)
            } else {
                others.next().ok_or_else(none)?
            }
        };
        files.iter().map(answer).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let mut plan = self.plan(pieces, into.len())?;
        if plan.blocks.is_empty() {
            self.inner.read(pieces, into)?;
            let len = pieces.iter().map(|piece| piece.range.end - piece.range.start).sum();
            self.counters.bytes_fetched.add(len);
            return Ok(());
        }
        let mut buffer = Vec::new();
        plan.blocks.retain(|block| match self.copy_found(block, &mut buffer, into) {
            Lookup::Whole => false,
            Lookup::Absent => true,
            Lookup::Damaged => {
                self.counters.damaged.add(1);
                true
            }
        });
        if self.store.is_paused() && !plan.blocks.is_empty() {
            // Whole blocks would be fetched and thrown away.
            let n_blocks = plan.blocks.len() as u64;
            self.counters.misses.add(n_blocks);
            self.counters.not_kept.add(n_blocks);
            self.store.leave_out(n_blocks);
            plan.give_up_blocks(pieces);
        }
        self.get(plan, &mut buffer, into)
    }

    /// Files that are not cached are read as the storage behind reads them best.
    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let (cached, others): (Vec<&str>, Vec<&str>) =
            files.iter().partition(|file| (self.never_changes)(file));
        let (mut cached, mut others) = (
            read_files_by_size(self, &cached).into_iter(),
            self.inner.read_files(&others).into_iter(),
        );
        let read = |file: &&str| {
            let next = if (self.never_changes)(file) { cached.next() } else { others.next() };
            let bytes = next.ok_or(io::ErrorKind::NotFound)??;
            if !(self.never_changes)(file) {
                self.counters.bytes_fetched.add(bytes.len() as u64);
            }
            Ok(bytes)
        };
        files.iter().map(read).collect()
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        // A problem with a file is the read's to report.
        let Ok(mut plan) = self.plan(pieces, usize::MAX) else { return };
        plan.blocks.retain(|block| !self.store.has(&block.id));
        if self.store.is_paused() {
            plan.give_up_blocks(pieces);
        }
        let mut missing = runs(&plan.blocks, self.inner.coalesce().gap_bytes);
        missing.extend(plan.whole.into_iter().map(|(piece, _)| piece));
        if !missing.is_empty() || read == Expected::Now {
            self.inner.prefetch(&missing, read);
        }
    }
}
