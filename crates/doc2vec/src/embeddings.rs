//! Vectors with names, in memory and in files.

mod nearest;
mod safetensors_file;
mod whole_file;
mod word2vec_file;

use std::collections::HashMap;

pub use self::nearest::{Neighbour, UnitVectors};
pub use self::word2vec_file::check_word2vec_names;
use crate::error::Error;

/// Document and word vectors, trained together, with names.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// A vector for each document.
    pub documents: NamedVectors,
    /// A vector for each word.
    pub words: NamedVectors,
}

/// Vectors of equal length, each with a name. All numbers are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedVectors {
    names: Vec<String>,
    values: Vec<f32>,
    dimension: usize,
}

impl NamedVectors {
    /// Takes names and the numbers of all vectors, row by row.
    ///
    /// # Errors
    /// - [`Error::Setting`]: the dimension is 0.
    /// - [`Error::Names`]: there are not as many vectors as names.
    /// - [`Error::NotFinite`]: a number is infinite or not a number.
    pub fn new(names: Vec<String>, values: Vec<f32>, dimension: usize) -> Result<Self, Error> {
        if dimension == 0 {
            return Err(Error::setting("dimension", dimension, "must be at least 1"));
        }
        if names.len().checked_mul(dimension) != Some(values.len()) {
            let (n_names, n_values) = (names.len(), values.len());
            return Err(Error::Names { n_names, n_values, dimension });
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let row = place / dimension;
            let (name, value) = (names[row].clone(), values[place]);
            return Err(Error::NotFinite { row, name, value });
        }
        Ok(Self { names, values, dimension })
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Length of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The names, in the order of the rows.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The numbers of all vectors, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The vector of a row, if it exists.
    pub fn vector(&self, row: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.dimension).nth(row)
    }

    /// The row of each name. The last one counts if two have the same name.
    pub fn rows(&self) -> HashMap<&str, usize> {
        self.names.iter().enumerate().map(|(row, name)| (name.as_str(), row)).collect()
    }

    /// The vectors at length 1, to search for neighbours.
    pub fn unit(&self) -> UnitVectors {
        UnitVectors::new(&self.values, self.dimension)
    }
}
