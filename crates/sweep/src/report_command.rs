//! The command `report`: redraws page, pictures and tables of one or more results folders.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{ReportFormat, ReportOptions, Source, WrittenFile, write_side_by_side};
use bench_run::{UsageError, print_line};
use clap::Args;
use serde_json::json;

use crate::grid::marked;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Results folders, each with an epochs.parquet file, or with such folders of several machines
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// Output folder, created if missing [default: the results folder, if there is only one]
    #[arg(short = 'd', long, alias = "out", short_alias = 'o', value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
    /// Show the figures that arrayloader-benchmarks published in 2024 behind the points, as another
    /// machine's
    #[arg(long)]
    pub(crate) baseline: bool,
    /// Formats to write, separated by commas [default: all]
    #[arg(long = "format", value_name = "FORMATS", value_delimiter = ',', value_enum)]
    pub(crate) formats: Vec<Format>,
    /// Heading of the page and the pictures
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Print a JSON object for each written file, one per line, instead of its path
    #[arg(long)]
    pub(crate) json: bool,
}

/// Output format, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Page with all views
    Html,
    /// Picture of each view
    Svg,
    /// Pictures as pixels, for programs that cannot show SVG
    Png,
    /// Table for people
    Md,
    /// Table with all figures, for programs
    Csv,
}

impl From<Format> for ReportFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Html => Self::Html,
            Format::Svg => Self::Svg,
            Format::Png => Self::Png,
            Format::Md => Self::Markdown,
            Format::Csv => Self::Csv,
        }
    }
}

const EXAMPLES: &str = "\
Writes report.html (one page that needs no network), a picture of each view that the results have figures for, table.md and table.csv.
A README.md that is there stays. Points of different folders are never summed up together.

Examples:
  cargo xtask report results/2026-11-21-vm-example
  cargo xtask report results/before results/after --results results/compared --baseline
  cargo xtask report results/2026-11-21-vm-example --results figures --format svg,png";

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let out = match (&args.results, args.folders.as_slice()) {
        (Some(out), _) => out,
        (None, [folder]) => folder,
        (None, _) => {
            let message = "several results folders are reported on together: name a folder to write to with --results";
            return Err(UsageError::new(message).into());
        }
    };
    let sources = Source::read_all(&args.folders)?;
    let options = ReportOptions {
        title: args.title.clone(),
        marked: marked(|chunks_per_block| has_default(&sources, chunks_per_block)),
        published: args.baseline,
    };
    let formats: Vec<ReportFormat> = if args.formats.is_empty() {
        ReportFormat::ALL.to_vec()
    } else {
        args.formats.iter().map(|&format| format.into()).collect()
    };
    let files = write_side_by_side(&sources, out, &formats, &options)
        .with_context(|| format!("the report in {} is not whole", out.display()))?;
    print_paths(&files, args.json);
    Ok(ExitCode::SUCCESS)
}

fn has_default(sources: &[Source], chunks_per_block: u64) -> bool {
    let mut records = sources.iter().flat_map(|source| &source.records);
    records.any(|record| {
        record.point.chunk_size == 64 && record.point.chunks_per_block == chunks_per_block
    })
}

fn print_paths(files: &[WrittenFile], as_json: bool) {
    for WrittenFile { path, format, view } in files {
        let path: &Path = path;
        if as_json {
            let line = json!({ "path": path, "format": format.extension(), "view": view });
            print_line!("{line}");
        } else {
            print_line!("{}", path.display());
        }
    }
}
