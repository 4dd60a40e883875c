//! The command `relayout`: copies a store of fields to one in another layout.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use arrays::{Indices, Label};
use bench_report::peak_bytes;
use bench_run::{
    Address, Display, Program, finished, grouped, key_value, pairs, print_line, print_message,
    quoted, watch_interrupts,
};
use bytesize::ByteSize;
use clap::Args;
use serde_json::json;
use storage::OpenOptions;

use crate::generate::Codec;
use crate::relayout::{
    ArrayPlan, Length, RelayoutEvent, RelayoutReport, RelayoutSpec, StoredAs, relayout,
};

/// Flags of `relayout`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayoutArgs {
    /// The store to read, Zarr 2 or 3: a folder, or an address such as s3://...
    source: Address,
    /// Path of the new store, a folder; must not exist
    target: PathBuf,
    /// Variables to copy, with the coordinates that belong to them, separated by commas [default:
    /// all arrays]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    variables: Option<Vec<String>>,
    /// Indices of a dimension: time=0:1000, level=0,5,7; may be repeated
    #[arg(long, value_name = "DIMENSION=INDICES", value_parser = indices)]
    isel: Vec<(String, Indices)>,
    /// Coordinates of a dimension: level=500,850; may be repeated
    #[arg(long, value_name = "DIMENSION=VALUES", value_parser = key_value)]
    sel: Vec<(String, String)>,
    /// Lengths of chunks by dimension, such as time=1,level=1; `all` is the whole dimension
    /// [default: those of the source]
    #[arg(long, value_name = "DIMENSION=N,...", value_delimiter = ',', value_parser = length)]
    chunks: Vec<(String, Length)>,
    /// Lengths of shards by dimension, whole chunks, such as time=32; one chunk along the others
    /// [default: no shards]
    #[arg(long, value_name = "DIMENSION=N,...", value_delimiter = ',', value_parser = length)]
    shards: Vec<(String, Length)>,
    /// Compression of chunks: none, zstd, gzip or blosc (lz4 with byte shuffle), with a level if
    /// wanted, like zstd:3
    #[arg(long, value_name = "CODEC[:LEVEL]", default_value_t = Codec::Blosc(5))]
    codec: Codec,
    /// Store floating point numbers of more bits as float16 or float32: TYPE for all variables,
    /// NAME=TYPE for one, whose TYPE may be source [default: the types of the source]
    #[arg(long, value_name = "[NAME=]TYPE,...", value_delimiter = ',', value_parser = stored_as)]
    dtype: Vec<(Option<String>, StoredAs)>,
    /// Memory for chunks on their way, e.g. 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: ByteSize,
    /// Threads, fewer where memory is short [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Setting of the source's storage; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    config: Vec<(String, String)>,
    /// Print the result as one line of JSON on stdout
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
A run that ends early goes on where it was when the same command is called again.

Examples:
  somafeed fields relayout era5.zarr for-training --chunks time=1,level=1 --shards time=32
  somafeed fields relayout era5.zarr half --chunks time=1 --dtype float16,geopotential=source
  somafeed fields relayout gs://bucket/era5.zarr part --variables temperature --sel level=500,850";

/// Parses `DIMENSION=N`.
fn length(text: &str) -> Result<(String, Length), String> {
    let (name, length) = named(text)?;
    Ok((name, length.parse()?))
}

/// Parses `NAME=TYPE` or `TYPE`.
fn stored_as(text: &str) -> Result<(Option<String>, StoredAs), String> {
    match text.split_once('=') {
        Some((name, of)) => Ok((Some(name.to_owned()), of.parse()?)),
        None => Ok((None, text.parse()?)),
    }
}

