//! `generate` and `import`: experiments from a seed, and from a 10x Genomics folder.

use std::path::Path;
use std::process::ExitCode;

use example_data::{Error, GenerateSpec, ImportSpec, import_10x};

use crate::args::{GenerateArgs, ImportArgs};
use crate::display::{Display, grouped};
use crate::secrets::Address;
use crate::{config, interrupt};

/// Writes a Census-shaped experiment.
pub(crate) fn generate(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = GenerateSpec {
        n_cells: args.cells,
        n_genes: args.genes,
        seed: args.seed,
        fragment_rows: args.fragment_rows,
        consolidate: args.consolidate,
        config: config::pairs("--config", &args.config)?,
        interrupted: Some(interrupt::watch()),
        ..GenerateSpec::default()
    };
    match write_example(&args.uri, &spec, args.quiet) {
        Err(error) if is_interruption(&error) => Ok(told_interrupted(&error)),
        outcome => outcome.map(|()| ExitCode::SUCCESS),
    }
}

/// Turns a 10x Genomics folder into an experiment.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let spec = ImportSpec {
        config: config::pairs("--config", &args.config)?,
        interrupted: Some(interrupt::watch()),
        ..ImportSpec::default()
    };
    let display = Display::counting("cells", args.quiet);
    display.line(&format!("importing {} to {}", args.folder.display(), args.uri));
    let report =
        import_10x(&args.folder, args.uri.full(), &spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = match report.map_err(anyhow::Error::new) {
        Err(error) if is_interruption(&error) => return Ok(told_interrupted(&error)),
        outcome => outcome?,
    };
    tell_leftover(report.leftover.as_deref(), &display);
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

/// Writes an experiment of this shape, saying how far it is.
pub(crate) fn write_example(uri: &Address, spec: &GenerateSpec, quiet: bool) -> anyhow::Result<()> {
    let display = Display::new(spec.n_cells, "cells", quiet);
    let (cells, genes) = (grouped(spec.n_cells), grouped(spec.n_genes));
    display.line(&format!("writing an experiment of {cells} cells x {genes} genes to {uri}"));
    let report = example_data::generate(uri.full(), spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = report?;
    tell_leftover(report.leftover.as_deref(), &display);
    display.line(&format!("{uri}: {} values, in {:.1} s", grouped(report.nnz), report.seconds));
    Ok(())
}

/// Says what was found of a run that was killed.
pub(crate) fn tell_leftover(path: Option<&Path>, display: &Display) {
    if let Some(path) = path {
        display.line(&format!(
            "{}: what a run that was killed had left there is removed",
            path.display()
        ));
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

fn told_interrupted(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(interrupt::EXIT_CODE)
}
