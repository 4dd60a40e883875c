//! The command `generate`: a file of sequences from a seed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{Display, finished, grouped, show_leftover, watch_interrupts};
use clap::{Args, ValueEnum};
use sequences::RecordFormat;

use crate::generate::{
    Compression, DragonLines, Families, GenerateReport, GenerateSpec, Kind, generate,
};

/// Flags of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The new file; must not exist
    file: PathBuf,
    /// Size as Dragon's generator counts it, half DNA and half RNA: 1GB is 2^30 bytes, names and
    /// their commas come on top of it. Also MB and KB
    #[arg(long, value_name = "SIZE", default_value = "0.125GB", value_parser = size)]
    size: DragonLines,
    /// Write this number of families of related DNA instead
    #[arg(long, value_name = "N", conflicts_with = "size")]
    families: Option<u64>,
    /// Members of a family
    #[arg(long, value_name = "N", default_value_t = 10, requires = "families")]
    members: u64,
    /// Share of the letters in which a member differs from its family's ancestor, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "families")]
    mutations: f64,
    /// Letters of each member of a family
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "families")]
    letters: usize,
    /// Seed of the letters
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How sequences are written
    #[arg(long, value_name = "FORMAT", default_value = "lines")]
    format: Format,
    /// How the file is compressed
    #[arg(long, value_name = "HOW", default_value = "none")]
    compress: Compress,
    /// Threads [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// A format, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Letters, a comma, the name
    Lines,
    Fasta,
    /// With the quality 40 everywhere
    Fastq,
}

/// A compression, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compress {
    None,
    Gzip,
    Bgzip,
}

/// Units of a size, each 1,024 times the next one.
const UNITS: [(&str, i32); 3] = [("GB", 30), ("MB", 20), ("KB", 10)];

/// Largest size in bytes: 64 TB. More is surely a typo.
const MOST_BYTES: f64 = 70_368_744_177_664.0;

fn size(text: &str) -> Result<DragonLines, String> {
    let with_unit = UNITS.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)));
    let (number, power) = with_unit.ok_or("expected a number and GB, MB or KB, like 0.125GB")?;
    let number: f64 = number.trim().parse().map_err(|_| format!("{number:?} is not a number"))?;
    let n_bytes = number * 2_f64.powi(*power);
    if (0.0..=MOST_BYTES).contains(&n_bytes) {
        Ok(DragonLines::bytes(n_bytes as u64))
    } else {
        Err("expected 0 to 65536 GB".to_owned())
    }
}

impl GenerateArgs {
    fn spec(&self) -> GenerateSpec {
        let kind = match self.families {
            None => Kind::Dragon(self.size),
            Some(n_families) => Kind::Families(Families {
                n_families,
                n_members: self.members,
                mutations: self.mutations,
                n_letters: self.letters,
            }),
        };
        GenerateSpec {
            kind,
            format: match self.format {
                Format::Lines => RecordFormat::Lines,
                Format::Fasta => RecordFormat::Fasta,
                Format::Fastq => RecordFormat::Fastq,
            },
            compression: match self.compress {
                Compress::None => Compression::None,
                Compress::Gzip => Compression::Gzip,
                Compress::Bgzip => Compression::Bgzip,
            },
            seed: self.seed,
            n_threads: self.threads.unwrap_or(0),
            interrupted: Some(watch_interrupts()),
        }
    }
}

/// Writes a file.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let spec = args.spec();
    let file = args.file.display();
    let display = Display::counting("sequences", args.quiet);
    let report = generate(&args.file, &spec, &mut |n| display.position(n));
    display.finish();
    let report = match finished(report, "no file was written")? {
        ControlFlow::Continue(report) => report,
        ControlFlow::Break(code) => return Ok(code),
    };
    show_leftover(&display, &report.leftover);
    display.line(&format!("{file}: {}", format_report(&report)));
    Ok(ExitCode::SUCCESS)
}

/// Formats number, size and rate.
fn format_report(report: &GenerateReport) -> String {
    let GenerateReport { n_sequences, n_letters, n_bytes, seconds, .. } = report;
    let (sequences, letters) = (grouped(*n_sequences), grouped(*n_letters));
    let (megabytes, rate) = (*n_bytes as f64 / 1e6, *n_letters as f64 / 1e6 / seconds);
    format!(
        "{sequences} sequences of {letters} letters in {megabytes:.1} MB, {seconds:.2} s \
         ({rate:.0} million letters/s)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_as_in_the_original() {
        assert_eq!(size("0.125GB").unwrap().n_lines(), 130_946);
        assert_eq!(size("256 MB"), Ok(DragonLines::gigabytes(0.25)));
        assert_eq!(size("10KB"), Ok(DragonLines::bytes(10_240)));
        for text in ["", "GB", "1", "1GiB", "x KB", "-1KB", "NaNGB", "1e9GB"] {
            size(text).unwrap_err();
        }
    }

    #[test]
    fn a_report_has_size_and_rate() {
        let report = GenerateReport {
            n_sequences: 130_946,
            n_letters: 134_086_784,
            n_bytes: 136_500_000,
            seconds: 0.5,
            leftover: None,
        };
        assert_eq!(
            format_report(&report),
            "130,946 sequences of 134,086,784 letters in 136.5 MB, 0.50 s (268 million letters/s)"
        );
    }
}
