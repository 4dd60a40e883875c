//! Measures points, each in its own process as in a sweep, and writes their rows.

use std::fmt;

use anyhow::{Context as _, bail};
use bench_report::{EpochRecord, Status};
use bench_run::{Interrupted, Measuring};

use crate::tunable::{RunSettings, Tunable};

/// Name of the entry in a row's metadata that says what the row was measured for.
const PURPOSE: &str = "tune";

/// Samples of a kind, and a measurement to which runs over them are added.
#[derive(Debug)]
pub struct Runs<K> {
    /// The samples.
    pub kind: K,
    pub(crate) measuring: Measuring,
}

impl<K: Tunable> Runs<K> {
    pub(crate) fn new(kind: K, measuring: Measuring) -> Self {
        Self { kind, measuring }
    }

    /// Measures an epoch with these settings and keeps its row, marked with `purpose`.
    ///
    /// # Errors
    /// The run fails, which also leaves a row, or Ctrl-C ([`Interrupted`]).
    pub fn measure(
        &mut self,
        settings: &RunSettings,
        purpose: &str,
    ) -> anyhow::Result<EpochRecord> {
        let RunSettings { spec, prefetch_blocks, .. } = settings;
        let name = format!("{purpose} {spec}, {prefetch_blocks} ahead");
        self.measuring.session.warm_again(self.kind.folders().as_deref());
        self.measuring.mark(PURPOSE, purpose);
        let point = self.kind.point(settings);
        if self.measuring.measure_as(self.kind.samples(), &point, &name, (None, 0))?.is_break() {
            return Err(Interrupted.into());
        }
        let measured = self.measuring.records.last();
        let record = &measured.with_context(|| format!("{name} ended without a result"))?.record;
        if record.measured.status != Status::Ok {
            let message = record.measured.message.as_deref().unwrap_or_default();
            bail!("{name}: {}: {message}", record.measured.status.name());
        }
        Ok(record.clone())
    }

    /// Prints a line above the progress.
    pub fn say(&self, text: &str) {
        self.measuring.session.display.line(text);
    }

    /// Removes the progress.
    pub(crate) fn finish(&self) {
        self.measuring.session.display.finish();
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.measuring.n_rows()
    }

    pub(crate) fn folder(&self) -> impl fmt::Display {
        self.measuring.folder().display()
    }
}
