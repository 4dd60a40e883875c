//! The table of a comparison: rates, times and memory of each side, and the ratio of ours to it.

use bench_report::{EpochRecord, Spread};
use bench_run::{Side, grouped};

use crate::bench::delivered_bytes;

/// The batches that a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batches {
    All,
    AfterFirst,
}

/// The table in Markdown: a row for each side. Ratios are those of the first side.
pub(crate) fn table(sides: &[Side<'_>]) -> String {
    let Some(ours) = sides.first() else { return String::new() };
    let mut text = format!(
        "| reader | MB/s after the first batch | MB/s | s a batch | CPU s | peak GB | {} / reader |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        ours.name()
    );
    text.extend(sides.iter().map(|side| row(side, ours)));
    text
}

fn row(side: &Side<'_>, ours: &Side<'_>) -> String {
    let figures = side.rounds();
    let rate_of = |batches| {
        let spread = figures.spread(&|record| rate(record, batches));
        spread.map_or_else(|| "failed".to_owned(), rates)
    };
    let number = |spread: Option<Spread>, digits: usize| {
        spread.map_or_else(String::new, |spread| format!("{:.digits$}", spread.median))
    };
    let ratio = ours.rounds().ratio(figures, &|record| rate(record, Batches::AfterFirst));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        side.name(),
        rate_of(Batches::AfterFirst),
        rate_of(Batches::All),
        number(figures.spread(&secs_per_batch), 3),
        number(figures.spread(&|record| record.measured.cpu_secs), 2),
        number(figures.spread(&|record| Some(record.measured.max_mem? as f64 / 1e9)), 2),
        ratio.map(|spread| spread.format(2)).unwrap_or_default(),
    )
}

/// Megabytes (10^6 bytes) of samples per second; of a plain read, of files.
fn rate(record: &EpochRecord, batches: Batches) -> Option<f64> {
    let measured = &record.measured;
    let n_rows = measured.n_rows.filter(|n_rows| 0 < *n_rows)?;
    let (n_counted, secs) = match batches {
        Batches::All => (n_rows, measured.elapsed?),
        Batches::AfterFirst => (measured.n_rows_after_first?, measured.elapsed_after_first?),
    };
    let n_bytes = delivered_bytes(record)? as f64 * n_counted as f64 / n_rows as f64;
    (0.0 < n_bytes && 0.0 < secs).then(|| n_bytes / secs / 1e6)
}

/// Seconds of a batch, without the first.
fn secs_per_batch(record: &EpochRecord) -> Option<f64> {
    let n_batches = record.measured.n_batches?.checked_sub(1).filter(|n| 0 < *n)?;
    Some(record.measured.elapsed_after_first? / n_batches as f64)
}

fn rates(spread: Spread) -> String {
    spread.format_by(|number| grouped(number.round() as u64))
}

#[cfg(test)]
mod tests {
    use bench_report::{DataInfo, Measured, Status};

    use super::*;

    fn runs(secs: &[f64]) -> Vec<EpochRecord> {
        let run = |(secs, repeat): (&f64, u64)| EpochRecord {
            data: DataInfo { n_cols: 250_000_000, ..DataInfo::default() },
            measured: Measured {
                status: Status::Ok,
                repeat: Some(repeat),
                n_rows: Some(4),
                n_batches: Some(2),
                elapsed: Some(3.0 * secs),
                n_rows_after_first: Some(2),
                elapsed_after_first: Some(*secs),
                cpu_secs: Some(1.5),
                max_mem: Some(2_000_000_000),
                ..Measured::default()
            },
            ..EpochRecord::default()
        };
        secs.iter().zip(0..).map(run).collect()
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let (ours, theirs, failed) =
            (runs(&[1.0, 2.0, 1.0]), runs(&[2.0, 8.0, 3.0]), vec![EpochRecord::default()]);
        let sides: Vec<Side<'_>> = [("ours", &ours), ("x", &theirs), ("y", &failed)]
            .into_iter()
            .map(|(name, runs)| Side::new(name, runs))
            .collect();
        let table = table(&sides);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| ours | 2,000 (1,000 to 2,000) | 1,333 (667 to 1,333) | 1.000 | 1.50 | 2.00 | 1.00 (1.00 to 1.00) |",
                "| x | 667 (250 to 1,000) | 444 (167 to 667) | 3.000 | 1.50 | 2.00 | 3.00 (2.00 to 4.00) |",
                "| y | failed | failed |  |  |  |  |",
            ]
        );
    }
}
