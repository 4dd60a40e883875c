//! Tests of files that are open, and of files that change.

use std::fs::File;
use std::time::{Duration, SystemTime};

use super::open_files::MAX_OPEN_FILES;
use super::*;

/// The bytes `range` of a file.
fn read(storage: &LocalStorage, file: &str, range: std::ops::Range<u64>) -> io::Result<Vec<u8>> {
    let mut into = vec![0; (range.end - range.start) as usize];
    storage.read(&[Piece { file, range }], &mut into).map(|()| into)
}

#[test]
fn reads_pieces_in_the_order_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), b"0123456789").unwrap();
    fs::write(folder.path().join("b"), b"abcdef").unwrap();
    let storage = LocalStorage::new(folder.path());
    let pieces = [
        Piece { file: "b", range: 2..4 },
        Piece { file: "a", range: 9..10 },
        Piece { file: "a", range: 0..3 },
    ];
    let mut into = [0; 6];
    storage.read(&pieces, &mut into).unwrap();
    assert_eq!(&into, b"cd9012");
    assert_eq!(storage.size("b").unwrap(), 6);
    assert_eq!(storage.list("absent").unwrap(), vec![]);
    let beyond = read(&storage, "a", 8..12).unwrap_err();
    assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn nothing_is_below_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), b"0123456789").unwrap();
    let storage = LocalStorage::new(folder.path());
    let version = storage.versions(&["a/b"]).pop().unwrap().unwrap_err();
    let size = storage.size("a/b").unwrap_err();
    let bytes = read(&storage, "a/b", 0..1).unwrap_err();
    assert_eq!([version, size, bytes].map(|error| error.kind()), [io::ErrorKind::NotFound; 3]);
    assert_eq!(storage.list("a").unwrap(), vec![]);
}

#[test]
fn lists_have_the_sizes_of_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), b"0123456789").unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    let mut entries = LocalStorage::new(folder.path()).list("").unwrap();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let [a, b] = entries.try_into().unwrap();
    assert_eq!((a.is_folder, a.bytes), (false, Some(10)));
    assert_eq!((b.is_folder, b.bytes), (true, None));
}

#[test]
fn a_changed_file_has_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, b"0123456789").unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    let storage = LocalStorage::new(folder.path());
    let version = |storage: &LocalStorage| storage.versions(&["a"]).pop().unwrap().unwrap();
    let first = version(&storage);
    assert_eq!((first.size, &first), (10, &version(&storage)));
    assert_eq!(read(&storage, "a", 0..2).unwrap(), b"01");
    fs::write(&path, b"9876543210").unwrap();
    let second = version(&storage);
    assert_ne!(second, first);
    assert_eq!(read(&storage, "a", 0..2).unwrap(), b"98");
    // A file that takes the name of one that is open is seen, and then read.
    fs::write(folder.path().join("b"), b"abcdefghij").unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    assert_ne!(version(&storage), second);
    assert_eq!(read(&storage, "a", 0..2).unwrap(), b"ab");
    let absent = storage.versions(&["absent"]).pop().unwrap().unwrap_err();
    assert_eq!(absent.kind(), io::ErrorKind::NotFound);
}

