//! How a dense array and its fragments are stored.

use std::ops::Range;
use std::sync::OnceLock;

use crate::datatype::{Datatype, Number};
use crate::directory::FragmentFolder;
use crate::error::Fault;
use crate::filter::Pipeline;
use crate::fragment::{FooterFields, file_stem, position_range};
use crate::schema::{self, Dimension, MAX_CAPACITY, Schema};
use crate::unsupported::Unsupported;

/// The number that stands for row-major among the orders of tiles and cells; column-major is 1.
const ROW_MAJOR: u8 = 0;
const COLUMN_MAJOR: u8 = 1;

/// One of the two dimensions.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// The first coordinate of the domain, where the first tile begins.
    pub(super) first: u64,
    /// Coordinates of a tile.
    pub(super) extent: u64,
    /// The end of the current domain.
    pub(super) end: u64,
}

impl Axis {
    /// The tile that has a coordinate.
    pub(super) fn tile(&self, coordinate: u64) -> u64 {
        (coordinate - self.first) / self.extent
    }

    /// The first coordinate of a tile.
    pub(super) fn tile_start(&self, tile: u64) -> u64 {
        tile.saturating_mul(self.extent).saturating_add(self.first)
    }
}

/// How a dense array is stored.
#[derive(Debug)]
pub(super) struct DenseLayout {
    /// Rows, then columns.
    pub(super) axes: [Axis; 2],
    /// Whether tiles, and cells within a tile, are stored row by row; otherwise by columns.
    pub(super) tiles_by_row: bool,
    pub(super) cells_by_row: bool,
    pub(super) attribute: (String, Datatype),
    pub(super) number: Number,
    /// The bytes of a value in places that were not written.
    pub(super) fill: Vec<u8>,
}

impl DenseLayout {
    pub(super) fn from_schema(schema: &Schema) -> Result<Self, Unsupported> {
        if !schema.is_dense {
            return Err(Unsupported::Sparse);
        }
        let [row, column] = schema.dimensions.as_slice() else {
            let n_dimensions = schema.dimensions.len() as u32;
            return Err(Unsupported::DimensionCount { n_dimensions });
        };
        let [attribute] = schema.attributes.as_slice() else {
            let n_attributes = schema.attributes.len() as u32;
            return Err(Unsupported::AttributeCount { n_attributes });
        };
        let name = || attribute.name.clone();
        let datatype = || attribute.datatype.name();
        if attribute.values_per_cell != 1 {
            return Err(Unsupported::ValuesPerCell { name: name() });
        }
        if attribute.nullable {
            return Err(Unsupported::Nullable { name: name() });
        }
        let number = attribute.datatype.value_number();
        let number = number
            .ok_or_else(|| Unsupported::AttributeType { name: name(), datatype: datatype() })?;
        // Formats before 6 do not store it.
        let fill = attribute.fill.clone().filter(|fill| fill.len() == number.size());
        let fill = fill.ok_or(Unsupported::FormatVersion { version: schema.version })?;
        let (tiles, cells) = schema.orders;
        let layout = Self {
            axes: [axis(schema, 0, row)?, axis(schema, 1, column)?],
            tiles_by_row: is_by_row(tiles)?,
            cells_by_row: is_by_row(cells)?,
            attribute: (name(), attribute.datatype),
            number,
            fill,
        };
        let capacity = layout.tile_cells();
        if capacity > MAX_CAPACITY {
            return Err(Unsupported::TileTooLarge { capacity });
        }
        Ok(layout)
    }

    /// Cells of a space tile.
    pub(super) fn tile_cells(&self) -> u64 {
        self.axes[0].extent.saturating_mul(self.axes[1].extent)
    }

    /// The filters, the index and the name of the file of the attribute in fragments of `version`
    /// with `schema`, which `fragment` has.
    pub(super) fn values_of(
        &self,
        schema: &Schema,
        version: u32,
        fragment: &str,
    ) -> Result<StoredValues, Unsupported> {
        let (name, datatype) = &self.attribute;
        let evolved =
            |what: String| Unsupported::SchemaEvolution { fragment: fragment.to_owned(), what };
        let found = schema.attributes.iter().position(|attribute| attribute.name == *name);
        let idx = found.ok_or_else(|| evolved(format!("it has no attribute `{name}`")))?;
        let attribute = &schema.attributes[idx];
        let form = |values, nullable, of| (values, nullable, of);
        if form(attribute.values_per_cell, attribute.nullable, attribute.datatype)
            != form(1, false, *datatype)
        {
            let type_name = attribute.datatype.name();
            return Err(evolved(format!("attribute `{name}` is of type {type_name}")));
        }
        let pipeline = schema::bind(&attribute.filters, *datatype, version, name)?;
        Ok(StoredValues { pipeline, idx, stem: file_stem(version, &format!("a{idx}"), name) })
    }
}

fn is_by_row(order: u8) -> Result<bool, Unsupported> {
    match order {
        ROW_MAJOR => Ok(true),
        COLUMN_MAJOR => Ok(false),
        _ => Err(Unsupported::NotByRow),
    }
}

