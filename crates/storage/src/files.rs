//! Whole structures from a storage, with errors that name the file and the action.

use std::sync::Arc;

use crate::error::Error;
use crate::storage::{Entry, Piece, Storage};

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

    /// Reads every piece into a buffer of its own. The caller makes sure that the files are long
    /// enough: buffers are allocated before anything is read.
    pub fn read_each(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        let len = |piece: &Piece<'_>| (piece.range.end - piece.range.start) as usize;
        let mut bytes = vec![0; pieces.iter().map(len).sum()];
        self.read_into(pieces, &mut bytes)?;
        let mut rest = bytes.as_slice();
        let each = pieces.iter().map(|piece| {
            let (these, after) = rest.split_at(len(piece));
            rest = after;
            these.to_vec()
        });
        Ok(each.collect())
    }

    /// Reads `len` bytes at `offset`. The caller makes sure that the file is long enough: the
    /// buffer is allocated before anything is read.
    pub fn read(&self, file: &str, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        self.read_into(
            &[Piece { file, range: offset..offset.saturating_add(len as u64) }],
            &mut bytes,
        )?;
        Ok(bytes)
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
        self.storage.read(pieces, into).map_err(|source| match pieces {
            [] => self.error("read", "", source),
            [one] => {
                let action = format!(
                    "read {} bytes at {} of",
                    one.range.end.saturating_sub(one.range.start),
                    one.range.start
                );
                self.error(&action, one.file, source)
            }
            [first, ..] => self.error(
                &format!(
                    "read one of {} ranges, the first at {} of",
                    pieces.len(),
                    first.range.start
                ),
                first.file,
                source,
            ),
        })
    }

    fn error(&self, action: &str, file: &str, source: std::io::Error) -> Error {
        Error::File { action: action.to_owned(), file: self.name(file), source }
    }
}
