//! Choice of the fastest candidate that fits the memory and is random enough.

use std::fmt;

use bytesize::ByteSize;
use serde::Serialize;

use bench_run::BlockSpec;

/// Share of the memory that is left free, so that a peak above the prediction still fits.
pub(crate) const MEMORY_MARGIN: f64 = 0.1;

/// Relative difference of speed that a short probe cannot resolve. Among such candidates the one
/// with the least memory is chosen.
pub(crate) const SPEED_TIE: f64 = 0.03;

/// What a proposal must satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal {
    /// Peak memory of the process, at most, in bytes.
    pub(crate) memory_bytes: f64,
    /// Mean entropy of the label within a batch, at least, in bits.
    pub(crate) bits: f64,
}

/// Settings and their predicted figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Candidate {
    #[serde(flatten)]
    pub(crate) spec: BlockSpec,
    pub(crate) prefetch_blocks: u64,
    /// Rows a second over an epoch, the first batch counted.
    pub(crate) samples_per_sec: f64,
    pub(crate) peak_bytes: f64,
    /// Bytes of batches that are not expected to be touched, but may be.
    pub(crate) untouched_bytes: f64,
    /// 0 if no label is measured.
    pub(crate) entropy_bits: f64,
    /// Runs measured at these settings, of whole epochs or beginnings.
    pub(crate) n_runs: u64,
}

impl Candidate {
    pub(crate) fn is_random_enough(&self, goal: &Goal) -> bool {
        goal.bits <= self.entropy_bits
    }

    /// Returns the least memory goal in bytes that this candidate fits.
    pub(crate) fn memory_needed(&self) -> f64 {
        (self.peak_bytes + self.untouched_bytes) / (1.0 - MEMORY_MARGIN)
    }

    pub(crate) fn fits(&self, goal: &Goal) -> bool {
        self.memory_needed() <= goal.memory_bytes
    }
}

/// Error: no candidate meets the goal. Names the nearest ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NothingFits {
    goal: Goal,
    /// The candidate with the least memory among those that are random enough.
    least_memory: Option<Candidate>,
    /// The most random candidate.
    most_random: Option<Candidate>,
    /// The most random candidate that fits.
    most_random_fitting: Option<Candidate>,
    /// The candidate with the least memory.
    smallest: Option<Candidate>,
}

/// Returns the fastest candidate that meets the goal.
///
/// Among ties, prefers the least memory, then the highest entropy. Fails if no candidate meets the
/// goal.
pub(crate) fn choose(candidates: &[Candidate], goal: &Goal) -> Result<Candidate, Box<NothingFits>> {
    let good: Vec<&Candidate> =
        candidates.iter().filter(|one| one.fits(goal) && one.is_random_enough(goal)).collect();
    let fastest = good.iter().map(|one| one.samples_per_sec).fold(0.0, f64::max);
    good.into_iter()
        .filter(|one| fastest * (1.0 - SPEED_TIE) <= one.samples_per_sec)
        .min_by(|one, other| {
            one.memory_needed()
                .total_cmp(&other.memory_needed())
                .then(other.entropy_bits.total_cmp(&one.entropy_bits))
        })
        .copied()
        .ok_or_else(|| Box::new(nothing_fits(candidates, goal)))
}

fn nothing_fits(candidates: &[Candidate], goal: &Goal) -> NothingFits {
    let memory = |one: &&Candidate, other: &&Candidate| {
        one.memory_needed().total_cmp(&other.memory_needed())
    };
    let bits = |one: &&Candidate, other: &&Candidate| {
        one.entropy_bits.total_cmp(&other.entropy_bits).then(memory(other, one))
    };
    NothingFits {
        goal: *goal,
        least_memory: candidates
            .iter()
            .filter(|one| one.is_random_enough(goal))
            .min_by(memory)
            .copied(),
        most_random: candidates.iter().max_by(bits).copied(),
        most_random_fitting: candidates.iter().filter(|one| one.fits(goal)).max_by(bits).copied(),
        smallest: candidates.iter().min_by(memory).copied(),
    }
}

impl fmt::Display for NothingFits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: f64| ByteSize(bytes.ceil() as u64);
        let goal = &self.goal;
        let printed = |one: &Candidate| format!("{}, {} ahead", one.spec, one.prefetch_blocks);
        write!(f, "nothing fits --memory {}", size(goal.memory_bytes))?;
        if 0.0 < goal.bits {
            write!(f, " with {:.3} bits of entropy", goal.bits)?;
        }
        match (&self.least_memory, &self.most_random) {
            (Some(least), _) => {
                write!(
                    f,
                    "; the least for it is {} ({})",
                    size(least.memory_needed()),
                    printed(least)
                )?;
            }
            (None, Some(most)) => {
                write!(
                    f,
                    "; the most that there is is {:.3} bits ({})",
                    most.entropy_bits,
                    printed(most)
                )?;
            }
            (None, None) => write!(f, "; there is no block that holds a batch")?,
        }
        match (&self.most_random_fitting, &self.smallest) {
            (Some(best), _) => {
                write!(
                    f,
                    "; the best entropy in that memory is {:.3} bits ({})",
                    best.entropy_bits,
                    printed(best)
                )
            }
            (None, Some(smallest)) => {
                write!(f, "; nothing at all runs in less than {}", size(smallest.memory_needed()))
            }
            (None, None) => Ok(()),
        }
    }
}

impl std::error::Error for NothingFits {}