fn axis(schema: &Schema, idx: usize, dimension: &Dimension) -> Result<Axis, Unsupported> {
    let name = || dimension.name.clone();
    let of_type =
        || Unsupported::DimensionType { name: name(), datatype: dimension.datatype.name() };
    let is_integer =
        dimension.datatype.coordinate_number().is_some() && dimension.values_per_cell == 1;
    let (low, high) = dimension.domain.filter(|_| is_integer).ok_or_else(of_type)?;
    let extent = dimension.extent.and_then(|extent| u64::try_from(extent).ok());
    let extent = extent.filter(|extent| *extent > 0).ok_or_else(of_type)?;
    let current = schema.current_domain.as_ref().and_then(|spans| spans.get(idx).copied());
    let (from, to) = current.flatten().unwrap_or((low, high));
    let position = |coordinate: i128| {
        u64::try_from(coordinate).map_err(|_| Unsupported::NegativeDomain { name: name() })
    };
    let (first, from) = (position(low)?, position(from)?);
    // Rows before the first are no rows of the array: none have joinids there.
    if from != 0 || first != 0 {
        return Err(Unsupported::LateDomain { name: name(), first: from.max(first) });
    }
    let end = u64::try_from(to.saturating_add(1)).unwrap_or(u64::MAX);
    Ok(Axis { first, extent, end })
}

/// How the values of a fragment are stored.
#[derive(Debug)]
pub(super) struct StoredValues {
    pub(super) pipeline: Pipeline,
    /// The index of the attribute in the fragment's schema.
    idx: usize,
    stem: String,
}

/// A fragment that counts at the opening time.
#[derive(Debug)]
pub(super) struct DenseFragment {
    pub(super) folder: FragmentFolder,
    pub(super) values: StoredValues,
    /// The path of the file of values.
    pub(super) file: String,
    /// The coordinates that it has: rows, then columns.
    pub(super) bounds: [Range<u64>; 2],
    /// Its tiles, along each dimension.
    pub(super) tiles: [Range<u64>; 2],
    /// Number of its tiles.
    pub(super) n_tiles: u64,
    /// The size of its file of values, and the place of the tiles' offsets in the metadata.
    pub(super) file_bytes: u64,
    pub(super) offsets_at: u64,
    pub(super) metadata_bytes: u64,
    /// The place of each tile in the file, and its end; read when first needed.
    pub(super) offsets: OnceLock<Vec<u64>>,
}

impl DenseFragment {
    /// The fragment in `folder`; `None` if it is empty.
    pub(super) fn new(
        layout: &DenseLayout,
        folder: FragmentFolder,
        footer: &FooterFields,
        values: StoredValues,
    ) -> Result<Option<Self>, Fault> {
        if !footer.is_dense {
            return Err(Fault::new("a sparse fragment in a dense array"));
        }
        let Some(found) = &footer.bounds else { return Ok(None) };
        let [rows, columns] = found.as_slice() else {
            return Err(Fault::new("not two dimensions"));
        };
        let bounds = [position_range(*rows, "rows")?, position_range(*columns, "columns")?];
        let along = |idx: usize| {
            let (axis, (first, last)) = (&layout.axes[idx], bounds[idx]);
            if first < axis.first {
                return Err(Fault::new("cells before the array's first"));
            }
            let end = axis.tile(last).checked_add(1);
            Ok(axis.tile(first)..end.ok_or_else(|| Fault::new("impossibly many tiles"))?)
        };
        let tiles = [along(0)?, along(1)?];
        let [n_down, n_across] = [0, 1].map(|idx| tiles[idx].end - tiles[idx].start);
        let n_tiles = n_down.checked_mul(n_across);
        let n_tiles = n_tiles.ok_or_else(|| Fault::new("impossibly many tiles"))?;
        let entry = |list: &[u64]| {
            list.get(values.idx).copied().ok_or_else(|| Fault::new("no places of its values"))
        };
        Ok(Some(Self {
            file: format!("{}/{}.tdb", folder.path, values.stem),
            folder,
            bounds: bounds.map(|(first, last)| first..last.saturating_add(1)),
            tiles,
            n_tiles,
            file_bytes: entry(&footer.file_bytes)?,
            offsets_at: entry(&footer.tile_offsets_at)?,
            metadata_bytes: footer.metadata_bytes,
            offsets: OnceLock::new(),
            values,
        }))
    }

    /// The position of a tile in the fragment; `None` if it does not have it.
    pub(super) fn tile(&self, layout: &DenseLayout, at: [u64; 2]) -> Option<u64> {
        let [down, across] = &self.tiles;
        if !down.contains(&at[0]) || !across.contains(&at[1]) {
            return None;
        }
        let (row, column) = (at[0] - down.start, at[1] - across.start);
        Some(if layout.tiles_by_row {
            row * (across.end - across.start) + column
        } else {
            column * (down.end - down.start) + row
        })
    }
}
