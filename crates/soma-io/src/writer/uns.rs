//! Writes the collection `uns` in tiledbsoma's form, of which there is no specification: see
//! [`_ingest_uns_dict`](https://github.com/single-cell-data/TileDB-SOMA/blob/main/apis/python/src/tiledbsoma/io/ingest.py).
//!
//! A single value is an item of the collection's metadata, a list of strings a data frame with the
//! column `values`, and a group a collection within.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeStringArray, RecordBatch};
use tiledb::{MetadataValue, ObjectType};

use super::frame::FrameWriter;
use super::store::Store;
use super::{ColumnKind, ColumnSpec, ExperimentSpec, check};
use crate::Error;
use crate::uns::{Uns, UnsValue};

/// What marks a collection as uns.
const KIND: (&str, &str) = ("soma_tiledbsoma_type", "uns");
/// What marks a data frame as a list of strings.
const LIST: (&str, &str) = ("soma_uns_outgest_hint", "array_1d");
/// The column of such a data frame.
const VALUES: &str = "values";

/// Writes the collection at `uri`, and returns what cannot be written, with the reason.
pub(super) fn write(
    store: &Store,
    uri: &str,
    uns: &Uns,
    spec: &ExperimentSpec,
) -> Result<Vec<(String, String)>, Error> {
    let mut writer = UnsWriter { store, spec, left_out: uns.left_out.clone() };
    writer.collection(uri, &uns.values, "")?;
    writer.left_out.sort();
    Ok(writer.left_out)
}

struct UnsWriter<'a> {
    store: &'a Store,
    spec: &'a ExperimentSpec,
    left_out: Vec<(String, String)>,
}

impl UnsWriter<'_> {
    /// Writes a collection with these values, whose paths within uns begin with `path`.
    fn collection(
        &mut self,
        uri: &str,
        values: &[(String, UnsValue)],
        path: &str,
    ) -> Result<(), Error> {
        self.store.create_folders(uri, &[])?;
        let mut metadata = vec![(KIND.0, MetadataValue::from(KIND.1))];
        let mut members = Vec::new();
        for (name, value) in values {
            let whole = format!("{path}{name}");
            if let Err(why) = check_name(name, value) {
                self.left_out.push((whole, why));
                continue;
            }
            match value {
                UnsValue::Single(value) => metadata.push((name.as_str(), value.clone())),
                UnsValue::Texts(texts) => {
                    self.texts(&format!("{uri}/{}", check::folder_of(name)), texts)?;
                    members.push((name.as_str(), ObjectType::Array));
                }
                UnsValue::Group(within) => {
                    self.collection(
                        &format!("{uri}/{}", check::folder_of(name)),
                        within,
                        &format!("{whole}/"),
                    )?;
                    members.push((name.as_str(), ObjectType::Group));
                }
            }
        }
        self.store.create_group(uri, "SOMACollection", &members, &metadata)
    }

    /// Writes a list of strings as a data frame.
    fn texts(&self, uri: &str, texts: &[String]) -> Result<(), Error> {
        let columns = [ColumnSpec::new(VALUES, ColumnKind::Text)];
        let (n_rows, extent) = (texts.len() as u64, self.spec.extent);
        let mark = [(LIST.0, MetadataValue::from(LIST.1))];
        let mut frame =
            FrameWriter::marked(self.store, uri.to_owned(), &columns, n_rows, extent, &mark)?;
        if frame.n_written() > 0 {
            return frame.finish();
        }
        let values: ArrayRef = Arc::new(LargeStringArray::from_iter_values(texts));
        let rows = RecordBatch::try_from_iter([(VALUES, values)]);
        let failed = |error: arrow_schema::ArrowError| Error::Write {
            what: "a list of uns".into(),
            uri: uri.to_owned(),
            problem: error.to_string(),
        };
        frame.write(&rows.map_err(failed)?)?;
        frame.finish()
    }
}

/// The reason why a value of this name is not written, as an error.
fn check_name(name: &str, value: &UnsValue) -> Result<(), String> {
    match value {
        UnsValue::Single(_) if name.is_empty() || name.starts_with("soma_") => {
            Err("such names are SOMA's own".to_owned())
        }
        UnsValue::Single(_) => Ok(()),
        UnsValue::Texts(texts) if texts.is_empty() => Err("it is an empty list".to_owned()),
        UnsValue::Texts(_) | UnsValue::Group(_) => check::member("value of uns", name),
    }
}
