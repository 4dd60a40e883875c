//! Decides whether a matrix is written here, and how.

use super::tile::{self, Form};
use crate::datatype::Datatype;
use crate::schema::{Layout, Schema};
use crate::unsupported::Unsupported;
use crate::write::{VERSIONS, WriteOptions};

/// Returns the facts about an array that a writer needs.
pub(super) fn form(
    schema: &Schema,
    schema_file: &str,
    options: &WriteOptions,
) -> Result<Form, Unsupported> {
    let version = schema.version;
    if !VERSIONS.contains(&version) {
        return Err(Unsupported::FormatVersion { version });
    }
    let layout = Layout::from_schema(schema, version, None)?;
    let [row, column] = layout.dimensions();
    for dimension in [row, column] {
        if dimension.datatype != Datatype::INT64 {
            let (name, datatype) = (dimension.name.clone(), dimension.datatype.name());
            return Err(Unsupported::DimensionType { name, datatype });
        }
    }
    if layout.attribute.1 != Datatype::FLOAT32 {
        let (name, datatype) = (layout.attribute.0.clone(), layout.attribute.1.name());
        return Err(Unsupported::AttributeType { name, datatype });
    }
    let [(first_row, end_row), (first_column, end_column)] = layout.shape;
    // Tiles without an extent hold all rows and columns.
    let extent = |extent: Option<i128>| {
        extent.map_or(u64::MAX, |extent| u64::try_from(extent).unwrap_or(u64::MAX))
    };
    let (tile_rows, tile_columns) = (extent(row.extent), extent(column.extent));
    if !schema.is_row_major() || first_column != 0 || tile_rows == 0 || tile_columns == 0 {
        return Err(Unsupported::NotByRow);
    }
    for (stored, of) in [
        (&layout.rows, &row.name),
        (&layout.columns, &column.name),
        (&layout.values, &layout.attribute.0),
    ] {
        if let Some(name) = stored.pipeline.not_written() {
            return Err(Unsupported::Filter { name: name.to_owned(), of: of.clone() });
        }
    }
    let schema_name = schema_file.rsplit('/').next().unwrap_or(schema_file).to_owned();
    Ok(Form {
        version,
        schema_name,
        capacity: layout.capacity as usize,
        first_row,
        n_rows: end_row - first_row,
        n_columns: end_column,
        tile: (tile_columns < end_column).then_some((tile_rows, tile_columns)),
        chunk_cells: tile::chunk_cells(&layout, options.chunk_cells),
        pipelines: [&layout.rows, &layout.columns, &layout.values]
            .map(|stored| stored.pipeline.clone()),
    })
}
