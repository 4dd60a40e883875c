//! The chunks of an array: where they are stored, how they are decoded, and what is selected.

use std::sync::Arc;

use storage::Storage;
use zarrs::array::Array;

use crate::chunk_files::ChunkFiles;
use crate::decoder::Decoder;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::geometry::Geometry;
use crate::open_array::element_type;
use crate::read::Failure;
use crate::selection::Indices;
use crate::store::Store;

/// The chunks of an array of numbers, and the selected part of each row.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// The path of the array within its storage.
    pub(crate) path: String,
    /// The name under which its decoded chunks are kept: no array of another store has it.
    pub(crate) kept_as: Arc<str>,
    pub(crate) files: ChunkFiles,
    pub(crate) decoder: Decoder,
    /// Elements as stored.
    pub(crate) stored: ElementType,
    /// The stored element of chunks that are not stored.
    pub(crate) fill: Vec<u8>,
    pub(crate) geometry: Geometry,
}

impl Chunks {
    /// The chunks of the array at `path`, whose rows are the indices of dimension `axis`.
    /// `selected` has an entry for each other dimension.
    pub(crate) fn new(
        array: Array<Store>,
        path: &str,
        storage: &dyn Storage,
        (axis, selected): (usize, &[Indices]),
    ) -> Result<Self, Error> {
        let stored = element_type(&array, path)?;
        let fill = array.fill_value().as_ne_bytes().to_vec();
        let (data_type, fill_value) = (array.data_type().clone(), array.fill_value().clone());
        let (files, (shape, codecs)) = ChunkFiles::new(array, path).map_err(|source| {
            Error::Open { array: path.to_owned(), place: storage.place(), source }
        })?;
        let lens: Vec<u64> = shape.iter().map(|len| len.get()).collect();
        let too_large = || Error::TooLarge { array: path.to_owned(), what: "a row or a chunk" };
        let most_bytes = ElementType::F64.n_bytes();
        let geometry = Geometry::new(&lens, (axis, selected), most_bytes).ok_or_else(too_large)?;
        let decoder = Decoder::new(codecs, shape, data_type, fill_value);
        let (path, kept_as) = (path.to_owned(), path.into());
        Ok(Self { path, kept_as, files, decoder, stored, fill, geometry })
    }

    /// Bytes of a decoded chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_row_bytes() * self.geometry.chunk_rows as usize
    }

    /// Bytes of a decoded chunk that one row has.
    pub(crate) fn chunk_row_bytes(&self) -> usize {
        self.geometry.chunk_row_len * self.stored.n_bytes()
    }

    /// The failure of a chunk.
    pub(crate) fn failure(&self, indices: &[u64], source: &Cause) -> Failure {
        let mut text = format!("chunk {indices:?}: {source}");
        let mut cause = source.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        let source = match pipeline::system_failure(&**source) {
            Some(kind) => std::io::Error::new(kind, text).into(),
            None => text.into(),
        };
        Failure { path: self.path.clone(), source }
    }
}
