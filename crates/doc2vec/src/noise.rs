//! Noise words of negative sampling: a table from which a word is drawn in constant time.
//!
//! Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality"
//! (2013), section 2.2, draw noise words in proportion to their counts to the power of 0.75. The
//! table is the alias method: Walker, "An Efficient Method for Generating Discrete Random Variables
//! with General Distributions" (1977), filled in linear time as by Vose, "A Linear Algorithm for
//! Generating Random Numbers with a Given Distribution" (1991). Weights are whole numbers here, so
//! that no rounding error is left over at the end.

use crate::error::Error;

/// Weight of a full slot.
const UNIT: u64 = 1 << 32;

/// Draws words with probabilities proportional to `count^exponent`, each in constant time.
///
/// Words with a count of 0 are never drawn. A table takes 8 bytes for each word.
///
/// ```
/// let table = doc2vec::NoiseTable::new(&[81, 16, 0], 0.75)?;
/// let probabilities = table.probabilities();
/// assert!((probabilities[0] - 27.0 / 35.0).abs() < 1e-9);
/// assert_eq!(probabilities[2], 0.0);
/// assert_eq!(table.draw(0), 0);
/// # Ok::<(), doc2vec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NoiseTable {
    slots: Vec<Slot>,
}

/// A slot is chosen uniformly. It stands for its own word in `keep` of 2^32 cases, otherwise for
/// the word `alias`.
#[derive(Debug, Clone, Copy)]
struct Slot {
    keep: u32,
    alias: u32,
}

impl NoiseTable {
    /// Makes the table for words with these counts. The usual exponent is 0.75; 0 draws all words
    /// that occur equally often, 1 draws them as they occur.
    ///
    /// # Errors
    /// - [`Error::NoWords`]: no count is above 0.
    /// - [`Error::TooManyWords`]: there are more words than 32 bits can number.
    /// - [`Error::Setting`]: the exponent is not a finite number.
    pub fn new(counts: &[u64], exponent: f64) -> Result<Self, Error> {
        if !exponent.is_finite() {
            return Err(Error::setting("noise exponent", exponent, "must be a finite number"));
        }
        if u32::try_from(counts.len()).is_err() {
            return Err(Error::TooManyWords { n_words: counts.len() });
        }
        let occurring = || counts.iter().copied().filter(|count| 0 < *count);
        // Relative to this count no power overflows.
        let scale = if exponent < 0.0 { occurring().min() } else { occurring().max() };
        let Some(scale) = scale else { return Err(Error::NoWords { n_words: counts.len() }) };
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

    /// The word for 64 random bits: a pure function, so the caller chooses the generator.
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

    /// The probability of each word, as the table has it: within 1e-9 of the exact one.
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

    /// Number of words, with those that are never drawn.
    pub fn n_words(&self) -> usize {
        self.slots.len()
    }
}

/// Weights as whole numbers whose sum is [`UNIT`] times their number.
fn whole_weights(powers: &[f64]) -> Vec<u64> {
    let n_words = powers.len() as u64;
    let total = n_words * UNIT;
    let factor = total as f64 / powers.iter().sum::<f64>();
    let mut weights: Vec<u64> =
        powers.iter().map(|power| libm::round(power * factor) as u64).collect();
    // Rounding leaves less than 1 for each word. The largest weight is at least the mean of 2^32.
    let sum: u64 = weights.iter().sum();
    if let Some(largest) = weights.iter_mut().max() {
        *largest = *largest + total - sum;
    }
    weights
}

/// Distributes weights over slots of [`UNIT`] each, at most two words to a slot.
fn filled(mut weights: Vec<u64>) -> Vec<Slot> {
    // A full slot keeps nothing and has itself as alias, because 2^32 does not fit into 32 bits.
    let mut slots: Vec<Slot> =
        (0..weights.len() as u32).map(|alias| Slot { keep: 0, alias }).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|word| weights[*word as usize] < UNIT);
    // The mean weight of all words without a slot is always one unit: while one is smaller, one is
    // larger.
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
