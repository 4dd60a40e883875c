//! Which steps of the arrays belong to a sample.

use crate::error::Error;
use crate::spec::SampleSpec;
use crate::variable::OpenVariable;

/// The samples that fit between the first and the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The step of the first sample.
    start: u64,
    stride: u64,
    pub(crate) n_samples: u64,
}

impl Window {
    pub(crate) fn new(variables: &[OpenVariable], spec: &SampleSpec) -> Result<Self, Error> {
        let refused = |reason: String| Error::Spec { reason };
        let Some(first) = variables.first() else {
            return Err(refused("a sample needs a variable".to_owned()));
        };
        if let Some(other) = variables.iter().find(|other| other.n_steps != first.n_steps) {
            return Err(refused(format!(
                "{} has {} steps and {} has {}: the arrays of a sample have equally many",
                first.chunks.path, first.n_steps, other.chunks.path, other.n_steps
            )));
        }
        let steps = || variables.iter().flat_map(|variable| variable.steps.iter().copied());
        let (Some(least), Some(most)) = (steps().min(), steps().max()) else {
            return Err(refused(format!("{} has no steps", first.name)));
        };
        if let Some(variable) = variables.iter().find(|variable| variable.steps.is_empty()) {
            return Err(refused(format!("{} has no steps", variable.name)));
        }
        if spec.stride == 0 {
            return Err(refused("the stride must not be 0".to_owned()));
        }
        let before = least.min(0).unsigned_abs();
        let start = spec.start.unwrap_or(before);
        if start < before {
            return Err(refused(format!(
                "the first sample is about step {start} and looks {before} steps back"
            )));
        }
        // The steps that a sample may be about end before those that would reach beyond the last.
        let end = first.n_steps.saturating_sub(most.max(0).unsigned_abs());
        let wanted = spec.end.unwrap_or(first.n_steps);
        if first.n_steps < wanted {
            let n_steps = first.n_steps;
            return Err(refused(format!(
                "samples end before step {wanted}, and {} has {n_steps} steps",
                first.chunks.path
            )));
        }
        let n_samples = end.min(wanted).saturating_sub(start).div_ceil(spec.stride);
        if n_samples == 0 {
            return Err(refused(format!(
                "there is no sample: {} has {} steps, samples begin at {start}, end before step \
                 {wanted} and reach from {least} to {most}",
                first.chunks.path, first.n_steps
            )));
        }
        Ok(Self { start, stride: spec.stride, n_samples })
    }

    /// The step that a sample is about.
    pub(crate) fn step(&self, sample: u64) -> u64 {
        self.start.saturating_add(sample.saturating_mul(self.stride))
    }

    /// The first sample after this one that reads another chunk of a variable.
    pub(crate) fn unit_end(&self, variable: &OpenVariable, sample: u64) -> u64 {
        let chunk_rows = variable.chunks.geometry.chunk_rows.max(1);
        // Steps until the next chunk begins.
        let to_next = self.steps_of(variable, sample).map(|step| chunk_rows - step % chunk_rows);
        sample.saturating_add(to_next.min().unwrap_or(1).div_ceil(self.stride))
    }

    /// The steps of a sample in a variable.
    pub(crate) fn steps_of(
        &self,
        variable: &OpenVariable,
        sample: u64,
    ) -> impl Iterator<Item = u64> {
        let step = self.step(sample);
        variable.steps.iter().map(move |by| step.saturating_add_signed(*by))
    }
}
