//! The commands `generate` and `import`: experiments from a seed, from a 10x Genomics folder, and
//! from an AnnData.

use std::path::Path;
use std::process::ExitCode;

use bench_run::{
    Address, Display, INTERRUPTED_EXIT_CODE, grouped, key_value, pairs, watch_interrupts,
};
use bytesize::ByteSize;
use clap::Args;
use example_data::{Error, GenerateSpec, ImportSpec, import_10x};
use experiment_copy::SliceSpec;
use grid_point::{format_leftover, write_example};
use soma_io::{Experiment, Measurement, OpenOptions};

use crate::slice::{self, Telling};

/// Flags of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Path of the new experiment; must not exist
    pub(crate) uri: Address,
    /// Number of cells
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) cells: u64,
    /// Number of genes
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) genes: u64,
    /// Seed of the data
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Cells per fragment of X [default: one fragment]
    #[arg(long, value_name = "CELLS")]
    pub(crate) fragment_rows: Option<u64>,
    /// Consolidate the fragments of X into one, which then stores a timestamp per value, like the
    /// Census
    #[arg(long)]
    pub(crate) consolidate: bool,
    /// TileDB setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Folder with matrix.mtx, barcodes.tsv and features.tsv, each plain or .gz; or an AnnData, in
    /// Zarr or as .h5ad
    pub(crate) source: Address,
    /// Path of the new experiment; must not exist
    pub(crate) uri: Address,
    /// Of an AnnData: the layers, X among them, separated by commas [default: all]
    #[arg(long, value_name = "LAYERS", value_delimiter = ',')]
    pub(crate) layers: Vec<String>,
    /// Of an AnnData: memory for rows in transit, e.g. 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) memory: ByteSize,
    /// TileDB setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// Writes a Census-shaped experiment.
pub(crate) fn generate(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = GenerateSpec {
        n_cells: args.cells,
        n_genes: args.genes,
        seed: args.seed,
        fragment_rows: args.fragment_rows,
        consolidate: args.consolidate,
        config: pairs("--config", &args.config)?,
        interrupted: Some(watch_interrupts()),
        ..GenerateSpec::default()
    };
    match write_example(&args.uri, &spec, args.quiet) {
        Err(error) if is_interruption(&error) => Ok(print_interruption(&error)),
        outcome => outcome.map(|()| ExitCode::SUCCESS),
    }
}

/// Converts a 10x Genomics folder or an AnnData to an experiment.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    if let Some(anndata) = anndata(args)? {
        return import_anndata(&anndata, args);
    }
    let spec = ImportSpec {
        config: pairs("--config", &args.config)?,
        interrupted: Some(watch_interrupts()),
        ..ImportSpec::default()
    };
    let display = Display::counting("cells", args.quiet);
    display.line(&format!("importing {} to {}", args.source, args.uri));
    let folder = Path::new(args.source.full());
    let report =
        import_10x(folder, args.uri.full(), &spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = match report.map_err(anyhow::Error::new) {
        Err(error) if is_interruption(&error) => return Ok(print_interruption(&error)),
        outcome => outcome?,
    };
    if let Some(path) = report.leftover.as_deref() {
        display.line(&format_leftover(path));
    }
    let (cells, genes, nnz) =
        (grouped(report.n_cells), grouped(report.n_genes), grouped(report.nnz));
    let (sum, secs) = (report.sum, report.seconds);
    let sorted = if report.sorted_in_memory { ", sorted in memory" } else { "" };
    display.line(&format!(
        "{}: {cells} cells x {genes} genes, {nnz} values that sum to {sum}{sorted}, in {secs:.1} s",
        args.uri
    ));
    Ok(ExitCode::SUCCESS)
}

/// Opens the source if it is an AnnData. Fails if its name says so and it cannot be opened.
fn anndata(args: &ImportArgs) -> anyhow::Result<Option<Experiment>> {
    let options =
        OpenOptions { config: pairs("--config", &args.config)?, ..OpenOptions::default() };
    let name = args.source.full().trim_end_matches('/');
    let extension = Path::new(name).extension();
    let names_anndata = extension.is_some_and(|kind| kind == "h5ad" || kind == "zarr");
    match Experiment::open(name, &options) {
        Ok(experiment) if experiment.is_anndata() => Ok(Some(experiment)),
        Err(error) if names_anndata => Err(error.into()),
        _ => Ok(None),
    }
}

/// Copies obs, var and the layers of an AnnData, and tells what else it has.
fn import_anndata(anndata: &Experiment, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let spec = SliceSpec::default();
    let measurement = anndata.measurement(&spec.measurement)?;
    let layers = if args.layers.is_empty() { measurement.layers()? } else { args.layers.clone() };
    let left_out = left_out(anndata, &measurement)?;
    let spec = SliceSpec {
        layers,
        memory_bytes: args.memory.as_u64(),
        config: pairs("--config", &args.config)?,
        ..spec
    };
    let telling = Telling { json: false, quiet: args.quiet };
    let code = slice::copy(anndata, &args.uri, &spec, telling)?;
    if code == ExitCode::SUCCESS {
        let display = Display::counting("lines", args.quiet);
        display.line(&format!("not copied: {}", left_out.join("; ")));
    }
    Ok(code)
}

/// What of an AnnData is not in the experiment that is made of it.
fn left_out(anndata: &Experiment, measurement: &Measurement) -> anyhow::Result<Vec<String>> {
    let mut left_out = Vec::new();
    for (frame, name) in [(anndata.obs()?, "obs"), (measurement.var()?, "var")] {
        let unread = frame.unread_columns().into_iter();
        left_out.extend(unread.map(|(column, why)| format!("{name}.{column} ({why})")));
    }
    if anndata.measurements()?.iter().any(|name| name == "raw") {
        left_out.push("raw".to_owned());
    }
    left_out.extend(measurement.obsm_names()?.into_iter().map(|name| format!("obsm {name}")));
    left_out.push("obsp, varm, varp and uns, if there are any".to_owned());
    Ok(left_out)
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

fn print_interruption(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(INTERRUPTED_EXIT_CODE)
}
