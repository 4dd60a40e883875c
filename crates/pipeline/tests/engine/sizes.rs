//! Blocks whose size, delay and errors depend on their place: memory use, and which error comes
//! first.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use pipeline::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockPlace, BlockRows, Budget, Lease, Need,
    Pipeline, PipelineSpec, ReadStats, Source, Stop,
};
use shuffle::Order;
use worktime::ThreadTime;

use crate::numbers::{Collected, Numbered, NumbersError, spec};

const MIB: u64 = 1 << 20;
/// Bytes that every pipeline needs beside blocks and batches.
const FIXED: u64 = 64 * MIB;

/// Blocks of 12 rows, unless the settings say otherwise.
struct Scripted {
    n_rows: u64,
    /// Expected bytes per row, of a typical block and of the largest.
    expected: (u64, u64),
    /// Actual bytes per row, by block.
    actual: fn(u64) -> u64,
    /// Milliseconds, by block and first row.
    delay: fn(u64, u64) -> u64,
    broken: Vec<u64>,
    _lease: Option<Lease>,
}

fn scripted(n_rows: u64) -> Scripted {
    Scripted {
        n_rows,
        expected: (MIB, MIB),
        actual: |_| MIB,
        delay: |_, _| 0,
        broken: Vec::new(),
        _lease: None,
    }
}

/// Rows with the number of their block.
#[derive(Default)]
struct Rows {
    block_idx: u64,
    rows: Vec<u64>,
}

impl Source for Scripted {
    type Block = Rows;
    type Batch = Numbered;
    type Error = NumbersError;
    type Scratch = ();
    type Assembler = Assembled;

    fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn fingerprint(&self) -> String {
        String::new()
    }

    fn need(&self, block_rows: u64, _batch_rows: u64) -> Result<Need, NumbersError> {
        let (block, largest) = (block_rows * self.expected.0, block_rows * self.expected.1);
        Ok(Need { block, largest, batch: MIB, ..Need::default() })
    }

    fn block_bytes(&self, block: &Rows) -> BlockBytes {
        let now = (self.actual)(block.block_idx) * block.rows.len() as u64;
        BlockBytes { now, most: now.max(self.expected.1 * block.rows.len() as u64) }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Rows,
        (): &mut (),
        _stop: &Stop,
    ) -> Result<ReadStats, NumbersError> {
        let BlockPlace { epoch, block_idx } = rows.place;
        let rows = rows.ranges;
        sleep(Duration::from_millis((self.delay)(block_idx, rows[0].start)));
        if self.broken.contains(&block_idx) {
            return Err(NumbersError::Broken { epoch, block_idx });
        }
        *into = Rows { block_idx, rows: rows.iter().cloned().flatten().collect() };
        Ok(ReadStats::default())
    }

    fn assembler(&self, _batch_rows: u64) -> Result<Assembled, NumbersError> {
        Ok(Assembled(Collected::default()))
    }
}

struct Assembled(Collected);

impl Assemble for Assembled {
    type Block = Rows;
    type Batch = Numbered;
    type Error = NumbersError;

    fn begin(&mut self, n_rows: usize) -> Result<(), NumbersError> {
        self.0.begin(n_rows)
    }

    fn add(&mut self, block: &Rows, part: BlockPart<'_>) -> Result<ThreadTime, NumbersError> {
        self.0.add(&block.rows, part)
    }

    fn finish(&mut self, place: BatchPlace) -> Result<Numbered, NumbersError> {
        self.0.finish(place)
    }
}

fn pipeline(source: Scripted, spec: PipelineSpec) -> Pipeline<Scripted> {
    Pipeline::new(Arc::new(source), spec, |batch| batch.rows.len()).unwrap()
}

/// The number of batches of an epoch.
fn n_batches(pipeline: &Pipeline<Scripted>, epoch: u64) -> Result<usize, NumbersError> {
    pipeline.epoch(epoch)?.collect::<Result<Vec<_>, _>>().map(|batches| batches.len())
}

