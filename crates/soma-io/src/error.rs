//! Errors of this crate.

/// An error of this crate: which action failed, on which object, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URI has no object.
    #[error(
        "nothing is at {uri}: check the path, and for an object store the region and credentials in the TileDB config"
    )]
    Missing {
        /// The URI.
        uri: String,
    },
    /// The URI has an object of another type.
    #[error("{uri} is {found}, not a {wanted}")]
    NotA {
        /// The URI.
        uri: String,
        /// The required SOMA type.
        wanted: &'static str,
        /// The type of the object, in words.
        found: String,
    },
    /// The cache of rows cannot be opened.
    #[error("rows of {uri} cannot be cached, as soma.row_cache_folder asks: {source}")]
    RowCache {
        /// The array.
        uri: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A read rate is set, and libtiledb, which cannot limit its reads, would read X.
    #[error(
        "{uri} would be read by libtiledb{}, whose reads cannot be held to a rate: take the native reader, or no limit",
        .why_not_native.as_ref().map_or_else(String::new, |why| format!(", because {why}"))
    )]
    NotHeld {
        /// The array.
        uri: String,
        /// The reason that the native reader does not read it, if the choice was automatic.
        why_not_native: Option<String>,
    },
    /// The SOMA encoding version is not supported.
    #[error("{uri} has SOMA encoding version {found:?}; versions 1 and 1.1.0 can be read")]
    EncodingVersion {
        /// The object.
        uri: String,
        /// Its version.
        found: String,
    },
    /// The collection has no member of this name.
    #[error("{uri} has no {kind} {name:?}; it has {}", list(.existing))]
    NoMember {
        /// The collection.
        uri: String,
        /// Kind of the member.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names of the existing members.
        existing: Vec<String>,
    },
    /// None was named, and several could be meant, or there is none.
    #[error("{}", unnamed(.uri, *.what, .usual, .existing))]
    Unnamed {
        /// The collection.
        uri: String,
        /// What was not named.
        what: Unnamed,
        /// The names that are taken without being named.
        usual: &'static [&'static str],
        /// The names of the existing members.
        existing: Vec<String>,
    },
    /// The array's schema breaks SOMA's rules, or is not supported.
    #[error("array {uri} cannot be read: {problem}")]
    Schema {
        /// The array.
        uri: String,
        /// The problem.
        problem: String,
    },
    /// The data frame has no column of this name.
    #[error("data frame {uri} has no column {name:?}; it has {}", list(.existing))]
    NoColumn {
        /// The data frame.
        uri: String,
        /// The name.
        name: String,
        /// The names of the existing columns.
        existing: Vec<String>,
    },
    /// A value filter has a syntax error or does not fit the columns.
    #[error("value filter `{}`, character {position}: {problem}", excerpt(.filter, *.position))]
    ValueFilter {
        /// The complete filter.
        filter: String,
        /// The character at which the error is, counted from 1; one past the last if the filter
        /// ends too early.
        position: usize,
        /// The problem, and the expected token or value.
        problem: String,
    },
    /// A listed joinid cannot be selected.
    #[error("joinid {joinid} {problem} (data frame {uri})")]
    Joinid {
        /// The data frame.
        uri: String,
        /// The joinid.
        joinid: u64,
        /// The problem.
        problem: &'static str,
    },
    /// A column's data contradicts its schema.
    #[error("column {column} of {uri} is broken: {problem}")]
    BrokenColumn {
        /// The array.
        uri: String,
        /// The column.
        column: String,
        /// The problem.
        problem: String,
    },
    /// Requested rows are beyond the array's last row.
    #[error(
        "rows {start}..{end} were asked for, but {uri} has {n_rows} rows: ask for joinids below {n_rows}"
    )]
    RowsOutside {
        /// The array.
        uri: String,
        /// The first row of the range that extends too far.
        start: u64,
        /// The row after the last of that range.
        end: u64,
        /// Number of rows of the array.
        n_rows: u64,
    },
    /// A gene selection has genes that do not exist, or a gene twice.
    #[error("the gene selection cannot be used: {problem}")]
    Genes {
        /// The problem.
        problem: String,
    },
    /// Row ranges do not ascend, overlap, or are empty.
    #[error(
        "row ranges must ascend without overlap, none empty: {start}..{end} stands after {before}"
    )]
    RowRanges {
        /// The first row of the range that breaks the rule.
        start: u64,
        /// The row after its last.
        end: u64,
        /// The row after the last of the previous range.
        before: u64,
    },
    /// Row offsets, columns and values do not form a CSR matrix.
    #[error("these are not the parts of a CSR matrix: {0}")]
    Csr(#[source] csr::Error),
    /// Values of X cannot be converted to 32-bit floats.
    #[error("X {uri} holds values of type {datatype}, which cannot be read as numbers")]
    Values {
        /// The array.
        uri: String,
        /// Their type.
        datatype: String,
    },
    /// A column of a data frame cannot be copied to another experiment.
    #[error(
        "column {column} of {uri} cannot be written to another experiment: {problem}; leave it out"
    )]
    Uncopied {
        /// The data frame.
        uri: String,
        /// The column.
        column: String,
        /// The problem.
        problem: String,
    },
    /// Data does not fit the experiment that is written.
    #[error("cannot write {what} to {uri}: {problem}")]
    Write {
        /// Name of the data.
        what: String,
        /// The object that is written.
        uri: String,
        /// The problem.
        problem: String,
    },
    /// The address is not valid.
    #[error("{uri} is not an address of an experiment: {problem}")]
    Address {
        /// The address.
        uri: String,
        /// The problem.
        problem: String,
    },
    /// The short name is not that of an experiment of the Census.
    #[error(
        "{uri} does not name an experiment of the Census: {problem}; write census://2025-11-08/homo_sapiens"
    )]
    Census {
        /// The name.
        uri: String,
        /// The problem.
        problem: String,
    },
    /// The native reader was requested, but does not support the array.
    #[error("{uri} cannot be read by the native reader: {reason}; choose `auto` or `libtiledb`")]
    NotNative {
        /// The array.
        uri: String,
        /// The feature of the array that is not supported.
        reason: String,
    },
    /// Only libtiledb can read it, and this build is without libtiledb.
    #[error(
        "{uri} can only be read through libtiledb, because {reason}: build with the Cargo feature `libtiledb`"
    )]
    NeedsLibtiledb {
        /// The object.
        uri: String,
        /// What the native reader does not support.
        reason: String,
    },
    /// Only libtiledb can write it, and this build is without libtiledb.
    #[error("{uri} cannot be written: {reason}; build with the Cargo feature `libtiledb`")]
    WriteNeedsLibtiledb {
        /// The object.
        uri: String,
        /// What is not written natively.
        reason: String,
    },
    /// No reader has this name.
    #[error("there is no reader {name:?}; there are auto, native and libtiledb")]
    UnknownReader {
        /// The name.
        name: String,
    },
    /// The destination of a new experiment cannot be written to.
    #[error(transparent)]
    Destination(#[from] storage::DestinationError),
    /// An address or a parameter of the config cannot be used.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// The native reader failed.
    #[error(transparent)]
    Native(#[from] tiledb_native::Error),
    /// A genome was chosen, and the file is no matrix of 10x Genomics.
    #[cfg(feature = "anndata")]
    #[error(
        "{uri} is no matrix of 10x Genomics, so soma.genome={genome} chooses nothing: leave it out"
    )]
    NoGenomes {
        /// The file.
        uri: String,
        /// The genome.
        genome: String,
    },

    /// AnnData in HDF5 cannot be read.
    #[cfg(feature = "anndata")]
    #[error(transparent)]
    Hdf5(#[from] hdf5::Error),

    /// AnnData in Zarr cannot be read.
    #[cfg(feature = "anndata")]
    #[error(transparent)]
    AnnData(#[from] ::anndata::Error),
    /// libtiledb failed.
    #[cfg(feature = "libtiledb")]
    #[error(transparent)]
    TileDb(#[from] tiledb::Error),
    /// Arrow rejected an array or a batch.
    #[error("{what} of {uri} does not make an Arrow array: {source}")]
    Arrow {
        /// The array.
        uri: String,
        /// The part of the array.
        what: String,
        /// Arrow's error.
        source: arrow_schema::ArrowError,
    },
    /// An [exact](crate::XReader::exact) read found a value that f32 does not have.
    #[error(
        "float32 does not have the {data_type} value of cell {cell} and gene {gene} of {uri}: read the nearest float32 instead (in Python dtype=\"float32\")"
    )]
    Inexact {
        /// The array.
        uri: String,
        /// The type of its values.
        data_type: String,
        /// Joinid of the cell.
        cell: u64,
        /// Joinid of the gene.
        gene: u64,
    },
    /// An exact read was requested from a reader that rounds values.
    #[error(
        "reader {reader} rounds {data_type} values to float32 and cannot read them exactly: read the nearest float32 (in Python dtype=\"float32\")"
    )]
    NotExact {
        /// The reader's name.
        reader: &'static str,
        /// The type of the stored values.
        data_type: String,
    },
    /// It is an AnnData, which this build does not read.
    #[error("{uri} is an AnnData: build with the Cargo feature `anndata`")]
    NeedsAnnData {
        /// The AnnData.
        uri: String,
    },
    /// An option for SOMA experiments was given for AnnData.
    #[error("{uri} is an AnnData, for which there is no {option}")]
    NotForAnnData {
        /// The AnnData.
        uri: String,
        /// The option, and what to do instead.
        option: &'static str,
    },
    /// The rows of a matrix cannot be those of the cells.
    #[error("the rows of {uri} do not fit to the cells: {problem}")]
    Alignment {
        /// The matrix.
        uri: String,
        /// The first row that does not fit.
        problem: String,
    },
    /// Packed rows were requested from a reader that does not support them.
    #[error("reader {reader} gives no packed rows; read them as CSR")]
    Unpacked {
        /// The reader's name.
        reader: &'static str,
    },
    /// The callback that consumes the pieces of a read failed.
    #[error("{message}")]
    Consumer {
        /// Its message.
        message: String,
    },
}

