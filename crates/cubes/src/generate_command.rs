//! The command `generate`: image cubes from a seed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{Display, finished, grouped, show_leftover, watch_interrupts};
use bytesize::ByteSize;
use clap::Args;

use crate::form_flags::{FormFlags, format_precision};
use crate::generate::{CubeSpec, GenerateReport, GenerateSpec, generate};
use images::Form;

/// Flags of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Folder of the new data set; must not exist
    folder: PathBuf,
    /// Number of images
    #[arg(long, value_name = "N", default_value_t = 16)]
    images: u64,
    /// Height, width and channels of a cube
    #[arg(long, value_name = "HxWxC", default_value = "480x640x100", value_parser = parse_size)]
    size: Size,
    /// Number of classes of the labels
    #[arg(long, value_name = "N", default_value_t = 8)]
    classes: usize,
    /// Number of domains: cameras, whose spectra differ a little
    #[arg(long, value_name = "N", default_value_t = 1)]
    domains: usize,
    /// Noise in the middle of the spectrum, as standard deviation of the reflectance. It decides
    /// how well cubes compress; with the default, as well as htc's
    #[arg(long, value_name = "DEVIATION", default_value_t = CubeSpec::DEFAULT_NOISE)]
    noise: f64,
    /// Seed of the data
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Forms to write: dat, raw32, raw16, zarr
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "dat,raw32,raw16,zarr"
    )]
    formats: Vec<Form>,
    #[command(flatten)]
    forms: FormFlags,
    /// Threads; each writes an image of its own [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// Height, width and channels. A type of its own, because clap takes arrays for lists of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size([usize; 3]);

fn parse_size(text: &str) -> Result<Size, String> {
    let lengths: Vec<usize> = text.split('x').filter_map(|length| length.parse().ok()).collect();
    match (lengths.try_into(), text.split('x').count()) {
        (Ok(shape), 3) => Ok(Size(shape)),
        _ => Err("expected height x width x channels, like 480x640x100".to_owned()),
    }
}

impl GenerateArgs {
    fn spec(&self) -> GenerateSpec {
        GenerateSpec {
            cubes: CubeSpec {
                n_images: self.images,
                shape: self.size.0,
                n_classes: self.classes,
                n_domains: self.domains,
                noise: self.noise,
                seed: self.seed,
            },
            forms: self.forms.spec(&self.formats),
            n_threads: self.threads.unwrap_or(0),
            interrupted: Some(watch_interrupts()),
        }
    }
}

/// Writes a data set.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = args.spec();
    let folder = args.folder.display();
    let display = Display::new(args.images, "images", args.quiet);
    display.line(&format!("writing {} to {folder}", format_data(&spec)));
    let report = generate(&args.folder, &spec, &mut |n_images| display.position(n_images));
    display.finish();
    let report = match finished(report, "no data set was written")? {
        ControlFlow::Continue(report) => report,
        ControlFlow::Break(code) => return Ok(code),
    };
    show_leftover(&display, &report.leftover);
    display.line(&format!("{folder}: {}", format_report(&spec, &report)));
    if let Some(precision) = &report.precision {
        display.line(&format_precision(precision));
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats number, shape and forms of the images.
fn format_data(spec: &GenerateSpec) -> String {
    let [height, width, n_channels] = spec.cubes.shape;
    let forms: Vec<&str> = spec.forms.forms.iter().map(|form| form.name()).collect();
    let n_images = grouped(spec.cubes.n_images);
    format!("{n_images} cubes of {height} x {width} x {n_channels} as {}", forms.join(", "))
}

/// Formats size and rate.
fn format_report(spec: &GenerateSpec, report: &GenerateReport) -> String {
    let GenerateReport { n_bytes, seconds, .. } = report;
    format!(
        "{}: {} in {seconds:.1} s ({:.2} cubes/s)",
        format_data(spec),
        ByteSize(*n_bytes).display().si(),
        spec.cubes.n_images as f64 / seconds.max(f64::MIN_POSITIVE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_three_lengths() {
        assert_eq!(parse_size("480x640x100"), Ok(Size([480, 640, 100])));
        for text in ["", "480", "480x640", "480x640x100x1", "480x640xx100", "ax1x1", "1x1x-1"] {
            parse_size(text).unwrap_err();
        }
    }

    #[test]
    fn a_report_has_size_and_rate() {
        let mut spec = GenerateSpec::default();
        spec.forms.forms = vec![Form::Dat, Form::Raw16];
        let report = GenerateReport {
            n_bytes: 2_500_000_000,
            precision: None,
            seconds: 32.0,
            leftover: None,
        };
        let expect = "16 cubes of 480 x 640 x 100 as dat, raw16: 2.5 GB in 32.0 s (0.50 cubes/s)";
        assert_eq!(format_report(&spec, &report), expect);
    }
}
