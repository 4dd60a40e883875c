//! What can go wrong with an experiment.

use std::io;
use std::path::PathBuf;

/// An error of this crate: what was tried, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is at the URI.
    #[error(
        "nothing is at {uri}: check the path, and for an object store the region and credentials in the TileDB config"
    )]
    Missing {
        /// Where it was looked for.
        uri: String,
    },
    /// Something else than was wanted is at the URI.
    #[error("{uri} is {found}, not a {wanted}")]
    NotA {
        /// Where it is.
        uri: String,
        /// The SOMA type that was wanted.
        wanted: &'static str,
        /// What it is instead.
        found: String,
    },
    /// Reads of X are to be held to a rate, and libtiledb would read it.
    #[error(
        "{uri} would be read by libtiledb{}, whose reads cannot be held to a rate: take the native reader, or no limit",
        .why_not_native.as_ref().map_or_else(String::new, |why| format!(", because {why}"))
    )]
    NotHeld {
        /// The array.
        uri: String,
        /// Why the native reader does not read it, where that was left to choose.
        why_not_native: Option<String>,
    },
    /// The encoding version is not one that this crate reads.
    #[error("{uri} has SOMA encoding version {found:?}; versions 1 and 1.1.0 can be read")]
    EncodingVersion {
        /// Where it is.
        uri: String,
        /// Its version.
        found: String,
    },
    /// There is no member of this name.
    #[error("{uri} has no {kind} {name:?}; it has {}", list(.existing))]
    NoMember {
        /// The collection.
        uri: String,
        /// What kind of member was wanted.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The names that exist.
        existing: Vec<String>,
    },
    /// An array does not have the schema that SOMA demands, or one that this crate cannot read.
    #[error("array {uri} cannot be read: {problem}")]
    Schema {
        /// The array.
        uri: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no column of this name.
    #[error("data frame {uri} has no column {name:?}; it has {}", list(.existing))]
    NoColumn {
        /// The data frame.
        uri: String,
        /// The column that was wanted.
        name: String,
        /// The columns that exist.
        existing: Vec<String>,
    },
    /// A value filter that cannot be read, or that does not fit the columns.
    #[error("value filter `{}`, character {position}: {problem}", excerpt(.filter, *.position))]
    ValueFilter {
        /// The whole filter.
        filter: String,
        /// The character at which it goes wrong, from 1; one more than there are where its end
        /// comes too early.
        position: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A joinid of a list is not to be had.
    #[error("joinid {joinid} {problem} (data frame {uri})")]
    Joinid {
        /// The data frame.
        uri: String,
        /// The joinid.
        joinid: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// What a column holds is not what its schema says.
    #[error("column {column} of {uri} is broken: {problem}")]
    BrokenColumn {
        /// The array.
        uri: String,
        /// The column.
        column: String,
        /// What is wrong.
        problem: String,
    },
    /// Rows were asked for that are not there.
    #[error(
        "rows {start}..{end} were asked for, but {uri} has {n_rows} rows: ask for joinids below {n_rows}"
    )]
    RowsOutside {
        /// The array.
        uri: String,
        /// The first row of the range that goes too far.
        start: u64,
        /// The row behind its last.
        end: u64,
        /// How many rows there are.
        n_rows: u64,
    },
    /// Genes were asked for that are not there, or twice.
    #[error("the gene selection cannot be used: {problem}")]
    Genes {
        /// What is wrong.
        problem: String,
    },
    /// Row ranges that do not ascend, or are empty.
    #[error(
        "row ranges must ascend without overlap, none empty: {start}..{end} stands after {before}"
    )]
    RowRanges {
        /// The first row of the range that breaks the rule.
        start: u64,
        /// The row behind its last.
        end: u64,
        /// The row behind the last of the range before it.
        before: u64,
    },
    /// CSR parts that do not fit together.
    #[error("these are not the parts of a CSR matrix: {0}")]
    Csr(#[from] csr::Error),
    /// Values of X do not fit into 32-bit floats.
    #[error("X {uri} holds values of type {datatype}, which cannot be read as numbers")]
    Values {
        /// The array.
        uri: String,
        /// Their type.
        datatype: String,
    },
    /// An experiment was to be written where something is.
    #[error("{uri} exists already: choose another place, or remove it first")]
    Exists {
        /// The place.
        uri: String,
    },
    /// What is where an experiment was to be written cannot make way for it.
    #[error("{place} cannot be replaced: {problem}; choose another place, or remove it first")]
    Irreplaceable {
        /// The place.
        place: String,
        /// Why not.
        problem: String,
    },
    /// An experiment was set aside for a new one, and something is at its place that may be the new
    /// one or not.
    #[error(
        "{} is the experiment that was at {} until a run that did not end well moved it away; if what is at {} now is what you want, remove {}; otherwise move that away, and the next run puts the old one back",
        .replaced.display(), .target.display(), .target.display(), .replaced.display()
    )]
    SetAside {
        /// Where it was.
        target: PathBuf,
        /// Where it is.
        replaced: PathBuf,
    },
    /// What is read would be overwritten, removed or written into.
    #[error(
        "cannot write to {place}: it {relation} {read}, which is read meanwhile; choose another place"
    )]
    SourceAtRisk {
        /// What would be written to.
        place: String,
        /// How it stands to what is read: `is`, `holds` or `lies in`.
        relation: &'static str,
        /// What is read.
        read: String,
    },
    /// The folder in which an experiment grows is there already, and is not ours.
    #[error(
        "cannot write to {}: it would be written in {} first, which is there already and has no marker of an unfinished run; move or remove that, or choose another place",
        .target.display(), .path.display()
    )]
    NotOurs {
        /// Where the experiment was to be written.
        target: PathBuf,
        /// The folder that is in the way.
        path: PathBuf,
    },
    /// Another process is writing the same experiment.
    #[error(
        "{} is being written by another process, which holds the lock {}: wait for it, or choose another place",
        .path.display(), .lock.display()
    )]
    Busy {
        /// The experiment.
        path: PathBuf,
        /// The lock that is held.
        lock: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A column of a data frame cannot be written as it is.
    #[error(
        "column {column} of {uri} cannot be written to another experiment: {problem}; leave it out"
    )]
    Uncopied {
        /// The data frame.
        uri: String,
        /// The column.
        column: String,
        /// What is wrong.
        problem: String,
    },
    /// What was to be written does not fit the experiment.
    #[error("cannot write {what} to {uri}: {problem}")]
    Write {
        /// What was to be written.
        what: String,
        /// Where.
        uri: String,
        /// What is wrong.
        problem: String,
    },
    /// An address that cannot be one.
    #[error("{uri} is no address of an experiment: {problem}")]
    Address {
        /// The address.
        uri: String,
        /// What is wrong.
        problem: String,
    },
    /// A short name of the Census that cannot be one.
    #[error(
        "{uri} does not name an experiment of the Census: {problem}; write census://2025-11-08/homo_sapiens"
    )]
    Census {
        /// The name.
        uri: String,
        /// What is wrong.
        problem: String,
    },
    /// The native reader was asked for, and the array is one that it does not read.
    #[error("{uri} cannot be read by the native reader: {reason}; choose `auto` or `libtiledb`")]
    NotNative {
        /// The array.
        uri: String,
        /// What about it is beyond the native reader.
        reason: String,
    },
    /// There is no such reader.
    #[error("there is no reader {name:?}; there are auto, native and libtiledb")]
    UnknownReader {
        /// The name that was given.
        name: String,
    },
    /// An address or a parameter of the config cannot be used.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// The native reader failed.
    #[error(transparent)]
    Native(#[from] tiledb_native::Error),
    /// libtiledb failed.
    #[cfg(feature = "libtiledb")]
    #[error(transparent)]
    TileDb(#[from] tiledb::Error),
    /// Arrow refused an array or a batch.
    #[error("{what} of {uri} does not make an Arrow array: {source}")]
    Arrow {
        /// The array.
        uri: String,
        /// Which part of it.
        what: String,
        /// Why not.
        source: arrow_schema::ArrowError,
    },
    /// Packed rows were asked of a reader that does not give them.
    #[error("reader {reader} gives no packed rows; read them as CSR")]
    Unpacked {
        /// Its name.
        reader: &'static str,
    },
    /// The function that takes the pieces of a read gave up.
    #[error("{message}")]
    Consumer {
        /// Its reason.
        message: String,
    },
}

/// Makes an [`Error::File`] of what the operating system says.
#[cfg(feature = "libtiledb")]
pub(crate) fn file_error<'a>(
    action: &'static str,
    path: &'a std::path::Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::File { action, path: path.to_owned(), source }
}

/// A filter in one line, and of a long one what stands around a position.
fn excerpt(filter: &str, position: usize) -> String {
    const AROUND: usize = 60;
    let start = position.saturating_sub(AROUND);
    let mut characters = filter.chars().skip(start);
    let mut out = if start == 0 { String::new() } else { "…".to_owned() };
    for c in characters.by_ref().take(2 * AROUND) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if characters.next().is_some() {
        out.push('…');
    }
    out
}

/// Names for a message.
fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
