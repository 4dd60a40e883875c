//! The task of a process that measures a point, and its answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use arrays::{ArraySamples, ReadStrategy, SampleSpec, Variable};
use bench_report::{EpochRecord, GridPoint};
use bench_run::Secrets;
use serde::{Deserialize, Serialize};
use storage::{OpenedStorage, Storage, local_path};

use super::far::FarAccess;
use super::point::{Point, Strategy};

/// The data of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldData {
    /// Path or address of the store.
    pub(crate) uri: String,
    /// The arrays of a sample.
    pub(crate) arrays: Vec<String>,
    /// How it is read, if not where it is.
    pub(crate) far: FarAccess,
}

impl FieldData {
    /// Opens the storage of the data.
    pub(crate) fn open(&self) -> anyhow::Result<OpenedStorage> {
        self.far.open(&self.uri)
    }

    /// The storage of the data.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn Storage>> {
        Ok(self.open()?.storage)
    }

    /// A storage that lists the files soonest: the folder, if there is one.
    pub(crate) fn listed_storage(&self) -> anyhow::Result<Arc<dyn Storage>> {
        let here = FarAccess::default();
        let far = if self.far.is_served() { &here } else { &self.far };
        Ok(far.open(&self.uri)?.storage)
    }

    /// The samples of the data in its `storage`, read as `point` says.
    pub(crate) fn samples_in(
        &self,
        storage: &Arc<dyn Storage>,
        point: &Point,
    ) -> anyhow::Result<ArraySamples> {
        self.samples_between(storage, point, [None, None])
    }

    /// The samples of the first loader, and those of the second if the point has one.
    pub(crate) fn parts(
        &self,
        storage: &Arc<dyn Storage>,
        point: &Point,
    ) -> anyhow::Result<(ArraySamples, Option<ArraySamples>)> {
        let all = self.samples_in(storage, point)?;
        if point.validation == 0 {
            return Ok((all, None));
        }
        let n_training = all.n_samples().saturating_sub(point.validation);
        ensure!(
            0 < n_training,
            "{} samples of {} are left to validation, none to training",
            point.validation,
            all.n_samples()
        );
        let middle = Some(all.step(n_training));
        let training = self.samples_between(storage, point, [None, middle])?;
        let validation = self.samples_between(storage, point, [middle, None])?;
        Ok((training, Some(validation)))
    }

    fn samples_between(
        &self,
        storage: &Arc<dyn Storage>,
        point: &Point,
        [start, end]: [Option<u64>; 2],
    ) -> anyhow::Result<ArraySamples> {
        let spec = SampleSpec {
            read: match point.strategy {
                Strategy::PerSample => ReadStrategy::PerSample,
                Strategy::Stacked | Strategy::PlainRead => ReadStrategy::Stacked,
            },
            threads: point.threads,
            start,
            end,
            ..SampleSpec::new(self.arrays.iter().map(Variable::new))
        };
        Ok(ArraySamples::open(Arc::clone(storage), &spec)?)
    }

    /// The settings of `point` for a record.
    pub(crate) fn recorded(&self, point: &Point, cache: &str) -> GridPoint {
        self.far.recorded(point.recorded(cache))
    }

    /// The secrets in the address.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::in_task(&self.uri, &BTreeMap::new(), storage::environment_secrets())
    }

    /// The folder of the data; `None` if it is not on this machine.
    pub(crate) fn folders(&self) -> Option<Vec<PathBuf>> {
        local_path(&self.uri).map(|folder| vec![folder.to_owned()])
    }
}

/// A point and its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldTask {
    pub(crate) data: FieldData,
    pub(crate) point: Point,
}

/// The record of an epoch. The command adds run, host and data to it.
pub(crate) type FieldAnswer = Box<EpochRecord>;
