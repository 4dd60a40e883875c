//! A linear layer and its optimizer, whose whole state can be saved. Examples train it, and
//! measurements use it as a consumer of batches.

use tch::nn::{self, Init, LinearConfig, VarStore};
use tch::{Device, Kind, Reduction, TchError, Tensor, no_grad};

use crate::adam::{Adam, Slot};
use crate::batch::TensorBatch;
use crate::error::Error;
use crate::tensor_loader::TensorLoader;

/// Logistic regression: a score for each cell and class.
#[derive(Debug)]
pub struct LinearClassifier {
    linear: nn::Linear,
    /// Owns the parameters, too, by name.
    adam: Adam,
}

impl LinearClassifier {
    /// Makes an untrained model. All parameters are zero, which is as good a start as any for one
    /// convex layer, and needs no generator.
    pub fn new(n_genes: usize, n_classes: usize, learning_rate: f64, device: Device) -> Self {
        let variables = VarStore::new(device);
        let zeros =
            LinearConfig { ws_init: Init::Const(0.0), bs_init: Some(Init::Const(0.0)), bias: true };
        let linear = nn::linear(variables.root(), n_genes as i64, n_classes as i64, zeros);
        let adam = Adam::new(&variables, learning_rate);
        Self { linear, adam }
    }

    /// Makes an untrained model for the genes and the device of the loader's batches.
    pub fn for_loader(loader: &TensorLoader, n_classes: usize, learning_rate: f64) -> Self {
        let n_genes = loader.loader().dataset().n_columns();
        Self::new(n_genes, n_classes, learning_rate, loader.device())
    }

    /// Trains on a batch, with the codes of one of its encoders as classes. Does not read the loss,
    /// so it does not wait for the device.
    ///
    /// # Errors
    /// The batch has no codes of that name; torch's errors, as for [`step`](Self::step).
    pub fn step_on(&mut self, batch: &TensorBatch, encoder: &str) -> Result<(), Error> {
        let codes =
            batch.codes(encoder).ok_or_else(|| Error::NoCodes { encoder: encoder.to_owned() })?;
        self.step(batch.x(), codes).map(drop)
    }

    /// The scores, cells x classes.
    fn scores(&self, x: &Tensor) -> Result<Tensor, TchError> {
        // In torch, sparse rows have no gradient to the layer, and f16 has none on the CPU.
        let is_sparse = x.is_sparse() || x.f_crow_indices().is_ok();
        let x = if is_sparse { x.f_to_dense(None::<Kind>, false)? } else { x.shallow_clone() };
        let x = x.f_to_kind(Kind::Float)?;
        x.f_linear(&self.linear.ws, self.linear.bs.as_ref())
    }

    /// Trains on a batch: `x` is cells x genes, dense or sparse, `labels` the class of each cell,
    /// int64. Returns the mean loss before the step, on the device. Reading it waits for the
    /// device, so callers may want to do that rarely.
    ///
    /// # Errors
    /// torch's errors: another number of genes, a label out of range, no memory.
    pub fn step(&mut self, x: &Tensor, labels: &Tensor) -> Result<Tensor, Error> {
        self.train(x, labels).map_err(Error::torch("a step of a linear classifier"))
    }

    fn train(&mut self, x: &Tensor, labels: &Tensor) -> Result<Tensor, TchError> {
        let loss = self.scores(x)?.f_cross_entropy_loss::<&Tensor>(
            labels,
            None,
            Reduction::Mean,
            -100,
            0.0,
        )?;
        self.adam.minimise(&loss)
    }

    /// The class with the highest score for each cell.
    ///
    /// # Errors
    /// torch's errors, as for [`step`](Self::step).
    pub fn predict(&self, x: &Tensor) -> Result<Vec<i64>, Error> {
        let classes = no_grad(|| self.scores(x)).and_then(|scores| scores.f_argmax(1, false));
        let classes = classes.and_then(|classes| Vec::try_from(&classes));
        classes.map_err(Error::torch("the scores of a linear classifier"))
    }

    /// Copies everything that the next step depends on to the CPU, by name.
    ///
    /// # Errors
    /// torch's errors, if there is no memory.
    pub fn state(&self) -> Result<Vec<(String, Tensor)>, Error> {
        self.copied().map_err(Error::torch("a copy of a linear classifier"))
    }

    fn copied(&self) -> Result<Vec<(String, Tensor)>, TchError> {
        let mut state =
            vec![("adam.n_steps".to_owned(), Tensor::f_from_slice(&[self.adam.n_steps])?)];
        for slot in &self.adam.slots {
            let Slot { name, parameter, mean, square } = slot;
            for (of, tensor) in [("", parameter), (".adam_mean", mean), (".adam_square", square)] {
                let copy =
                    tensor.f_detach()?.f_to_device_(Device::Cpu, Kind::Float, false, true)?;
                state.push((format!("{name}{of}"), copy));
            }
        }
        Ok(state)
    }

    /// Restores the state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// The state is of another classifier, with other genes or classes.
    pub fn restore(&mut self, state: &[(String, Tensor)]) -> Result<(), Error> {
        let find = |name: &str, size: &[i64]| {
            let (_, tensor) = state
                .iter()
                .find(|(saved, _)| saved == name)
                .ok_or_else(|| Error::ClassifierState { problem: format!("it has no {name}") })?;
            if tensor.size() == size {
                return Ok(tensor);
            }
            let problem = format!("{name} is of size {:?}, and should be {size:?}", tensor.size());
            Err(Error::ClassifierState { problem })
        };
        let failed = || Error::torch("a linear classifier of its state");
        self.adam.n_steps = find("adam.n_steps", &[1])?.f_int64_value(&[0]).map_err(failed())?;
        for Slot { name, parameter, mean, square } in &mut self.adam.slots {
            let size = parameter.size();
            for (of, tensor) in [("", parameter), (".adam_mean", mean), (".adam_square", square)] {
                let saved = find(&format!("{name}{of}"), &size)?;
                no_grad(|| tensor.f_copy_(saved)).map_err(failed())?;
            }
        }
        Ok(())
    }
}
