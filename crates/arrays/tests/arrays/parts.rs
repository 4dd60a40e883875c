//! Parts of large chunks: the same values as from whole chunks, and only their blocks are fetched.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, Error, Indices, SampleSpec, Variable};
use pipeline::Pipeline;
use proptest::prelude::*;
use serde_json::json;
use storage::{LocalStorage, Storage};
use worktime::ReadStats;
use zarrs::array::{ArrayBuilder, BytesToBytesCodecTraits, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::far::far;
use crate::{in_order, open_with, values};

/// Chunks of 37 levels: 1.2 MB of float32.
const CHUNK: [u64; 4] = [2, 37, 32, 128];
const SHAPE: [u64; 4] = [4, 37, 32, 200];

/// How the array is stored.
#[derive(Debug, Clone)]
struct Form {
    /// Blosc's codec, shuffle and block length; `None` for elements as in memory.
    blosc: Option<(&'static str, &'static str, u32)>,
    is_sharded: bool,
}

/// Writes an array whose element i is i.
fn write(folder: &Path, form: &Form) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let mut builder =
        ArrayBuilder::new(SHAPE.to_vec(), CHUNK.to_vec(), data_type::float32(), -1.0_f32);
    if let Some((cname, shuffle, blocksize)) = form.blosc {
        let settings = json!({
            "cname": cname, "clevel": 3, "shuffle": shuffle, "typesize": 4, "blocksize": blocksize
        });
        let settings = serde_json::from_value(settings).unwrap();
        let blosc = codec::BloscCodec::new_with_configuration(&settings).unwrap();
        let codec: Arc<dyn BytesToBytesCodecTraits> = Arc::new(blosc);
        builder.bytes_to_bytes_codecs(vec![codec]);
    }
    if form.is_sharded {
        builder.subchunk_shape(vec![1, 37, 32, 128]);
    }
    let array = builder.build(store, "/t").unwrap();
    array.store_metadata().unwrap();
    let values: Vec<f32> = (0..SHAPE.iter().product()).map(|i: u64| i as f32).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

/// The values in the order of latitudes, longitudes and levels.
fn transposed(levels: &[u64], lats: &[u64], lons: &[u64]) -> Vec<f32> {
    let all = expected(levels, lats, lons);
    let (n_levels, n_grid) = (levels.len(), lats.len() * lons.len());
    let of_step = |step: &[f32]| -> Vec<f32> {
        let places = (0..n_grid).flat_map(|at| (0..n_levels).map(move |level| level * n_grid + at));
        places.map(|at| step[at]).collect()
    };
    all.chunks(n_levels * n_grid).flat_map(of_step).collect()
}

fn expected(levels: &[u64], lats: &[u64], lons: &[u64]) -> Vec<f32> {
    let mut all = Vec::new();
    for step in 0..SHAPE[0] {
        for level in levels {
            for lat in lats {
                all.extend(lons.iter().map(|lon| {
                    (((step * SHAPE[1] + level) * SHAPE[2] + lat) * SHAPE[3] + lon) as f32
                }));
            }
        }
    }
    all
}

fn indices(len: u64) -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        (0..len).prop_map(|one| vec![one]),
        (0..len, 1..6_u64).prop_map(move |(start, n)| (start..len.min(start + n)).collect()),
        prop::collection::btree_set(0..len, 1..4).prop_map(|all| all.into_iter().collect()),
        Just((0..len).collect()),
    ]
}

fn form() -> impl Strategy<Value = Form> {
    let codecs = vec!["lz4", "lz4hc", "zstd", "zlib", "blosclz"];
    let shuffles = vec!["noshuffle", "shuffle", "bitshuffle"];
    // A length of 0 lets Blosc choose. A first read does not list all blocks of 512 bytes. 24,004
    // is no multiple of a row, and leaves a shorter block.
    let blosc = (prop::sample::select(codecs), prop::sample::select(shuffles)).prop_flat_map(
        |(codec, shuffle)| {
            prop::sample::select(vec![0, 512, 4096, 24_004, 131_072])
                .prop_map(move |block| (codec, shuffle, block))
        },
    );
    (prop::option::weighted(0.8, blosc), any::<bool>())
        .prop_map(|(blosc, is_sharded)| Form { blosc, is_sharded })
}

