//! Genes ranked by their value, as Geneformer reads cells.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::cells::Cell;
use crate::error::Error;
use crate::order::{entry, key, place};
use crate::scratch::Scratch;
use crate::sequences::TokenId;
use crate::vocabulary::{Genes, Vocabulary};

/// Rank-value encoding: the genes of a cell by descending value, after each value is divided by the
/// cell's total and by the gene's median over many cells.
///
/// From Theodoris et al., "Transfer learning enables predictions in network biology" (2023). The
/// value of a gene is `value / total * target_sum / median`, in f64 and in this order. Genes whose
/// value is 0 have no token. Genes with equal results come by ascending column; the reference
/// leaves their order to numpy's sort.
#[derive(Debug, Clone, PartialEq)]
pub struct RankValues {
    genes: Genes,
    /// The median of each column, [`UNKNOWN`] for a column without a token.
    medians: Vec<f64>,
    spec: RankSpec,
}

/// Marks a column without a token.
const UNKNOWN: f64 = f64::INFINITY;

/// Settings of [`RankValues`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSpec {
    /// The sum that a cell's values are scaled to before they are divided by medians. Only changes
    /// ranks through rounding.
    pub target_sum: f64,
    /// Longest sequence in tokens, special tokens included. Genes of the lowest ranks are cut off.
    pub max_length: usize,
}

/// Geneformer's first model: 2,048 tokens, which has no special tokens. Its second has 4,096 with
/// two.
impl Default for RankSpec {
    fn default() -> Self {
        Self { target_sum: 10_000.0, max_length: 2_048 }
    }
}

impl RankValues {
    /// Prepares ranking for data whose columns have these gene names. Only genes with both a token
    /// and a median are known.
    ///
    /// # Errors
    /// Two columns are one gene, or no column is known; a median or the target sum is not above 0;
    /// the maximal length has no room for a gene or is above 2^20.
    pub fn new<S: AsRef<str>>(
        vocabulary: &Vocabulary,
        medians: &HashMap<String, f64>,
        genes: &[S],
        spec: RankSpec,
    ) -> Result<Self, Error> {
        let RankSpec { target_sum, max_length } = spec;
        if !target_sum.is_finite() || target_sum <= 0.0 {
            return Err(Error::TargetSum { target_sum });
        }
        vocabulary.special().check_length(max_length)?;
        let known = vocabulary.genes_among(genes, |name| medians.contains_key(name))?;
        let mut of_columns = vec![UNKNOWN; known.n_columns()];
        for (column, _) in known.known() {
            let name = genes[column].as_ref();
            let median = medians.get(name).copied().unwrap_or_default();
            if !median.is_finite() || median <= 0.0 {
                return Err(Error::Median { name: name.to_owned(), median });
            }
            of_columns[column] = median;
        }
        Ok(Self { genes: known, medians: of_columns, spec })
    }

    /// The token of each column.
    pub fn genes(&self) -> &Genes {
        &self.genes
    }

    /// The settings.
    pub fn spec(&self) -> &RankSpec {
        &self.spec
    }

    /// Fills `out` with the tokens of the cell's highest genes.
    pub(crate) fn encode<T: TokenId>(
        &self,
        cell: &Cell<'_>,
        scratch: &mut Scratch,
        out: &mut [T],
    ) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let Cell { row_idx, columns, values, .. } = *cell;
        let total = cell.total.unwrap_or_else(|| sum(values));
        if !total.is_finite() || total <= 0.0 {
            return Err(Error::Total { row_idx, total });
        }
        let Scratch { entries, scaled, sorter, .. } = scratch;
        let per_total = PerTotal::new(total, self.spec.target_sum);
        scaled.resize(values.len(), 0.0);
        entries.resize(values.len(), 0);
        // Always writes an entry and only then decides whether it stays: which genes are known is
        // nothing that a processor could predict.
        let mut n_detected = 0;
        for (at, ((&column, &value), result)) in
            columns.iter().zip(values).zip(scaled.iter_mut()).enumerate()
        {
            let median = self.medians[column as usize];
            *result = per_total.get(value) / median;
            // Rounding to f32 keeps the order, except that unequal numbers may become equal.
            entries[n_detected] = entry(!(*result as f32).to_bits(), at);
            n_detected += usize::from(median != UNKNOWN) & usize::from(value != 0.0);
        }
        entries.truncate(n_detected);
        let descending = |one: &u64, other: &u64| -> Ordering {
            key(*one).cmp(&key(*other)).then_with(|| {
                let (one, other) = (place(*one), place(*other));
                let by_result = scaled[other].total_cmp(&scaled[one]);
                by_result.then_with(|| columns[one].cmp(&columns[other]))
            })
        };
        sorter.sort(entries, descending);
        let pad = self.genes.special().pad;
        for (to, ranked) in out.iter_mut().zip(entries.iter()) {
            let token = self.genes.token(columns[place(*ranked)] as usize);
            *to = T::from_id(token.unwrap_or(pad));
        }
        Ok(())
    }
}

/// Number of values whose division by the total is done once per cell: those from 1 to below 16
/// whose mantissa uses only its three highest bits. They include all whole numbers in that range,
/// about nine in ten of a cell's values, and their highest bits alone identify them.
const N_COUNTS: usize = 32;
const COUNT_SHIFT: u32 = 20;
const FIRST_COUNT: u32 = 1_f32.to_bits() >> COUNT_SHIFT;

/// Divides the values of a cell by its total.
struct PerTotal {
    total: f64,
    target_sum: f64,
    of_counts: [f64; N_COUNTS],
}

impl PerTotal {
    fn new(total: f64, target_sum: f64) -> Self {
        let mut per_total = Self { total, target_sum, of_counts: [0.0; N_COUNTS] };
        for idx in 0..N_COUNTS {
            let count = f32::from_bits((FIRST_COUNT + idx as u32) << COUNT_SHIFT);
            per_total.of_counts[idx] = per_total.compute(count);
        }
        per_total
    }

    #[inline]
    fn get(&self, value: f32) -> f64 {
        let bits = value.to_bits();
        let idx = (bits >> COUNT_SHIFT).wrapping_sub(FIRST_COUNT);
        match self.of_counts.get(idx as usize) {
            Some(of_count) if bits & ((1 << COUNT_SHIFT) - 1) == 0 => *of_count,
            _ => self.compute(value),
        }
    }

    fn compute(&self, value: f32) -> f64 {
        f64::from(value) / self.total * self.target_sum
    }
}

/// The sum, in the same order on every machine, in lanes that are added side by side.
fn sum(values: &[f32]) -> f64 {
    const LANES: usize = 8;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f64::from(*value));
    }
    lanes.iter().sum::<f64>() + rest.iter().copied().map(f64::from).sum::<f64>()
}