#[test]
fn bytes_of_an_old_and_a_new_file_are_not_mixed() {
    const NAMES: [&str; 4] = ["replaced", "written", "removed", "kept"];
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join("x").join(name);
    fs::create_dir(path("")).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    for name in NAMES {
        fs::write(path(name), b"0123456789").unwrap();
        File::options().write(true).open(path(name)).unwrap().set_modified(long_ago).unwrap();
    }
    let [open, closed] = [(); 2].map(|()| LocalStorage::new(folder.path()));
    let inside = |name: &str| format!("x/{name}");
    for storage in [&open, &closed] {
        for name in NAMES {
            assert_eq!(read(storage, &inside(name), 0..4).unwrap(), b"0123");
        }
    }
    // Other files close these.
    for idx in 0..MAX_OPEN_FILES {
        let name = format!("other-{idx}");
        fs::write(folder.path().join(&name), [1]).unwrap();
        read(&closed, &name, 0..1).unwrap();
    }
    // The file system's clock ticks meanwhile.
    std::thread::sleep(Duration::from_millis(20));
    fs::write(path("new"), b"abcdefghij").unwrap();
    fs::rename(path("new"), path("replaced")).unwrap();
    fs::write(path("written"), b"shorter").unwrap();
    fs::remove_file(path("removed")).unwrap();
    fs::write(path("later"), b"later").unwrap();
    for storage in [&open, &closed] {
        assert_eq!(read(storage, "x/later", 0..5).unwrap(), b"later");
        for name in ["x/replaced", "x/written"] {
            for range in [0..4, 8..10] {
                let error = read(storage, name, range).unwrap_err().to_string();
                assert!(error.contains(name) && error.contains("open the data set again"));
            }
        }
        assert_eq!(read(storage, "x/kept", 4..6).unwrap(), b"45");
        // Those who open it later read the new file, and those who ask for its version.
        assert_eq!(read(&storage.below("x"), "replaced", 0..4).unwrap(), b"abcd");
        assert_eq!(storage.versions(&["x/replaced"])[0].as_ref().unwrap().size, 10);
        assert_eq!(read(storage, "x/replaced", 0..4).unwrap(), b"abcd");
    }
    assert_eq!(read(&open, "x/removed", 4..6).unwrap(), b"45");
    let absent = read(&closed, "x/removed", 4..6).unwrap_err();
    assert_eq!(absent.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_size_is_that_of_the_file_which_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let replace = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join("new"), bytes).unwrap();
        fs::rename(folder.path().join("new"), folder.path().join(name)).unwrap();
    };
    replace("read", b"0123456789");
    replace("asked", b"0123456789");
    let storage = LocalStorage::new(folder.path());
    let whole = |name: &str| storage.read_files(&[name]).pop().unwrap();
    assert_eq!(whole("read").unwrap(), b"0123456789");
    assert_eq!(storage.size("asked").unwrap(), 10);
    replace("read", b"abc");
    replace("asked", b"abc");
    assert_eq!(whole("read").unwrap(), b"0123456789");
    let error = read(&storage, "asked", 0..2).unwrap_err().to_string();
    assert!(error.contains("asked was replaced"), "{error}");
    // A file that lost its name is read on.
    fs::remove_file(folder.path().join("read")).unwrap();
    assert_eq!((storage.size("read").unwrap(), whole("read").unwrap().len()), (10, 10));
}

#[test]
fn any_number_of_files_is_read_with_few_open() {
    let folder = tempfile::tempdir().unwrap();
    let storage = LocalStorage::new(folder.path());
    let n_files = 2 * MAX_OPEN_FILES + 3;
    for file in 0..n_files {
        fs::write(folder.path().join(file.to_string()), [file as u8; 3]).unwrap();
    }
    for file in (0..n_files).chain((0..n_files).rev()) {
        assert_eq!(read(&storage, &file.to_string(), 1..3).unwrap(), [file as u8; 2]);
    }
    let (n_open, n_closed) = storage.files.counts();
    assert!(MAX_OPEN_FILES / 2 < n_open && n_open <= MAX_OPEN_FILES, "{n_open}");
    assert_eq!(n_open + n_closed, n_files);
}

/// A file that is read again and again stays open, although it was opened first.
#[test]
fn the_file_that_was_read_the_longest_ago_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("x")).unwrap();
    let root = LocalStorage::new(folder.path());
    let below = root.below("/x/");
    assert_eq!(below.place(), format!("{}/x", folder.path().display()));
    fs::write(folder.path().join("often"), b"often").unwrap();
    for idx in 0..2 * MAX_OPEN_FILES {
        fs::write(folder.path().join(format!("x/{idx}")), [1]).unwrap();
        read(&below, &idx.to_string(), 0..1).unwrap();
        assert_eq!(read(&root, "often", 0..1).unwrap(), b"o");
        let n_open = root.files.counts().0 + below.files.counts().0;
        assert!(n_open <= MAX_OPEN_FILES, "{n_open}");
    }
    assert_eq!(root.files.counts(), (1, 0));
    // Folders that are gone do not count.
    drop(below);
    let below = root.below("x");
    for idx in 0..MAX_OPEN_FILES - 1 {
        read(&below, &idx.to_string(), 0..1).unwrap();
    }
    assert_eq!((root.files.counts(), below.files.counts()), ((1, 0), (MAX_OPEN_FILES - 1, 0)));
}

#[test]
fn threads_open_files_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..MAX_OPEN_FILES {
        fs::write(folder.path().join(file.to_string()), [file as u8; 8]).unwrap();
    }
    let root = LocalStorage::new(folder.path());
    let storages = [root.below(""), root.below("")];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let storage = &storages[thread % 2];
            scope.spawn(move || {
                for step in 0..2 * MAX_OPEN_FILES {
                    let file = (step * (2 * thread + 1)) % MAX_OPEN_FILES;
                    let bytes = read(storage, &file.to_string(), 0..8).unwrap();
                    assert_eq!(bytes, [file as u8; 8]);
                }
            });
        }
    });
    let [one, other] = storages.each_ref().map(|storage| storage.files.counts().0);
    assert!(one + other <= MAX_OPEN_FILES, "{one} + {other}");
}
