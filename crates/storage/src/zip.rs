//! A Zip archive, whose entries are read in place as the files of a storage.
//!
//! Zarr's `ZipStore` writes such archives, `x.zarr.zip`. The directory at the archive's end is read
//! once. An entry that is stored as it is, which is Zarr's default, is a range of the archive. A
//! deflated one is inflated whole if it is small, and otherwise from its start to what is wanted.
//!
//! Where an entry's bytes begin is known only from a header before them. It is read together with
//! the first bytes that are wanted, which are expected behind a header like the last one.

mod directory;
mod entry;
mod inflated;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use self::directory::Directory;
use self::entry::{Entry as ZipEntry, Form, HEADER_BYTES};
use self::inflated::{InflatedEntries, Inflation, KEPT_BYTES, StoredBytes, WINDOW_BYTES};
use crate::address::local_path;
use crate::names;
use crate::storage::{
    Coalesce, Entry, Expected, FileVersion, ListedFile, Piece, RequestCounts, Storage,
    read_files_by_size, zeroed,
};

/// How names of archives end.
const ENDING: &str = ".zip";

/// Whether an address names a Zip archive, whose files are then read in place. A local folder of
/// such a name is not one.
pub fn names_archive(address: &str) -> bool {
    let ends = address.trim_end_matches('/').to_ascii_lowercase().ends_with(ENDING);
    let is_bucket = address.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    ends && match local_path(address) {
        Some(path) => !path.is_dir(),
        None => !is_bucket,
    }
}

/// An archive, and what is known of it. Storages that read it in different ways share this.
#[derive(Debug)]
pub(crate) struct Archive {
    /// Its name within the storage.
    name: String,
    /// Its directory, once it was read, and the version of the archive then.
    directory: Mutex<Option<(Arc<Directory>, FileVersion)>>,
    inflated: InflatedEntries,
    /// Bytes of the further fields in the header that was read last.
    last_fields: AtomicU64,
}

impl Archive {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            directory: Mutex::default(),
            inflated: InflatedEntries::default(),
            last_fields: AtomicU64::new(0),
        }
    }
}

/// The entries of an archive as files.
#[derive(Debug)]
pub(crate) struct ZipStorage {
    storage: Arc<dyn Storage>,
    archive: Arc<Archive>,
    /// The large deflated entry that was read last, behind what was read of it, since the next read
    /// often goes on there.
    unfinished: Mutex<Option<Inflation>>,
}

/// Bytes of an entry, as they are stored.
struct Stored<'a> {
    name: &'a str,
    entry: &'a ZipEntry,
    range: Range<u64>,
}

/// A part of an entry, and where its bytes go.
struct Part<'a> {
    name: &'a str,
    entry: &'a ZipEntry,
    range: Range<u64>,
    slot: &'a mut [u8],
}

impl Part<'_> {
    /// Copies it out of the whole entry.
    fn copy_from(&mut self, entry: &[u8]) {
        let start = self.range.start as usize;
        self.slot.copy_from_slice(&entry[start..start + self.slot.len()]);
    }
}

impl ZipStorage {
    /// The files in the archive, which `storage` has.
    pub(crate) fn new(storage: Arc<dyn Storage>, archive: Arc<Archive>) -> Self {
        Self { storage, archive, unfinished: Mutex::default() }
    }

    /// The archive's directory.
    fn directory(&self) -> io::Result<Arc<Directory>> {
        Ok(self.opened()?.0)
    }

    /// The archive's directory, and the version that it is of.
    fn opened(&self) -> io::Result<(Arc<Directory>, FileVersion)> {
        // Others wait for the one that reads it.
        let mut opened = self.archive.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let version = self.version()?;
        let read = Directory::read(&*self.storage, &self.archive.name);
        let read = Arc::new(read.map_err(|error| self.named("the archive", error))?);
        Ok(opened.insert((read, version)).clone())
    }

