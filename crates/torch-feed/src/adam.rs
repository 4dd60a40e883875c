//! The optimizer Adam over plain tensors.
//!
//! tch's optimizers do not expose their state, so a resumed run would differ from an uninterrupted
//! one, and they panic where torch reports an error. Adam takes only a few lines over tensors.

use tch::nn::VarStore;
use tch::{TchError, Tensor, no_grad};

/// Decay of the running means of the gradient and of its square, and the term that avoids division
/// by zero, as in the paper (Kingma and Ba, "Adam: a method for stochastic optimization", 2015).
const KEPT_MEAN: f64 = 0.9;
const KEPT_SQUARE: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Adam, without weight decay. Owns the parameters, too, by name.
#[derive(Debug)]
pub(crate) struct Adam {
    pub(crate) slots: Vec<Slot>,
    pub(crate) n_steps: i64,
    pub(crate) learning_rate: f64,
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
    /// An optimizer of all variables, in the order of their names.
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

    /// Takes a step that reduces `loss`. Returns the loss before the step, on its device. Reading
    /// it waits for the device.
    pub(crate) fn minimise(&mut self, loss: &Tensor) -> Result<Tensor, TchError> {
        let parameters: Vec<&Tensor> = self.slots.iter().map(|slot| &slot.parameter).collect();
        let gradients = Tensor::f_run_backward(&[loss], &parameters, false, false)?;
        no_grad(|| self.step(&gradients))?;
        loss.f_detach()
    }

    /// Takes a step along `gradients`, one for each parameter.
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
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
