//! Ratios of two loaders in alternating runs: of their medians, and of each pair of runs.

use bench_report::{EpochRecord, Spread, Status};

/// Ratio of our figure to a peer's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// Ratio of the medians.
    pub(crate) of_medians: f64,
    /// Spread of the ratios of runs in the same round.
    pub(crate) pairs: Spread,
}

impl Ratio {
    /// Divides our figures by theirs. Returns `None` if a figure is missing or there is no pair.
    pub(crate) fn from_epochs(
        ours: &[&EpochRecord],
        theirs: &[&EpochRecord],
        figure: impl Fn(&EpochRecord) -> Option<f64>,
    ) -> Option<Self> {
        let median = |side: &[&EpochRecord]| spread(side, &figure).map(|spread| spread.median);
        let pairs = ours.iter().filter_map(|one| {
            let beside = theirs.iter().find(|other| {
                other.measured.repeat == one.measured.repeat
                    && other.measured.epoch == one.measured.epoch
            })?;
            Some(figure(one)? / figure(beside)?)
        });
        let of_medians = median(ours)? / median(theirs)?;
        Some(Self { of_medians, pairs: Spread::from_values(pairs)? })
            .filter(|_| of_medians.is_finite())
    }
}

/// Returns the spread of a figure over the successful runs.
pub(crate) fn spread(
    records: &[&EpochRecord],
    figure: impl Fn(&EpochRecord) -> Option<f64>,
) -> Option<Spread> {
    let ok = records.iter().filter(|record| record.measured.status == Status::Ok);
    Spread::from_values(ok.filter_map(|record| figure(record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_report::Measured;

    fn records(rates: &[f64]) -> Vec<EpochRecord> {
        let records = rates.iter().zip(1..).map(|(rate, repeat)| EpochRecord {
            measured: Measured {
                status: Status::Ok,
                epoch: Some(0),
                repeat: Some(repeat),
                samples_per_sec: Some(*rate),
                ..Measured::default()
            },
            ..EpochRecord::default()
        });
        records.collect()
    }

    fn ratio(ours: &[EpochRecord], theirs: &[EpochRecord]) -> Option<Ratio> {
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.iter().collect(), theirs.iter().collect());
        Ratio::from_epochs(&ours, &theirs, |record| record.measured.samples_per_sec)
    }

    #[test]
    fn medians_and_pairs_are_two_things() {
        let found = ratio(&records(&[80.0, 100.0, 90.0]), &records(&[10.0, 20.0, 15.0])).unwrap();
        assert_eq!(found.of_medians, 6.0);
        assert_eq!((found.pairs.min, found.pairs.max, found.pairs.n), (5.0, 8.0, 3));
    }

    #[test]
    fn pairs_are_those_of_the_same_repetition() {
        let ours = records(&[80.0, 100.0]);
        let mut theirs = records(&[10.0, 20.0]);
        theirs.remove(0);
        let found = ratio(&ours, &theirs).unwrap();
        assert_eq!((found.of_medians, found.pairs.min, found.pairs.n), (4.5, 5.0, 1));
        theirs[0].measured.epoch = Some(1);
        assert_eq!(ratio(&ours, &theirs), None);
    }

    #[test]
    fn what_failed_has_no_figure() {
        let mut theirs = records(&[10.0]);
        theirs[0].measured = Measured::failed(Status::Oom, "killed");
        assert_eq!(ratio(&records(&[80.0]), &theirs), None);
        assert_eq!(ratio(&records(&[80.0]), &[]), None);
        assert_eq!(ratio(&records(&[80.0]), &records(&[0.0])), None);
    }
}
