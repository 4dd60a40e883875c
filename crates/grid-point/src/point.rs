//! The settings of one point of the grid.

use std::fmt;

use bench_run::{BlockSpec, Cold};
use loader::{Budget, LoaderSpec, PipelineSpec, Remainder, World};
use serde::{Deserialize, Serialize};

use crate::consumer::Consumer;

/// The settings of one grid point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Point {
    /// The loader's settings. Its budget is made in the process, of `memory_limit`.
    pub spec: LoaderSpec,
    /// Whether the process is one of several that share the cells: `spec` has its rank.
    pub is_rank: bool,
    /// Number of epochs, which follow one another.
    pub n_epochs: u64,
    /// Batches after which an epoch is cut off.
    pub max_batches: Option<u64>,
    /// Consumer of the batches.
    pub consumer: Consumer,
    /// Bytes of memory that the process may use in addition to those at its start.
    pub memory_limit: Option<u64>,
    /// Bytes of memory above which the process is ended.
    pub process_limit: Option<u64>,
    /// How the data is removed from the page cache before each epoch; `None` leaves the cache.
    pub cold: Option<Cold>,
}

impl Default for Point {
    /// One epoch of shuffled dense batches from CSR blocks, without limits.
    fn default() -> Self {
        Self {
            spec: LoaderSpec::default(),
            is_rank: false,
            n_epochs: 1,
            max_batches: None,
            consumer: Consumer::None,
            memory_limit: None,
            process_limit: None,
            cold: None,
        }
    }
}

impl Point {
    /// Returns the same settings with these blocks.
    #[must_use]
    pub fn with_blocks(mut self, blocks: BlockSpec) -> Self {
        let BlockSpec { chunk_rows, chunks_per_block } = blocks;
        let sizes = PipelineSpec { chunk_rows, chunks_per_block, ..self.spec.pipeline };
        self.spec.pipeline = sizes;
        self
    }

    /// Returns the same settings for a rank among several processes, whose batches have equal
    /// lengths.
    #[must_use]
    pub fn with_rank(mut self, world: World) -> Self {
        let engine = &mut self.spec.pipeline;
        engine.world = world;
        if engine.remainder == Remainder::Short {
            engine.remainder = Remainder::Pad;
        }
        self.is_rank = true;
        self
    }

    /// Returns the process's rank among several that share the cells; `None` if it has no rank.
    pub fn rank(&self) -> Option<World> {
        self.is_rank.then_some(self.spec.pipeline.world)
    }

    /// Returns the loader's settings; `used_bytes` of the memory limit are in use already.
    pub fn loader_spec(&self, used_bytes: u64) -> LoaderSpec {
        let mut spec = self.spec.clone();
        if let Some(limit) = self.memory_limit {
            spec.pipeline.memory = Budget::new(limit.saturating_sub(used_bytes));
        }
        spec
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PipelineSpec { chunk_rows, chunks_per_block, .. } = self.spec.pipeline;
        write!(f, "{} {chunks_per_block}x{chunk_rows}", self.spec.block_form)
    }
}

/// A point for tests.
#[cfg(test)]
pub(crate) fn point_for_tests() -> Point {
    use loader::{BatchForm, BlockForm, Order, Transform};

    let pipeline = PipelineSpec {
        chunk_rows: 64,
        chunks_per_block: 128,
        batch_rows: 1024,
        ramp_blocks: 3,
        order: Order::InOrder,
        seed: u64::MAX,
        remainder: Remainder::Drop,
        prefetch_blocks: 2,
        prefetch_batches: 3,
        ..PipelineSpec::default()
    };
    let spec = LoaderSpec {
        pipeline,
        block_form: BlockForm::ConvertedCsr,
        batch_form: BatchForm::Csr,
        transform: Transform { target_sum: Some(1e4), log1p: true, clip: None },
        ..LoaderSpec::default()
    };
    let point = Point {
        spec,
        is_rank: false,
        n_epochs: 1,
        max_batches: Some(5),
        consumer: Consumer::Fixed { millis: 2.5 },
        memory_limit: Some(5 << 30),
        process_limit: Some(6 << 30),
        cold: Some(Cold::Advise),
    };
    point.with_rank(World { rank: 1, size: 3 })
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
    fn the_loaders_budget_is_what_the_process_has_left() {
        let spec = point().loader_spec(1 << 30);
        assert_eq!(spec.pipeline.memory.limit(), Some(4 << 30));
        let PipelineSpec { world, remainder, .. } = spec.pipeline;
        assert_eq!((world, remainder), (World { rank: 1, size: 3 }, Remainder::Drop));
        assert_eq!(Point::default().loader_spec(1 << 30).pipeline.memory.limit(), None);
    }

    #[test]
    fn ranks_have_batches_of_equal_lengths() {
        let alone = Point::default();
        assert_eq!((alone.spec.pipeline.remainder, alone.rank()), (Remainder::Short, None));
        let world = World { rank: 0, size: 1 };
        let rank = alone.with_rank(world);
        assert_eq!((rank.spec.pipeline.remainder, rank.rank()), (Remainder::Pad, Some(world)));
        assert_eq!(point().to_string(), "scipy.csr 128x64");
    }
}
