//! Any layout has the values of a naive copy, bit by bit.

use std::path::Path;
use std::sync::Arc;

use arrays::{ChunkedArray, Indices, Variable};
use fields::generate::Codec;
use fields::relayout::{Length, RelayoutSpec, StoredAs};
use half::f16;
use proptest::prelude::*;
use storage::{LocalStorage, Storage};

use super::lay_out;
use super::source::{ELEMENTS, Source, elements, picked};
use crate::xarray::read;

/// How an array is copied along one dimension.
#[derive(Debug, Clone)]
struct Along {
    len: u64,
    chunk: u64,
    in_shard: u64,
    new_chunk: Option<u64>,
    new_in_shard: Option<u64>,
    selected: Option<Indices>,
}

fn along() -> impl Strategy<Value = Along> {
    (1..9_u64).prop_flat_map(|len| {
        let selected = prop_oneof![
            2 => Just(None),
            1 => (0..len).prop_flat_map(move |start| {
                (Just(start), start + 1..=len).prop_map(|(start, end)| Some(Indices::Range(start..end)))
            }),
            1 => prop::collection::vec(0..len, 1..6).prop_map(|list| Some(Indices::List(list))),
        ];
        let sizes = (1..=len + 2, 1..4_u64, prop::option::of(1..9_u64), prop::option::of(1..4_u64));
        (sizes, selected).prop_map(move |((chunk, in_shard, new_chunk, new_in_shard), selected)| {
            Along { len, chunk, in_shard, new_chunk, new_in_shard, selected }
        })
    })
}

#[derive(Debug, Clone)]
struct Case {
    along: Vec<Along>,
    source: Source,
    has_new_shards: bool,
    codec: Codec,
    memory_bytes: u64,
    n_threads: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let settings =
        (0..ELEMENTS.len(), 0..3_usize, 0..3_usize, any::<u64>(), any::<bool>(), 0..4_usize);
    let memory = prop_oneof![300..3_000_u64, Just(1 << 20)];
    (prop::collection::vec(along(), 1..5), settings, memory, 1..4_usize).prop_map(
        |(along, settings, memory_bytes, n_threads)| {
            let (element, form, compression, seed, has_new_shards, codec) = settings;
            let list = |of: fn(&Along) -> u64| along.iter().map(of).collect::<Vec<u64>>();
            let source = Source {
                is_v2: form == 0,
                element,
                shape: list(|of| of.len),
                chunk: list(|of| of.chunk),
                in_shard: (form == 1).then(|| list(|of| of.in_shard)),
                compression,
                seed,
            };
            let codec = [Codec::None, Codec::Zstd(1), Codec::Gzip(1), Codec::Blosc(5)][codec];
            Case { along, source, has_new_shards, codec, memory_bytes, n_threads }
        },
    )
}

impl Case {
    fn spec(&self) -> RelayoutSpec {
        let (mut chunks, mut shards, mut isel) = (Vec::new(), Vec::new(), Vec::new());
        for (at, of) in self.along.iter().enumerate() {
            let name = format!("d{at}");
            if let Some(chunk) = of.new_chunk {
                chunks.push((name.clone(), Length::Indices(chunk)));
            }
            if let Some(n) = of.new_in_shard.filter(|_| self.has_new_shards) {
                let chunk = of.new_chunk.unwrap_or(of.chunk);
                shards.push((name.clone(), Length::Indices(chunk * n)));
            }
            if let Some(selected) = &of.selected {
                isel.push((name, selected.clone()));
            }
        }
        RelayoutSpec {
            chunks,
            shards,
            isel,
            codec: self.codec,
            memory_bytes: self.memory_bytes,
            n_threads: self.n_threads,
            ..RelayoutSpec::default()
        }
    }

