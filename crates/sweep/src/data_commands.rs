//! The commands `generate` and `import`: experiments from a seed, from a 10x Genomics folder, and
//! from an AnnData.

use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;

use bench_run::{
    Address, Display, INTERRUPTED_EXIT_CODE, grouped, key_value, pairs, print_message,
    watch_interrupts,
};
use bytesize::ByteSize;
use clap::Args;
use example_data::{Error, GenerateSpec, ImportSpec, import_10x};
use experiment_copy::SliceSpec;
use grid_point::{format_leftover, names_anndata, write_example};
use soma_io::{Experiment, Measurement, OpenOptions};

use crate::slice::{self, Telling};

/// Values per fragment of an import; at most one is copied again after a stop.
const FRAGMENT_VALUES: NonZeroU64 = NonZeroU64::new(1 << 26).unwrap();

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
    /// Zarr or as .h5ad; or a matrix of 10x Genomics as .h5
    pub(crate) source: Address,
    /// Path of the new experiment; must not exist
    pub(crate) uri: Address,
    /// Layers of an AnnData, X among them, separated by commas [default: all]
    #[arg(long, value_name = "LAYERS", value_delimiter = ',')]
    pub(crate) layers: Vec<String>,
    /// Memory for rows of an AnnData in transit, e.g. 512MiB
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
    match Experiment::open(name, &options) {
        Ok(experiment) if experiment.is_anndata() => Ok(Some(experiment)),
        Err(error) if names_anndata(&args.source) => Err(error.into()),
        _ => Ok(None),
    }
}

/// Copies an AnnData, and tells what of it is not copied.
fn import_anndata(anndata: &Experiment, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let spec = SliceSpec::default();
    let measurement = anndata.measurement(&spec.measurement)?;
    let layers = if args.layers.is_empty() { measurement.layers()? } else { args.layers.clone() };
    let mut others = anndata.measurements()?;
    others.retain(|name| *name != spec.measurement);
    let (obsm, mut unread) = obsm(&measurement)?;
    let spec = SliceSpec {
        layers,
        obsm,
        others,
        uns: true,
        resumable: Some(FRAGMENT_VALUES),
        memory_bytes: args.memory.as_u64(),
        config: pairs("--config", &args.config)?,
        ..spec
    };
    let telling = Telling { json: false, quiet: args.quiet };
    unread.extend(unread_columns(anndata, &spec)?);
    let elements = anndata.unread_elements()?.into_iter();
    unread.extend(elements.map(|(path, why)| format!("{path} ({why})")));
    let report = slice::copy(anndata, &args.uri, &spec, telling)?;
    if let Some(report) = &report {
        let display = Display::counting("lines", args.quiet);
        for array in &report.rounded {
            display.line(&format!("obsm {array}: values were rounded to 32-bit floats"));
        }
        let of_uns = report.left_out_of_uns.iter();
        let of_uns = of_uns.map(|(path, why)| format!("uns {path} ({why})"));
        let left_out: Vec<String> = unread.into_iter().chain(of_uns).collect();
        if !left_out.is_empty() {
            display.line(&format!("not copied: {}", left_out.join("; ")));
        }
    }
    Ok(slice::exit_code(report.as_ref()))
}

/// The arrays of obsm that can be copied, and those that cannot, with the reason.
fn obsm(measurement: &Measurement) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (mut copied, mut left_out) = (Vec::new(), Vec::new());
    for name in measurement.obsm_names()? {
        match measurement.obsm(&name) {
            Ok(array) if array.used_columns()? == 0 => {
                left_out.push(format!("obsm {name} (it has no columns)"));
            }
            Ok(_) => copied.push(name),
            Err(error) => match error.unsupported() {
                Some(reason) => left_out.push(format!("obsm {name} ({reason})")),
                None => return Err(error.into()),
            },
        }
    }
    Ok((copied, left_out))
}

/// The columns of the tables that are not read, and why.
fn unread_columns(anndata: &Experiment, spec: &SliceSpec) -> anyhow::Result<Vec<String>> {
    let mut frames = vec![("obs".to_owned(), anndata.obs()?)];
    for name in spec.others.iter().chain([&spec.measurement]) {
        frames.push((format!("var of {name}"), anndata.measurement(name)?.var()?));
    }
    let unread = frames.iter().flat_map(|(name, frame)| {
        let columns = frame.unread_columns().into_iter();
        columns.map(move |(column, why)| format!("column {column} of {name} ({why})"))
    });
    Ok(unread.collect())
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

fn print_interruption(error: &anyhow::Error) -> ExitCode {
    print_message!("{error}");
    ExitCode::from(INTERRUPTED_EXIT_CODE)
}