    /// The version of the archive now.
    fn version(&self) -> io::Result<FileVersion> {
        let version = self.storage.versions(&[&self.archive.name]).pop();
        version.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    /// The error, with the place of the archive.
    fn named(&self, what: &str, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::InvalidData {
            return error;
        }
        io::Error::new(error.kind(), format!("{what} in {}: {error}", self.place()))
    }

    /// The entry of a file, unless what the directory says of it cannot be.
    fn find<'a>(&self, directory: &'a Directory, file: &str) -> io::Result<&'a ZipEntry> {
        names::check(file)?;
        let entry = directory.entry(file).ok_or(io::ErrorKind::NotFound)?;
        entry.check(directory.entries_end).map_err(|error| self.named(file, error))?;
        Ok(entry)
    }

    /// The ranges of the archive with bytes of an entry: the header, unless it is known, and the
    /// bytes. These are where they would be behind a header like the last one.
    fn ranges(&self, stored: &Stored<'_>, end: u64) -> (Option<Range<u64>>, Range<u64>) {
        let Stored { name, entry, range } = stored;
        if let Some(start) = entry.start() {
            return (None, start + range.start..start + range.end);
        }
        let header = entry.header..entry.header + HEADER_BYTES + name.len() as u64;
        let fields = self.archive.last_fields.load(Ordering::Relaxed);
        let fits = header.end + fields + entry.n_stored <= end;
        let start = header.end + if fits { fields } else { 0 };
        (Some(header), start + range.start..start + range.end)
    }

    /// Reads stored bytes of entries, one after another.
    fn stored(&self, wanted: &[Stored<'_>], end: u64) -> io::Result<Vec<u8>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<_> = wanted.iter().map(|stored| self.ranges(stored, end)).collect();
        let headers = places.iter().filter_map(|(header, _)| header.clone());
        let data = places.iter().map(|(_, range)| range.clone());
        let mut bytes = self.read_ranges(headers.chain(data))?;
        let mut at = 0;
        let mut is_moved = false;
        for (stored, (header, range)) in wanted.iter().zip(&places) {
            let Some(header) = header else { continue };
            let len = (header.end - header.start) as usize;
            let fields = stored.entry.learn(stored.name, &bytes[at..at + len], end);
            let fields = fields.map_err(|error| self.named(stored.name, error))?;
            self.archive.last_fields.store(fields, Ordering::Relaxed);
            is_moved |= header.end + fields + stored.range.start != range.start;
            at += len;
        }
        if is_moved {
            let places = wanted.iter().map(|stored| self.ranges(stored, end).1);
            return self.read_ranges(places);
        }
        Ok(bytes.split_off(at))
    }

    fn read_ranges(&self, ranges: impl Iterator<Item = Range<u64>>) -> io::Result<Vec<u8>> {
        let pieces = self.pieces(ranges);
        let len: u64 = pieces.iter().map(|piece| piece.range.end - piece.range.start).sum();
        let mut bytes = zeroed(usize::try_from(len).unwrap_or(usize::MAX))?;
        self.storage.read(&pieces, &mut bytes)?;
        Ok(bytes)
    }

    fn pieces(&self, ranges: impl Iterator<Item = Range<u64>>) -> Vec<Piece<'_>> {
        ranges.map(|range| Piece { file: &self.archive.name, range }).collect()
    }

    /// Reads parts of entries that are stored as they are.
    fn read_stored(&self, parts: &mut [Part<'_>], end: u64) -> io::Result<()> {
        let wanted = parts.iter().map(|Part { name, entry, range, .. }| Stored {
            name,
            entry,
            range: range.clone(),
        });
        let bytes = self.stored(&wanted.collect::<Vec<_>>(), end)?;
        let mut rest = &bytes[..];
        for part in parts {
            let (read, after) = rest.split_at(part.slot.len());
            part.slot.copy_from_slice(read);
            rest = after;
        }
        Ok(())
    }

    /// Reads parts of deflated entries. Takes memory for some MiB of them at a time, however many
    /// and large they are.
    fn read_deflated(&self, mut parts: Vec<Part<'_>>, end: u64) -> io::Result<()> {
        parts.sort_by_key(|part| (part.entry.header, part.range.start));
        let (mut group, mut n_stored) = (Vec::new(), 0);
        for of_entry in parts.chunk_by_mut(|a, b| a.entry.header == b.entry.header) {
            let entry = of_entry[0].entry;
            if let Some(inflated) = self.archive.inflated.find(entry.header) {
                for part in of_entry {
                    part.copy_from(&inflated);
                }
                continue;
            }
            let first = entry.n_stored.min(WINDOW_BYTES);
            if WINDOW_BYTES < n_stored + first {
                self.inflate(std::mem::take(&mut group), end)?;
                n_stored = 0;
            }
            n_stored += first;
            group.push(of_entry);
        }
        self.inflate(group, end)
    }

    /// Reads parts of entries, the first stored bytes of all of them at once.
    fn inflate<'a>(&self, entries: Vec<&mut [Part<'a>]>, end: u64) -> io::Result<()> {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (goes_on, begun): (Vec<_>, Vec<_>) = entries.into_iter().partition(|parts| {
            unfinished.as_ref().is_some_and(|one| one.is_before(parts[0].entry, &parts[0].range))
        });
        for parts in goes_on {
            unfinished = self.inflate_parts(unfinished.take(), parts, end)?;
        }
        let first = |parts: &&mut [Part<'a>]| {
            let &Part { name, entry, .. } = &parts[0];
            Stored::<'a> { name, entry, range: 0..entry.n_stored.min(WINDOW_BYTES) }
        };
        let wanted: Vec<Stored<'_>> = begun.iter().map(first).collect();
        let bytes = self.stored(&wanted, end)?;
        let mut rest = &bytes[..];
        for (parts, stored) in begun.into_iter().zip(wanted) {
            let (first, after) = rest.split_at((stored.range.end - stored.range.start) as usize);
            rest = after;
            let inflation = self.inflation(stored.entry, first.to_vec());
            if stored.entry.n_bytes <= KEPT_BYTES as u64 {
                let made = inflation.whole().map_err(|error| self.named(stored.name, error))?;
                for part in parts {
                    part.copy_from(&made);
                }
                self.archive.inflated.keep(stored.entry.header, made);
            } else {
                unfinished = self.inflate_parts(Some(inflation), parts, end)?;
            }
        }
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = unfinished;
        Ok(())
    }

    /// Reads parts of an entry, which begin in order, one after another. Returns the inflation
    /// behind the last of them.
    fn inflate_parts(
        &self,
        mut inflation: Option<Inflation>,
        parts: &mut [Part<'_>],
        end: u64,
    ) -> io::Result<Option<Inflation>> {
        for Part { name, entry, range, slot } in parts {
            let kept = inflation.take().filter(|one| one.is_before(entry, range));
            let mut inflates = if let Some(kept) = kept {
                kept
            } else {
                let range = 0..entry.n_stored.min(WINDOW_BYTES);
                self.inflation(entry, self.stored(&[Stored { name, entry, range }], end)?)
            };
            let read = inflates.skip_to(range.start).and_then(|()| inflates.read(slot));
            read.map_err(|error| self.named(name, error))?;
            inflation = Some(inflates);
        }
        Ok(inflation)
    }

    /// Inflates an entry from its start on, whose first stored bytes were read.
    fn inflation(&self, entry: &ZipEntry, first: Vec<u8>) -> Inflation {
        // Reading the first bytes has shown where they begin.
        let start = entry.start().unwrap_or(u64::MAX);
        let rest = start.saturating_add(first.len() as u64)..start.saturating_add(entry.n_stored);
        let (storage, file) = (Arc::clone(&self.storage), self.archive.name.clone());
        Inflation::new(entry, StoredBytes::new((storage, file), first, rest))
    }
}

