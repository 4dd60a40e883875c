//! The table of a comparison: rates, processor time and memory of each side, and ours in relation
//! to them.

use bench_report::{EpochRecord, Spread, Status};

/// A side of the comparison: a name, and the records of its timed epochs.
pub(crate) struct Side<'a> {
    pub(crate) name: String,
    pub(crate) records: Vec<&'a EpochRecord>,
}

impl Side<'_> {
    /// Means over the epochs of each round that ended well, with the number of the round.
    fn rounds(&self, figure: &dyn Fn(&EpochRecord) -> Option<f64>) -> Vec<(Option<u64>, f64)> {
        let ok = || self.records.iter().filter(|record| record.measured.status == Status::Ok);
        let mut repeats: Vec<Option<u64>> = ok().map(|record| record.measured.repeat).collect();
        repeats.sort_unstable();
        repeats.dedup();
        let of_round = |repeat: Option<u64>| {
            let of = ok().filter(|record| record.measured.repeat == repeat);
            let values: Vec<f64> = of.filter_map(|record| figure(record)).collect();
            Some((repeat, crate::statistics::mean(&values)?))
        };
        repeats.into_iter().filter_map(of_round).collect()
    }

    /// The spread of a figure over the rounds.
    fn spread(&self, figure: &dyn Fn(&EpochRecord) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds(figure).into_iter().map(|(_, value)| value))
    }

    /// Our figure divided by this side's, over the rounds in which both were measured.
    fn ratio(
        &self,
        ours: &Side<'_>,
        figure: &dyn Fn(&EpochRecord) -> Option<f64>,
    ) -> Option<Spread> {
        let ours = ours.rounds(figure);
        let pairs = self.rounds(figure).into_iter().filter_map(|(repeat, theirs)| {
            let own = ours.iter().find(|(of, _)| *of == repeat)?.1;
            (theirs != 0.0).then(|| own / theirs)
        });
        Spread::of(pairs)
    }

    fn row(&self, ours: &Side<'_>) -> String {
        let spread = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |of| {
                format!("{:.digits$} ({:.digits$} to {:.digits$})", of.median, of.min, of.max)
            })
        };
        let number = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |of| format!("{:.digits$}", of.median))
        };
        let rate = self.spread(&rate);
        let cells = [
            self.name.clone(),
            if rate.is_some() { spread(rate, 2) } else { "failed".to_owned() },
            number(self.spread(&|record| record.measured.time_to_first_batch_secs), 3),
            number(self.spread(&cpu_secs), 3),
            number(self.spread(&|record| Some(record.measured.max_mem? as f64 / 1e9)), 2),
            spread(self.ratio(ours, &crate::peers::table::rate), 2),
            spread(self.ratio(ours, &cpu_secs), 2),
            spread(self.ratio(ours, &|record| Some(record.measured.max_mem? as f64)), 2),
        ];
        format!("| {} |\n", cells.join(" | "))
    }
}

/// The table in Markdown: a row for each side. The first side is in relation to each.
pub(crate) fn table(sides: &[Side<'_>]) -> String {
    let Some(ours) = sides.first() else { return String::new() };
    let name = &ours.name;
    let mut text = format!(
        "| reader | cubes/s | first batch s | CPU s a cube | peak GB | rate: {name} / reader \
         | CPU: {name} / reader | memory: {name} / reader |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    text.extend(sides.iter().map(|side| side.row(ours)));
    text
}

/// Cubes a second, the first batch included.
fn rate(record: &EpochRecord) -> Option<f64> {
    record.measured.samples_per_sec
}

/// CPU seconds a cube.
fn cpu_secs(record: &EpochRecord) -> Option<f64> {
    let measured = &record.measured;
    Some(measured.cpu_secs? / measured.n_rows.filter(|n| 0 < *n)? as f64)
}

#[cfg(test)]
mod tests {
    use bench_report::Measured;

    use super::*;

    fn epochs(rates: &[&[f64]]) -> Vec<EpochRecord> {
        let epoch = |repeat: u64, rate: f64| EpochRecord {
            measured: Measured {
                status: Status::Ok,
                repeat: Some(repeat),
                n_rows: Some(4),
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
        let (ours, theirs) = (epochs(&[&[3.0, 5.0], &[8.0, 8.0]]), epochs(&[&[2.0], &[2.0]]));
        let failed = vec![EpochRecord::default()];
        let sides: Vec<Side<'_>> = [("ours", &ours), ("x", &theirs), ("y", &failed)]
            .into_iter()
            .map(|(name, records)| Side {
                name: name.to_owned(),
                records: records.iter().collect(),
            })
            .collect();
        let table = table(&sides);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert!(rows[0].starts_with("| ours | 6.00 (4.00 to 8.00) |"), "{table}");
        assert!(rows[1].contains("| 3.00 (2.00 to 4.00) |"), "{table}");
        assert!(rows[1].ends_with("| 1.00 (1.00 to 1.00) |"), "{table}");
        assert_eq!(rows[2], "| y | failed |  |  |  |  |  |  |");
    }
}
