//! The optimizer Adam over tensors.
//!
//! tch's optimizers do not expose their state, so a resumed run would differ from an uninterrupted
//! one. Adam takes only a few lines over tensors.

use tch::nn::VarStore;
use tch::{TchError, Tensor};

/// Decay of the running means of the gradient and of its square, and the term that avoids division
/// by zero, as in the paper (Kingma and Ba, "Adam: a method for stochastic optimization", 2015).
const KEPT_MEAN: f64 = 0.9;
const KEPT_SQUARE: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Adam, without weight decay.
#[derive(Debug)]
pub(crate) struct Adam {
    pub(crate) slots: Vec<Slot>,
    pub(crate) n_steps: i64,
    learning_rate: f64,
}

/// A parameter with the running means of its gradient and of its gradient's square.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    /// Shares its memory with the model's parameter.
    pub(crate) parameter: Tensor,
    pub(crate) mean: Tensor,
    pub(crate) square: Tensor,
}

impl Adam {
    pub(crate) fn new(variables: &VarStore, learning_rate: f64) -> Self {
        let mut slots: Vec<Slot> = variables
            .variables()
            .into_iter()
            .map(|(name, parameter)| {
                let (mean, square) = (parameter.zeros_like(), parameter.zeros_like());
                Slot { name, parameter, mean, square }
            })
            .collect();
        // A `VarStore` returns them in any order.
        slots.sort_by(|a, b| a.name.cmp(&b.name));
        Self { slots, n_steps: 0, learning_rate }
    }

    pub(crate) fn parameters(&self) -> Vec<&Tensor> {
        self.slots.iter().map(|slot| &slot.parameter).collect()
    }

    /// Takes a step along `gradients`, one for each parameter.
    pub(crate) fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        self.n_steps += 1;
        // Both means begin at zero; this factor corrects the bias.
        let short = |kept: f64| 1.0 - kept.powf(self.n_steps as f64);
        let (short_mean, short_square) = (short(KEPT_MEAN), short(KEPT_SQUARE));
        for (Slot { parameter, mean, square, .. }, gradient) in self.slots.iter_mut().zip(gradients)
        {
            drop(mean.f_lerp_(gradient, 1.0 - KEPT_MEAN)?);
            drop(square.f_lerp_(&gradient.f_square()?, 1.0 - KEPT_SQUARE)?);
            let mut size = square.f_div_scalar(short_square)?.f_sqrt()?;
            drop(size.f_add_scalar_(EPSILON)?);
            let step = mean.f_div(&size)?.f_mul_scalar(self.learning_rate / short_mean)?;
            drop(parameter.f_sub_(&step)?);
        }
        Ok(())
    }
}