    fn indices(&self) -> Vec<Vec<u64>> {
        let all = self.along.iter().map(|of| match &of.selected {
            None => (0..of.len).collect(),
            Some(Indices::Range(range)) => range.clone().collect(),
            Some(Indices::List(list)) => list.clone(),
            Some(other) => panic!("{other:?}"),
        });
        all.collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]
    #[test]
    fn any_layout_has_the_values_of_a_naive_copy(case in case()) {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        case.source.write(&from);
        let n_bytes = case.source.element_bytes();
        let expected = picked(&elements(&from, "v"), n_bytes, &case.indices());
        let report = match lay_out(&from, &to, &case.spec()) {
            Err(error) => {
                // The least memory that the error names is enough.
                let text = error.to_string();
                prop_assert!(text.contains("takes at least") && error.is_usage(), "{text}");
                let words: Vec<&str> = text.split(' ').collect();
                let at = words.iter().position(|word| *word == "least").unwrap();
                let memory_bytes = words[at + 1].parse().unwrap();
                lay_out(&from, &to, &RelayoutSpec { memory_bytes, ..case.spec() }).unwrap()
            }
            Ok(report) => report,
        };
        let (shape, found) = elements(&to, "v");
        let lens: Vec<u64> = case.indices().iter().map(|of| of.len() as u64).collect();
        prop_assert_eq!(&shape, &lens);
        prop_assert!(found == expected, "zarrs reads other values");
        prop_assert_eq!(report.n_bytes, expected.len() as u64);
        prop_assert!(report.n_decoded == report.arrays[0].n_decoded);
        let by_arrays = stored(&to, n_bytes);
        prop_assert!(by_arrays == expected, "arrays reads other values");
        if ELEMENTS[case.source.element].0 == "float32" {
            prop_assert!(sampled(&to) == expected, "samples have other values");
        }
        // Chunks of nothing but fill values are not stored, and nothing else is left.
        for (name, _) in super::files(&to) {
            prop_assert!(name.ends_with("zarr.json") || name.starts_with("v/c/"), "{name}");
            prop_assert!(!name.ends_with("partial"), "{name}");
        }
    }
}

