//! Reads an array at one time with libtiledb and with this crate, and compares.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use storage::{Coalesce, Entry, LocalStorage, Piece, Storage};
use tiledb::{Context, Layout, ReadQuery};
use tiledb_native::{
    Array, ArrayDescription, ColumnSelection, CsrBuffers, Error, OpenOptions, PackedCsr, Threads,
    Unsupported,
};

use super::draw::Draw;
use crate::differential::expected;
use crate::differential::written::read_numbers;

/// Row, column and value of a cell.
type Cell = (u64, u64, f32);

/// Result of comparing an array at one time.
pub(super) enum Outcome {
    Equal,
    /// This crate leaves the array to libtiledb, for this reason.
    Declined(String),
    /// libtiledb itself cannot read it.
    Unreadable(String),
    /// libtiledb's read of everything differs from its reads of single places; this crate agrees
    /// with the latter.
    Disputed,
    Differs(String),
}

/// A folder read in batches of a few bytes, like a slow store.
#[derive(Debug)]
struct SmallBatches {
    files: LocalStorage,
    prefetch: bool,
}

impl Storage for SmallBatches {
    fn place(&self) -> String {
        self.files.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.files.size(file)
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce {
            gap_bytes: 50,
            batch_bytes: 300,
            prefetch_bytes: if self.prefetch { 1 << 20 } else { 0 },
        }
    }
}

/// One pool for all arrays: threads take longer to start than a small array to read.
fn threads() -> Threads {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL
        .get_or_init(|| Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()));
    Threads::Shared(Arc::clone(pool))
}

/// Cells of `attribute` that libtiledb reads, of the whole array or of one place, sorted by row,
/// column and value.
fn with_libtiledb(
    array: &tiledb::Array,
    attribute: &str,
    place: Option<(u64, u64)>,
) -> Result<Vec<Cell>, tiledb::Error> {
    let schema = array.schema();
    let names: Vec<&str> = schema.dimensions.iter().map(|one| one.name.as_str()).collect();
    let found = schema.attributes.iter().find(|one| one.name == attribute).unwrap();
    let types = [schema.dimensions[0].datatype, schema.dimensions[1].datatype, found.datatype];
    let columns = [names[0], names[1], attribute];
    let ranges = place.map(|(row, column)| [row, column].map(|at| [(at as i64, at as i64)]));
    let ranges: Vec<&[(i64, i64)]> = ranges.iter().flatten().map(<[_; 1]>::as_slice).collect();
    let mut query = ReadQuery::new(array, Layout::Unordered, &ranges, &columns, 1 << 18)?;
    let mut cells = Vec::new();
    while let Some(piece) = query.next_piece()? {
        let [rows, columns, values] = [0, 1, 2].map(|idx| read_numbers(types[idx], &piece, idx));
        let columns_of_cells = rows.into_iter().zip(columns).zip(values);
        cells.extend(columns_of_cells.map(|((row, column), value)| (row.0, column.0, value.1)));
    }
    cells.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    Ok(cells)
}

/// Reads the array at `at` as of `time` in several ways, and compares each with libtiledb's read.
pub(super) fn compare(draw: &mut Draw, context: &Context, at: &Path, time: Option<u64>) -> Outcome {
    let options = OpenOptions {
        timestamp: time,
        index_bytes: draw.pick(&[0, 2000, 1 << 20]),
        threads: threads(),
    };
    let files = LocalStorage::new(at);
    let storage: Arc<dyn Storage> = match draw.below(4) {
        0 => Arc::new(SmallBatches { files, prefetch: false }),
        1 => Arc::new(SmallBatches { files, prefetch: true }),
        _ => Arc::new(files),
    };
    let array = match Array::open(storage, &options) {
        Ok(array) => array,
        Err(Error::Unsupported { reason, .. }) => {
            let theirs = tiledb::Array::open(context, at.to_str().unwrap(), time).unwrap();
            let data = &theirs.schema().attributes[0].name;
            // libtiledb does not evaluate these conditions either.
            let is_condition = matches!(reason, Unsupported::DeleteCondition { .. });
            if is_condition && with_libtiledb(&theirs, data, None).is_ok() {
                return Outcome::Differs(format!("only libtiledb reads it: {reason}"));
            }
            return Outcome::Declined(format!("{reason:?}"));
        }
        Err(error) => return Outcome::Differs(format!("could not be opened: {error}")),
    };
    let attribute = array.attribute().0.to_owned();
    let theirs = tiledb::Array::open(context, at.to_str().unwrap(), time).unwrap();
    let cells = match with_libtiledb(&theirs, &attribute, None) {
        Ok(cells) => cells,
        Err(error) => return Outcome::Unreadable(error.to_string()),
    };
    if let Err(difference) = described_equally(at, time, &theirs) {
        return Outcome::Differs(difference);
    }
    let requests = requests(draw, &array);
    let Err(difference) = reads_equal(draw, &array, &cells, &requests) else {
        return Outcome::Equal;
    };
    let place_by_place = || {
        let cells = corrected(&array, &theirs, &attribute, cells).ok()?;
        reads_equal(draw, &array, &cells, &requests).ok()
    };
    if place_by_place().is_some() { Outcome::Disputed } else { Outcome::Differs(difference) }
}

