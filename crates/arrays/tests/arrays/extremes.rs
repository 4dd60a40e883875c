//! Metadata whose numbers are extreme: reading costs memory in proportion to the bytes of the
//! files, or is an error.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrays::{
    ArraySamples, DecodeMemory, ReadScratch, SampleSpec, StoredArray, Variable, read_requests,
};
use pipeline::Stop;
use serde_json::{Value, json};
use storage::{LocalStorage, Storage};

const NAME: &str = "extremes::extreme_numbers_cost_neither_memory_nor_time";
/// Names the folder of the arrays that the child reads.
const CHILD: &str = "ARRAYS_OF_EXTREMES";
/// The child's address space: little beside what the numbers declare.
const MOST_KIB: u64 = 4 << 20;
const MOST_TIME: Duration = Duration::from_mins(2);
/// The most bytes that the child asks for at once.
const MOST_BYTES: u64 = 1 << 24;

/// Metadata files with the chunks beside them.
fn bases() -> Vec<(&'static str, Value, Vec<u8>)> {
    let numbers = [1.0_f64, 2.0, 3.0, 4.0].map(f64::to_le_bytes).concat();
    let zstd = zstd::bulk::compress(&numbers, 1).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&numbers).unwrap();
    let zlib = zlib.finish().unwrap();
    let mut lz4 = 32_u32.to_le_bytes().to_vec();
    lz4.extend(lz4::block::compress(&numbers, None, false).unwrap());
    let v3 = |codecs: Value| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [4, 2], "data_type": "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": codecs,
        })
    };
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let compressed = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let sharded = json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 2], "codecs": [bytes], "index_codecs": [bytes], "index_location": "end",
    }});
    let mut shard = numbers.clone();
    shard.extend([0_u64, 16, 16, 16].map(u64::to_le_bytes).concat());
    let v2 = |dtype: &str, filters: Value, compressor: Value| {
        json!({
            "zarr_format": 2, "shape": [4, 2], "chunks": [2, 2], "dtype": dtype, "order": "C",
            "fill_value": null, "filters": filters, "compressor": compressor,
            "dimension_separator": "/",
        })
    };
    let mut texts = 4_u32.to_le_bytes().to_vec();
    texts.extend([1, 0, 0, 0, b'a'].repeat(4));
    let list = |mut metadata: Value| {
        metadata["shape"] = json!([8]);
        metadata["chunks"] = json!([4]);
        metadata
    };
    let delta = json!([{"id": "delta", "dtype": "<f8"}]);
    vec![
        ("zarr.json", v3(json!([bytes])), numbers.clone()),
        ("zarr.json", v3(json!([bytes, compressed])), zstd.clone()),
        ("zarr.json", v3(json!([big, compressed])), zstd),
        ("zarr.json", v3(json!([sharded])), shard),
        (".zarray", v2("<f8", Value::Null, json!({"id": "zlib", "level": 1})), zlib),
        (".zarray", v2("<f8", delta, json!({"id": "lz4", "acceleration": 1})), lz4),
        (".zarray", list(v2("|O", json!([{"id": "vlen-utf8"}]), Value::Null)), texts),
        (".zarray", list(v2("|S2", Value::Null, Value::Null)), b"abcdefgh".to_vec()),
    ]
}

