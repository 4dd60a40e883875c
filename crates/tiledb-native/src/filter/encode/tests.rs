//! Decoding returns what was encoded.

use proptest::prelude::*;

use super::*;
use crate::datatype::Datatype;
use crate::filter::{Decoded, Decoder, Filter, bind};

fn codec() -> impl Strategy<Value = Filter> {
    prop_oneof![
        (-5..10).prop_map(|level| Filter::Compress(Codec::Zstd, level)),
        Just(Filter::Compress(Codec::Lz4, 0)),
        Just(Filter::Compress(Codec::Rle, 0)),
    ]
}

fn integer_filter() -> impl Strategy<Value = Filter> {
    prop_oneof![
        Just(Filter::None),
        Just(Filter::BitWidthReduction { max_window: 256 }),
        Just(Filter::Delta { reinterpret: Datatype::ANY }),
        Just(Filter::Byteshuffle),
        codec(),
    ]
}

/// Runs of close numbers with some distant ones among them.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let number = prop_oneof![
        10 => 0_u64..200,
        2 => 0_u64..60_000,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
        1 => Just(1_u64 << 63),
        1 => Just((1_u64 << 63) - 1),
    ];
    prop::collection::vec((number, 1_usize..90), 0..20).prop_map(|runs| {
        let run = |(number, n): (u64, usize)| {
            (0..n as u64).map(move |idx| number.wrapping_add(idx * 7 % 5))
        };
        runs.into_iter().flat_map(run).collect()
    })
}

/// `None` if such filters are not encoded here.
fn round_trip(filters: &[Filter], datatype: Datatype, values: &[u8]) -> Option<Vec<u8>> {
    let pipeline = bind(filters, datatype, 22).unwrap();
    if pipeline.not_written().is_some() {
        return None;
    }
    let size = datatype.size().unwrap();
    let mut tile = 1_u64.to_le_bytes().to_vec();
    let mut encoder = Encoder::default();
    pipeline.encode(values, size, &mut encoder, &mut tile).unwrap();
    let first = tile.clone();
    tile.truncate(8);
    pipeline.encode(values, size, &mut encoder, &mut tile).unwrap();
    assert_eq!(first, tile, "what was encoded before changes nothing");
    // By chunk, and as a whole.
    let decoded = crate::tile::decode_whole(&tile, &pipeline, size, values.len()).unwrap();
    let mut decoder = Decoder::default();
    match crate::tile::decode_chunk(&tile[8..], &pipeline, size, &mut decoder).unwrap() {
        Decoded::Plain(bytes) => assert_eq!(bytes, decoded),
        Decoded::Planes(bytes) => assert_eq!(bytes.len(), decoded.len()),
        Decoded::LowFour(bytes) => {
            let wide = bytes
                .as_chunks()
                .0
                .iter()
                .flat_map(|word| u64::from(u32::from_le_bytes(*word)).to_le_bytes());
            assert_eq!(wide.collect::<Vec<u8>>(), decoded);
        }
    }
    Some(decoded)
}

proptest! {
    #[test]
    fn integers_come_back(numbers in numbers(), filters in prop::collection::vec(integer_filter(), 0..4), which in 0..6_usize) {
        let datatype = Datatype([7, 8, 0, 9, 1, 10][which]);
        let size = datatype.size().unwrap();
        let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(size)).collect();
        let back = round_trip(&filters, datatype, &values);
        prop_assume!(back.is_some());
        prop_assert_eq!(back, Some(values));
    }

    #[test]
    fn whole_floats_come_back(numbers in prop::collection::vec(prop_oneof![8 => 0_i32..300, 1 => -70_000_i32..16_777_217], 0..400), more in prop::collection::vec(integer_filter(), 0..3)) {
        let values: Vec<u8> = numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
        let filters: Vec<Filter> = std::iter::once(Filter::FloatScale { scale: 1.0, offset: 0.0, byte_width: 4 }).chain(more).collect();
        let back = round_trip(&filters, Datatype(2), &values);
        prop_assume!(back.is_some());
        prop_assert_eq!(back, Some(values));
    }
}

proptest! {
    #[test]
    fn packed_differences_come_back(rows in prop::collection::vec(prop::collection::btree_set(0_u64..1 << 33, 1..60), 0..12), narrow in any::<bool>()) {
        let numbers = rows.iter().flatten().map(|number| if narrow { number >> 2 } else { *number });
        let values: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let filters = [Filter::Delta { reinterpret: Datatype::ANY }, Filter::BitWidthReduction { max_window: 256 }];
        for datatype in [Datatype::INT64, Datatype::UINT64] {
            prop_assert_eq!(round_trip(&filters, datatype, &values), Some(values.clone()));
        }
    }
}

#[test]
fn a_far_number_costs_only_itself() {
    let pipeline = bind(&[Filter::BitWidthReduction { max_window: 256 }], Datatype::INT64, 22).unwrap();
    let mut values: Vec<i64> = (0..1000).map(|idx| idx % 200).collect();
    let len = |values: &[i64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut out = Vec::new();
        pipeline.encode(&bytes, 8, &mut Encoder::default(), &mut out).unwrap();
        out.len()
    };
    // The chunk's header, the lengths, one window.
    assert_eq!(len(&values), 12 + 8 + 13 + 1000);
    values[500] = -60_000;
    assert_eq!(len(&values), 12 + 8 + 3 * 13 + 988 + 2 * 12);
}

#[test]
fn scaling_rounds_as_libtiledb_does() {
    let filter = Filter::FloatScale { scale: 0.5, offset: 1.0, byte_width: 2 };
    let values: Vec<u8> =
        [1.0_f32, 1.2, 1.3, -3.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let back: Vec<f32> = round_trip(&[filter], Datatype(2), &values)
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    assert_eq!(back, [1.0, 1.0, 1.5, -3.5]);
}

#[test]
fn what_cannot_be_scaled_is_refused() {
    for (value, byte_width, fits) in [
        (127.0_f32, 1, true),
        (128.0, 1, false),
        (-128.0, 1, true),
        (2_147_483_648.0, 4, false),
        (-2_147_483_648.0, 4, true),
        (f32::NAN, 4, false),
        (f32::INFINITY, 8, false),
    ] {
        let filter = Filter::FloatScale { scale: 1.0, offset: 0.0, byte_width };
        let pipeline = bind(&[filter], Datatype(2), 22).unwrap();
        let bytes = value.to_le_bytes();
        let encoded = pipeline.encode(&bytes, 4, &mut Encoder::default(), &mut Vec::new());
        assert_eq!(encoded.is_ok(), fits, "{value} in {byte_width} bytes");
    }
}
