//! The stored forms of cubes, and the names of their files.

use std::fmt;
use std::str::FromStr;

/// A stored form of the cubes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Files of Tivita cameras: big-endian f32, uncompressed, as measured.
    Dat,
    /// f32 in blosc files.
    Raw32,
    /// f16 in blosc files.
    Raw16,
    /// f16 in packed files.
    Packed16,
    /// f16 in Zarr arrays, one chunk per cube.
    Zarr,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 5] = [Self::Dat, Self::Raw32, Self::Raw16, Self::Packed16, Self::Zarr];

    /// Name of the form, like `raw16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dat => "dat",
            Self::Raw32 => "raw32",
            Self::Raw16 => "raw16",
            Self::Packed16 => "packed16",
            Self::Zarr => "zarr",
        }
    }

    /// Name of the form's folder in the folder of the data.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Zarr => "cubes.zarr",
            form => form.name(),
        }
    }

    /// Name of an image's file in the form's folder; of Zarr, which has no such files, `None`.
    pub(crate) fn file_name(self, image: &str) -> Option<String> {
        match self {
            Self::Dat => Some(format!("{image}{DAT_SUFFIX}")),
            Self::Raw32 | Self::Raw16 => Some(format!("{image}.blosc")),
            Self::Packed16 => Some(format!("{image}.cube")),
            Self::Zarr => None,
        }
    }
}

/// End of the names of Tivita's files.
pub(crate) const DAT_SUFFIX: &str = "_SpecCube.dat";

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
