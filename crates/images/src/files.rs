//! Files of cubes: Tivita, and blosc with a pickle header.
//!
//! Everything here is a function of bytes: no file is opened and no thread started. A [`CubeFile`]
//! borrows the bytes of a file, lists its arrays, and decodes one of them into memory of the
//! caller, whole or in pieces by several threads. Damaged and hostile bytes are a [`FileError`].

pub mod blosc;
mod error;
mod normalize;
pub mod tivita;

use arrays::ElementType;
pub use arrays::blosc::DecodeScratch;

pub use error::FileError;
pub use normalize::{Norm, normalize};

/// A format of files of cubes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// A cube as Tivita cameras write it: module [`tivita`].
    Tivita,
    /// A pickle of shapes and types, then buffers of c-blosc: module [`blosc`].
    Blosc,
}

/// An array in a file: what is known before its values are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredArray {
    /// The name; empty in a file of one array without a name.
    pub name: String,
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The type of the elements, once decoded.
    pub element: ElementType,
}

impl StoredArray {
    /// An array whose bytes can be counted; `None` if they exceed `usize`.
    pub fn new(name: &str, shape: &[usize], element: ElementType) -> Option<Self> {
        n_bytes(shape, element)?;
        Some(Self { name: name.to_owned(), shape: shape.to_vec(), element })
    }

    /// Bytes of the decoded values; `None` if they exceed `usize`, which no array of a
    /// [`CubeFile`] does.
    pub fn n_bytes(&self) -> Option<usize> {
        n_bytes(&self.shape, self.element)
    }
}

/// Bytes of the values of an array; `None` if they exceed `usize`.
fn n_bytes(shape: &[usize], element: ElementType) -> Option<usize> {
    shape.iter().try_fold(element.n_bytes(), |product, &length| product.checked_mul(length))
}

/// A parsed file of cubes over borrowed bytes.
#[derive(Debug)]
pub struct CubeFile<'a> {
    arrays: Vec<StoredArray>,
    /// Bytes of each array's decoded values.
    n_bytes: Vec<usize>,
    content: Content<'a>,
}

/// Where the values are, per format.
#[derive(Debug)]
enum Content<'a> {
    Tivita(tivita::Cube<'a>),
    Blosc(Vec<blosc::Stored<'a>>),
}

impl<'a> CubeFile<'a> {
    /// Parses the description of a file: names, shapes, types and places of its arrays. No value
    /// is decoded.
    pub fn parse(format: FileFormat, bytes: &'a [u8]) -> Result<Self, FileError> {
        let (arrays, content) = match format {
            FileFormat::Tivita => {
                let (array, cube) = tivita::parse(bytes)?;
                (vec![array], Content::Tivita(cube))
            }
            FileFormat::Blosc => {
                let (arrays, stored) = blosc::parse(bytes)?;
                (arrays, Content::Blosc(stored))
            }
        };
        let count = |array: &StoredArray| {
            let too_large = || FileError::damaged(0, format!("{:?} is too large", array.shape));
            array.n_bytes().ok_or_else(too_large)
        };
        let n_bytes = arrays.iter().map(count).collect::<Result<_, _>>()?;
        Ok(Self { arrays, n_bytes, content })
    }

    /// The arrays, in the order of the file.
    pub fn arrays(&self) -> &[StoredArray] {
        &self.arrays
    }

    /// The index of the array called `name`.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.arrays.iter().position(|array| array.name == name)
    }

    /// Decodes array `idx` into `into`, which must have exactly its bytes: native byte order, C
    /// order. After an error its content is unspecified.
    pub fn decode(
        &self,
        idx: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let expected = self.array_bytes(idx)?;
        if into.len() != expected {
            return Err(FileError::Destination { expected, given: into.len() });
        }
        let piece_bytes = self.piece_bytes(idx)?;
        for (piece, into) in into.chunks_mut(piece_bytes).enumerate() {
            self.decode_piece(idx, piece, into, scratch)?;
        }
        Ok(())
    }

    /// Bytes of each piece of array `idx` but the last, which may be shorter; at least 1. The
    /// pieces are disjoint and in the order of the decoded values, so that
    /// `into.chunks_mut(piece_bytes)` gives their destinations.
    pub fn piece_bytes(&self, idx: usize) -> Result<usize, FileError> {
        self.array_bytes(idx)?;
        let piece_bytes = match &self.content {
            Content::Tivita(cube) => cube.piece_bytes(),
            Content::Blosc(stored) => stored.get(idx).map_or(1, blosc::Stored::piece_bytes),
        };
        Ok(piece_bytes.max(1))
    }

    /// Decodes one piece of array `idx` into `into`, which must have exactly the piece's bytes.
    /// Threads may decode the pieces of one array at the same time.
    pub fn decode_piece(
        &self,
        idx: usize,
        piece: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let n_bytes = self.array_bytes(idx)?;
        let piece_bytes = self.piece_bytes(idx)?;
        let count = n_bytes.div_ceil(piece_bytes);
        if piece >= count {
            return Err(FileError::Absent { what: "piece", index: piece, count });
        }
        let expected = piece_bytes.min(n_bytes - piece * piece_bytes);
        if into.len() != expected {
            return Err(FileError::Destination { expected, given: into.len() });
        }
        match &self.content {
            Content::Tivita(cube) => cube.decode_piece(piece, into),
            Content::Blosc(stored) => match stored.get(idx) {
                Some(stored) => stored.decode_piece(piece, into, scratch),
                None => Err(FileError::Absent { what: "array", index: idx, count: stored.len() }),
            },
        }
    }

    fn array_bytes(&self, idx: usize) -> Result<usize, FileError> {
        let absent = || FileError::Absent { what: "array", index: idx, count: self.arrays.len() };
        self.n_bytes.get(idx).copied().ok_or_else(absent)
    }
}
