//! Experiments and measurements: the collections that contain obs, var and X.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use storage::{Config, ReadLimit};

#[cfg(feature = "anndata")]
use crate::anndata::find_anndata;
use crate::error::Unnamed;
use crate::soma_object::{Collection, Place, gather, trimmed};
use crate::{DataFrame, Error, Matrix, NdArray, ReaderChoice, Uns, census};

/// Options for opening an experiment.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// TileDB's parameters, for example `vfs.s3.region`, for libtiledb and the native reader alike.
    /// Missing settings of an `s3://` address come from the variables `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` and so on, and from the files of the profile
    /// `AWS_PROFILE`. A failed request to an object store is repeated up to
    /// `vfs.s3.connect_max_tries` times (native reader: 8), with growing pauses.
    ///
    /// Eight parameters are our own:
    /// - `soma.init_buffer_bytes`: buffer for each column of a read of X, in bytes (default
    ///   [`NdArray::BUFFER_BYTES`]);
    /// - `soma.retry_limit_ms`: time after which the native reader does not repeat a request
    ///   (60,000);
    /// - `soma.request_limit_ms`: time limit of one request (120,000);
    /// - `vfs.s3.max_parallel_ops` (with `gcs` or `azure` in place of `s3`), and
    ///   `soma.http.max_parallel_ops` for addresses `http://` and `https://`: most requests under
    ///   way;
    /// - `soma.forbidden_is_missing`: the answer 403 for an object means that there is none, as
    ///   buckets that may not be listed answer (false);
    /// - `soma.cache_folder`: folder in which the native reader caches what it fetched of X, obs,
    ///   var and obsm (no cache by default);
    /// - `soma.cache_limit_bytes`: size limit of that cache (32 GiB);
    /// - `soma.row_cache_folder`: folder in which decoded rows of X and of the matrices beside it
    ///   are kept as they are read back fast, if the native reader reads them
    ///   ([`RowCacheReader`](crate::RowCacheReader); no cache by default);
    /// - `soma.row_cache_limit_bytes`: size limit of that cache (32 GiB);
    /// - `soma.genome`: genome that is read of a `.h5` file that Cell Ranger wrote before version
    ///   3, if it has several.
    pub config: Config,
    /// The time as of which everything is read, in milliseconds since 1970; `None` means now.
    pub timestamp: Option<u64>,
    /// Reader of groups, metadata, obs and var; X has [a choice of its
    /// own](Matrix::reader). With [`ReaderChoice::Auto`] everything is read natively except
    /// what only libtiledb supports ([`DataFrame::why_not_native`]), which needs the feature
    /// `libtiledb`.
    pub reader: ReaderChoice,
}

/// A `SOMAExperiment`: cells in obs, measurements in ms; or an AnnData in Zarr.
///
/// In an AnnData, version 2 or 3 of Zarr, the measurement `RNA` has its var, X as the layer `X`,
/// its layers and obsm, and the measurement `raw` the element `raw`. A row's joinid is its
/// position. An index without a name is the column `obs_id` of obs, and `var_id` of var.
///
/// In a MuData the modalities are the measurements, and obs has all cells, with a column `rna:name`
/// for each column of a modality's own obs. [`Measurement::present`] says which cells a modality
/// has.
#[derive(Debug, Clone)]
pub struct Experiment {
    stored: Arc<dyn StoredExperiment>,
}

/// An experiment in one of the two formats.
pub(crate) trait StoredExperiment: Debug + Send + Sync {
    fn uri(&self) -> &str;
    fn obs(&self) -> Result<DataFrame, Error>;
    fn measurements(&self) -> Result<Vec<String>, Error>;
    fn measurement(&self, name: &str) -> Result<Measurement, Error>;
    /// The measurements that are meant if none is named, as far as they exist; the first comes
    /// first.
    fn usual_measurements(&self) -> &'static [&'static str] {
        &["RNA"]
    }
    /// The same, whose matrices are read with a limit on the rate.
    fn with_read_limit(&self, limit: Arc<ReadLimit>) -> Arc<dyn StoredExperiment>;
    fn is_anndata(&self) -> bool {
        false
    }
    fn anndata_version(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }
    fn unread_elements(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(Vec::new())
    }
}