/// Parses `DIMENSION=3`, `DIMENSION=0:10` and `DIMENSION=0,5,7`.
fn indices(text: &str) -> Result<(String, Indices), String> {
    let (name, given) = named(text)?;
    let index = |text: &str| -> Result<u64, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("{text:?} is no index: a number from 0 is expected"))
    };
    let found = match given.split_once(':') {
        Some((start, end)) => {
            let start = if start.is_empty() { 0 } else { index(start)? };
            Indices::Range(start..if end.is_empty() { u64::MAX } else { index(end)? })
        }
        None => Indices::List(given.split(',').map(index).collect::<Result<_, _>>()?),
    };
    Ok((name, found))
}

fn named(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some((name, of)) if !name.is_empty() => Ok((name.to_owned(), of)),
        _ => Err(format!("{text:?} is not like time=1")),
    }
}

/// Coordinates as typed: numbers where they are.
fn labels(text: &str) -> Vec<Label> {
    let label =
        |text: &str| text.parse().map_or_else(|_| Label::Text(text.to_owned()), Label::Number);
    text.split(',').map(|text| label(text.trim())).collect()
}

impl RelayoutArgs {
    fn spec(&self) -> RelayoutSpec {
        RelayoutSpec {
            variables: self.variables.clone(),
            isel: self.isel.clone(),
            sel: self.sel.iter().map(|(name, of)| (name.clone(), labels(of))).collect(),
            chunks: self.chunks.clone(),
            shards: self.shards.clone(),
            codec: self.codec,
            dtype: self.dtype.clone(),
            memory_bytes: self.memory.as_u64(),
            n_threads: self.threads.unwrap_or(0),
            interrupted: Some(watch_interrupts()),
        }
    }
}

