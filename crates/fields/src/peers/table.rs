//! The table of a comparison: rates, times and memory of each side, and the ratio of ours to it.

use bench_report::{EpochRecord, Spread, Status};
use bench_run::grouped;

use crate::bench::Strategy;

/// A side of the comparison: a name, and the records of its runs.
pub(crate) struct Side<'a> {
    pub(crate) name: String,
    pub(crate) records: Vec<&'a EpochRecord>,
}

/// The batches that a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batches {
    All,
    AfterFirst,
}

impl Side<'_> {
    /// The spread of a figure over the runs that ended well.
    fn spread(&self, figure: impl Fn(&EpochRecord) -> Option<f64>) -> Option<Spread> {
        let ok = self.records.iter().filter(|record| record.measured.status == Status::Ok);
        Spread::of(ok.filter_map(|record| figure(record)))
    }

    fn row(&self, ours: &Side<'_>, sample_bytes: u64) -> String {
        let rate = |batches| {
            let spread = self.spread(|record| rate(record, batches, sample_bytes));
            spread.map_or_else(|| "failed".to_owned(), rates)
        };
        let number = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |spread| format!("{:.digits$}", spread.median))
        };
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            self.name,
            rate(Batches::AfterFirst),
            rate(Batches::All),
            number(self.spread(secs_per_batch), 3),
            number(self.spread(|record| record.measured.cpu_secs), 2),
            number(self.spread(|record| Some(record.measured.max_mem? as f64 / 1e9)), 2),
            self.ratio(ours, sample_bytes).map_or_else(String::new, |spread| format!(
                "{:.2} ({:.2} to {:.2})",
                spread.median, spread.min, spread.max
            )),
        )
    }

    /// Our rate divided by this side's, over the rounds in which both were measured.
    fn ratio(&self, ours: &Side<'_>, sample_bytes: u64) -> Option<Spread> {
        let rate = |record: &EpochRecord| rate(record, Batches::AfterFirst, sample_bytes);
        let pairs = self.records.iter().filter_map(|record| {
            let same_round = |own: &&&EpochRecord| own.measured.repeat == record.measured.repeat;
            Some(rate(ours.records.iter().find(same_round)?)? / rate(record)?)
        });
        Spread::of(pairs)
    }
}

/// The table in Markdown: a row for each side. Ratios are those of the first side.
pub(crate) fn table(sides: &[Side<'_>], sample_bytes: u64) -> String {
    let Some(ours) = sides.first() else { return String::new() };
    let mut text = format!(
        "| reader | MB/s after the first batch | MB/s | s a batch | CPU s | peak GB | {} / reader |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        ours.name
    );
    text.extend(sides.iter().map(|side| side.row(ours, sample_bytes)));
    text
}

/// Megabytes (10^6 bytes) of samples per second; of a plain read, of files.
fn rate(record: &EpochRecord, batches: Batches, sample_bytes: u64) -> Option<f64> {
    let measured = &record.measured;
    let n_rows = measured.n_rows.filter(|n_rows| 0 < *n_rows)?;
    let n_bytes = if record.point.chunk_method == Strategy::PlainRead.name() {
        measured.bytes_read?
    } else {
        n_rows * sample_bytes
    };
    let (n_counted, secs) = match batches {
        Batches::All => (n_rows, measured.elapsed?),
        Batches::AfterFirst => (measured.n_rows_after_first?, measured.elapsed_after_first?),
    };
    let n_bytes = n_bytes as f64 * n_counted as f64 / n_rows as f64;
    (0.0 < n_bytes && 0.0 < secs).then(|| n_bytes / secs / 1e6)
}

/// Seconds of a batch, without the first.
fn secs_per_batch(record: &EpochRecord) -> Option<f64> {
    let n_batches = record.measured.n_batches?.checked_sub(1).filter(|n| 0 < *n)?;
    Some(record.measured.elapsed_after_first? / n_batches as f64)
}

fn rates(spread: Spread) -> String {
    let whole = |number: f64| grouped(number.round() as u64);
    format!("{} ({} to {})", whole(spread.median), whole(spread.min), whole(spread.max))
}

#[cfg(test)]
mod tests {
    use bench_report::Measured;

    use super::*;

    fn runs(secs: &[f64]) -> Vec<EpochRecord> {
        let run = |(secs, repeat): (&f64, u64)| EpochRecord {
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
            .map(|(name, runs)| Side { name: name.to_owned(), records: runs.iter().collect() })
            .collect();
        let table = table(&sides, 1_000_000_000);
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
