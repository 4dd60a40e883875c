//! Finds the schemas and fragments of an array's folder that count at the opening time.
//!
//! Specification: `format_spec/array_file_hierarchy.md`, `consolidated_commits_file.md`,
//! `ignore_file.md`, `vacuum_file.md`, `timestamped_name.md`; the rules of selection are those of
//! libtiledb's `array_directory.cc`.
//!
//! - A fragment counts if it is committed: by a `.wrt` file in `__commits` (format 12 and later),
//!   by an `.ok` file beside it (5 to 11), or by a line in a consolidated commits file (`.con`)
//!   that no ignore file (`.ign`) revokes.
//! - A fragment that a vacuum file (`.vac`) lists was consolidated into another one and no longer
//!   counts, provided that the vacuum file's own times are before the opening time.
//! - A fragment counts if its times end before the opening time. From format 15 on a consolidated
//!   fragment may store the time of each cell: it counts as soon as it begins before the opening
//!   time, and reads select its cells by time.
//! - The schema is the latest one not after the opening time, or the first one if all are later.
//! - A delete counts if its commit (`.del`, alone or in a `.con` file) is not after the opening
//!   time. An ignore file does not revoke it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use storage::Files;
use storage::Storage;

use crate::error::Error;
use crate::timestamped_name::{self, Times};
use crate::unsupported::Unsupported;

const OLD_SCHEMA: &str = "__array_schema.tdb";
const SCHEMAS: &str = "__schema";
/// Format 14 has a flag for the times of cells, but no version of libtiledb that wrote this format
/// set the flag.
const FIRST_WITH_CELL_TIMES: u32 = 15;
const FIRST_IN_FOLDERS: u32 = 12;
/// The longest list of commits or fragments that is read: about five million names.
const MAX_LIST_BYTES: u64 = 1 << 29;

/// A fragment's folder and the times in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FragmentFolder {
    /// The last part of its path.
    pub(crate) name: String,
    /// Its path, relative to the array.
    pub(crate) path: String,
    pub(crate) times: Times,
}

/// Whether cells of an array may have times of their own. Those of dense arrays have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellTimes {
    MayDecide,
    None,
}

/// The contents of an array's folder at a time.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Paths of all schemas, oldest first.
    pub(crate) schemas: Vec<String>,
    /// Index of the schema to open with.
    pub(crate) latest_schema: usize,
    /// The fragments that count, oldest first.
    pub(crate) fragments: Vec<FragmentFolder>,
    /// The deletes that count, by name.
    pub(crate) deletes: Vec<DeleteCommit>,
    /// A commit that this crate does not support.
    pub(crate) obstacle: Option<Unsupported>,
}

/// A commit of a delete, and the place of its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteCommit {
    /// The last part of its path.
    pub(crate) name: String,
    pub(crate) time: u64,
    /// The file with the condition, relative to the array: the commit, or a list of commits.
    pub(crate) file: String,
    /// Offset of the condition in that file.
    pub(crate) offset: u64,
    /// The condition's tile, if it was read with a list.
    pub(crate) tile: Option<Vec<u8>>,
}

impl Directory {
    /// Lists the folder of a sparse array as of `timestamp` (milliseconds since 1970).
    pub(crate) fn load(files: &Files, timestamp: u64) -> Result<Self, Error> {
        Self::load_for(files, timestamp, CellTimes::MayDecide)
    }

