//! The table of a comparison with other readers: rates, processor time and memory of each side, and
//! ours in relation to them.

use bench_report::{EpochRecord, Rounds, Spread};

/// A side of the comparison: a name, and the records of its timed epochs.
#[derive(Debug)]
pub struct Side<'a> {
    name: String,
    rounds: Rounds<'a>,
}

/// What samples are called in the table, and the units of its numbers.
#[derive(Debug, Clone, Copy)]
pub struct SampleUnits {
    /// Several samples: "cubes".
    pub samples: &'static str,
    /// Digits of samples a second behind the point.
    pub rate_digits: usize,
    /// Processor time of a sample: "CPU s a cube".
    pub cpu: &'static str,
    /// What a second is multiplied by for that.
    pub cpu_factor: f64,
}

impl<'a> Side<'a> {
    /// A side with these records; those of failed epochs are left out.
    pub fn new(
        name: impl Into<String>,
        records: impl IntoIterator<Item = &'a EpochRecord>,
    ) -> Self {
        Self { name: name.into(), rounds: Rounds::from_records(records) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rounds.
    pub fn rounds(&self) -> &Rounds<'a> {
        &self.rounds
    }

    fn row(&self, ours: &Side<'_>, units: &SampleUnits) -> String {
        let spread =
            |of: Option<Spread>, digits| of.map(|of| of.format(digits)).unwrap_or_default();
        let number = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |of| format!("{:.digits$}", of.median))
        };
        let (figures, ratio) = (&self.rounds, |figure| ours.rounds.ratio(&self.rounds, figure));
        let rate = figures.spread(&rate);
        let cells = [
            self.name.clone(),
            if rate.is_some() { spread(rate, units.rate_digits) } else { "failed".to_owned() },
            number(figures.spread(&|record| record.measured.time_to_first_batch_secs), 3),
            number(figures.spread(&cpu_secs).map(|of| of.scaled(units.cpu_factor)), 3),
            number(figures.spread(&peak_bytes).map(|of| of.scaled(1e-9)), 2),
            spread(ratio(&self::rate), 2),
            spread(ratio(&cpu_secs), 2),
            spread(ratio(&peak_bytes), 2),
        ];
        format!("| {} |\n", cells.join(" | "))
    }
}

/// The table in Markdown: a row for each side. The first side is in relation to each.
pub fn reader_table(sides: &[Side<'_>], units: &SampleUnits) -> String {
    let Some(ours) = sides.first() else { return String::new() };
    let name = &ours.name;
    let SampleUnits { samples, cpu, .. } = units;
    let mut text = format!(
        "| reader | {samples}/s | first batch s | {cpu} | peak GB | rate: {name} / reader \
         | CPU: {name} / reader | memory: {name} / reader |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    text.extend(sides.iter().map(|side| side.row(ours, units)));
    text
}

/// Samples a second, the first batch included.
fn rate(record: &EpochRecord) -> Option<f64> {
    record.measured.samples_per_sec
}

/// CPU seconds a sample.
fn cpu_secs(record: &EpochRecord) -> Option<f64> {
    let measured = &record.measured;
    Some(measured.cpu_secs? / measured.n_rows.filter(|n| 0 < *n)? as f64)
}

fn peak_bytes(record: &EpochRecord) -> Option<f64> {
    record.measured.max_mem.map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use bench_report::{Measured, Status};

    use super::*;

    fn epochs(rates: &[&[f64]]) -> Vec<EpochRecord> {
        let epoch = |repeat: u64, rate: f64| EpochRecord {
            measured: Measured {
                status: Status::Ok,
                repeat: Some(repeat),
                n_rows: Some(8),
                samples_per_sec: Some(rate),
                cpu_secs: Some(8.0 / rate),
                max_mem: Some(2_000_000_000),
                ..Measured::default()
            },
            ..EpochRecord::default()
        };
        let rounds = rates.iter().zip(0..);
        rounds.flat_map(|(round, n)| round.iter().map(move |rate| epoch(n, *rate))).collect()
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let units =
            SampleUnits { samples: "cubes", rate_digits: 2, cpu: "CPU ms a cube", cpu_factor: 1e3 };
        let (ours, theirs) = (epochs(&[&[3.0, 5.0], &[8.0, 8.0]]), epochs(&[&[2.0], &[2.0]]));
        let failed = vec![EpochRecord::default()];
        let sides = [Side::new("ours", &ours), Side::new("x", &theirs), Side::new("y", &failed)];
        let table = reader_table(&sides, &units);
        assert!(table.starts_with("| reader | cubes/s | first batch s | CPU ms a cube |"));
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert!(rows[0].starts_with("| ours | 6.00 (4.00 to 8.00) |"), "{table}");
        assert!(rows[1].starts_with("| x | 2.00 (2.00 to 2.00) |  | 500.000 | 2.00 |"), "{table}");
        assert!(rows[1].contains("| 3.00 (2.00 to 4.00) |"), "{table}");
        assert!(rows[1].ends_with("| 1.00 (1.00 to 1.00) |"), "{table}");
        assert_eq!(rows[2], "| y | failed |  |  |  |  |  |  |");
    }
}