/// The cells that libtiledb has read, with each place that differs from this crate's read replaced
/// by libtiledb's read of that place alone.
///
/// libtiledb loses cells if a place has cells of equal time in two tiles and the second tile has no
/// other cell in the read: it then drops the first tile whole (`dedup_fragments_with_timestamps`).
/// A read of a single place is right.
fn corrected(
    array: &Array,
    theirs: &tiledb::Array,
    attribute: &str,
    mut cells: Vec<Cell>,
) -> Result<Vec<Cell>, Box<dyn std::error::Error>> {
    let mut ours = CsrBuffers::new();
    array.read_csr(&[0..array.n_rows()], &ColumnSelection::All, &mut ours)?;
    let mut found: BTreeMap<(u64, u64), [Vec<u32>; 2]> = BTreeMap::new();
    for row in 0..ours.n_rows() {
        let (columns, values) = ours.row(row);
        for (column, value) in columns.iter().zip(values) {
            let of_place = found.entry((row as u64, u64::from(*column))).or_default();
            of_place[0].push(value.to_bits());
        }
    }
    for (row, column, value) in &cells {
        found.entry((*row, *column)).or_default()[1].push(value.to_bits());
    }
    for (place, mut values) in found {
        for values in &mut values {
            values.sort_unstable();
        }
        if values[0] != values[1] {
            cells.retain(|cell| (cell.0, cell.1) != place);
            cells.extend(with_libtiledb(theirs, attribute, Some(place))?);
        }
    }
    cells.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    Ok(cells)
}

/// Compares the description of the array with libtiledb's.
pub(in crate::differential) fn described_equally(
    at: &Path,
    time: Option<u64>,
    theirs: &tiledb::Array,
) -> Result<(), String> {
    let storage = Arc::new(LocalStorage::new(at));
    let ours = ArrayDescription::open(storage, time).map_err(|error| error.to_string())?;
    if ours.schema() != theirs.schema() {
        let (ours, theirs) = (ours.schema(), theirs.schema());
        return Err(format!("schema {ours:?}, and libtiledb's {theirs:?}"));
    }
    let bounds = ours.non_empty_domain().map_err(|error| error.to_string())?;
    let expected = theirs.non_empty_domain().map_err(|error| error.to_string())?;
    if bounds != expected {
        return Err(format!("non-empty domain {bounds:?}, and libtiledb's {expected:?}"));
    }
    Ok(())
}

type Request = (Vec<Range<u64>>, ColumnSelection);

/// The reads to compare, in this order.
fn requests(draw: &mut Draw, array: &Array) -> Vec<Request> {
    let n_rows = array.n_rows();
    let first = array.non_empty_domain().map_or(0, |(_, columns)| columns.start);
    let mut requests = vec![(vec![0..n_rows], ColumnSelection::All)];
    for _ in 0..3 {
        requests.push((
            draw.rows(n_rows),
            draw.columns(first.min(array.n_columns() - 1), array.n_columns()),
        ));
    }
    draw.shuffle(&mut requests);
    requests
}

fn reads_equal(
    draw: &mut Draw,
    array: &Array,
    cells: &[Cell],
    requests: &[Request],
) -> Result<(), String> {
    let kept = draw.pick(&[0, 0, 2000, 1 << 20]);
    array.keep_decoded(kept);
    let n_values = array.n_values().map_err(|error| error.to_string())?;
    if n_values != cells.len() as u64 {
        return Err(format!("{n_values} values, and libtiledb's {}", cells.len()));
    }
    let (mut wide, mut packed) = (CsrBuffers::new(), PackedCsr::default());
    for (rows, columns) in requests {
        let asked =
            |what: &str| format!("{what}, rows {rows:?}, columns {columns:?}, {kept} bytes kept");
        let wanted = expected(cells, rows, columns);
        let forms = draw.pick(&[[true, false], [false, true]]);
        for is_packed in forms {
            let what = if is_packed { "packed" } else { "wide" };
            let read = if is_packed {
                match array.read_packed(rows, columns, &mut packed) {
                    Err(Error::TooManyToPack { .. }) => continue,
                    read => read,
                }
            } else {
                array.read_csr(rows, columns, &mut wide)
            };
            let stats = read.map_err(|error| asked(&format!("{what}: {error}")))?;
            let unpacked = is_packed.then(|| packed.unpack());
            let found = unpacked.as_ref().unwrap_or(&wide);
            if stats.values != found.nnz() as u64 || found.n_rows() != wanted.len() {
                return Err(asked(&format!(
                    "{what}: {} rows of {} cells",
                    found.n_rows(),
                    found.nnz()
                )));
            }
            for (idx, wanted) in wanted.iter().enumerate() {
                let (columns, values) = found.row(idx);
                if !columns.is_sorted() {
                    return Err(asked(&format!("{what}: row {idx} has columns {columns:?}")));
                }
                let mut of_row: Vec<_> = columns
                    .iter()
                    .copied()
                    .zip(values.iter().map(|value| value.to_bits()))
                    .collect();
                of_row.sort_unstable();
                if of_row != *wanted {
                    let [of_row, wanted] = [&of_row, wanted].map(|row| {
                        row.iter()
                            .map(|(column, bits)| (*column, f32::from_bits(*bits)))
                            .collect::<Vec<_>>()
                    });
                    return Err(asked(&format!(
                        "{what}: row {idx} is {of_row:?}, and libtiledb's {wanted:?}"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Counts a reason by its kind.
pub(super) fn count_reason(reasons: &mut BTreeMap<String, u64>, reason: &str) {
    let kind = reason.split([' ', '{', '(']).next().unwrap_or_default();
    *reasons.entry(kind.to_owned()).or_default() += 1;
}

/// Counts an error of libtiledb by its text, without paths and checksums.
pub(super) fn count_error(errors: &mut BTreeMap<String, u64>, error: &str) {
    let (_, words) = error.split_once("array: ").unwrap_or(("", error));
    let words = words.split(", expect").next().unwrap_or_default();
    *errors.entry(words.to_owned()).or_default() += 1;
}
