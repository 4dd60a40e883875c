//! Tests against a folder whose requests are counted.

use std::fs;
use std::sync::Mutex;

use tempfile::TempDir;

use super::*;
use crate::LocalStorage;

/// A folder that notes each call, and lists all files at once. It may fail.
#[derive(Debug)]
struct Noted {
    folder: LocalStorage,
    calls: Mutex<Vec<String>>,
    /// The error of all lists and sizes.
    error: Mutex<Option<io::ErrorKind>>,
    lists_sizes: bool,
}

impl Noted {
    fn note(&self, call: &str, names: impl IntoIterator<Item = impl AsRef<str>>) {
        let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        self.calls.lock().unwrap().push(format!("{call} {}", names.join(" ")));
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn fail_with(&self, kind: io::ErrorKind) {
        *self.error.lock().unwrap() = Some(kind);
    }

    fn fail(&self) -> io::Result<()> {
        self.error.lock().unwrap().map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Storage for Noted {
    fn place(&self) -> String {
        self.folder.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.note("list", [folder]);
        self.fail()?;
        let entries = self.folder.list(folder)?.into_iter();
        let bytes = |bytes: Option<u64>| bytes.filter(|_| self.lists_sizes);
        Ok(entries.map(|entry| Entry { bytes: bytes(entry.bytes), ..entry }).collect())
    }

    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        self.note("all", [most.to_string()]);
        let paths = ["a", "x/b", "x/y/c", "x/y", "x/z/d"];
        let file = |path: &str| {
            let bytes = fs::metadata(self.folder.root().join(path)).map_or(0, |meta| meta.len());
            ListedFile { path: path.to_owned(), bytes }
        };
        Ok((paths.len() <= most).then(|| paths.map(file).to_vec()))
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.note("size", [file]);
        self.fail()?;
        self.folder.size(file)
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.note("read", pieces.iter().map(|piece| format!("{}@{:?}", piece.file, piece.range)));
        self.folder.read(pieces, into)
    }

    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        self.note("whole", files);
        self.folder.read_files(files)
    }

    fn coalesce(&self) -> Coalesce {
        self.folder.coalesce()
    }
}

fn noted() -> (TempDir, Arc<Noted>, GatheredStorage) {
    noted_with(true)
}

fn noted_with(lists_sizes: bool) -> (TempDir, Arc<Noted>, GatheredStorage) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("x/y")).unwrap();
    fs::create_dir_all(folder.path().join("x/z")).unwrap();
    for (path, text) in [("a", "0123456789"), ("x/b", "abcde"), ("x/y/c", ""), ("x/z/d", "D")] {
        fs::write(folder.path().join(path), text).unwrap();
    }
    let noted = Arc::new(Noted {
        folder: LocalStorage::new(folder.path()),
        calls: Mutex::default(),
        error: Mutex::default(),
        lists_sizes,
    });
    let gathered = GatheredStorage::new(Arc::<Noted>::clone(&noted));
    (folder, noted, gathered)
}

/// Names, folders with a slash.
fn names(storage: &dyn Storage, folder: &str) -> Vec<String> {
    let entries = storage.list(folder).unwrap().into_iter();
    let mut names: Vec<_> =
        entries.map(|entry| entry.name + if entry.is_folder { "/" } else { "" }).collect();
    names.sort();
    names
}

#[test]
fn one_listing_tells_every_folder_and_size() {
    let (_folder, noted, gathered) = noted();
    assert!(!gathered.gather_all_names(4).unwrap());
    assert!(gathered.gather_all_names(5).unwrap());
    noted.calls();
    assert_eq!(names(&gathered, ""), ["a", "x/"]);
    assert_eq!(names(&gathered, "x"), ["b", "y/", "z/"]);
    assert_eq!(names(&gathered, "x/y"), ["c"]);
    assert!(names(&gathered, "absent").is_empty());
    assert_eq!(gathered.size("x/b").unwrap(), 5);
    let sizes = gathered.sizes(&["a", "x/z/d"]);
    assert_eq!(sizes.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [10, 1]);
    assert_eq!(gathered.list_all(5).unwrap().unwrap().len(), 5);
    assert_eq!(noted.calls(), Vec::<String>::new());
    // A file that the listing lacks is the storage's to answer.
    assert!(gathered.size("absent").is_err());
    assert_eq!(noted.calls(), ["size absent"]);
}

#[test]
fn ends_are_read_once_and_the_rest_when_it_is_asked_for() {
    let (_folder, noted, gathered) = noted();
    gathered.gather_all_names(9).unwrap();
    gathered.gather_ends(&[("a", 6), ("x/b", 7)]).unwrap();
    assert_eq!(noted.calls(), ["all 9", "read a@4..10 x/b@0..5"]);
    gathered.gather_ends(&[("a", 6), ("x/b", 7)]).unwrap();
    let mut bytes = [0; 5];
    let pieces = [Piece { file: "a", range: 7..10 }, Piece { file: "x/b", range: 1..3 }];
    gathered.read(&pieces, &mut bytes).unwrap();
    assert_eq!(&bytes, b"789bc");
    assert_eq!(gathered.read_files(&["x/b"])[0].as_ref().unwrap(), b"abcde");
    assert_eq!((noted.calls(), gathered.remembered_bytes()), (Vec::new(), 11));
    // Bytes before the end, and other files, together with what is known.
    let mut bytes = [0; 6];
    let pieces = [
        Piece { file: "a", range: 2..5 },
        Piece { file: "x/b", range: 3..5 },
        Piece { file: "x/z/d", range: 0..1 },
    ];
    gathered.read(&pieces, &mut bytes).unwrap();
    assert_eq!(&bytes, b"234deD");
    assert_eq!(noted.calls(), ["read a@2..5 x/z/d@0..1"]);
    let read = gathered.read_files(&["x/b", "a"]);
    assert_eq!(read[1].as_ref().unwrap(), b"0123456789");
    assert_eq!(noted.calls(), ["whole a"]);
    let beyond = Piece { file: "x/b", range: 3..9 };
    assert!(gathered.read(&[beyond], &mut [0; 6]).is_err());
}

