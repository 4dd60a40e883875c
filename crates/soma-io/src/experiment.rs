//! Experiments and measurements: the collections that lead to obs, var and X.

use std::sync::Arc;

use storage::{Config, ReadLimit};

use crate::soma_object::{Collection, Place, trimmed};
use crate::{DataFrame, Error, SparseNdArray, census};

/// How an experiment is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// TileDB's parameters, for example `vfs.s3.region`, for libtiledb and the native reader alike. What they do not say of an
    /// `s3://` address comes from the variables `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` and so on, and from the files
    /// of the profile `AWS_PROFILE`. A request to an object store that fails is tried again: `vfs.s3.connect_max_tries` times (native
    /// reader: 8), with growing pauses.
    ///
    /// Five parameters are ours: `soma.init_buffer_bytes`, the bytes of buffer that each column of a read of X gets (default
    /// [`SparseNdArray::BUFFER_BYTES`]); `soma.retry_limit_ms`, after which the native reader does not try a request again (60,000);
    /// `soma.request_limit_ms`, which one try may take (120,000); `soma.cache_folder`, in which the native reader keeps what it fetched
    /// of X (nothing is kept without it), and `soma.cache_limit_bytes`, the most that this may be (32 GiB).
    pub config: Config,
    /// The time as of which everything is read, in milliseconds since 1970; now where there is none.
    pub timestamp: Option<u64>,
}

/// A `SOMAExperiment`: cells in obs, measurements in ms.
#[derive(Debug, Clone)]
pub struct Experiment {
    members: Collection,
}

impl Experiment {
    /// Opens the experiment at `uri`: a local path, an address in an object store (`s3://`, `gs://`, `gcs://`, `azure://`) or another
    /// that libtiledb knows, or a short name of the Census: `census://2025-11-08/homo_sapiens` is the human cells of that release, in
    /// `s3://cellxgene-census-public-us-west-2/cell-census/2025-11-08/soma/census_data/homo_sapiens`, read from the region us-west-2
    /// without signing, unless the config says otherwise.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::NotA`] where no experiment is there; [`Error::Address`] and [`Error::Census`] for what cannot
    /// be an address or a release; [`Error::TileDb`] where the store cannot be reached or refuses.
    pub fn open(uri: &str, options: &OpenOptions) -> Result<Self, Error> {
        let uri = trimmed(uri)?;
        let (uri, config) = census::resolved(&uri, &options.config)?;
        let context = tiledb::Context::new(&storage::complete_config(&uri, &config)?)?;
        let uri = uri.into_owned();
        let place = Place { context, timestamp: options.timestamp, uri, read_limit: None };
        Collection::open(place, &["SOMAExperiment"]).map(|members| Self { members })
    }

    /// The same, with what the native reader reads of X held to a rate, together with all else that is held to this limit. Not held are
    /// obs, var and what opening looks at, which libtiledb reads; where it would read X as well, asking for a reader fails.
    #[must_use]
    pub fn held_to(mut self, limit: Arc<ReadLimit>) -> Self {
        self.members.place.read_limit = Some(limit);
        self
    }

    /// Where it is.
    pub fn uri(&self) -> &str {
        &self.members.place.uri
    }

    /// The cells.
    pub fn obs(&self) -> Result<DataFrame, Error> {
        DataFrame::open(self.members.member("data frame", "obs")?)
    }

    /// The names of the measurements.
    pub fn measurements(&self) -> Result<Vec<String>, Error> {
        Ok(self.collection()?.names())
    }

    /// A measurement, as `RNA`.
    pub fn measurement(&self, name: &str) -> Result<Measurement, Error> {
        let place = self.collection()?.member("measurement", name)?;
        Collection::open(place, &["SOMAMeasurement"]).map(|members| Measurement { members })
    }

    fn collection(&self) -> Result<Collection, Error> {
        Collection::open(self.members.member("collection", "ms")?, &["SOMACollection"])
    }
}

/// A `SOMAMeasurement`: genes in var, values in the layers of X.
#[derive(Debug, Clone)]
pub struct Measurement {
    members: Collection,
}

impl Measurement {
    /// Where it is.
    pub fn uri(&self) -> &str {
        &self.members.place.uri
    }

    /// The genes.
    pub fn var(&self) -> Result<DataFrame, Error> {
        DataFrame::open(self.members.member("data frame", "var")?)
    }

    /// The names of the layers of X.
    pub fn layers(&self) -> Result<Vec<String>, Error> {
        Ok(self.collection()?.names())
    }

    /// A layer of X, as `raw`.
    pub fn x(&self, layer: &str) -> Result<SparseNdArray, Error> {
        SparseNdArray::open(self.collection()?.member("layer of X", layer)?)
    }

    fn collection(&self) -> Result<Collection, Error> {
        Collection::open(self.members.member("collection", "X")?, &["SOMACollection"])
    }
}
