//! The data on which points are measured.

mod example;
mod flags;
mod read_rate;
mod row_cache;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{DataInfo, IO_LIMIT, IO_LIMIT_BY, Measured, Settings};
use bench_run::{
    Address, DataFile, IoLimit, LinkAccess, LinkServers, Secrets, UsageError, data_files, recorded,
    shown_uri,
};
use serde::{Deserialize, Serialize};
use soma_io::{Experiment, OpenOptions};

pub use example::{format_leftover, write_example};
pub use flags::{DataFlags, FormFlag, ReaderFlag, SelectionFlags, names_anndata};
pub use read_rate::{IoLimitInForce, decide as decide_io_limit};

/// The data to measure on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Data {
    /// Path or URI of the experiment; empty until the example is chosen.
    pub uri: Address,
    /// Settings of TileDB.
    pub config: BTreeMap<String, String>,
    /// Measurement of the experiment; empty until it is chosen.
    pub measurement: String,
    /// Layer of the measurement's X; empty until it is chosen.
    pub layer: String,
    /// Name of a `loader::ReaderChoice`.
    pub reader: String,
    /// Range of joinids; `None` is all cells.
    pub cells: Option<Range<u64>>,
    /// Number of first genes to read; `None` is all.
    pub n_genes: Option<u64>,
    /// obs columns to deliver with each batch.
    pub obs_columns: Vec<String>,
    /// obs columns whose entropy within batches is measured; `None` is the default.
    pub entropy_of: Option<Vec<String>>,
    /// Condition on cells, in tiledbsoma's grammar.
    pub obs_filter: Option<String>,
    /// Condition on genes, in tiledbsoma's grammar.
    pub var_filter: Option<String>,
    /// obs column of the totals to scale by; `None` is the sum of the selected genes.
    pub totals: Option<String>,
    /// Limit on the read rate.
    pub io_limit: Option<IoLimit>,
    /// The link over which it is read; `None` reads it where it is.
    pub link: Option<LinkAccess>,
}

/// Where data is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// Path or URI.
    pub uri: Address,
    /// Settings of TileDB.
    pub config: BTreeMap<String, String>,
}

/// Facts about opened data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opened {
    /// Number of selected cells.
    pub n_cells: u64,
    /// Number of selected genes.
    pub n_genes: u64,
    /// Number of values of the whole layer.
    pub total_nnz: u64,
    /// Name of the reader of X.
    pub reader: String,
    /// Reason for libtiledb, if the reader was chosen automatically.
    pub why_not_native: Option<String>,
}

/// TileDB's parameter for the memory of libtiledb, in bytes.
const TOTAL_BUDGET: &str = "sm.mem.total_budget";

/// Gives libtiledb a quarter of `memory_bytes`, unless `config` sets its memory.
pub fn share_with_libtiledb(config: &mut BTreeMap<String, String>, memory_bytes: u64) {
    config.entry(TOTAL_BUDGET.to_owned()).or_insert_with(|| (memory_bytes / 4).to_string());
}

/// Returns the secrets of the environment, which sign requests to object stores.
pub fn environment_secrets() -> Secrets {
    Secrets::of_environment(soma_io::environment_secrets())
}

impl Data {
    /// Chooses the example experiment if no other was named; writes it to the cache if needed.
    /// Fails if it cannot be written.
    pub fn or_example(mut self, quiet: bool) -> anyhow::Result<Self> {
        if self.uri.is_empty() {
            let example = example::ensure(quiet)?;
            self.uri = example.to_str().context("the path of the cache is not UTF-8")?.into();
        }
        Ok(self)
    }

    /// Returns the data with the measurement and the layer that are meant if none was named. Fails
    /// if the experiment cannot be opened, or if it is not clear which are meant.
    pub fn with_names(mut self) -> anyhow::Result<Self> {
        if self.measurement.is_empty() || self.layer.is_empty() {
            let options = OpenOptions { config: self.config.clone(), ..OpenOptions::default() };
            let experiment = Experiment::open(self.uri.full(), &options)?;
            let name = |name: String| Some(name).filter(|name| !name.is_empty());
            let (measurement, layer) = (name(self.measurement), name(self.layer));
            (self.measurement, self.layer) =
                experiment.names(measurement.as_deref(), layer.as_deref())?;
        }
        Ok(self)
    }

