//! Annotations that belong to neither cells nor genes: the collection `uns` of a measurement.

use tiledb::MetadataValue;

/// The plain values of uns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Uns {
    /// The values by name.
    pub values: Vec<(String, UnsValue)>,
    /// The path within uns of each element that is left out, and why.
    pub left_out: Vec<(String, String)>,
}

/// A value of uns.
#[derive(Debug, Clone, PartialEq)]
pub enum UnsValue {
    /// A string, a number or a truth value.
    Single(MetadataValue),
    /// A list of strings, for instance colors of categories.
    Texts(Vec<String>),
    /// Values by name.
    Group(Vec<(String, Self)>),
}

#[cfg(feature = "anndata")]
impl From<::anndata::Uns> for Uns {
    fn from(stored: ::anndata::Uns) -> Self {
        Self { values: group(stored.values), left_out: stored.unread }
    }
}

#[cfg(feature = "anndata")]
fn group(stored: Vec<(String, ::anndata::UnsValue)>) -> Vec<(String, UnsValue)> {
    stored.into_iter().map(|(name, value)| (name, value.into())).collect()
}

#[cfg(feature = "anndata")]
impl From<::anndata::UnsValue> for UnsValue {
    fn from(stored: ::anndata::UnsValue) -> Self {
        use ::anndata::{Scalar, UnsValue as Stored};
        use tiledb::Datatype;

        let one = |datatype, bytes| MetadataValue::Bytes { datatype, n_values: 1, bytes };
        Self::Single(match stored {
            Stored::Texts(texts) => return Self::Texts(texts),
            Stored::Group(within) => return Self::Group(group(within)),
            Stored::Single(Scalar::Text(text)) => MetadataValue::Text(text),
            Stored::Single(Scalar::Integer(value)) => MetadataValue::Integer(value.into()),
            Stored::Single(Scalar::Unsigned(value)) if value > i64::MAX as u64 => {
                one(Datatype::UInt64, value.to_le_bytes().to_vec())
            }
            Stored::Single(Scalar::Unsigned(value)) => MetadataValue::Integer(value.into()),
            Stored::Single(Scalar::Float(value)) => MetadataValue::Float(value),
            Stored::Single(Scalar::Bool(value)) => one(Datatype::Bool, vec![value.into()]),
        })
    }
}
