//! Writes a new experiment in the layout of the CELLxGENE Census: streamed, in bounded memory.
//!
//! [`ExperimentWriter::finish`] writes the experiment's own group last. In a folder it appears
//! whole, with its members and metadata; in an object store, the metadata that make it an
//! experiment are written after its members. Until then nothing opens as an experiment, so an
//! incomplete one is never mistaken for a complete one.
//!
//! In a folder everything is written natively. libtiledb writes to object stores, writes layers of
//! X with filters that are not written natively, and merges fragments; each of these is an error in
//! a build without it.

mod cells;
mod check;
mod column;
mod frame;
mod layout;
mod matrix;
mod store;
#[cfg(feature = "libtiledb")]
mod through_libtiledb;

use arrow_array::RecordBatch;
use storage::Config;
use tiledb_schema::ObjectType;

use crate::Error;
pub use column::{ColumnKind, ColumnSpec};
use frame::FrameWriter;
pub use layout::XLayout;
use matrix::MatrixWriter;
use store::Store;

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
    /// timestamp, and the old fragments are removed. libtiledb does this; in a folder a single
    /// fragment stays as it is.
    pub consolidate: bool,
    /// TileDB's parameters. Of these the native writer takes the number of threads,
    /// `sm.compute_concurrency_level`; by default it has one per processor.
    pub config: Config,
}

/// Writes a new experiment: obs and var in pieces, X row by row, in any order of these three.
#[derive(Debug)]
pub struct ExperimentWriter {
    store: Store,
    uri: String,
    spec: ExperimentSpec,
    obs: FrameWriter,
    var: FrameWriter,
    layers: Vec<MatrixWriter>,
}

impl ExperimentWriter {
    /// Creates the arrays of a new experiment at `uri`, which must not exist yet: a local path, or
    /// an address in an object store. Settings come from the config and the environment, as for
    /// [opening](crate::OpenOptions::config) an experiment.
    ///
    /// # Errors
    /// [`Error::WriteNeedsLibtiledb`] in a build without libtiledb, for what only it writes;
    /// [`Error::Write`] for a specification that cannot be; [`Error::Destination`] if something is
    /// there already.
    pub fn create(uri: &str, spec: ExperimentSpec) -> Result<Self, Error> {
        let uri = crate::soma_object::trimmed(uri)?;
        check::check(&spec, &uri)?;
        let store = Store::open(&uri, &spec)?;
        let measurement = format!("{uri}/ms/{}", spec.measurement);
        store.create_folders(
            &uri,
            &[&format!("{uri}/ms"), &measurement, &format!("{measurement}/X")],
        )?;
        let frame = |place: String, columns: &[ColumnSpec], n_rows| {
            FrameWriter::create(&store, place, columns, n_rows, spec.extent)
        };
        let obs = frame(format!("{uri}/obs"), &spec.obs, spec.n_obs)?;
        let var = frame(format!("{measurement}/var"), &spec.var, spec.n_var)?;
        let layers = spec.layers.iter();
        let layers = layers
            .map(|layer| MatrixWriter::create(&store, format!("{measurement}/X/{layer}"), &spec))
            .collect::<Result<_, _>>()?;
        Ok(Self { store, uri, spec, obs, var, layers })
    }

    /// Makes `n_threads` threads of this process encode and write the cells of X, and fails if
    /// libtiledb would write them. Call this before writing rows of X.
    ///
    /// # Errors
    /// [`Error::Write`] if X is not in a folder, or writing it has begun; [`Error::Native`] if only
    /// libtiledb can write the array.
    pub fn write_x_natively(&mut self, n_threads: usize) -> Result<(), Error> {
        self.layers.iter_mut().try_for_each(|layer| layer.write_natively(n_threads))
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
        let Self { store, uri, spec, obs, var, layers } = self;
        obs.finish()?;
        var.finish()?;
        for layer in layers {
            store.merge_fragments(&layer.finish()?)?;
        }
        let measurement = format!("{uri}/ms/{}", spec.measurement);
        let layers: Vec<_> =
            spec.layers.iter().map(|layer| (layer.as_str(), ObjectType::Array)).collect();
        let (group, array) = (ObjectType::Group, ObjectType::Array);
        let x = format!("{measurement}/X");
        store.create_group(&x, "SOMACollection", &layers)?;
        let members = [("var", array), ("X", group)];
        store.create_group(&measurement, "SOMAMeasurement", &members)?;
        let members = [(spec.measurement.as_str(), group)];
        store.create_group(&format!("{uri}/ms"), "SOMACollection", &members)?;
        store.create_group(&uri, "SOMAExperiment", &[("obs", array), ("ms", group)])
    }
}
