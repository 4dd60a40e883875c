//! Cells that were deleted by condition.
//!
//! A delete commit has a condition and a time. Its cells are those of fragments that begin at or
//! before that time; of a fragment whose cells have times of their own, the cells until then. Cells
//! are deleted after the latest of several in one place was chosen: deleting it brings no earlier
//! one back.
//!
//! Consolidation keeps deleted cells. The fragment then has the time at which each was deleted
//! (`u64::MAX` for those that were not), and the names of the commits that it considered, which
//! need not be evaluated again. The rules are those of libtiledb's
//! `query/readers/sparse_index_reader_base.cc`; names of files and the place of the names in the
//! footer are in `fragment/fragment_metadata.cc`.

mod condition;
mod evaluate;

use std::collections::HashSet;

use storage::Files;

use crate::cursor::Cursor;
use crate::directory::{DeleteCommit, FragmentFolder, last_part};
use crate::error::{Error, Fault};
use crate::fragment::{FooterFields, metadata_file};
use crate::generic_tile::{self, Source};
use crate::schema::Schema;
use crate::unsupported::Unsupported;
pub(crate) use condition::Condition;
pub(crate) use evaluate::{FieldCells, Fields, Places};

/// A delete commit.
#[derive(Debug)]
pub(crate) struct Delete {
    /// The last part of its path.
    name: String,
    time: u64,
    /// What cells must meet to stay.
    condition: Condition,
}

/// The deletes that count at the opening time, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Deletes(Vec<Delete>);

/// The deletes that concern the cells of a fragment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Concerning {
    /// Index of each among all deletes, and whether it concerns only cells up to its time.
    deletes: Vec<(usize, bool)>,
    /// Whether cells have a time at which they were deleted.
    has_delete_times: bool,
    /// Indices of the fields that are compared, sorted.
    fields: Vec<usize>,
}

impl Concerning {
    /// Whether any cell may be deleted.
    pub(crate) fn is_any(&self) -> bool {
        self.has_delete_times || !self.deletes.is_empty()
    }

    /// Whether one field alone decides: cells with the same value of it are deleted together, and
    /// with them all earlier ones.
    fn is_by(&self, field: usize) -> bool {
        !self.has_delete_times && !self.needs_times() && self.fields == [field]
    }

    /// Whether the times of cells are needed.
    pub(crate) fn needs_times(&self) -> bool {
        self.deletes.iter().any(|(_, is_by_time)| *is_by_time)
    }

    pub(crate) fn has_delete_times(&self) -> bool {
        self.has_delete_times
    }

    /// Indices of the fields that are compared: the dimensions first, then the attributes.
    pub(crate) fn fields(&self) -> &[usize] {
        &self.fields
    }
}

/// What was deleted from a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    Nothing,
    /// Whole rows, which are left out before anything is read of them.
    Rows,
    /// Single cells, which are left out after the latest of each place was chosen.
    Cells,
}

impl Deleted {
    /// By the deletes that concern each fragment, and the index of the rows among the fields.
    pub(crate) fn from_fragments<'a>(
        concerning: impl Iterator<Item = &'a Concerning>,
        rows: usize,
    ) -> Self {
        concerning.filter(|of| of.is_any()).fold(Self::Nothing, |deleted, of| {
            if deleted == Self::Cells || !of.is_by(rows) { Self::Cells } else { Self::Rows }
        })
    }
}

/// What decides whether cells were deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeletableCells<'a> {
    pub(crate) n_cells: usize,
    pub(crate) fields: &'a Fields<'a>,
    /// The time of each cell, if [`Concerning::needs_times`].
    pub(crate) times: &'a [u64],
    /// The time at which each cell was deleted, if [`Concerning::has_delete_times`].
    pub(crate) delete_times: &'a [u64],
}

impl Deletes {
    /// Reads the conditions of `commits`, for an array that is opened with `schema`.
    pub(crate) fn load(
        files: &Files,
        commits: &[DeleteCommit],
        schema: &Schema,
    ) -> Result<Self, Error> {
        let is_alone = |commit: &&DeleteCommit| commit.tile.is_none();
        let alone: Vec<&str> =
            commits.iter().filter(is_alone).map(|commit| commit.file.as_str()).collect();
        let mut alone = generic_tile::read_files(files, &alone)?.into_iter();
        let mut deletes = Vec::with_capacity(commits.len());
        for commit in commits {
            let content = match &commit.tile {
                Some(tile) => listed_tile(files, commit, tile)?,
                None => alone.next().unwrap_or_default(),
            };
            deletes.push(parse(files, commit, &content, schema)?);
        }
        deletes.sort_by(|a, b| (a.time, &a.name).cmp(&(b.time, &b.name)));
        Ok(Self(deletes))
    }

