//! Tests against a folder whose requests are counted.

use std::fs;
use std::sync::Mutex;

use tempfile::TempDir;

use super::*;
use crate::LocalStorage;

/// A folder that notes each call, and lists all files at once.
#[derive(Debug)]
struct Noted {
    folder: LocalStorage,
    calls: Mutex<Vec<String>>,
}

impl Noted {
    fn note(&self, call: &str, of: impl IntoIterator<Item = impl AsRef<str>>) {
        let of: Vec<String> = of.into_iter().map(|of| of.as_ref().to_owned()).collect();
        self.calls.lock().unwrap().push(format!("{call} {}", of.join(" ")));
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl Storage for Noted {
    fn place(&self) -> String {
        self.folder.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.note("list", [folder]);
        self.folder.list(folder)
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
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("x/y")).unwrap();
    fs::create_dir_all(folder.path().join("x/z")).unwrap();
    for (path, text) in [("a", "0123456789"), ("x/b", "abcde"), ("x/y/c", ""), ("x/z/d", "D")] {
        fs::write(folder.path().join(path), text).unwrap();
    }
    let noted = Noted { folder: LocalStorage::new(folder.path()), calls: Mutex::default() };
    let noted = Arc::new(noted);
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
    // Sizes are not known, so files are read whole.
    gathered.gather_ends(&[("x/b", 2)]).unwrap();
    assert_eq!(
        (noted.calls(), gathered.known_size("x/b")),
        (vec!["whole x/b".to_owned()], Some(5))
    );
    assert!(gathered.gather_ends(&[("absent", 2)]).is_err());
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
