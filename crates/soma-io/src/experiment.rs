//! Experiments and measurements: the collections that lead to obs, var and X.

use tiledb::Config;

use crate::soma_object::{Collection, Place, trimmed};
use crate::{DataFrame, Error, SparseNdArray};

/// How an experiment is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// TileDB's parameters, for example `vfs.s3.region`. One is ours: `soma.init_buffer_bytes`, the bytes of buffer that each
    /// column of a read of X gets (default [`SparseNdArray::BUFFER_BYTES`]).
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
    /// Opens the experiment at `uri`: a local path, or an address that libtiledb knows, as `s3://`.
    pub fn open(uri: &str, options: &OpenOptions) -> Result<Self, Error> {
        let uri = trimmed(uri)?;
        let context = tiledb::Context::new(&options.config)?;
        let place = Place { context, timestamp: options.timestamp, uri };
        Collection::open(place, &["SOMAExperiment"]).map(|members| Self { members })
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
