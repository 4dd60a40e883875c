//! The buffer of one column of a read.

use crate::libtiledb::datatype::Value;
use crate::{Datatype, Error, Schema};

/// What the schema specifies for a column, whether dimension or attribute.
pub(super) struct ColumnKind {
    pub(super) datatype: Datatype,
    pub(super) var_sized: bool,
    pub(super) nullable: bool,
    pub(super) value_bytes: usize,
}

/// Finds a dimension or an attribute by name.
pub(super) fn kind(schema: &Schema, uri: &str, name: &str) -> Result<ColumnKind, Error> {
    let failed =
        |message: String| Error::Column { column: name.to_owned(), uri: uri.to_owned(), message };
    let size = |datatype: Datatype| {
        datatype
            .size()
            .ok_or_else(|| failed(format!("datatype {datatype:?} is not known to this version")))
    };
    if let Some(dimension) = schema.dimensions.iter().find(|dimension| dimension.name == name) {
        let var_sized = dimension.datatype.is_string();
        let value_bytes = size(dimension.datatype)?;
        return Ok(ColumnKind {
            datatype: dimension.datatype,
            var_sized,
            nullable: false,
            value_bytes,
        });
    }
    let attribute =
        schema.attributes.iter().find(|attribute| attribute.name == name).ok_or_else(|| {
            let names = schema
                .dimensions
                .iter()
                .map(|d| &d.name)
                .chain(schema.attributes.iter().map(|a| &a.name));
            failed(format!(
                "there is no such column; there are {}",
                names.cloned().collect::<Vec<_>>().join(", ")
            ))
        })?;
    let per_cell = if attribute.var_sized { 1 } else { attribute.values_per_cell as usize };
    Ok(ColumnKind {
        datatype: attribute.datatype,
        var_sized: attribute.var_sized,
        nullable: attribute.nullable,
        value_bytes: size(attribute.datatype)? * per_cell,
    })
}

/// A column's memory, and how much of it the last submit filled.
pub(super) struct Buffer {
    pub(super) name: std::ffi::CString,
    pub(super) kind: ColumnKind,
    /// Eight-byte words, so that values of every type are aligned.
    data: Vec<u64>,
    offsets: Vec<u64>,
    validity: Vec<u8>,
    pub(super) data_bytes: u64,
    pub(super) offsets_bytes: u64,
    pub(super) validity_bytes: u64,
}

impl Buffer {
    /// Makes a buffer of `n_bytes` for the values, with enough offsets and validity bytes for the
    /// cells that fit.
    pub(super) fn new(name: std::ffi::CString, kind: ColumnKind, n_bytes: usize) -> Self {
        let mut buffer = Self {
            name,
            kind,
            data: Vec::new(),
            offsets: Vec::new(),
            validity: Vec::new(),
            data_bytes: 0,
            offsets_bytes: 0,
            validity_bytes: 0,
        };
        buffer.grow(n_bytes);
        buffer
    }

    pub(super) fn grow(&mut self, n_bytes: usize) {
        // Room for at least one cell.
        let words = n_bytes.max(self.kind.value_bytes).div_ceil(8).max(1);
        // Allocates zeroed memory instead of growing the vector: pages that a read does not fill
        // are then never touched. The old contents are not needed, since buffers grow only if no
        // cell fitted.
        self.data = vec![0; words];
        if self.kind.var_sized {
            self.offsets = vec![0; words];
        }
        if self.kind.nullable {
            // As many as there can be offsets, or values of fixed size.
            let n_cells =
                if self.kind.var_sized { words } else { words * 8 / self.kind.value_bytes };
            self.validity = vec![0; n_cells.max(1)];
        }
        self.reset();
    }

    /// Resets libtiledb's counters to the full size, before each submit.
    pub(super) fn reset(&mut self) {
        self.data_bytes =
            (self.data.len() * 8 / self.kind.value_bytes * self.kind.value_bytes) as u64;
        self.offsets_bytes = (self.offsets.len() * 8) as u64;
        self.validity_bytes = self.validity.len() as u64;
    }

    pub(super) fn data_pointer(&mut self) -> *mut u64 {
        self.data.as_mut_ptr()
    }

    pub(super) fn offsets_pointer(&mut self) -> *mut u64 {
        self.offsets.as_mut_ptr()
    }

    pub(super) fn validity_pointer(&mut self) -> *mut u8 {
        self.validity.as_mut_ptr()
    }

    pub(super) fn n_cells(&self) -> usize {
        if self.kind.var_sized {
            self.offsets_bytes as usize / 8
        } else {
            self.data_bytes as usize / self.kind.value_bytes
        }
    }

    pub(super) fn column<'a>(&'a self, uri: &'a str) -> Column<'a> {
        Column { buffer: self, uri }
    }
}

/// A column of the cells that a read returned.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    buffer: &'a Buffer,
    uri: &'a str,
}

impl std::fmt::Debug for Column<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Column")
            .field("name", &self.buffer.name)
            .field("datatype", &self.buffer.kind.datatype)
            .field("n_cells", &self.buffer.n_cells())
            .finish_non_exhaustive()
    }
}

impl<'a> Column<'a> {
    /// The type of the values.
    pub fn datatype(&self) -> Datatype {
        self.buffer.kind.datatype
    }

    /// The values in order; for a var-sized column the bytes of all its texts.
    pub fn values<T: Value>(&self) -> Result<&'a [T], Error> {
        if !T::stands_for(self.datatype()) {
            return Err(Error::Column {
                column: self.buffer.name.to_string_lossy().into_owned(),
                uri: self.uri.to_owned(),
                message: format!(
                    "values of type {:?} were read as {}",
                    self.datatype(),
                    std::any::type_name::<T>()
                ),
            });
        }
        let bytes =
            &bytemuck::cast_slice::<u64, u8>(&self.buffer.data)[..self.buffer.data_bytes as usize];
        Ok(bytemuck::cast_slice(bytes))
    }

    /// The bytes of the values, whatever their type.
    pub fn bytes(&self) -> &'a [u8] {
        &bytemuck::cast_slice::<u64, u8>(&self.buffer.data)[..self.buffer.data_bytes as usize]
    }

    /// Where each cell of a var-sized column begins in the bytes; it ends where the next one
    /// begins, the last at the end of the bytes.
    pub fn offsets(&self) -> Option<&'a [u64]> {
        self.buffer
            .kind
            .var_sized
            .then(|| &self.buffer.offsets[..self.buffer.offsets_bytes as usize / 8])
    }

    /// For each cell of a nullable column, 1 if it has a value.
    pub fn validity(&self) -> Option<&'a [u8]> {
        self.buffer
            .kind
            .nullable
            .then(|| &self.buffer.validity[..self.buffer.validity_bytes as usize])
    }
}
