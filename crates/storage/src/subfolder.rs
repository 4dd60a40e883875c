//! A folder of another storage, as a storage of its own.

use std::io;
use std::sync::Arc;

use crate::storage::{
    Coalesce, Entry, Expected, FailedPiece, FileVersion, Piece, RequestCounts, Storage,
};

/// The files below a folder of another storage. They share its client, its cache and its limits.
///
/// One storage may so serve many data sets below one address, for example the arrays of an
/// experiment.
#[derive(Debug)]
pub struct Subfolder {
    storage: Arc<dyn Storage>,
    /// Without a slash at its ends.
    folder: String,
}

impl Subfolder {
    /// The files below `folder` of `storage`; all of them if `folder` is empty.
    pub fn open(storage: Arc<dyn Storage>, folder: &str) -> Arc<dyn Storage> {
        let folder = folder.trim_matches('/');
        if folder.is_empty() {
            return storage;
        }
        Arc::new(Self { storage, folder: folder.to_owned() })
    }

    fn path(&self, file: &str) -> String {
        match file {
            "" => self.folder.clone(),
            // Not below the folder, so the storage behind refuses it.
            file if file.starts_with('/') => file.to_owned(),
            file => format!("{}/{file}", self.folder),
        }
    }

    fn paths(&self, files: &[&str]) -> Vec<String> {
        files.iter().map(|file| self.path(file)).collect()
    }

    /// The error with the name that the caller used, if it names a piece.
    fn own(&self, error: io::Error) -> io::Error {
        let prefix = format!("{}/", self.folder);
        let kind = error.kind();
        match error.downcast::<FailedPiece>() {
            Ok(mut failed) => {
                if let Some(file) = failed.file.strip_prefix(&prefix).map(str::to_owned) {
                    failed.file = file;
                }
                io::Error::new(kind, failed)
            }
            Err(other) => other,
        }
    }
}

/// The paths in the type that the trait takes.
fn borrowed(paths: &[String]) -> Vec<&str> {
    paths.iter().map(String::as_str).collect()
}

/// The pieces, of the files at these paths.
fn moved<'a>(pieces: &[Piece<'_>], paths: &'a [String]) -> Vec<Piece<'a>> {
    let moved = pieces.iter().zip(paths);
    moved.map(|(piece, file)| Piece { file, range: piece.range.clone() }).collect()
}

impl Storage for Subfolder {
    crate::forward! { storage:
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn place(&self) -> String {
        format!("{}/{}", self.storage.place().trim_end_matches('/'), self.folder)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.storage.list(&self.path(folder))
    }

    fn list_each(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        self.storage.list_each(&borrowed(&self.paths(folders)))
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.storage.size(&self.path(file))
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.storage.sizes(&borrowed(&self.paths(files)))
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        self.storage.versions(&borrowed(&self.paths(files)))
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let paths: Vec<String> = pieces.iter().map(|piece| self.path(piece.file)).collect();
        self.storage.read(&moved(pieces, &paths), into).map_err(|error| self.own(error))
    }

    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let read = self.storage.read_files(&borrowed(&self.paths(files)));
        read.into_iter().map(|file| file.map_err(|error| self.own(error))).collect()
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        let paths: Vec<String> = pieces.iter().map(|piece| self.path(piece.file)).collect();
        self.storage.prefetch(&moved(pieces, &paths), read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalStorage;

    #[test]
    fn a_subfolder_is_a_storage_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("ms/RNA/__schema")).unwrap();
        std::fs::write(folder.path().join("ms/RNA/a0.tdb"), b"0123456789").unwrap();
        let root: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
        let whole = Subfolder::open(Arc::clone(&root), "/");
        assert_eq!(whole.place(), root.place());
        let inner = Subfolder::open(root, "ms/RNA/");
        assert_eq!(inner.place(), format!("{}/ms/RNA", folder.path().display()));
        let mut names: Vec<_> =
            inner.list("").unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        assert_eq!(names, ["__schema", "a0.tdb"]);
        assert_eq!(inner.list("__schema").unwrap(), []);
        assert_eq!(inner.size("a0.tdb").unwrap(), 10);
        assert_eq!(inner.sizes(&["a0.tdb"])[0].as_ref().ok(), Some(&10));
        assert_eq!(inner.versions(&["a0.tdb"])[0].as_ref().unwrap().size, 10);
        let mut bytes = [0; 5];
        let pieces =
            [Piece { file: "a0.tdb", range: 1..3 }, Piece { file: "a0.tdb", range: 7..10 }];
        inner.read(&pieces, &mut bytes).unwrap();
        assert_eq!(&bytes, b"12789");
        assert_eq!(inner.read_files(&["a0.tdb"])[0].as_ref().unwrap(), b"0123456789");
        assert_eq!(inner.size("other").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_error_names_the_file_as_it_was_asked_for() {
        let inner = Subfolder { storage: Arc::new(LocalStorage::new("/")), folder: "ms/X".into() };
        let piece = Piece { file: "ms/X/a0.tdb", range: 0..1 };
        let failed = FailedPiece::wrap(&piece, io::ErrorKind::TimedOut.into());
        let own = inner.own(failed);
        assert_eq!(own.kind(), io::ErrorKind::TimedOut);
        let named = own.get_ref().and_then(|error| error.downcast_ref::<FailedPiece>());
        assert_eq!(named.unwrap().file, "a0.tdb");
        let other = inner.own(io::Error::other("unreachable"));
        assert_eq!(other.to_string(), "unreachable");
    }
}
