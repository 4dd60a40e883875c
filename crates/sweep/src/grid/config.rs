//! Meaning of a command line: the points of the grid and the data, resolved before anything runs.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use bench_run::{BlockSpec, UsageError, pairs, parse_blocks};
use grid_point::{Data, Point, share_with_libtiledb};
use loader::{BatchForm, BlockForm, LoaderSpec, ReaderChoice};

use super::args::SweepArgs;

/// Default grid: two block sizes, each as one piece, in large and in small chunks.
///
/// It fits the example experiment.
const DEFAULT_SPECS: [&str; 6] = ["4096", "16x256", "64x64", "8192", "32x256", "128x64"];

/// Settings known before the data is opened.
#[derive(Debug)]
pub(crate) struct Config {
    /// Points, ordered by block specification, then method.
    pub(crate) points: Vec<Point>,
    /// Data to load; its URI is empty if the example is meant.
    pub(crate) data: Data,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Number of rounds over the grid.
    pub(crate) repeat: u64,
}

impl Config {
    pub(crate) fn resolve(args: &SweepArgs) -> anyhow::Result<Self> {
        Self::resolve_plain(args).map_err(|error| UsageError::from_error(&error).into())
    }

    fn resolve_plain(args: &SweepArgs) -> anyhow::Result<Self> {
        for (name, value) in [("-B/--batch", args.batch_size), ("-E/--epochs", args.num_epochs)] {
            if value == 0 {
                bail!("{name} must be 1 or more");
            }
        }
        args.original.refuse()?;
        let methods = methods(&args.chunk_methods, args.batch_form.into())?;
        let specs = specs(&args.block_specs)?;
        let points = specs
            .iter()
            .flat_map(|spec| methods.iter().map(|method| point(args, *spec, *method)))
            .collect();
        let metadata = pairs("-M/--metadata", &args.metadata)?;
        Ok(Self { points, data: data(args)?, metadata, repeat: args.repeat })
    }
}

/// Resolves the data; its address is empty if the example is meant.
fn data(args: &SweepArgs) -> anyhow::Result<Data> {
    let mut data = args.selection.apply(args.data.data_with(args.original.config())?)?;
    if let Some(uri) = args.original.uri().filter(|_| data.uri.is_empty()) {
        data.uri = uri;
    }
    if args.cold.is_some() && !data.uri.is_empty() && data.uri.local_path().is_none() {
        bail!(
            "--cold puts local files out of the page cache; what is read from a store has none there"
        );
    }
    if let Some(memory) = args.memory {
        share_with_libtiledb(&mut data.config, memory.as_u64());
    }
    Ok(Data {
        reader: ReaderChoice::from(args.reader).name().to_owned(),
        obs_columns: args.obs_columns.clone(),
        entropy_of: entropy_of(&args.entropy_of)?,
        totals: args.totals.clone(),
        ..data
    })
}

fn point(args: &SweepArgs, blocks: BlockSpec, block_form: BlockForm) -> Point {
    let point = Point {
        spec: LoaderSpec { block_form, ..args.loader_spec() },
        n_epochs: args.num_epochs,
        max_batches: (args.max_batches != 0).then_some(args.max_batches),
        consumer: args.consumer.clone(),
        memory_limit: args.memory.map(|size| size.as_u64()),
        process_limit: args.point_memory_limit.map(|size| size.as_u64()),
        cold: args.cold,
        ..Point::default()
    };
    point.with_blocks(blocks)
}

/// Parses `--entropy-of`: columns without duplicates, empty for `none`, `None` if not given.
fn entropy_of(typed: &[String]) -> anyhow::Result<Option<Vec<String>>> {
    if typed.is_empty() {
        return Ok(None);
    }
    let mut columns: Vec<String> = Vec::with_capacity(typed.len());
    for column in typed.iter().map(|column| column.trim()) {
        if column.is_empty() {
            bail!("--entropy-of names a column without a name");
        }
        if !columns.iter().any(|known| known == column) {
            columns.push(column.to_owned());
        }
    }
    if columns == ["none"] {
        return Ok(Some(Vec::new()));
    }
    if columns.iter().any(|column| column == "none") {
        bail!("--entropy-of none cannot have columns beside it");
    }
    Ok(Some(columns))
}

fn specs(typed: &[String]) -> anyhow::Result<Vec<BlockSpec>> {
    let default = DEFAULT_SPECS.map(str::to_owned);
    let typed = if typed.is_empty() { &default } else { typed };
    let mut specs = Vec::new();
    for text in typed {
        // A duplicate point would look like a repetition.
        specs.extend(
            parse_blocks(text)?
                .into_iter()
                .filter(|spec| !specs.contains(spec))
                .collect::<Vec<_>>(),
        );
    }
    Ok(specs)
}

