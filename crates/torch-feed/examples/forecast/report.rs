//! The files of a run: its errors and the picture.

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::picture;
use crate::train::Errors;

/// Writes `errors.csv` and `forecast.png` to a folder, each whole or not at all.
pub(crate) fn write(folder: &Path, errors: &Errors) -> Result<(), Failure> {
    let mut csv = vec![
        "forecast,samples,epochs,rmse".to_owned(),
        format!("persistence,held out,,{}", errors.persistence),
    ];
    let epochs = errors.held_out.iter().enumerate();
    csv.extend(epochs.map(|(epoch, error)| format!("model,held out,{epoch},{error}")));
    let steps = errors.training.iter().enumerate();
    csv.extend(steps.map(|(step, error)| format!("model,training,{},{error}", errors.at(step))));
    fs::create_dir_all(folder)?;
    let whole = |name: &str, bytes: &[u8]| -> Result<(), Failure> {
        let partial = folder.join(format!("{name}.partial"));
        fs::write(&partial, bytes)?;
        Ok(fs::rename(&partial, folder.join(name))?)
    };
    whole("errors.csv", (csv.join("\n") + "\n").as_bytes())?;
    whole("forecast.png", &picture::draw(errors)?)
}

impl Errors {
    /// The time of a training step in epochs: the middle of its share.
    pub(crate) fn at(&self, step: usize) -> f64 {
        let n_epochs = self.held_out.len().saturating_sub(1);
        (step as f64 + 0.5) * n_epochs as f64 / self.training.len() as f64
    }
}
