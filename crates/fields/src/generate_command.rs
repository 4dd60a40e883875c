//! The command `generate`: weather-like fields from a seed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{Display, finished, grouped, show_leftover, watch_interrupts};
use bytesize::ByteSize;
use clap::Args;

use crate::generate::{
    Codec, FieldSpec, GenerateReport, GenerateSpec, Layout, StoredElement, ZarrVersion, generate,
};

/// Flags of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Path of the new store, a folder; must not exist
    path: PathBuf,
    /// Number of samples
    #[arg(long, value_name = "N", default_value_t = 16)]
    samples: u64,
    /// Number of latitudes
    #[arg(long, value_name = "N", default_value_t = 192)]
    lat: u64,
    /// Number of longitudes
    #[arg(long, value_name = "N", default_value_t = 384)]
    lon: u64,
    /// Number of channels of the inputs
    #[arg(long, value_name = "N", default_value_t = 186)]
    inputs: u64,
    /// Number of channels of the targets
    #[arg(long, value_name = "N", default_value_t = 83)]
    targets: u64,
    /// Seed of the data
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Version of the Zarr format
    #[arg(long, value_name = "VERSION", default_value = "3")]
    zarr: ZarrVersion,
    /// Samples per chunk
    #[arg(long, value_name = "N", default_value_t = 1)]
    chunk_samples: u64,
    /// Channels per chunk [default: all]
    #[arg(long, value_name = "N")]
    chunk_channels: Option<u64>,
    /// Samples per shard, a multiple of the samples per chunk; Zarr 3 only [default: no shards]
    #[arg(long, value_name = "N")]
    shard_samples: Option<u64>,
    /// Compression of chunks: none, zstd, gzip or blosc (lz4 with byte shuffle), with a level if
    /// wanted, like zstd:3 [default levels: zstd 1, gzip 5, blosc 5]
    #[arg(long, value_name = "CODEC[:LEVEL]", default_value_t = Codec::None)]
    codec: Codec,
    /// Stored type of the values
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    element: StoredElement,
    /// Threads [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

impl GenerateArgs {
    fn spec(&self) -> GenerateSpec {
        GenerateSpec {
            fields: FieldSpec {
                n_samples: self.samples,
                n_lat: self.lat,
                n_lon: self.lon,
                n_inputs: self.inputs,
                n_targets: self.targets,
                seed: self.seed,
            },
            layout: Layout {
                zarr: self.zarr,
                chunk_samples: self.chunk_samples,
                chunk_channels: self.chunk_channels,
                shard_samples: self.shard_samples,
                codec: self.codec,
                element: self.element,
            },
            n_threads: self.threads.unwrap_or(0),
            interrupted: Some(watch_interrupts()),
        }
    }
}

/// Writes a store of weather-like fields.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = args.spec();
    let path = args.path.display();
    let display = Display::new(args.samples, "samples", args.quiet);
    display.line(&format!("writing {} to {path}", format_data(&spec)));
    let report = generate(&args.path, &spec, &mut |n_samples| display.position(n_samples));
    display.finish();
    let report = match finished(report, "no store was written")? {
        ControlFlow::Continue(report) => report,
        ControlFlow::Break(code) => return Ok(code),
    };
    show_leftover(&display, &report.leftover);
    display.line(&format!("{path}: {}", format_report(&spec, &report)));
    Ok(ExitCode::SUCCESS)
}

/// Formats number, shape and type of the samples.
fn format_data(spec: &GenerateSpec) -> String {
    let FieldSpec { n_samples, n_lat, n_lon, n_inputs, n_targets, .. } = spec.fields;
    let (n_samples, element) = (grouped(n_samples), spec.layout.element);
    format!("{n_samples} samples of {n_lat} x {n_lon} x ({n_inputs} + {n_targets}) {element}")
}

/// Formats size and rate, and the size on disk if chunks are compressed.
fn format_report(spec: &GenerateSpec, report: &GenerateReport) -> String {
    let per_second = report.n_bytes as f64 / report.seconds.max(f64::MIN_POSITIVE);
    let on_disk = match (spec.layout.codec, report.bytes_on_disk) {
        (Codec::None, _) | (_, None) => String::new(),
        (_, Some(n_bytes)) => format!(", {} on disk", ByteSize(n_bytes).display().si()),
    };
    format!(
        "{}: {} in {:.1} s ({:.0} MB/s){on_disk}",
        format_data(spec),
        ByteSize(report.n_bytes).display().si(),
        report.seconds,
        per_second / 1e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_size_and_rate() {
        let fields = FieldSpec { n_samples: 1024, ..FieldSpec::default() };
        let mut spec = GenerateSpec { fields, ..GenerateSpec::default() };
        let report = GenerateReport {
            n_bytes: 80_900_000_000,
            bytes_on_disk: Some(70_000_000_000),
            seconds: 95.0,
            leftover: None,
        };
        let data = "1,024 samples of 192 x 384 x (186 + 83) f32";
        let expect = format!("{data}: 80.9 GB in 95.0 s (852 MB/s)");
        assert_eq!(format_report(&spec, &report), expect);
        spec.layout.codec = Codec::Zstd(1);
        assert_eq!(format_report(&spec, &report), format!("{expect}, 70.0 GB on disk"));
    }
}
