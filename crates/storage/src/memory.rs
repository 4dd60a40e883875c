//! Files in memory, for tests, and for fuzz targets of this and other crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use crate::names;
use crate::storage::{Coalesce, Entry, Piece, Storage};

/// Files in memory by their paths, read as a [`Storage`].
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    /// The files.
    pub files: BTreeMap<String, Arc<Vec<u8>>>,
    /// For fuzz targets. Whether missing files have a size, and no bytes.
    #[doc(hidden)]
    pub serves_all: bool,
}

impl MemoryStorage {
    /// Reported size of files without content.
    #[doc(hidden)]
    pub const EMPTY_FILE_BYTES: u64 = 1 << 20;

    /// One file.
    pub fn one(path: &str, bytes: &[u8]) -> Self {
        Self {
            files: BTreeMap::from([(path.to_owned(), Arc::new(bytes.to_vec()))]),
            serves_all: false,
        }
    }

    /// For fuzz targets. Unpacks files: for each the length of its path (u16), its own length
    /// (u32), its path, its bytes. Truncated files are left out.
    #[doc(hidden)]
    pub fn unpack(bytes: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        let mut rest = bytes;
        while let Some((header, after)) = rest.split_first_chunk::<6>() {
            let path_len = usize::from(u16::from_le_bytes([header[0], header[1]]));
            let file_len =
                u32::from_le_bytes([header[2], header[3], header[4], header[5]]) as usize;
            let Some((path, after)) = after.split_at_checked(path_len) else { break };
            let Some((file, after)) = after.split_at_checked(file_len) else { break };
            files.insert(String::from_utf8_lossy(path).into_owned(), Arc::new(file.to_vec()));
            rest = after;
        }
        Self { files, serves_all: false }
    }

    /// Reads all files below a folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(below) = folders.pop() {
            for entry in fs::read_dir(below)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(folder) {
                    let name = name.to_string_lossy().into_owned();
                    files.insert(name, Arc::new(fs::read(&path)?));
                }
            }
        }
        Ok(Self { files, serves_all: false })
    }

    /// For fuzz targets. These files with `changes`, each a file (1 byte), a place (2 bytes), a
    /// number of bytes (1 byte), and the bytes. A change of no bytes truncates the file there.
    #[doc(hidden)]
    #[must_use]
    pub fn changed(&self, changes: &[u8]) -> Self {
        let (mut served, mut rest) = (self.clone(), changes);
        while let Some((change, after)) = rest.split_first_chunk::<4>() {
            let (bytes, after) = after.split_at(after.len().min(change[3].into()));
            rest = after;
            let n_files = served.files.len().max(1);
            let file = served.files.values_mut().nth(usize::from(change[0]) % n_files);
            let Some(file) = file.filter(|file| !file.is_empty()).map(Arc::make_mut) else {
                continue;
            };
            let start = usize::from(u16::from_le_bytes([change[1], change[2]])) % file.len();
            let end = file.len().min(start + bytes.len());
            file[start..end].copy_from_slice(&bytes[..end - start]);
            if bytes.is_empty() {
                file.truncate(start);
            }
        }
        served
    }
}

impl Storage for MemoryStorage {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        names::check(folder)?;
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let entries: BTreeSet<(&str, bool)> = below
            .map(|path| match path.split_once('/') {
                Some((folder, _)) => (folder, true),
                None => (path, false),
            })
            .collect();
        let entries = entries.into_iter();
        let entry = |(name, is_folder): (&str, bool)| Entry {
            name: name.to_owned(),
            is_folder,
            bytes: None,
        };
        Ok(entries.map(entry).collect())
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        names::check(file)?;
        match self.files.get(file) {
            Some(bytes) => Ok(bytes.len() as u64),
            None if self.serves_all => Ok(Self::EMPTY_FILE_BYTES),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for piece in pieces {
            names::check(piece.file)?;
            let file = self.files.get(piece.file).ok_or(io::ErrorKind::NotFound)?;
            let range = piece.range.start as usize..piece.range.end as usize;
            let bytes = file.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
            let (slot, after) =
                rest.split_at_mut_checked(bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
            slot.copy_from_slice(bytes);
            rest = after;
        }
        Ok(())
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 64, batch_bytes: 4096, prefetch_bytes: 0 }
    }
}
