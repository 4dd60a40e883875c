//! Rollouts: how many of its steps a variable delivers in an epoch.

use crate::batch::VariableValues;
use crate::error::Error;
use crate::spec::Variable;
use crate::variable::OpenVariable;

/// Fails if a rollout does not fit the steps of its variable.
pub(crate) fn check(spec: &Variable) -> Result<(), Error> {
    let n_steps = if spec.spans.is_empty() { spec.steps.len() } else { spec.spans.len() };
    let rollout = &spec.rollout;
    let outside = rollout.iter().find(|(_, n)| *n == 0 || n_steps < *n);
    let reason = match (rollout.first(), outside) {
        (None, _) => return Ok(()),
        (Some((0, _)), None) if rollout.is_sorted_by(|one, next| one.0 < next.0) => return Ok(()),
        (_, Some((epoch, n))) => format!("{n} steps of {n_steps} are wanted from epoch {epoch} on"),
        _ => "epochs must begin with 0 and ascend".to_owned(),
    };
    Err(Error::Spec { reason: format!("the rollout of {} does not fit: {reason}", spec.name) })
}

impl OpenVariable {
    /// The number of steps that a sample has in an epoch; the most if none is given.
    pub(crate) fn n_steps_in(&self, epoch: Option<u64>) -> usize {
        let of_epoch = |epoch| self.rollout.iter().rev().find(|(first, _)| *first <= epoch);
        epoch.and_then(of_epoch).map_or_else(|| self.n_delivered_steps(), |(_, n)| *n)
    }

    /// Bytes of a sample in an epoch: none of an array that a batch has once.
    pub(crate) fn sample_bytes_in(&self, epoch: Option<u64>) -> u64 {
        if self.is_static() {
            let patch = self.patch.as_ref().map_or(0, |of| of.shape.iter().product::<usize>());
            return (patch * self.element.n_bytes()) as u64;
        }
        (self.row_bytes() as u64).saturating_mul(self.n_steps_in(epoch) as u64)
    }

    /// Elements of a sample that are read for it in an epoch.
    pub(crate) fn sample_elements_in(&self, epoch: Option<u64>) -> usize {
        let of_step: usize = self.row_shape.iter().product();
        if self.is_static() { 0 } else { of_step * self.n_steps_in(epoch) }
    }

    /// Whether its samples have a dimension of steps.
    pub(crate) fn has_step_dimension(&self) -> bool {
        !self.is_static() && (self.n_delivered_steps() != 1 || !self.rollout.is_empty())
    }

    /// Shape of a sample in an epoch: its steps, if there may be several, then the selected part of
    /// a step. An array without steps has the shape of its selected part.
    pub(crate) fn sample_shape_in(&self, epoch: Option<u64>) -> Vec<usize> {
        if let (true, Some(patch)) = (self.is_static(), &self.patch) {
            return patch.shape.clone();
        }
        let outer = match &self.values {
            Some(values) => Some(values.n_outer),
            None => self.has_step_dimension().then_some(self.n_steps_in(epoch)),
        };
        outer.into_iter().chain(self.row_shape.iter().copied()).collect()
    }
}

impl VariableValues<'_> {
    /// The number of steps of a sample, which a [rollout](Variable::rollout) changes by epoch.
    pub fn n_steps(&self) -> usize {
        self.variable.n_steps_in(Some(self.epoch))
    }
}