    /// The deletes that concern a fragment.
    pub(crate) fn concerning(
        &self,
        files: &Files,
        folder: &FragmentFolder,
        footer: &FooterFields,
    ) -> Result<Concerning, Error> {
        let mut considered = HashSet::new();
        if footer.has_delete_metadata && !self.0.is_empty() {
            considered = load_considered(files, folder, footer)?;
        }
        let times = folder.times;
        let mut out =
            Concerning { has_delete_times: footer.has_delete_metadata, ..Concerning::default() };
        for (idx, delete) in self.0.iter().enumerate() {
            if delete.time < times.start || considered.contains(&delete.name) {
                continue;
            }
            out.deletes.push((idx, footer.has_timestamps && delete.time <= times.end));
            delete.condition.fields(&mut |field| out.fields.push(field));
        }
        out.fields.sort_unstable();
        out.fields.dedup();
        Ok(out)
    }

    /// Whether each of `cells` was not deleted until `timestamp`.
    pub(crate) fn kept(
        &self,
        concerning: &Concerning,
        timestamp: u64,
        cells: DeletableCells<'_>,
    ) -> Vec<bool> {
        let mut kept = vec![true; cells.n_cells];
        if concerning.has_delete_times {
            for (kept, time) in kept.iter_mut().zip(cells.delete_times) {
                *kept = *time > timestamp || *time == u64::MAX;
            }
        }
        for &(idx, is_by_time) in &concerning.deletes {
            let Delete { condition, time, .. } = &self.0[idx];
            if is_by_time {
                let times = (cells.times, *time);
                evaluate::keep_matching_or_later(condition, times, cells.fields, &mut kept);
            } else {
                evaluate::keep_matching(condition, cells.fields, &mut kept);
            }
        }
        kept
    }

    /// The names of the commits.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|delete| delete.name.as_str())
    }
}

/// Which of `n_cells` cells meet a condition.
#[cfg(any(test, somafeed_fuzz))]
pub(crate) fn kept_by(condition: &Condition, fields: &Fields<'_>, n_cells: usize) -> Vec<bool> {
    let mut kept = vec![true; n_cells];
    evaluate::keep_matching(condition, fields, &mut kept);
    kept
}

/// Unfilters the tile of a commit, which was read with a list.
fn listed_tile(files: &Files, commit: &DeleteCommit, tile: &[u8]) -> Result<Vec<u8>, Error> {
    let (file, at) = (commit.file.as_str(), commit.offset);
    Source::new(files, file, at.saturating_add(tile.len() as u64)).with_loaded(at, tile).read(at)
}

fn parse(
    files: &Files,
    commit: &DeleteCommit,
    content: &[u8],
    schema: &Schema,
) -> Result<Delete, Error> {
    let condition = Condition::parse(content, schema).map_err(|refusal| match refusal {
        condition::Refusal::Damaged(fault) => {
            fault.in_unfiltered(files.name(&commit.file), commit.offset)
        }
        condition::Refusal::Invalid(what) => {
            let reason = Unsupported::DeleteCondition { commit: commit.name.clone(), what };
            Error::Unsupported { place: files.place(), reason }
        }
    })?;
    Ok(Delete { name: commit.name.clone(), time: commit.time, condition })
}

/// Reads the names of the commits that were considered when the fragment was consolidated.
fn load_considered(
    files: &Files,
    folder: &FragmentFolder,
    footer: &FooterFields,
) -> Result<HashSet<String>, Error> {
    let Some(at) = footer.considered_deletes_at else { return Ok(HashSet::new()) };
    let file = metadata_file(folder);
    let bytes = Source::new(files, &file, footer.metadata_bytes).read(at)?;
    considered(&bytes).map_err(|fault| fault.in_unfiltered(files.name(&file), at))
}

fn considered(bytes: &[u8]) -> Result<HashSet<String>, Fault> {
    let mut cursor = Cursor::new(bytes);
    let n = cursor.u64("the number of considered deletes")?;
    let mut names = HashSet::new();
    for _ in 0..n {
        let len = cursor.u64("the length of a commit's name")?;
        let path = cursor.text(usize::try_from(len).unwrap_or(usize::MAX), "a commit's name")?;
        names.insert(last_part(&path).to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_considered_deletes_are_bounded_by_their_bytes() {
        let mut stored = 2_u64.to_le_bytes().to_vec();
        for path in ["/__commits/__1_1_a_22.del", "__commits/__2_2_b_22.del"] {
            stored.extend((path.len() as u64).to_le_bytes());
            stored.extend(path.as_bytes());
        }
        let names = ["__1_1_a_22.del", "__2_2_b_22.del"].map(str::to_owned);
        assert_eq!(considered(&stored).unwrap(), HashSet::from(names));
        assert!(considered(&stored[..stored.len() - 1]).is_err());
        assert!(considered(&u64::MAX.to_le_bytes()).is_err());
    }
}
