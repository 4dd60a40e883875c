//! `generate` and `import`: experiments from a seed, and from a 10x Genomics folder.

use std::process::ExitCode;

use example_data::{GenerateSpec, ImportSpec, import_10x};

use crate::args::{GenerateArgs, ImportArgs};
use crate::config;
use crate::display::{Display, grouped};

/// Writes a Census-shaped experiment.
pub(crate) fn generate(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = GenerateSpec {
        n_cells: args.cells,
        n_genes: args.genes,
        seed: args.seed,
        fragment_rows: args.fragment_rows,
        consolidate: args.consolidate,
        config: config::pairs("--config", &args.config)?,
        ..GenerateSpec::default()
    };
    write_example(&args.uri, &spec, args.quiet)?;
    Ok(ExitCode::SUCCESS)
}

/// Turns a 10x Genomics folder into an experiment.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let spec =
        ImportSpec { config: config::pairs("--config", &args.config)?, ..ImportSpec::default() };
    let display = Display::counting("cells", args.quiet);
    display.line(&format!("importing {} to {}", args.folder.display(), args.uri));
    let report =
        import_10x(&args.folder, &args.uri, &spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = report?;
    let (cells, genes, nnz) =
        (grouped(report.n_cells), grouped(report.n_genes), grouped(report.nnz));
    let (sum, secs) = (report.sum, report.seconds);
    display.line(&format!(
        "{}: {cells} cells x {genes} genes, {nnz} values that sum to {sum}, in {secs:.1} s",
        args.uri
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes an experiment of this shape, saying how far it is.
pub(crate) fn write_example(uri: &str, spec: &GenerateSpec, quiet: bool) -> anyhow::Result<()> {
    let display = Display::new(spec.n_cells, "cells", quiet);
    let (cells, genes) = (grouped(spec.n_cells), grouped(spec.n_genes));
    display.line(&format!("writing an experiment of {cells} cells x {genes} genes to {uri}"));
    let report = example_data::generate(uri, spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = report?;
    display.line(&format!("{uri}: {} values, in {:.1} s", grouped(report.nnz), report.seconds));
    Ok(())
}
