//! Whole structures from a storage, with errors that name the file and the action.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::storage::{Entry, Piece, Storage, zeroed};

/// Reads of more bytes are compared with the sizes of the files before memory is allocated.
const UNCHECKED_BYTES: u64 = 4 << 20;

/// A storage whose errors name the file and the operation.
#[derive(Debug, Clone)]
pub struct Files {
    storage: Arc<dyn Storage>,
}

impl Files {
    /// The files of `storage`.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// The storage behind.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// The storage's [place](Storage::place).
    pub fn place(&self) -> String {
        self.storage.place()
    }

    /// The name of a file for an error.
    pub fn name(&self, file: &str) -> String {
        let place = self.storage.place();
        format!("{}/{file}", place.trim_end_matches('/'))
    }

    /// The files and folders in `folder`, sorted by name; none if it does not exist.
    pub fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let mut entries =
            self.storage.list(folder).map_err(|source| self.error("list", folder, source))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The files and folders in each of `folders`, sorted by name, asked for at a time; the first
    /// error if any fails.
    pub fn list_each(&self, folders: &[&str]) -> Result<Vec<Vec<Entry>>, Error> {
        let listed = self.storage.list_each(folders).into_iter().zip(folders);
        let listed = listed.map(|(entries, folder)| {
            let mut entries = entries.map_err(|source| self.error("list", folder, source))?;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        });
        listed.collect()
    }

    /// Bytes of a file.
    pub fn size(&self, file: &str) -> Result<u64, Error> {
        self.storage.size(file).map_err(|source| self.error("get the size of", file, source))
    }

    /// Bytes of each of `files`, in their order; the first error if any fails.
    pub fn sizes(&self, files: &[&str]) -> Result<Vec<u64>, Error> {
        let sizes = self.storage.sizes(files).into_iter().zip(files);
        let action = "get the size of";
        sizes.map(|(size, file)| size.map_err(|source| self.error(action, file, source))).collect()
    }

    /// Reads every piece. All of them are slices of one buffer.
    ///
    /// # Errors
    /// Those of [`Files::read`].
    pub fn read_each(&self, pieces: &[Piece<'_>]) -> Result<Vec<Bytes>, Error> {
        let bytes = Bytes::from(self.read_pieces(pieces)?);
        let mut start = 0;
        let each = pieces.iter().map(|piece| {
            let end = bytes.len().min(start + piece_bytes(piece) as usize);
            let these = bytes.slice(start..end);
            start = end;
            these
        });
        Ok(each.collect())
    }

    /// Reads `len` bytes at `offset`. If they are many, the size of the file is asked for first, so
    /// that a wrong length allocates nothing.
    ///
    /// # Errors
    /// [`Error::File`]: with [`io::ErrorKind::UnexpectedEof`] if the file is too short, with
    /// [`io::ErrorKind::OutOfMemory`] if there is too little memory, and those of
    /// [`Storage::read`].
    pub fn read(&self, file: &str, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        self.read_pieces(&[Piece { file, range: offset..offset.saturating_add(len as u64) }])
    }

    /// Reads pieces one after another into new memory.
    fn read_pieces(&self, pieces: &[Piece<'_>]) -> Result<Vec<u8>, Error> {
        let len = pieces.iter().map(piece_bytes).fold(0, u64::saturating_add);
        if len > UNCHECKED_BYTES {
            self.check_within(pieces)?;
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = zeroed(len).map_err(|source| self.read_error(pieces, source))?;
        self.read_into(pieces, &mut bytes)?;
        Ok(bytes)
    }

    /// Fails if a piece reaches beyond its file.
    fn check_within(&self, pieces: &[Piece<'_>]) -> Result<(), Error> {
        let files: Vec<&str> = pieces.iter().map(|piece| piece.file).collect();
        for (piece, size) in pieces.iter().zip(self.sizes(&files)?) {
            if piece.range.end > size {
                let what = format!("the file has {size} bytes");
                let source = io::Error::new(io::ErrorKind::UnexpectedEof, what);
                return Err(self.read_error(std::slice::from_ref(piece), source));
            }
        }
        Ok(())
    }

    /// Reads all bytes of a file.
    pub fn read_whole(&self, file: &str) -> Result<Vec<u8>, Error> {
        Ok(self.read_files(&[file])?.pop().unwrap_or_default())
    }

    /// Reads all bytes of each of `files`, at a time; the first error if any fails.
    pub fn read_files(&self, files: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let read = self.storage.read_files(files).into_iter().zip(files);
        read.map(|(bytes, file)| bytes.map_err(|source| self.error("read", file, source))).collect()
    }

    /// Reads every piece into its slice of `into`, like [`Storage::read`].
    pub fn read_into(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> Result<(), Error> {
        self.storage.read(pieces, into).map_err(|source| self.read_error(pieces, source))
    }

    /// The error of a read.
    fn read_error(&self, pieces: &[Piece<'_>], source: io::Error) -> Error {
        match pieces {
            [] => self.error("read", "", source),
            [one] => {
                let action = format!("read {} bytes at {} of", piece_bytes(one), one.range.start);
                self.error(&action, one.file, source)
            }
            [first, ..] => {
                let (n, at) = (pieces.len(), first.range.start);
                let action = format!("read one of {n} ranges, the first at {at} of");
                self.error(&action, first.file, source)
            }
        }
    }

    fn error(&self, action: &str, file: &str, source: io::Error) -> Error {
        Error::File { action: action.to_owned(), file: self.name(file), source }
    }
}

fn piece_bytes(piece: &Piece<'_>) -> u64 {
    piece.range.end.saturating_sub(piece.range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalStorage;

    /// Allocating this many bytes first would end the process.
    #[test]
    fn lengths_are_compared_with_the_file_before_memory_is_allocated() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), b"0123456789").unwrap();
        let files = Files::new(Arc::new(LocalStorage::new(folder.path())));
        assert_eq!(files.read("a", 2, 3).unwrap(), b"234");
        let pieces = |end: u64| {
            [(0, 4), (3, end)].map(|(start, end)| Piece { file: "a", range: start..end })
        };
        assert_eq!(files.read_each(&pieces(5)).unwrap(), [&b"0123"[..], b"34"]);
        let long = 1 << 46;
        let errors = [
            files.read("a", 0, long).unwrap_err(),
            files.read_each(&pieces(long as u64)).unwrap_err(),
        ];
        for error in errors {
            let Error::File { file, source, .. } = error else { panic!("{error}") };
            assert_eq!(source.kind(), io::ErrorKind::UnexpectedEof);
            assert!(file.ends_with("/a") && source.to_string().contains("10 bytes"), "{source}");
        }
    }
}
