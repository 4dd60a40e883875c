//! The choice of a reader of X.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The reader to use for X.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReaderChoice {
    /// The native reader if it supports the array, otherwise libtiledb.
    /// [`XReader::name`](crate::XReader::name) names the reader, and
    /// [`XReader::why_not_native`](crate::XReader::why_not_native) the reason.
    #[default]
    Auto,
    /// The native reader; an unsupported array is an error.
    Native,
    /// The reader that uses libtiledb.
    Libtiledb,
}

impl ReaderChoice {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Native, Self::Libtiledb];

    /// The name on the command line: `auto`, `native`, `libtiledb`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Libtiledb => "libtiledb",
        }
    }
}

impl fmt::Display for ReaderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReaderChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| Error::UnknownReader { name: name.to_owned() })
    }
}
