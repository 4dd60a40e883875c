//! A storage that remembers listings and small files, so that what opening a data set needs is
//! requested in a few rounds of many requests, not one request after another.

mod known;

use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::known::Known;
use crate::storage::{
    Coalesce, Entry, Expected, FailedPiece, FileVersion, ListedFile, Piece, RequestCounts, Storage,
    zeroed,
};

/// A storage around another one that answers from what it gathered: listings, sizes, and the ends
/// of files. Everything else it asks the storage behind.
///
/// A reader that learns step by step what to read next waits for each step, tens of milliseconds
/// from a remote store. A caller who knows the format gathers the files of all steps first, and the
/// reader then finds them here. Gathering only saves time: whatever it misses is read later, and
/// fails then if it must. Any other error than a missing or refused file ends gathering at once,
/// since a store that cannot be reached will not answer the next request either.
///
/// What was gathered or listed once is not requested again. So the data set looks as it did then,
/// as far as names, sizes and gathered files go. Files that are added later are not seen. If a
/// listed file has since been removed, reading it fails and asks to open the data set again.
///
/// ```
/// use std::sync::Arc;
/// use storage::{GatheredStorage, LocalStorage, Storage};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("names"), "B cell")?;
/// let far = Arc::new(LocalStorage::new(folder.path()));
/// let gathered = GatheredStorage::new(far);
/// gathered.gather_folders(&[""])?;
/// gathered.gather_ends(&[("names", 1024)])?;
/// std::fs::remove_file(folder.path().join("names"))?;
/// assert_eq!(gathered.list("")?[0].name, "names");
/// assert_eq!(gathered.read_files(&["names"])[0].as_ref().ok(), Some(&b"B cell".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GatheredStorage {
    inner: Arc<dyn Storage>,
    known: RwLock<Known>,
}

impl GatheredStorage {
    /// Remembers nothing yet of `inner`.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self { inner, known: RwLock::default() }
    }

    /// The files below `folder` as `inner` reads them, with what is remembered of them so far.
    /// `inner` is a storage of that folder, for example with other decorators.
    #[must_use]
    pub fn below(&self, folder: &str, inner: Arc<dyn Storage>) -> Self {
        Self { inner, known: RwLock::new(self.known().below(folder.trim_matches('/'))) }
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists all files below the root with one request, if they are at most `most` and the storage
    /// behind can do that; `false` if not.
    ///
    /// # Errors
    /// Those of [`Storage::list_all`].
    pub fn gather_all_names(&self, most: usize) -> io::Result<bool> {
        let Some(files) = self.inner.list_all(most)? else { return Ok(false) };
        self.known_mut().learn_all(files);
        Ok(true)
    }

    /// Lists those of `folders` that were not listed yet, many at a time.
    ///
    /// # Errors
    /// The first error of a listing, unless the folder is missing or refused; the others are
    /// remembered all the same.
    pub fn gather_folders(&self, folders: &[&str]) -> io::Result<()> {
        let known = self.known();
        let mut missing: Vec<&str> =
            folders.iter().copied().filter(|folder| known.list(folder).is_none()).collect();
        drop(known);
        missing.sort_unstable();
        missing.dedup();
        let listed = self.list_missing(&missing).into_iter().map(|entries| entries.map(drop));
        first_error(listed)
    }

    /// Lists folders, and remembers them.
    fn list_missing(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        if folders.is_empty() {
            return Vec::new();
        }
        let listed = self.inner.list_each(folders);
        let mut known = self.known_mut();
        for (folder, entries) in folders.iter().zip(&listed) {
            if let Ok(entries) = entries {
                known.learn_folder(folder, entries.clone());
            }
        }
        listed
    }

    /// Reads the last bytes of files, at most as many as the number with each, many files at a
    /// time. Files of which something is remembered already are left alone. Sizes that no listing
    /// gave are asked for first.
    ///
    /// # Errors
    /// The first error of a request, unless a file is missing or refused.
    pub fn gather_ends(&self, files: &[(&str, u64)]) -> io::Result<()> {
        let known = self.known();
        let files = files.iter().filter(|(file, _)| !known.has_end(file));
        let mut sized: Vec<_> =
            files.map(|&(file, most)| (file, most, known.size(file).map(Ok))).collect();
        drop(known);
        let without: Vec<&str> =
            sized.iter().filter(|(.., size)| size.is_none()).map(|(file, ..)| *file).collect();
        if !without.is_empty() {
            let mut sizes = self.inner.sizes(&without).into_iter();
            for (.., size) in sized.iter_mut().filter(|(.., size)| size.is_none()) {
                *size = sizes.next();
            }
        }
        let mut pieces = Vec::new();
        for (file, most, size) in sized {
            match size {
                Some(Ok(size)) => {
                    pieces.push(Piece { file, range: size.saturating_sub(most)..size });
                }
                Some(Err(error)) if !may_wait(&error) => return Err(error),
                Some(Err(_)) | None => {}
            }
        }
        first_error([self.read_ends(&pieces)])
    }

    /// Reads pieces that each end with their file.
    fn read_ends(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let len = |piece: &Piece<'_>| (piece.range.end - piece.range.start) as usize;
        let mut bytes = zeroed(pieces.iter().map(len).sum())?;
        self.inner.read(pieces, &mut bytes)?;
        let (mut known, mut rest) = (self.known_mut(), bytes.as_slice());
        for piece in pieces {
            let (end, after) = rest.split_at(len(piece));
            known.learn_end(piece.file, piece.range.end, end.into());
            rest = after;
        }
        Ok(())
    }

    /// The names in a folder, if it was listed before.
    pub fn known_entries(&self, folder: &str) -> Option<Vec<Entry>> {
        self.known().list(folder)
    }

    /// Whether [`gather_all_names`](Self::gather_all_names) listed all files.
    pub fn knows_all_names(&self) -> bool {
        self.known().has_all()
    }

    /// Bytes of a file, if known from a listing or a read.
    pub fn known_size(&self, file: &str) -> Option<u64> {
        self.known().size(file)
    }

    /// Whether the end of a file is remembered.
    pub fn is_gathered(&self, file: &str) -> bool {
        self.known().has_end(file)
    }

    /// Bytes of the ends of files that are remembered.
    pub fn remembered_bytes(&self) -> u64 {
        self.known().end_bytes()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Storage for GatheredStorage {
    crate::forward! { inner:
        fn place() -> String;
        fn prefetch(pieces: &[Piece<'_>], read: Expected);
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        if let Some(entries) = self.known().list(folder) {
            return Ok(entries);
        }
        let entries = self.inner.list(folder)?;
        self.known_mut().learn_folder(folder, entries.clone());
        Ok(entries)
    }

    fn list_each(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        let known = folders.iter().map(|folder| self.known_entries(folder)).collect();
        filled(folders, known, |missing| self.list_missing(missing))
    }

    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        match self.known().all_files() {
            Some(files) => Ok((files.len() <= most).then_some(files)),
            None => self.inner.list_all(most),
        }
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        match self.known_size(file) {
            Some(size) => Ok(size),
            None => self.inner.size(file).map_err(gone),
        }
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        let sizes = |known: &Known| files.iter().map(|file| known.size(file)).collect();
        let sizes = sizes(&self.known());
        filled(files, sizes, |missing| each_gone(self.inner.sizes(missing)))
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        each_gone(self.inner.versions(files))
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let remembered: Vec<bool> = {
            let known = self.known();
            pieces.iter().map(|piece| known.bytes(piece).is_some()).collect()
        };
        if !remembered.contains(&true) {
            return self.inner.read(pieces, into).map_err(gone);
        }
        let missing = pieces.iter().zip(&remembered).filter(|(_, is_known)| !**is_known);
        let missing: Vec<_> = missing.map(|(piece, _)| piece.clone()).collect();
        let len = |piece: &Piece<'_>| {
            let len = piece.range.end.checked_sub(piece.range.start);
            len.and_then(|len| usize::try_from(len).ok()).ok_or(io::ErrorKind::InvalidInput)
        };
        let mut n_missing = 0_usize;
        for piece in &missing {
            n_missing = n_missing.saturating_add(len(piece)?);
        }
        if n_missing > into.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = zeroed(n_missing)?;
        if !missing.is_empty() {
            self.inner.read(&missing, &mut bytes).map_err(gone)?;
        }
        let known = self.known();
        let (mut rest, mut asked) = (into, bytes.as_slice());
        for (piece, is_known) in pieces.iter().zip(&remembered) {
            let (slot, after) =
                rest.split_at_mut_checked(len(piece)?).ok_or(io::ErrorKind::InvalidInput)?;
            if *is_known {
                slot.copy_from_slice(known.bytes(piece).ok_or(io::ErrorKind::UnexpectedEof)?);
            } else {
                let (these, others) = asked.split_at(slot.len());
                slot.copy_from_slice(these);
                asked = others;
            }
            rest = after;
        }
        Ok(())
    }

    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let whole = |known: &Known| {
            files.iter().map(|file| known.whole(file).map(<[u8]>::to_vec)).collect()
        };
        let whole = whole(&self.known());
        filled(files, whole, |missing| each_gone(self.inner.read_files(missing)))
    }
}

/// Whether an error may be left to the reader that needs the file or folder: it is missing, or the
/// storage refuses it, or cannot name it.
fn may_wait(error: &io::Error) -> bool {
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput];
    kinds.contains(&error.kind())
}

