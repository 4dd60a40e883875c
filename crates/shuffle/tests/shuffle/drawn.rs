//! Checks that every row comes as often as it was drawn, over random epochs that stop and resume
//! with other world sizes.
//!
//! Runs over about a million rows by default. `SOMAFEED_DRAWN_ROWS` sets the smallest number of
//! rows to draw, `SOMAFEED_DRAWN_SEED` the seed of all choices. The long run takes minutes:
//!
//! ```text
//! SOMAFEED_DRAWN_ROWS=1000000000 \
//!     cargo test --release -p somafeed-shuffle --test shuffle drawn -- --nocapture
//! ```
use std::env;
use std::sync::Arc;

use shuffle::sample::{Replacement, Sampling};
use shuffle::{BatchSpec, Order, PlanSpec, Remainder};

const N_ROWS: u64 = 4_000_000;
const SEED: u64 = 42;
/// An epoch has at most two to this power rows.
const MAX_BITS: u32 = 22;
const MAX_BITS_QUICKLY: u32 = 17;
/// Largest number of chunks: every rank computes their permutation anew.
const MAX_CHUNKS: u64 = 1 << 15;

/// Reproducible random numbers: `SplitMix64`.
struct Choices(u64);

impl Choices {
    fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        self.any() % n
    }

    /// A number from 1 to two to the power of `bits`; every number of bits is equally likely.
    fn of_any_size(&mut self, bits: u32) -> u64 {
        let bits = self.below(u64::from(bits) + 1);
        1 + self.below(1 << bits)
    }
}

/// An epoch, and the places at which it stops to resume with another world size.
#[derive(Debug)]
struct Case {
    spec: PlanSpec,
    epoch: u64,
    global_batch_rows: u64,
    lanes: u64,
    remainder: Remainder,
    sampled: Option<Arc<[u32]>>,
    /// World sizes, each with the global batch at which it starts.
    legs: Vec<(u64, u64)>,
    n_batches: u64,
}

fn case(choices: &mut Choices, most_bits: u32) -> Case {
    let n_rows = choices.of_any_size(most_bits);
    let order = if choices.below(5) == 0 { Order::InOrder } else { Order::Shuffled };
    let lanes = if order == Order::InOrder { 1 } else { choices.of_any_size(3) };
    let remainder = match choices.below(3) {
        0 => Remainder::Short,
        1 => Remainder::Drop,
        _ => Remainder::Pad,
    };
    let spec = PlanSpec {
        n_rows,
        chunk_rows: choices.of_any_size(9).max(n_rows / MAX_CHUNKS),
        chunks_per_block: choices.of_any_size(8),
        order,
        seed: choices.any(),
        ramp_blocks: 0,
    };
    let epoch = choices.below(1000);
    let sampled = sampled(choices, n_rows, (spec.seed, epoch));
    // Several world sizes must divide it: take a number with many divisors, or any.
    let of_lane = choices.of_any_size(6) * [1, 12][choices.below(2) as usize];
    let global_batch_rows = of_lane * lanes;
    let single =
        BatchSpec { batch_rows: global_batch_rows, rank: 0, world_size: 1, lanes, remainder };
    let n_drawn = sampled.as_ref().map_or(n_rows, |rows| rows.len() as u64);
    let n_batches = single.n_batches(n_drawn).unwrap();
    let mut begins: Vec<u64> =
        (0..choices.below(4)).map(|_| choices.below(n_batches + 1)).collect();
    begins.push(0);
    begins.sort_unstable();
    let worlds: Vec<u64> = match remainder {
        Remainder::Short => vec![1],
        _ => (1..=12).filter(|world| global_batch_rows.is_multiple_of(*world)).collect(),
    };
    let mut world = || worlds[choices.below(worlds.len() as u64) as usize];
    let legs = begins.into_iter().map(|begin| (world(), begin)).collect();
    Case { spec, epoch, global_batch_rows, lanes, remainder, sampled, legs, n_batches }
}

/// Samples every second epoch, in any way.
fn sampled(choices: &mut Choices, n_rows: u64, key: (u64, u64)) -> Option<Arc<[u32]>> {
    if choices.below(2) == 0 {
        return None;
    }
    let labels: Vec<u32> = (0..n_rows).map(|_| choices.of_any_size(6) as u32).collect();
    let n_samples = choices.below(n_rows + 1);
    let weights = |choices: &mut Choices| -> Vec<f64> {
        (0..n_rows).map(|_| 1.0 + choices.below(1000) as f64).collect()
    };
    let sampling = match choices.below(5) {
        0 => Sampling::weighted(&weights(choices), 2 * n_samples, Replacement::With),
        1 => Sampling::weighted(&weights(choices), n_samples, Replacement::Without),
        2 => Sampling::class_balanced(&labels, n_samples, Replacement::With),
        3 => Sampling::stratified(&labels, n_samples),
        _ => Sampling::at_most_per_class(&labels, n_samples / 16),
    };
    let sampling = sampling.unwrap();
    let rows = sampling.rows(key.0, key.1).unwrap();
    assert_eq!(rows.len() as u64, sampling.n_samples());
    Some(rows)
}

