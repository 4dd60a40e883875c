//! Embeddings as safetensors: <https://github.com/huggingface/safetensors>.
//!
//! A file has six tensors: `documents` and `words`, float32 of vectors x dimension; their names as
//! UTF-8, one after another, in `document_names` and `word_names`, uint8; and the exclusive end of
//! each name therein in `document_name_ends` and `word_name_ends`, int64. Names are tensors because
//! the format's metadata should stay small.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::whole_file::write_whole;
use super::{Embeddings, NamedVectors};
use crate::error::Error;

impl Embeddings {
    /// Writes a safetensors file. Names may be any text.
    ///
    /// # Errors
    /// - [`Error::Write`]: the file cannot be written.
    /// - [`Error::Safetensors`]: the vectors are too large for the format.
    pub fn write_safetensors(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let stored = [Stored::new(&self.documents), Stored::new(&self.words)];
        let mut tensors = Vec::new();
        for (stored, name) in stored.iter().zip([DOCUMENTS, WORDS]) {
            tensors
                .extend(stored.views(name).map_err(|source| unusable(path, source.to_string()))?);
        }
        let bytes =
            serialize(tensors, None).map_err(|source| unusable(path, source.to_string()))?;
        write_whole(path, |writer| writer.write_all(&bytes).map_err(Error::write(path)))
    }

    /// Reads a safetensors file that [`write_safetensors`](Self::write_safetensors) wrote.
    ///
    /// # Errors
    /// - [`Error::Read`]: the file cannot be read.
    /// - [`Error::Safetensors`]: a tensor is missing, or not of the expected type and shape.
    /// - [`Error::NotFinite`]: a number is infinite or not a number.
    pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(Error::read(path))?;
        let tensors = SafeTensors::deserialize(&bytes)
            .map_err(|source| unusable(path, source.to_string()))?;
        let read = |names| read_vectors(&tensors, names, path);
        Ok(Self { documents: read(DOCUMENTS)?, words: read(WORDS)? })
    }
}

/// Names of the tensors of one set of vectors: their numbers, names, and ends of names.
type TensorNames = [&'static str; 3];

const DOCUMENTS: TensorNames = ["documents", "document_names", "document_name_ends"];
const WORDS: TensorNames = ["words", "word_names", "word_name_ends"];

/// The bytes of vectors in a file.
#[derive(Debug)]
struct Stored {
    shape: [usize; 2],
    values: Vec<u8>,
    names: Vec<u8>,
    name_ends: Vec<u8>,
}

impl Stored {
    fn new(vectors: &NamedVectors) -> Self {
        let mut stored = Self {
            shape: [vectors.len(), vectors.dimension],
            values: vectors.values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            names: Vec::new(),
            name_ends: Vec::new(),
        };
        for name in &vectors.names {
            stored.names.extend_from_slice(name.as_bytes());
            stored.name_ends.extend_from_slice(&(stored.names.len() as i64).to_le_bytes());
        }
        stored
    }

    fn views(
        &self,
        [values, names, ends]: TensorNames,
    ) -> Result<[(&'static str, TensorView<'_>); 3], safetensors::SafeTensorError> {
        let n_names = vec![self.names.len()];
        Ok([
            (values, TensorView::new(Dtype::F32, self.shape.to_vec(), &self.values)?),
            (names, TensorView::new(Dtype::U8, n_names, &self.names)?),
            (ends, TensorView::new(Dtype::I64, vec![self.shape[0]], &self.name_ends)?),
        ])
    }
}

fn read_vectors(
    tensors: &SafeTensors<'_>,
    [values, names, ends]: TensorNames,
    path: &Path,
) -> Result<NamedVectors, Error> {
    let tensor = |name: &str, dtype: Dtype, n_dimensions: usize| {
        let tensor =
            tensors.tensor(name).map_err(|source| unusable(path, format!("{name}: {source}")))?;
        if tensor.dtype() != dtype || tensor.shape().len() != n_dimensions {
            let (found, shape) = (tensor.dtype(), tensor.shape());
            let problem = format!(
                "{name} is {found:?} of shape {shape:?}, and should be {dtype:?} of {n_dimensions} \
                 dimensions"
            );
            return Err(unusable(path, problem));
        }
        Ok(tensor)
    };
    let vectors = tensor(values, Dtype::F32, 2)?;
    let bytes = tensor(names, Dtype::U8, 1)?;
    let name_ends = tensor(ends, Dtype::I64, 1)?;
    let name_ends = name_ends.data().as_chunks::<8>().0.iter().map(|end| i64::from_le_bytes(*end));
    let mut begin = 0;
    let mut vector_names = Vec::new();
    for (row, end) in name_ends.enumerate() {
        let name = usize::try_from(end).ok().and_then(|end| bytes.data().get(begin..end));
        let name = name.and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(|| {
            unusable(path, format!("{ends}[{row}] is {end}, which ends no name in {names}"))
        })?;
        vector_names.push(name.to_owned());
        begin += name.len();
    }
    let dimension = vectors.shape()[1];
    let numbers =
        vectors.data().as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
    NamedVectors::new(vector_names, numbers.collect(), dimension)
}

fn unusable(path: &Path, problem: impl Into<String>) -> Error {
    Error::Safetensors { path: path.to_owned(), problem: problem.into() }
}
