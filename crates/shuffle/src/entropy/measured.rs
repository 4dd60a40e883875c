//! Entropy measured by counting labels batch by batch.

use super::Error;

/// Entropy, in bits, of classes with these numbers of rows; 0 if there are no rows.
pub fn entropy(class_rows: impl IntoIterator<Item = u64>) -> f64 {
    let (mut n_rows, mut sum) = (0_u64, 0.0);
    for rows in class_rows.into_iter().filter(|rows| *rows > 0) {
        n_rows += rows;
        sum += rows as f64 * (rows as f64).log2();
    }
    if n_rows == 0 {
        return 0.0;
    }
    // Rounding could put the entropy of a single class below 0.
    ((n_rows as f64).log2() - sum / n_rows as f64).max(0.0)
}

/// Entropy over the full batches of an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchEntropy {
    /// Mean, in bits.
    pub mean: f64,
    /// Standard deviation between batches, in bits; 0 for a single batch.
    pub standard_deviation: f64,
    /// Number of full batches.
    pub n_batches: u64,
}

/// Measures the entropy of a label in each batch.
///
/// Takes time proportional to the batch's rows, for any number of classes. Labels are codes below
/// the number of classes. A row without a label counts, too: give null a code of its own, for
/// instance one more than the largest.
///
/// ```
/// use shuffle::entropy::LabelEntropy;
///
/// let mut meter = LabelEntropy::new(3, 4)?;
/// assert_eq!(meter.add([0, 0, 1, 1])?, 1.0);
/// assert_eq!(meter.add([2, 2, 2, 2])?, 0.0);
/// meter.add([0])?;
/// let batches = meter.batches().expect("there are full batches");
/// // The short batch counts as data, but not in the mean over batches.
/// assert_eq!((batches.mean, batches.n_batches), (0.5, 2));
/// assert_eq!(meter.class_rows(), [3, 2, 4]);
/// # Ok::<(), shuffle::entropy::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelEntropy {
    batch_rows: u64,
    /// Rows of each class in the current batch; all zero between batches.
    counts: Vec<u64>,
    /// Classes that occur in the current batch.
    seen: Vec<u32>,
    /// Rows of each class in all batches.
    class_rows: Vec<u64>,
    n_batches: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl LabelEntropy {
    /// Creates a meter for batches of `batch_rows` and labels in `0..n_classes`. Takes 16 bytes per
    /// class.
    ///
    /// # Errors
    /// `batch_rows` is 0.
    pub fn new(n_classes: usize, batch_rows: u64) -> Result<Self, Error> {
        if batch_rows == 0 {
            return Err(Error::Zero { size: "the batch size" });
        }
        Ok(Self {
            batch_rows,
            counts: vec![0; n_classes],
            seen: Vec::new(),
            class_rows: vec![0; n_classes],
            n_batches: 0,
            mean: 0.0,
            squares: 0.0,
        })
    }

    /// Counts a batch and returns its entropy in bits. A batch that is not full is left out of
    /// [`batches`](Self::batches).
    ///
    /// # Errors
    /// A code is not below the number of classes; the batch is then not counted.
    pub fn add(&mut self, codes: impl IntoIterator<Item = u32>) -> Result<f64, Error> {
        let mut n_rows = 0;
        let mut unknown = None;
        for code in codes {
            let Some(count) = self.counts.get_mut(code as usize) else {
                unknown = Some(code);
                break;
            };
            if *count == 0 {
                self.seen.push(code);
            }
            *count += 1;
            n_rows += 1;
        }
        let bits = entropy(self.seen.iter().map(|code| self.counts[*code as usize]));
        for code in self.seen.drain(..) {
            let count = std::mem::take(&mut self.counts[code as usize]);
            if unknown.is_none() {
                self.class_rows[code as usize] += count;
            }
        }
        if let Some(code) = unknown {
            return Err(Error::LabelCode { code, n_classes: self.counts.len() });
        }
        if n_rows == self.batch_rows {
            // Welford's update, which does not lose digits if the mean is large.
            self.n_batches += 1;
            let before = bits - self.mean;
            self.mean += before / self.n_batches as f64;
            self.squares += before * (bits - self.mean);
        }
        Ok(bits)
    }

    /// Mean and spread over the full batches; `None` if there was no full batch.
    pub fn batches(&self) -> Option<BatchEntropy> {
        (self.n_batches > 0).then(|| BatchEntropy {
            mean: self.mean,
            standard_deviation: (self.squares / (self.n_batches - 1).max(1) as f64).sqrt(),
            n_batches: self.n_batches,
        })
    }

    /// Rows of each class in all batches.
    pub fn class_rows(&self) -> &[u64] {
        &self.class_rows
    }
}
