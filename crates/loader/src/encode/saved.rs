//! Encoders as JSON, so that codes mean the same at inference and for later releases of the data.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::classes::{Classes, Key};
use super::error::{KeyError, SavedError};
use super::label::{Kind, Label, format_key};
use super::mapping::Mapping;
use super::{Nulls, Rules, Unseen};

/// The value of the JSON's field `format`.
const FORMAT: &str = "somafeed encoder";

/// The version of the format that is written and read. Newer versions are rejected, because they
/// may have fields that this release would lose.
const VERSION: u64 = 1;

/// The kind of a saved encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedAs {
    Label,
    BatchKey,
}

impl SavedAs {
    fn name(self) -> &'static str {
        match self {
            Self::Label => "a label encoder",
            Self::BatchKey => "a batch key encoder",
        }
    }
}

/// The fields that every version has.
#[derive(Debug, Deserialize)]
struct Header {
    format: String,
    version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: String,
    version: u64,
    encoder: SavedAs,
    name: String,
    columns: Vec<SavedColumn>,
    unseen: Unseen,
    nulls: Nulls,
    /// The keys in the order of their codes.
    classes: Vec<Key>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedColumn {
    name: String,
    labels: Kind,
}

pub(super) fn to_json(encoder: SavedAs, mapping: &Mapping) -> Result<String, SavedError> {
    let columns = mapping.columns.iter().zip(mapping.classes.kinds());
    let saved = Saved {
        format: FORMAT.to_owned(),
        version: VERSION,
        encoder,
        name: mapping.name.clone(),
        columns: columns
            .map(|(name, labels)| SavedColumn { name: name.clone(), labels: *labels })
            .collect(),
        unseen: mapping.rules.unseen,
        nulls: mapping.rules.nulls,
        classes: mapping.classes.keys().to_vec(),
    };
    serde_json::to_string_pretty(&saved).map_err(|source| SavedError::Json { source })
}

pub(super) fn from_json(expected: SavedAs, text: &str) -> Result<Mapping, SavedError> {
    let json = |source| SavedError::Json { source };
    let header: Header = serde_json::from_str(text).map_err(json)?;
    if header.format != FORMAT {
        let found = format!("JSON of format {:?}", header.format);
        return Err(SavedError::Other { expected: expected.name(), found });
    }
    if header.version != VERSION {
        return Err(SavedError::Version { found: header.version, supported: VERSION });
    }
    let saved: Saved = serde_json::from_str(text).map_err(json)?;
    if saved.encoder != expected {
        return Err(SavedError::Other {
            expected: expected.name(),
            found: saved.encoder.name().to_owned(),
        });
    }
    let (columns, kinds): (Vec<String>, Vec<Kind>) =
        saved.columns.into_iter().map(|column| (column.name, column.labels)).unzip();
    check_columns(&saved.name, &columns)?;
    if expected == SavedAs::Label && columns.len() != 1 {
        return Err(KeyError::Columns { encoder: saved.name, columns }.into());
    }
    let rules = Rules { unseen: saved.unseen, nulls: saved.nulls };
    for (code, key) in saved.classes.iter().enumerate() {
        check_key(&saved.name, code, key, &kinds, rules)?;
    }
    let classes = Classes::new(&saved.name, kinds, saved.classes)?;
    Ok(Mapping { name: saved.name, columns, rules, classes })
}

/// Fails unless the columns are distinct and there is at least one.
pub(super) fn check_columns(encoder: &str, columns: &[String]) -> Result<(), KeyError> {
    let is_twice = (1..columns.len()).any(|idx| columns[..idx].contains(&columns[idx]));
    if columns.is_empty() || is_twice {
        return Err(KeyError::Columns { encoder: encoder.to_owned(), columns: columns.to_vec() });
    }
    Ok(())
}

fn check_key(
    encoder: &str,
    code: usize,
    key: &Key,
    kinds: &[Kind],
    rules: Rules,
) -> Result<(), SavedError> {
    let fits = |(label, kind): (&Label<String>, &Kind)| match label.kind() {
        Some(found) => found == *kind,
        None => rules.nulls == Nulls::Class,
    };
    if key.len() == kinds.len() && key.iter().zip(kinds).all(fits) {
        return Ok(());
    }
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let nulls = if rules.nulls == Nulls::Class { "" } else { " and no nulls" };
    Err(SavedError::Class {
        encoder: encoder.to_owned(),
        code,
        label: format_key(key.iter().map(Label::borrowed)),
        expected: format!("{}{nulls}", names.join(", ")),
    })
}

/// Replaces the file atomically: writes a temporary file beside it, then renames that.
pub(super) fn write(path: &Path, text: &str) -> Result<(), SavedError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = write_durably(&partial, text).and_then(|()| fs::rename(&partial, path));
    written.map_err(|source| {
        // A leftover temporary file is harmless, and the first error matters more.
        drop(fs::remove_file(&partial));
        SavedError::File { what: "write", path: path.to_owned(), source }
    })
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

pub(super) fn read(path: &Path) -> Result<String, SavedError> {
    fs::read_to_string(path).map_err(|source| SavedError::File {
        what: "read",
        path: path.to_owned(),
        source,
    })
}
