//! Writes one measurement: var, the layers of X, and the arrays of obsm.

use arrow_array::RecordBatch;
use tiledb::ObjectType;

use super::check::folder_of;
use super::frame::FrameWriter;
use super::matrix::MatrixWriter;
use super::store::Store;
use super::{ColumnSpec, ExperimentSpec, check};
use crate::Error;

/// Writes the rows of a measurement, in any order of its parts.
#[derive(Debug)]
pub struct MeasurementWriter {
    pub(super) name: String,
    uri: String,
    var: FrameWriter,
    layers: Vec<(String, MatrixWriter)>,
    obsm: Vec<(String, MatrixWriter)>,
    pub(super) has_uns: bool,
}

/// The arrays of a new measurement.
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    pub(super) n_var: u64,
    pub(super) var: &'a [ColumnSpec],
    pub(super) layers: &'a [String],
}

impl MeasurementWriter {
    /// Creates var and the layers of a measurement of the experiment at `uri`.
    pub(super) fn create(
        store: &Store,
        uri: &str,
        parts: &Parts<'_>,
        spec: &ExperimentSpec,
    ) -> Result<Self, Error> {
        let uri = format!("{uri}/ms/{}", folder_of(parts.name));
        let place = format!("{uri}/var");
        let var = FrameWriter::create(store, place, parts.var, parts.n_var, spec.extent)?;
        let layer = |name: &String| {
            let place = format!("{uri}/X/{}", folder_of(name));
            Ok((name.clone(), MatrixWriter::create(store, place, parts.n_var, spec)?))
        };
        let layers = parts.layers.iter().map(layer).collect::<Result<_, Error>>()?;
        let name = parts.name.to_owned();
        Ok(Self { name, uri, var, layers, obsm: Vec::new(), has_uns: false })
    }

    /// Creates an array of obsm.
    pub(super) fn add_obsm(
        &mut self,
        store: &Store,
        name: &str,
        n_columns: u64,
        spec: &ExperimentSpec,
    ) -> Result<(), Error> {
        let is_there = self.obsm.iter().any(|(of, _)| of == name);
        check::obsm(name, n_columns, is_there).map_err(|problem| Error::Write {
            what: "an array of obsm".into(),
            uri: self.uri.clone(),
            problem,
        })?;
        if self.obsm.is_empty() {
            store.create_folders(&format!("{}/obsm", self.uri), &[])?;
        }
        let place = format!("{}/obsm/{}", self.uri, folder_of(name));
        self.obsm.push((name.to_owned(), MatrixWriter::create(store, place, n_columns, spec)?));
        Ok(())
    }

    /// The URI of the measurement.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Makes the rows of X be written natively, by this many threads.
    pub(super) fn write_x_natively(&mut self, n_threads: usize) -> Result<(), Error> {
        self.layers.iter_mut().try_for_each(|(_, layer)| layer.write_natively(n_threads))
    }

    /// Rows of var written so far.
    pub fn n_var_written(&self) -> u64 {
        self.var.n_written()
    }

    /// Rows of a layer of X written so far; 0 for a layer that there is not.
    pub fn n_x_written(&self, layer: &str) -> u64 {
        n_written(&self.layers, layer)
    }

    /// Number of values written so far, summed over the layers of X.
    pub fn nnz(&self) -> u64 {
        self.layers.iter().map(|(_, layer)| layer.nnz()).sum()
    }

    /// Rows of an array of obsm written so far; 0 for an array that there is not.
    pub fn n_obsm_written(&self, name: &str) -> u64 {
        n_written(&self.obsm, name)
    }

    /// Writes the next rows of var, like [`ExperimentWriter::write_obs`].
    ///
    /// [`ExperimentWriter::write_obs`]: crate::ExperimentWriter::write_obs
    pub fn write_var(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.var.write(rows)
    }

    /// Writes the next rows of a layer of X as CSR: row `i` has the columns
    /// `columns[row_offsets[i]..row_offsets[i + 1]]`, strictly ascending, and the values at the
    /// same places.
    pub fn write_x(
        &mut self,
        layer: &str,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        let writer = of_name(&self.uri, "layer of X", &mut self.layers, layer)?;
        writer.write(row_offsets, columns, values)
    }

    /// Writes the next rows of an array of obsm, like [`Self::write_x`].
    pub fn write_obsm(
        &mut self,
        name: &str,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        let writer = of_name(&self.uri, "array of obsm", &mut self.obsm, name)?;
        writer.write(row_offsets, columns, values)
    }

    /// Completes the arrays, and creates the groups that contain them.
    pub(super) fn finish(self, store: &Store) -> Result<(), Error> {
        let Self { uri, var, layers, obsm, has_uns, .. } = self;
        var.finish()?;
        let (group, array) = (ObjectType::Group, ObjectType::Array);
        let mut members = vec![("var", array)];
        let collections = [("X", layers, true), ("obsm", obsm, false)];
        for (collection, matrices, is_always) in collections {
            let mut names = Vec::new();
            for (name, matrix) in matrices {
                store.merge_fragments(&matrix.finish()?)?;
                names.push(name);
            }
            if is_always || !names.is_empty() {
                let arrays: Vec<_> = names.iter().map(|name| (name.as_str(), array)).collect();
                let place = format!("{uri}/{collection}");
                store.create_group(&place, "SOMACollection", &arrays, &[])?;
                members.push((collection, group));
            }
        }
        if has_uns {
            members.push(("uns", group));
        }
        store.create_group(&uri, "SOMAMeasurement", &members, &[])
    }
}

fn n_written(matrices: &[(String, MatrixWriter)], name: &str) -> u64 {
    matrices.iter().find(|(of, _)| of == name).map_or(0, |(_, matrix)| matrix.n_written())
}

fn of_name<'a>(
    uri: &str,
    kind: &'static str,
    matrices: &'a mut [(String, MatrixWriter)],
    name: &str,
) -> Result<&'a mut MatrixWriter, Error> {
    let at = matrices.iter().position(|(of, _)| of == name).ok_or_else(|| Error::NoMember {
        uri: uri.to_owned(),
        kind,
        name: name.to_owned(),
        existing: matrices.iter().map(|(of, _)| of.clone()).collect(),
    })?;
    Ok(&mut matrices[at].1)
}