/// A measurement in one of the two formats.
pub(crate) trait StoredMeasurement: Debug + Send + Sync {
    fn uri(&self) -> &str;
    fn var(&self) -> Result<DataFrame, Error>;
    fn layers(&self) -> Result<Vec<String>, Error>;
    /// The layers that are meant if none is named, as far as they exist; the first comes first.
    fn usual_layers(&self) -> &'static [&'static str];
    fn x(&self, layer: &str) -> Result<Matrix, Error>;
    fn obsm_names(&self) -> Result<Vec<String>, Error>;
    fn obsm(&self, name: &str) -> Result<Matrix, Error>;
    fn obsp_names(&self) -> Result<Vec<String>, Error>;
    fn obsp(&self, name: &str) -> Result<Matrix, Error>;
    fn present(&self) -> Result<Option<BooleanBuffer>, Error> {
        Ok(None)
    }
    fn uns(&self) -> Result<Option<Uns>, Error> {
        Ok(None)
    }
}

impl Experiment {
    /// Opens the experiment at `uri`: a local path, an address in an object store (`s3://`,
    /// `gs://`, `gcs://`, `azure://`), another address that libtiledb supports, or a short name of
    /// the Census. `census://2025-11-08/homo_sapiens` means the human cells of that release, in
    /// folder `cell-census/2025-11-08/soma/census_data/homo_sapiens` of the bucket
    /// `cellxgene-census-public-us-west-2`. It is read from the region us-west-2 without signing,
    /// unless the config has other settings.
    ///
    /// A MuData is opened like an AnnData, as `.h5mu` or in Zarr.
    ///
    /// An AnnData may also be at `http://` and `https://`, as `.h5ad`, or as Zarr with consolidated
    /// metadata: such a server lists no files.
    ///
    /// A matrix of 10x Genomics in HDF5, `.h5`, is opened like an AnnData.
    ///
    /// In an object store, schemas, metadata and lists of files are requested together and
    /// remembered: the experiment stays as it was when it, or the part in question, was opened. If
    /// another program has removed files since, for example by vacuuming consolidated fragments,
    /// reading fails with an error that says so; open the experiment again.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::NotA`] if no experiment is there; [`Error::Address`] and
    /// [`Error::Census`] for an invalid address or release; [`Error::Storage`] and
    /// [`Error::Native`] if the store cannot be reached or refuses, or if a file is damaged;
    /// [`Error::NeedsLibtiledb`] if only libtiledb can read it.
    pub fn open(uri: &str, options: &OpenOptions) -> Result<Self, Error> {
        let uri = trimmed(uri)?;
        let (uri, config) = census::resolved(&uri, &options.config)?;
        let place = Place::of_root(&uri, &config, options)?;
        // A single file, or a server without listings, can only hold AnnData.
        let is_web = place.is_on_the_web();
        if (place.names_hdf5() || is_web)
            && let Some(stored) = find_anndata(&place)?
        {
            return Ok(Self { stored });
        }
        if is_web {
            let found = "no root of one".to_owned();
            return Err(Error::NotA { uri: uri.into_owned(), wanted: "AnnData", found });
        }
        let gathered = gather::experiment(&place);
        let opened = gathered.and_then(|()| Collection::open(place.clone(), &["SOMAExperiment"]));
        match opened {
            Ok(members) => Ok(Self { stored: Arc::new(members) }),
            // AnnData comes last: checking for it first costs remote SOMA an extra request.
            Err(not_soma @ Error::NotA { .. }) => {
                find_anndata(&place)?.map(|stored| Self { stored }).ok_or(not_soma)
            }
            Err(error) => Err(error),
        }
    }

    /// Limits the rate at which the native reader reads X, together with all other readers that
    /// share this limit. obs, var and the metadata read on opening are not limited; if libtiledb
    /// would read X, opening a reader fails.
    #[must_use]
    pub fn with_read_limit(self, limit: Arc<ReadLimit>) -> Self {
        Self { stored: self.stored.with_read_limit(limit) }
    }

    /// The experiment's URI.
    pub fn uri(&self) -> &str {
        self.stored.uri()
    }

    /// Whether it is an AnnData, in Zarr or HDF5.
    pub fn is_anndata(&self) -> bool {
        self.stored.is_anndata()
    }

    /// Identifies the state of an AnnData's files: of an HDF5 file its last change, in Zarr those
    /// of its metadata and of the first chunk of each array. `None` for a SOMA experiment.
    ///
    /// # Errors
    /// [`Error::AnnData`] if the storage cannot be reached or refuses.
    pub fn anndata_version(&self) -> Result<Option<String>, Error> {
        self.stored.anndata_version()
    }

    /// The elements of an AnnData that are not read, by their paths, each with the reason: those of
    /// obsp (which [`Measurement::obsp`] reads), varm and varp, and what only some data sets of a
    /// collection have. Columns and values of uns have lists of their own
    /// ([`DataFrame::unread_columns`], [`Uns::left_out`]). Empty for a SOMA experiment.
    ///
    /// # Errors
    /// [`Error::AnnData`] if the storage cannot be reached or refuses.
    pub fn unread_elements(&self) -> Result<Vec<(String, String)>, Error> {
        self.stored.unread_elements()
    }