fn spec(levels: &[u64], lats: &[u64], lons: &[u64], as_f32: bool) -> SampleSpec {
    let list = |indices: &[u64]| Indices::List(indices.to_vec());
    let variable = Variable::new("t").select(1, list(levels)).select(2, list(lats));
    let variable = variable.select(3, list(lons));
    // Conversion goes another way than copies.
    let variable = if as_f32 { variable.as_f32() } else { variable };
    SampleSpec { threads: 2, ..SampleSpec::new([variable]) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn parts_are_those_of_whole_chunks(
        form in form(),
        levels in indices(SHAPE[1]),
        lats in indices(SHAPE[2]),
        lons in indices(SHAPE[3]),
        as_f32 in any::<bool>(),
        is_transposed in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &form);
        let mut spec = spec(&levels, &lats, &lons, as_f32);
        if is_transposed {
            spec.variables = spec.variables.into_iter().map(|of| of.ordered([1])).collect();
        }
        let samples = open_with(folder.path(), &spec).unwrap();
        let (read, _) = values::<f32>(samples).unwrap();
        let expected = if is_transposed { transposed } else { expected };
        prop_assert_eq!(read, expected(&levels, &lats, &lons));
    }
}

/// Level 17 of all steps, and what was read for it.
fn one_level(storage: Arc<dyn Storage>) -> Result<(Vec<f32>, ReadStats), Error> {
    let [lats, lons] = [2, 3].map(|dim| (0..SHAPE[dim]).collect::<Vec<u64>>());
    let samples = ArraySamples::open(storage, &spec(&[17], &lats, &lons, false))?;
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples)?;
    let (mut epoch, mut all) = (pipeline.epoch(0)?, Vec::new());
    for batch in epoch.by_ref() {
        let batch = batch?;
        all.extend_from_slice(batch.variables().next().unwrap().values::<f32>()?);
    }
    Ok((all, epoch.stats().read))
}

fn level_17() -> Vec<f32> {
    let [lats, lons] = [2, 3].map(|dim| (0..SHAPE[dim]).collect::<Vec<u64>>());
    expected(&[17], &lats, &lons)
}

/// Blosc makes blocks of the length that is asked for with zstd; of lz4 they are longer.
fn zstd(blocksize: u32) -> Form {
    Form { blosc: Some(("zstd", "shuffle", blocksize)), is_sharded: false }
}

#[test]
fn only_the_blocks_of_a_level_are_read() {
    // Two samples are read together, from a chunk of both steps: 74 levels of 16 KiB.
    let whole = 4 * SHAPE.iter().product::<u64>() * 256 / 200;
    for (form, share) in
        [(zstd(4096), 30), (zstd(24_004), 12), (Form { blosc: None, ..zstd(0) }, 8)]
    {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &form);
        let (values, read) = one_level(Arc::new(LocalStorage::new(folder.path()))).unwrap();
        assert_eq!(values, level_17());
        let [fetched, decoded] = [read.bytes_read, read.bytes_decoded].map(Option::unwrap);
        assert!(decoded < whole / share, "{form:?}: {decoded} of {whole}");
        // The header of each chunk comes with the list of its blocks and what follows them.
        assert!(fetched < whole / share + 8 * 8192, "{form:?}: {fetched} of {whole}");
    }
}

