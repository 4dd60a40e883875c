//! The search: chooses settings by prediction, runs them, and refits until the choice was run.
//!
//! The probe's runs are short and far from the proposal, so the fastest of hundreds of predictions
//! is often one that is too optimistic. Running it corrects the prediction for itself and its
//! neighbours.

use bench_run::BlockSpec;

use super::candidates::PREFETCH_BLOCKS;
use super::choice::{Candidate, Goal, NothingFits, SPEED_TIE, choose};
use crate::model::{Anchored, KnownMemory, Observation, Probe, RunShape};
use crate::survey::Surveyed;

/// Most runs of the search; running the same settings again counts again.
const MOST_STEPS: usize = 4;
/// Most runs of the search while none of the settings run fits.
const MOST_STEPS_IN_NEED: usize = 8;
/// Settings with this many runs are not run again.
const ENOUGH_RUNS: u64 = 2;
/// Seconds that a run should take, and seconds that it may take.
const SECS: [f64; 2] = [6.0, 20.0];

/// The search so far: its observations, and the predictions that follow from them.
pub(crate) struct Refinement<'a> {
    n_rows: u64,
    /// Settings that may be proposed, each with its entropy in bits.
    specs: &'a [(BlockSpec, f64)],
    goal: Goal,
    known: KnownMemory,
    observed: Vec<Observation>,
    /// Settings and blocks read ahead that the search has run, in order.
    ran: Vec<(BlockSpec, u64)>,
    /// Runs so far, including failed ones.
    n_steps: usize,
    /// Least bytes that a failed run was predicted to need; infinite if none failed.
    failed_bytes: f64,
    anchored: Anchored,
    candidates: Vec<Candidate>,
}

impl<'a> Refinement<'a> {
    /// Starts the search from the probe's observations.
    pub(crate) fn new(surveyed: &'a Surveyed, goal: Goal, observed: Vec<Observation>) -> Self {
        let known = surveyed.facts.memory;
        let anchored = Anchored::fit(&observed, known);
        let mut refinement = Self {
            n_rows: surveyed.facts.n_rows,
            specs: &surveyed.candidates,
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

    /// Returns all candidates with their current predictions.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the candidate to run next; `None` once the proposal is final.
    ///
    /// Fails if no candidate fits, or if none of those run fits after `MOST_STEPS_IN_NEED` steps.
    pub(crate) fn next(&self) -> Result<Option<Candidate>, Box<NothingFits>> {
        let best_of_run = choose(&self.of_run(), &self.goal);
        let again = |best: Candidate| Some(best).filter(|best| best.n_runs < ENOUGH_RUNS);
        if let Ok(best) = best_of_run
            && MOST_STEPS <= self.n_steps + 1
        {
            // No new settings now; at most one repeat of those that would be proposed.
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

    /// Returns the best of the candidates that were run. Fails if none of them meets the goal.
    pub(crate) fn proposal(&self) -> Result<Candidate, Box<NothingFits>> {
        choose(&self.of_run(), &self.goal)
    }

    /// Returns the run that measures a candidate: the beginning of an epoch.
    ///
    /// It has two blocks, one more per block read ahead, and more if these are quick.
    pub(crate) fn probe(&self, one: &Candidate) -> Probe {
        let epoch = RunShape::epoch(self.n_rows, one.spec, one.prefetch_blocks);
        let least = 2 + one.prefetch_blocks;
        let of_block = self.anchored.elapsed(&epoch) / epoch.n_blocks() as f64;
        let [aim, most] = SECS.map(|secs| (secs / of_block) as u64);
        let most_blocks = least.max(aim).min(most).max(1);
        Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks }
    }

    /// Adds the observations of a candidate's run and updates all predictions.
    pub(crate) fn ran(&mut self, one: &Candidate, observed: impl IntoIterator<Item = Observation>) {
        self.observed.extend(observed);
        self.ran.push((one.spec, one.prefetch_blocks));
        self.n_steps += 1;
        self.anchored = Anchored::fit(&self.observed, self.known);
        self.predict();
    }

    /// Records that a candidate's run failed. The cause is most likely memory, so no candidate that
    /// needs as much will be run.
    pub(crate) fn failed(&mut self, one: &Candidate) {
        self.failed_bytes = self.failed_bytes.min(one.memory_needed());
        self.n_steps += 1;
    }

    fn allowed(&self) -> Vec<Candidate> {
        let may = |one: &&Candidate| one.memory_needed() < self.failed_bytes;
        self.candidates.iter().filter(may).copied().collect()
    }

    /// Returns the candidates that the search has run.
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

/// Whether `ran` is at most a tie slower than `other`.
fn is_as_fast(ran: &Candidate, other: &Candidate) -> bool {
    other.samples_per_sec * (1.0 - SPEED_TIE) <= ran.samples_per_sec
}

#[cfg(test)]
mod tests;
