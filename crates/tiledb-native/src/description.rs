//! Descriptions of arrays: all that is known without reading cells.

use std::sync::Arc;

use storage::{Files, Storage};
use tiledb::{Enumeration, MetadataValue};

use crate::directory::{self, CellTimes, Directory};
use crate::error::{Error, Fault};
use crate::fragment::RawFooter;
use crate::schema::{Schema, Schemas, Span};
use crate::unsupported::Unsupported;
use crate::{enumeration, metadata};

/// Schema, metadata and extents of an array of any kind, dense or sparse, of any dimensions and
/// attributes, as of the opening time.
///
/// Opening reads the schema; everything else is read when asked for, and not kept.
#[derive(Debug, Clone)]
pub struct ArrayDescription {
    files: Files,
    timestamp: u64,
    stored: Arc<Schema>,
    schema: tiledb::Schema,
}

impl ArrayDescription {
    /// Reads the schema of the array at the root of `storage` as of `timestamp`, in milliseconds
    /// since 1970; `None` for the latest state.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] if there is none; [`Error::Unsupported`] for formats before 5 or after
    /// 23, and encryption; [`Error::Storage`], [`Error::Damaged`].
    pub fn open(storage: Arc<dyn Storage>, timestamp: Option<u64>) -> Result<Self, Error> {
        let files = Files::new(storage);
        let timestamp = timestamp.unwrap_or(u64::MAX);
        let (paths, latest) = directory::schemas(&files, timestamp)?;
        let stored = Arc::new(Schema::load(&files, &paths[latest])?);
        Self::read(files, timestamp, stored, &paths[latest])
    }

    /// The description of an array whose schema `stored` was read from `schema_file`.
    pub(crate) fn read(
        files: Files,
        timestamp: u64,
        stored: Arc<Schema>,
        schema_file: &str,
    ) -> Result<Self, Error> {
        let schema =
            stored.described().map_err(|fault| fault.in_unfiltered(files.name(schema_file), 0))?;
        Ok(Self { files, timestamp, stored, schema })
    }

    /// The schema. `enumerations` is empty: see [`ArrayDescription::enumeration`].
    pub fn schema(&self) -> &tiledb::Schema {
        &self.schema
    }

    /// Reads all metadata, sorted by key.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Damaged`]; [`Error::Unsupported`] if it is encrypted.
    pub fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error> {
        metadata::load(&self.files, self.timestamp)
    }

    /// Reads an enumeration. The schema's attributes name theirs.
    ///
    /// # Errors
    /// [`Error::NoEnumeration`] if the schema has none of this name; [`Error::Storage`],
    /// [`Error::Damaged`]; [`Error::Unsupported`] for an unknown version of the format.
    pub fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        let file = self.stored.enumerations.iter().find(|(candidate, _)| candidate == name);
        let (_, file) = file.ok_or_else(|| Error::NoEnumeration {
            place: self.files.place(),
            name: name.to_owned(),
        })?;
        enumeration::load(&self.files, file)
    }

    /// Reads the least and the greatest written coordinate of each dimension, both included; `None`
    /// if nothing was written. Coordinates outside the current domain count.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a dimension has no integers, or for fragments of unknown formats;
    /// [`Error::Storage`], [`Error::Damaged`].
    pub fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        let unsupported = |reason| Error::Unsupported { place: self.files.place(), reason };
        let without = self.stored.dimensions.iter().find(|dimension| dimension.domain.is_none());
        if let Some(dimension) = without {
            let (name, datatype) = (dimension.name.clone(), dimension.datatype.name());
            return Err(unsupported(Unsupported::DimensionType { name, datatype }));
        }
        let cell_times = if self.stored.is_dense { CellTimes::None } else { CellTimes::MayDecide };
        let directory = Directory::load_for(&self.files, self.timestamp, cell_times)?;
        if let Some(reason @ Unsupported::FormatVersion { .. }) = directory.obstacle {
            return Err(unsupported(reason));
        }
        let mut schemas = Schemas::new(&self.files, &directory.schemas);
        let oldest = schemas.unnamed()?;
        let mut union: Option<Vec<Span>> = None;
        let footers = RawFooter::load_all(&self.files, &directory.fragments, oldest.as_deref())?;
        for (folder, raw) in directory.fragments.iter().zip(footers) {
            let schema = schemas.get(schemas.find(raw.schema_name.as_deref(), &folder.path)?)?;
            let footer = raw.parse(&self.files, folder, &schema)?;
            let Some(bounds) = footer.bounds else { continue };
            let bounds: Option<Vec<Span>> = bounds.into_iter().collect();
            let bounds = bounds.filter(|bounds| bounds.len() == self.stored.dimensions.len());
            let bounds = bounds.ok_or_else(|| {
                Fault::new("its dimensions are not those of the array")
                    .in_file(self.files.name(&folder.path), 0)
            })?;
            match &mut union {
                None => union = Some(bounds),
                Some(union) => union.iter_mut().zip(bounds).for_each(|(all, one)| {
                    *all = (all.0.min(one.0), all.1.max(one.1));
                }),
            }
        }
        Ok(union)
    }
}
