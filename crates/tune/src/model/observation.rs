//! Figures of measured runs, and their typical values over repeats.

use super::run_shape::RunShape;

/// Figures of one measured run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) run: RunShape,
    /// Seconds from the request for the first batch to the last batch.
    pub(crate) elapsed: f64,
    /// Seconds of `elapsed` during which the reading thread read.
    pub(crate) read_secs: f64,
    /// Peak memory of the process during the epoch, in bytes.
    pub(crate) peak_bytes: f64,
    /// Peak memory before the epoch, if that was higher, in bytes; 0 otherwise. Opening the data
    /// may need more than an epoch.
    pub(crate) opening_bytes: f64,
    /// Memory of the process when the epoch began, in bytes.
    pub(crate) start_bytes: f64,
    /// Bytes that filters returned; `None` if the reader does not count them.
    pub(crate) bytes_decoded: Option<f64>,
}

impl Observation {
    /// Whether the settings are those of `run`; the lengths may differ.
    pub(crate) fn is_like(&self, run: &RunShape) -> bool {
        self.run.spec == run.spec && self.run.prefetch_blocks == run.prefetch_blocks
    }
}

/// Groups observations of the same run shape, in order of first appearance.
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

/// Returns one observation per run shape, with the median times and the highest peak.
///
/// Other work on the machine only adds to times, sometimes a lot.
pub(crate) fn typical(observed: &[Observation]) -> Vec<Observation> {
    repeats(observed).iter().filter_map(|group| typical_of(group)).collect()
}

fn typical_of(group: &[Observation]) -> Option<Observation> {
    let median_of = |figure: fn(&Observation) -> f64| median(group.iter().map(figure).collect());
    Some(Observation {
        elapsed: median_of(|one| one.elapsed)?,
        read_secs: median_of(|one| one.read_secs)?,
        peak_bytes: group.iter().map(|one| one.peak_bytes).fold(0.0, f64::max),
        ..*group.first()?
    })
}

/// Returns the middle value, or the mean of the middle two; `None` if there are no values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[half - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_run::BlockSpec;

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
