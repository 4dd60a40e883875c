//! What is made of unpacked numbers before they are normalised: clipped, then their logarithm.

use crate::spec::Variable;

/// A function of numbers, in double precision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// The least and the greatest number.
    clip: (f64, f64),
    /// What is added to a number whose logarithm is taken.
    log: Option<f64>,
    /// What the result is multiplied by, and what is added then.
    scale: f64,
    offset: f64,
}

impl Function {
    /// The function that a variable asks for, if any. The error says what is wrong with it.
    pub(crate) fn of(spec: &Variable) -> Result<Option<Self>, String> {
        let Variable { clip, log, .. } = spec;
        if let Some((low, high)) = clip
            && (low.is_nan() || high.is_nan() || high < low)
        {
            return Err(format!("numbers cannot be clipped to {low}..{high}"));
        }
        if let Some(log) = log.filter(|log| !log.is_finite()) {
            return Err(format!("the logarithm of numbers plus {log} cannot be taken"));
        }
        let clip = clip.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let is_one = spec.clip.is_some() || log.is_some();
        Ok(is_one.then_some(Self { clip, log: *log, scale: 1.0, offset: 0.0 }))
    }

    /// The same, less a mean and divided by a deviation.
    pub(crate) fn normalized(&self, (mean, deviation): (f64, f64)) -> Self {
        let (scale, offset) = (self.scale / deviation, (self.offset - mean) / deviation);
        Self { scale, offset, ..self.clone() }
    }

    /// What it makes of a number. NaN stays NaN.
    pub(crate) fn call(&self, number: f64) -> f64 {
        let (low, high) = self.clip;
        // The ends are in order, which `of` has checked.
        let number = number.clamp(low, high);
        let number = self.log.map_or(number, |by| (number + by).ln());
        number * self.scale + self.offset
    }
}
