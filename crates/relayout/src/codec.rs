//! Codecs for genes and values, and the measured choice between them.
//!
//! No codec is best everywhere. Entropy coders (zstd) make the smallest files. *Packed* integers,
//! cut to the bytes that they need, decode ten times as fast and take more room; genes are packed
//! as differences to the previous gene, which take one byte each. Which codec wins depends on the
//! data, the machine and the speed of the storage. So a sample of the data is written with each
//! codec and read by the reader that training will use. The criterion is the time per row: decoding
//! plus transfer.

use soma_io::Filter;

use crate::Error;

/// Bytes of a window of genes that libtiledb packs together. Few such windows contain the end of a
/// cell, where the difference is large. Fragments written without libtiledb choose windows to fit
/// the values.
const GENE_WINDOW_BYTES: u32 = 128 * 8;
/// Bytes of a window of counts: few counts share a window with a large one, which widens all of
/// them to 16 bits.
const VALUE_WINDOW_BYTES: u32 = 128 * 4;

/// Higher levels take several times as long to write, and save next to nothing on shuffled bytes.
const ZSTD_LEVEL: i32 = 3;

/// The largest whole number up to which 32-bit floats are exact.
const MOST_WHOLE: f32 = 16_777_216.0;

/// A codec for the genes or for the values of X's cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codec {
    /// Its name.
    pub name: &'static str,
    /// Whether it keeps only whole numbers.
    pub whole_numbers: bool,
    filters: &'static [Filter],
}

impl Codec {
    /// The TileDB filters of this codec.
    pub fn filters(&self) -> &'static [Filter] {
        self.filters
    }

    const fn new(name: &'static str, whole_numbers: bool, filters: &'static [Filter]) -> Self {
        Self { name, whole_numbers, filters }
    }
}

/// Floats as 32-bit integers.
const AS_INTEGERS: Filter = Filter::ScaleFloat { byte_width: 4, factor: 1.0, offset: 0.0 };

/// Codecs for genes.
pub const GENE_CODECS: [Codec; 3] = [
    Codec::new(
        "packed",
        false,
        &[Filter::Delta(None), Filter::BitWidthReductionWithin(GENE_WINDOW_BYTES)],
    ),
    Codec::new("zstd", false, &[Filter::ByteShuffle, Filter::Zstd(ZSTD_LEVEL)]),
    Codec::new(
        "delta-zstd",
        false,
        &[Filter::Delta(None), Filter::ByteShuffle, Filter::Zstd(ZSTD_LEVEL)],
    ),
];

/// Codecs for values.
pub const VALUE_CODECS: [Codec; 3] = [
    Codec::new("packed", true, &[AS_INTEGERS, Filter::BitWidthReductionWithin(VALUE_WINDOW_BYTES)]),
    Codec::new("whole-zstd", true, &[AS_INTEGERS, Filter::ByteShuffle, Filter::Zstd(ZSTD_LEVEL)]),
    Codec::new("zstd", false, &[Filter::ByteShuffle, Filter::Zstd(ZSTD_LEVEL)]),
];

/// A codec for genes and one for values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codecs {
    /// For genes.
    pub genes: Codec,
    /// For values.
    pub values: Codec,
}

impl Codecs {
    /// Finds codecs by name.
    ///
    /// # Errors
    /// [`Error::UnknownCodec`].
    pub fn named(genes: &str, values: &str) -> Result<Self, Error> {
        Ok(Self {
            genes: named("genes", &GENE_CODECS, genes)?,
            values: named("values", &VALUE_CODECS, values)?,
        })
    }
}

impl std::fmt::Display for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.genes.name, self.values.name)
    }
}

fn named(of: &'static str, codecs: &[Codec], name: &str) -> Result<Codec, Error> {
    codecs.iter().find(|codec| codec.name == name).copied().ok_or_else(|| Error::UnknownCodec {
        name: name.to_owned(),
        of,
        existing: codecs.iter().map(|codec| codec.name).collect(),
    })
}

/// How codecs are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CodecChoice {
    /// The fastest on a sample of the data, given the speed of the storage.
    Measured {
        /// Bytes per second of the storage.
        storage_bytes_per_second: f64,
    },
    /// These codecs.
    Named(Codecs),
}

/// Measured size and speed of codecs on the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MeasuredCodecs {
    /// The codecs.
    pub codecs: Codecs,
    /// Bytes per value, including its gene and its share of everything else.
    pub bytes_per_value: f64,
    /// Rows per second read from memory in chunks, by the processor time of all processors.
    pub rows_per_second: f64,
    /// Rows per second when bytes come from the named storage.
    pub rows_per_second_of_storage: f64,
}

/// Values checked together.
const PIECE: usize = 1024;

/// The first row with a value that a codec for whole numbers would not keep bit for bit.
pub(crate) fn first_not_whole(row_offsets: &[usize], values: &[f32]) -> Option<usize> {
    // No early end within a piece, so that the compiler checks several values at once.
    let all_whole = |piece: &[f32]| piece.iter().fold(true, |all, value| all & is_whole(*value));
    let piece = values.chunks(PIECE).position(|piece| !all_whole(piece))?;
    let start = piece * PIECE;
    let at = start + values[start..].iter().position(|value| !is_whole(*value))?;
    Some(row_offsets.partition_point(|start| *start <= at) - 1)
}

/// Whether a value survives conversion to an integer bit for bit. Negative zero does not.
fn is_whole(value: f32) -> bool {
    value.abs() <= MOST_WHOLE && (value as i32 as f32).to_bits() == value.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_told_from_others() {
        for whole in [0.0, 1.0, -3.0, 16_777_216.0, -16_777_216.0] {
            assert!(is_whole(whole), "{whole}");
        }
        for other in [0.5, -0.0, 16_777_218.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE, 1e30] {
            assert!(!is_whole(other), "{other}");
        }
        assert_eq!(first_not_whole(&[0, 2, 2, 4], &[1.0, 2.0, 3.0, 0.5]), Some(2));
        assert_eq!(first_not_whole(&[0, 2], &[1.0, 2.0]), None);
        let mut values = vec![1.0; 3 * PIECE];
        values[2 * PIECE + 5] = 0.5;
        assert_eq!(first_not_whole(&[0, 2 * PIECE + 5, 2 * PIECE + 6], &values), Some(1));
    }

    #[test]
    fn codecs_are_found_by_name() {
        let codecs = Codecs::named("packed", "zstd").unwrap();
        assert_eq!(codecs.to_string(), "packed,zstd");
        let error = Codecs::named("packed", "lzma").unwrap_err().to_string();
        assert!(error.contains("lzma") && error.contains("whole-zstd"), "{error}");
    }
}
