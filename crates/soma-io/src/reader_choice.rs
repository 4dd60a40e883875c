//! Which reader of X is wanted.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The reader to read X with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReaderChoice {
    /// The native one where it knows how to read the array, otherwise libtiledb; [`XReader::name`](crate::XReader::name) says which,
    /// and [`XReader::why_not_native`](crate::XReader::why_not_native) the reason.
    #[default]
    Auto,
    /// The native one; it is an error where it does not know how to read the array.
    Native,
    /// libtiledb.
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