    /// Lists the folder of an array as of `timestamp`.
    pub(crate) fn load_for(
        files: &Files,
        timestamp: u64,
        cell_times: CellTimes,
    ) -> Result<Self, Error> {
        // Schemas last: a fragment that is committed meanwhile may have a new one.
        let listed = files.list_each(&["", "__commits", SCHEMAS])?;
        let [root, commits, schemas] = listed.try_into().unwrap_or_default();
        let (schemas, latest_schema) = find_schemas(files, &root, schemas, timestamp)?;
        let mut found = Commits::default();
        found.load_consolidated(files, &commits, timestamp)?;
        for entry in &commits {
            let path = format!("__commits/{}", entry.name);
            if let Some(name) = entry.name.strip_suffix(".wrt") {
                found.add(Source::Commits, format!("__fragments/{name}"));
            } else if suffix(&entry.name) == "vac" {
                found.vacuums.push(path);
            } else {
                found.note_condition((&path, None), files, timestamp)?;
            }
        }
        for entry in &root {
            if let Some(name) = entry.name.strip_suffix(".ok") {
                found.add(Source::Root, name.to_owned());
            } else if suffix(&entry.name) == "vac" {
                found.vacuums.push(entry.name.clone());
            } else if is_uncommitted_kind(&entry.name) && entry.is_folder {
                let version = timestamped_name::parse(&entry.name)
                    .and_then(|times| times.version)
                    .unwrap_or(4);
                found.obstacle.get_or_insert(Unsupported::FormatVersion { version });
            }
        }
        let fragments = found.fragments(files, timestamp, cell_times)?;
        let (mut deletes, obstacle) = (found.deletes, found.obstacle);
        if fragments.is_empty() {
            // Like libtiledb, which then does not even parse the conditions.
            deletes.clear();
        }
        let deletes = deletes.into_values().collect();
        Ok(Self { schemas, latest_schema, fragments, deletes, obstacle })
    }
}

/// Whether cells of the array at the root of `storage` were deleted or updated by condition until
/// `timestamp` (milliseconds since 1970; `None` for the latest state). Its fragments then contain
/// more cells than the array. Reads only the commits.
///
/// # Errors
/// [`Error::Storage`] and [`Error::Damaged`] if the commits cannot be read.
pub fn has_conditions(storage: Arc<dyn Storage>, timestamp: Option<u64>) -> Result<bool, Error> {
    let (files, timestamp) = (Files::new(storage), timestamp.unwrap_or(u64::MAX));
    let commits = files.list("__commits")?;
    let mut found = Commits::default();
    found.load_consolidated(&files, &commits, timestamp)?;
    for entry in &commits {
        found.note_condition((&entry.name, None), &files, timestamp)?;
    }
    Ok(found.obstacle.is_some() || !found.deletes.is_empty())
}

