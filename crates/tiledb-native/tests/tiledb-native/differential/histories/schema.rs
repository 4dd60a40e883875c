//! Random schemas.

use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Filter, Schema};

use super::draw::Draw;
use super::filters::pipeline;

/// The attribute of most arrays.
pub(super) const DATA: &str = "soma_data";
pub(super) const DIMENSIONS: [&str; 2] = ["soma_dim_0", "soma_dim_1"];
/// Types of coordinates; int64 is the usual one.
const DIMENSION_TYPES: [Datatype; 6] = [
    Datatype::Int64,
    Datatype::Int64,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::Int32,
    Datatype::UInt32,
];
/// Types of values; float32 is the usual one.
const VALUE_TYPES: [Datatype; 14] = [
    Datatype::Float32,
    Datatype::Float32,
    Datatype::Float32,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::Int32,
    Datatype::UInt32,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::Bool,
];

/// Rows and columns.
fn shape(draw: &mut Draw) -> (u64, u64) {
    // If there are few places, cells often share one.
    let is_small = draw.chance(30);
    let n_rows = match draw.below(20) {
        _ if is_small => draw.within(1..8),
        0 => draw.within(2000..5000),
        1..=5 => draw.within(60..400),
        _ => draw.within(1..60),
    };
    let n_columns = match draw.below(20) {
        _ if is_small => draw.within(1..20),
        0 => draw.within(65_530..70_000),
        1 | 2 => draw.within(200..700),
        _ => draw.within(1..80),
    };
    (n_rows, n_columns)
}

fn dimension(
    draw: &mut Draw,
    (name, datatype): (&str, Datatype),
    n: u64,
    is_hilbert: bool,
) -> Dimension {
    let low = if draw.chance(70) { 0 } else { draw.within(1..40) };
    let extent = if draw.chance(30) { n } else { draw.within(1..n.min(100) + 1) };
    Dimension {
        name: name.to_owned(),
        datatype,
        domain: Some((low.into(), i128::from(low + n) - 1)),
        tile_extent: (!is_hilbert).then_some(extent.into()),
        filters: pipeline(draw, datatype),
    }
}

/// A part of each dimension's domain.
fn current_domain(draw: &mut Draw, dimensions: &[Dimension]) -> Vec<(i128, i128)> {
    let part = |dimension: &Dimension| {
        let (low, high) = dimension.domain.unwrap();
        let first = if draw.chance(80) { low } else { within(draw, (low, high)) };
        (first, within(draw, (first, high)))
    };
    dimensions.iter().map(part).collect()
}

/// Mostly the values alone; some arrays have another attribute before or after them.
fn attributes(draw: &mut Draw) -> Vec<Attribute> {
    let value_type = draw.pick(&VALUE_TYPES);
    let data =
        Attribute { filters: pipeline(draw, value_type), ..Attribute::new(DATA, value_type) };
    let mut attributes = vec![data];
    if draw.chance(8) {
        let datatypes = [Datatype::Int32, Datatype::Float64, Datatype::StringUtf8];
        attributes.push(another(draw, "more", &datatypes));
        draw.shuffle(&mut attributes);
    }
    if draw.chance(3) {
        attributes[0].nullable = true;
    }
    attributes
}

fn order(draw: &mut Draw) -> CellOrder {
    draw.pick(&[CellOrder::RowMajor, CellOrder::RowMajor, CellOrder::ColumnMajor])
}

/// A sparse array of two dimensions.
pub(super) fn schema(draw: &mut Draw) -> Schema {
    let (n_rows, n_columns) = shape(draw);
    let is_hilbert = draw.chance(8);
    let datatype = draw.pick(&DIMENSION_TYPES);
    let dimensions = vec![
        dimension(draw, (DIMENSIONS[0], datatype), n_rows, is_hilbert),
        dimension(draw, (DIMENSIONS[1], datatype), n_columns, is_hilbert),
    ];
    let current_domain = draw.chance(40).then(|| current_domain(draw, &dimensions));
    let attributes = attributes(draw);
    let capacity = match draw.below(6) {
        0 => draw.within(1..7),
        1..=3 => draw.within(7..60),
        4 => draw.within(60..400),
        _ => 10_000,
    };
    Schema {
        array_type: ArrayType::Sparse,
        tile_order: order(draw),
        cell_order: if is_hilbert { CellOrder::Hilbert } else { order(draw) },
        capacity,
        allows_duplicates: draw.chance(50),
        offsets_filters: Vec::new(),
        coords_filters: pipeline(draw, datatype),
        validity_filters: if draw.chance(50) {
            pipeline(draw, Datatype::UInt8)
        } else {
            Vec::new()
        },
        current_domain,
        enumerations: Vec::new(),
        dimensions,
        attributes,
    }
}

/// An attribute other than the values.
pub(super) fn another(draw: &mut Draw, name: &str, datatypes: &[Datatype]) -> Attribute {
    let datatype = draw.pick(datatypes);
    let filters = if datatype == Datatype::StringUtf8 {
        vec![Filter::Zstd(1)]
    } else {
        pipeline(draw, datatype)
    };
    Attribute { nullable: draw.chance(50), filters, ..Attribute::new(name, datatype) }
}

/// A random coordinate between two, both included.
pub(super) fn within(draw: &mut Draw, (low, high): (i128, i128)) -> i128 {
    low + i128::from(draw.within(0..(high - low + 1) as u64))
}
