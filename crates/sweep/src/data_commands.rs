//! The commands `generate` and `import`: experiments from a seed, and from a 10x Genomics folder.

use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{
    Address, Display, INTERRUPTED_EXIT_CODE, grouped, key_value, pairs, watch_interrupts,
};
use clap::Args;
use example_data::{Error, GenerateSpec, ImportSpec, import_10x};
use grid_point::{format_leftover, write_example};

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
    /// Folder with matrix.mtx, barcodes.tsv and features.tsv, each plain or .gz
    pub(crate) folder: PathBuf,
    /// Path of the new experiment; must not exist
    pub(crate) uri: Address,
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

/// Converts a 10x Genomics folder to an experiment.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let spec = ImportSpec {
        config: pairs("--config", &args.config)?,
        interrupted: Some(watch_interrupts()),
        ..ImportSpec::default()
    };
    let display = Display::counting("cells", args.quiet);
    display.line(&format!("importing {} to {}", args.folder.display(), args.uri));
    let report =
        import_10x(&args.folder, args.uri.full(), &spec, &mut |n_cells| display.position(n_cells));
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

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

fn print_interruption(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(INTERRUPTED_EXIT_CODE)
}