/// All elements chunk by chunk, as crate `arrays` reads them.
fn stored(store: &Path, n_bytes: usize) -> Vec<u8> {
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(store));
    let array = ChunkedArray::open(&storage, "v").unwrap();
    assert_eq!(array.attributes().get("units").unwrap(), "K");
    let shape: Vec<usize> = array.shape().iter().map(|len| *len as usize).collect();
    let chunk_shape: Vec<usize> = array.chunk_shape().iter().map(|len| *len as usize).collect();
    let mut all = vec![0; shape.iter().product::<usize>() * n_bytes];
    let mut chunk = vec![0; array.chunk_bytes().unwrap()];
    let mut at = vec![0; shape.len()];
    let mut last = None;
    for element in 0..shape.iter().product::<usize>() {
        let mut rest = element;
        for axis in (0..shape.len()).rev() {
            at[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        let indices: Vec<u64> =
            at.iter().zip(&chunk_shape).map(|(at, len)| (at / len) as u64).collect();
        if last.as_ref() != Some(&indices) {
            for slot in chunk.chunks_exact_mut(n_bytes) {
                slot.copy_from_slice(array.fill_bytes());
            }
            array.read_chunk(&indices, &mut chunk).unwrap();
            last = Some(indices);
        }
        let within = at.iter().zip(&chunk_shape).fold(0, |all, (at, len)| all * len + at % len);
        all[element * n_bytes..][..n_bytes].copy_from_slice(&chunk[within * n_bytes..][..n_bytes]);
    }
    all
}

/// All samples in their order.
fn sampled(store: &Path) -> Vec<u8> {
    let batch = read(store, Variable::new("v").as_stored());
    let values = batch.variable("v").unwrap();
    values.values::<f32>().unwrap().iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// A source of 32-bit numbers in chunks of one step and all levels.
pub(crate) fn levels(n_steps: u64) -> Source {
    Source {
        is_v2: false,
        element: 0,
        shape: vec![n_steps, 4, 6, 8],
        chunk: vec![1, 4, 6, 8],
        in_shard: None,
        compression: 2,
        seed: 5,
    }
}

#[test]
fn levels_apart_in_shards_of_steps_decode_each_chunk_once() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    levels(7).write(&from);
    let one = |name: &str, n| (name.to_owned(), Length::Indices(n));
    let spec = RelayoutSpec {
        chunks: vec![one("d0", 1), one("d1", 1)],
        shards: vec![one("d0", 3)],
        ..RelayoutSpec::default()
    };
    let report = lay_out(&from, &to, &spec).unwrap();
    assert_eq!((report.n_decoded, report.arrays[0].times_decoded()), (7, 1.0));
    assert_eq!(report.arrays[0].shard, Some(vec![3, 1, 6, 8]));
    assert_eq!(elements(&to, "v"), elements(&from, "v"));
    assert!(to.join("v/c/2/3/0/0").is_file() && !to.join("v/c/3").exists());
    // As many bytes as are reported.
    let n_bytes: usize = super::files(&to).iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(report.bytes_on_disk, n_bytes as u64);
    assert!(report.source_bytes.is_some());
}

#[test]
fn half_the_numbers_are_rounded_and_those_beyond_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let source = Source { element: 2, shape: vec![3, 5], chunk: vec![2, 5], ..levels(1) };
    source.write(&from);
    let half = vec![(None, StoredAs::Element(arrays::ElementType::F16))];
    let spec = RelayoutSpec { dtype: half, ..RelayoutSpec::default() };
    let report = lay_out(&from, &to, &spec).unwrap();
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        bytes.chunks_exact(8).map(|of| f64::from_ne_bytes(of.try_into().unwrap())).collect()
    };
    let before = numbers(&elements(&from, "v").1);
    let after: Vec<f16> = elements(&to, "v")
        .1
        .chunks_exact(2)
        .map(|of| f16::from_ne_bytes(of.try_into().unwrap()))
        .collect();
    assert!(before.iter().zip(&after).all(|(one, half)| f16::from_f64(*one) == *half));
    // Random bytes below 64 are numbers far below the least of 16 bits.
    assert!(!report.rounded_to_zero.is_empty(), "{report:?}");

    // A number that is too large.
    let chunk = from.join("v/c/0/0");
    std::fs::create_dir_all(chunk.parent().unwrap()).unwrap();
    let files = Arc::new(zarrs::filesystem::FilesystemStore::new(&from).unwrap());
    let array = zarrs::array::Array::open(files, "/v").unwrap();
    array.store_chunk(&[0, 0], &[70_000.5_f64; 10][..]).unwrap();
    let to = folder.path().join("other");
    let error = lay_out(&from, &to, &spec).unwrap_err();
    let text = error.to_string();
    for part in ["v: a value in chunk [0, 0]", "70000.5", "float16", "65504", "v=source"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(error.is_usage() && !to.exists());
    let mut dtype = spec.dtype.clone();
    dtype.push((Some("v".to_owned()), StoredAs::Source));
    // Other settings do not take what the first ones have left.
    let kept = RelayoutSpec { dtype, ..spec };
    let refused = lay_out(&from, &to, &kept).unwrap_err().to_string();
    assert!(refused.contains("other settings"), "{refused}");
    let to = folder.path().join("kept");
    lay_out(&from, &to, &kept).unwrap();
    assert_eq!(elements(&to, "v"), elements(&from, "v"));
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    levels(4).write(&from);
    let one = |name: &str, n| vec![(name.to_owned(), Length::Indices(n))];
    let indices = |name: &str, indices| vec![(name.to_owned(), indices)];
    let usual = RelayoutSpec::default;
    for (spec, part) in [
        (RelayoutSpec { chunks: one("time", 1), ..usual() }, "no dimension time; there are d0, d1"),
        (
            RelayoutSpec { chunks: one("d0", 2), shards: one("d0", 3), ..usual() },
            "does not consist of whole chunks of 2",
        ),
        (RelayoutSpec { variables: Some(vec!["w".to_owned()]), ..usual() }, "no w; there are v"),
        (RelayoutSpec { isel: indices("d0", Indices::Range(0..5)), ..usual() }, "has 4 indices"),
        (RelayoutSpec { isel: indices("d1", Indices::List(vec![4])), ..usual() }, "4 is wanted"),
        (
            RelayoutSpec { sel: vec![("d0".to_owned(), Vec::new())], ..usual() },
            "has no coordinates",
        ),
        (RelayoutSpec { memory_bytes: 1000, ..usual() }, "takes at least"),
        (RelayoutSpec { codec: Codec::Zstd(30), ..usual() }, "between 1 and 22"),
    ] {
        let error = lay_out(&from, &to, &spec).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(part), "{error}");
        assert_eq!(super::names(folder.path()), ["from"]);
    }
    // Neither an array alone nor a folder without arrays is a store.
    for (store, part) in [(from.join("v"), "group of arrays"), (from.join("v/c"), "no arrays")] {
        let error = lay_out(&store, &to, &usual()).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap();
        let cause = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
        assert!(cause.contains(part), "{cause}");
    }
}
