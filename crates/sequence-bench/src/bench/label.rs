//! Labels of sequences: how mixed they are in batches says how random an order is.

use std::fmt;
use std::str::FromStr;

use bench_run::LabelCodes;
use pipeline::Stop;
use sequences::{SequenceList, SequenceStore};
use serde::{Deserialize, Serialize};

/// Sequences whose names are read at once.
const NAMES_AT_ONCE: u64 = 1 << 16;

/// A label of sequences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SequenceLabel {
    /// The part of the store, one of 64 equal ones.
    Position,
    /// The name up to a separator.
    Name(String),
}

impl FromStr for SequenceLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "position" => Ok(Self::Position),
            Some(("name", separator)) if !separator.is_empty() => {
                Ok(Self::Name(separator.to_owned()))
            }
            _ => Err("expected position, or name: and a separator, like name:_member_".to_owned()),
        }
    }
}

impl fmt::Display for SequenceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position => f.write_str("position"),
            Self::Name(separator) => write!(f, "name:{separator}"),
        }
    }
}

impl SequenceLabel {
    /// The class of each sequence. Fails if names cannot be read.
    pub(crate) fn codes(&self, store: &dyn SequenceStore) -> Result<LabelCodes, sequences::Error> {
        let n_sequences = store.summary().n_sequences;
        let Self::Name(separator) = self else {
            return Ok(LabelCodes::of_positions(&self.to_string(), n_sequences));
        };
        let separator = separator.as_bytes();
        let mut classes: Vec<Vec<u8>> = Vec::new();
        let mut names = SequenceList::default();
        for start in (0..n_sequences).step_by(NAMES_AT_ONCE as usize) {
            names.clear();
            let rows = start..n_sequences.min(start + NAMES_AT_ONCE);
            store.read_names(&[rows], &mut names, &Stop::default())?;
            classes.extend(names.names().map(|name| {
                let end = name.windows(separator.len()).position(|part| part == separator);
                name[..end.unwrap_or(name.len())].to_vec()
            }));
        }
        Ok(LabelCodes::of_values(&self.to_string(), &classes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_parsed_as_they_are_printed() {
        for text in ["position", "name:_member_", "name:|", "name::"] {
            assert_eq!(text.parse::<SequenceLabel>().unwrap().to_string(), text);
        }
        for text in ["", "name", "name:", "family", "position:3"] {
            assert!(text.parse::<SequenceLabel>().is_err(), "{text}");
        }
    }
}
