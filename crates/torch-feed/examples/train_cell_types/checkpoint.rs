//! A run's state on disk: one file, complete or absent.

use std::fs::{self, File};
use std::path::Path;

use loader::LoaderState;
use tch::{Kind, Tensor};

use crate::Failure;

const IDENTITY: &str = "run.identity";
const EPOCH: &str = "run.epoch";
const LOADER: &str = "run.loader";
const LOSSES: &str = "run.losses";

/// The place of a run in the order of its batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    /// The place in the epoch; `None` at its beginning.
    pub(crate) loader: Option<LoaderState>,
}

/// Everything that the rest of a run depends on, and its results so far.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// The run's data and settings, in words.
    pub(crate) identity: String,
    pub(crate) position: Position,
    /// The loss of each step.
    pub(crate) losses: Vec<f32>,
    /// Tensors of model and optimizer, by name.
    pub(crate) tensors: Vec<(String, Tensor)>,
}

impl Checkpoint {
    /// Writes it under a temporary name, and renames it when it is on disk.
    pub(crate) fn save(mut self, path: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| -> Failure {
            format!("cannot write the checkpoint {}: {error}", path.display()).into()
        };
        let Position { epoch, loader } = &self.position;
        let loader = match loader {
            Some(state) => state.to_json()?,
            None => String::new(),
        };
        self.tensors.extend([
            (IDENTITY.to_owned(), Tensor::f_from_slice(self.identity.as_bytes())?),
            (EPOCH.to_owned(), Tensor::f_from_slice(&[*epoch as i64])?),
            (LOADER.to_owned(), Tensor::f_from_slice(loader.as_bytes())?),
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

    /// Loads the checkpoint at `path`, if there is one; it must belong to this run.
    pub(crate) fn load(path: &Path, identity: &str) -> Result<Option<Self>, Failure> {
        if !path.try_exists()? {
            return Ok(None);
        }
        let failed = |problem: &dyn std::fmt::Display| -> Failure {
            format!("cannot resume from the checkpoint {}: {problem}", path.display()).into()
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
        let epoch = Vec::<i64>::try_from(take(EPOCH, Kind::Int64)?)?;
        let loader = Vec::<u8>::try_from(take(LOADER, Kind::Uint8)?)?;
        let losses = Vec::<f32>::try_from(take(LOSSES, Kind::Float)?)?;
        if saved != identity {
            return Err(failed(&format!(
                "it is of another run ({saved}), and this is ({identity})"
            )));
        }
        let [epoch] = epoch[..] else { return Err(failed(&"it has no epoch")) };
        let loader = match &*String::from_utf8_lossy(&loader) {
            "" => None,
            state => Some(LoaderState::from_json(state).map_err(|error| failed(&error))?),
        };
        let position = Position { epoch: epoch as u64, loader };
        Ok(Some(Self { identity: saved, position, losses, tensors }))
    }
}
