//! The schemas of the arrays: tiles, capacity, orders and filters as the Census builder chooses them.

use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Enumeration, Filter, Schema};

use super::{ColumnKind, ColumnSpec, Extent};
use crate::dataframe::JOINID;
use crate::sparse_array::{DATA, DIM_0, DIM_1};

/// Rows and columns of a tile.
pub(super) const TILE: u64 = 2048;
/// Cells of a data tile.
const CAPACITY: u64 = 65_536;
/// The last coordinate of a domain that leaves room for one more tile, as tiledbsoma has it.
const LAST_COORDINATE: i128 = i64::MAX as i128 - 1 - TILE as i128;

/// As many cells as joinids can number.
pub(super) const MOST_ROWS: u64 = LAST_COORDINATE as u64 + 1;

fn dimension(name: &str, n: u64, extent: Extent, filters: Vec<Filter>) -> Dimension {
    let last = match extent {
        Extent::CurrentDomain => LAST_COORDINATE,
        Extent::FixedDomain => i128::from(n.max(1)) - 1,
    };
    let tile = match extent {
        Extent::CurrentDomain => TILE,
        // A tile may not be larger than the domain.
        Extent::FixedDomain => TILE.min(n.max(1)),
    };
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::Int64,
        domain: Some((0, last)),
        tile_extent: Some(tile.into()),
        filters,
    }
}

fn schema(
    dimensions: Vec<Dimension>,
    sizes: &[u64],
    attributes: Vec<Attribute>,
    extent: Extent,
) -> Schema {
    let bounds = sizes.iter().map(|n| (0, i128::from((*n).max(1)) - 1)).collect();
    Schema {
        array_type: ArrayType::Sparse,
        dimensions,
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: CAPACITY,
        allows_duplicates: true,
        offsets_filters: vec![
            Filter::DoubleDelta(None),
            Filter::BitWidthReduction,
            Filter::Zstd(9),
        ],
        current_domain: (extent == Extent::CurrentDomain).then_some(bounds),
        enumerations: Vec::new(),
    }
}

/// A layer of X.
pub(super) fn matrix(n_obs: u64, n_var: u64, extent: Extent, zstd_level: i32) -> Schema {
    let zstd = Filter::Zstd(zstd_level);
    let value = Attribute {
        filters: vec![Filter::ByteShuffle, zstd],
        ..Attribute::new(DATA, Datatype::Float32)
    };
    let dimensions = vec![
        dimension(DIM_0, n_obs, extent, vec![zstd]),
        dimension(DIM_1, n_var, extent, vec![Filter::ByteShuffle, zstd]),
    ];
    schema(dimensions, &[n_obs, n_var], vec![value], extent)
}

/// obs or var.
pub(super) fn frame(columns: &[ColumnSpec], n_rows: u64, extent: Extent) -> Schema {
    let joinid =
        dimension(JOINID, n_rows, extent, vec![Filter::DoubleDelta(None), Filter::Zstd(19)]);
    let mut schema = schema(vec![joinid], &[n_rows], Vec::new(), extent);
    for column in columns {
        let datatype = match &column.kind {
            ColumnKind::Text => Datatype::StringUtf8,
            ColumnKind::Categorical { values, .. } => code_type(values.len()),
            ColumnKind::Bool => Datatype::Bool,
            ColumnKind::Int64 => Datatype::Int64,
            ColumnKind::Float64 => Datatype::Float64,
        };
        let filters = match &column.kind {
            ColumnKind::Text | ColumnKind::Bool | ColumnKind::Categorical { .. } => {
                vec![Filter::Zstd(19)]
            }
            ColumnKind::Int64 | ColumnKind::Float64 => vec![Filter::ByteShuffle, Filter::Zstd(9)],
        };
        let mut attribute = Attribute {
            nullable: column.nullable,
            filters,
            ..Attribute::new(&column.name, datatype)
        };
        if let ColumnKind::Categorical { values, ordered } = &column.kind {
            attribute.enumeration = Some(column.name.clone());
            let enumeration = Enumeration::of_strings(&column.name, values);
            schema.enumerations.push(Enumeration { ordered: *ordered, ..enumeration });
        }
        schema.attributes.push(attribute);
    }
    schema
}

/// The smallest signed type that numbers `n_values`. libtiledb demands that the type hold one number more than there are values.
pub(super) fn code_type(n_values: usize) -> Datatype {
    match n_values {
        0..=126 => Datatype::Int8,
        127..=32_766 => Datatype::Int16,
        _ => Datatype::Int32,
    }
}
