//! Command line of `slice`, and the specification it means.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bench_run::{Address, UsageError, key_value, pairs};
use bytesize::ByteSize;
use clap::Args;
use experiment_copy::{ColumnChoice, DatasetSlice, Existing, Genes, REPLACE_EXPERIMENT, SliceSpec};
use grid_point::{ReaderFlag, share_with_libtiledb};
use soma_io::{AxisQuery, Config, RowRanges, ValueFilter};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(after_help = EXAMPLES)]
pub(crate) struct SliceArgs {
    /// Experiment to read: a folder or a URI such as s3://... or census://2025-11-08/homo_sapiens
    pub(crate) source: Address,
    /// Path of the new experiment; must not exist, unless with -f
    pub(crate) target: Address,
    /// First data set to take, counted from 0 in the order of their first cells
    #[arg(short = 's', long, value_name = "N")]
    pub(crate) start: Option<usize>,
    /// End of the data sets to take (excluded)
    #[arg(short = 'e', long, value_name = "N")]
    pub(crate) end: Option<usize>,
    /// Count data sets in the order of their number of cells, fewest first
    #[arg(short = 'S', long)]
    pub(crate) sorted_datasets: bool,
    /// obs column with the data set of each cell
    #[arg(long, value_name = "COLUMN", default_value = "dataset_id")]
    pub(crate) dataset_column: String,
    /// Take the cells that match, e.g. `tissue == "lung" and nnz > 500` (tiledbsoma's grammar)
    #[arg(long, value_name = "FILTER")]
    pub(crate) obs_filter: Option<String>,
    /// Take the cells with these joinids, if they exist: 7 or 0..1000 (end excluded), separated by
    /// commas
    #[arg(long, value_name = "JOINIDS", value_delimiter = ',', value_parser = joinid_range)]
    pub(crate) joinids: Vec<Range<u64>>,
    /// Take the first N genes; 0 is all
    #[arg(short = 'v', long, value_name = "N", default_value_t = 0, conflicts_with_all = ["genes", "var_filter"])]
    pub(crate) n_vars: u64,
    /// Take the genes that match, e.g. `feature_name in ["CD4", "CD8A"]`
    #[arg(long, value_name = "FILTER", conflicts_with = "genes")]
    pub(crate) var_filter: Option<String>,
    /// Take the genes named in this file, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) genes: Option<PathBuf>,
    /// var column with the names [default: feature_id or feature_name, whichever matches]
    #[arg(long, value_name = "COLUMN", requires = "genes")]
    pub(crate) gene_column: Option<String>,
    /// Skip names that var does not have
    #[arg(long, requires = "genes")]
    pub(crate) skip_absent_genes: bool,
    /// Measurement of the experiment [default: RNA, or else the only one]
    #[arg(long)]
    pub(crate) measurement: Option<String>,
    /// Layers of the measurement's X, separated by commas [default: raw or data, X of an AnnData,
    /// or else the only one]
    #[arg(long, value_name = "LAYERS", value_delimiter = ',')]
    pub(crate) layers: Vec<String>,
    /// Arrays of the measurement's obsm, separated by commas, written as 32-bit floats
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) obsm: Vec<String>,
    /// Take only these obs columns, separated by commas
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        conflicts_with = "without_obs_columns"
    )]
    pub(crate) obs_columns: Vec<String>,
    /// Omit these obs columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) without_obs_columns: Vec<String>,
    /// Take only these var columns, separated by commas
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        conflicts_with = "without_var_columns"
    )]
    pub(crate) var_columns: Vec<String>,
    /// Omit these var columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) without_var_columns: Vec<String>,
    /// Keep the joinids of the source as a column of obs and var
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, require_equals = true, default_missing_value = "source_joinid")]
    pub(crate) keep_joinids: Option<String>,
    /// Reader of X
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// Memory for rows in transit, e.g. 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) memory: ByteSize,
    /// Replace an existing experiment once the new one is complete
    #[arg(short = 'f', long)]
    pub(crate) force: bool,
    /// TileDB setting for reading and writing; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Print the result as one line of JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask slice ~/census/experiment ~/data/lung --obs-filter 'tissue == \"lung\"' -v 20000
  cargo xtask slice census://2023-12-15/homo_sapiens ~/data/small -S -e 10 --genes genes.txt";

impl SliceArgs {
    /// Returns the TileDB settings for reading. Fails if `--config` names one twice.
    pub(crate) fn reading_config(&self) -> anyhow::Result<Config> {
        let mut config = self.writing_config()?;
        share_with_libtiledb(&mut config, self.memory.as_u64());
        Ok(config)
    }

