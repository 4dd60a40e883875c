//! The search: settings are chosen by what is predicted, run, and chosen again by what the runs add
//! to the prediction, until the choice is one that was run.
//!
//! A probe's runs are short and far from what is proposed; so the fastest of hundreds of
//! predictions is, more often than not, one that errs to the fast side. Running it puts that right
//! for itself and its neighbours.

use grid_point::BlockSpec;

use super::candidates::PREFETCH_BLOCKS;
use super::choice::{Candidate, Goal, NothingFits, SPEED_TIE, choose};
use crate::model::{Anchored, KnownMemory, Observation, Probe, RunShape};

/// Settings are run so often in all, the same ones twice counted twice.
const MOST_STEPS: usize = 4;
/// The same, as long as nothing fits of what was run.
const MOST_STEPS_IN_NEED: usize = 8;
/// Settings that were run so often are not run again.
const ENOUGH_RUNS: u64 = 2;
/// A run of so many seconds is aimed at, and more are not.
const SECS: [f64; 2] = [6.0, 20.0];

/// What was measured so far, and what it says.
pub(crate) struct Refinement<'a> {
    n_rows: u64,
    /// What may be proposed, each with its entropy in bits.
    specs: &'a [(BlockSpec, f64)],
    goal: Goal,
    known: KnownMemory,
    observed: Vec<Observation>,
    /// Settings that were run for the search, in order.
    ran: Vec<(BlockSpec, u64)>,
    /// With those that failed.
    n_steps: usize,
    /// Bytes that a run was predicted to need which failed.
    failed_bytes: f64,
    anchored: Anchored,
    candidates: Vec<Candidate>,
}

impl<'a> Refinement<'a> {
    /// From what a probe has observed.
    pub(crate) fn new(
        (n_rows, specs): (u64, &'a [(BlockSpec, f64)]),
        goal: Goal,
        known: KnownMemory,
        observed: Vec<Observation>,
    ) -> Self {
        let anchored = Anchored::fit(&observed, known);
        let mut refinement = Self {
            n_rows,
            specs,
            goal,
            known,
            observed,
            ran: Vec::new(),
            n_steps: 0,
            failed_bytes: f64::INFINITY,
            anchored,
            candidates: Vec::new(),
        };
        refinement.predict();
        refinement
    }

    pub(crate) fn anchored(&self) -> &Anchored {
        &self.anchored
    }

    /// All candidates as they are predicted now.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// What to run next; none where the proposal stands.
    pub(crate) fn next(&self) -> Result<Option<Candidate>, Box<NothingFits>> {
        let best_of_run = choose(&self.of_run(), &self.goal);
        let again = |best: Candidate| Some(best).filter(|best| best.n_runs < ENOUGH_RUNS);
        if let Ok(best) = best_of_run
            && MOST_STEPS <= self.n_steps + 1
        {
            // Nothing new any more, at most another look at what would be proposed.
            return Ok(again(best).filter(|_| self.n_steps < MOST_STEPS));
        }
        match (choose(&self.allowed(), &self.goal), best_of_run) {
            (Ok(next), Ok(best)) if is_as_fast(&best, &next) => Ok(again(best)),
            (Err(_), Ok(best)) => Ok(again(best)),
            (Ok(_), Err(nothing)) if MOST_STEPS_IN_NEED <= self.n_steps => Err(nothing),
            (Ok(next), _) => Ok(Some(next)),
            (Err(nothing), Err(_)) => Err(nothing),
        }
    }

    /// The best of those that were run.
    pub(crate) fn proposal(&self) -> Result<Candidate, Box<NothingFits>> {
        choose(&self.of_run(), &self.goal)
    }

    /// The beginning of an epoch: two blocks, with one ahead three, and more where those take no
    /// time.
    pub(crate) fn probe(&self, one: &Candidate) -> Probe {
        let epoch = RunShape::epoch(self.n_rows, one.spec, one.prefetch_blocks);
        let least = 2 + one.prefetch_blocks;
        let of_block = self.anchored.elapsed(&epoch) / epoch.n_blocks() as f64;
        let [aim, most] = SECS.map(|secs| (secs / of_block) as u64);
        let most_blocks = least.max(aim).min(most).max(1);
        Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks }
    }

    /// Takes what was measured of a candidate.
    pub(crate) fn ran(&mut self, one: &Candidate, observed: impl IntoIterator<Item = Observation>) {
        self.observed.extend(observed);
        self.ran.push((one.spec, one.prefetch_blocks));
        self.n_steps += 1;
        self.anchored = Anchored::fit(&self.observed, self.known);
        self.predict();
    }

    /// It could not be run. Most likely it was memory, so nothing that takes as much will be.
    pub(crate) fn failed(&mut self, one: &Candidate) {
        self.failed_bytes = self.failed_bytes.min(one.memory_needed());
        self.n_steps += 1;
    }

    fn allowed(&self) -> Vec<Candidate> {
        let may = |one: &&Candidate| one.memory_needed() < self.failed_bytes;
        self.candidates.iter().filter(may).copied().collect()
    }

    /// Candidates that were run for the search.
    fn of_run(&self) -> Vec<Candidate> {
        let may = |one: &&Candidate| self.ran.contains(&(one.spec, one.prefetch_blocks));
        self.candidates.iter().filter(may).copied().collect()
    }

    fn predict(&mut self) {
        self.candidates.clear();
        for (spec, entropy_bits) in self.specs {
            for prefetch_blocks in PREFETCH_BLOCKS {
                let epoch = RunShape::epoch(self.n_rows, *spec, prefetch_blocks);
                let (peak_bytes, untouched_bytes) = self.anchored.peak_bytes(&epoch);
                let n_runs = self.observed.iter().filter(|one| one.is_like(&epoch)).count();
                self.candidates.push(Candidate {
                    spec: *spec,
                    prefetch_blocks,
                    samples_per_sec: self.anchored.samples_per_sec(&epoch),
                    peak_bytes,
                    untouched_bytes,
                    entropy_bits: *entropy_bits,
                    n_runs: n_runs as u64,
                });
            }
        }
    }
}

/// Whether what was run is the other one, or not slower than it by more than can be told.
fn is_as_fast(ran: &Candidate, other: &Candidate) -> bool {
    other.samples_per_sec * (1.0 - SPEED_TIE) <= ran.samples_per_sec
}

#[cfg(test)]
mod tests;
