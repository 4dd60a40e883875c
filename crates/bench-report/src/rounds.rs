//! The epochs of a loader, round by round.

use crate::{EpochRecord, MeanStd, Spread, Status};

/// A figure of an epoch; `None` if it was not measured.
pub type Figure<'a> = &'a dyn Fn(&EpochRecord) -> Option<f64>;

/// Records of epochs that ended well, by the round that made them: a round is a process, and all
/// that is compared runs once in each round.
#[derive(Debug)]
pub struct Rounds<'a>(Vec<(Option<u64>, Vec<&'a EpochRecord>)>);

impl<'a> Rounds<'a> {
    /// Puts the records of each round together; those of failed epochs are left out.
    pub fn from_records(records: impl IntoIterator<Item = &'a EpochRecord>) -> Self {
        let mut rounds: Vec<(Option<u64>, Vec<&EpochRecord>)> = Vec::new();
        for record in records.into_iter().filter(|of| of.measured.status == Status::Ok) {
            let repeat = record.measured.repeat;
            match rounds.iter_mut().find(|(of, _)| *of == repeat) {
                Some((_, records)) => records.push(record),
                None => rounds.push((repeat, vec![record])),
            }
        }
        rounds.sort_by_key(|(repeat, _)| *repeat);
        Self(rounds)
    }

    /// The records of each round.
    pub fn records(&self) -> impl Iterator<Item = &[&'a EpochRecord]> {
        self.0.iter().map(|(_, records)| records.as_slice())
    }

    /// The mean of a figure over the epochs of each round, with the round's number. Rounds without
    /// the figure are left out.
    pub fn means(&self, figure: Figure<'_>) -> Vec<(Option<u64>, f64)> {
        let of_round = |(repeat, records): &(Option<u64>, Vec<&EpochRecord>)| {
            let values: Vec<f64> = records.iter().filter_map(|record| figure(record)).collect();
            Some((*repeat, MeanStd::from_values(&values)?.mean))
        };
        self.0.iter().filter_map(of_round).collect()
    }

    /// Mean and standard deviation of a figure over the rounds.
    pub fn mean_std(&self, figure: Figure<'_>) -> Option<MeanStd> {
        let means: Vec<f64> = self.means(figure).into_iter().map(|(_, value)| value).collect();
        MeanStd::from_values(&means)
    }

    /// Median and range of a figure over the rounds.
    pub fn spread(&self, figure: Figure<'_>) -> Option<Spread> {
        Spread::from_values(self.means(figure).into_iter().map(|(_, value)| value))
    }

    /// The figure divided by that of `others`, over the rounds that have both.
    pub fn ratio(&self, others: &Rounds<'_>, figure: Figure<'_>) -> Option<Spread> {
        let others = others.means(figure);
        let pairs = self.means(figure).into_iter().filter_map(|(repeat, own)| {
            let other = others.iter().find(|(of, _)| *of == repeat)?.1;
            (other != 0.0).then(|| own / other)
        });
        Spread::from_values(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measured;

    fn epochs(rates: &[(u64, f64)]) -> Vec<EpochRecord> {
        let epoch = |(repeat, rate): &(u64, f64)| EpochRecord {
            measured: Measured {
                status: Status::Ok,
                repeat: Some(*repeat),
                samples_per_sec: Some(*rate),
                ..Measured::default()
            },
            ..EpochRecord::default()
        };
        rates.iter().map(epoch).collect()
    }

    #[test]
    fn epochs_are_averaged_first_and_rounds_then() {
        let mut ours = epochs(&[(1, 4.0), (0, 1.0), (1, 6.0), (0, 3.0)]);
        ours.push(EpochRecord::default());
        let ours = Rounds::from_records(&ours);
        let rate: Figure<'_> = &|record| record.measured.samples_per_sec;
        assert_eq!(ours.means(rate), [(Some(0), 2.0), (Some(1), 5.0)]);
        assert_eq!(ours.mean_std(rate).unwrap(), MeanStd::from_values(&[2.0, 5.0]).unwrap());
        assert_eq!(ours.spread(rate).unwrap().max, 5.0);
        assert_eq!(ours.records().map(<[_]>::len).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(ours.spread(&|record| record.measured.cpu_secs), None);

        let theirs = epochs(&[(1, 2.5), (2, 7.0)]);
        let ratio = ours.ratio(&Rounds::from_records(&theirs), rate).unwrap();
        assert_eq!((ratio.min, ratio.max, ratio.n), (2.0, 2.0, 1));
    }
}
