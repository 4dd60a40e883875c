//! Numbers of every file of an array, a table or a group set to extremes: reading is an error or
//! other values, in a bounded amount of memory and time.
//!
//! The files are read in a child with a limit on its address space, as an allocation that is too
//! large ends a process. Generic tiles (schemas, enumerations, metadata of fragments, conditions)
//! are stored without filters first, so that the numbers in them can be changed. The default is 120
//! changes of each of the stored arrays; a large run:
//!
//! ```text
//! SOMAFEED_EXTREMES=20000 \
//!     cargo test -p somafeed-tiledb-native --test tiledb-native extremes -- --nocapture
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use csr::Narrowing;
use tiledb_native::{
    Array, ArrayDescription, ColumnSelection, CsrBuffers, DenseArray, Error, Group, OpenOptions,
    PackedCsr, Table, Threads,
};

use super::limits::unfiltered;
use super::packed::MemoryStorage;
use super::stored;
use crate::differential::metadata::generic_tile;

const NAME: &str = "stored::extremes::child_reads_changed_files";
/// Where the child writes which change it reads.
const PROGRESS: &str = "SOMAFEED_EXTREMES_PROGRESS";
/// Address space of the child, of which the program itself and its threads take a part.
const ADDRESS_SPACE_KIB: u64 = 1 << 18;
/// Longest time that an array may take, of few KiB.
const MOST_TIME: Duration = Duration::from_secs(10);
const DEFAULT_CHANGES: usize = 120;
/// Numbers, and how many bytes of each are written.
const EXTREMES: [(u64, usize); 14] = [
    (0, 1),
    (1, 1),
    (u64::MAX, 1),
    (u64::MAX, 2),
    (0, 4),
    (1, 4),
    (u64::MAX, 4),
    (i32::MAX as u64, 4),
    (1, 8),
    (1 << 28, 8),
    (1 << 45, 8),
    (i64::MAX as u64, 8),
    (u64::MAX, 8),
    (0, 8),
];
const MATRICES: [&str; 5] = [
    "format-09-appended",
    "format-15-consolidated",
    "format-22-consolidated",
    "matrix-deleted",
    "matrix-rows-deleted",
];
const TABLES: [&str; 4] = ["table", "table-consolidated", "table-texts", "table-deleted"];
const DENSE: [&str; 2] = ["dense", "dense-columns"];
/// Tables whose rows are not found by a number.
const INDEXED: [&str; 1] = ["table-indexed"];
const GROUPS: [&str; 1] = ["group"];
/// The end of the names of fragments whose metadata are stored without filters here. The footers of
/// their format version end with the places of the tiles.
const FORMAT_22: &str = "_22/__fragment_metadata.tdb";

#[test]
fn no_number_of_a_file_costs_memory_or_time_out_of_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("progress");
    let program = env::current_exe().unwrap();
    let limited = format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" \"$@\"");
    let mut child = Command::new("sh");
    child.args(["-c", &limited]).arg(program).args(["--exact", NAME, "--ignored", "--nocapture"]);
    let output = child.env(PROGRESS, &progress).output().unwrap();
    let last = fs::read_to_string(&progress).unwrap_or_default();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}, after {last}:\n{shown}{error}", output.status);
    assert!(shown.contains("1 passed"), "{shown}");
}

#[test]
#[ignore = "a child of the test above, which limits its memory"]
fn child_reads_changed_files() {
    let Some(progress) = env::var_os(PROGRESS) else { return };
    let most = env::var("SOMAFEED_EXTREMES").ok().and_then(|text| text.parse().ok());
    let threads = Threads::start(1).unwrap();
    let options = OpenOptions { threads, ..OpenOptions::new(1) };
    let kinds: [(&[&str], Read); 5] = [
        (&MATRICES, read_matrix),
        (&DENSE, read_dense),
        (&TABLES, read_table),
        (&INDEXED, read_as_stored),
        (&GROUPS, read_group),
    ];
    let mut failures = Vec::new();
    for (name, read) in kinds.iter().flat_map(|(names, read)| names.iter().map(move |n| (n, read)))
    {
        let whole = without_filters(&stored(name));
        read(whole.clone(), &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (path, place, (value, n_bytes)) in changes(&whole, most.unwrap_or(DEFAULT_CHANGES)) {
            let what = format!("{name}/{path}: {n_bytes} bytes at {place} are {value:#x}");
            fs::write(&progress, &what).unwrap();
            let mut changed = whole.clone();
            let bytes = changed.files.get_mut(path).unwrap();
            bytes[place..place + n_bytes].copy_from_slice(&value.to_le_bytes()[..n_bytes]);
            let start = Instant::now();
            // An error is an acceptable result.
            if catch_unwind(AssertUnwindSafe(|| drop(read(changed, &options)))).is_err() {
                failures.push(what);
            } else if MOST_TIME < start.elapsed() {
                failures.push(format!("{what}: {:?}", start.elapsed()));
            }
        }
    }
    assert!(failures.is_empty(), "{} panics or too slow: {:#?}", failures.len(), failures);
}

/// Changes of the files, spread evenly over the bytes that are no gaps.
fn changes(files: &MemoryStorage, most: usize) -> Vec<(&str, usize, (u64, usize))> {
    let places: Vec<(&str, usize)> = files
        .files
        .iter()
        .flat_map(|(path, bytes)| {
            let is_used = |place: &usize| bytes[*place..].iter().take(8).any(|byte| *byte != 0);
            let places = (0..bytes.len().saturating_sub(7)).filter(is_used);
            places.map(move |place| (path.as_str(), place))
        })
        .collect();
    let n_all = places.len() * EXTREMES.len();
    // A step without a common divisor comes by each of the extremes.
    let mut step = (n_all / most.max(1)).max(1);
    while step > 1 && (step.is_multiple_of(2) || step.is_multiple_of(7)) {
        step += 1;
    }
    let change = |at: usize| {
        let (path, place) = places[at / EXTREMES.len()];
        (path, place, EXTREMES[at % EXTREMES.len()])
    };
    (0..n_all).step_by(step).map(change).collect()
}

/// The same array with all generic tiles stored without filters.
fn without_filters(files: &MemoryStorage) -> MemoryStorage {
    let converted = files.files.iter().map(|(path, bytes)| {
        let folder = path.split('/').next().unwrap();
        let ending = path.rsplit_once('.').map(|(_, ending)| ending);
        let converted = if path.ends_with(FORMAT_22) {
            metadata_without_filters(bytes)
        } else if ending == Some("con") {
            list_without_filters(bytes)
        } else if ending == Some("del")
            || ["__schema", "__group", "__meta", "__array_schema.tdb"].contains(&folder)
        {
            unfiltered(&content(bytes).0)
        } else {
            bytes.clone()
        };
        (path.clone(), converted)
    });
    MemoryStorage { files: converted.collect() }
}

/// The content of the generic tile at the front of `bytes`, and the tile's length.
fn content(bytes: &[u8]) -> (Vec<u8>, u64) {
    generic_tile(bytes, u32::from_le_bytes(bytes[..4].try_into().unwrap()))
}

/// A list of commits with its conditions, each after its length.
fn list_without_filters(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        out.extend_from_slice(line);
        rest = after;
        if line.ends_with(b".del\n") {
            let (len, after) = rest.split_first_chunk().unwrap();
            let (tile, after) = after.split_at(u64::from_le_bytes(*len) as usize);
            let tile = unfiltered(&content(tile).0);
            out.extend((tile.len() as u64).to_le_bytes());
            out.extend(tile);
            rest = after;
        }
    }
    out
}

