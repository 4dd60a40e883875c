//! Arrays stored as one file each, served from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use storage::{Coalesce, Entry, Piece, Storage};

/// The files of an array, in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryStorage {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl MemoryStorage {
    /// Unpacks an array: for each file the length of its path (u16), its own length (u32), its
    /// path, its bytes. Truncated files are left out.
    pub(crate) fn unpack(bytes: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        let mut rest = bytes;
        while let Some((header, after)) = rest.split_first_chunk::<6>() {
            let path_len = usize::from(u16::from_le_bytes([header[0], header[1]]));
            let file_len =
                u32::from_le_bytes([header[2], header[3], header[4], header[5]]) as usize;
            let Some((path, after)) = after.split_at_checked(path_len) else { break };
            let Some((file, after)) = after.split_at_checked(file_len) else { break };
            files.insert(String::from_utf8_lossy(path).into_owned(), file.to_vec());
            rest = after;
        }
        Self { files }
    }

    fn file(&self, file: &str) -> io::Result<&[u8]> {
        self.files.get(file).map(Vec::as_slice).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Storage for MemoryStorage {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let entries: BTreeSet<(String, bool)> = below
            .map(|path| match path.split_once('/') {
                Some((folder, _)) => (folder.to_owned(), true),
                None => (path.to_owned(), false),
            })
            .collect();
        let entry = |(name, is_folder)| Entry { name, is_folder, bytes: None };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        Ok(self.file(file)?.len() as u64)
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for piece in pieces {
            let range = piece.range.start as usize..piece.range.end as usize;
            let bytes = self.file(piece.file)?.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
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