    /// The cells.
    pub fn obs(&self) -> Result<DataFrame, Error> {
        self.stored.obs()
    }

    /// The names of the measurements.
    pub fn measurements(&self) -> Result<Vec<String>, Error> {
        self.stored.measurements()
    }

    /// Opens a measurement, for example `RNA`.
    pub fn measurement(&self, name: &str) -> Result<Measurement, Error> {
        self.stored.measurement(name)
    }

    /// The name of the measurement that is meant if none is named: `RNA`, in a MuData `rna`, or
    /// else the only one.
    ///
    /// # Errors
    /// [`Error::Unnamed`] if there are several others, or none; those of
    /// [`measurements`](Self::measurements).
    pub fn default_measurement(&self) -> Result<String, Error> {
        meant(
            self.uri(),
            Unnamed::Measurement,
            self.stored.usual_measurements(),
            self.measurements()?,
        )
    }

    /// The names of a measurement and of a layer of its X. One that is `None` is
    /// [`default_measurement`](Self::default_measurement) or
    /// [`default_layer`](Measurement::default_layer); those that are given need not exist.
    ///
    /// # Errors
    /// Those of the two.
    pub fn names(
        &self,
        measurement: Option<&str>,
        layer: Option<&str>,
    ) -> Result<(String, String), Error> {
        let measurement =
            measurement.map_or_else(|| self.default_measurement(), |name| Ok(name.to_owned()))?;
        let layer = match layer {
            Some(name) => name.to_owned(),
            None => self.measurement(&measurement)?.default_layer()?,
        };
        Ok((measurement, layer))
    }
}

/// The name that is meant if none is given: the first of `usual` that exists, or the only one.
fn meant(
    uri: &str,
    what: Unnamed,
    usual: &'static [&'static str],
    existing: Vec<String>,
) -> Result<String, Error> {
    let is_there = |name: &&&str| existing.iter().any(|other| other == **name);
    match (usual.iter().find(is_there), existing.as_slice()) {
        (Some(name), _) => Ok((*name).to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Error::Unnamed { uri: uri.to_owned(), what, usual, existing }),
    }
}

/// The collection of measurements.
const MEASUREMENTS: &str = "ms";
/// The collection of layers.
const LAYERS: &str = "X";
/// The collection of arrays with a row for each cell.
const OBSM: &str = "obsm";
/// The collection of graphs with a row and a column for each cell.
const OBSP: &str = "obsp";

/// What a matrix of obsp is called in errors.
pub(crate) const GRAPH: &str = "graph of obsp";

/// A `SOMAMeasurement`: genes in var, values in the layers of X, further columns of the cells in
/// obsm.
#[derive(Debug, Clone)]
pub struct Measurement {
    stored: Arc<dyn StoredMeasurement>,
}

impl Measurement {
    pub(crate) fn new(stored: impl StoredMeasurement + 'static) -> Self {
        Self { stored: Arc::new(stored) }
    }

    /// The measurement's URI.
    pub fn uri(&self) -> &str {
        self.stored.uri()
    }

    /// The genes.
    pub fn var(&self) -> Result<DataFrame, Error> {
        self.stored.var()
    }

    /// The names of the layers of X.
    pub fn layers(&self) -> Result<Vec<String>, Error> {
        self.stored.layers()
    }

    /// The name of the layer that is meant if none is named: `raw`, as in the Census, or else
    /// `data`, as tiledbsoma writes an AnnData's X; `X` of an AnnData; or else the only layer.
    ///
    /// # Errors
    /// [`Error::Unnamed`] if there are several others, or none; those of [`layers`](Self::layers).
    pub fn default_layer(&self) -> Result<String, Error> {
        meant(self.uri(), Unnamed::Layer, self.stored.usual_layers(), self.layers()?)
    }

    /// Opens a layer of X, for example `raw`.
    pub fn x(&self, layer: &str) -> Result<Matrix, Error> {
        self.stored.x(layer)
    }

    /// The names of the arrays of obsm, for example `X_pca`; none if the measurement has no
    /// collection `obsm`.
    pub fn obsm_names(&self) -> Result<Vec<String>, Error> {
        self.stored.obsm_names()
    }

    /// Opens an array of obsm, for example `X_pca`: cells by columns of their own, which are not
    /// genes. [`Matrix::used_columns`] is their number.
    pub fn obsm(&self, name: &str) -> Result<Matrix, Error> {
        self.stored.obsm(name)
    }