/// The metadata of a fragment: generic tiles, the footer with their places, and its length.
fn metadata_without_filters(bytes: &[u8]) -> Vec<u8> {
    let (before, len) = bytes.split_last_chunk::<8>().unwrap();
    let (mut rest, footer) = before.split_at(before.len() - u64::from_le_bytes(*len) as usize);
    let (mut out, mut places) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while !rest.is_empty() {
        places.insert(at, out.len() as u64);
        let (content, len) = content(rest);
        out.extend(unfiltered(&content));
        at += len;
        rest = &rest[len as usize..];
    }
    let mut footer = footer.to_vec();
    for number in footer.rchunks_exact_mut(8) {
        let place = u64::from_le_bytes(number.try_into().unwrap());
        if let Some(new) = places.get(&place).filter(|_| place > 0) {
            number.copy_from_slice(&new.to_le_bytes());
        }
    }
    out.extend(footer);
    out.extend(len);
    out
}

type Read = fn(MemoryStorage, &OpenOptions) -> Result<(), Error>;

fn read_matrix(files: MemoryStorage, options: &OpenOptions) -> Result<(), Error> {
    let array = Array::open(Arc::new(files), options)?;
    array.n_values()?;
    let n_rows = array.n_rows();
    let (mut out, mut packed) = (CsrBuffers::new(), PackedCsr::default());
    let rows = [0..n_rows.min(200), n_rows.saturating_sub(3).max(n_rows.min(200))..n_rows];
    let some = ColumnSelection::Range(0..array.n_columns().min(40));
    for columns in [&ColumnSelection::All, &some] {
        array.keep_decoded(1 << 20);
        array.read_csr(&rows, columns, &mut out)?;
        drop(array.read_packed(&rows, columns, &mut packed));
    }
    Ok(())
}

fn read_table(files: MemoryStorage, options: &OpenOptions) -> Result<(), Error> {
    let files = Arc::new(files);
    let description = ArrayDescription::open(Arc::clone(&files) as _, None)?;
    // Errors of these are acceptable, too, and the rows are read all the same.
    drop((description.metadata(), description.non_empty_domain()));
    let schema = description.schema();
    for name in schema.attributes.iter().filter_map(|one| one.enumeration.as_deref()) {
        drop(description.enumeration(name));
    }
    let dimensions = schema.dimensions.iter().map(|one| one.name.as_str());
    let names: Vec<&str> =
        dimensions.chain(schema.attributes.iter().map(|one| one.name.as_str())).collect();
    let table = Table::open(files, options)?;
    table.n_rows()?;
    table.read(&names, None)?;
    table.read(&names, Some(&[3..40, 45..57]))?;
    Ok(())
}

fn read_as_stored(files: MemoryStorage, options: &OpenOptions) -> Result<(), Error> {
    let table = Table::open_as_stored(Arc::new(files), options)?;
    table.n_rows()?;
    let schema = table.description().schema();
    let dimensions = schema.dimensions.iter().map(|one| one.name.as_str());
    let attributes = schema.attributes.iter().map(|one| one.name.as_str());
    table.read(&dimensions.chain(attributes).collect::<Vec<_>>(), None)?;
    Ok(())
}

fn read_dense(files: MemoryStorage, options: &OpenOptions) -> Result<(), Error> {
    let array = DenseArray::open(Arc::new(files), options)?;
    let (n_rows, n_columns) = (array.n_rows().min(50), array.n_columns().min(50));
    let mut values = vec![0.0; (n_rows * n_columns) as usize];
    array.read(&[0..n_rows], &[0..n_columns], Narrowing::Nearest, &mut values)?;
    Ok(())
}

fn read_group(files: MemoryStorage, _: &OpenOptions) -> Result<(), Error> {
    Group::open(Arc::new(files), None).map(|_| ())
}