/// The first error that may not wait.
fn first_error(results: impl IntoIterator<Item = io::Result<()>>) -> io::Result<()> {
    let failed = results.into_iter().filter_map(Result::err).find(|error| !may_wait(error));
    failed.map_or(Ok(()), Err)
}

/// The error of a file, with the reason that it may be missing although the reader knows it.
fn gone(error: io::Error) -> io::Error {
    const WHY: &str = "the names of files are those from when the data set was opened, and the file may have been removed since, for example by a vacuum: open the data set again";
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    match error.downcast::<FailedPiece>() {
        // The file's name stays available to callers.
        Ok(failed) => {
            let error = io::Error::new(failed.error.kind(), format!("{}; {WHY}", failed.error));
            io::Error::new(io::ErrorKind::NotFound, FailedPiece { error, ..failed })
        }
        Err(error) => io::Error::new(io::ErrorKind::NotFound, format!("{error}; {WHY}")),
    }
}

fn each_gone<T>(results: Vec<io::Result<T>>) -> Vec<io::Result<T>> {
    results.into_iter().map(|result| result.map_err(gone)).collect()
}

/// For each of `files` the `known` value, or else the answer of `ask`.
fn filled<T>(
    files: &[&str],
    known: Vec<Option<T>>,
    ask: impl FnOnce(&[&str]) -> Vec<io::Result<T>>,
) -> Vec<io::Result<T>> {
    let missing = files.iter().zip(&known).filter(|(_, known)| known.is_none());
    let missing: Vec<&str> = missing.map(|(file, _)| *file).collect();
    let asked = if missing.is_empty() { Vec::new() } else { ask(&missing) };
    let mut asked = asked.into_iter();
    let fill = |known: Option<T>| match known {
        Some(known) => Ok(known),
        None => asked.next().ok_or(io::ErrorKind::NotFound)?,
    };
    known.into_iter().map(fill).collect()
}

#[cfg(test)]
mod tests;
