//! The search: settings are chosen by what is predicted, run, and chosen again by what the runs add to the prediction, until the choice
//! is one that was run.
//!
//! A probe's runs are short and far from what is proposed; so the fastest of hundreds of predictions is, more often than not, one that
//! errs to the fast side. Running it puts that right for itself and its neighbours.

use super::anchored::Anchored;
use super::candidates::PREFETCH_BLOCKS;
use super::memory::KnownMemory;
use super::observation::Observation;
use super::probe::Probe;
use super::proposal::{Candidate, Goal, NothingFits, SPEED_TIE, choose};
use super::run_shape::RunShape;
use crate::grid::BlockSpec;

/// Settings are run so often in all, the same ones twice counted twice.
const MOST_STEPS: usize = 4;
/// The same, as long as nothing fits of what was run.
const MOST_STEPS_IN_NEED: usize = 8;
/// Settings that were run so often are not run again.
const ENOUGH_RUNS: u64 = 2;
/// A run of so many seconds is aimed at, and more are not.
const SECS: [f64; 2] = [6.0, 20.0];

/// What was measured so far, and what it says.
pub(super) struct Refinement<'a> {
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
    pub(super) fn new(
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

    pub(super) fn anchored(&self) -> &Anchored {
        &self.anchored
    }

    /// All candidates as they are predicted now.
    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// What to run next; none where the proposal stands.
    pub(super) fn next(&self) -> Result<Option<Candidate>, Box<NothingFits>> {
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
    pub(super) fn proposal(&self) -> Result<Candidate, Box<NothingFits>> {
        choose(&self.of_run(), &self.goal)
    }

    /// The beginning of an epoch: two blocks, with one ahead three, and more where those take no time.
    pub(super) fn probe(&self, one: &Candidate) -> Probe {
        let epoch = RunShape::epoch(self.n_rows, one.spec, one.prefetch_blocks);
        let least = 2 + one.prefetch_blocks;
        let of_block = self.anchored.elapsed(&epoch) / epoch.n_blocks() as f64;
        let [aim, most] = SECS.map(|secs| (secs / of_block) as u64);
        let most_blocks = least.max(aim).min(most).max(1);
        Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks }
    }

    /// Takes what was measured of a candidate.
    pub(super) fn ran(&mut self, one: &Candidate, observed: impl IntoIterator<Item = Observation>) {
        self.observed.extend(observed);
        self.ran.push((one.spec, one.prefetch_blocks));
        self.n_steps += 1;
        self.anchored = Anchored::fit(&self.observed, self.known);
        self.predict();
    }

    /// It could not be run. Most likely it was memory, so nothing that takes as much will be.
    pub(super) fn failed(&mut self, one: &Candidate) {
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
mod tests {
    use proptest::prelude::*;

    use super::super::cost::{CostModel, Work};
    use super::super::decoding::Decoding;
    use super::super::planted::{observed, planted};
    use super::super::probe::design;
    use super::*;

    const N_ROWS: u64 = 200_000;

    /// Factors that noise consists of, one after the other.
    struct Noise(std::vec::IntoIter<f64>);

    impl Noise {
        fn measure(&mut self, machine: &CostModel, run: RunShape) -> Observation {
            let mut one = observed(machine, run);
            let mut factor = || self.0.next().unwrap_or(1.0);
            let (of_reading, of_cutting) = (factor(), factor());
            let cutting = one.elapsed - one.read_secs;
            one.elapsed = of_reading * one.read_secs + of_cutting * cutting;
            one.read_secs *= of_reading;
            if factor() < 1.0 {
                one.peak_bytes -= machine.memory.known.batch_bytes;
            }
            one
        }
    }

    fn specs() -> Vec<(BlockSpec, f64)> {
        let specs = super::super::candidates::specs(N_ROWS, 1024, u64::MAX);
        specs.into_iter().map(|spec| (spec, 15.0 - (spec.chunk_rows as f64).log2())).collect()
    }

    fn shape(probe: Probe) -> RunShape {
        let Probe { spec, prefetch_blocks, most_blocks } = probe;
        RunShape { total_rows: N_ROWS, spec, prefetch_blocks, most_blocks }
    }

    /// A whole search, and the number of its runs.
    fn search<'a>(
        specs: &'a [(BlockSpec, f64)],
        machine: &CostModel,
        goal: Goal,
        noise: &mut Noise,
    ) -> Result<(Refinement<'a>, usize), TestCaseError> {
        let probed = design(N_ROWS, 1024, u64::MAX)
            .into_iter()
            .map(|probe| noise.measure(machine, shape(probe)))
            .collect();
        let mut found = Refinement::new((N_ROWS, specs), goal, machine.memory.known, probed);
        let mut n_steps = 0;
        while let Ok(Some(next)) = found.next() {
            prop_assert!(next.fits(&goal) && next.is_random_enough(&goal));
            let run = shape(found.probe(&next));
            found.ran(&next, [noise.measure(machine, run)]);
            n_steps += 1;
            prop_assert!(n_steps <= MOST_STEPS_IN_NEED);
        }
        Ok((found, n_steps))
    }

    fn machine(per_row: f64, per_byte: f64, cut: f64, overlap: f64) -> CostModel {
        let bytes = [1.5e4, 2e4];
        let decoding = Decoding { unit_rows: 256.0, tile_rows: 1024.0, bytes, error: 0.0 };
        let read = [5e-6, per_row, per_byte, 1e-6];
        planted(Work::Bytes(decoding), read, [0.05, cut], overlap)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// 10 % of noise on all that is measured.
        #[test]
        fn the_proposal_was_run_and_is_predicted_as_it_is(
            per_row in 1e-6_f64..2e-5, per_byte in 1e-10_f64..3e-10, cut in 5e-6_f64..3e-5, overlap in 0.0_f64..1.0,
            memory in 1.8e9_f64..6e9, noise in prop::collection::vec(0.9_f64..1.1, 60),
        ) {
            let machine = machine(per_row, per_byte, cut, overlap);
            let (specs, goal) = (specs(), Goal { memory_bytes: memory, bits: 8.0 });
            let (found, n_steps) = search(&specs, &machine, goal, &mut Noise(noise.into_iter()))?;
            let Ok(chosen) = found.proposal() else {
                return Err(TestCaseError::fail("nothing was found"));
            };
            prop_assert!((2..=MOST_STEPS).contains(&n_steps), "{} steps", n_steps);
            prop_assert!(found.ran.contains(&(chosen.spec, chosen.prefetch_blocks)));
            prop_assert!(chosen.fits(&goal) && chosen.is_random_enough(&goal));
            let epoch = RunShape::epoch(N_ROWS, chosen.spec, chosen.prefetch_blocks);
            let ratio = machine.elapsed(&epoch) / found.anchored().elapsed(&epoch);
            prop_assert!((1.0 / 1.15..1.15).contains(&ratio), "{} {:?}", ratio, chosen);
            // With all of its batches it is as large as was said to be possible.
            let most = machine.memory.peak_bytes(&epoch, machine.memory.known.n_batches);
            let ratio = most / (chosen.peak_bytes + chosen.untouched_bytes);
            prop_assert!((0.97..1.03).contains(&ratio), "{} {:?}", ratio, chosen);
            // What is best indeed is not much faster.
            let best = specs
                .iter()
                .filter(|(_, bits)| goal.bits <= *bits)
                .flat_map(|(spec, _)| PREFETCH_BLOCKS.map(|ahead| RunShape::epoch(N_ROWS, *spec, ahead)))
                .filter(|run| machine.memory.peak_bytes(run, 3) <= 0.87 * memory)
                .map(|run| machine.elapsed(&run))
                .fold(f64::INFINITY, f64::min);
            prop_assert!(machine.elapsed(&epoch) < 1.3 * best, "{} {}", machine.elapsed(&epoch), best);
        }
    }

    #[test]
    fn a_machine_as_modelled_is_run_twice_and_no_more() {
        let machine = machine(5e-6, 2e-10, 1e-5, 0.5);
        let (specs, goal) = (specs(), Goal { memory_bytes: 3e9, bits: 8.0 });
        let (found, n_steps) =
            search(&specs, &machine, goal, &mut Noise(Vec::new().into_iter())).unwrap();
        assert_eq!((n_steps, found.proposal().unwrap().n_runs), (2, 2));
    }

    #[test]
    fn what_takes_more_than_was_predicted_is_left() {
        let machine = machine(5e-6, 2e-10, 1e-5, 0.5);
        let (specs, goal) = (specs(), Goal { memory_bytes: 2e9, bits: 0.0 });
        let probed = design(N_ROWS, 1024, u64::MAX)
            .into_iter()
            .map(|probe| observed(&machine, shape(probe)));
        let mut found =
            Refinement::new((N_ROWS, &specs), goal, machine.memory.known, probed.collect());
        // Whatever is run takes a gigabyte more than the model can know of.
        let mut tried = Vec::new();
        let nothing = loop {
            match found.next() {
                Ok(Some(next)) => {
                    let run = shape(found.probe(&next));
                    let one = observed(&machine, run);
                    found.ran(&next, [Observation { peak_bytes: one.peak_bytes + 1e9, ..one }]);
                    tried.push(next);
                }
                Ok(None) => break None,
                Err(nothing) => break Some(nothing),
            }
        };
        assert!(nothing.is_some() && tried.len() <= MOST_STEPS_IN_NEED, "{tried:?}");
        let needs: Vec<f64> = tried.iter().map(Candidate::memory_needed).collect();
        assert!(needs.iter().all(|need| *need <= goal.memory_bytes));
        assert!(found.proposal().is_err());
    }

    #[test]
    fn what_fails_is_passed_over_with_all_that_is_larger() {
        let machine = machine(5e-6, 2e-10, 1e-5, 0.5);
        let (specs, goal) = (specs(), Goal { memory_bytes: 8e9, bits: 8.0 });
        let probed = design(N_ROWS, 1024, u64::MAX)
            .into_iter()
            .map(|probe| observed(&machine, shape(probe)));
        let mut found =
            Refinement::new((N_ROWS, &specs), goal, machine.memory.known, probed.collect());
        let mut least = f64::INFINITY;
        for _ in 0..2 {
            let next = found.next().unwrap().unwrap();
            assert!(next.memory_needed() < least);
            least = next.memory_needed();
            found.failed(&next);
        }
        let next = found.next().unwrap().unwrap();
        found.ran(&next, [observed(&machine, shape(found.probe(&next)))]);
        assert!(found.proposal().unwrap().memory_needed() < least);
    }

    #[test]
    fn runs_are_the_beginning_of_an_epoch_and_not_too_long() {
        let machine = machine(5e-6, 2e-10, 1e-5, 0.5);
        let (specs, goal) = (specs(), Goal { memory_bytes: 8e9, bits: 8.0 });
        let of = |slower: f64| {
            let probed = design(N_ROWS, 1024, u64::MAX).into_iter().map(|probe| {
                let one = observed(&machine, shape(probe));
                Observation {
                    elapsed: slower * one.elapsed,
                    read_secs: slower * one.read_secs,
                    ..one
                }
            });
            Refinement::new((N_ROWS, &specs), goal, machine.memory.known, probed.collect())
        };
        for (slower, rows, ahead, bounds) in [
            (1.0, 98_304, 0, 2..=3),
            (1.0, 49_152, 1, 3..=5),
            (1.0, 4096, 0, 10..=60),
            (300.0, 65_536, 1, 1..=1),
        ] {
            let found = of(slower);
            let one = found.candidates().iter().find(|one| {
                one.spec.block_rows() == rows
                    && one.spec.chunk_rows == 64
                    && one.prefetch_blocks == ahead
            });
            let blocks = found.probe(one.unwrap()).most_blocks;
            assert!(bounds.contains(&blocks), "{rows}: {blocks}");
        }
    }
}
