//! Filters as crate `tiledb` describes them.

use tiledb::Filter as Described;

use super::{Codec, Filter};
use crate::datatype::Datatype;

/// The default window of libtiledb for bit-width reduction.
const DEFAULT_WINDOW_BYTES: u32 = 256;

impl Filter {
    /// The filter without the details that only decoding needs.
    pub(crate) fn described(&self) -> Described {
        match *self {
            Self::None => Described::None,
            Self::Compress(Codec::Gzip, level) => Described::Gzip(level),
            Self::Compress(Codec::Zstd, level) => Described::Zstd(level),
            Self::Compress(Codec::Lz4, level) => Described::Lz4(level),
            Self::Compress(Codec::Rle, _) => Described::Rle,
            Self::Compress(Codec::Bzip2, level) => Described::Bzip2(level),
            Self::Delta { reinterpret } => Described::Delta(chosen(reinterpret)),
            Self::DoubleDelta { reinterpret } => Described::DoubleDelta(chosen(reinterpret)),
            Self::BitWidthReduction { max_window: DEFAULT_WINDOW_BYTES } => {
                Described::BitWidthReduction
            }
            Self::BitWidthReduction { max_window } => {
                Described::BitWidthReductionWithin(max_window)
            }
            Self::Bitshuffle => Described::BitShuffle,
            Self::Byteshuffle => Described::ByteShuffle,
            Self::PositiveDelta => Described::PositiveDelta,
            Self::Md5 => Described::ChecksumMd5,
            Self::Sha256 => Described::ChecksumSha256,
            Self::FloatScale { scale, offset, byte_width } => {
                Described::ScaleFloat { byte_width, factor: scale, offset }
            }
            Self::Xor => Described::Xor,
            Self::Dictionary => Described::Dictionary,
            Self::Named(number, _) | Self::Unknown(number) => Described::Other(number.into()),
        }
    }
}

/// The type to reinterpret as; `None` if the filter keeps the type of its input.
fn chosen(datatype: Datatype) -> Option<tiledb::Datatype> {
    (datatype != Datatype::ANY).then(|| datatype.described())
}
