//! Ways of reading the rows of X.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use soma_io::ReaderChoice;

/// A way of reading the rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// tiledbsoma: an Arrow table
    Table,
    /// tiledbsoma: tables of a blockwise read, the row's position in place of its joinid
    BlockwiseTable,
    /// tiledbsoma: a blockwise read as scipy's COO
    Coo,
    /// tiledbsoma: a blockwise read as scipy's CSR
    Csr,
    /// Our native reader's CSR
    NativeCsr,
    /// CSR by our reader through libtiledb
    LibtiledbCsr,
}

impl Way {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::BlockwiseTable => "blockwise-table",
            Self::Coo => "coo",
            Self::Csr => "csr",
            Self::NativeCsr => "native-csr",
            Self::LibtiledbCsr => "libtiledb-csr",
        }
    }

    /// Returns our reader; `None` for a way of tiledbsoma.
    pub(crate) fn reader(self) -> Option<ReaderChoice> {
        match self {
            Self::NativeCsr => Some(ReaderChoice::Native),
            Self::LibtiledbCsr => Some(ReaderChoice::Libtiledb),
            Self::Table | Self::BlockwiseTable | Self::Coo | Self::Csr => None,
        }
    }

    pub(crate) fn is_pythons(self) -> bool {
        self.reader().is_none()
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for way in Way::value_variants() {
            assert_eq!(way.to_possible_value().unwrap().get_name(), way.name());
        }
    }
}
