//! The command `slice`: copies a part of an experiment to a new one.

mod args;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use bench_run::{
    Address, Display, INTERRUPTED_EXIT_CODE, grouped, print_line, print_message, watch_interrupts,
};
use bytesize::ByteSize;
use experiment_copy::{Error, SliceEvent, SliceReport, SliceSpec};
use grid_point::format_leftover;
use serde_json::json;
use soma_io::{Experiment, OpenOptions};

pub(crate) use args::SliceArgs;

/// How a copy is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling {
    /// Print the result as one line of JSON on stdout.
    pub(crate) json: bool,
    /// Show no progress.
    pub(crate) quiet: bool,
}

/// Runs the command and prints the result.
pub(crate) fn run(args: &SliceArgs) -> anyhow::Result<ExitCode> {
    let (mut spec, config) = (args.spec()?, args.reading_config()?);
    let source =
        Experiment::open(args.source.full(), &OpenOptions { config, ..OpenOptions::default() })?;
    let named = spec.layers.first().map(String::as_str);
    let (measurement, layer) = source.names(args.measurement.as_deref(), named)?;
    spec.measurement = measurement;
    if spec.layers.is_empty() {
        spec.layers.push(layer);
    }
    let telling = Telling { json: args.json, quiet: args.quiet };
    Ok(exit_code(copy(&source, &args.target, &spec, telling)?.as_ref()))
}

/// The exit code of a copy.
pub(crate) fn exit_code(report: Option<&SliceReport>) -> ExitCode {
    report.map_or_else(|| ExitCode::from(INTERRUPTED_EXIT_CODE), |_| ExitCode::SUCCESS)
}

/// Copies the part of an experiment, shows the progress, and prints the result. `None` if it was
/// interrupted, which is printed.
pub(crate) fn copy(
    source: &Experiment,
    target: &Address,
    spec: &SliceSpec,
    telling: Telling,
) -> anyhow::Result<Option<SliceReport>> {
    let interrupted = watch_interrupts();
    let mut display = Display::counting("cells", telling.quiet);
    display.now("choosing cells and genes");
    let mut stays = None;
    let outcome = experiment_copy::slice(source, target.full(), spec, &mut |event| {
        match event {
            SliceEvent::Leftover(path) => display.line(&format_leftover(path)),
            SliceEvent::Resumed(path) => {
                display.line(&format!("going on with {}", path.display()));
                stays = Some(path.to_owned());
            }
            SliceEvent::KeptOnFailure(path) => stays = Some(path.to_owned()),
            SliceEvent::Choosing { n_scanned } => display.position(n_scanned),
            SliceEvent::Chosen { n_cells, n_genes, reader, n_rows } => {
                display.finish();
                display = Display::new(n_rows, "rows", telling.quiet);
                let (cells, genes) = (grouped(n_cells), grouped(n_genes));
                display.line(&format!("taking {cells} cells x {genes} genes, reader {reader}"));
            }
            SliceEvent::Written { n_rows } => display.position(n_rows),
            _ => {}
        }
        if interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    display.finish();
    if let (Err(_), Some(path)) = (&outcome, stays) {
        let path = path.display();
        print_message!("what is written stays in {path}: the same command goes on from there");
    }
    match outcome {
        Ok(report) => {
            notify(target, &report, telling, &display);
            Ok(Some(report))
        }
        Err(error @ Error::Interrupted) => {
            print_message!("{error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn notify(target: &Address, report: &SliceReport, telling: Telling, display: &Display) {
    let rate = report.n_cells as f64 / report.seconds.max(f64::MIN_POSITIVE);
    if telling.json {
        let line = json!({
            "uri": target.to_string(),
            "cells": report.n_cells,
            "genes": report.n_genes,
            "nnz": report.nnz,
            "reads": report.n_reads,
            "datasets": report.n_datasets,
            "bytes": report.bytes_on_disk,
            "seconds": report.seconds,
            "cells_per_second": rate,
        });
        print_line!("{line}");
        return;
    }
    let datasets = report.n_datasets.map_or_else(String::new, |n| format!(" of {n} data sets"));
    let bytes =
        report.bytes_on_disk.map_or_else(String::new, |bytes| format!(" in {}", ByteSize(bytes)));
    display.line(&format!(
        "{target}: {} cells{datasets} x {} genes, {} values{bytes}, in {:.1} s ({} cells/s)",
        grouped(report.n_cells),
        grouped(report.n_genes),
        grouped(report.nnz),
        report.seconds,
        grouped(rate as u64)
    ));
}
