//! The genes: their popularity, the differences between cell types, and the sizes of counts.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::alias::AliasTable;
use crate::random::{Decision, generator, happens, log_normal};

/// Types of genes; the first is measured best.
pub(crate) const FEATURE_TYPES: [&str; 4] =
    ["protein_coding", "lncRNA", "processed_pseudogene", "miRNA"];

/// Standard deviation of the logarithm of the popularity.
const POPULARITY_SIGMA: f64 = 1.8;
const POPULARITY_MEDIAN: f64 = 1024.0;
/// Largest popularity. Leaves room for a marker's factor of 16 in 28 bits, and for a million genes
/// in a table's 64.
const MAX_POPULARITY: u32 = 1 << 24;

/// Random bits that index a table of counts.
const COUNT_BITS: u32 = 12;

/// All genes.
#[derive(Debug)]
pub(crate) struct Genes {
    seed: u64,
    popularity: Vec<u32>,
    /// Position in `FEATURE_TYPES` of each gene.
    feature_type: Vec<u8>,
    /// Lengths in base pairs.
    feature_length: Vec<i64>,
    /// The table of counts of each gene.
    count_class: Vec<u8>,
    count_tables: [Vec<u16>; 3],
}

impl Genes {
    pub(crate) fn new(n_genes: usize, seed: u64) -> Self {
        let mut draws = generator(seed, Decision::Genes);
        let (mut popularity, mut feature_type, mut feature_length) =
            (Vec::with_capacity(n_genes), Vec::with_capacity(n_genes), Vec::with_capacity(n_genes));
        for gene in 0..n_genes {
            let kind = draw_feature_type(&mut draws, gene * 3 < n_genes);
            // Like in the Census, where the first third of the genes has about two thirds of the
            // values.
            let median = if kind == 0 { POPULARITY_MEDIAN } else { POPULARITY_MEDIAN / 8.0 };
            popularity.push(log_normal(&mut draws, median, POPULARITY_SIGMA, MAX_POPULARITY));
            feature_type.push(kind);
            feature_length.push(i64::from(99 + log_normal(&mut draws, 2200.0, 0.8, 300_000)));
        }
        let count_class = count_classes(&popularity);
        // Exponents of the tails: a count of at least k has probability k^-exponent.
        let count_tables = [2.5, 1.7, 1.15].map(count_table);
        Self { seed, popularity, feature_type, feature_length, count_class, count_tables }
    }

    pub(crate) fn n_genes(&self) -> usize {
        self.popularity.len()
    }

    pub(crate) fn is_coding(&self, gene: usize) -> bool {
        self.feature_type[gene] == 0
    }

    pub(crate) fn feature_type(&self, gene: usize) -> &'static str {
        FEATURE_TYPES[usize::from(self.feature_type[gene])]
    }

    pub(crate) fn feature_length(&self, gene: usize) -> i64 {
        self.feature_length[gene]
    }

    /// Frequencies of the genes in cells of a type.
    pub(crate) fn table_of_type(&self, cell_type: u64) -> AliasTable {
        let mut draws = generator(self.seed, Decision::CellType(cell_type));
        let weights: Vec<u32> = self
            .popularity
            .iter()
            .map(|popularity| match draws.next_u32() >> 24 {
                // About 2 % are markers of the type, a fifth is up, a quarter down.
                0..5 => popularity * 16,
                5..56 => popularity * 3,
                56..120 => (popularity / 4).max(1),
                _ => *popularity,
            })
            .collect();
        AliasTable::new(&weights)
    }

    /// Draws the count of a gene in a cell that has it, at least 1.
    #[inline]
    pub(crate) fn count(&self, gene: usize, bits: u32) -> u16 {
        self.count_tables[usize::from(self.count_class[gene])][(bits >> (32 - COUNT_BITS)) as usize]
    }
}

fn draw_feature_type(draws: &mut ChaCha8Rng, in_first_third: bool) -> u8 {
    if happens(draws, if in_first_third { 230 } else { 31 }) {
        0
    } else if happens(draws, 150) {
        1
    } else if happens(draws, 180) {
        2
    } else {
        3
    }
}

/// The most popular hundredth has the longest tail of counts, the rest of the most popular tenth a
/// long one.
fn count_classes(popularity: &[u32]) -> Vec<u8> {
    let mut sorted = popularity.to_vec();
    sorted.sort_unstable();
    let at = |hundredth: usize| sorted[sorted.len() * hundredth / 100];
    let (tenth, hundredth) = (at(90), at(99));
    popularity
        .iter()
        .map(|popularity| u8::from(*popularity >= tenth) + u8::from(*popularity >= hundredth))
        .collect()
}

/// Counts at the midpoints of equally likely parts of a Pareto distribution, rounded down.
fn count_table(exponent: f64) -> Vec<u16> {
    let n = 1_u32 << COUNT_BITS;
    (0..n)
        .map(|entry| {
            let quantile = (f64::from(entry) + 0.5) / f64::from(n);
            quantile.powf(-1.0 / exponent).floor().min(f64::from(u16::MAX)) as u16
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_has_a_heavy_tail_and_leans_to_the_first_third() {
        let genes = Genes::new(20_000, 0);
        let mut popularity: Vec<u64> =
            genes.popularity.iter().map(|gene| u64::from(*gene)).collect();
        let total: u64 = popularity.iter().sum();
        let first_third: u64 = popularity[..20_000 / 3].iter().sum();
        assert!((0.55..0.80).contains(&(first_third as f64 / total as f64)));
        popularity.sort_unstable_by(|a, b| b.cmp(a));
        let top: u64 = popularity[..200].iter().sum();
        assert!(top as f64 / total as f64 > 0.25, "the top hundredth holds {top} of {total}");
        assert!(popularity.iter().all(|gene| *gene > 0));
    }

    #[test]
    fn counts_are_small_with_a_tail() {
        for (exponent, least_mean, most_mean) in
            [(2.5, 1.2, 1.5), (1.7, 1.7, 2.3), (1.15, 3.5, 7.0)]
        {
            let table = count_table(exponent);
            let mean =
                table.iter().map(|count| f64::from(*count)).sum::<f64>() / table.len() as f64;
            assert!((least_mean..most_mean).contains(&mean), "{exponent}: {mean}");
            assert_eq!(table.iter().min(), Some(&1));
            assert!(table[0] > 20, "{exponent}: {}", table[0]);
            assert!(table.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn one_gene_is_enough() {
        let genes = Genes::new(1, 9);
        assert_eq!(genes.table_of_type(0).pick(u64::MAX), 0);
        assert!(genes.count(0, u32::MAX) >= 1);
    }
}
