//! The storage behind a cache: files with known bytes, and a record of the requests.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use storage::{Coalesce, Entry, Expected, FileVersion, Piece, Storage};

use crate::stored::packed::MemoryStorage;

/// A folder named like a fragment.
pub(crate) const FRAGMENT: &str = "__fragments/__1_2_70f1b2c0f0669ba097275f1a0db8dd1c_22";

/// Bytes of a file, different in any two blocks or files.
pub(crate) fn bytes(file: &str, range: Range<u64>) -> impl Iterator<Item = u8> {
    let name = file.bytes().fold(7_u64, |sum, byte| sum * 31 % 65_521 + u64::from(byte));
    range.map(move |at| ((at ^ (name << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
}

type Named = (String, Range<u64>);

/// Bytes of a file, and its tag.
type File = (Vec<u8>, Option<String>);

#[derive(Debug)]
pub(crate) struct Behind {
    place: &'static str,
    files: Mutex<BTreeMap<String, File>>,
    pub(crate) fails: AtomicBool,
    pub(crate) n_reads: AtomicUsize,
    pub(crate) n_versions: AtomicUsize,
    delay: Mutex<Duration>,
    read: Mutex<Vec<Named>>,
    announced: Mutex<Vec<Named>>,
}

impl Behind {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, u64)>) -> Arc<Self> {
        Self::at("behind", files)
    }

    /// Files of these sizes.
    pub(crate) fn at<'a>(
        place: &'static str,
        files: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Arc<Self> {
        let files = files
            .into_iter()
            .map(|(file, size)| (file.to_owned(), (bytes(file, 0..size).collect(), None)));
        Self::with_files(place, files.collect())
    }

    /// The files of an array.
    pub(crate) fn packed(packed: &MemoryStorage) -> Arc<Self> {
        let files = packed.files.iter().map(|(file, bytes)| (file.clone(), (bytes.clone(), None)));
        Self::with_files("behind", files.collect())
    }

    fn with_files(place: &'static str, files: BTreeMap<String, File>) -> Arc<Self> {
        Arc::new(Self {
            place,
            files: Mutex::new(files),
            fails: AtomicBool::new(false),
            n_reads: AtomicUsize::new(0),
            n_versions: AtomicUsize::new(0),
            delay: Mutex::default(),
            read: Mutex::default(),
            announced: Mutex::default(),
        })
    }

    fn version(&self, file: &str) -> io::Result<FileVersion> {
        let files = self.files.lock().unwrap();
        let (bytes, tag) = files.get(file).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileVersion { size: bytes.len() as u64, tag: tag.clone() })
    }

    pub(crate) fn delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    pub(crate) fn replace(&self, file: &str, bytes: Vec<u8>, tag: Option<&str>) {
        let with = (bytes, tag.map(str::to_owned));
        self.files.lock().unwrap().insert(file.to_owned(), with);
    }

    pub(crate) fn remove(&self, file: &str) {
        self.files.lock().unwrap().remove(file);
    }

    /// The reads since the last call.
    pub(crate) fn take_read(&self) -> Vec<Named> {
        std::mem::take(&mut self.read.lock().unwrap())
    }

    pub(crate) fn take_announced(&self) -> Vec<Named> {
        std::mem::take(&mut self.announced.lock().unwrap())
    }
}

fn named(pieces: &[Piece<'_>]) -> impl Iterator<Item = Named> {
    pieces.iter().map(|piece| (piece.file.to_owned(), piece.range.clone()))
}

impl Storage for Behind {
    fn place(&self) -> String {
        self.place.to_owned()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let files = self.files.lock().unwrap();
        let files = files.keys().map(|file| (file.clone(), Vec::new())).collect();
        MemoryStorage { files }.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.version(file).map(|version| version.size)
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        self.n_versions.fetch_add(1, Ordering::SeqCst);
        files.iter().map(|file| self.version(file)).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.n_reads.fetch_add(1, Ordering::SeqCst);
        self.read.lock().unwrap().extend(named(pieces));
        let delay = *self.delay.lock().unwrap();
        std::thread::sleep(delay);
        if self.fails.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line is cut"));
        }
        let files = self.files.lock().unwrap();
        let mut rest = into;
        for piece in pieces {
            let range = piece.range.start as usize..piece.range.end as usize;
            let (bytes, _) = files.get(piece.file).ok_or(io::ErrorKind::NotFound)?;
            let bytes = bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
            let (slot, after) =
                rest.split_at_mut_checked(bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
            slot.copy_from_slice(bytes);
            rest = after;
        }
        Ok(())
    }

    fn prefetch(&self, pieces: &[Piece<'_>], _read: Expected) {
        self.announced.lock().unwrap().extend(named(pieces));
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 5000, batch_bytes: 20_000, prefetch_bytes: 1 << 20 }
    }
}
