//! The fields of a cell, each in a file of its own.

/// A file of a fragment, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Rows,
    Columns,
    Values,
    Times,
}

impl Field {
    pub(crate) const ALL: [Self; 4] = [Self::Rows, Self::Columns, Self::Values, Self::Times];

    pub(crate) fn idx(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Columns => 1,
            Self::Values => 2,
            Self::Times => 3,
        }
    }
}
