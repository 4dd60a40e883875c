//! Entropy as it is: of labels that are counted, batch by batch.

use crate::Error;

/// The entropy, in bits, of classes with these numbers of rows; 0 where there are no rows.
pub fn entropy(class_rows: impl IntoIterator<Item = u64>) -> f64 {
    let (mut n_rows, mut sum) = (0_u64, 0.0);
    for rows in class_rows.into_iter().filter(|rows| *rows > 0) {
        n_rows += rows;
        sum += rows as f64 * (rows as f64).log2();
    }
    if n_rows == 0 {
        return 0.0;
    }
    // Rounding could take the entropy of a single class below 0.
    ((n_rows as f64).log2() - sum / n_rows as f64).max(0.0)
}

/// Entropy over the full batches of an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchEntropy {
    /// The mean, in bits.
    pub mean: f64,
    /// The standard deviation between batches, in bits; 0 for a single one.
    pub standard_deviation: f64,
    /// Full batches.
    pub n_batches: u64,
}

/// Measures the entropy of a label in each batch, in time proportional to the batch's rows, whatever the number of classes.
///
/// Labels are codes below a number of classes. A row without a label is a row of the batch all the same: give null a code of its own,
/// such as the one behind the others.
///
/// ```
/// use shuffle::entropy::LabelEntropy;
///
/// let mut meter = LabelEntropy::new(3, 4)?;
/// assert_eq!(meter.add([0, 0, 1, 1])?, 1.0);
/// assert_eq!(meter.add([2, 2, 2, 2])?, 0.0);
/// meter.add([0])?;
/// let batches = meter.batches().expect("there are full batches");
/// // The short one is data, but no batch to compare.
/// assert_eq!((batches.mean, batches.n_batches), (0.5, 2));
/// assert_eq!(meter.class_rows(), [3, 2, 4]);
/// # Ok::<(), shuffle::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelEntropy {
    batch_rows: u64,
    /// Rows of each class in the batch that is counted; all zero between batches.
    counts: Vec<u64>,
    /// The classes that the batch has.
    seen: Vec<u32>,
    /// Rows of each class in all batches.
    class_rows: Vec<u64>,
    n_batches: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl LabelEntropy {
    /// A meter of batches of `batch_rows`, with labels from `0..n_classes`. Keeps 16 bytes for each class.
    ///
    /// # Errors
    /// Batches of no rows.
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

    /// Counts a batch, and gives its entropy in bits. One that is not full counts as data, but not in [`batches`](Self::batches).
    ///
    /// # Errors
    /// A code that is no class; nothing is counted then.
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
            // Welford's update, which does not lose digits to the size of the mean.
            self.n_batches += 1;
            let before = bits - self.mean;
            self.mean += before / self.n_batches as f64;
            self.squares += before * (bits - self.mean);
        }
        Ok(bits)
    }

    /// Mean and spread over the full batches; none where there was none.
    pub fn batches(&self) -> Option<BatchEntropy> {
        (self.n_batches > 0).then(|| BatchEntropy {
            mean: self.mean,
            standard_deviation: (self.squares / (self.n_batches - 1).max(1) as f64).sqrt(),
            n_batches: self.n_batches,
        })
    }

    /// Rows of each class, of all batches.
    pub fn class_rows(&self) -> &[u64] {
        &self.class_rows
    }
}