impl Storage for ZipStorage {
    crate::forward! { storage:
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn place(&self) -> String {
        format!("{}/{}", self.storage.place().trim_end_matches('/'), self.archive.name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        names::check(folder)?;
        match self.directory() {
            Ok(directory) => Ok(directory.list(folder.trim_matches('/'))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        match self.directory() {
            Ok(directory) => Ok(directory.list_all(most)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
            Err(error) => Err(error),
        }
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        let directory = self.directory()?;
        Ok(self.find(&directory, file)?.n_bytes)
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let unchanged = self.opened().and_then(|(_, opened)| {
            if self.version()? == opened {
                return Ok(opened.tag);
            }
            let what = format!("{} was replaced since it was opened: open it again", self.place());
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        });
        let version = |file: &&str| {
            let size = self.size(file)?;
            let tag = unchanged.as_ref().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
            Ok(FileVersion { size, tag: tag.clone() })
        };
        files.iter().map(version).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let directory = self.directory()?;
        let end = directory.entries_end;
        let mut entries = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let entry = self.find(&directory, piece.file)?;
            if piece.range.end < piece.range.start || entry.n_bytes < piece.range.end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            entries.push((piece.file, entry));
        }
        let is_direct =
            entries.iter().all(|(_, entry)| entry.form == Form::Stored && entry.start().is_some());
        if is_direct {
            let places = entries.iter().zip(pieces);
            let stored = places.map(|(&(name, entry), piece)| {
                let stored = Stored { name, entry, range: piece.range.clone() };
                self.ranges(&stored, end).1
            });
            self.storage.read(&self.pieces(stored), into)?;
        }
        let (mut rest, mut parts) = (into, Vec::with_capacity(pieces.len()));
        for (piece, (name, entry)) in pieces.iter().zip(entries) {
            let len = (piece.range.end - piece.range.start) as usize;
            let (slot, after) =
                rest.split_at_mut_checked(len).ok_or(io::ErrorKind::InvalidInput)?;
            rest = after;
            parts.push(Part { name, entry, range: piece.range.clone(), slot });
        }
        let (mut stored, deflated): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.entry.form == Form::Stored);
        if !is_direct {
            self.read_stored(&mut stored, end)?;
        }
        for Part { name, entry, range, slot } in stored {
            if range == (0..entry.n_bytes) {
                entry.check_sum(slot).map_err(|error| self.named(name, error))?;
            }
        }
        self.read_deflated(deflated, end)
    }

    /// All in one read, unless one of them cannot be read.
    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let sizes = self.sizes(files);
        let found = files.iter().zip(&sizes);
        let pieces: Vec<Piece<'_>> = found
            .filter_map(|(file, size)| Some(Piece { file, range: 0..*size.as_ref().ok()? }))
            .collect();
        let total =
            pieces.iter().fold(0, |total: u64, piece| total.saturating_add(piece.range.end));
        let read = zeroed(usize::try_from(total).unwrap_or(usize::MAX)).and_then(|mut bytes| {
            self.read(&pieces, &mut bytes)?;
            Ok(bytes)
        });
        let Ok(bytes) = read else { return read_files_by_size(self, files) };
        let mut rest = &bytes[..];
        let file = |size: io::Result<u64>| {
            let (file, after) = rest.split_at(size? as usize);
            rest = after;
            Ok(file.to_vec())
        };
        sizes.into_iter().map(file).collect()
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        let Ok(directory) = self.directory() else { return };
        let end = directory.entries_end;
        let ranges = pieces.iter().filter_map(|piece| {
            let entry = self.find(&directory, piece.file).ok()?;
            let is_stored = entry.form == Form::Stored;
            let first = 0..entry.n_stored.min(WINDOW_BYTES);
            let range = if is_stored { piece.range.clone() } else { first };
            Some(self.ranges(&Stored { name: piece.file, entry, range }, end))
        });
        let ranges = ranges.flat_map(|(header, data)| header.into_iter().chain([data]));
        self.storage.prefetch(&self.pieces(ranges), read);
    }
}