#[test]
fn blocks_that_are_being_read_count() {
    for read_threads in [1, 4] {
        let twice_as_large = Scripted {
            expected: (10 * MIB, 10 * MIB),
            actual: |_| 20 * MIB,
            delay: |_, _| 10,
            ..scripted(96)
        };
        // Room for four blocks of the expected size, which is two of the actual size.
        let memory = Budget::new(FIXED + 490 * MIB);
        let spec =
            PipelineSpec { memory: memory.clone(), prefetch_blocks: 3, read_threads, ..spec() };
        let pipeline = pipeline(twice_as_large, spec);
        for epoch in 0..3 {
            assert_eq!(n_batches(&pipeline, epoch).unwrap(), 20, "{read_threads} threads");
            assert_eq!(memory.leased(), 0);
        }
    }
}

#[test]
fn another_loader_does_not_take_the_room_of_a_large_block() {
    let memory = Budget::new(2 * FIXED + (12 * 10 + 12 * 20 + 5) * MIB);
    let few_ahead = PipelineSpec { memory, prefetch_blocks: 0, prefetch_batches: 0, ..spec() };
    // Any block may be twice the typical size; the fourth is.
    let varied = Scripted {
        expected: (10 * MIB, 20 * MIB),
        actual: |block_idx| if block_idx == 3 { 20 * MIB } else { 10 * MIB },
        ..scripted(96)
    };
    let even = Scripted { expected: (18 * MIB, 18 * MIB), actual: |_| 16 * MIB, ..scripted(96) };
    let (first, second) = (pipeline(varied, few_ahead.clone()), pipeline(even, few_ahead));
    let mut running = first.epoch(0).unwrap();
    running.next().unwrap().unwrap();
    let refused = second.epoch(0).unwrap_err().to_string();
    assert!(refused.contains("other loaders have left"), "{refused}");
    assert_eq!(running.map(Result::unwrap).count(), 19);
    assert_eq!(n_batches(&second, 0).unwrap(), 20);
}

#[test]
fn errors_of_several_threads_come_in_the_plans_order() {
    let broken = Scripted {
        broken: vec![1, 2],
        delay: |block_idx, _| if block_idx == 1 { 30 } else { 0 },
        ..scripted(96)
    };
    let spec = PipelineSpec { read_threads: 3, prefetch_blocks: 5, ..spec() };
    let pipeline = pipeline(broken, spec);
    for epoch in 0..4 {
        let outcomes: Vec<_> = pipeline.epoch(epoch).unwrap().collect();
        // A block of 12 rows makes two whole batches of 5.
        assert_eq!(outcomes.iter().filter(|batch| batch.is_ok()).count(), 2);
        let error = outcomes.last().unwrap().as_ref().unwrap_err();
        assert!(matches!(error, NumbersError::Broken { block_idx: 1, .. }), "{error}");
    }
}

#[test]
fn pieces_of_the_first_block_are_one_block() {
    // The second block is ready before the last piece of the first.
    let delay = |_, row| match row {
        0 => 0,
        5 => 60,
        _ => 20,
    };
    let in_order = Scripted { delay, ..scripted(96) };
    let spec =
        PipelineSpec { order: Order::InOrder, read_threads: 3, prefetch_blocks: 3, ..spec() };
    let pipeline = pipeline(in_order, spec);
    let mut epoch = pipeline.epoch(0).unwrap();
    assert_eq!(epoch.by_ref().map(Result::unwrap).count(), 20);
    assert_eq!((epoch.stats().n_blocks, epoch.stats().max_block_rows), (8, 12));
}

#[test]
fn a_source_may_have_a_lease_of_the_same_budget() {
    let memory = Budget::new(1 << 30);
    let source = Scripted { _lease: memory.lease(1000), ..scripted(96) };
    drop(pipeline(source, PipelineSpec { memory: memory.clone(), ..spec() }));
    assert_eq!(memory.leased(), 0);
}
