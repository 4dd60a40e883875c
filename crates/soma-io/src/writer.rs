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
mod measurement;
mod store;
#[cfg(feature = "libtiledb")]
mod through_libtiledb;
mod unfinished;
mod uns;

use arrow_array::RecordBatch;
use storage::Config;
use tiledb::ObjectType;

use crate::{Error, Uns};
pub use column::{ColumnKind, ColumnSpec};
use frame::FrameWriter;
pub use layout::XLayout;
pub use measurement::MeasurementWriter;
use measurement::Parts;
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
    /// TileDB's parameters. The native writer takes the number of threads,
    /// `sm.compute_concurrency_level`; by default it has one per processor.
    pub config: Config,
}

/// Writes a new experiment: obs and var in pieces, X row by row, in any order of these three.
///
/// Arrays of obsm, uns and further measurements can be added before rows are written.
#[derive(Debug)]
pub struct ExperimentWriter {
    store: Store,
    uri: String,
    spec: ExperimentSpec,
    obs: FrameWriter,
    /// The measurement of the specification.
    main: MeasurementWriter,
    /// Those that were added.
    others: Vec<MeasurementWriter>,
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
        Self::open(uri, spec, false)
    }

    /// Goes on with the experiment in the folder `uri` that a writer of the same specification
    /// began and did not finish; begins it if there is none.
    ///
    /// What counts is kept: tables that were written to the end, and complete
    /// [fragments](ExperimentSpec::fragment_rows) of the matrices. Everything else in the folder is
    /// removed. [`Self::n_obs_written`] and its like of the measurements say from which row on to
    /// write: give the same rows as the first writer did.
    ///
    /// # Errors
    /// Those of [`Self::create`]; [`Error::Native`] if an array that is there cannot be read;
    /// [`Error::WriteNeedsLibtiledb`] for an address in an object store.
    pub fn resume(uri: &str, spec: ExperimentSpec) -> Result<Self, Error> {
        let folder = store::folder(uri)?;
        if folder.is_dir() {
            unfinished::keep_rows(&folder)?;
        }
        Self::open(uri, spec, true)
    }

    fn open(uri: &str, spec: ExperimentSpec, resumes: bool) -> Result<Self, Error> {
        let uri = crate::soma_object::trimmed(uri)?;
        check::check(&spec, &uri)?;
        let store = Store::open(&uri, &spec, resumes)?;
        let measurement = format!("{uri}/ms/{}", check::folder_of(&spec.measurement));
        store.create_folders(
            &uri,
            &[&format!("{uri}/ms"), &measurement, &format!("{measurement}/X")],
        )?;
        let obs =
            FrameWriter::create(&store, format!("{uri}/obs"), &spec.obs, spec.n_obs, spec.extent)?;
        let parts = Parts {
            name: &spec.measurement,
            n_var: spec.n_var,
            var: &spec.var,
            layers: &spec.layers,
        };
        let main = MeasurementWriter::create(&store, &uri, &parts, &spec)?;
        Ok(Self { store, uri, spec, obs, main, others: Vec::new() })
    }

    /// Adds a measurement of the same cells, for example `raw`, and returns its writer.
    ///
    /// # Errors
    /// [`Error::Write`] for a specification that cannot be, or a name that is taken.
    pub fn add_measurement(
        &mut self,
        name: &str,
        n_var: u64,
        var: &[ColumnSpec],
        layers: &[String],
    ) -> Result<&mut MeasurementWriter, Error> {
        let names = self.others.iter().map(|other| other.name.as_str());
        let names: Vec<&str> = names.chain([self.main.name.as_str(), name]).collect();
        let parts = Parts { name, n_var, var, layers };
        check::measurement(&parts, &names).map_err(|problem| Error::Write {
            what: "a measurement".into(),
            uri: self.uri.clone(),
            problem,
        })?;
        let uri = format!("{}/ms/{}", self.uri, check::folder_of(name));
        self.store.create_folders(&uri, &[&format!("{uri}/X")])?;
        let added = MeasurementWriter::create(&self.store, &self.uri, &parts, &self.spec)?;
        Ok(self.others.push_mut(added))
    }

    /// Adds an array of obsm to the measurement of the specification: a row for each cell, of
    /// 32-bit floats. [`MeasurementWriter::write_obsm`] writes its rows.
    ///
    /// # Errors
    /// [`Error::Write`] for a name or a number of columns that cannot be.
    pub fn add_obsm(&mut self, name: &str, n_columns: u64) -> Result<(), Error> {
        self.main.add_obsm(&self.store, name, n_columns, &self.spec)
    }

    /// Writes the collection uns of the measurement of the specification, once. Returns the paths
    /// within uns that are left out, and why: those that `uns` names, and values whose names SOMA
    /// cannot have.
    ///
    /// # Errors
    /// [`Error::Destination`] if it was written already.
    pub fn write_uns(&mut self, uns: &Uns) -> Result<Vec<(String, String)>, Error> {
        let place = format!("{}/uns", self.main.uri());
        let left_out = uns::write(&self.store, &place, uns, &self.spec)?;
        self.main.has_uns = true;
        Ok(left_out)
    }

    /// The writer of the measurement of the specification.
    pub fn main_measurement(&mut self) -> &mut MeasurementWriter {
        &mut self.main
    }

    /// Makes `n_threads` threads of this process encode and write the cells of X, and fails if
    /// libtiledb would write them. Call this before writing rows of X.
    ///
    /// # Errors
    /// [`Error::Write`] if X is not in a folder, or writing it has begun; [`Error::Native`] if only
    /// libtiledb can write the array.
    pub fn write_x_natively(&mut self, n_threads: usize) -> Result<(), Error> {
        self.main.write_x_natively(n_threads)
    }

    /// Rows of obs written so far.
    pub fn n_obs_written(&self) -> u64 {
        self.obs.n_written()
    }

    /// Writes the next rows of obs: the columns of the specification, by name, without
    /// `soma_joinid`, which is numbered automatically.
    ///
    /// Texts may be `Utf8` or `LargeUtf8`; categories may be either, or dictionaries of them.
    pub fn write_obs(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.obs.write(rows)
    }

    /// Writes the next rows of var of the specification's measurement, like [`Self::write_obs`].
    pub fn write_var(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.main.write_var(rows)
    }

    /// Writes the next rows of a layer of X of the specification's measurement, as
    /// [`MeasurementWriter::write_x`] does.
    pub fn write_x(
        &mut self,
        layer: &str,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        self.main.write_x(layer, row_offsets, columns, values)
    }

    /// Completes the arrays, and creates the groups that contain them. Fails if obs, var or a layer
    /// has another number of rows than specified.
    pub fn finish(self) -> Result<(), Error> {
        let Self { store, uri, obs, main, others, .. } = self;
        obs.finish()?;
        let mut names = Vec::new();
        for measurement in [main].into_iter().chain(others) {
            names.push(measurement.name.clone());
            measurement.finish(&store)?;
        }
        let (group, array) = (ObjectType::Group, ObjectType::Array);
        let members: Vec<_> = names.iter().map(|name| (name.as_str(), group)).collect();
        store.create_group(&format!("{uri}/ms"), "SOMACollection", &members, &[])?;
        store.create_group(&uri, "SOMAExperiment", &[("obs", array), ("ms", group)], &[])
    }
}