    /// The names of the graphs of obsp, for example `distances`; none if the measurement has no
    /// collection `obsp`.
    pub fn obsp_names(&self) -> Result<Vec<String>, Error> {
        self.stored.obsp_names()
    }

    /// Opens a graph of obsp, for example `distances`: rows and columns are both cells, by joinid.
    ///
    /// # Errors
    /// There is no such graph; it has another number of rows or columns than an AnnData's obs; the
    /// storage cannot be read.
    pub fn obsp(&self, name: &str) -> Result<Matrix, Error> {
        self.stored.obsp(name)
    }

    /// Which cells the measurement has, by joinid; `None` if it has all, or does not say. SOMA does
    /// not say: a cell that was not measured has no values there, like one without counts.
    ///
    /// # Errors
    /// [`Error::AnnData`] if the storage cannot be reached or refuses.
    pub fn present(&self) -> Result<Option<BooleanBuffer>, Error> {
        self.stored.present()
    }

    /// Reads the plain values of uns of an AnnData. `None` of another measurement than that of its
    /// X, and of a SOMA experiment, whose uns is not read.
    pub fn uns(&self) -> Result<Option<Uns>, Error> {
        self.stored.uns()
    }
}

impl StoredExperiment for Collection {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn obs(&self) -> Result<DataFrame, Error> {
        data_frame(self, "obs")
    }

    fn measurements(&self) -> Result<Vec<String>, Error> {
        Ok(self.collection(MEASUREMENTS)?.names())
    }

    fn measurement(&self, name: &str) -> Result<Measurement, Error> {
        let place = self.collection(MEASUREMENTS)?.member("measurement", name)?;
        Self::open(place, &["SOMAMeasurement"]).map(Measurement::new)
    }

    fn with_read_limit(&self, limit: Arc<ReadLimit>) -> Arc<dyn StoredExperiment> {
        let mut limited = self.clone();
        limited.place.read_limit = Some(limit);
        Arc::new(limited)
    }
}

impl StoredMeasurement for Collection {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn var(&self) -> Result<DataFrame, Error> {
        data_frame(self, "var")
    }

    fn layers(&self) -> Result<Vec<String>, Error> {
        Ok(self.collection(LAYERS)?.names())
    }

    fn usual_layers(&self) -> &'static [&'static str] {
        &["raw", "data"]
    }

    fn x(&self, layer: &str) -> Result<Matrix, Error> {
        let place = self.collection(LAYERS)?.member("layer of X", layer)?;
        NdArray::open(place).map(Matrix::new)
    }

    fn obsm_names(&self) -> Result<Vec<String>, Error> {
        names_in(self, OBSM)
    }

    fn obsm(&self, name: &str) -> Result<Matrix, Error> {
        let place = self.collection(OBSM)?.member("array of obsm", name)?;
        NdArray::open(place).map(Matrix::new)
    }

    fn obsp_names(&self) -> Result<Vec<String>, Error> {
        names_in(self, OBSP)
    }

    fn obsp(&self, name: &str) -> Result<Matrix, Error> {
        if self.obsp_names()?.is_empty() {
            let (uri, name) = (self.place.uri.clone(), name.to_owned());
            return Err(Error::NoMember { uri, kind: GRAPH, name, existing: Vec::new() });
        }
        let place = self.collection(OBSP)?.member(GRAPH, name)?;
        NdArray::open(place).map(Matrix::new)
    }
}

/// The names in a collection that a measurement may lack.
fn names_in(measurement: &Collection, collection: &str) -> Result<Vec<String>, Error> {
    if !measurement.names().iter().any(|name| name == collection) {
        return Ok(Vec::new());
    }
    Ok(measurement.collection(collection)?.names())
}

fn data_frame(collection: &Collection, name: &str) -> Result<DataFrame, Error> {
    DataFrame::open(&collection.member("data frame", name)?)
}

/// Without the reader of AnnData, an error that names its feature if one is at `place`.
#[cfg(not(feature = "anndata"))]
fn find_anndata(place: &Place) -> Result<Option<Arc<dyn StoredExperiment>>, Error> {
    let is_marked = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        text.contains("encoding-type")
            && ["\"anndata\"", "\"annbatch-preshuffled\""].iter().any(|of| text.contains(of))
    };
    let marks = ["zarr.json", ".zattrs"];
    let has_mark = place
        .files()
        .is_ok_and(|files| files.read_files(&marks).into_iter().flatten().any(is_marked));
    if place.names_hdf5() || has_mark {
        return Err(Error::NeedsAnnData { uri: place.uri.clone() });
    }
    Ok(None)
}