#[test]
fn an_object_store_sends_the_blocks_of_large_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FilesystemStore::new(folder.path()).unwrap());
    let settings = json!({
        "cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 65_536
    });
    let settings = serde_json::from_value(settings).unwrap();
    let blosc = codec::BloscCodec::new_with_configuration(&settings).unwrap();
    let shape = [3, 37, 80, 800];
    let mut builder =
        ArrayBuilder::new(shape.to_vec(), vec![1, 37, 80, 800], data_type::float32(), 0.0_f32);
    builder.bytes_to_bytes_codecs(vec![Arc::new(blosc) as Arc<dyn BytesToBytesCodecTraits>]);
    let array = builder.build(store, "/t").unwrap();
    array.store_metadata().unwrap();
    let values: Vec<f32> = (0..shape.iter().product()).map(|i: u64| (i % 9973) as f32).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
    let storage = far(folder.path(), 1 << 20);
    let variable = Variable::new("t").select(1, Indices::List(vec![0, 36]));
    let spec = SampleSpec::new([variable]);
    let samples = ArraySamples::open(Arc::clone(&storage) as Arc<dyn Storage>, &spec).unwrap();
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let (mut epoch, mut all) = (pipeline.epoch(0).unwrap(), Vec::new());
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        all.extend_from_slice(batch.variables().next().unwrap().values::<f32>().unwrap());
    }
    let level: usize = 80 * 800;
    let expected: Vec<f32> = values
        .chunks(37 * level)
        .flat_map(|step| step[..level].iter().chain(&step[36 * level..]).copied())
        .collect();
    assert_eq!(all, expected);
    let (read, whole) = (epoch.stats().read, 4 * shape.iter().product::<u64>());
    assert!(read.bytes_decoded.unwrap() < whole / 12, "{read:?}");
    let file = std::fs::metadata(folder.path().join("t/c/0/0/0/0")).unwrap().len();
    assert!(read.bytes_read.unwrap() < 3 * file / 8, "{read:?} of {file} a chunk");
}

#[test]
fn damage_is_found_where_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let read = || one_level(Arc::new(LocalStorage::new(folder.path())));
    write(folder.path(), &zstd(16_384));
    let file = folder.path().join("t/c/0/0/0/0");
    let good = std::fs::read(&file).unwrap();
    // Block 17 is level 17 of the first step.
    let block = |idx: usize| {
        let at = 16 + 4 * idx;
        u32::from_le_bytes(good[at..at + 4].try_into().unwrap()) as usize
    };
    let damaged = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        damage(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
    };
    damaged(&|bytes| bytes[block(3)..block(5)].fill(0xFF));
    assert_eq!(read().unwrap().0, level_17());
    for (damage, words) in [
        (
            &(|bytes: &mut Vec<u8>| bytes[block(17)..block(18)].fill(0xFF))
                as &dyn Fn(&mut Vec<u8>),
            "end at byte",
        ),
        (&|bytes: &mut Vec<u8>| bytes[84..88].fill(0xFF), "block 17 begins at byte 4294967295"),
        (&|bytes: &mut Vec<u8>| bytes.truncate(block(30)), "a buffer of"),
        (&|bytes: &mut Vec<u8>| bytes.truncate(10), "the header of a c-blosc buffer"),
        (&|bytes: &mut Vec<u8>| bytes[4] ^= 1, "bytes of values, and the shape has"),
    ] {
        damaged(damage);
        let text = format!("{:?}", read().unwrap_err());
        assert!(text.contains("chunk [0, 0, 0, 0]") && text.contains(words), "{text}");
    }
}

#[test]
fn a_chunk_of_two_variables_is_decoded_once() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &zstd(0));
    let [before, after] = [("before", [0, 1]), ("after", [1, 2])]
        .map(|(name, steps)| Variable::new("t").named(name).steps(steps));
    for variables in [[before.clone(), after.clone()], [after, before]] {
        let spec = SampleSpec { threads: 2, ..SampleSpec::new(variables) };
        let samples = open_with(folder.path(), &spec).unwrap();
        let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
        let mut epoch = pipeline.epoch(0).unwrap();
        let step: u64 = SHAPE[1..].iter().product();
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            for name in ["before", "after"] {
                let first = u64::from(name == "after");
                let numbers = batch
                    .samples()
                    .iter()
                    .flat_map(|sample| (sample + first) * step..(sample + first + 2) * step);
                let values = batch.variable(name).unwrap();
                let values = values.values::<f32>().unwrap();
                assert!(values.iter().copied().eq(numbers.map(|n| n as f32)), "{name}");
            }
        }
        // Two samples in one block want steps 0 to 3: both chunks of each half of the longitudes.
        let chunks = 4 * 4 * CHUNK.iter().product::<u64>();
        assert_eq!(epoch.stats().read.bytes_decoded, Some(chunks));
    }
}
