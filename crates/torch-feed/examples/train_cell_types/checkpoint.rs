//! A run's state on disk: one file, which is there whole or not at all.

use std::fs::{self, File};
use std::path::Path;

use tch::{Kind, Tensor};

use crate::Failure;

const IDENTITY: &str = "run.identity";
const POSITION: &str = "run.position";
const LOSSES: &str = "run.losses";

/// Where a run stands in the order of its batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    /// The next one of the epoch.
    pub(crate) batch_idx: u64,
}

/// Everything that the rest of a run depends on, and what it has found so far.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Which run it is: its data and settings, in words.
    pub(crate) identity: String,
    pub(crate) position: Position,
    /// Of each step.
    pub(crate) losses: Vec<f32>,
    /// Of model and optimizer, by name.
    pub(crate) tensors: Vec<(String, Tensor)>,
}

impl Checkpoint {
    /// Writes it under another name, and renames it when it is on disk.
    pub(crate) fn save(mut self, path: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| -> Failure {
            format!("cannot write the checkpoint {}: {error}", path.display()).into()
        };
        let Position { epoch, batch_idx } = self.position;
        self.tensors.extend([
            (IDENTITY.to_owned(), Tensor::f_from_slice(self.identity.as_bytes())?),
            (POSITION.to_owned(), Tensor::f_from_slice(&[epoch as i64, batch_idx as i64])?),
            (LOSSES.to_owned(), Tensor::f_from_slice(&self.losses)?),
        ]);
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let partial = path.with_extension("partial");
        Tensor::write_safetensors(&self.tensors, &partial).map_err(|error| failed(&error))?;
        let written = File::open(&partial)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&partial, path))
            .and_then(|()| File::open(folder)?.sync_all());
        written.map_err(|error| failed(&error))
    }

    /// The checkpoint at `path`, if there is one; it must be one of this run.
    pub(crate) fn load(path: &Path, identity: &str) -> Result<Option<Self>, Failure> {
        if !path.try_exists()? {
            return Ok(None);
        }
        let failed = |problem: &dyn std::fmt::Display| -> Failure {
            format!("cannot go on from the checkpoint {}: {problem}", path.display()).into()
        };
        let mut tensors = Tensor::read_safetensors(path).map_err(|error| failed(&error))?;
        let mut take = |name: &str, kind: Kind| {
            let idx =
                tensors.iter().position(|(saved, tensor)| saved == name && tensor.kind() == kind);
            idx.map(|idx| tensors.swap_remove(idx).1)
                .ok_or_else(|| failed(&format!("it has no {name}")))
        };
        let saved = Vec::<u8>::try_from(take(IDENTITY, Kind::Uint8)?)?;
        let saved = String::from_utf8_lossy(&saved).into_owned();
        let position = Vec::<i64>::try_from(take(POSITION, Kind::Int64)?)?;
        let losses = Vec::<f32>::try_from(take(LOSSES, Kind::Float)?)?;
        if saved != identity {
            return Err(failed(&format!(
                "it is of another run ({saved}), and this is ({identity})"
            )));
        }
        let [epoch, batch_idx] = position[..] else { return Err(failed(&"it has no position")) };
        let position = Position { epoch: epoch as u64, batch_idx: batch_idx as u64 };
        Ok(Some(Self { identity: saved, position, losses, tensors }))
    }
}