impl Case {
    /// How often each row is drawn.
    fn drawn(&self) -> Vec<u32> {
        let Some(sampled) = &self.sampled else { return vec![1; self.spec.n_rows as usize] };
        let mut drawn = vec![0; self.spec.n_rows as usize];
        sampled.iter().for_each(|row| drawn[*row as usize] += 1);
        drawn
    }

    /// Draws the epoch leg by leg and rank by rank. Returns the number of rows, without padding.
    fn check(&self) -> u64 {
        let drawn = self.drawn();
        let n_drawn: u64 = drawn.iter().map(|n| u64::from(*n)).sum();
        let mut left = drawn.clone();
        let mut n_came = 0;
        let ends = self.legs[1..].iter().map(|(_, begin)| *begin).chain([self.n_batches]);
        for ((world_size, begin), end) in self.legs.iter().zip(ends) {
            for rank in 0..*world_size {
                n_came += self.check_rank((rank, *world_size), *begin..end, &drawn, &mut left);
            }
        }
        let n_left: u64 = left.iter().map(|n| u64::from(*n)).sum();
        let expected = match self.remainder {
            Remainder::Drop => n_drawn % self.global_batch_rows,
            Remainder::Short | Remainder::Pad => 0,
        };
        assert_eq!(n_left, expected, "rows that never came in {self:?}");
        assert_eq!(n_came + n_left, n_drawn, "{self:?}");
        n_came
    }

    /// Subtracts a rank's batches of a leg from `left`.
    fn check_rank(
        &self,
        (rank, world_size): (u64, u64),
        batches: std::ops::Range<u64>,
        drawn: &[u32],
        left: &mut [u32],
    ) -> u64 {
        let batch_rows = self.global_batch_rows / world_size;
        let (lanes, remainder) = (self.lanes, self.remainder);
        let spec = BatchSpec { batch_rows, rank, world_size, lanes, remainder };
        let plan = match &self.sampled {
            Some(rows) => self.spec.sampled_epoch(self.epoch, &spec, Arc::clone(rows)),
            None => self.spec.dealt_epoch(self.epoch, &spec),
        };
        let plan = plan.unwrap().starting_at(batches.start);
        let n_to_end = plan.n_rows();
        let is_last = batches.end == self.n_batches;
        let n_wanted = if is_last { n_to_end } else { (batches.end - batches.start) * batch_rows };
        let n_padding = if is_last { plan.n_padding().min(n_wanted) } else { 0 };
        let mut n_taken = 0;
        for block in plan {
            assert!(block.chunks.is_sorted_by(|a, b| a.end <= b.start), "{self:?}");
            for row in block.delivered_rows() {
                if n_taken == n_wanted {
                    return n_taken - n_padding;
                }
                n_taken += 1;
                let row = row as usize;
                if n_taken + n_padding > n_wanted {
                    assert!(drawn[row] > 0, "padding of a row that is not drawn in {self:?}");
                    continue;
                }
                let of_row = &mut left[row];
                assert!(*of_row > 0, "row {row} came too often in {self:?}");
                *of_row -= 1;
            }
        }
        assert_eq!(n_taken, n_wanted, "rank {rank} of {world_size} in {self:?}");
        n_taken - n_padding
    }
}

fn from_environment(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |text| text.parse().unwrap())
}

#[test]
fn every_row_comes_as_often_as_it_was_drawn() {
    let n_wanted = from_environment("SOMAFEED_DRAWN_ROWS", N_ROWS);
    let seed = from_environment("SOMAFEED_DRAWN_SEED", SEED);
    let most_bits = if n_wanted > N_ROWS { MAX_BITS } else { MAX_BITS_QUICKLY };
    let mut choices = Choices(seed);
    let (mut n_rows, mut n_epochs, mut n_resumed) = (0, 0, 0);
    while n_rows < n_wanted {
        let case = case(&mut choices, most_bits);
        n_rows += case.check();
        n_epochs += 1;
        n_resumed += case.legs.len() - 1;
    }
    println!("{n_rows} rows in {n_epochs} epochs, resumed {n_resumed} times, seed {seed}");
    assert!(n_epochs > 10 && n_resumed > 10, "{n_epochs} epochs, resumed {n_resumed} times");
}