/// What is chosen if its name is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnamed {
    /// The measurement of an experiment.
    Measurement,
    /// The layer of a measurement's X.
    Layer,
}

/// The message for a measurement or layer that must be named.
fn unnamed(uri: &str, what: Unnamed, usual: &[&str], existing: &[String]) -> String {
    let (kind, settings) = match what {
        Unnamed::Measurement => {
            ("measurement", "--measurement, in Python measurement_name= or measurement=")
        }
        Unnamed::Layer => ("layer of X", "--layer or --layers, in Python layer_name= or layer="),
    };
    if existing.is_empty() {
        return format!("{uri} has no {kind}");
    }
    let usual: Vec<String> = usual.iter().map(|name| format!("{name:?}")).collect();
    let (existing, usual) = (existing.join(", "), usual.join(" or "));
    format!("{uri} has no {kind} {usual}, and several others: name one of {existing} ({settings})")
}

impl From<csr::Error> for Error {
    fn from(error: csr::Error) -> Self {
        let problem = match error {
            csr::Error::NoColumn { column, n_columns } => {
                format!("gene {column} was requested, but there are {n_columns} genes")
            }
            csr::Error::ColumnTwice { column } => format!("gene {column} occurs twice"),
            csr::Error::ManyColumns { n_columns } => {
                format!("{n_columns} genes are more than {} at once", u32::MAX)
            }
            of_parts => return Self::Csr(of_parts),
        };
        Self::Genes { problem }
    }
}

impl Error {
    /// Why an element of an AnnData cannot be read, if that is the error.
    pub fn unsupported(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "anndata")]
            Self::AnnData(::anndata::Error::Unsupported { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// The error of a column of the array at `uri`.
    pub(crate) fn broken_column(uri: &str, column: &str, problem: String) -> Self {
        Self::BrokenColumn { uri: uri.to_owned(), column: column.to_owned(), problem }
    }
}

/// A filter on one line; only the surroundings of `position` if it is long.
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

/// Comma-separated names for a message.
fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