    /// Returns where the data is read: at its address, or at the server of its link. Fails if a
    /// setting of TileDB is one that the link sets.
    pub fn source(&self) -> anyhow::Result<DataSource> {
        let (mut uri, mut config) = (self.uri.clone(), self.config.clone());
        if let Some(link) = &self.link {
            link.configure(&mut config)?;
            uri = link.uri().into();
        }
        Ok(DataSource { uri, config })
    }

    /// Returns the data read over a link, whose server this starts. The stored bytes that an epoch
    /// needs are those of X, so its names are chosen. Fails if the data is not on a local disk, and
    /// with the errors of [`with_names`](Self::with_names).
    pub fn over(self, servers: &mut LinkServers) -> anyhow::Result<Self> {
        let Some(folder) = self.uri.local_path() else {
            let message = format!("--link takes data on a local disk, not {}", self.uri);
            return Err(UsageError::new(message).into());
        };
        // The server reports a folder that is missing.
        let data = if folder.exists() { self.with_names()? } else { self };
        let x = data.x_folder().filter(|folder| folder.is_dir());
        let stored = x.map(|x| bench_run::folder_bytes(&x)).transpose();
        let stored = stored.with_context(|| format!("cannot list the files of {}", data.uri))?;
        let link = servers.serve(&folder, stored)?;
        let data = Self { link: Some(link), ..data };
        data.source()?;
        Ok(data)
    }

    /// Returns the folder of X's layer; `None` if the data is not on a local disk.
    fn x_folder(&self) -> Option<PathBuf> {
        let root = self.uri.local_path()?;
        Some(root.join("ms").join(&self.measurement).join("X").join(&self.layer))
    }

    /// Returns the share of the stored values of X that an epoch with these figures needed; `None`
    /// if it is not known.
    pub(crate) fn share_needed(&self, measured: &Measured, opened: &Opened) -> Option<f64> {
        let share = |part: u64, of: u64| (0 < of).then(|| part as f64 / of as f64);
        if let Some(nnz) = measured.nnz {
            return share(nnz, opened.total_nnz);
        }
        let is_all = self.cells.is_none()
            && self.n_genes.is_none()
            && self.obs_filter.is_none()
            && self.var_filter.is_none();
        share(measured.n_rows.filter(|_| is_all)?, opened.n_cells)
    }

    /// Returns a name of the data for a results folder.
    pub fn name(&self) -> String {
        if self.uri.is_empty() {
            "example".to_owned()
        } else {
            bench_run::data_name(&self.uri.to_string())
        }
    }

    /// Returns the folders of the files to read: X's layer and obs, or the whole experiment if the
    /// layer is elsewhere. `None` if the data is not on a local disk.
    pub fn folders(&self) -> Option<Vec<PathBuf>> {
        let (root, x) = (self.uri.local_path()?, self.x_folder()?);
        Some(if x.is_dir() { vec![x, root.join("obs")] } else { vec![root] })
    }

    /// Lists the files in these folders; none if the data is not on a local disk. Fails if a folder
    /// cannot be read.
    pub fn files(&self) -> anyhow::Result<Vec<DataFile>> {
        data_files(&self.folders().unwrap_or_default())
            .with_context(|| format!("cannot list the files of {}", self.uri))
    }

    /// Returns the secrets in the address, the settings and the environment.
    pub fn secrets(&self) -> Secrets {
        Secrets::in_task(self.uri.full(), &self.config, soma_io::environment_secrets())
    }

    /// Returns the data without secrets, for records and digests. Another key does not make other
    /// data.
    pub(crate) fn without_secrets(&self) -> Self {
        let recorded = |(key, value): (&String, &String)| (key.clone(), recorded(key, value));
        let config = self.config.iter().map(recorded).collect();
        Self { uri: Address::from(self.uri.to_string()), config, ..self.clone() }
    }

    /// Returns the selection, and the limit of reads, as settings of a row.
    pub fn conditions(&self) -> Settings {
        let limit = self.io_limit.as_ref();
        Settings::default()
            .with("measurement", &self.measurement)
            .with("layer", &self.layer)
            .with_some("obs_filter", self.obs_filter.as_ref())
            .with_some("var_filter", self.var_filter.as_ref())
            .with_rate(IO_LIMIT, limit.map(|limit| limit.bytes_per_second.get()))
            .with_some(IO_LIMIT_BY, limit.map(|limit| limit.by.name()))
    }

