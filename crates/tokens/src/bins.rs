//! Values in bins of equally many genes, as scGPT reads cells.

use rand_chacha::ChaCha8Rng;

use crate::cells::Cell;
use crate::error::Error;
use crate::order::{entry, key, place};
use crate::random::{below, generator};
use crate::scratch::{Candidate, Scratch};
use crate::sequences::TokenId;
use crate::vocabulary::{Genes, Vocabulary};

/// Value binning: the genes of a cell by ascending column, each with the bin of its value among the
/// cell's own quantiles.
///
/// From Cui et al., "scGPT: toward building a foundation model for single-cell multi-omics using
/// generative AI" (2024). Bin 0 is that of zeros. The `n_bins - 1` borders of the others are
/// quantiles of the values above 0 of the cell's known genes, from the smallest to the largest,
/// interpolated linearly; a value is in bin `i` if `i` borders are at or below it.
#[derive(Debug, Clone, PartialEq)]
pub struct BinnedValues {
    genes: Genes,
    spec: BinSpec,
    /// Quantiles of the borders, from 0 to 1.
    quantiles: Vec<f64>,
}

/// Settings of [`BinnedValues`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinSpec {
    /// Number of bins, that of zeros included.
    pub n_bins: usize,
    /// The bin of a value that equals several borders.
    pub ties: Ties,
    /// Which genes have tokens if there are more than fit.
    pub cut: Cut,
    /// Whether known genes without a value have tokens, too, with bin 0.
    pub include_zeros: bool,
    /// Longest sequence in tokens, special tokens included.
    pub max_length: usize,
    /// The value of padding. Special tokens have 0.
    pub pad_value: f32,
    /// Seed of random ties and cuts.
    pub seed: u64,
}

/// The bin of a value that equals several borders. Half of a cell's values or more may be 1, so
/// that many quantiles are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ties {
    /// A random one of the bins between these borders, for each gene its own: scGPT's default,
    /// `side="both"`.
    Spread,
    /// The highest: scGPT's `side="one"`.
    Highest,
}

/// Which genes have tokens if there are more than fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Random ones, all equally likely. They stay in the order of columns; the reference delivers
    /// them in random order, which a model without positions does not see.
    Random,
    /// Those with the highest values; of equal ones, those of the first columns.
    HighestValues,
}

/// scGPT's settings: 51 bins, random ties and cuts, 1,200 tokens, padding of -2.
impl Default for BinSpec {
    fn default() -> Self {
        Self {
            n_bins: 51,
            ties: Ties::Spread,
            cut: Cut::Random,
            include_zeros: false,
            max_length: 1_200,
            pad_value: -2.0,
            seed: 0,
        }
    }
}

impl BinnedValues {
    /// Prepares binning for data whose columns have these gene names.
    ///
    /// # Errors
    /// Two columns are one gene, or no column is known; there are fewer than 2 bins or more than
    /// 65,536; the maximal length has no room for a gene or is above 2^20; the padding value is not
    /// finite.
    pub fn new<S: AsRef<str>>(
        vocabulary: &Vocabulary,
        genes: &[S],
        spec: BinSpec,
    ) -> Result<Self, Error> {
        let BinSpec { n_bins, max_length, pad_value, .. } = spec;
        if !(2..=1 << 16).contains(&n_bins) {
            return Err(Error::Bins { n_bins });
        }
        vocabulary.special().check_length(max_length)?;
        if !pad_value.is_finite() {
            return Err(Error::PadValue { pad_value });
        }
        Ok(Self { genes: vocabulary.genes(genes)?, spec, quantiles: quantiles(n_bins - 1) })
    }

    /// The token of each column.
    pub fn genes(&self) -> &Genes {
        &self.genes
    }

    /// The settings.
    pub fn spec(&self) -> &BinSpec {
        &self.spec
    }

    /// Whether random numbers decide anything.
    pub(crate) fn is_random(&self) -> bool {
        self.spec.ties == Ties::Spread || self.spec.cut == Cut::Random
    }

    /// Fills `tokens` with genes of the cell and `values` with their bins.
    pub(crate) fn encode<T: TokenId>(
        &self,
        cell: &Cell<'_>,
        scratch: &mut Scratch,
        (tokens, values): (&mut [T], &mut [f32]),
    ) {
        let mut random = generator(self.spec.seed, cell.epoch, cell.number);
        self.bin(cell, scratch, &mut random);
        self.collect(cell, scratch);
        let Scratch { entries, candidates, .. } = scratch;
        let (n_out, n_candidates) = (tokens.len().min(values.len()), candidates.len());
        let mut out = tokens.iter_mut().zip(values);
        let mut write = |candidate: &Candidate| {
            if let Some((token, value)) = out.next() {
                (*token, *value) = (T::from_id(candidate.token), candidate.bin);
            }
        };
        if n_candidates <= n_out {
            candidates.iter().for_each(write);
        } else if self.spec.cut == Cut::Random {
            // Knuth, "The Art of Computer Programming", volume 2, 3.4.2, algorithm S.
            let mut n_missing = n_out as u32;
            for (at, candidate) in candidates.iter().enumerate() {
                if below(&mut random, (n_candidates - at) as u32) < n_missing {
                    n_missing -= 1;
                    write(candidate);
                }
            }
        } else {
            // All values above the least that fits, and the first that equal it.
            let least = entries.len().checked_sub(n_out).and_then(|at| entries.get(at));
            let least = least.map_or(0, |entry| key(*entry));
            let is_above = |candidate: &Candidate| candidate.value.to_bits() > least;
            let n_above = candidates.iter().filter(|candidate| is_above(candidate)).count();
            let mut n_equal = n_out.saturating_sub(n_above);
            for candidate in candidates.iter() {
                let is_equal = candidate.value.to_bits() == least && n_equal > 0;
                n_equal -= usize::from(is_equal);
                if is_equal || is_above(candidate) {
                    write(candidate);
                }
            }
        }
    }

