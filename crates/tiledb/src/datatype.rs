//! TileDB's datatypes, by the numbers that stand for them in files and in C.

/// A datatype of a dimension, an attribute, an enumeration or a metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Datatype {
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 32-bit float.
    Float32,
    /// 64-bit float.
    Float64,
    /// A character.
    Char,
    /// 8-bit signed integer.
    Int8,
    /// 8-bit unsigned integer.
    UInt8,
    /// 16-bit signed integer.
    Int16,
    /// 16-bit unsigned integer.
    UInt16,
    /// 32-bit unsigned integer.
    UInt32,
    /// 64-bit unsigned integer.
    UInt64,
    /// ASCII string.
    StringAscii,
    /// UTF-8 string.
    StringUtf8,
    /// Bytes, from before TileDB had blobs.
    Any,
    /// Seconds since 1970.
    DateTimeSecond,
    /// Milliseconds since 1970.
    DateTimeMillisecond,
    /// Microseconds since 1970.
    DateTimeMicrosecond,
    /// Nanoseconds since 1970.
    DateTimeNanosecond,
    /// Bytes.
    Blob,
    /// Boolean, one byte.
    Bool,
    /// A type without a name in this crate, by its number in `tiledb_datatype_t`.
    Other(i32),
}

const NUMBERS: [(Datatype, i32, usize); 20] = [
    (Datatype::Int32, 0, 4),
    (Datatype::Int64, 1, 8),
    (Datatype::Float32, 2, 4),
    (Datatype::Float64, 3, 8),
    (Datatype::Char, 4, 1),
    (Datatype::Int8, 5, 1),
    (Datatype::UInt8, 6, 1),
    (Datatype::Int16, 7, 2),
    (Datatype::UInt16, 8, 2),
    (Datatype::UInt32, 9, 4),
    (Datatype::UInt64, 10, 8),
    (Datatype::StringAscii, 11, 1),
    (Datatype::StringUtf8, 12, 1),
    (Datatype::Any, 17, 1),
    (Datatype::DateTimeSecond, 24, 8),
    (Datatype::DateTimeMillisecond, 25, 8),
    (Datatype::DateTimeMicrosecond, 26, 8),
    (Datatype::DateTimeNanosecond, 27, 8),
    (Datatype::Blob, 40, 1),
    (Datatype::Bool, 41, 1),
];

impl Datatype {
    /// The datatype with this number in `tiledb_datatype_t`.
    pub fn from_number(number: i32) -> Self {
        NUMBERS
            .iter()
            .find(|(_, raw, _)| *raw == number)
            .map_or(Self::Other(number), |(datatype, ..)| *datatype)
    }

    /// Its number in `tiledb_datatype_t`.
    pub fn number(self) -> i32 {
        match self {
            Self::Other(number) => number,
            named => NUMBERS
                .iter()
                .find(|(datatype, ..)| *datatype == named)
                .map_or(-1, |(_, raw, _)| *raw),
        }
    }

    /// The size of one value in bytes; `None` for a type without a name here.
    pub fn size(self) -> Option<usize> {
        NUMBERS.iter().find(|(datatype, ..)| *datatype == self).map(|(.., size)| *size)
    }

    /// Whether values are text.
    pub fn is_string(self) -> bool {
        matches!(self, Self::StringAscii | Self::StringUtf8 | Self::Char)
    }

    /// Decodes the integer in `bytes`, if the type is an integer or a time and `bytes` has its
    /// size.
    pub fn integer(self, bytes: &[u8]) -> Option<i128> {
        Some(match self {
            Self::Int8 => i128::from(i8::from_le_bytes(bytes.try_into().ok()?)),
            Self::UInt8 | Self::Bool => i128::from(u8::from_le_bytes(bytes.try_into().ok()?)),
            Self::Int16 => i128::from(i16::from_le_bytes(bytes.try_into().ok()?)),
            Self::UInt16 => i128::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            Self::Int32 => i128::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            Self::UInt32 => i128::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            Self::Int64
            | Self::DateTimeSecond
            | Self::DateTimeMillisecond
            | Self::DateTimeMicrosecond
            | Self::DateTimeNanosecond => i128::from(i64::from_le_bytes(bytes.try_into().ok()?)),
            Self::UInt64 => i128::from(u64::from_le_bytes(bytes.try_into().ok()?)),
            _ => return None,
        })
    }

    /// Encodes an integer of this type; `None` if the type is not an integer type or the value does
    /// not fit.
    pub fn integer_bytes(self, value: i128) -> Option<Vec<u8>> {
        let size = self.size()?;
        let bytes = value.to_le_bytes()[..size].to_vec();
        (self.integer(&bytes)? == value).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_integers_round_trip() {
        for (datatype, raw, size) in NUMBERS {
            assert_eq!(Datatype::from_number(raw), datatype);
            assert_eq!(datatype.number(), raw);
            assert_eq!(datatype.size(), Some(size));
        }
        assert_eq!(Datatype::from_number(33), Datatype::Other(33));
        assert_eq!(Datatype::Int16.integer_bytes(-2), Some(vec![0xfe, 0xff]));
        assert_eq!(Datatype::UInt8.integer_bytes(256), None);
        assert_eq!(Datatype::Float32.integer_bytes(1), None);
    }
}
