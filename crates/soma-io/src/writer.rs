//! Writes a new experiment in the layout of the CELLxGENE Census: streamed, in bounded memory.
//!
//! [`ExperimentWriter::finish`] writes the experiment's own group last. Until then nothing opens as
//! an experiment, so an incomplete one is never mistaken for a complete one.

mod cells;
mod check;
mod column;
mod frame;
mod layout;
mod matrix;

use std::sync::Arc;

use arrow_array::RecordBatch;
use storage::Config;
use tiledb::{Array, Context, Group, WriteOrder, WriteQuery};

use crate::Error;
use crate::soma_object::{CURRENT_ENCODING, ENCODING_VERSION, OBJECT_TYPE};
pub use column::{ColumnKind, ColumnSpec};
use frame::FrameWriter;
pub use layout::XLayout;
use matrix::MatrixWriter;

/// How arrays record their extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// A huge domain, and a current domain of the used size, as tiledbsoma has written since 1.15.
    #[default]
    CurrentDomain,
    /// A domain of the used size, as older versions write it.
    FixedDomain,
}

/// The specification of a new experiment.
#[derive(Debug, Clone)]
pub struct ExperimentSpec {
    /// Number of cells, at least one: obs joinids are `0..n_obs`.
    pub n_obs: u64,
    /// Number of genes, at least one: var joinids are `0..n_var`.
    pub n_var: u64,
    /// The columns of obs.
    pub obs: Vec<ColumnSpec>,
    /// The columns of var.
    pub var: Vec<ColumnSpec>,
    /// The measurement, for example `RNA`.
    pub measurement: String,
    /// The layers of X, for example `raw`; values are 32-bit floats.
    pub layers: Vec<String>,
    /// How arrays record their extent.
    pub extent: Extent,
    /// How the cells of X are arranged on storage.
    pub x_layout: XLayout,
    /// Ends a fragment of X after at least this many rows, rounded to whole rows of tiles. `None`
    /// writes each layer as one fragment.
    pub fragment_rows: Option<u64>,
    /// Whether to merge the fragments of X at the end, as the Census does: each cell keeps its
    /// timestamp, and the old fragments are removed.
    pub consolidate: bool,
    /// TileDB's parameters.
    pub config: Config,
}

/// Writes a new experiment: obs and var in pieces, X row by row, in any order of these three.
#[derive(Debug)]
pub struct ExperimentWriter {
    context: Context,
    uri: String,
    spec: ExperimentSpec,
    obs: FrameWriter,
    var: FrameWriter,
    layers: Vec<MatrixWriter>,
}

/// Size limits of one enumeration, and of all enumerations of an array, unless the config sets
/// them. libtiledb's own limits of 10 and 50 MiB are full with about 300,000 names of cells.
const ENUMERATIONS: [(&str, u64); 2] =
    [("sm.enumerations_max_size", 1 << 32), ("sm.enumerations_max_total_size", 1 << 33)];

impl ExperimentWriter {
    /// Creates the arrays of a new experiment at `uri`, which must not exist yet: a local path, or
    /// an address in an object store. Settings come from the config and the environment, as for
    /// [opening](crate::OpenOptions::config) an experiment.
    pub fn create(uri: &str, spec: ExperimentSpec) -> Result<Self, Error> {
        let uri = crate::soma_object::trimmed(uri)?;
        check::check(&spec, &uri)?;
        let mut config = storage::complete_config(&uri, &spec.config)?;
        for (name, bytes) in ENUMERATIONS {
            config.entry(name.to_owned()).or_insert_with(|| bytes.to_string());
        }
        let context = Context::new(&config)?;
        let vfs = tiledb::Vfs::new(&context)?;
        if vfs.is_file(&uri)? || (vfs.is_dir(&uri)? && !vfs.ls(&uri)?.is_empty()) {
            return Err(storage::DestinationError::Exists { uri }.into());
        }
        let measurement = format!("{uri}/ms/{}", spec.measurement);
        for folder in [&uri, &format!("{uri}/ms"), &measurement, &format!("{measurement}/X")] {
            if !vfs.is_dir(folder)? {
                vfs.create_dir(folder)?;
            }
        }
        let obs = FrameWriter::create(
            &context,
            format!("{uri}/obs"),
            &spec.obs,
            spec.n_obs,
            spec.extent,
        )?;
        let var = FrameWriter::create(
            &context,
            format!("{measurement}/var"),
            &spec.var,
            spec.n_var,
            spec.extent,
        )?;
        let layers = spec
            .layers
            .iter()
            .map(|layer| MatrixWriter::create(&context, format!("{measurement}/X/{layer}"), &spec))
            .collect::<Result<_, _>>()?;
        Ok(Self { context, uri, spec, obs, var, layers })
    }

