//! TileDB's datatypes, as the bytes that represent them in schemas and headers.

/// A datatype by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Datatype(pub(crate) u8);

/// The machine number that a value is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

const NAMES: [&str; 44] = [
    "int32",
    "int64",
    "float32",
    "float64",
    "char",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "ascii",
    "utf8",
    "utf16",
    "utf32",
    "ucs2",
    "ucs4",
    "any",
    "datetime_year",
    "datetime_month",
    "datetime_week",
    "datetime_day",
    "datetime_hour",
    "datetime_minute",
    "datetime_second",
    "datetime_ms",
    "datetime_us",
    "datetime_ns",
    "datetime_ps",
    "datetime_fs",
    "datetime_as",
    "time_hour",
    "time_minute",
    "time_second",
    "time_ms",
    "time_us",
    "time_ns",
    "time_ps",
    "time_fs",
    "time_as",
    "blob",
    "bool",
    "wkb",
    "wkt",
];

impl Datatype {
    pub(crate) const INT8: Self = Self(5);
    pub(crate) const INT16: Self = Self(7);
    pub(crate) const INT32: Self = Self(0);
    pub(crate) const INT64: Self = Self(1);
    pub(crate) const FLOAT32: Self = Self(2);
    pub(crate) const UINT8: Self = Self(6);
    pub(crate) const UINT64: Self = Self(10);
    pub(crate) const ASCII: Self = Self(11);
    #[cfg(test)]
    pub(crate) const UTF8: Self = Self(12);
    pub(crate) const ANY: Self = Self(17);

    /// TileDB's name for it, or "datatype 77" for a number without a name.
    pub fn name(self) -> String {
        NAMES
            .get(usize::from(self.0))
            .map_or_else(|| format!("datatype {}", self.0), |name| (*name).to_owned())
    }

    /// The same type in crate `tiledb`.
    pub(crate) fn described(self) -> tiledb::Datatype {
        tiledb::Datatype::from_number(self.0.into())
    }

    /// Bytes of one value; `None` for a number that is not a datatype.
    pub(crate) fn size(self) -> Option<usize> {
        Some(match self.0 {
            4..=6 | 11 | 12 | 17 | 40..=43 => 1,
            7 | 8 | 13 | 15 => 2,
            0 | 2 | 9 | 14 | 16 => 4,
            1 | 3 | 10 | 18..=39 => 8,
            _ => return None,
        })
    }

    /// Whether values are ASCII or UTF-8 texts.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.0, 11 | 12)
    }

    pub(crate) fn is_time(self) -> bool {
        matches!(self.0, 18..=39)
    }

    /// The number type for computing with values of this type; strings and blobs are their code
    /// units.
    pub(crate) fn number(self) -> Option<Number> {
        Some(match self.0 {
            0 => Number::I32,
            1 | 18..=39 => Number::I64,
            2 => Number::F32,
            3 => Number::F64,
            4 | 5 => Number::I8,
            6 | 11 | 12 | 17 | 40..=43 => Number::U8,
            7 => Number::I16,
            8 | 13 | 15 => Number::U16,
            9 | 14 | 16 => Number::U32,
            10 => Number::U64,
            _ => return None,
        })
    }

    /// The number type of an attribute's values if they convert to f32; `None` for times, strings
    /// and blobs.
    pub(crate) fn value_number(self) -> Option<Number> {
        matches!(self.0, 0..=3 | 5..=10 | 41).then(|| self.number()).flatten()
    }

    /// The number type of coordinates, if this crate reads such coordinates.
    pub(crate) fn coordinate_number(self) -> Option<Number> {
        matches!(self.0, 0 | 1 | 9 | 10).then(|| self.number()).flatten()
    }
}

impl Number {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_agree() {
        for code in 0..=255 {
            let datatype = Datatype(code);
            assert_eq!(datatype.number().map(Number::size), datatype.size(), "{}", datatype.name());
        }
        assert_eq!(Datatype(41).name(), "bool");
        assert_eq!(Datatype(39).name(), "time_as");
    }
}