/// Where the numbers of a JSON value are.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, of)| places(of, &format!("{at}/{i}"), found));
        }
        Value::Object(object) => {
            object.iter().for_each(|(name, of)| places(of, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

/// Writes each base with each number set to each extreme, and returns how many that are.
fn write(folder: &Path) -> usize {
    let extremes = [0, 1, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 62, u64::MAX].map(Value::from);
    let extremes = extremes.into_iter().chain([json!(-1), json!(1e300)]);
    let extremes: Vec<Value> = extremes.collect();
    let mut n = 0;
    for (file, metadata, chunk) in bases() {
        let is_list = metadata["shape"].as_array().is_some_and(|shape| shape.len() == 1);
        let mut all = Vec::new();
        places(&metadata, "", &mut all);
        let mut variants = vec![metadata.clone()];
        for place in all {
            for extreme in &extremes {
                let mut metadata = metadata.clone();
                *metadata.pointer_mut(&place).unwrap() = extreme.clone();
                variants.push(metadata);
            }
        }
        // A chunk of this size in an array of this size.
        for len in [(1_u64 << 31) - 1, 1 << 40] {
            let mut both = metadata.clone();
            for place in ["/shape/0", "/chunks/0", "/chunk_grid/configuration/chunk_shape/0"] {
                if let Some(number) = both.pointer_mut(place) {
                    *number = json!(len);
                }
            }
            variants.push(both);
        }
        for metadata in variants {
            let array = folder.join(n.to_string());
            let chunk_file = match (file, is_list) {
                ("zarr.json", _) => "c/0/0",
                (_, true) => "0",
                (_, false) => "0/0",
            };
            fs::create_dir_all(array.join(chunk_file).parent().unwrap()).unwrap();
            fs::write(array.join(chunk_file), &chunk).unwrap();
            fs::write(array.join(file), metadata.to_string()).unwrap();
            n += 1;
        }
    }
    n
}

/// Reads an array in every way, and little of it.
fn read(storage: &Arc<dyn Storage>, name: &str) -> [bool; 2] {
    let spec = SampleSpec { coordinates: false, ..SampleSpec::new([Variable::new(name)]) };
    let samples = ArraySamples::open(Arc::clone(storage), &spec);
    let is_sample = samples.is_ok_and(|samples| {
        // The last chunk may not be stored.
        let wanted = [0, samples.n_samples() - 1];
        let n_bytes = samples.sample_bytes().saturating_mul(2);
        if MOST_BYTES < n_bytes {
            return false;
        }
        let mut words = vec![0_u64; (n_bytes as usize).div_ceil(8)];
        let into: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..n_bytes as usize];
        let (mut scratch, stop) = (ReadScratch::default(), Stop::default());
        samples.read_into(&wanted, &mut [into], &mut scratch, &stop).is_ok()
    });
    let is_stored = StoredArray::open(storage, name).is_ok_and(|array| {
        let n = array.n_rows();
        let rows = [0..n.min(2), n.saturating_sub(1).max(n.min(2))..n];
        if array.is_strings() {
            return rows.into_iter().all(|rows| array.read_strings(rows).is_ok());
        }
        let row = array.shape().iter().skip(1).fold(1_u64, |n, len| n.saturating_mul(*len));
        let n_rows: u64 = rows.iter().map(|rows| rows.end - rows.start).sum();
        if MOST_BYTES < row.saturating_mul(n_rows * 4) {
            return false;
        }
        let mut into = vec![0_f32; (row * n_rows) as usize];
        let read = array
            .request(&rows, &mut into)
            .and_then(|request| read_requests(&**storage, &DecodeMemory::default(), vec![request]));
        read.is_ok()
    });
    [is_sample, is_stored]
}

#[test]
fn extreme_numbers_cost_neither_memory_nor_time() {
    if let Some(folder) = env::var_os(CHILD) {
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(&folder));
        let n: usize = fs::read_dir(&folder).unwrap().count();
        let read: Vec<[bool; 2]> = (0..n).map(|at| read(&storage, &at.to_string())).collect();
        // Not everything is refused.
        let n_read = read.iter().filter(|read| read.contains(&true)).count();
        assert!(n / 8 < n_read, "{n_read} of {n} were read");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let n = write(folder.path());
    assert!(300 < n, "{n}");
    let begun = Instant::now();
    let limited = format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(limited).arg(env::current_exe().unwrap()).args(["--exact", NAME]);
    let output = command.env(CHILD, folder.path()).env("RAYON_NUM_THREADS", "2").output().unwrap();
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{:?}: {out} {errors}", output.status);
    assert!(begun.elapsed() < MOST_TIME, "{:?}", begun.elapsed());
}