    /// Returns the description of the data for its rows.
    pub fn info(&self, opened: &Opened) -> DataInfo {
        DataInfo {
            uri: shown_uri(&self.uri.to_string()),
            layout: None,
            total_rows: opened.n_cells,
            n_cols: opened.n_genes,
            total_nnz: Some(opened.total_nnz),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bench_run::HIDDEN;

    use super::*;

    #[test]
    fn the_files_of_the_layer_and_of_obs_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in
            [("ms/RNA/X/raw/__fragments/f/d0.tdb", 30), ("obs/a", 10), ("ms/RNA/X/other/b", 99)]
        {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let uri = folder.path().to_str().unwrap();
        let bytes = |uri: &str, measurement: &str| {
            let [measurement, layer] = [measurement, "raw"].map(str::to_owned);
            let data = Data { uri: uri.into(), measurement, layer, ..Data::default() };
            data.files().unwrap().iter().map(|file| file.bytes).sum::<u64>()
        };
        assert_eq!(bytes(uri, "RNA"), 40);
        assert_eq!(bytes(&format!("file://{uri}"), "RNA"), 40);
        assert_eq!(bytes(uri, "ATAC"), 139);
        assert_eq!(bytes("s3://bucket/experiment", "RNA"), 0);
        assert_eq!(Data { uri: "s3://b/x".into(), ..Data::default() }.folders(), None);
    }

    #[test]
    fn the_needed_share_is_of_values_or_of_rows() {
        let opened = Opened { n_cells: 100, total_nnz: 1000, ..Opened::default() };
        let data = Data::default();
        let cut = Measured { n_rows: Some(25), ..Measured::default() };
        assert_eq!(data.share_needed(&cut, &opened), Some(0.25));
        let whole = Measured { nnz: Some(500), ..cut.clone() };
        assert_eq!(data.share_needed(&whole, &opened), Some(0.5));
        let part = Data { n_genes: Some(3), ..data };
        assert_eq!(part.share_needed(&cut, &opened), None);
        assert_eq!(part.share_needed(&whole, &Opened::default()), None);
    }

    #[test]
    fn data_is_read_at_the_server_of_its_link() {
        let (name, address) = ("data".into(), "127.0.0.1:9".into());
        let link = LinkAccess { name, address, ..LinkAccess::default() };
        let data = Data { uri: "/x".into(), link: Some(link), ..Data::default() };
        let source = data.source().unwrap();
        assert_eq!(source.uri.full(), "s3://link/data");
        assert_eq!(source.config["vfs.s3.endpoint_override"], "127.0.0.1:9");
        let near = Data { link: None, ..data.clone() }.source().unwrap();
        assert_eq!((near.uri.full(), near.config.len()), ("/x", 0));
        let config = [("vfs.s3.region".to_owned(), "x".to_owned())].into();
        assert!(Data { config, ..data }.source().is_err());
    }

    #[test]
    fn a_record_of_the_data_has_no_secret() {
        let config = [
            ("sm.encryption_key", "0123456789abcdef"),
            ("vfs.s3.custom_headers.x-tenant", "tenant-of-lab"),
            ("vfs.s3.endpoint_override", "http://ada:hunter22@minio:9000"),
            ("soma.init_buffer_bytes", "1000000"),
        ];
        let data = Data {
            uri: "s3://ada:pass%20word@bucket/x?X-Amz-Signature=00ff00ff00ff".into(),
            config: config.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..Data::default()
        };
        let recorded = data.without_secrets();
        let text = serde_json::to_string(&recorded).unwrap();
        for secret in ["0123456789", "tenant-of", "hunter22", "pass", "00ff", "ada"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(recorded.uri.full(), "s3://bucket/x");
        assert_eq!(recorded.config["vfs.s3.endpoint_override"], "http://minio:9000");
        assert_eq!(recorded.config["soma.init_buffer_bytes"], "1000000");
        assert_eq!(recorded.config["sm.encryption_key"], HIDDEN);
    }
}