    /// Writes the bins of detected genes, by place in the row.
    fn bin(&self, cell: &Cell<'_>, scratch: &mut Scratch, random: &mut ChaCha8Rng) {
        let Scratch { entries, borders, bins, sorter, .. } = scratch;
        entries.resize(cell.values.len(), 0);
        // Always writes an entry and only then decides whether it stays: which genes are known is
        // nothing that a processor could predict.
        let mut n_detected = 0;
        for (at, (&column, &value)) in cell.columns.iter().zip(cell.values).enumerate() {
            entries[n_detected] = entry(value.to_bits(), at);
            let is_known = self.genes.token(column as usize).is_some();
            n_detected += usize::from(is_known) & usize::from(value != 0.0);
        }
        entries.truncate(n_detected);
        sorter.sort(entries, u64::cmp);
        self.borders(entries, borders);
        bins.clear();
        bins.resize(cell.values.len(), 0.0);
        // Borders at or below the values so far.
        let mut n_up_to = 0;
        for of_value in entries.chunk_by(|one, other| key(*one) == key(*other)) {
            let value = f64::from(f32::from_bits(key(of_value[0])));
            let count = |from: usize, is_passed: &dyn Fn(f64) -> bool| {
                borders[from..].iter().take_while(|border| is_passed(**border)).count()
            };
            let n_below = n_up_to + count(n_up_to, &|border| border < value);
            n_up_to = n_below + count(n_below, &|border| border <= value);
            let n_choices = (n_up_to - n_below) as u32;
            for entry in of_value {
                bins[place(*entry)] = match self.spec.ties {
                    Ties::Spread if n_choices > 1 => {
                        (n_below as u32 + 1 + below(random, n_choices)) as f32
                    }
                    _ => n_up_to as f32,
                };
            }
        }
    }

    /// The borders of bins: quantiles of sorted values. With numpy's operations in numpy's order,
    /// so that the borders are the same to the bit.
    fn borders(&self, sorted: &[u64], borders: &mut Vec<f64>) {
        borders.clear();
        let Some(last) = sorted.len().checked_sub(1) else { return };
        let value = |at: usize| f32::from_bits(key(sorted[at]));
        borders.extend(self.quantiles.iter().map(|quantile| {
            let at = quantile * last as f64;
            if at >= last as f64 {
                return f64::from(value(last));
            }
            let (before, share) = (at as usize, at - at.floor());
            let (low, high) = (value(before), value(before + 1));
            let step = f64::from(high - low);
            if share < 0.5 {
                f64::from(low) + step * share
            } else {
                f64::from(high) - step * (1.0 - share)
            }
        }));
    }

    /// Collects the genes that may have tokens, by ascending column or in the order of the row.
    fn collect(&self, cell: &Cell<'_>, scratch: &mut Scratch) {
        let Scratch { bins, candidates, .. } = scratch;
        candidates.clear();
        let of_row = cell.columns.iter().zip(cell.values).zip(bins.iter());
        if !self.spec.include_zeros {
            candidates.extend(of_row.filter_map(|((&column, &value), &bin)| {
                let token = self.genes.token(column as usize).filter(|_| value != 0.0)?;
                Some(Candidate { token, value, bin })
            }));
            return;
        }
        let known = self.genes.known();
        candidates.extend(known.map(|(_, token)| Candidate { token, value: 0.0, bin: 0.0 }));
        for ((&column, &value), &bin) in of_row {
            if let Some(at) = self.genes.known_before(column as usize) {
                // Adding 0 removes the sign of a negative zero.
                candidates[at].value = value + 0.0;
                candidates[at].bin = bin;
            }
        }
    }
}

/// `n` equally spaced numbers from 0 to 1, computed like numpy's `linspace`.
fn quantiles(n: usize) -> Vec<f64> {
    let step = 1.0 / (n.max(2) - 1) as f64;
    let mut quantiles: Vec<f64> = (0..n).map(|idx| idx as f64 * step).collect();
    if let (true, Some(last)) = (n > 1, quantiles.last_mut()) {
        *last = 1.0;
    }
    quantiles
}
