//! Random schemas of tables.

use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Filter, Schema};

use crate::differential::histories::draw::Draw;
use crate::differential::histories::filters::pipeline;

pub(super) const DIMENSION: &str = "soma_joinid";
/// Names of attributes; few, so that one that was dropped often comes again.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const DIMENSION_TYPES: [Datatype; 6] = [
    Datatype::Int64,
    Datatype::Int64,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::Int32,
    Datatype::UInt32,
];
const NUMBER_TYPES: [Datatype; 11] = [
    Datatype::Int32,
    Datatype::Int64,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Bool,
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::UInt32,
    Datatype::UInt64,
];
const TIME_TYPES: [Datatype; 4] = [
    Datatype::DateTimeSecond,
    Datatype::DateTimeMillisecond,
    Datatype::DateTimeMicrosecond,
    Datatype::DateTimeNanosecond,
];
const TEXT_TYPES: [Datatype; 3] = [Datatype::StringUtf8, Datatype::StringAscii, Datatype::Blob];

/// The filters of offsets: those that tiledbsoma chooses, libtiledb's default, and others.
fn offsets_filters(draw: &mut Draw) -> Vec<Filter> {
    match draw.below(4) {
        0 => Vec::new(),
        1 => vec![Filter::None],
        2 => vec![Filter::DoubleDelta(None), Filter::BitWidthReduction, Filter::Zstd(3)],
        _ => pipeline(draw, Datatype::UInt64),
    }
}

fn text_filters(draw: &mut Draw, datatype: Datatype) -> Vec<Filter> {
    if datatype != Datatype::Blob && draw.chance(40) {
        // Texts are then encoded whole.
        let first = draw.pick(&[Filter::Dictionary, Filter::Rle]);
        let rest = [
            vec![],
            vec![Filter::Zstd(19)],
            vec![Filter::BitShuffle, Filter::Lz4(-1)],
            vec![Filter::Gzip(1), Filter::ChecksumSha256],
        ];
        return [vec![first], rest[draw.below(4)].clone()].concat();
    }
    match draw.below(6) {
        0 => vec![Filter::None],
        1 => vec![Filter::ByteShuffle, Filter::Lz4(-1), Filter::ChecksumMd5],
        2 => vec![Filter::Gzip(3)],
        _ => vec![Filter::Zstd(3)],
    }
}

/// An attribute of any type.
pub(super) fn attribute(draw: &mut Draw, name: &str) -> Attribute {
    let (datatype, filters) = match draw.below(10) {
        0..5 => {
            let datatype = draw.pick(&NUMBER_TYPES);
            (datatype, pipeline(draw, datatype))
        }
        5 => {
            let filters = [
                vec![Filter::Zstd(3)],
                vec![Filter::BitWidthReduction, Filter::Zstd(1)],
                vec![Filter::DoubleDelta(None)],
            ];
            (draw.pick(&TIME_TYPES), filters[draw.below(3)].clone())
        }
        _ => {
            let datatype = draw.pick(&TEXT_TYPES);
            (datatype, text_filters(draw, datatype))
        }
    };
    Attribute { nullable: draw.chance(40), filters, ..Attribute::new(name, datatype) }
}

/// A name that `schema` does not use.
pub(super) fn unused_name(draw: &mut Draw, schema: &Schema) -> Option<&'static str> {
    let is_used = |name: &str| schema.attributes.iter().any(|attribute| attribute.name == name);
    let unused: Vec<_> = NAMES.into_iter().filter(|name| !is_used(name)).collect();
    (!unused.is_empty()).then(|| draw.pick(&unused))
}

/// A sparse array of one dimension.
pub(super) fn schema(draw: &mut Draw) -> Schema {
    let n_rows: u64 = match draw.below(6) {
        0 => draw.within(1..8),
        1 => draw.within(500..3000),
        2 => (1 << 31) - 5000,
        _ => draw.within(8..300),
    };
    let low: u64 = if draw.chance(80) { 0 } else { draw.within(1..40) };
    let extent = if draw.chance(30) { n_rows } else { draw.within(1..n_rows.min(2048) + 1) };
    let datatype = draw.pick(&DIMENSION_TYPES);
    let is_hilbert = draw.chance(4);
    let current = draw.chance(40).then(|| {
        let high = low + n_rows.min(draw.pick(&[5, 60, 400])) - 1;
        vec![(i128::from(low), i128::from(high))]
    });
    let n_attributes = draw.within(1..5) as usize;
    let attributes = NAMES[..n_attributes].iter().map(|name| attribute(draw, name)).collect();
    let order = draw.pick(&[CellOrder::RowMajor, CellOrder::RowMajor, CellOrder::ColumnMajor]);
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![Dimension {
            name: DIMENSION.to_owned(),
            datatype,
            domain: Some((low.into(), i128::from(low + n_rows) - 1)),
            tile_extent: (!is_hilbert).then_some(extent.into()),
            filters: pipeline(draw, datatype),
        }],
        attributes,
        tile_order: order,
        cell_order: if is_hilbert { CellOrder::Hilbert } else { order },
        capacity: match draw.below(4) {
            0 => draw.within(1..7),
            1 | 2 => draw.within(7..60),
            _ => 10_000,
        },
        allows_duplicates: draw.chance(30),
        offsets_filters: offsets_filters(draw),
        coords_filters: pipeline(draw, datatype),
        validity_filters: if draw.chance(50) {
            pipeline(draw, Datatype::UInt8)
        } else {
            Vec::new()
        },
        current_domain: current,
        enumerations: Vec::new(),
    }
}
