//! The two kinds of objects that a place can hold.

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectType {
    /// A TileDB group.
    Group,
    /// A TileDB array.
    Array,
}

impl ObjectType {
    /// The kind with this number in `tiledb_object_t`; `None` if nothing has it.
    pub fn from_number(kind: i32) -> Option<Self> {
        match kind {
            1 => Some(Self::Group),
            2 => Some(Self::Array),
            _ => None,
        }
    }

    /// Its number in `tiledb_object_t`.
    pub fn number(self) -> i32 {
        match self {
            Self::Group => 1,
            Self::Array => 2,
        }
    }
}