/// Parses methods from names or prefixes; without any, returns all that give batches of `form`.
fn methods(typed: &[String], form: BatchForm) -> anyhow::Result<Vec<BlockForm>> {
    let gives = |method: BlockForm| form.dense_type().is_some() || method != BlockForm::Dense;
    if typed.is_empty() {
        return Ok(BlockForm::ALL.into_iter().filter(|method| gives(*method)).collect());
    }
    let mut methods = Vec::new();
    for text in typed {
        let method = method(text.trim())?;
        if !gives(method) {
            bail!(
                "-m/--chunk-method {method} holds dense blocks and gives no {form} batches: leave it out, or take --batch-form dense or f16"
            );
        }
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Ok(methods)
}

fn method(text: &str) -> anyhow::Result<BlockForm> {
    let all = BlockForm::ALL.map(BlockForm::name);
    let fitting: Vec<&str> = all
        .into_iter()
        .chain([BlockForm::NATIVE])
        .filter(|name| !text.is_empty() && name.starts_with(text))
        .collect();
    match fitting[..] {
        [one] => Ok(one.parse()?),
        [] => {
            Err(anyhow!("-m/--chunk-method {text:?}: no such method; there are {}", all.join(", ")))
        }
        _ => Err(anyhow!("-m/--chunk-method {text:?} could be {}", fitting.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn resolve(arguments: &[&str]) -> Result<Config, String> {
        let all = ["sweep", "sweep"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Sweep(args) => Config::resolve(&args).map_err(|error| format!("{error:#}")),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn points(arguments: &[&str], expect: &str) {
        let config = resolve(arguments).unwrap();
        let named: Vec<_> = config.points.iter().map(ToString::to_string).collect();
        assert_eq!(named.join(", "), expect);
    }

    #[track_caller]
    fn fails(arguments: &[&str], expect: &str) {
        assert_eq!(resolve(arguments).unwrap_err(), expect);
    }

    #[test]
    fn the_grid_is_by_block_then_method() {
        points(
            &["-b", "8 / [1,2]", "-b", "4"],
            "np.array 1x8, scipy.csr 1x8, csr 1x8, np.array 2x4, scipy.csr 2x4, csr 2x4, np.array 1x4, scipy.csr 1x4, csr 1x4",
        );
        points(&["-b", "8", "-m", "s,np"], "scipy.csr 1x8, np.array 1x8");
        points(&["-b", "8", "-b", "1x8", "-m", "na,native,c"], "csr 1x8");
        points(&["-b", "8", "--batch-form", "csr"], "scipy.csr 1x8, csr 1x8");
        assert_eq!(resolve(&[]).unwrap().points.len(), DEFAULT_SPECS.len() * BlockForm::ALL.len());
    }

    #[test]
    fn zero_means_all() {
        let config = resolve(&[]).unwrap();
        assert_eq!(config.data.n_genes, None);
        assert!(config.points.iter().all(|point| point.max_batches.is_none()));
        let config = resolve(&["-n", "3", "-v", "7"]).unwrap();
        assert_eq!(config.data.n_genes, Some(7));
        assert!(config.points.iter().all(|point| point.max_batches == Some(3)));
    }

    #[test]
    fn cells_are_a_range_of_joinids() {
        assert_eq!(resolve(&[]).unwrap().data.cells, None);
        assert_eq!(resolve(&["-e", "5"]).unwrap().data.cells, Some(0..5));
        assert_eq!(resolve(&["-s", "5"]).unwrap().data.cells, Some(5..u64::MAX));
        fails(&["-s", "5", "-e", "5"], "-s/--start 5 and -e/--end 5 leave no cell");
    }

    #[test]
    fn entropy_is_of_columns_of_none_or_of_the_default() {
        let entropy_columns = |arguments: &[&str]| resolve(arguments).unwrap().data.entropy_of;
        assert_eq!(entropy_columns(&[]), None);
        assert_eq!(entropy_columns(&["--entropy-of", "none"]), Some(vec![]));
        let columns = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(entropy_columns(&["--entropy-of", "a,b,a"]), columns);
        fails(&["--entropy-of", "a,none"], "--entropy-of none cannot have columns beside it");
        fails(&["--entropy-of", "a,"], "--entropy-of names a column without a name");
    }

    #[test]
    fn what_cannot_be_is_said_in_one_line() {
        fails(&["-B", "0"], "-B/--batch must be 1 or more");
        fails(&["-E", "0"], "-E/--epochs must be 1 or more");
        fails(
            &["-b", "100 / 3"],
            "block specification \"100 / 3\": 100 rows cannot be divided into 3 equal chunks",
        );
        fails(&["-m", "n"], "-m/--chunk-method \"n\" could be np.array, native");
        fails(
            &["-m", "torch"],
            "-m/--chunk-method \"torch\": no such method; there are np.array, scipy.csr, csr",
        );
        fails(
            &["-m", "np,"],
            "-m/--chunk-method \"\": no such method; there are np.array, scipy.csr, csr",
        );
        fails(
            &["-m", "np", "--batch-form", "csr"],
            "-m/--chunk-method np.array holds dense blocks and gives no csr batches: leave it out, or take --batch-form dense or f16",
        );
        fails(&["-M", "a=1", "-M", "a=2"], "-M/--metadata a is given twice");
        fails(
            &["--cold", "s3://bucket/x"],
            "--cold puts local files out of the page cache; what is read from a store has none there",
        );
        fails(&["-r", "a", "--config", "vfs.s3.region=b"], "--config vfs.s3.region is given twice");
    }

    #[test]
    fn flags_of_the_original_are_taken_for_what_they_mean_or_refused() {
        let data = |arguments: &[&str]| resolve(arguments).unwrap().data;
        let uri = |arguments: &[&str]| data(arguments).uri.full().to_owned();
        assert_eq!(uri(&["x/y"]), "x/y");
        assert_eq!(uri(&["-V", "2023-12-15"]), "census://2023-12-15/homo_sapiens");
        assert_eq!(uri(&["-u", "s3://a/soma/"]), "s3://a/soma/census_data/homo_sapiens");
        let config = data(&["-z", "1GiB", "-r", "us-west-2"]).config;
        assert_eq!(config["soma.init_buffer_bytes"], (1_u64 << 30).to_string());
        assert_eq!(config["vfs.s3.region"], "us-west-2");
        for arguments in
            [&["-c", "x"][..], &["-S"], &["-C"], &["-F"], &["-g", "10"], &["-P", "1GiB"]]
        {
            let error = resolve(arguments).unwrap_err();
            assert!(error.starts_with(arguments[0]) && error.lines().count() == 1, "{error}");
        }
    }
}