/// Whether a folder beside the schema is a fragment of formats 1 to 4, which needed no commit file.
fn is_uncommitted_kind(name: &str) -> bool {
    if name.contains('.') {
        return false;
    }
    if let Some(times) = timestamped_name::parse(name) {
        return times.version.is_none_or(|version| version < 5);
    }
    // `__uuid_t1`, formats 1 and 2.
    name.strip_prefix("__").and_then(|rest| rest.split_once('_')).is_some_and(|(uuid, _)| {
        uuid.len() == 32 && uuid.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Paths of all schemas of an array, oldest first, and the index of the one to open with.
pub(crate) fn schemas(files: &Files, timestamp: u64) -> Result<(Vec<String>, usize), Error> {
    let [root, schemas] = files.list_each(&["", SCHEMAS])?.try_into().unwrap_or_default();
    find_schemas(files, &root, schemas, timestamp)
}

/// Paths of all schemas, oldest first, and the index of the one to open with, from the names in the
/// array's folder and in that of schemas.
fn find_schemas(
    files: &Files,
    root: &[storage::Entry],
    named: Vec<storage::Entry>,
    timestamp: u64,
) -> Result<(Vec<String>, usize), Error> {
    let mut schemas = Vec::new();
    if root.iter().any(|entry| entry.name == OLD_SCHEMA) {
        schemas.push(OLD_SCHEMA.to_owned());
    }
    let mut latest = 0;
    for entry in named {
        if let Some(times) = timestamped_name::parse(&entry.name) {
            if times.end <= timestamp {
                latest = schemas.len();
            }
            schemas.push(format!("__schema/{}", entry.name));
        }
    }
    if schemas.is_empty() {
        Err(Error::NotAnArray { place: files.place() })
    } else {
        Ok((schemas, latest))
    }
}

/// The place of a fragment's commit.
///
/// libtiledb orders fragments of equal start time by this: fragments in the root, those of
/// consolidated commits files, the others; by name within each group. The order matters because of
/// two cells with equal place and time, the one in the last fragment counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Root,
    Consolidated,
    Commits,
}

#[derive(Debug, Default)]
struct Commits {
    /// Paths of committed fragments.
    committed: BTreeMap<String, (Source, Times)>,
    vacuums: Vec<String>,
    /// By name.
    deletes: BTreeMap<String, DeleteCommit>,
    obstacle: Option<Unsupported>,
}

/// A line of a list of commits.
struct CommitLine<'a> {
    text: String,
    /// The condition that follows it, and its offset in the list.
    condition: Option<(u64, &'a [u8])>,
}

/// The condition of a commit in a list of commits.
struct Listed<'a> {
    list: &'a str,
    offset: u64,
    tile: &'a [u8],
}

impl Commits {
    /// Adds a fragment; if it has several sources, the first counts.
    fn add(&mut self, source: Source, path: String) {
        if let Some(times) = timestamped_name::parse(last_part(&path)) {
            let found = self.committed.entry(path).or_insert((source, times));
            found.0 = found.0.min(source);
        }
    }

    /// Adds the commit of a delete or an update at `path`, whose condition is in a file of its own,
    /// or in a list of commits.
    fn note_condition(
        &mut self,
        (path, list): (&str, Option<Listed<'_>>),
        files: &Files,
        timestamp: u64,
    ) -> Result<(), Error> {
        let (name, kind) = (last_part(path), suffix(path));
        if kind != "del" && kind != "upd" {
            return Ok(());
        }
        let times = timestamped_name::parse(name).ok_or_else(|| {
            crate::error::Fault::new("the name of a commit has no time")
                .in_file(files.name(path), 0)
        })?;
        if times.end > timestamp {
            return Ok(());
        }
        if kind == "upd" {
            let commit = path.to_owned();
            self.obstacle.get_or_insert(Unsupported::UpdateConditions { commit });
            return Ok(());
        }
        let (file, offset, tile) = match list {
            Some(Listed { list, offset, tile }) => (list, offset, Some(tile.to_vec())),
            None => (path, 0, None),
        };
        let (name, file) = (name.to_owned(), file.to_owned());
        let commit = DeleteCommit { name: name.clone(), time: times.start, file, offset, tile };
        self.deletes.entry(name).or_insert(commit);
        Ok(())
    }

    fn load_consolidated(
        &mut self,
        files: &Files,
        commits: &[storage::Entry],
        timestamp: u64,
    ) -> Result<(), Error> {
        let mut ignored = HashSet::new();
        for entry in commits.iter().filter(|entry| suffix(&entry.name) == "ign") {
            let path = format!("__commits/{}", entry.name);
            ignored.extend(lines(files, &path)?.into_iter().map(|line| relative(&line)));
        }
        for entry in commits.iter().filter(|entry| suffix(&entry.name) == "con") {
            let path = format!("__commits/{}", entry.name);
            let bytes = read_list(files, &path)?;
            for CommitLine { text, condition } in
                consolidated_lines(&bytes).map_err(|fault| fault.in_file(files.name(&path), 0))?
            {
                let line = relative(&text);
                if let Some((offset, tile)) = condition {
                    let listed = Listed { list: &path, offset, tile };
                    self.note_condition((&line, Some(listed)), files, timestamp)?;
                }
                if ignored.contains(&line) {
                    continue;
                }
                if let Some(name) = line.strip_suffix(".wrt") {
                    self.add(Source::Consolidated, format!("__fragments/{}", last_part(name)));
                } else if let Some(name) = line.strip_suffix(".ok") {
                    self.add(Source::Root, last_part(name).to_owned());
                }
            }
        }
        Ok(())
    }

    fn fragments(
        &mut self,
        files: &Files,
        timestamp: u64,
        cell_times: CellTimes,
    ) -> Result<Vec<FragmentFolder>, Error> {
        let mut vacuumed = HashSet::new();
        for path in &self.vacuums {
            if timestamped_name::parse(last_part(path))
                .is_some_and(|times| counts(times, timestamp, cell_times))
            {
                vacuumed.extend(lines(files, path)?.into_iter().map(|line| relative(&line)));
            }
        }
        let mut counted: Vec<_> = self
            .committed
            .iter()
            .filter(|(path, (_, times))| {
                counts(*times, timestamp, cell_times) && !vacuumed.contains(path.as_str())
            })
            .collect();
        counted.sort_by_key(|(_, (source, times))| (times.start, *source));
        let folder = |(path, (_, times)): (&String, &(Source, Times))| FragmentFolder {
            name: last_part(path).to_owned(),
            path: path.clone(),
            times: *times,
        };
        let fragments: Vec<_> = counted.into_iter().map(folder).collect();
        if let Some(old) = fragments
            .iter()
            .find(|fragment| fragment.times.version.is_none_or(|version| version < 5))
        {
            let version = old.times.version.unwrap_or(4);
            self.obstacle.get_or_insert(Unsupported::FormatVersion { version });
        }
        Ok(fragments)
    }
}

fn counts(times: Times, timestamp: u64, cell_times: CellTimes) -> bool {
    let partly = cell_times == CellTimes::MayDecide
        && times.version.is_some_and(|version| version >= FIRST_WITH_CELL_TIMES);
    if partly { times.start <= timestamp } else { times.end <= timestamp }
}

/// The part of a name after its last dot.
pub(crate) fn suffix(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The path, relative to the array, of an entry in a commit file; before format 19 these were
/// absolute addresses.
fn relative(line: &str) -> String {
    for folder in ["__fragments/", "__commits/"] {
        if let Some(at) = line.rfind(folder) {
            return line[at..].trim_end_matches('/').to_owned();
        }
    }
    let name = last_part(line.trim_end_matches('/'));
    // An entry without a folder is a file of the old layout, unless the version in its name says
    // otherwise.
    match timestamped_name::parse(name).and_then(|times| times.version) {
        Some(version)
            if version >= FIRST_IN_FOLDERS && !line.contains('/') && !name.contains('.') =>
        {
            format!("__fragments/{name}")
        }
        _ => name.to_owned(),
    }
}

/// Reads a list of commits, or of fragments.
fn read_list(files: &Files, path: &str) -> Result<Vec<u8>, Error> {
    let size = files.size(path)?;
    if size > MAX_LIST_BYTES {
        let what = format!("a list of {size} bytes, more than {MAX_LIST_BYTES}");
        return Err(crate::error::Fault::new(what).in_file(files.name(path), 0));
    }
    Ok(files.read(path, 0, size as usize)?)
}

/// The lines of a text file.
pub(crate) fn lines(files: &Files, path: &str) -> Result<Vec<String>, Error> {
    let bytes = read_list(files, path)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        crate::error::Fault::new("a list of fragments is not UTF-8").in_file(files.name(path), 0)
    })?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Splits a consolidated commits file into lines; the length of a condition and the condition
/// follow a `.del` or `.upd` line.
fn consolidated_lines(bytes: &[u8]) -> Result<Vec<CommitLine<'_>>, crate::error::Fault> {
    let mut out = Vec::new();
    let mut cursor = crate::cursor::Cursor::new(bytes);
    while !cursor.remaining().is_empty() {
        let rest = cursor.remaining();
        let len = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let text = cursor.text(len, "a commit's name")?;
        if len < rest.len() {
            cursor.take(1, "the end of a line")?;
        }
        let mut condition = None;
        if suffix(&text) == "del" || suffix(&text) == "upd" {
            let len = cursor.u64("the length of a condition")?;
            let at = cursor.at() as u64;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            condition = Some((at, cursor.take(len, "a condition")?));
        }
        if !text.is_empty() {
            out.push(CommitLine { text, condition });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
