//! The schemas of the arrays: tiles, capacity, orders and filters as the Census builder chooses
//! them.

use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Filter, Schema};

use super::{ColumnSpec, Extent};
use crate::columns::{DATA, DIM_0, DIM_1, JOINID};

/// Rows and columns of a tile.
const TILE: u64 = 2048;
/// Cells per data tile.
const CAPACITY: u64 = 65_536;

/// The arrangement of a layer's cells on storage: their order and their compression.
///
/// Cells are ordered by space tile, tiles row by row, and by row and column within a tile. A data
/// tile is the next `capacity` cells in that order.
#[derive(Debug, Clone, PartialEq)]
pub struct XLayout {
    /// Rows of a space tile.
    pub tile_rows: u64,
    /// Columns of a space tile. With at least as many as there are genes, the cells of a row are
    /// stored together.
    pub tile_columns: u64,
    /// Cells per data tile.
    pub capacity: u64,
    /// The filters of the cells' rows, `soma_dim_0`.
    pub row_filters: Vec<Filter>,
    /// The filters of the cells' columns, `soma_dim_1`.
    pub column_filters: Vec<Filter>,
    /// The filters of the values, 32-bit floats.
    pub value_filters: Vec<Filter>,
}

impl XLayout {
    /// The Census's layout: space tiles of 2,048 by 2,048, data tiles of 65,536 cells, zstd at a
    /// level, which is 9 in its newer releases and 5 in its older ones.
    pub fn census(zstd_level: i32) -> Self {
        let zstd = Filter::Zstd(zstd_level);
        Self {
            tile_rows: TILE,
            tile_columns: TILE,
            capacity: CAPACITY,
            row_filters: vec![zstd],
            column_filters: vec![Filter::ByteShuffle, zstd],
            value_filters: vec![Filter::ByteShuffle, zstd],
        }
    }
}

/// The most rows or columns of a space tile.
pub(super) const MOST_OF_TILE: u64 = 1 << 32;
/// The most cells of a data tile, a limit of the native reader.
pub(super) const MOST_CAPACITY: u64 = 1 << 26;
/// The most rows that joinids can number, with any tiles.
pub(super) const MOST_ROWS: u64 = i64::MAX as u64 - MOST_OF_TILE;

fn dimension(name: &str, n: u64, tile: u64, extent: Extent, filters: Vec<Filter>) -> Dimension {
    let last = match extent {
        // Leaves room for one more tile, as tiledbsoma does.
        Extent::CurrentDomain => i128::from(i64::MAX) - 1 - i128::from(tile),
        Extent::FixedDomain => i128::from(n.max(1)) - 1,
    };
    let tile = match extent {
        Extent::CurrentDomain => tile,
        // A tile must not be larger than the domain.
        Extent::FixedDomain => tile.min(n.max(1)),
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
    capacity: u64,
    extent: Extent,
) -> Schema {
    let bounds = sizes.iter().map(|n| (0, i128::from((*n).max(1)) - 1)).collect();
    Schema {
        array_type: ArrayType::Sparse,
        dimensions,
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity,
        allows_duplicates: true,
        offsets_filters: vec![
            Filter::DoubleDelta(None),
            Filter::BitWidthReduction,
            Filter::Zstd(9),
        ],
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: (extent == Extent::CurrentDomain).then_some(bounds),
        enumerations: Vec::new(),
    }
}

/// The schema of a layer of X.
pub(super) fn matrix(n_obs: u64, n_var: u64, extent: Extent, layout: &XLayout) -> Schema {
    let value = Attribute {
        filters: layout.value_filters.clone(),
        ..Attribute::new(DATA, Datatype::Float32)
    };
    let (rows, columns) = (layout.row_filters.clone(), layout.column_filters.clone());
    let dimensions = vec![
        dimension(DIM_0, n_obs, layout.tile_rows, extent, rows),
        dimension(DIM_1, n_var, layout.tile_columns, extent, columns),
    ];
    schema(dimensions, &[n_obs, n_var], vec![value], layout.capacity, extent)
}

/// The schema of obs or var.
///
/// # Errors
/// The column that cannot be written, and why.
pub(super) fn frame(columns: &[ColumnSpec], n_rows: u64, extent: Extent) -> Result<Schema, String> {
    let joinid =
        dimension(JOINID, n_rows, TILE, extent, vec![Filter::DoubleDelta(None), Filter::Zstd(19)]);
    let mut schema = schema(vec![joinid], &[n_rows], Vec::new(), CAPACITY, extent);
    for column in columns {
        let failed = |problem: String| format!("column {}: {problem}", column.name);
        let datatype = column.kind.datatype().ok_or_else(|| {
            failed(format!("{:?} is not a kind that can be written", column.kind))
        })?;
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

/// The smallest signed type for `n_values` codes. libtiledb requires room for one more code than
/// there are values.
pub(super) fn code_type(n_values: usize) -> Datatype {
    match n_values {
        0..=126 => Datatype::Int8,
        127..=32_766 => Datatype::Int16,
        _ => Datatype::Int32,
    }
}
