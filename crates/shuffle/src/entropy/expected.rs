//! The mean entropy of a plan's batches, from a label's distribution over chunks.

use std::collections::{BTreeMap, HashMap};

use super::Error;
use super::hypergeometric::{between, mean};
use super::layout::{ClassInChunks, LabelLayout, rows_log_rows};

/// Expected entropy of a plan's batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Mean over the batches, in bits.
    pub bits: f64,
    /// Whether `bits` is within 0.05 bit (see the [module](crate::entropy)): true if the batches
    /// draw from 64 chunks or more, and if the order is a perfect shuffle. Otherwise prefer
    /// [`simulate`](super::simulate).
    pub is_close: bool,
}

/// The expectation is close if a block has at least this number of chunks.
const CLOSE_CHUNKS: u64 = 64;

/// Share of batches that must draw from [`CLOSE_CHUNKS`] chunks. An epoch's last block is often
/// small.
const CLOSE_SHARE: f64 = 0.8;

/// Largest number of kinds of batches that are computed separately.
const MAX_KINDS: usize = 10;

impl LabelLayout {
    /// Mean entropy, in bits, of the batches of a shuffled plan with `chunks_per_block`.
    ///
    /// The [module](crate::entropy) derives it; [`Expected`] states its accuracy.
    ///
    /// # Errors
    /// A block has no chunks; a batch has no rows.
    pub fn expected(&self, chunks_per_block: u64, batch_rows: u64) -> Result<Expected, Error> {
        check_sizes(chunks_per_block, batch_rows)?;
        let expected = mean_over_batches(self, chunks_per_block, batch_rows)?;
        Ok(self.possible(expected))
    }

    /// Mean entropy, in bits, of batches that lie within one block of `chunks` chunks, as the first
    /// of an epoch with a ramp ([`PlanSpec::ramp_blocks`](crate::PlanSpec::ramp_blocks)) do.
    ///
    /// # Errors
    /// A block has no chunks; a batch has no rows.
    pub fn in_blocks(&self, chunks: u64, batch_rows: u64) -> Result<Expected, Error> {
        check_sizes(chunks, batch_rows)?;
        let (bits, is_close) = bits_of_batches(self, chunks, batch_rows)?;
        Ok(self.possible(Expected { bits, is_close }))
    }

    /// An expectation within its limits. A class's mean share in a batch is its share of the data,
    /// so by concavity no mean entropy exceeds that of the data. An approximation may.
    fn possible(&self, Expected { bits, is_close }: Expected) -> Expected {
        Expected { bits: bits.min(self.data_entropy()).max(0.0), is_close }
    }
}

fn check_sizes(chunks_per_block: u64, batch_rows: u64) -> Result<(), Error> {
    for (size, rows) in
        [("the number of chunks per block", chunks_per_block), ("the batch size", batch_rows)]
    {
        if rows == 0 {
            return Err(Error::Zero { size });
        }
    }
    Ok(())
}

/// The mean over all kinds of batches, before rounding errors are cut off.
fn mean_over_batches(
    layout: &LabelLayout,
    chunks_per_block: u64,
    batch_rows: u64,
) -> Result<Expected, Error> {
    let kinds = kinds_of_batches(layout, chunks_per_block, batch_rows);
    let (mut sum, mut n_batches, mut n_close) = (0.0, 0, 0);
    for (chunks, count) in kinds {
        let (bits, is_close) = bits_of_batches(layout, chunks, batch_rows)?;
        n_close += if is_close { count } else { 0 };
        sum += bits * count as f64;
        n_batches += count;
    }
    if n_batches == 0 {
        // No batch is full: all rows form a single one.
        return Ok(Expected { bits: layout.perfect(batch_rows)?, is_close: true });
    }
    let is_close = CLOSE_SHARE * n_batches as f64 <= n_close as f64;
    Ok(Expected { bits: sum / n_batches as f64, is_close })
}

/// The mean over batches that draw from `chunks` chunks, and whether that is close.
fn bits_of_batches(
    layout: &LabelLayout,
    chunks: u64,
    batch_rows: u64,
) -> Result<(f64, bool), Error> {
    // The layout describes whole chunks only; `all_chunks` counts a short last one, too.
    let n_chunks = layout.n_rows / layout.chunk_rows;
    let all_chunks = layout.n_rows.div_ceil(layout.chunk_rows);
    // A block of all chunks is a perfect shuffle, and so is a batch larger than any smaller block.
    let is_perfect =
        all_chunks <= chunks || n_chunks * layout.chunk_rows < batch_rows || layout.chunk_rows == 1;
    let bits = if is_perfect {
        layout.perfect(batch_rows)?
    } else {
        Draws::new(layout, n_chunks, chunks, batch_rows).bits()
    };
    Ok((bits, is_perfect || CLOSE_CHUNKS <= chunks))
}

