//! Results side by side in a report: one source per folder, with a distinct name.
//!
//! A sweep over several machines has a folder for each below one folder. That one is then a single
//! source.

use std::path::{Path, PathBuf};

use crate::{EPOCHS_FILE, EpochRecord, Error, PointSummary, read, summarize};

/// The epochs of one results folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the folder in the report.
    pub name: String,
    /// Its epochs, at least one.
    pub records: Vec<EpochRecord>,
}

impl Source {
    /// Reads each of `folders`: its epochs, then those of the folders right below it, in the order
    /// of their names.
    ///
    /// # Errors
    /// A folder is missing, or neither it nor one below it has epochs.
    pub fn read_all(folders: &[PathBuf]) -> Result<Vec<Self>, Error> {
        let names = names(folders);
        folders
            .iter()
            .zip(names)
            .map(|(folder, name)| {
                if !folder.is_dir() {
                    return Err(Error::NoFolder { folder: folder.clone() });
                }
                let mut records = read_below(folder)?;
                if folder.join(EPOCHS_FILE).exists() {
                    records.splice(0..0, read(folder)?);
                }
                if records.is_empty() {
                    return Err(Error::NoEpochs { folder: folder.clone() });
                }
                Ok(Self { name, records })
            })
            .collect()
    }
}

/// The epochs of all results folders right below `folder`.
fn read_below(folder: &Path) -> Result<Vec<EpochRecord>, Error> {
    let failed = |source| Error::ReadFile { path: folder.to_owned(), source };
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        below.push(entry.map_err(failed)?.path());
    }
    below.retain(|path| path.join(EPOCHS_FILE).exists());
    below.sort();
    let mut records = Vec::new();
    for path in below {
        records.extend(read(&path)?);
    }
    Ok(records)
}

/// The points of all sources in turn. With several sources, each point names its source, and points
/// of different sources are never merged.
pub(crate) fn summarize_all(sources: &[Source]) -> Vec<PointSummary> {
    let several = sources.len() > 1;
    sources
        .iter()
        .flat_map(|source| {
            let mut points = summarize(&source.records);
            for point in &mut points {
                point.folder = several.then(|| source.name.clone());
            }
            points
        })
        .collect()
}

/// The last part of each path, or more parts if needed to distinguish them.
fn names(folders: &[PathBuf]) -> Vec<String> {
    let parts = |path: &Path| -> Vec<String> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let all: Vec<Vec<String>> = folders.iter().map(|folder| parts(folder)).collect();
    shortest_tails(&all).unwrap_or_else(|| {
        // A folder given twice appears twice, numbered.
        let numbered = tails(&all, 1).into_iter().enumerate();
        numbered.map(|(idx, name)| format!("{name} ({})", idx + 1)).collect()
    })
}

/// The fewest last parts of the paths that distinguish all of them; `None` if two paths are equal.
pub(crate) fn shortest_tails(paths: &[Vec<String>]) -> Option<Vec<String>> {
    let longest = paths.iter().map(Vec::len).max().unwrap_or(1);
    (1..=longest).map(|n| tails(paths, n)).find(|names| {
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        different.len() == names.len()
    })
}

fn tails(paths: &[Vec<String>], n: usize) -> Vec<String> {
    paths.iter().map(|parts| parts[parts.len().saturating_sub(n)..].join("/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{append, fixture};

    #[track_caller]
    fn check_names(folders: &[&str], expected: &[&str]) {
        let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        assert_eq!(names(&folders), expected);
    }

    #[test]
    fn names_are_as_short_as_they_can_be() {
        check_names(&["/absent/a/warm"], &["warm"]);
        check_names(&["/absent/a/warm/", "/absent/b/cold"], &["warm", "cold"]);
        check_names(&["/absent/a/x", "/absent/b/x", "/absent/b/y"], &["a/x", "b/x", "b/y"]);
        check_names(&["/absent/x", "/absent/x"], &["x (1)", "x (2)"]);
    }

    #[test]
    fn points_of_two_folders_are_never_one() {
        let root = tempfile::tempdir().unwrap();
        let folders = ["a", "b"].map(|name| root.path().join(name));
        for folder in &folders {
            append(folder, &fixture::grid()).unwrap();
        }
        let both = summarize_all(&Source::read_all(&folders).unwrap());
        assert_eq!(both.len(), 14);
        assert_eq!(both[0].folder.as_deref(), Some("a"));
        assert_eq!(both[13].folder.as_deref(), Some("b"));
        let alone = summarize_all(&Source::read_all(&folders[..1]).unwrap());
        assert!(alone.iter().all(|point| point.folder.is_none()));
    }

    #[test]
    fn the_parts_of_a_sweep_over_machines_are_one_source() {
        let root = tempfile::tempdir().unwrap();
        let mut records = fixture::grid();
        append(&root.path().join("bench-1-shard-0-of-2"), &records[..4]).unwrap();
        let (one, other) = (records[0].clone(), records[4].clone());
        for record in &mut records[4..] {
            record.host.hostname = "bench-2".to_owned();
        }
        append(&root.path().join("bench-2-shard-1-of-2"), &records[4..]).unwrap();
        std::fs::create_dir(root.path().join("bench-3-shard-2-of-3")).unwrap();
        let sources = Source::read_all(&[root.path().to_owned()]).unwrap();
        assert_eq!(sources.len(), 1);
        assert_eq!((sources[0].records.len(), &sources[0].records[0]), (records.len(), &one));
        assert_ne!(sources[0].records[4].host, other.host);
        let table = crate::markdown(&summarize_all(&sources));
        assert!(table.starts_with("| machine |") && table.contains("| bench-2 |"), "{table}");
        let empty = Source::read_all(&[root.path().join("bench-3-shard-2-of-3")]).unwrap_err();
        assert!(matches!(empty, Error::NoEpochs { .. }), "{empty}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = Source::read_all(&[PathBuf::from("/absent/results")]).unwrap_err().to_string();
        assert!(error.contains("/absent/results") && error.contains("no such folder"), "{error}");
    }
}
