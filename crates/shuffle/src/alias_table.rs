//! A table from which numbers with given weights are drawn, each in constant time.
//!
//! It is the alias method: Walker, "An Efficient Method for Generating Discrete Random Variables
//! with General Distributions" (1977), filled in linear time as by Vose, "A Linear Algorithm for
//! Generating Random Numbers with a Given Distribution" (1991). Weights are whole numbers here, so
//! that no rounding error is left over at the end.

/// Weight of a full slot.
const UNIT: u64 = 1 << 32;

/// Counts from which no number can be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AliasTableError {
    /// All counts are 0, so that no number can be drawn.
    #[error("none of {n_counts} counts is above 0: nothing can be drawn")]
    NothingToDraw {
        /// Number of counts.
        n_counts: usize,
    },
    /// There are more numbers to draw than 32 bits can number.
    #[error("{n_counts} counts are more than 32 bits can number: leave out rare ones")]
    TooManyToDraw {
        /// Number of counts.
        n_counts: usize,
    },
    /// The exponent of weights is not a finite number.
    #[error("the exponent of the counts is {exponent}: it must be a finite number")]
    Exponent {
        /// The exponent.
        exponent: f64,
    },
}

/// Draws numbers from 0 on with probabilities proportional to `count^exponent`, each in constant
/// time.
///
/// Negative sampling draws its noise words so, with the exponent [`NOISE`](Self::NOISE). A number
/// with a count of 0 is never drawn. A table takes 8 bytes for each number.
///
/// ```
/// let table = shuffle::AliasTable::new(&[81, 16, 0], 0.75)?;
/// let probabilities = table.probabilities();
/// assert!((probabilities[0] - 27.0 / 35.0).abs() < 1e-9);
/// assert_eq!(probabilities[2], 0.0);
/// assert_eq!(table.draw(0), 0);
/// # Ok::<(), shuffle::AliasTableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTable {
    slots: Vec<Slot>,
}

/// A slot is chosen uniformly. It stands for its own number in `keep` of 2^32 cases, otherwise for
/// the number `alias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    keep: u32,
    alias: u32,
}

impl AliasTable {
    /// The exponent with which word2vec draws noise: Mikolov et al., "Distributed Representations
    /// of Words and Phrases and their Compositionality" (2013), section 2.2.
    pub const NOISE: f64 = 0.75;

    /// Makes the table for numbers with these counts. The exponent 1 draws them as often as they
    /// are counted, 0 all equally often whose count is not 0.
    ///
    /// # Errors
    /// - [`AliasTableError::NothingToDraw`]: no count is above 0.
    /// - [`AliasTableError::TooManyToDraw`]: there are more counts than 32 bits can number.
    /// - [`AliasTableError::Exponent`]: the exponent is not a finite number.
    pub fn new(counts: &[u64], exponent: f64) -> Result<Self, AliasTableError> {
        if !exponent.is_finite() {
            return Err(AliasTableError::Exponent { exponent });
        }
        if u32::try_from(counts.len()).is_err() {
            return Err(AliasTableError::TooManyToDraw { n_counts: counts.len() });
        }
        let occurring = || counts.iter().copied().filter(|count| 0 < *count);
        // Relative to this count no power overflows.
        let scale = if exponent < 0.0 { occurring().min() } else { occurring().max() };
        let Some(scale) = scale else {
            return Err(AliasTableError::NothingToDraw { n_counts: counts.len() });
        };
        let power = |count: u64| match count {
            0 => 0.0,
            count => libm::pow(count as f64 / scale as f64, exponent),
        };
        Ok(Self {
            slots: filled(whole_weights(
                &counts.iter().map(|count| power(*count)).collect::<Vec<f64>>(),
            )),
        })
    }

    /// The number for 64 random bits: a pure function, so the caller chooses the generator.
    #[inline]
    pub fn draw(&self, random: u64) -> u32 {
        let product = u128::from(random) * self.slots.len() as u128;
        // The high half is a uniform slot (as in Lemire, "Fast Random Integer Generation in an
        // Interval", 2019), the low half a uniform fraction of it.
        let slot = (product >> 64) as u32;
        let fraction = ((product as u64) >> 32) as u32;
        let Slot { keep, alias } = self.slots[slot as usize];
        if fraction < keep { slot } else { alias }
    }

    /// The probability of each number, as the table has it: within 1e-9 of the exact one.
    pub fn probabilities(&self) -> Vec<f64> {
        let n_slots = self.slots.len() as f64;
        let mut probabilities = vec![0.0; self.slots.len()];
        for (slot, Slot { keep, alias }) in self.slots.iter().enumerate() {
            let kept = f64::from(*keep) / UNIT as f64;
            probabilities[slot] += kept / n_slots;
            probabilities[*alias as usize] += (1.0 - kept) / n_slots;
        }
        probabilities
    }

    /// How many numbers there are, with those that are never drawn.
    pub fn n_counts(&self) -> usize {
        self.slots.len()
    }
}

/// Weights as whole numbers whose sum is [`UNIT`] times their number.
fn whole_weights(powers: &[f64]) -> Vec<u64> {
    let total = powers.len() as u64 * UNIT;
    let factor = total as f64 / powers.iter().sum::<f64>();
    let mut weights: Vec<u64> =
        powers.iter().map(|power| libm::round(power * factor) as u64).collect();
    // Rounding leaves less than 1 for each number. The largest weight is at least the mean of 2^32.
    let sum: u64 = weights.iter().sum();
    if let Some(largest) = weights.iter_mut().max() {
        *largest = *largest + total - sum;
    }
    weights
}

/// Distributes weights over slots of [`UNIT`] each, at most two numbers to a slot.
fn filled(mut weights: Vec<u64>) -> Vec<Slot> {
    // A full slot keeps nothing and has itself as alias, because 2^32 does not fit into 32 bits.
    let mut slots: Vec<Slot> =
        (0..weights.len() as u32).map(|alias| Slot { keep: 0, alias }).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|number| weights[*number as usize] < UNIT);
    // The mean weight of all numbers without a slot is always one unit: while one is smaller, one
    // is larger.
    while let (Some(short), Some(&long)) = (small.pop(), large.last()) {
        let weight = weights[short as usize];
        slots[short as usize] = Slot { keep: weight as u32, alias: long };
        let rest = &mut weights[long as usize];
        *rest -= UNIT - weight;
        if *rest < UNIT {
            large.pop();
            small.push(long);
        }
    }
    slots
}
