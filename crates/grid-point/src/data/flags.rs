//! Flags that name the data, the same in all commands that measure.

use std::ops::Range;

use anyhow::bail;
use bench_run::{Address, key_value, pairs};
use clap::{Args, ValueEnum};
use loader::{BatchForm, ReaderChoice};

use super::Data;
use super::row_cache::RowCacheFlag;

/// Which experiment and which X of it are read.
#[derive(Clone, Debug, Args)]
pub struct DataFlags {
    /// The experiment, as --uri
    #[arg(value_name = "URI", conflicts_with = "uri")]
    place: Option<Address>,
    /// The experiment: a folder or a URI such as s3://... [default: an example, written to the
    /// cache when needed]
    #[arg(long)]
    uri: Option<Address>,
    /// Measurement of the experiment [default: RNA, or else the only one]
    #[arg(long)]
    measurement: Option<String>,
    /// Layer of the measurement's X [default: raw or data, X of an AnnData, or else the only one]
    #[arg(long)]
    layer: Option<String>,
    /// A setting of TileDB, may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    config: Vec<(String, String)>,
    /// Keep decoded rows of X in this folder, laid out for training, for later epochs and runs, up
    /// to SIZE [default of SIZE: 32GiB]
    #[arg(long, value_name = "DIR[,SIZE]")]
    row_cache: Option<RowCacheFlag>,
}

impl DataFlags {
    /// Returns the address of the experiment; `None` is the example.
    pub fn address(&self) -> Option<&Address> {
        self.uri.as_ref().or(self.place.as_ref())
    }

    /// Returns the settings of TileDB as typed.
    pub fn settings(&self) -> &[(String, String)] {
        &self.config
    }

    /// Returns the data without a selection; its address is empty for the example. Fails if a
    /// setting of TileDB is given twice.
    pub fn data(&self) -> anyhow::Result<Data> {
        self.data_with([])
    }

    /// Returns the data with more settings of TileDB. Fails if one is given twice.
    pub fn data_with(
        &self,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<Data> {
        let of_cache = self.row_cache.as_ref().map(RowCacheFlag::settings).transpose()?;
        let of_cache = of_cache.into_iter().flatten();
        let settings: Vec<_> =
            self.config.iter().cloned().chain(of_cache).chain(settings).collect();
        Ok(Data {
            uri: self.address().cloned().unwrap_or_default(),
            config: pairs("--config", &settings)?,
            measurement: self.measurement.clone().unwrap_or_default(),
            layer: self.layer.clone().unwrap_or_default(),
            ..Data::default()
        })
    }

    /// Returns the flags that name the measurement and the layer, as typed.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = [("--measurement", &self.measurement), ("--layer", &self.layer)];
        names.into_iter().filter_map(|(flag, name)| Some((flag, name.as_deref()?)))
    }
}

/// Whether an address ends as those of AnnData do.
pub fn names_anndata(address: &Address) -> bool {
    let name = address.full().trim_end_matches('/');
    [".h5ad", ".h5", ".zarr", ".zarr.zip"].iter().any(|ending| name.ends_with(ending))
}

/// Which cells and genes are read.
#[derive(Clone, Debug, Args)]
pub struct SelectionFlags {
    /// Take the first N genes; 0 is all
    #[arg(short = 'v', long, value_name = "N", default_value_t = 0)]
    n_vars: u64,
    /// Take cells from this joinid on
    #[arg(short = 's', long, value_name = "JOINID")]
    start: Option<u64>,
    /// Take cells below this joinid
    #[arg(short = 'e', long, value_name = "JOINID")]
    end: Option<u64>,
    /// Take the cells that match, as `tissue == "lung" and nnz > 500` (tiledbsoma's grammar)
    #[arg(long, value_name = "FILTER")]
    obs_filter: Option<String>,
    /// Take the genes that match, as `feature_name in ["CD4", "CD8A"]`
    #[arg(long, value_name = "FILTER")]
    var_filter: Option<String>,
}

impl SelectionFlags {
    /// Narrows the data to the selection. Fails if it leaves no cell.
    pub fn apply(&self, data: Data) -> anyhow::Result<Data> {
        Ok(Data {
            cells: cells(self.start, self.end)?,
            n_genes: (self.n_vars != 0).then_some(self.n_vars),
            obs_filter: self.obs_filter.clone(),
            var_filter: self.var_filter.clone(),
            ..data
        })
    }
}

fn cells(start: Option<u64>, end: Option<u64>) -> anyhow::Result<Option<Range<u64>>> {
    match (start, end) {
        (None, None) => Ok(None),
        (start, end) => {
            let range = start.unwrap_or(0)..end.unwrap_or(u64::MAX);
            if range.is_empty() {
                bail!("-s/--start {} and -e/--end {} leave no cell", range.start, range.end);
            }
            Ok(Some(range))
        }
    }
}

/// The reader of X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReaderFlag {
    /// The native reader where it knows the array, otherwise libtiledb
    Auto,
    /// The native reader, which decodes only what is wanted
    Native,
    /// libtiledb
    Libtiledb,
}

impl From<ReaderFlag> for ReaderChoice {
    fn from(flag: ReaderFlag) -> Self {
        match flag {
            ReaderFlag::Auto => Self::Auto,
            ReaderFlag::Native => Self::Native,
            ReaderFlag::Libtiledb => Self::Libtiledb,
        }
    }
}

/// The form of a batch's X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the docs as help")]
pub enum FormFlag {
    Dense,
    F16,
    Csr,
    Coo,
}

impl From<FormFlag> for BatchForm {
    fn from(flag: FormFlag) -> Self {
        match flag {
            FormFlag::Dense => Self::Dense,
            FormFlag::F16 => Self::F16,
            FormFlag::Csr => Self::Csr,
            FormFlag::Coo => Self::Coo,
        }
    }
}
