//! Reads ahead what opening needs, so that a store far away is asked in few rounds.
//!
//! Opening a group or an array lists folders, reads the files that it finds there, and from these
//! learns which files to read next. All of them have known places, so they are requested together.

use std::io;

use storage::{GatheredStorage, Storage as _};

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
/// Most bytes of one call.
const MAX_BYTES: u64 = 16 << 20;

/// Lists and reads what opening the groups and arrays in `folders` of `storage` needs, in two
/// rounds of requests. A folder without group or array costs its listings alone. Footers of
/// fragments are read if the sizes of their files are [known](GatheredStorage::gather_all_names).
///
/// # Errors
/// The first error of a request. Opening asks again for what is missing.
pub fn gather(storage: &GatheredStorage, folders: &[&str]) -> io::Result<()> {
    let listed: Vec<String> = folders
        .iter()
        .flat_map(|folder| ["", COMMITS].iter().chain(&FOLDERS).map(|name| path(folder, name)))
        .collect();
    storage.gather_folders(&listed.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut files = Vec::new();
    for folder in folders {
        add_files(storage, folder, &mut files)?;
    }
    let mut bytes = 0_u64;
    let files = files.iter().filter_map(|(file, most)| {
        bytes = bytes.saturating_add(storage.known_size(file).unwrap_or(0).min(*most));
        (bytes <= MAX_BYTES).then_some((file.as_str(), *most))
    });
    storage.gather_ends(&files.collect::<Vec<_>>())
}

/// The path of `name` in `folder`, either of which may be empty.
fn path(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", path) | (path, "") => path.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// Adds the files that opening the object in `folder` reads, each with the most bytes from its end.
fn add_files(
    storage: &GatheredStorage,
    folder: &str,
    files: &mut Vec<(String, u64)>,
) -> io::Result<()> {
    let mut whole = |path: String| {
        if storage.known_size(&path).is_none_or(|size| size <= MAX_FILE_BYTES) {
            files.push((path, MAX_FILE_BYTES));
        }
    };
    for names in FOLDERS {
        let names = path(folder, names);
        for entry in storage.list(&names)?.iter().filter(|entry| !entry.is_folder) {
            whole(path(&names, &entry.name));
        }
    }
    let commits = path(folder, COMMITS);
    let (root, committed) = (storage.list(folder)?, storage.list(&commits)?);
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
    Ok(())
}
