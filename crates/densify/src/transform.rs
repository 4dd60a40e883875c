//! Transforms values on their way into a batch: scaling to a total, log1p, clipping; in this order,
//! value by value.
//!
//! All three map zero to zero, so values that are not stored cost nothing.

use std::fmt;

use crate::Error;
use crate::past_caches::Plain;

/// The operations on each stored value of a row. The default does nothing.
///
/// With a target sum of 10,000 and log1p it computes scanpy's `normalize_total` and `log1p`, in
/// `f64`, rounded once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Transform {
    /// Multiplies each value by this over its row's total; `1e4` gives counts per 10,000.
    pub target_sum: Option<f64>,
    /// Then takes the natural logarithm of one plus the value.
    pub log1p: bool,
    /// Then raises values to at least the first bound and lowers them to at most the second. The
    /// bounds must include zero.
    pub clip: Option<(f32, f32)>,
}

/// Describes the operations: `per 10000, log1p, clipped to 0..10`; `none` if there are none.
impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.target_sum.map(|target| format!("per {target}")),
            self.log1p.then(|| "log1p".to_owned()),
            self.clip.map(|(least, most)| format!("clipped to {least}..{most}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("none") } else { f.write_str(&parts.join(", ")) }
    }
}

impl Transform {
    /// Whether values stay unchanged.
    pub fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The target is not above 0, or clipping would change zeros.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(target) = self.target_sum.filter(|target| !target.is_finite() || *target <= 0.0)
        {
            return Err(Error::TargetSum { target: target.to_string() });
        }
        match self.clip {
            Some((least, most)) if !(least <= 0.0 && 0.0 <= most) => {
                Err(Error::Clip { least: least.to_string(), most: most.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The transform of row `row_idx` with total `total`, which is unused without a target.
    fn of_row(&self, row_idx: usize, total: f64) -> Result<RowTransform, Error> {
        let scale = match self.target_sum {
            None => 1.0,
            Some(target) if total.is_finite() && 0.0 < total => target / total,
            Some(_) => return Err(Error::Total { row_idx, total: total.to_string() }),
        };
        let clip = self.clip.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let plain = RowTransform { scale, log1p: self.log1p, clip, of_counts: [0.0; N_COUNTS] };
        // A logarithm costs more than the other operations together, and most values are small
        // counts.
        let mut of_counts = [0.0; N_COUNTS];
        for (idx, of_count) in (0..).zip(&mut of_counts) {
            *of_count = plain.compute(f32::from_bits((FIRST_COUNT + idx) << COUNT_SHIFT));
        }
        Ok(RowTransform { of_counts, ..plain })
    }
}

/// A transform, and the totals of its rows.
#[derive(Debug, Clone, Copy)]
pub struct RowTransforms<'a> {
    /// The operations.
    pub transform: &'a Transform,
    /// The total of each row, in the order of delivery; without totals, the sum of the row's own
    /// values.
    pub totals: Option<&'a [f64]>,
}

impl RowTransforms<'_> {
    /// Fails unless there are totals for exactly `n_rows` rows.
    pub(crate) fn check(&self, n_rows: usize) -> Result<(), Error> {
        self.transform.check()?;
        match self.totals {
            Some(totals) if totals.len() != n_rows => {
                Err(Error::Length { what: "the totals", found: totals.len(), expected: n_rows })
            }
            _ => Ok(()),
        }
    }

    /// The transform of the `idx`-th row to deliver, which is row `row_idx` of the block and has
    /// these stored values. `None` for a row without values, whose total may be anything.
    pub(crate) fn of_row(
        &self,
        idx: usize,
        row_idx: usize,
        stored: &[f32],
    ) -> Result<Option<RowTransform>, Error> {
        let total = match self.totals {
            Some(totals) => totals[idx],
            None if self.transform.target_sum.is_some() => sum(stored),
            None => 1.0,
        };
        match self.transform.of_row(row_idx, total) {
            Err(_) if stored.iter().all(|value| *value == 0.0) => Ok(None),
            of_row => of_row.map(Some),
        }
    }
}

/// The sum, in the same order on every machine, in lanes that are added side by side.
fn sum(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f64::from(*value));
    }
    lanes.iter().sum::<f64>() + rest.iter().copied().map(f64::from).sum::<f64>()
}

/// Number of values whose result is computed once per row: those from 1 to below 16 whose mantissa
/// uses only its three highest bits. They include all whole numbers in that range, about nine in
/// ten of a row's values, and their highest bits alone identify them.
const N_COUNTS: usize = 32;
const COUNT_SHIFT: u32 = 20;
const FIRST_COUNT: u32 = 1_f32.to_bits() >> COUNT_SHIFT;

/// A transform for the values of one row.
#[derive(Debug, Clone)]
pub(crate) struct RowTransform {
    scale: f64,
    log1p: bool,
    clip: (f32, f32),
    /// The results for small counts.
    of_counts: [f32; N_COUNTS],
}

impl RowTransform {
    #[inline]
    pub(crate) fn apply(&self, value: f32) -> f32 {
        let bits = value.to_bits();
        let idx = (bits >> COUNT_SHIFT).wrapping_sub(FIRST_COUNT);
        match self.of_counts.get(idx as usize) {
            Some(of_count) if bits & ((1 << COUNT_SHIFT) - 1) == 0 => *of_count,
            _ => self.compute(value),
        }
    }

    fn compute(&self, value: f32) -> f32 {
        let scaled = f64::from(value) * self.scale;
        let value = if self.log1p { ln_1p(scaled) } else { scaled } as f32;
        // The bounds were checked, so this does not panic; NaN stays NaN.
        value.clamp(self.clip.0, self.clip.1)
    }
}

/// ln(1 + x). From 1/1024 on, uses the plain logarithm, which takes a third of the time: adding 1
/// loses less than 2^-53 of the sum, so at most 2^-43 of the result, and an f32 has 24 bits.
#[inline]
fn ln_1p(x: f64) -> f64 {
    if x >= 1.0 / 1024.0 { (1.0 + x).ln() } else { x.ln_1p() }
}

/// The type of values in a batch: `f32` or `f16`.
pub trait Value: Copy + Default + Send + Sync + Plain + 'static {
    /// The nearest value of this type.
    fn from_f32(value: f32) -> Self;
}

impl Value for f32 {
    #[inline]
    fn from_f32(value: f32) -> Self {
        value
    }
}

/// Rounds half to even; values from 65,520 on become infinite.
impl Value for half::f16 {
    #[inline]
    fn from_f32(value: f32) -> Self {
        Self::from_f32(value)
    }
}
