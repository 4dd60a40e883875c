//! The place of a training run in its data: saved beside a checkpoint, it lets the loader continue
//! with the next batch.

use std::hash::Hasher as _;

use serde::{Deserialize, Serialize};
use shuffle::{BatchSpec, Order, Remainder};
use twox_hash::XxHash3_64;

use crate::error::Error;
use crate::spec::PipelineSpec;

/// The value of the JSON's format field.
const FORMAT: &str = "somafeed loader state";

/// The version that is written and read. It includes the order that a seed gives: a release that
/// changes the order also increases the version.
const VERSION: u64 = 1;

/// The fields that every version has.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

/// A place in an epoch, between two batches.
///
/// [`Epoch::state`](crate::Epoch::state) returns it, [`Pipeline::resume`](crate::Pipeline::resume)
/// continues from it. As JSON it takes less than 1 KB.
///
/// It counts *global* batches, which all ranks take together, so every rank's state is the same.
/// The world size may change before resuming, as long as batch size times world size stays the
/// same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderState {
    format: String,
    version: u64,
    epoch: u64,
    batches_delivered: u64,
    seed: u64,
    lanes: u64,
    global_batch_rows: u64,
    remainder: String,
    order: String,
    chunk_rows: u64,
    chunks_per_block: u64,
    /// 0 in states of versions that had no ramp.
    #[serde(skip_serializing_if = "is_zero", default)]
    ramp_blocks: u32,
    n_rows: u64,
    /// The fingerprint of the selected samples; version 1 calls them cells.
    cells: String,
    /// A hash of the sampling and its weights.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sampling: Option<String>,
}

impl LoaderState {
    /// The beginning of epoch 0.
    pub(crate) fn new(
        (n_rows, fingerprint): (u64, String),
        spec: &PipelineSpec,
        batches: &BatchSpec,
    ) -> Result<Self, Error> {
        let global_batch_rows = batches.global_batch_rows()?;
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            epoch: 0,
            batches_delivered: 0,
            seed: spec.seed,
            lanes: batches.lanes,
            global_batch_rows,
            remainder: match spec.remainder {
                Remainder::Short => "short",
                Remainder::Drop => "drop",
                Remainder::Pad => "pad",
            }
            .to_owned(),
            order: match spec.order {
                Order::Shuffled => "shuffled",
                Order::InOrder => "in order",
                Order::Listed => "listed",
            }
            .to_owned(),
            chunk_rows: spec.chunk_rows,
            chunks_per_block: spec.chunks_per_block,
            ramp_blocks: spec.ramp_blocks,
            n_rows,
            cells: fingerprint,
            sampling: spec.sampling.as_ref().map(|sampling| {
                let mut hash = XxHash3_64::new();
                sampling.write_to(&mut |bytes| hash.write(bytes));
                hex(&hash)
            }),
        })
    }

    /// The same loader at another place.
    pub(crate) fn at(&self, epoch: u64, lanes: u64, batches_delivered: u64) -> Self {
        Self { epoch, batches_delivered, lanes, ..self.clone() }
    }

    /// The place before this batch of the same epoch; this place if it is not behind the batch. For
    /// consumers that failed with a batch that they took.
    #[must_use]
    pub fn before(&self, batch_idx: u64) -> Self {
        self.at(self.epoch, self.lanes, self.batches_delivered.min(batch_idx))
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of the epoch's global batches delivered so far, which is the index of the next one.
    pub fn batches_delivered(&self) -> u64 {
        self.batches_delivered
    }

    /// Rows that all ranks take together.
    pub fn global_batch_rows(&self) -> u64 {
        self.global_batch_rows
    }

    /// Number of lanes of the order: the first number of ranks, unless the specification sets
    /// another.
    pub fn lanes(&self) -> u64 {
        self.lanes
    }

    /// JSON on one line.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|source| Error::StateJson { source })
    }

    /// Reads the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// The text is other JSON or has another version.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let json = |source| Error::StateJson { source };
        let header: Header = serde_json::from_str(text).map_err(json)?;
        header.check()?;
        serde_json::from_str(text).map_err(json)
    }

    /// Fails if a saved state belongs to another loader. Ignores the lanes and the place.
    pub(crate) fn check_saved(&self, saved: &Self) -> Result<(), Error> {
        Header { format: saved.format.clone(), version: saved.version }.check()?;
        let none = || "none".to_owned();
        let sampling = |state: &Self| state.sampling.clone().unwrap_or_else(none);
        let fields = |state: &Self| {
            [
                ("number of samples", state.n_rows.to_string()),
                ("selected samples", state.cells.clone()),
                ("seed", state.seed.to_string()),
                ("order", state.order.clone()),
                ("chunk size", state.chunk_rows.to_string()),
                ("number of chunks per block", state.chunks_per_block.to_string()),
                ("number of blocks that grow", state.ramp_blocks.to_string()),
                (
                    "global batch size (batch size x world size)",
                    state.global_batch_rows.to_string(),
                ),
                ("remainder", state.remainder.clone()),
                ("sampling", sampling(state)),
            ]
        };
        for ((field, saved), (_, here)) in fields(saved).into_iter().zip(fields(self)) {
            if saved != here {
                return Err(Error::State { field, saved, here });
            }
        }
        Ok(())
    }
}

impl Header {
    fn check(&self) -> Result<(), Error> {
        if self.format != FORMAT {
            return Err(Error::StateFormat { found: self.format.clone() });
        }
        if self.version != VERSION {
            return Err(Error::StateVersion { found: self.version, supported: VERSION });
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn hex(hash: &XxHash3_64) -> String {
    format!("{:016x}", hash.finish())
}
