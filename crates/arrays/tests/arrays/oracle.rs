//! Random arrays on disk whose elements are their own numbers, and what a sample of them must be.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrays::{Dimension, Indices, Selection, Variable};
use proptest::prelude::*;
use zarrs::array::{ArrayBuilder, BytesToBytesCodecTraits, codec, data_type};
use zarrs::filesystem::FilesystemStore;

/// How an array is stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) is_sharded: bool,
    pub(crate) codec: Option<Compression>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Compression {
    Zstd,
    Gzip,
    Blosc,
    Checksum,
}

impl Compression {
    fn codec(self) -> Arc<dyn BytesToBytesCodecTraits> {
        match self {
            Self::Zstd => Arc::new(codec::ZstdCodec::new(1, true)),
            Self::Gzip => Arc::new(codec::GzipCodec::new(1).unwrap()),
            Self::Checksum => Arc::new(codec::Crc32cCodec::new()),
            Self::Blosc => {
                let configuration = serde_json::from_str(
                    r#"{"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0}"#,
                );
                Arc::new(
                    codec::BloscCodec::new_with_configuration(&configuration.unwrap()).unwrap(),
                )
            }
        }
    }
}

/// An array of up to 40 steps and three other dimensions.
pub(crate) fn stored() -> impl Strategy<Value = Stored> {
    let dimension = |most: u64| (1..=most, 1..=4_u64);
    let codec = prop::option::of(prop::sample::select(vec![
        Compression::Zstd,
        Compression::Gzip,
        Compression::Blosc,
        Compression::Checksum,
    ]));
    let others = prop::collection::vec(dimension(6), 0..4);
    (dimension(40), others, any::<bool>(), codec).prop_map(|(steps, others, is_sharded, codec)| {
        let (shape, chunk) = std::iter::once(steps).chain(others).unzip();
        Stored { shape, chunk, is_sharded, codec }
    })
}

/// Writes an array whose element i is i, except that chunks of zeros are not stored.
pub(crate) fn write(folder: &Path, name: &str, stored: &Stored) {
    write_steps(folder, name, (stored, 0), 0..stored.shape[0]);
}

/// Writes the elements of some of the steps, which are dimension `axis`.
pub(crate) fn write_steps(
    folder: &Path,
    name: &str,
    (stored, axis): (&Stored, usize),
    steps: Range<u64>,
) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let Stored { shape, chunk, is_sharded, codec } = stored;
    let mut part = shape.clone();
    part[axis] = steps.end - steps.start;
    let mut builder = ArrayBuilder::new(part.clone(), chunk.clone(), data_type::float64(), 0.0_f64);
    if let Some(codec) = codec {
        builder.bytes_to_bytes_codecs(vec![codec.codec()]);
    }
    if *is_sharded {
        builder.subchunk_shape(vec![1_u64; shape.len()]);
    }
    let array = builder.build(store, &format!("/{name}")).unwrap();
    array.store_metadata().unwrap();
    let inner: u64 = shape[axis + 1..].iter().product();
    let is_there = |i: &u64| steps.contains(&(i / inner % shape[axis]));
    let all = 0..shape.iter().product();
    let values: Vec<f64> = all.filter(is_there).map(|i: u64| i as f64).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

/// A random part of an array whose steps are dimension `axis`: steps around a sample's own, indices
/// of other dimensions, and an order of some of these.
pub(crate) fn variable(
    name: &'static str,
    (shape, axis): (&[u64], usize),
) -> impl Strategy<Value = Variable> + use<> {
    let each: Vec<_> = shape.iter().map(|len| indices(*len)).collect();
    let others: Vec<usize> = (0..shape.len()).filter(|at| *at != axis).collect();
    let n_others = others.len();
    let order = prop::sample::subsequence(others, 0..=n_others).prop_shuffle();
    let steps = prop::collection::vec(-2..=2_i64, 1..4);
    (steps, each, order).prop_map(move |(steps, each, order)| {
        let mut variable = Variable::new(name).steps(steps).ordered(order);
        for (at, indices) in each.into_iter().enumerate().filter(|(at, _)| *at != axis) {
            if let Some(indices) = indices {
                variable = variable.select(at, indices);
            }
        }
        variable
    })
}

fn indices(len: u64) -> impl Strategy<Value = Option<Indices>> {
    let range = (0..len).prop_flat_map(move |start| {
        (start + 1..=len).prop_map(move |end| Some(Indices::Range(start..end)))
    });
    let list = prop::collection::btree_set(0..len, 1..=len as usize)
        .prop_map(|chosen| Some(Indices::List(chosen.into_iter().collect())));
    // In any order, and several times.
    let any_list = prop::collection::vec(0..len, 1..=len as usize + 1)
        .prop_map(|chosen| Some(Indices::List(chosen)));
    prop_oneof![Just(None), range, list, any_list]
}

/// The values of a variable, whose steps are dimension `axis`, in the sample about `step`.
pub(crate) fn expected((shape, axis): (&[u64], usize), variable: &Variable, step: u64) -> Vec<f64> {
    let is_named = |dim: &usize| variable.order.contains(&(*dim).into());
    let others = (0..shape.len()).filter(|dim| *dim != axis && !is_named(dim));
    let named = variable.order.iter().map(|dimension| match dimension {
        Dimension::Position(at) => *at,
        Dimension::Name(_) => unreachable!("no name is generated"),
    });
    let order: Vec<usize> = others.chain(named).collect();
    let stride = |dim: usize| shape[dim + 1..].iter().product::<u64>();
    let mut numbers: Vec<u64> = Vec::new();
    for by in &variable.steps {
        let mut at = vec![step.checked_add_signed(*by).unwrap() * stride(axis)];
        for dim in &order {
            let chosen = variable.select.iter().find(|(of, _)| *of == (*dim).into());
            let indices: Vec<u64> = match chosen {
                None => (0..shape[*dim]).collect(),
                Some((_, Selection::Indices(Indices::Range(range)))) => range.clone().collect(),
                Some((_, Selection::Indices(Indices::List(list)))) => list.clone(),
                Some(_) => unreachable!("no other kind is generated"),
            };
            at = at
                .iter()
                .flat_map(|outer| indices.iter().map(move |index| outer + index * stride(*dim)))
                .collect();
        }
        numbers.extend(at);
    }
    numbers.into_iter().map(|n| n as f64).collect()
}