    fn writing_config(&self) -> anyhow::Result<Config> {
        pairs("--config", &self.config).map_err(|error| usage(&error))
    }

    /// Returns the specification of the slice, with the default measurement, and with no layers if
    /// none are named. Fails if flags
    /// contradict each other or cannot be parsed.
    pub(crate) fn spec(&self) -> anyhow::Result<SliceSpec> {
        Ok(SliceSpec {
            layers: once("--layers", &self.layers)?,
            obsm: once("--obsm", &self.obsm)?,
            joinids: self.joinids()?,
            obs_filter: self.obs_filter.as_deref().map(filter("--obs-filter")).transpose()?,
            datasets: self.datasets()?,
            genes: self.genes()?,
            obs_columns: columns(&self.obs_columns, &self.without_obs_columns),
            var_columns: columns(&self.var_columns, &self.without_var_columns),
            joinid_column: self.keep_joinids.clone(),
            reader: self.reader.into(),
            memory_bytes: self.memory.as_u64(),
            existing: if self.force { REPLACE_EXPERIMENT } else { Existing::Keep },
            config: self.writing_config()?,
            ..SliceSpec::default()
        })
    }

    fn joinids(&self) -> anyhow::Result<Option<RowRanges>> {
        if self.joinids.is_empty() {
            return Ok(None);
        }
        let mut ranges = self.joinids.clone();
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        RowRanges::new(joined).map(Some).map_err(|error| usage(&anyhow::Error::new(error)))
    }

    fn datasets(&self) -> anyhow::Result<Option<DatasetSlice>> {
        if self.start.is_none() && self.end.is_none() {
            if self.sorted_datasets {
                return Err(usage(&anyhow::anyhow!(
                    "-S/--sorted-datasets needs -s/--start or -e/--end"
                )));
            }
            return Ok(None);
        }
        let start = self.start.unwrap_or(0);
        if let Some(end) = self.end.filter(|end| *end <= start) {
            return Err(usage(&anyhow::anyhow!(
                "-s/--start {start} and -e/--end {end} leave no data set"
            )));
        }
        let column = self.dataset_column.clone();
        Ok(Some(DatasetSlice { column, start, end: self.end, sorted: self.sorted_datasets }))
    }

    fn genes(&self) -> anyhow::Result<Genes> {
        if let Some(path) = &self.genes {
            let names = gene_names(path)?;
            let (column, skip_absent) = (self.gene_column.clone(), self.skip_absent_genes);
            return Ok(Genes::Named { names, column, skip_absent });
        }
        Ok(match (&self.var_filter, self.n_vars) {
            (Some(text), _) => Genes::Query(AxisQuery {
                value_filter: Some(filter("--var-filter")(text)?),
                ..AxisQuery::default()
            }),
            (None, 0) => Genes::All,
            (None, n_genes) => Genes::First(n_genes),
        })
    }
}

/// Reads the names in a file: its lines, trimmed, without empty ones. Fails if none is left.
fn gene_names(path: &PathBuf) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the genes of {}", path.display()))?;
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if names.is_empty() {
        bail!("{} names no gene", path.display());
    }
    Ok(names)
}

fn columns(only: &[String], without: &[String]) -> ColumnChoice {
    match (only, without) {
        ([], []) => ColumnChoice::All,
        ([], without) => ColumnChoice::Without(without.to_vec()),
        (only, _) => ColumnChoice::Only(only.to_vec()),
    }
}

fn filter(flag: &str) -> impl Fn(&str) -> anyhow::Result<ValueFilter> {
    move |text| {
        ValueFilter::parse(text)
            .map_err(|error| usage(&anyhow::Error::new(error).context(flag.to_owned())))
    }
}

/// The names given to a flag. Fails if one is there twice.
fn once(flag: &str, names: &[String]) -> anyhow::Result<Vec<String>> {
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(usage(&anyhow::anyhow!("{flag} names {name} twice")));
        }
    }
    Ok(names.to_vec())
}

fn usage(error: &anyhow::Error) -> anyhow::Error {
    UsageError::from_error(error).into()
}

fn joinid_range(text: &str) -> Result<Range<u64>, String> {
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| format!("{text:?} is no joinid"));
    let range = if let Some((start, end)) = text.split_once("..") {
        number(start)?..number(end)?
    } else {
        let joinid = number(text)?;
        joinid..joinid.checked_add(1).ok_or("that is no joinid")?
    };
    if range.is_empty() { Err("it holds no joinid".to_owned()) } else { Ok(range) }
}
