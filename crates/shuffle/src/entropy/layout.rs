//! How a label is distributed over the chunks of the stored data.

use super::Error;
use super::hypergeometric;
use super::measured::entropy;
use super::runs::Runs;

/// Distribution of a label's classes over chunks of consecutive rows.
///
/// Counted from the data, or derived from a model; takes 32 bytes per class. A short last chunk
/// counts among the rows but not among the chunks: an epoch has only one.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelLayout {
    pub(super) chunk_rows: u64,
    pub(super) n_rows: u64,
    pub(super) classes: Vec<ClassInChunks>,
}

/// One class, summed over all full chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ClassInChunks {
    /// Rows of the class, including those in a short last chunk.
    pub(super) n_rows: u64,
    /// Sums over all full chunks of the class's rows per chunk, of their squares, and of their
    /// cubes.
    pub(super) sums: [f64; 3],
}

impl LabelLayout {
    /// Counts the layout of labels. `codes` has the code of each row, in the order of the rows.
    ///
    /// # Errors
    /// A chunk has no rows; a code is not below `n_classes`.
    pub fn of_codes(
        codes: impl IntoIterator<Item = u32>,
        n_classes: usize,
        chunk_rows: u64,
    ) -> Result<Self, Error> {
        if chunk_rows == 0 {
            return Err(Error::Zero { size: "the chunk size" });
        }
        let mut classes = vec![ClassInChunks::default(); n_classes];
        let mut in_chunk = vec![0_u64; n_classes];
        let mut seen: Vec<u32> = Vec::new();
        let mut n_rows = 0;
        for code in codes {
            let Some(count) = in_chunk.get_mut(code as usize) else {
                return Err(Error::LabelCode { code, n_classes });
            };
            if *count == 0 {
                seen.push(code);
            }
            *count += 1;
            n_rows += 1;
            if n_rows % chunk_rows == 0 {
                for code in seen.drain(..) {
                    let rows = std::mem::take(&mut in_chunk[code as usize]);
                    classes[code as usize].add_chunk(rows);
                }
            }
        }
        for code in seen {
            classes[code as usize].n_rows += in_chunk[code as usize];
        }
        Ok(Self { chunk_rows, n_rows, classes })
    }

    /// Derives the layout of classes with `class_rows` rows each that come in `runs`.
    ///
    /// # Errors
    /// A chunk has no rows; the runs are not possible ([`Runs::check`]).
    pub fn of_runs(class_rows: &[u64], chunk_rows: u64, runs: Runs) -> Result<Self, Error> {
        if chunk_rows == 0 {
            return Err(Error::Zero { size: "the chunk size" });
        }
        runs.check()?;
        let n_rows: u64 = class_rows.iter().sum();
        let n_chunks = (n_rows / chunk_rows) as f64;
        // Without a full chunk the moments are never used.
        let in_chunk = chunk_rows.min(n_rows);
        let class = |rows: &u64| ClassInChunks {
            n_rows: *rows,
            sums: runs.moments(*rows as f64 / n_rows as f64, in_chunk).map(|m| m * n_chunks),
        };
        Ok(Self { chunk_rows, n_rows, classes: class_rows.iter().map(class).collect() })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Rows of a chunk.
    pub fn chunk_rows(&self) -> u64 {
        self.chunk_rows
    }

    /// Rows of each class.
    pub fn class_rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.classes.iter().map(|class| class.n_rows)
    }

    /// Entropy of all rows, in bits: no mean over batches exceeds it.
    pub fn data_entropy(&self) -> f64 {
        entropy(self.class_rows())
    }

    /// Mean entropy, in bits, of batches drawn at random from all rows without replacement.
    ///
    /// # Errors
    /// A batch has no rows.
    pub fn perfect(&self, batch_rows: u64) -> Result<f64, Error> {
        if batch_rows == 0 {
            return Err(Error::Zero { size: "the batch size" });
        }
        let rows = batch_rows.min(self.n_rows);
        let sum: f64 = self
            .class_rows()
            .map(|marked| hypergeometric::mean(self.n_rows, marked, rows, rows_log_rows))
            .sum();
        Ok(if rows == 0 { 0.0 } else { ((rows as f64).log2() - sum / rows as f64).max(0.0) })
    }

    /// The correlation `ρ` of the labels of two rows of a chunk: how much likelier than by chance
    /// they are equal.
    ///
    /// Ranges from 0 (mixed) to 1 (each chunk has one class); slightly below 0 if chunks are more
    /// even than chance would make them.
    pub fn correlation(&self) -> f64 {
        let pairs = |rows: f64| rows * (rows - 1.0);
        let chance = self.class_rows().map(|rows| pairs(rows as f64)).sum::<f64>()
            / pairs(self.n_rows as f64).max(1.0);
        let n_chunks = (self.n_rows / self.chunk_rows) as f64;
        let of_chunks = n_chunks * pairs(self.chunk_rows as f64);
        if of_chunks == 0.0 || chance >= 1.0 {
            return 0.0;
        }
        let same: f64 = self.classes.iter().map(|class| class.sums[1] - class.sums[0]).sum();
        (same / of_chunks - chance) / (1.0 - chance)
    }

    /// Mean entropy by the second moments alone, in bits: the formula that is usually quoted.
    ///
    /// Accurate if each class occurs several times in a batch and comes from several chunks.
    ///
    /// # Errors
    /// A block has no chunks; a batch has no rows.
    pub fn second_order(&self, chunks_per_block: u64, batch_rows: u64) -> Result<f64, Error> {
        for (size, rows) in
            [("the number of chunks per block", chunks_per_block), ("the batch size", batch_rows)]
        {
            if rows == 0 {
                return Err(Error::Zero { size });
            }
        }
        let n_classes = self.class_rows().filter(|rows| *rows > 0).count() as f64;
        let (m, c, n) = (batch_rows as f64, self.chunk_rows as f64, chunks_per_block as f64);
        let correlation = self.correlation();
        let same_chunk = (c - 1.0) / (c * n - 1.0).max(1.0);
        let collisions = 1.0 / m + correlation * (1.0 - 1.0 / m) * same_chunk;
        let bits =
            self.data_entropy() - (n_classes - 1.0) / (2.0 * std::f64::consts::LN_2) * collisions;
        // If each chunk has one class, a batch has at most as many classes as chunks.
        let most = if correlation > 0.999 { n.log2() } else { f64::INFINITY };
        Ok(bits.clamp(0.0, most))
    }
}

/// `x log2 x`.
pub(super) fn rows_log_rows(rows: u64) -> f64 {
    if rows == 0 { 0.0 } else { rows as f64 * (rows as f64).log2() }
}

impl ClassInChunks {
    fn add_chunk(&mut self, rows: u64) {
        self.n_rows += rows;
        let rows = rows as f64;
        for (sum, value) in self.sums.iter_mut().zip([rows, rows * rows, rows * rows * rows]) {
            *sum += value;
        }
    }
}
