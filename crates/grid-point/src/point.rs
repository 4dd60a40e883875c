//! The settings of one point of the grid.

use std::fmt;

use bench_run::Cold;
use loader::{
    BatchForm, BlockForm, Budget, LoaderSpec, Order, PipelineSpec, Remainder, Totals, Transform,
    World,
};
use serde::{Deserialize, Serialize};

use crate::block_spec::BlockSpec;
use crate::consumer::Consumer;
use crate::data::Data;

/// The settings of one grid point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Rows of a chunk, which are read together.
    pub chunk_rows: u64,
    /// Chunks of a block, which are shuffled together.
    pub chunks_per_block: u64,
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Form of blocks.
    #[serde(with = "by_name")]
    pub method: BlockForm,
    /// Form of batches.
    #[serde(with = "by_name")]
    pub form: BatchForm,
    /// Transform of values.
    pub transform: PointTransform,
    /// Whether the order of rows is random.
    pub shuffled: bool,
    /// Blocks at the start of an epoch that grow to the full size.
    pub ramp_blocks: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Whether a short last batch is left out.
    pub drop_last: bool,
    /// Blocks read ahead.
    pub prefetch_blocks: usize,
    /// Batches made ahead.
    pub prefetch_batches: usize,
    /// Number of epochs, which follow one another.
    pub n_epochs: u64,
    /// Batches after which an epoch is cut off.
    pub max_batches: Option<u64>,
    /// Consumer of the batches.
    pub consumer: Consumer,
    /// Bytes of memory that the process may use in addition to those at its start.
    pub memory_limit: Option<u64>,
    /// Bytes of decoded values to cache.
    pub keep_decoded: Option<u64>,
    /// Bytes of memory above which the process is ended.
    pub process_limit: Option<u64>,
    /// How the data is removed from the page cache before each epoch; `None` leaves the cache.
    pub cold: Option<Cold>,
    /// The process's rank among several that share the cells; `None` if it has no rank.
    pub rank: Option<PointRank>,
}

/// Forms as their names, in JSON.
mod by_name {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<T: Display, S: Serializer>(
        form: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(form)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A rank among several processes that load together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointRank {
    /// The rank, from 0.
    pub rank: u64,
    /// Number of ranks.
    pub world_size: u64,
}

/// The serializable form of a `loader::Transform`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointTransform {
    /// Sum that each cell's values are scaled to.
    pub target_sum: Option<f64>,
    /// Whether each value x becomes log(1 + x).
    pub log1p: bool,
    /// Range that values are clipped to.
    pub clip: Option<(f32, f32)>,
}

impl From<PointTransform> for Transform {
    fn from(PointTransform { target_sum, log1p, clip }: PointTransform) -> Self {
        Self { target_sum, log1p, clip }
    }
}

impl Default for Point {
    /// One epoch of shuffled dense batches from CSR blocks, without limits.
    fn default() -> Self {
        Self {
            chunk_rows: 64,
            chunks_per_block: 128,
            batch_rows: 1024,
            method: BlockForm::Csr,
            form: BatchForm::Dense,
            transform: PointTransform::default(),
            shuffled: true,
            ramp_blocks: 0,
            seed: 0,
            drop_last: false,
            prefetch_blocks: 1,
            prefetch_batches: 1,
            n_epochs: 1,
            max_batches: None,
            consumer: Consumer::None,
            memory_limit: None,
            keep_decoded: None,
            process_limit: None,
            cold: None,
            rank: None,
        }
    }
}

impl Point {
    /// Returns the same settings with these blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: BlockSpec) -> Self {
        let BlockSpec { chunk_rows, chunks_per_block } = blocks;
        Self { chunk_rows, chunks_per_block, ..self }
    }

