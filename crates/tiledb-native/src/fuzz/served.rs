//! Files in memory that represent an array's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use storage::{Coalesce, Entry, Piece, Storage};

use super::split_at_most;

/// Reported size of files without content.
pub(super) const EMPTY_FILE_BYTES: u64 = 1 << 20;

/// Files of an array by their paths, and entries of folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Served {
    pub(super) files: BTreeMap<String, Arc<Vec<u8>>>,
    /// Whether missing files have [`EMPTY_FILE_BYTES`] zeros.
    pub(super) serves_all: bool,
}

impl Served {
    /// One file.
    pub(super) fn one(path: &str, bytes: &[u8]) -> Self {
        Self {
            files: BTreeMap::from([(path.to_owned(), Arc::new(bytes.to_vec()))]),
            serves_all: false,
        }
    }

    /// Unpacks an array: for each file the length of its path (u16), its own length (u32), its
    /// path, its bytes. Truncated files are left out.
    pub(super) fn unpack(bytes: &[u8]) -> Self {
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

    /// These files with `changes`, each a file (1 byte), a place (2 bytes), a number of bytes (1
    /// byte), and the bytes. A change of no bytes truncates the file there.
    pub(super) fn changed(&self, changes: &[u8]) -> Self {
        let (mut served, mut rest) = (self.clone(), changes);
        while let Some((change, after)) = rest.split_first_chunk::<4>() {
            let (bytes, after) = split_at_most(after, change[3].into());
            rest = after;
            let n_files = served.files.len();
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

impl Storage for Served {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
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
        match self.files.get(file) {
            Some(bytes) => Ok(bytes.len() as u64),
            None if self.serves_all => Ok(EMPTY_FILE_BYTES),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for piece in pieces {
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