/// Returns the candidates that no other beats in both `cost` and `gain`, by ascending cost.
///
/// Keeps at most `most` of them, including the first and the last; a `most` below 2 keeps all.
pub(crate) fn frontier(
    candidates: impl Iterator<Item = Candidate>,
    cost: impl Fn(&Candidate) -> f64,
    gain: impl Fn(&Candidate) -> f64,
    most: usize,
) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = candidates.collect();
    all.sort_by(|one, other| {
        cost(one).total_cmp(&cost(other)).then(gain(other).total_cmp(&gain(one)))
    });
    let mut best = f64::NEG_INFINITY;
    all.retain(|one| {
        let is_better = best < gain(one);
        best = best.max(gain(one));
        is_better
    });
    if all.len() <= most || most < 2 {
        return all;
    }
    let last = all.len() - 1;
    (0..most).map(|idx| all[idx * last / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate((speed, peak, bits): (u32, u32, u32)) -> Candidate {
        Candidate {
            spec: BlockSpec { chunk_rows: 64, chunks_per_block: 128 },
            prefetch_blocks: 1,
            samples_per_sec: f64::from(speed),
            peak_bytes: f64::from(peak),
            untouched_bytes: 0.0,
            entropy_bits: f64::from(bits),
            n_runs: 0,
        }
    }

    fn goal(memory: u32, bits: u32) -> Goal {
        // Not a whole number, so that rounding decides nothing.
        Goal { memory_bytes: f64::from(memory) + 0.05, bits: f64::from(bits) }
    }

    fn any() -> impl Strategy<Value = Vec<Candidate>> {
        prop::collection::vec((1_u32..100, 1_u32..100, 0_u32..10).prop_map(candidate), 0..20)
    }

    proptest! {
        /// Compares the choice with all pairs of candidates.
        #[test]
        fn the_choice_is_that_of_brute_force(
            candidates in any(), memory in 1_u32..100, bits in 0_u32..10,
        ) {
            let goal = goal(memory, bits);
            let may = |one: &Candidate| {
                one.peak_bytes <= 0.9 * goal.memory_bytes && goal.bits <= one.entropy_bits
            };
            let chosen = choose(&candidates, &goal);
            let Ok(chosen) = chosen else {
                prop_assert!(!candidates.iter().any(may));
                return Ok(());
            };
            prop_assert!(may(&chosen));
            for other in candidates.iter().filter(|one| may(one)) {
                // No candidate is more than a tie faster, and none that ties with the fastest takes
                // less memory.
                prop_assert!(other.samples_per_sec * 0.97 <= chosen.samples_per_sec);
                let ties = candidates
                    .iter()
                    .filter(|one| may(one))
                    .all(|one| one.samples_per_sec * 0.97 <= other.samples_per_sec);
                prop_assert!(!ties || chosen.peak_bytes <= other.peak_bytes);
            }
        }

        #[test]
        fn what_is_said_to_be_enough_is_enough(
            candidates in any(), memory in 1_u32..100, bits in 0_u32..10,
        ) {
            let Err(why) = choose(&candidates, &goal(memory, bits)) else { return Ok(()) };
            prop_assert!(why.to_string().lines().count() == 1);
            if let Some(least) = why.least_memory {
                let enough = Goal { memory_bytes: least.memory_needed(), ..goal(memory, bits) };
                prop_assert!(choose(&candidates, &enough).is_ok());
                let less = Goal { memory_bytes: 0.999 * least.memory_needed(), ..enough };
                prop_assert!(choose(&candidates, &less).is_err());
            }
            if let Some(best) = why.most_random_fitting {
                let enough = Goal { bits: best.entropy_bits, ..goal(memory, bits) };
                prop_assert!(choose(&candidates, &enough).is_ok());
                let more = Goal { bits: best.entropy_bits + 0.001, ..enough };
                prop_assert!(choose(&candidates, &more).is_err());
            }
        }

        #[test]
        fn nothing_beats_the_frontier(candidates in any()) {
            let found = frontier(
                candidates.iter().copied(), |one| one.peak_bytes, |one| one.samples_per_sec, 100,
            );
            prop_assert_eq!(found.is_empty(), candidates.is_empty());
            for one in &found {
                let beats = |other: &Candidate| {
                    other.peak_bytes <= one.peak_bytes && one.samples_per_sec < other.samples_per_sec
                };
                prop_assert!(!candidates.iter().any(beats));
            }
            let thin = frontier(
                candidates.iter().copied(), |one| one.peak_bytes, |one| one.samples_per_sec, 3,
            );
            prop_assert!(thin.len() <= 3);
            prop_assert_eq!(thin.last(), found.last());
        }
    }

    #[test]
    fn what_may_be_added_must_fit_too() {
        let one = Candidate { untouched_bytes: 30.0, ..candidate((10, 60, 3)) };
        assert!(one.fits(&goal(100, 0)) && !one.fits(&goal(99, 0)));
        let other = candidate((10, 80, 3));
        assert_eq!(choose(&[one, other], &goal(100, 0)), Ok(other));
    }

    #[test]
    fn what_would_do_is_said() {
        let candidates = [candidate((10, 900_000, 3)), candidate((20, 90_000, 1))];
        let why = |memory, bits| choose(&candidates, &goal(memory, bits)).unwrap_err().to_string();
        let reason = why(200_000, 2);
        assert_eq!(
            reason,
            "nothing fits --memory 195.3 KiB with 2.000 bits of entropy; the least for it is 976.6 KiB (128x64, 1 ahead); \
             the best entropy in that memory is 1.000 bits (128x64, 1 ahead)"
        );
        assert!(why(2_000_000, 4).contains("the most that there is is 3.000 bits"));
        assert!(why(10, 1).contains("nothing at all runs in less than 97.7 KiB"));
        let nothing = choose(&[], &goal(1, 0)).unwrap_err().to_string();
        assert!(nothing.contains("no block that holds a batch"), "{nothing}");
    }
}
