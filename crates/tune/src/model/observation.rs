//! What was measured of runs, and what is typical of several with the same settings.

use super::run_shape::RunShape;

/// What was measured of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) run: RunShape,
    /// Seconds from asking for the first batch to the last one.
    pub(crate) elapsed: f64,
    /// Seconds of them in which the reading thread read.
    pub(crate) read_secs: f64,
    /// Memory of the process at its peak in the epoch.
    pub(crate) peak_bytes: f64,
    /// The same before the epoch, if that was more: opening the data may need more than an epoch. 0
    /// otherwise.
    pub(crate) opening_bytes: f64,
    /// The same when the epoch began.
    pub(crate) start_bytes: f64,
    /// What filters gave, where the reader counts it.
    pub(crate) bytes_decoded: Option<f64>,
}

impl Observation {
    /// Whether it was measured with the same settings, perhaps of another length.
    pub(crate) fn is_like(&self, run: &RunShape) -> bool {
        self.run.spec == run.spec && self.run.prefetch_blocks == run.prefetch_blocks
    }
}

/// Runs that read the same, one after the other.
pub(crate) fn repeats(observed: &[Observation]) -> Vec<Vec<Observation>> {
    let mut groups: Vec<Vec<Observation>> = Vec::new();
    for one in observed {
        match groups.iter_mut().find(|group| group.iter().any(|other| other.run == one.run)) {
            Some(group) => group.push(*one),
            None => groups.push(vec![*one]),
        }
    }
    groups
}

/// One observation for all that read the same, with the median of their times: other work on the
/// machine only adds to them, and to some a lot. A peak is the highest.
pub(crate) fn typical(observed: &[Observation]) -> Vec<Observation> {
    repeats(observed).iter().filter_map(|group| typical_of(group)).collect()
}

fn typical_of(group: &[Observation]) -> Option<Observation> {
    let of = |figure: fn(&Observation) -> f64| median(group.iter().map(figure).collect());
    Some(Observation {
        elapsed: of(|one| one.elapsed)?,
        read_secs: of(|one| one.read_secs)?,
        peak_bytes: group.iter().map(|one| one.peak_bytes).fold(0.0, f64::max),
        ..*group.first()?
    })
}

/// The one in the middle, or the mean of both.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[half - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use grid_point::BlockSpec;

    #[test]
    fn what_is_typical_does_not_depend_on_one_slow_run() {
        let spec = BlockSpec { chunk_rows: 64, chunks_per_block: 64 };
        let one = |prefetch_blocks, elapsed, peak_bytes| Observation {
            run: RunShape::epoch(20_000, spec, prefetch_blocks),
            elapsed,
            read_secs: 0.5 * elapsed,
            peak_bytes,
            opening_bytes: 0.0,
            start_bytes: 1.0,
            bytes_decoded: None,
        };
        let found =
            typical(&[one(0, 3.0, 5.0), one(1, 8.0, 4.0), one(0, 1.0, 7.0), one(0, 1.2, 6.0)]);
        assert_eq!(found, [one(0, 1.2, 7.0), one(1, 8.0, 4.0)]);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!((median(Vec::new()), typical(&[])), (None, Vec::new()));
    }
}
