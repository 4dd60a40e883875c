//! The command `relayout`: rewrites an experiment's X for training, and measures the gain.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use bench_run::{
    Address, Display, INTERRUPTED_EXIT_CODE, UsageError, grouped, key_value, pairs, print_line,
    print_message, watch_interrupts,
};
use bytesize::ByteSize;
use clap::Args;
use grid_point::{ReaderFlag, format_leftover};
use relayout::{
    CodecChoice, Codecs, Error, GENE_CODECS, RelayoutEvent, RelayoutReport, RelayoutSpec,
    VALUE_CODECS,
};
use serde_json::json;
use soma_io::{Existing, Experiment, OpenOptions, REPLACE_EXPERIMENT};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayoutArgs {
    /// Experiment to read: a folder or a URI such as s3://...
    pub(crate) source: Address,
    /// Path of the new experiment; must not exist, unless with -f
    pub(crate) target: Address,
    /// Rows per chunk that training will read
    #[arg(long, value_name = "ROWS", default_value_t = 64)]
    pub(crate) chunk_rows: u64,
    /// Store the cells in a random order with this seed; a column keeps their joinids
    #[arg(long, value_name = "SEED")]
    pub(crate) shuffle: Option<u64>,
    /// Codecs of genes and values, e.g. packed,zstd; see below [default: the fastest on a sample of
    /// the data]
    #[arg(long, value_name = "GENES,VALUES")]
    pub(crate) codec: Option<String>,
    /// Bytes per second at which the new copy will be read, used to choose the codecs: slow storage
    /// favors small files
    #[arg(long, value_name = "SIZE", default_value = "2GB", conflicts_with = "codec")]
    pub(crate) storage_rate: ByteSize,
    /// Measurement of the experiment [default: RNA, or else the only one]
    #[arg(long)]
    pub(crate) measurement: Option<String>,
    /// Layer of the measurement's X [default: raw or data, X of an AnnData, or else the only one]
    #[arg(long)]
    pub(crate) layer: Option<String>,
    /// obs column that keeps the joinids of the source, if they change
    #[arg(long, value_name = "COLUMN", default_value = "source_joinid")]
    pub(crate) joinid_column: String,
    /// Reader of X
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// Memory for rows in transit, e.g. 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) memory: ByteSize,
    /// Folder for temporary files [default: beside the new experiment]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) temporary: Option<PathBuf>,
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
Codecs of genes: packed, zstd, delta-zstd. Of values: packed, whole-zstd (both for whole numbers), zstd. Packed ones are read back
the quickest and take the most room.

Shuffling needs 8 bytes on disk for each value while it runs.

Examples:
  cargo xtask relayout ~/census/experiment ~/data/for-training
  cargo xtask relayout ~/census/experiment ~/data/shuffled --shuffle 42 --storage-rate 500MB";

impl RelayoutArgs {
    fn spec(&self) -> anyhow::Result<RelayoutSpec> {
        let codec = match &self.codec {
            None => CodecChoice::Measured {
                storage_bytes_per_second: self.storage_rate.as_u64() as f64,
            },
            Some(text) => CodecChoice::Named(codecs(text)?),
        };
        Ok(RelayoutSpec {
            chunk_rows: self.chunk_rows,
            codec,
            shuffle_seed: self.shuffle,
            joinid_column: self.joinid_column.clone(),
            reader: self.reader.into(),
            memory_bytes: self.memory.as_u64(),
            temporary: self.temporary.clone(),
            existing: if self.force { REPLACE_EXPERIMENT } else { Existing::Keep },
            config: pairs("--config", &self.config)?,
            ..RelayoutSpec::default()
        })
    }
}

fn codecs(text: &str) -> anyhow::Result<Codecs> {
    let Some((genes, values)) = text.split_once(',') else {
        let names = |codecs: &[relayout::Codec]| {
            codecs.iter().map(|codec| codec.name).collect::<Vec<_>>().join(", ")
        };
        return Err(UsageError::new(format!(
            "--codec {text:?} must name two, as packed,zstd: for genes {}; for values {}",
            names(&GENE_CODECS),
            names(&VALUE_CODECS)
        ))
        .into());
    };
    Codecs::named(genes.trim(), values.trim())
        .map_err(|error| UsageError::new(format!("--codec: {error}")).into())
}

/// Runs the command and prints the result.
///
/// Fails if the experiment cannot be read or written, or if a setting is invalid.
pub(crate) fn run(args: &RelayoutArgs) -> anyhow::Result<ExitCode> {
    let interrupted = watch_interrupts();
    let mut spec = args.spec()?;
    let options = OpenOptions { config: spec.config.clone(), ..OpenOptions::default() };
    let source = Experiment::open(args.source.full(), &options)?;
    (spec.measurement, spec.layer) =
        source.names(args.measurement.as_deref(), args.layer.as_deref())?;
    let mut progress = Progress::new(args);
    let outcome = relayout::relayout(&source, args.target.full(), &spec, &mut |event| {
        progress.tell(event);
        if interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    progress.display.finish();
    match outcome {
        Ok(report) => {
            if args.json {
                print_line!("{}", as_json(args, &report));
            } else {
                tell(args, &report);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ Error::Interrupted) => {
            print_message!("{error}");
            Ok(ExitCode::from(INTERRUPTED_EXIT_CODE))
        }
        Err(error @ Error::Size { .. }) => Err(UsageError::new(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

/// Progress bar, which restarts with each pass over the rows.
struct Progress<'a> {
    args: &'a RelayoutArgs,
    display: Display,
    n_cells: u64,
    stage: &'static str,
}

impl<'a> Progress<'a> {
    fn new(args: &'a RelayoutArgs) -> Self {
        let display = Display::counting("cells", args.quiet);
        display.now("opening");
        Self { args, display, n_cells: 0, stage: "" }
    }

    fn tell(&mut self, event: RelayoutEvent<'_>) {
        match event {
            RelayoutEvent::Leftover(path) => self.display.line(&format_leftover(path)),
            RelayoutEvent::Opened { n_cells, n_genes, reader, why_not_native } => {
                self.n_cells = n_cells;
                let why = why_not_native.map_or_else(String::new, |why| format!(" ({why})"));
                self.display.line(&format!(
                    "laying out {} cells x {} genes, reader {reader}{why}",
                    grouped(n_cells),
                    grouped(n_genes)
                ));
                self.display.now("measuring codecs");
            }
            RelayoutEvent::Chosen(codecs) => self.display.line(&format!("codec {codecs}")),
            RelayoutEvent::NotWhole(codecs) => self.display.line(&format!(
                "not all values are whole numbers, as those of the sample were: starting again with codec {codecs}"
            )),
            RelayoutEvent::Scattered { n_rows, .. } => self.pass("scattering", n_rows),
            RelayoutEvent::Checked { n_rows } => self.pass("checking", n_rows),
            RelayoutEvent::Written { n_rows } => self.pass("writing", n_rows),
            RelayoutEvent::Measuring => self.display.now("reading both"),
            _ => {}
        }
    }

    fn pass(&mut self, stage: &'static str, n_rows: u64) {
        if self.stage != stage {
            self.stage = stage;
            self.display.finish();
            self.display = Display::new(self.n_cells, "cells", self.args.quiet);
            self.display.now(stage);
        }
        self.display.position(n_rows);
    }
}

fn as_json(args: &RelayoutArgs, report: &RelayoutReport) -> serde_json::Value {
    let measured = report.measured.iter().map(|one| {
        json!({
            "codec": one.codecs.to_string(),
            "bytes_per_value": one.bytes_per_value,
            "rows_per_second": one.rows_per_second,
            "rows_per_second_of_storage": one.rows_per_second_of_storage,
        })
    });
    json!({
        "uri": args.target.to_string(),
        "cells": report.n_cells,
        "genes": report.n_genes,
        "nnz": report.nnz,
        "spilled": {
            "files": report.spilled.n_files,
            "writes": report.spilled.n_writes,
            "bytes": report.spilled.n_bytes,
        },
        "obs_passes": report.obs_passes,
        "chunk_rows": args.chunk_rows,
        "shuffle_seed": args.shuffle,
        "codec": report.codecs.to_string(),
        "measured": measured.collect::<Vec<_>>(),
        "source_x_bytes": report.source_x_bytes,
        "x_bytes": report.x_bytes,
        "bytes": report.bytes_on_disk,
        "seconds": report.seconds,
        "measuring_seconds": report.measuring_seconds,
        "cells_per_second": cells_per_second(report),
        "before": {
            "chunk_rows_per_second": report.before.chunk_rows_per_second,
            "single_rows_per_second": report.before.single_rows_per_second,
        },
        "after": {
            "chunk_rows_per_second": report.after.chunk_rows_per_second,
            "single_rows_per_second": report.after.single_rows_per_second,
        },
        "epochs_until_paid": report.epochs_until_paid(),
    })
}

fn cells_per_second(report: &RelayoutReport) -> f64 {
    report.n_cells as f64 / (report.seconds - report.measuring_seconds).max(f64::MIN_POSITIVE)
}

fn tell(args: &RelayoutArgs, report: &RelayoutReport) {
    for one in &report.measured {
        print_line!(
            "  {:20} {:.2} bytes a value, {} rows/s from memory, {} from storage",
            one.codecs.to_string(),
            one.bytes_per_value,
            grouped(one.rows_per_second as u64),
            grouped(one.rows_per_second_of_storage as u64)
        );
    }
    let size =
        |bytes: Option<u64>| bytes.map_or_else(String::new, |n| format!(" in {}", ByteSize(n)));
    print_line!(
        "{}: {} cells x {} genes, {} values{}, X{}{}, codec {}, in {:.1} s ({} cells/s)",
        args.target,
        grouped(report.n_cells),
        grouped(report.n_genes),
        grouped(report.nnz),
        size(report.bytes_on_disk),
        size(report.x_bytes),
        report.source_x_bytes.map_or_else(String::new, |n| format!(" (before in {})", ByteSize(n))),
        report.codecs,
        report.seconds,
        grouped(cells_per_second(report) as u64)
    );
    let compared = |before: f64, after: f64| {
        format!(
            "{} rows/s, before {} ({:.1} x)",
            grouped(after as u64),
            grouped(before as u64),
            after / before
        )
    };
    let (before, after) = (report.before, report.after);
    print_line!(
        "chunks of {} rows: {}",
        args.chunk_rows,
        compared(before.chunk_rows_per_second, after.chunk_rows_per_second)
    );
    print_line!(
        "single rows: {}",
        compared(before.single_rows_per_second, after.single_rows_per_second)
    );
    match report.epochs_until_paid() {
        Some(epochs) => {
            print_line!("reading alone, it has paid for itself after {epochs:.1} epochs");
        }
        None => {
            print_line!("reading chunks is no quicker than before: it does not pay");
        }
    }
}
