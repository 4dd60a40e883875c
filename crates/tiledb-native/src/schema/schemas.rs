//! The schemas of one array.

use std::sync::Arc;

use storage::Files;

use super::Schema;
use crate::error::{Error, Fault};

const OLD_SCHEMA: &str = "__array_schema.tdb";

/// The array's schemas, read when first needed.
pub(crate) struct Schemas<'a> {
    files: &'a Files,
    paths: &'a [String],
    loaded: Vec<Option<Arc<Schema>>>,
}

impl<'a> Schemas<'a> {
    /// The schemas in the files `paths`.
    pub(crate) fn new(files: &'a Files, paths: &'a [String]) -> Self {
        Self { files, paths, loaded: vec![None; paths.len()] }
    }

    /// The schema at `idx` of the paths.
    pub(crate) fn get(&mut self, idx: usize) -> Result<Arc<Schema>, Error> {
        if let Some(schema) = &self.loaded[idx] {
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(Schema::load(self.files, &self.paths[idx])?);
        self.loaded[idx] = Some(Arc::clone(&schema));
        Ok(schema)
    }

    /// The schema from before schemas had names, if there is one.
    pub(crate) fn unnamed(&mut self) -> Result<Option<Arc<Schema>>, Error> {
        let is_unnamed = self.paths.first().is_some_and(|path| !path.contains('/'));
        if is_unnamed { self.get(0).map(Some) } else { Ok(None) }
    }

    /// The index of the schema with this name; `None` means the one from before schemas had names.
    /// `fragment`, for errors, is the one that names it.
    pub(crate) fn find(&self, name: Option<&str>, fragment: &str) -> Result<usize, Error> {
        let wanted = name.unwrap_or(OLD_SCHEMA);
        let found = self.paths.iter().position(|path| path.rsplit('/').next() == Some(wanted));
        found.ok_or_else(|| {
            Fault::new(format!("it names schema `{wanted}`, which the array does not have"))
                .in_file(self.files.name(fragment), 0)
        })
    }
}