    /// Makes `n_threads` threads of this process encode and write the cells of X instead of
    /// libtiledb, several times as fast. Each layer becomes one fragment, which counts when
    /// [`Self::finish`] has synced it to disk. Call this before writing rows of X.
    ///
    /// # Errors
    /// [`Error::Write`] if X is not in a folder, or should have several fragments;
    /// [`Error::Native`] if only libtiledb can write the array.
    pub fn write_x_natively(&mut self, n_threads: usize) -> Result<(), Error> {
        let several = self.spec.fragment_rows.is_some() || self.spec.consolidate;
        self.layers.iter_mut().try_for_each(|layer| layer.write_natively(n_threads, several))
    }

    /// Writes the next rows of obs: the columns of the specification, by name, without
    /// `soma_joinid`, which is numbered automatically.
    ///
    /// Texts may be `Utf8` or `LargeUtf8`; categories may be either, or dictionaries of them.
    pub fn write_obs(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.obs.write(rows)
    }

    /// Writes the next rows of var, like [`Self::write_obs`].
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
        let at = self.spec.layers.iter().position(|name| name == layer).ok_or_else(|| {
            Error::NoMember {
                uri: self.uri.clone(),
                kind: "layer of X",
                name: layer.to_owned(),
                existing: self.spec.layers.clone(),
            }
        })?;
        self.layers[at].write(row_offsets, columns, values)
    }

    /// Completes the arrays, and creates the groups that contain them. Fails if obs, var or a layer
    /// has another number of rows than specified.
    pub fn finish(self) -> Result<(), Error> {
        let Self { context, uri, spec, obs, var, layers } = self;
        obs.finish()?;
        var.finish()?;
        for layer in layers {
            let at = layer.finish()?;
            if spec.consolidate {
                consolidate(&context, &at)?;
            }
        }
        let measurement = format!("{uri}/ms/{}", spec.measurement);
        let layers: Vec<&str> = spec.layers.iter().map(String::as_str).collect();
        make_group(&context, &format!("{measurement}/X"), "SOMACollection", &layers)?;
        make_group(&context, &measurement, "SOMAMeasurement", &["var", "X"])?;
        make_group(&context, &format!("{uri}/ms"), "SOMACollection", &[&spec.measurement])?;
        make_group(&context, &uri, "SOMAExperiment", &["obs", "ms"])
    }
}

fn make_group(
    context: &Context,
    uri: &str,
    object_type: &str,
    members: &[&str],
) -> Result<(), Error> {
    Group::create(context, uri)?;
    let group = Group::open_for_writing(context, uri)?;
    if object_type == "SOMAExperiment" {
        group.put_metadata("dataset_type", &"soma".into())?;
    }
    for (key, value) in identity(object_type) {
        group.put_metadata(key, &value.into())?;
    }
    for member in members {
        group.add_relative(member)?;
    }
    Ok(group.close()?)
}

/// The metadata that makes an array or a group a SOMA object.
fn identity(object_type: &str) -> [(&'static str, &str); 2] {
    [(OBJECT_TYPE, object_type), (ENCODING_VERSION, CURRENT_ENCODING)]
}

/// Marks a new array as a SOMA object.
fn mark(context: &Context, uri: &str, object_type: &str) -> Result<(), Error> {
    let array = Array::open_for_writing(context, uri, None)?;
    for (key, value) in identity(object_type) {
        array.put_metadata(key, &value.into())?;
    }
    Ok(array.close()?)
}

/// Opens an array for writing cells in the array's own order.
fn open_write(context: &Context, uri: &str) -> Result<WriteQuery, Error> {
    let array = Arc::new(Array::open_for_writing(context, uri, None)?);
    Ok(WriteQuery::new(&array, WriteOrder::Global)?)
}

/// Memory for consolidation, unless the config sets it: 2 GiB, a sixteenth of it for buffers. By
/// default libtiledb takes up to 10 GiB, and fills a sixth of that with zeros, even for a small
/// array.
const CONSOLIDATION_MEMORY: [(&str, u64); 4] = [
    ("sm.mem.total_budget", 2 << 30),
    ("sm.mem.consolidation.buffers_weight", 1),
    ("sm.mem.consolidation.reader_weight", 12),
    ("sm.mem.consolidation.writer_weight", 3),
];

/// Merges the fragments of an array, with a timestamp for each cell, and its metadata, and removes
/// the merged ones.
fn consolidate(context: &Context, uri: &str) -> Result<(), Error> {
    for mode in ["fragments", "fragment_meta", "commits"] {
        let mut changes = vec![
            ("sm.consolidation.mode", mode.to_owned()),
            ("sm.consolidation.with_timestamps", "true".to_owned()),
            ("sm.vacuum.mode", mode.to_owned()),
        ];
        let own =
            CONSOLIDATION_MEMORY.iter().filter(|(name, _)| !context.config().contains_key(*name));
        changes.extend(own.map(|(name, value)| (*name, value.to_string())));
        let upkeep = context.with(&changes)?;
        Array::consolidate(&upkeep, uri)?;
        Array::vacuum(&upkeep, uri)?;
    }
    Ok(())
}
