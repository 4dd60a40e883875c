//! The command `preprocess`: cubes of Tivita's files in other forms.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{Display, finished, grouped, print_message, show_leftover, watch_interrupts};
use bytesize::ByteSize;
use clap::Args;

use crate::form_flags::{FormFlags, format_precision};
use crate::preprocess::{PreprocessReport, PreprocessSpec, preprocess};
use images::Form;

/// Flags of `preprocess`.
#[derive(Debug, Args)]
pub(crate) struct PreprocessArgs {
    /// Folder of the data set: with *_SpecCube.dat in its folder dat, or anywhere below it
    data: PathBuf,
    /// Forms to write: raw32, raw16, zarr
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    to: Vec<Form>,
    #[command(flatten)]
    forms: FormFlags,
    /// Skip files that cannot be used. The exit code is then 1
    #[arg(long)]
    skip_bad: bool,
    /// Threads; each converts a cube of its own [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// Converts a data set.
pub(crate) fn run(args: &PreprocessArgs) -> anyhow::Result<ExitCode> {
    let spec = PreprocessSpec {
        forms: args.forms.spec(&args.to),
        skip_bad: args.skip_bad,
        n_threads: args.threads.unwrap_or(0),
        interrupted: Some(watch_interrupts()),
    };
    let data = args.data.display();
    let display = std::cell::OnceCell::new();
    let outcome = preprocess(
        &args.data,
        &spec,
        &mut |n_images| drop(display.set(Display::new(n_images, "cubes", args.quiet))),
        &mut |n_done| {
            if let Some(display) = display.get() {
                display.position(n_done);
            }
        },
    );
    let display = display.into_inner().unwrap_or_else(|| Display::counting("cubes", args.quiet));
    display.finish();
    let report = match finished(outcome, "what was finished stays, and the next run does the rest")?
    {
        ControlFlow::Continue(report) => report,
        ControlFlow::Break(code) => return Ok(code),
    };
    show_leftover(&display, &report.leftovers);
    display.line(&format!("{data}: {}", format_report(&args.to, &report)));
    if let Some(precision) = &report.precision {
        display.line(&format_precision(precision));
    }
    if report.skipped.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for error in report.skipped {
        print_message!("skipped: {:#}", anyhow::Error::from(error));
    }
    Ok(ExitCode::FAILURE)
}

/// Formats numbers, sizes and rates.
fn format_report(forms: &[Form], report: &PreprocessReport) -> String {
    let PreprocessReport { n_written, n_kept, bytes_in, bytes_out, seconds, .. } = report;
    let forms: Vec<&str> = forms.iter().map(|form| form.name()).collect();
    let seconds = seconds.max(f64::MIN_POSITIVE);
    let mut counts = vec![format!("{} of {} cubes", forms.join(", "), grouped(*n_written))];
    if *n_kept != 0 {
        counts.push(format!("{} were there already", grouped(*n_kept)));
    }
    if !report.skipped.is_empty() {
        counts.push(format!("{} skipped", grouped(report.skipped.len() as u64)));
    }
    let counts = counts.join(", ");
    if *n_written == 0 {
        return counts;
    }
    let size = |n_bytes: u64| ByteSize(n_bytes).display().si();
    let rate = |n_bytes: u64| n_bytes as f64 / 1e6 / seconds;
    format!(
        "{counts}: {} in, {} out in {seconds:.1} s ({:.2} cubes/s, {:.0} MB/s in, {:.0} MB/s out)",
        size(*bytes_in),
        size(*bytes_out),
        *n_written as f64 / seconds,
        rate(*bytes_in),
        rate(*bytes_out),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_report_has_numbers_sizes_and_rates() {
        let mut report = PreprocessReport {
            n_written: 1_000,
            bytes_in: 122_880_012_000,
            bytes_out: 37_000_000_000,
            seconds: 500.0,
            ..PreprocessReport::default()
        };
        let rates = "122.9 GB in, 37.0 GB out in 500.0 s (2.00 cubes/s, 246 MB/s in, 74 MB/s out)";
        assert_eq!(
            format_report(&[Form::Raw16], &report),
            format!("raw16 of 1,000 cubes: {rates}")
        );
        report.n_kept = 3;
        report.skipped.push(Error::Interrupted);
        let expect = format!("raw16 of 1,000 cubes, 3 were there already, 1 skipped: {rates}");
        assert_eq!(format_report(&[Form::Raw16], &report), expect);
        let report = PreprocessReport { n_kept: 2, ..PreprocessReport::default() };
        let expect = "raw32, zarr of 0 cubes, 2 were there already";
        assert_eq!(format_report(&[Form::Raw32, Form::Zarr], &report), expect);
    }
}