    /// Returns the loader's settings for this data; `used_bytes` of the memory limit are in use
    /// already.
    pub fn loader_spec(&self, data: &Data, used_bytes: u64) -> LoaderSpec {
        LoaderSpec {
            pipeline: PipelineSpec {
                chunk_rows: self.chunk_rows,
                chunks_per_block: self.chunks_per_block,
                order: if self.shuffled { Order::Shuffled } else { Order::InOrder },
                ramp_blocks: self.ramp_blocks,
                seed: self.seed,
                batch_rows: self.batch_rows,
                remainder: match self.rank {
                    _ if self.drop_last => Remainder::Drop,
                    // Ranks have batches of equal length.
                    Some(_) => Remainder::Pad,
                    None => Remainder::Short,
                },
                world: self
                    .rank
                    .map_or_else(World::default, |of| World { rank: of.rank, size: of.world_size }),
                prefetch_blocks: self.prefetch_blocks,
                prefetch_batches: self.prefetch_batches,
                memory: match self.memory_limit {
                    Some(limit) => Budget::new(limit.saturating_sub(used_bytes)),
                    None => Budget::unlimited(),
                },
                keep_bytes: self.keep_decoded,
                ..PipelineSpec::default()
            },
            block_form: self.method,
            batch_form: self.form,
            transform: self.transform.into(),
            totals: if data.totals.is_some() { Totals::Obs } else { Totals::Genes },
            ..LoaderSpec::default()
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}x{}", self.method, self.chunks_per_block, self.chunk_rows)
    }
}

/// A point for tests.
#[cfg(test)]
pub(crate) fn point_for_tests() -> Point {
    Point {
        chunk_rows: 64,
        chunks_per_block: 128,
        batch_rows: 1024,
        method: BlockForm::ConvertedCsr,
        form: BatchForm::Csr,
        transform: PointTransform { target_sum: Some(1e4), log1p: true, clip: None },
        shuffled: false,
        ramp_blocks: 3,
        seed: u64::MAX,
        drop_last: true,
        prefetch_blocks: 2,
        prefetch_batches: 3,
        n_epochs: 1,
        max_batches: Some(5),
        consumer: Consumer::Fixed { millis: 2.5 },
        memory_limit: Some(5 << 30),
        keep_decoded: None,
        process_limit: Some(6 << 30),
        cold: Some(Cold::Advise),
        rank: Some(PointRank { rank: 1, world_size: 3 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        point_for_tests()
    }

    #[test]
    fn a_point_passes_through_a_line_of_json() {
        let line = serde_json::to_string(&point()).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(serde_json::from_str::<Point>(&line).unwrap(), point());
        let other = line.replace("scipy.csr", "other");
        assert!(serde_json::from_str::<Point>(&other).unwrap_err().to_string().contains("other"));
    }

    #[test]
    fn points_become_the_loaders_settings() {
        let spec = point().loader_spec(&Data::default(), 1 << 30);
        assert_eq!(
            (spec.pipeline.chunk_rows, spec.pipeline.chunks_per_block, spec.pipeline.batch_rows),
            (64, 128, 1024)
        );
        assert_eq!(
            (spec.block_form.name(), spec.batch_form.name(), spec.pipeline.order),
            ("scipy.csr", "csr", Order::InOrder)
        );
        assert_eq!(
            (
                spec.pipeline.prefetch_blocks,
                spec.pipeline.prefetch_batches,
                spec.pipeline.remainder,
                spec.pipeline.seed
            ),
            (2, 3, Remainder::Drop, u64::MAX)
        );
        assert_eq!(spec.pipeline.memory.limit(), Some(4 << 30));
        assert_eq!((spec.pipeline.world.rank, spec.pipeline.world.size), (1, 3));
        let of = |rank| Point { drop_last: false, rank, ..point() };
        let remainder = |rank| of(rank).loader_spec(&Data::default(), 0).pipeline.remainder;
        assert_eq!(remainder(None), Remainder::Short);
        assert_eq!(remainder(point().rank), Remainder::Pad);
        assert_eq!(point().to_string(), "scipy.csr 128x64");
    }
}