#[test]
fn without_a_listing_of_all_each_folder_is_listed_once() {
    let (_folder, noted, gathered) = noted();
    gathered.gather_folders(&["x", "", "x"]).unwrap();
    gathered.gather_folders(&["x", "x/y"]).unwrap();
    assert_eq!(noted.calls(), ["list ", "list x", "list x/y"]);
    assert_eq!(names(&gathered, "x"), ["b", "y/", "z/"]);
    assert_eq!(names(&gathered, "x/z"), ["d"]);
    assert_eq!(names(&gathered, "x/z"), ["d"]);
    assert_eq!(noted.calls(), ["list x/z"]);
    // The lists gave sizes.
    assert_eq!((gathered.known_size("x/b"), gathered.known_size("x/y")), (Some(5), None));
    gathered.gather_ends(&[("x/b", 2)]).unwrap();
    assert_eq!(noted.calls(), ["read x/b@3..5"]);
}

/// A file is never read whole before its size is known.
#[test]
fn sizes_that_no_list_gave_are_asked_for() {
    let (_folder, noted, gathered) = noted_with(false);
    gathered.gather_folders(&["x", ""]).unwrap();
    assert_eq!(gathered.known_size("x/b"), None);
    noted.calls();
    gathered.gather_ends(&[("x/b", 2), ("absent", 2), ("a", 3)]).unwrap();
    let calls = ["size x/b", "size absent", "size a", "read x/b@3..5 a@7..10"];
    assert_eq!(noted.calls(), calls);
    assert_eq!(gathered.remembered_bytes(), 5);
    assert!(gathered.is_gathered("a") && !gathered.is_gathered("absent"));
}

#[test]
fn only_what_is_missing_or_refused_waits() {
    for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
        let (_folder, noted, gathered) = noted_with(false);
        noted.fail_with(kind);
        gathered.gather_folders(&["x"]).unwrap();
        gathered.gather_ends(&[("a", 3)]).unwrap();
        assert_eq!(noted.calls(), ["list x", "size a"]);
        assert!(gathered.known_entries("x").is_none() && !gathered.is_gathered("a"));
    }
    let (_folder, noted, gathered) = noted_with(false);
    noted.fail_with(io::ErrorKind::TimedOut);
    let is_timeout = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::TimedOut;
    assert!(is_timeout(gathered.gather_folders(&["x"])));
    assert!(is_timeout(gathered.gather_ends(&[("a", 3)])));
    // Nothing is asked for twice.
    noted.calls();
    let listed = gathered.list_each(&["x", "x/y"]).into_iter().map(|entries| entries.map(drop));
    assert!(listed.map(is_timeout).eq([true, true]));
    assert_eq!(noted.calls(), ["list x", "list x/y"]);
}

#[test]
fn a_file_that_is_gone_is_an_error_that_says_what_to_do() {
    let (folder, _, gathered) = noted();
    gathered.gather_all_names(9).unwrap();
    fs::remove_file(folder.path().join("a")).unwrap();
    let piece = Piece { file: "a", range: 0..4 };
    let errors = [
        gathered.read(std::slice::from_ref(&piece), &mut [0; 4]).unwrap_err(),
        gathered.read_files(&["a"]).pop().unwrap().unwrap_err(),
        gathered.versions(&["a"]).pop().unwrap().unwrap_err(),
        gone(FailedPiece::wrap(&piece, io::ErrorKind::NotFound.into())),
    ];
    for error in &errors {
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("open the data set again"), "{error}");
    }
    // The file's name stays known.
    let piece = errors[3].get_ref().and_then(|error| error.downcast_ref::<FailedPiece>());
    assert_eq!(piece.unwrap().file, "a");
    let other = gone(io::ErrorKind::TimedOut.into());
    assert!(!other.to_string().contains("again"));
}

#[test]
fn a_folder_of_it_knows_what_it_knows() {
    let (folder, noted, gathered) = noted();
    gathered.gather_all_names(9).unwrap();
    gathered.gather_ends(&[("a", 9), ("x/b", 9)]).unwrap();
    let behind = LocalStorage::new(folder.path().join("x"));
    let below = gathered.below("x/", Arc::new(behind));
    noted.calls();
    assert_eq!(names(&below, ""), ["b", "y/", "z/"]);
    assert_eq!(names(&below, "y"), ["c"]);
    assert_eq!((below.size("z/d").unwrap(), below.remembered_bytes()), (1, 5));
    fs::remove_file(folder.path().join("x/b")).unwrap();
    assert_eq!(below.read_files(&["b"])[0].as_ref().unwrap(), b"abcde");
    assert_eq!(noted.calls(), Vec::<String>::new());
}