/// Copies the store, shows the progress, and prints the result.
pub(crate) fn run(args: &RelayoutArgs) -> anyhow::Result<ExitCode> {
    let config = storage::complete_config(args.source.full(), &pairs("--config", &args.config)?)?;
    let opened = storage::open(args.source.full(), &OpenOptions::new(&config));
    let storage = opened.with_context(|| format!("cannot open {}", args.source))?.storage;
    let mut display = Display::counting("chunks", args.quiet);
    display.now("opening");
    let mut stays = None;
    let source = (&storage, args.source.full());
    let report = relayout(source, &args.target, &args.spec(), &mut |event| match event {
        RelayoutEvent::Leftover(path) => {
            display.line(&format!("{}: removed what a killed run had left there", path.display()));
        }
        RelayoutEvent::Resumed(path) => {
            display.line(&format!("going on with {}", path.display()));
        }
        RelayoutEvent::KeptOnFailure(path) => stays = Some(path.to_owned()),
        RelayoutEvent::Opened { n_arrays, n_chunks, groups } => {
            display.finish();
            display = Display::new(n_chunks, "chunks", args.quiet);
            let n_chunks = grouped(n_chunks);
            display.line(&format!("copying {n_arrays} arrays to {n_chunks} chunks"));
            if !groups.is_empty() {
                display.line(&format!("groups are not copied: {}", groups.join(", ")));
            }
        }
        RelayoutEvent::Array(plan) => {
            display.now(&plan.name);
            if 1 < plan.shape.len() {
                display.line(&format_plan(plan));
            }
        }
        RelayoutEvent::Written { n_chunks } => display.position(n_chunks),
    });
    display.finish();
    if let (Err(_), Some(path)) = (&report, &stays) {
        let path = path.display();
        print_message!("what is written stays in {path}: the same command goes on from there");
    }
    let report = match finished(report, "the new store is not whole")? {
        ControlFlow::Continue(report) => report,
        ControlFlow::Break(code) => return Ok(code),
    };
    if args.json {
        print_line!("{}", as_json(args, &report)?);
    } else {
        for line in format_report(args, &report) {
            display.line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn format_shape(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ")
}

/// Formats how an array is copied.
fn format_plan(plan: &ArrayPlan) -> String {
    let ArrayPlan { name, shape, source_chunk, chunk, .. } = plan;
    let cast = plan.cast.map(|(from, to)| format!(", {from} as {to}")).unwrap_or_default();
    let shard = plan.shard.as_ref();
    let shard = shard.map(|shard| format!(" in shards of {}", format_shape(shard)));
    let often = match plan.memory_for_fewest {
        None if plan.n_decoded <= plan.n_source_chunks => "once".to_owned(),
        None => format!("{:.1} times", plan.times_decoded()),
        Some(bytes) => {
            let enough = ByteSize(bytes).display().iec();
            format!("{:.1} times, least often with --memory {enough}", plan.times_decoded())
        }
    };
    format!(
        "{name}: {}, chunks of {} to {}{}{cast}; source chunks decoded {often}",
        format_shape(shape),
        format_shape(source_chunk),
        format_shape(chunk),
        shard.unwrap_or_default(),
    )
}

/// Formats sizes and rates, and the command that measures the new store.
fn format_report(args: &RelayoutArgs, report: &RelayoutReport) -> Vec<String> {
    let si = |bytes: u64| ByteSize(bytes).display().si();
    let per_second = report.n_bytes as f64 / report.seconds.max(f64::MIN_POSITIVE);
    let before = report.source_bytes.map(|bytes| format!(" (before {})", si(bytes)));
    let (target, whole) = (args.target.display(), report.arrays.len());
    let rate =
        if report.resumed { String::new() } else { format!(" ({:.0} MB/s)", per_second / 1e6) };
    let mut lines: Vec<String> = report
        .rounded_to_zero
        .iter()
        .map(|(name, n)| format!("{name}: {} numbers other than 0 became 0", grouped(*n)))
        .collect();
    lines.push(format!(
        "{target}: {whole} arrays, {} of values, {} on disk{}, {} source chunks decoded, in {:.1} s{rate}",
        si(report.n_bytes),
        si(report.bytes_on_disk),
        before.unwrap_or_default(),
        grouped(report.n_decoded),
        report.seconds,
    ));
    let names = sampled(&report.arrays);
    if !names.is_empty() {
        lines.push(format!(
            "next: {} sweep {} --arrays {}",
            Program::called_for("fields"),
            quoted(&target.to_string()),
            quoted(&names.join(","))
        ));
    }
    lines
}

/// The variables that have the steps of the largest one.
fn sampled(plans: &[ArrayPlan]) -> Vec<&str> {
    let n_elements = |plan: &&ArrayPlan| plan.shape.iter().product::<u64>();
    let largest = plans.iter().filter(|plan| 1 < plan.shape.len()).max_by_key(n_elements);
    let Some(steps) = largest.and_then(|plan| plan.dimensions.first()) else { return Vec::new() };
    let has_steps =
        |plan: &&ArrayPlan| 1 < plan.shape.len() && plan.dimensions.first() == Some(steps);
    plans.iter().filter(has_steps).map(|plan| plan.name.as_str()).collect()
}

fn as_json(args: &RelayoutArgs, report: &RelayoutReport) -> anyhow::Result<serde_json::Value> {
    let arrays = report.arrays.iter().map(|plan| {
        json!({
            "name": plan.name,
            "dimensions": plan.dimensions,
            "shape": plan.shape,
            "source_chunk": plan.source_chunk,
            "chunk": plan.chunk,
            "shard": plan.shard,
            "from": plan.cast.map(|(from, _)| from.to_string()),
            "to": plan.cast.map(|(_, to)| to.to_string()),
            "times_decoded": plan.times_decoded(),
            "threads": plan.n_threads,
        })
    });
    Ok(json!({
        "uri": args.target.display().to_string(),
        "arrays": arrays.collect::<Vec<_>>(),
        "bytes": report.n_bytes,
        "source_bytes_on_disk": report.source_bytes,
        "bytes_on_disk": report.bytes_on_disk,
        "source_chunks_decoded": report.n_decoded,
        "rounded_to_zero": report.rounded_to_zero.iter().map(|(name, n)| (name.clone(), json!(n))).collect::<serde_json::Map<_, _>>(),
        "seconds": report.seconds,
        "resumed": report.resumed,
        "peak_memory_bytes": peak_bytes()?,
    }))
}
