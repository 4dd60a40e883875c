//! Reads ahead what opening needs, so that a remote store is asked in few rounds.
//!
//! Opening a group or an array lists folders, reads the files that it finds there, and from these
//! learns which files to read next. All of them have known places, so they are requested together.

use std::io;

use storage::GatheredStorage;

use crate::directory::suffix;

/// The folders of a group or an array whose files are read whole on opening.
const FOLDERS: [&str; 4] = ["__group", "__meta", "__schema", "__schema/__enumerations"];
const COMMITS: &str = "__commits";
const OLD_SCHEMA: &str = "__array_schema.tdb";
/// Files in place of several commits, and what they replace.
const LISTS: [&str; 3] = ["con", "ign", "vac"];
/// Longer files are read when they are needed.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Bytes from the end of a fragment's metadata: its footer, and of a small fragment everything.
const METADATA_BYTES: u64 = 64 << 10;
/// Most bytes of one call, and of all that a storage remembers. Files that do not fit are read when
/// they are needed.
const MAX_BYTES: u64 = 16 << 20;
const MAX_REMEMBERED_BYTES: u64 = 64 << 20;

/// Lists and reads what opening the groups and arrays in `folders` of `storage` needs, in two
/// rounds of requests. A folder without group or array costs its listings alone. Footers of
/// fragments are read if the sizes of their files are [known](GatheredStorage::gather_all_names).
/// At most 16 MiB are read, and as long as not more than 64 MiB are remembered.
///
/// # Errors
/// The first error of a request. Files and folders that are missing or refused are none: opening
/// asks for them again.
pub fn gather(storage: &GatheredStorage, folders: &[&str]) -> io::Result<()> {
    let listed: Vec<String> = folders
        .iter()
        .flat_map(|folder| ["", COMMITS].iter().chain(&FOLDERS).map(|name| path(folder, name)))
        .collect();
    storage.gather_folders(&listed.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut files = Vec::new();
    for folder in folders {
        add_files(storage, folder, &mut files);
    }
    let room = MAX_REMEMBERED_BYTES.saturating_sub(storage.remembered_bytes()).min(MAX_BYTES);
    let missing = files.iter().filter(|(file, _)| !storage.is_gathered(file));
    let sized = missing.map(|(file, most)| {
        // A file whose size no listing gave may be as large as is read of it.
        (file.as_str(), *most, storage.known_size(file).map_or(*most, |size| size.min(*most)))
    });
    storage.gather_ends(&fitting(sized, room))
}

/// The files that take at most `room` bytes together, the first ones first. With each file come the
/// most bytes from its end, and those that it has.
fn fitting<'a>(
    files: impl Iterator<Item = (&'a str, u64, u64)>,
    mut room: u64,
) -> Vec<(&'a str, u64)> {
    let fit = files.filter_map(|(file, most, bytes)| {
        room = room.checked_sub(bytes)?;
        Some((file, most))
    });
    fit.collect()
}

/// The path of `name` in `folder`, either of which may be empty.
fn path(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", path) | (path, "") => path.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// Adds the files that opening the object in `folder` reads, each with the most bytes from its end.
/// Folders that could not be listed have none.
fn add_files(storage: &GatheredStorage, folder: &str, files: &mut Vec<(String, u64)>) {
    let entries = |folder: &str| storage.known_entries(folder).unwrap_or_default();
    let mut whole = |path: String| {
        if storage.known_size(&path).is_none_or(|size| size <= MAX_FILE_BYTES) {
            files.push((path, MAX_FILE_BYTES));
        }
    };
    for names in FOLDERS {
        let names = path(folder, names);
        for entry in entries(&names).iter().filter(|entry| !entry.is_folder) {
            whole(path(&names, &entry.name));
        }
    }
    let commits = path(folder, COMMITS);
    let (root, committed) = (entries(folder), entries(&commits));
    for (place, entries) in [(folder, &root), (commits.as_str(), &committed)] {
        for entry in entries
            .iter()
            .filter(|entry| entry.name == OLD_SCHEMA || LISTS.contains(&suffix(&entry.name)))
        {
            whole(path(place, &entry.name));
        }
    }
    let old = root.iter().filter_map(|entry| Some(path(folder, entry.name.strip_suffix(".ok")?)));
    let new = committed.iter().filter_map(|entry| {
        let name = entry.name.strip_suffix(".wrt")?;
        Some(path(folder, &format!("__fragments/{name}")))
    });
    for fragment in old.chain(new) {
        let file = format!("{fragment}/__fragment_metadata.tdb");
        if storage.known_size(&file).is_some() {
            files.push((file, METADATA_BYTES));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use storage::{Coalesce, Entry, LocalStorage, Piece, Storage};

    use super::*;

    /// A folder whose lists have no sizes, and the bytes that were read of it.
    #[derive(Debug)]
    struct WithoutSizes {
        folder: LocalStorage,
        lists_sizes: bool,
        n_bytes: AtomicU64,
    }

    impl Storage for WithoutSizes {
        fn place(&self) -> String {
            self.folder.place()
        }

        fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
            let entries = self.folder.list(folder)?.into_iter();
            let bytes = |bytes: Option<u64>| bytes.filter(|_| self.lists_sizes);
            Ok(entries.map(|entry| Entry { bytes: bytes(entry.bytes), ..entry }).collect())
        }

        fn size(&self, file: &str) -> io::Result<u64> {
            self.folder.size(file)
        }

        fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
            self.n_bytes.fetch_add(into.len() as u64, Ordering::Relaxed);
            self.folder.read(pieces, into)
        }

        fn coalesce(&self) -> Coalesce {
            self.folder.coalesce()
        }
    }

    /// 80 files of metadata with 1 MiB each, and one that is longer.
    #[test]
    fn a_call_reads_no_more_than_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("__meta")).unwrap();
        let add = |name: String, bytes: u64| {
            let file = fs::File::create(folder.path().join("__meta").join(name)).unwrap();
            file.set_len(bytes).unwrap();
        };
        (0..80).for_each(|idx| add(format!("__{idx}_{idx}_a"), MAX_FILE_BYTES));
        add("__0_0_b".to_owned(), 50 * MAX_FILE_BYTES);
        for lists_sizes in [true, false] {
            let n_bytes = AtomicU64::new(0);
            let folder = LocalStorage::new(folder.path());
            let noted = Arc::new(WithoutSizes { folder, lists_sizes, n_bytes });
            let storage = GatheredStorage::new(Arc::<WithoutSizes>::clone(&noted));
            for call in 1..6 {
                gather(&storage, &[""]).unwrap();
                let read = noted.n_bytes.load(Ordering::Relaxed);
                assert_eq!(read, (call * MAX_BYTES).min(MAX_REMEMBERED_BYTES));
                assert_eq!(storage.remembered_bytes(), read);
            }
        }
    }

    #[test]
    fn a_file_that_does_not_fit_leaves_room_for_others() {
        let files = [("a", 9, 4), ("b", 9, 7), ("c", 9, 6), ("d", 9, 1)];
        assert_eq!(fitting(files.into_iter(), 10), [("a", 9), ("c", 9)]);
        assert_eq!(fitting(files.into_iter(), 0), []);
    }
}
