//! Machines with a known model, for tests.

use super::cost::{CostModel, Work, all_read_columns};
use super::least_squares::{Fit, dot};
use super::memory::{KnownMemory, MemoryModel};
use super::observation::Observation;
use super::run_shape::RunShape;

fn fit<const K: usize>(coefficients: [f64; K]) -> Fit<K> {
    Fit { coefficients, error: 0.0 }
}

pub(crate) fn planted(work: Work, read: [f64; 4], cut: [f64; 2], overlap: f64) -> CostModel {
    let known =
        KnownMemory { row_bytes: 6e3, least_row_bytes: 6e3, batch_bytes: 2.5e8, n_batches: 3 };
    let memory = MemoryModel { known, beside: fit([2e8, 300.0, 100.0]) };
    CostModel { work, read: fit(read), cut: fit(cut), overlap, memory }
}

/// Returns what a machine with this model would measure.
pub(crate) fn observed(machine: &CostModel, run: RunShape) -> Observation {
    let columns = all_read_columns(&run, &machine.work);
    let bytes_decoded = match &machine.work {
        Work::Bytes(_) => Some(columns[2]),
        Work::Rows { .. } => None,
    };
    Observation {
        run,
        elapsed: machine.elapsed(&run),
        read_secs: dot(&machine.read.coefficients, &columns),
        peak_bytes: machine.memory.peak_bytes(&run, machine.memory.known.n_batches),
        opening_bytes: 0.0,
        start_bytes: 1.6e8,
        bytes_decoded,
    }
}
