//! The fields of a cell, each in a file of its own.

/// A file of a fragment, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Rows,
    Columns,
    Values,
    Times,
    /// The time at which each cell was deleted.
    DeleteTimes,
}

impl Field {
    pub(crate) const N: usize = 5;
    pub(crate) const ALL: [Self; Self::N] =
        [Self::Rows, Self::Columns, Self::Values, Self::Times, Self::DeleteTimes];

    pub(crate) fn idx(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Columns => 1,
            Self::Values => 2,
            Self::Times => 3,
            Self::DeleteTimes => 4,
        }
    }
}
