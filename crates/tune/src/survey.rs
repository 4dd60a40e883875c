//! Facts about the data that need no measurement: its size, what is known of memory, and the
//! entropy of each candidate.

use bench_run::{BlockSpec, LabelCodes};
use serde::{Deserialize, Serialize};

use crate::model::KnownMemory;
use crate::proposal;

/// Size of the data, and what is known of a run's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Samples of the whole data; not 0.
    pub n_rows: u64,
    /// Samples of a batch; not 0.
    pub batch_rows: u64,
    /// Whether each batch should be a part of one block, because only others are copied. A block
    /// may then be a single batch.
    pub whole_batches: bool,
    /// Most bytes of a sample in a block.
    pub most_row_bytes: f64,
    /// Memory that is known before a run.
    pub memory: KnownMemory,
}

impl Facts {
    /// Facts of data whose batches are parts of blocks, with the bytes of a sample in both.
    pub fn with_parts(n_rows: u64, batch_rows: u64, row_bytes: u64) -> Self {
        let row_bytes = row_bytes as f64;
        let memory =
            KnownMemory { row_bytes, least_row_bytes: row_bytes, batch_bytes: 0.0, n_batches: 1 };
        Self { n_rows, batch_rows, whole_batches: true, most_row_bytes: row_bytes, memory }
    }
}

/// Result of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Size and memory of the data.
    pub facts: Facts,
    /// Block specifications that may be proposed, each with its entropy in bits; 0 without a label.
    pub candidates: Vec<(BlockSpec, f64)>,
    /// The label by which randomness is measured.
    pub label: Option<SurveyedLabel>,
}

/// The label by which randomness is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SurveyedLabel {
    /// Name of the label.
    pub name: String,
    /// Mean entropy within a batch of a perfect shuffle, in bits.
    pub perfect_bits: f64,
}

/// Multiple of the memory goal that is surveyed, so that an error can name how much would do.
const BEYOND: f64 = 4.0;

impl Surveyed {
    /// Lists the candidates for a memory goal, with their entropy of a label.
    ///
    /// # Errors
    /// The label does not fit the data, or a batch is empty.
    pub fn new(
        facts: Facts,
        label: Option<&LabelCodes>,
        memory_bytes: u64,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let most_rows = (BEYOND * memory_bytes as f64 / facts.memory.row_bytes) as u64;
        let specs = proposal::specs(&facts, most_rows);
        let curve = label.map(|label| label.curve(&specs, facts.batch_rows, seed)).transpose()?;
        let surveyed = label.zip(curve.as_ref()).map(|(label, curve)| SurveyedLabel {
            name: label.label.clone(),
            perfect_bits: curve.perfect_bits,
        });
        let bits = curve.map_or_else(|| vec![0.0; specs.len()], |curve| curve.bits);
        Ok(Self { facts, candidates: specs.into_iter().zip(bits).collect(), label: surveyed })
    }
}
