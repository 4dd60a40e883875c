//! Schemas as crate `tiledb` describes them.

use tiledb as described;
use tiledb::{ArrayType, CellOrder};

use super::{Attribute, Dimension, Schema, VARIABLE};
use crate::error::Fault;
use crate::filter::Filter;

impl Schema {
    /// The schema as libtiledb gives it, without enumerations' values.
    pub(crate) fn described(&self) -> Result<described::Schema, Fault> {
        let order = |number: u8| {
            CellOrder::from_number(number.into())
                .ok_or_else(|| Fault::new(format!("an order of cells with the number {number}")))
        };
        let (tile_order, cell_order) = self.orders;
        Ok(described::Schema {
            array_type: if self.is_dense { ArrayType::Dense } else { ArrayType::Sparse },
            dimensions: self.dimensions.iter().map(Dimension::described).collect(),
            attributes: self.attributes.iter().map(Attribute::described).collect(),
            tile_order: order(tile_order)?,
            cell_order: order(cell_order)?,
            capacity: self.capacity,
            allows_duplicates: self.allows_duplicates,
            offsets_filters: filters(&self.offsets_filters),
            coords_filters: filters(&self.coords_filters),
            validity_filters: filters(&self.validity_filters),
            current_domain: self
                .current_domain
                .as_ref()
                .and_then(|bounds| bounds.iter().copied().collect()),
            enumerations: Vec::new(),
        })
    }
}

impl Dimension {
    fn described(&self) -> described::Dimension {
        described::Dimension {
            name: self.name.clone(),
            datatype: self.datatype.described(),
            domain: self.domain,
            tile_extent: self.extent,
            filters: filters(&self.filters),
        }
    }
}

impl Attribute {
    fn described(&self) -> described::Attribute {
        let var_sized = self.values_per_cell == VARIABLE;
        described::Attribute {
            name: self.name.clone(),
            datatype: self.datatype.described(),
            nullable: self.nullable,
            var_sized,
            values_per_cell: if var_sized { 1 } else { self.values_per_cell },
            filters: filters(&self.filters),
            enumeration: self.enumeration.clone(),
        }
    }
}

fn filters(stored: &[Filter]) -> Vec<described::Filter> {
    stored.iter().map(Filter::described).collect()
}
