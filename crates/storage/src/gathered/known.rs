//! The remembered parts of a storage: the names in folders, sizes of files, ends of files.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::storage::{Entry, ListedFile, Piece};

/// Names, sizes and ends of files, by their paths from the root.
#[derive(Debug, Default)]
pub(super) struct Known {
    folders: HashMap<String, Vec<Entry>>,
    sizes: BTreeMap<String, u64>,
    /// Whether `folders` and `sizes` have every file below the root.
    has_all: bool,
    ends: HashMap<String, End>,
}

/// The last bytes of a file.
#[derive(Clone)]
struct End {
    /// Where they begin.
    at: u64,
    bytes: Arc<[u8]>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "End({} bytes from {} on)", self.bytes.len(), self.at)
    }
}

/// The path without the folder and the slash after it; `None` if it lies elsewhere.
fn within<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

impl Known {
    /// Remembers all files of the storage.
    pub(super) fn learn_all(&mut self, files: Vec<ListedFile>) {
        // The bytes of files; folders have none.
        let mut folders: HashMap<String, BTreeMap<String, Option<u64>>> = HashMap::new();
        for ListedFile { path, bytes } in &files {
            let (mut rest, mut bytes) = (path.as_str(), Some(*bytes));
            loop {
                let (parent, name) = rest.rsplit_once('/').unwrap_or(("", rest));
                let known = folders.entry(parent.to_owned()).or_default();
                let before = known.insert(name.to_owned(), bytes);
                // An empty object may stand in place of a folder.
                if before == Some(None) {
                    known.insert(name.to_owned(), None);
                }
                if parent.is_empty() || before == Some(None) {
                    break;
                }
                (rest, bytes) = (parent, None);
            }
        }
        let entry =
            |(name, bytes): (_, Option<_>)| Entry { name, is_folder: bytes.is_none(), bytes };
        let entries = |names: BTreeMap<String, Option<u64>>| names.into_iter().map(entry).collect();
        self.folders = folders.into_iter().map(|(path, names)| (path, entries(names))).collect();
        self.sizes = files.into_iter().map(|file| (file.path, file.bytes)).collect();
        self.has_all = true;
    }

    /// Remembers the names in a folder, and the sizes of its files.
    pub(super) fn learn_folder(&mut self, folder: &str, entries: Vec<Entry>) {
        let path = |name: &str| match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        let sizes = entries.iter().filter_map(|entry| Some((path(&entry.name), entry.bytes?)));
        self.sizes.extend(sizes);
        self.folders.insert(folder.to_owned(), entries);
    }

    /// Remembers the last bytes of a file of `size` bytes.
    pub(super) fn learn_end(&mut self, file: &str, size: u64, bytes: Arc<[u8]>) {
        let at = size.saturating_sub(bytes.len() as u64);
        self.sizes.insert(file.to_owned(), size);
        self.ends.insert(file.to_owned(), End { at, bytes });
    }

    /// The names in a folder, if they are known.
    pub(super) fn list(&self, folder: &str) -> Option<Vec<Entry>> {
        let known = self.folders.get(folder).cloned();
        known.or_else(|| self.has_all.then(Vec::new))
    }

    pub(super) fn has_all(&self) -> bool {
        self.has_all
    }

    /// Every file, if all are known.
    pub(super) fn all_files(&self) -> Option<Vec<ListedFile>> {
        let file =
            |(path, bytes): (&String, &u64)| ListedFile { path: path.clone(), bytes: *bytes };
        self.has_all.then(|| self.sizes.iter().map(file).collect())
    }

    pub(super) fn size(&self, file: &str) -> Option<u64> {
        self.sizes.get(file).copied()
    }

    pub(super) fn has_end(&self, file: &str) -> bool {
        self.ends.contains_key(file)
    }

    /// Bytes of all remembered ends.
    pub(super) fn end_bytes(&self) -> u64 {
        self.ends.values().map(|end| end.bytes.len() as u64).sum()
    }

    /// The bytes of a piece, if they are remembered.
    pub(super) fn bytes(&self, piece: &Piece<'_>) -> Option<&[u8]> {
        let end = self.ends.get(piece.file)?;
        let start = usize::try_from(piece.range.start.checked_sub(end.at)?).ok()?;
        let stop = usize::try_from(piece.range.end.checked_sub(end.at)?).ok()?;
        end.bytes.get(start..stop)
    }

    /// All bytes of a file, if they are remembered.
    pub(super) fn whole(&self, file: &str) -> Option<&[u8]> {
        self.ends.get(file).filter(|end| end.at == 0).map(|end| &*end.bytes)
    }

    /// What is known of the files below `folder`, by their paths from there.
    pub(super) fn below(&self, folder: &str) -> Self {
        let own = |path: &String| within(folder, path).map(str::to_owned);
        let mut folders: HashMap<String, Vec<Entry>> = self
            .folders
            .iter()
            .filter_map(|(path, entries)| Some((own(path)?, entries.clone())))
            .collect();
        if let Some(entries) = self.folders.get(folder) {
            folders.insert(String::new(), entries.clone());
        }
        let sizes = self.sizes.iter().filter_map(|(path, size)| Some((own(path)?, *size)));
        let ends = self.ends.iter().filter_map(|(path, end)| Some((own(path)?, end.clone())));
        Self { folders, sizes: sizes.collect(), has_all: self.has_all, ends: ends.collect() }
    }
}
