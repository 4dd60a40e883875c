//! Annotations that belong to neither cells nor genes: the collection `uns` of a measurement.

use tiledb_schema::MetadataValue;

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
#[non_exhaustive]
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
        let mut left_out = stored.unread;
        let values = group(stored.values, "", &mut left_out);
        left_out.sort();
        Self { values, left_out }
    }
}

#[cfg(feature = "anndata")]
fn group(
    stored: Vec<(String, ::anndata::UnsValue)>,
    path: &str,
    left_out: &mut Vec<(String, String)>,
) -> Vec<(String, UnsValue)> {
    use ::anndata::UnsValue as Stored;
    use tiledb_schema::Datatype;

    let mut values = Vec::new();
    for (name, value) in stored {
        let single = match value {
            Stored::Text(text) => MetadataValue::Text(text),
            Stored::Integer(value) => MetadataValue::Integer(value.into()),
            Stored::Unsigned(value) if value > i64::MAX as u64 => MetadataValue::Bytes {
                datatype: Datatype::UInt64,
                n_values: 1,
                bytes: value.to_le_bytes().to_vec(),
            },
            Stored::Unsigned(value) => MetadataValue::Integer(value.into()),
            Stored::Float(value) => MetadataValue::Float(value),
            Stored::Bool(value) => MetadataValue::Bytes {
                datatype: Datatype::Bool,
                n_values: 1,
                bytes: vec![value.into()],
            },
            Stored::Texts(texts) => {
                values.push((name, UnsValue::Texts(texts)));
                continue;
            }
            Stored::Group(within) => {
                let within = group(within, &format!("{path}{name}/"), left_out);
                values.push((name, UnsValue::Group(within)));
                continue;
            }
            _ => {
                left_out.push((format!("{path}{name}"), "it is a value of another kind".into()));
                continue;
            }
        };
        values.push((name, UnsValue::Single(single)));
    }
    values
}
