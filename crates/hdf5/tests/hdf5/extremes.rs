//! Numbers of headers set to extremes: reading is an error or other values, in a bounded amount of
//! memory and time.
//!
//! The files are read in a child with a limit on its address space, as an allocation that is too
//! large ends a process. `SOMAFEED_EXTREMES` sets how many numbers are changed, of each file.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::anndata::AnnData;
use arrays::{DecodeMemory, ElementType, StoredArray};
use csr::{CsrBuffers, Narrowing};
use hdf5::Hdf5Storage;
use rayon::ThreadPoolBuilder;
use storage::{MemoryStorage, Storage};

use crate::data;

/// Where the child writes which change it reads.
const PROGRESS: &str = "SOMAFEED_EXTREMES_PROGRESS";
/// Address space of the child. It has threads with stacks, and the program itself.
const ADDRESS_SPACE_KIB: u64 = 3 << 20;
/// Longest time that a file may take, of few KiB and read without optimization.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Rows that are read at the beginning and at the end of an array.
const FEW_ROWS: u64 = 3;
/// Groups and arrays that are read of a file.
const MOST_NODES: usize = 200;

/// Numbers, and how many bytes of each are written.
const EXTREMES: [(u64, usize); 12] = [
    (0, 1),
    (u64::MAX, 1),
    (0, 2),
    (u64::MAX, 2),
    (0, 4),
    (u64::MAX, 4),
    (i32::MAX as u64, 4),
    (1 << 28, 8),
    (1 << 45, 8),
    (i64::MAX as u64, 8),
    (u64::MAX, 8),
    (0, 8),
];

#[test]
fn no_number_of_a_header_costs_memory_or_time_out_of_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("progress");
    let program = env::current_exe().unwrap();
    let limited = format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" \"$@\"");
    let mut child = Command::new("sh");
    child.args(["-c", &limited]).arg(program);
    child.args(["--exact", "extremes::child_reads_changed_files", "--ignored"]);
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
    let mut failures = Vec::new();
    let anndata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data/x.h5ad");
    let files = ["small.h5", "small_latest.h5", "ten_x.h5"].map(|name| data().join(name));
    for path in files.into_iter().chain([anndata]) {
        let bytes = fs::read(&path).unwrap();
        let blocks = checked_blocks(&bytes);
        for (place, value, n_bytes) in changes(&bytes, most.unwrap_or(300)) {
            let what = format!("{}: {n_bytes} bytes at {place} are {value:#x}", path.display());
            fs::write(&progress, &what).unwrap();
            let mut changed = bytes.clone();
            changed[place..place + n_bytes].copy_from_slice(&value.to_le_bytes()[..n_bytes]);
            renew_checksum(&mut changed, &blocks, place);
            let start = Instant::now();
            if catch_unwind(AssertUnwindSafe(|| read_all(&changed))).is_err() {
                failures.push(what);
            } else if MOST_TIME < start.elapsed() {
                failures.push(format!("{what}: {:?}", start.elapsed()));
            }
        }
    }
    assert!(failures.is_empty(), "{} panics or too slow: {:#?}", failures.len(), failures);
}

/// Changes to a file, spread evenly over the bytes that are no gaps.
fn changes(bytes: &[u8], most: usize) -> Vec<(usize, u64, usize)> {
    let is_used = |place: &usize| bytes[*place..].iter().take(8).any(|byte| *byte != 0);
    let places: Vec<usize> = (0..bytes.len() - 8).filter(is_used).collect();
    let n_all = places.len() * EXTREMES.len();
    // An odd step comes by each of the extremes.
    let step = (n_all / most.max(1)).max(1) | 1;
    let change = |at: usize| {
        let (value, n_bytes) = EXTREMES[at % EXTREMES.len()];
        (places[at / EXTREMES.len()], value, n_bytes)
    };
    (0..n_all).step_by(step).map(change).collect()
}

/// The blocks that end with a checksum, by where they begin: bytes before it.
fn checked_blocks(bytes: &[u8]) -> HashMap<usize, usize> {
    const SIGNATURES: [&[u8; 4]; 11] = [
        b"OHDR", b"OCHK", b"FRHP", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD",
        b"EAIB",
    ];
    let begins = |place: &usize| SIGNATURES.iter().any(|name| bytes[*place..].starts_with(*name));
    let len = |place: usize| {
        let rest = &bytes[place..];
        let is_end = |len: &usize| rest[*len..*len + 4] == checksum(&rest[..*len]).to_le_bytes();
        Some((place, (8..rest.len().min(3000) - 4).find(is_end)?))
    };
    (0..bytes.len()).filter(begins).filter_map(len).collect()
}

fn renew_checksum(bytes: &mut [u8], blocks: &HashMap<usize, usize>, place: usize) {
    let block = blocks.iter().find(|(start, len)| **start <= place && place < **start + **len);
    if let Some((start, len)) = block {
        let renewed = checksum(&bytes[*start..start + len]).to_le_bytes();
        bytes[start + len..start + len + 4].copy_from_slice(&renewed);
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    hdf5_reader::checksum::jenkins_lookup3(bytes)
}

/// Reads all groups, and rows of each array; then the file as an AnnData.
fn read_all(bytes: &[u8]) {
    let served = MemoryStorage::one("x.h5", bytes);
    let Ok(hdf5) = Hdf5Storage::open(Arc::new(served), "x.h5") else { return };
    let storage: Arc<dyn Storage> = Arc::new(hdf5);
    let mut paths = vec![String::new()];
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        at += 1;
        // Errors are acceptable results.
        drop(read_rows(&storage, &path));
        let below = storage.list(&path).unwrap_or_default();
        let names = below.into_iter().filter(|entry| entry.is_folder).map(|entry| entry.name);
        let n_left = MOST_NODES.saturating_sub(paths.len());
        let within = |name: String| format!("{path}/{name}").trim_start_matches('/').to_owned();
        paths.extend(names.take(n_left).map(within));
    }
    drop(read_anndata(storage));
}

/// Reads some rows of the tables and of X. Errors are acceptable results.
fn read_anndata(storage: Arc<dyn Storage>) -> Result<(), Box<dyn Error>> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build()?);
    let anndata = AnnData::open(storage, pool)?;
    for frame in [anndata.obs(), anndata.var()].into_iter().flatten() {
        let schema = frame.schema();
        for field in schema.fields() {
            drop(frame.read(&[field.name()], 0..frame.n_rows().min(FEW_ROWS)));
        }
    }
    let x = anndata.x()?;
    let rows = 0..x.shape().0.min(FEW_ROWS);
    x.read_rows(&[rows], Narrowing::Nearest, &mut CsrBuffers::new())?;
    Ok(())
}

fn read_rows(storage: &Arc<dyn Storage>, path: &str) -> Result<(), arrays::Error> {
    let array = StoredArray::open(storage, path)?;
    let n_rows = array.n_rows();
    for rows in [0..n_rows.min(FEW_ROWS), n_rows.saturating_sub(FEW_ROWS)..n_rows] {
        if array.is_strings() {
            array.read_strings(rows)?;
            continue;
        }
        let n_elements = array
            .shape()
            .iter()
            .skip(1)
            .fold(rows.end - rows.start, |n, len| n.saturating_mul(*len));
        let n_bytes = array.element().map_or(0, ElementType::n_bytes);
        // So much is asked for, so it may be had.
        let mut bytes = vec![0; n_elements.min(1 << 20) as usize * n_bytes];
        let request = array.request_bytes(&[rows], &mut bytes)?;
        arrays::read_requests(&**storage, &DecodeMemory::default(), vec![request])?;
    }
    Ok(())
}
