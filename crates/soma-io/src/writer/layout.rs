//! The schemas of the arrays: tiles, capacity, orders and filters as the Census builder chooses them.

use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Filter, Schema};

use super::{ColumnSpec, Extent};
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
///
/// # Errors
/// The column that cannot be, and why.
pub(super) fn frame(columns: &[ColumnSpec], n_rows: u64, extent: Extent) -> Result<Schema, String> {
    let joinid =
        dimension(JOINID, n_rows, extent, vec![Filter::DoubleDelta(None), Filter::Zstd(19)]);
    let mut schema = schema(vec![joinid], &[n_rows], Vec::new(), extent);
    for column in columns {
        let failed = |problem: String| format!("column {}: {problem}", column.name);
        let datatype = column
            .kind
            .datatype()
            .ok_or_else(|| failed(format!("{:?} is no kind that can be written", column.kind)))?;
        let enumeration = column.kind.enumeration(&column.name).map_err(failed)?;
        let wide_numbers = enumeration.is_none() && datatype.size().is_some_and(|size| size > 1);
        let filters = if wide_numbers {
            vec![Filter::ByteShuffle, Filter::Zstd(9)]
        } else {
            vec![Filter::Zstd(19)]
        };
        schema.attributes.push(Attribute {
            nullable: column.nullable,
            filters,
            enumeration: enumeration.as_ref().map(|enumeration| enumeration.name.clone()),
            ..Attribute::new(&column.name, datatype)
        });
        schema.enumerations.extend(enumeration);
    }
    Ok(schema)
}

/// The smallest signed type that numbers `n_values`. libtiledb demands that the type hold one number more than there are values.
pub(super) fn code_type(n_values: usize) -> Datatype {
    match n_values {
        0..=126 => Datatype::Int8,
        127..=32_766 => Datatype::Int16,
        _ => Datatype::Int32,
    }
}
