//! How genes and values can be compressed, and which way is the quickest on the data at hand.
//!
//! There is no best codec: entropy coders (zstd) make the smallest files; *packed* integers, cut to the bytes that they need, are read back
//! ten times as quickly and take more room. Of genes it is the distances from one to the next that are packed, which take a byte each.
//! Which one wins depends on the data, the machine, and how quickly bytes come from where they are kept. So a sample of the data is written
//! in each way and read by the reader that training will use. What counts is the time of a row: to decode it, and for its bytes to come.

use soma_io::Filter;

use crate::Error;

/// Bytes of a window of genes that libtiledb packs together: in few of them one cell ends and the next begins, which is a long way back.
/// Fragments that are written without it have windows as their values want them.
const GENE_WINDOW_BYTES: u32 = 128 * 8;
/// The same of counts: few share a window with a large count, which takes all of them to 16 bits.
const VALUE_WINDOW_BYTES: u32 = 128 * 4;

/// Higher levels take several times as long to write, and save next to nothing on shuffled bytes.
const ZSTD_LEVEL: i32 = 3;

/// Whole numbers that a 32-bit float holds exactly.
const MOST_WHOLE: f32 = 16_777_216.0;

/// A way to compress the genes, or the values, of the cells of X.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codec {
    /// Its name.
    pub name: &'static str,
    /// Whether it keeps whole numbers only.
    pub whole_numbers: bool,
    filters: &'static [Filter],
}

impl Codec {
    /// The filters of TileDB that it stands for.
    pub fn filters(&self) -> &'static [Filter] {
        self.filters
    }

    const fn new(name: &'static str, whole_numbers: bool, filters: &'static [Filter]) -> Self {
        Self { name, whole_numbers, filters }
    }
}

/// Floats as integers of as many bits.
const AS_INTEGERS: Filter = Filter::ScaleFloat { byte_width: 4, factor: 1.0, offset: 0.0 };

/// What there is for genes.
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

/// What there is for values.
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
    /// The codecs of these names.
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

/// Which codecs are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CodecChoice {
    /// The quickest on a sample of the data, from a storage that gives so many bytes in a second.
    Measured {
        /// Bytes in a second.
        storage_bytes_per_second: f64,
    },
    /// These.
    Named(Codecs),
}

/// What codecs came to on the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MeasuredCodecs {
    /// Which.
    pub codecs: Codecs,
    /// Bytes of a value with its gene and its share of all else.
    pub bytes_per_value: f64,
    /// Rows in a second that were read from memory, in chunks, by the processor time that it took on all processors.
    pub rows_per_second: f64,
    /// Rows in a second that can be read when bytes come from the storage that was named.
    pub rows_per_second_of_storage: f64,
}

/// Values that are looked at together.
const PIECE: usize = 1024;

/// The first row that has a value which is not a whole number that a codec for those keeps to the bit.
pub(crate) fn first_not_whole(row_offsets: &[usize], values: &[f32]) -> Option<usize> {
    // Piece by piece without an early end, so that the compiler can look at several values at once.
    let all_whole = |piece: &[f32]| piece.iter().fold(true, |all, value| all & is_whole(*value));
    let piece = values.chunks(PIECE).position(|piece| !all_whole(piece))?;
    let start = piece * PIECE;
    let at = start + values[start..].iter().position(|value| !is_whole(*value))?;
    Some(row_offsets.partition_point(|start| *start <= at) - 1)
}

/// Whether a value comes back as it was from an integer. Negative zero does not.
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
