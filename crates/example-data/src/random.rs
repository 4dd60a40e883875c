//! Random numbers of the model, keyed by the seed and the decision, so that any part can be made by
//! itself.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use shuffle::RandomKey;

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed example";

/// A random decision; its number selects a stream of ChaCha.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// Sizes of the datasets.
    DatasetSizes,
    /// The genes: popularity, type, length.
    Genes,
    /// Frequencies of the genes in a cell type, relative to their popularity.
    CellType(u64),
    /// A dataset: its donors, its mix, its measured genes.
    Dataset(u64),
    /// A cell, by joinid.
    Cell(u64),
}

/// The generator for one decision.
pub(crate) fn generator(seed: u64, decision: Decision) -> ChaCha8Rng {
    let (number, stream) = match decision {
        Decision::DatasetSizes => (0, 0),
        Decision::Genes => (1, 0),
        Decision::CellType(cell_type) => (2, cell_type),
        Decision::Dataset(dataset) => (3, dataset),
        Decision::Cell(joinid) => (4, joinid),
    };
    RandomKey { domain: DOMAIN, seed, number }.stream(stream)
}

/// A uniform number below `bound`. Its bias of at most `bound / 2^32` does not matter here.
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u64::from(generator.next_u32()) * bound as u64) >> 32) as usize
}

/// True with probability `parts` / 256.
pub(crate) fn happens(generator: &mut ChaCha8Rng, parts: u32) -> bool {
    generator.next_u32() >> 24 < parts
}

/// An approximately normal number of mean 0 and variance 1, within ±6: the sum of twelve uniform
/// numbers, whose exact arithmetic is the same on every machine.
pub(crate) fn near_normal(generator: &mut ChaCha8Rng) -> f64 {
    let sum: u64 = (0..12).map(|_| u64::from(generator.next_u32())).sum();
    sum as f64 / f64::from(u32::MAX) - 6.0
}

/// A whole number from a log-normal distribution with the given median, at least 1.
///
/// Weights are whole numbers so that everything computed from them is exact: rounding removes the
/// last bit of `exp`, which differs between machines.
pub(crate) fn log_normal(generator: &mut ChaCha8Rng, median: f64, sigma: f64, most: u32) -> u32 {
    let value = median * (sigma * near_normal(generator)).exp();
    value.round().clamp(1.0, f64::from(most)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_normal_numbers_have_mean_0_and_variance_1() {
        let mut generator = generator(7, Decision::Cell(3));
        let draws: Vec<f64> = (0..20_000).map(|_| near_normal(&mut generator)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        // Five standard errors.
        assert!(mean.abs() < 0.036, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn decisions_do_not_share_numbers() {
        let decisions = [
            Decision::DatasetSizes,
            Decision::Genes,
            Decision::CellType(0),
            Decision::CellType(1),
            Decision::Dataset(0),
            Decision::Dataset(1),
            Decision::Cell(0),
            Decision::Cell(1),
        ];
        let mut first: Vec<u64> =
            decisions.iter().map(|decision| generator(5, *decision).next_u64()).collect();
        first.extend(decisions.iter().map(|decision| generator(6, *decision).next_u64()));
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 2 * decisions.len());
    }

    #[test]
    fn whole_log_normal_numbers_stay_within_their_bounds() {
        let mut generator = generator(1, Decision::Genes);
        for _ in 0..1000 {
            let drawn = log_normal(&mut generator, 2.0, 3.0, 50);
            assert!((1..=50).contains(&drawn));
        }
    }
}
