//! The task of a process that measures a point, and its answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use arrays::{ArraySamples, ReadStrategy, SampleSpec, Variable};
use bench_report::EpochRecord;
use bench_run::Secrets;
use serde::{Deserialize, Serialize};
use storage::{OpenOptions, Storage, local_path};

use super::point::{Point, Strategy};

/// The data of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldData {
    /// Path or address of the store.
    pub(crate) uri: String,
    /// The arrays of a sample.
    pub(crate) arrays: Vec<String>,
}

impl FieldData {
    /// The storage of the data.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn Storage>> {
        let config = storage::Config::new();
        let opened = storage::open(&self.uri, &OpenOptions::new(&config))
            .with_context(|| format!("cannot open {}", self.uri))?;
        Ok(opened.storage)
    }

    /// The samples of the data, read as `point` says.
    pub(crate) fn samples(&self, point: &Point) -> anyhow::Result<ArraySamples> {
        self.samples_between(point, None, None)
    }

    /// The samples of the first loader, and those of the second if the point has one.
    pub(crate) fn parts(
        &self,
        point: &Point,
    ) -> anyhow::Result<(ArraySamples, Option<ArraySamples>)> {
        let all = self.samples(point)?;
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
        let training = self.samples_between(point, None, middle)?;
        Ok((training, Some(self.samples_between(point, middle, None)?)))
    }

    fn samples_between(
        &self,
        point: &Point,
        start: Option<u64>,
        end: Option<u64>,
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
        Ok(ArraySamples::open(self.storage()?, &spec)?)
    }

    /// The secrets in the address.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::of(&self.uri, &BTreeMap::new(), storage::environment_secrets())
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