/// Counts the full batches by the number of chunks that they draw from.
///
/// A batch with `m_i` of its rows from a block of `n_i` chunks counts with `1 / Σ (m_i/m)²/n_i`
/// chunks: two of its rows are then equally likely to share one.
fn kinds_of_batches(
    layout: &LabelLayout,
    chunks_per_block: u64,
    batch_rows: u64,
) -> Vec<(u64, u64)> {
    let block_rows = layout.chunk_rows.saturating_mul(chunks_per_block).min(layout.n_rows.max(1));
    let last_block = layout.n_rows.saturating_sub(1) / block_rows;
    let last_chunks = (layout.n_rows - last_block * block_rows).div_ceil(layout.chunk_rows);
    let share = |rows: u64| rows as f64 / batch_rows as f64;
    let part = |rows: u64, block: u64| {
        let chunks = if block == last_block { last_chunks } else { chunks_per_block };
        share(rows).powi(2) / chunks as f64
    };
    let mut kinds: BTreeMap<u64, u64> = BTreeMap::new();
    for batch_idx in 0..layout.n_rows / batch_rows {
        let (start, end) = (batch_idx * batch_rows, (batch_idx + 1) * batch_rows);
        let (first, last) = (start / block_rows, (end - 1) / block_rows);
        let pairs = if first == last {
            part(batch_rows, first)
        } else {
            part((first + 1) * block_rows - start, first)
                + part(end - last * block_rows, last)
                + (last - first - 1) as f64 * part(block_rows, first)
        };
        *kinds.entry((1.0 / pairs).round().max(1.0) as u64).or_default() += 1;
    }
    merged(kinds)
}

/// Merges kinds of similar size, so that at most [`MAX_KINDS`] are left; each gets its mean size.
fn merged(kinds: BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    if kinds.len() <= MAX_KINDS {
        return kinds.into_iter().collect();
    }
    let (Some((least, _)), Some((most, _))) = (kinds.first_key_value(), kinds.last_key_value())
    else {
        return Vec::new();
    };
    let (least, most) = ((*least as f64).ln(), (*most as f64).ln());
    let mut bins = [(0.0, 0_u64); MAX_KINDS];
    for (chunks, count) in kinds {
        let place = ((chunks as f64).ln() - least) / (most - least) * (MAX_KINDS - 1) as f64;
        let (sum, total) = &mut bins[(place.round() as usize).min(MAX_KINDS - 1)];
        *sum += chunks as f64 * count as f64;
        *total += count;
    }
    let full = bins.into_iter().filter(|(_, total)| *total > 0);
    full.map(|(sum, total)| ((sum / total as f64).round() as u64, total)).collect()
}

/// Two draws without replacement: chunks for the block, then rows for the batch.
struct Draws<'a> {
    layout: &'a LabelLayout,
    n_chunks: u64,
    chunks: u64,
    block_rows: u64,
    batch_rows: u64,
    /// `x log2 x` for small `x`, which are the likely ones.
    logs: Vec<f64>,
    /// Mean of `x log2 x` in the batch, by the class's rows in the block.
    by_block: HashMap<u64, f64>,
}

/// Largest number of logarithms to keep.
const MAX_LOGS: u64 = 1 << 16;

impl<'a> Draws<'a> {
    /// `chunks` must be below `n_chunks`.
    fn new(layout: &'a LabelLayout, n_chunks: u64, chunks: u64, batch_rows: u64) -> Self {
        let block_rows = (chunks * layout.chunk_rows).max(batch_rows);
        let logs = (0..=batch_rows.min(MAX_LOGS)).map(rows_log_rows).collect();
        let by_block = HashMap::new();
        Self { layout, n_chunks, chunks, block_rows, batch_rows, logs, by_block }
    }

    fn bits(&mut self) -> f64 {
        let layout = self.layout;
        let sum: f64 = layout.classes.iter().map(|class| self.class(class)).sum();
        ((self.batch_rows as f64).log2() - sum / self.batch_rows as f64).max(0.0)
    }

    /// Mean of `x log2 x` for one class.
    fn class(&mut self, class: &ClassInChunks) -> f64 {
        let TwoValues { low, high, share_high } = TwoValues::for_class(class, self.n_chunks as f64);
        let (n_chunks, chunks) = (self.n_chunks, self.chunks);
        let most = self.block_rows as f64;
        between(share_high * n_chunks as f64, |marked| {
            mean(n_chunks, marked.min(n_chunks), chunks, |n_high| {
                let rows = chunks as f64 * low + n_high as f64 * (high - low);
                between(rows.min(most), |rows| self.in_batch(rows.min(self.block_rows)))
            })
        })
    }

    fn in_batch(&mut self, rows: u64) -> f64 {
        let Self { logs, by_block, block_rows, batch_rows, .. } = self;
        *by_block.entry(rows).or_insert_with(|| {
            mean(*block_rows, rows, *batch_rows, |rows| {
                logs.get(rows as usize).copied().unwrap_or_else(|| rows_log_rows(rows))
            })
        })
    }
}

/// A distribution on two values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TwoValues {
    low: f64,
    high: f64,
    share_high: f64,
}

impl TwoValues {
    /// Has the mean, variance and third moment of a class's rows in chunks: the nodes and weights
    /// of the two-point Gauss quadrature.
    fn for_class(class: &ClassInChunks, n_chunks: f64) -> Self {
        let [first, second, third] = class.sums.map(|sum| sum / n_chunks);
        let variance = second - first * first;
        // Equal numbers in all chunks leave a variance of rounding errors only.
        if variance <= 1e-12 * second {
            return Self { low: first, high: first, share_high: 0.0 };
        }
        let deviation = variance.sqrt();
        let skew = (third - 3.0 * first * variance - first.powi(3)) / (variance * deviation);
        // The roots of t² - skew t - 1. The root that would lose digits is computed from the other.
        let root = (skew * skew + 4.0).sqrt();
        let (below, above) = if skew < 0.0 {
            let below = (skew - root) / 2.0;
            (below, -1.0 / below)
        } else {
            let above = f64::midpoint(skew, root);
            (-1.0 / above, above)
        };
        let low = (first + deviation * below).max(0.0);
        let high = first + deviation * above;
        Self { low, high, share_high: (first - low) / (high - low) }
    }
}
