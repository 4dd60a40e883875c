//! The files of an image.

use std::sync::Arc;

use storage::{Piece, Storage};

use crate::data_set::{DataSet, Form, is_file_name};
use crate::error::Error;
use crate::files::FileFormat;
use crate::open_key::format_of;
use crate::spec::Origin;

/// A file of an image.
#[derive(Debug, Clone)]
pub(crate) struct ImageFile {
    /// Its path within the storage.
    pub(crate) path: String,
    pub(crate) format: FileFormat,
    sample: usize,
}

impl ImageFile {
    /// The file from which `origin` is read for a sample.
    pub(crate) fn of_key(
        data: &DataSet,
        form: Form,
        origin: &Origin,
        sample: usize,
    ) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Spec { reason };
        let image = data
            .images()
            .get(sample)
            .ok_or_else(|| wrong(format!("there is no image {sample}")))?;
        let no_file = || wrong(format!("{form} has no file for each image"));
        let format = format_of(form, origin).ok_or_else(no_file)?;
        let path = match origin {
            Origin::Cube => {
                format!("{}/{}", form.folder(), form.file_name(&image.name).ok_or_else(no_file)?)
            }
            Origin::Array { folder, .. } if folder.split('/').all(is_file_name) => {
                format!("{folder}/{}.blosc", image.name)
            }
            Origin::Array { folder, .. } => {
                return Err(wrong(format!("{folder:?} is not a folder of the data set")));
            }
        };
        Ok(Self { path, format, sample })
    }

    /// The error that this file cannot be read.
    pub(crate) fn failed(
        &self,
        data: &DataSet,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::File {
            file: self.path.clone(),
            image: data.images().get(self.sample).map_or_else(String::new, |of| of.name.clone()),
            place: data.storage_of(self.sample).place(),
            source: source.into(),
        }
    }

    /// Reads the whole file into `into`, whose memory is used again.
    pub(crate) fn read(&self, data: &DataSet, into: &mut Vec<u8>) -> Result<(), Error> {
        read_bytes(data.storage_of(self.sample), &self.path, into)
            .map_err(|error| self.failed(data, error))
    }
}

/// Reads a whole file of `data` into `into`.
fn read_bytes(storage: &Arc<dyn Storage>, path: &str, into: &mut Vec<u8>) -> std::io::Result<()> {
    if storage.request_counts().is_some() {
        // Far away, the size would be another request.
        let read = storage.read_files(&[path]).pop();
        *into = read.unwrap_or_else(|| Err(std::io::ErrorKind::NotFound.into()))?;
        return Ok(());
    }
    let size = storage.size(path)?;
    let len = usize::try_from(size).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    if into.capacity() < len {
        into.clear();
        into.try_reserve_exact(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    }
    into.resize(len, 0);
    storage.read(&[Piece { file: path, range: 0..size }], into)
}
