//! Rows that cannot be read: an error, or left out of batches that are otherwise the same.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pipeline::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockRows, Error, LoaderState, Need, Pipeline,
    PipelineSpec, ReadStats, Selected, Skipped, Source, Stop, WhenDamaged, World,
};
use proptest::prelude::*;
use shuffle::sample::Sampling;
use shuffle::{Order, Remainder, RowSet};
use worktime::ThreadTime;

use crate::numbers::spec;

/// Numbers, of which some cannot be read. Blocks have them in the order of delivery, or by row.
#[derive(Debug, Default)]
struct Store {
    n_rows: u64,
    damaged: BTreeSet<u64>,
    /// Rows that are stored together.
    unit: u64,
    is_in_order: bool,
    /// Reads after which a connection is refused.
    most_reads: Option<usize>,
    n_reads: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
enum DamagedError {
    #[error(transparent)]
    Engine(#[from] Error),
    #[error("row {0} is damaged")]
    Row(u64),
    #[error("the store is gone")]
    Gone(#[source] io::Error),
}

impl Source for Store {
    type Block = Vec<u64>;
    type Batch = Lacking;
    type Error = DamagedError;
    type Scratch = ();
    type Assembler = Collecting;

    fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn fingerprint(&self) -> String {
        format!("numbers below {}", self.n_rows)
    }

    fn need(&self, _block_rows: u64, _batch_rows: u64) -> Result<Need, DamagedError> {
        Ok(Need::default())
    }

    fn block_bytes(&self, _block: &Vec<u64>) -> BlockBytes {
        BlockBytes::default()
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Vec<u64>,
        (): &mut (),
        _stop: &Stop,
    ) -> Result<ReadStats, DamagedError> {
        let n_before = self.n_reads.fetch_add(1, Ordering::SeqCst);
        if self.most_reads.is_some_and(|most| most <= n_before) {
            return Err(DamagedError::Gone(io::ErrorKind::ConnectionRefused.into()));
        }
        *into = if self.is_in_order {
            rows.delivered()
        } else {
            rows.ranges.iter().cloned().flatten().collect()
        };
        let all = rows.ranges.iter().cloned().flatten();
        let mut damaged = all.filter(|row| self.damaged.contains(row));
        match damaged.next() {
            Some(row) => Err(DamagedError::Row(row)),
            None => Ok(ReadStats { values: into.len() as u64, ..ReadStats::default() }),
        }
    }

    fn unit_end(&self, row: u64) -> u64 {
        (row / self.unit.max(1) + 1) * self.unit.max(1)
    }

    fn row_name(&self, row: u64) -> String {
        format!("number {row}")
    }

    fn assembler(&self, _batch_rows: u64) -> Result<Collecting, DamagedError> {
        Ok(Collecting { is_in_order: self.is_in_order, ..Collecting::default() })
    }
}

/// A batch, and the rows that it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lacking {
    rows: Vec<u64>,
    skipped: Vec<String>,
    place: BatchPlace,
}

#[derive(Debug, Default)]
struct Collecting {
    is_in_order: bool,
    most: usize,
    rows: Vec<u64>,
    skipped: Vec<String>,
}

impl Assemble for Collecting {
    type Block = Vec<u64>;
    type Batch = Lacking;
    type Error = DamagedError;

    fn begin(&mut self, n_rows: usize) -> Result<(), DamagedError> {
        self.most = n_rows;
        Ok(())
    }

    fn add(&mut self, block: &Vec<u64>, part: BlockPart<'_>) -> Result<ThreadTime, DamagedError> {
        if self.is_in_order {
            self.rows.extend(&block[part.start..part.start + part.order.len()]);
        } else {
            self.rows.extend(part.order.iter().map(|at| block[*at as usize]));
        }
        Ok(ThreadTime::default())
    }

    fn leave_out(&mut self, rows: &[Arc<Skipped>]) {
        self.skipped.extend(rows.iter().map(|row| row.name.clone()));
    }

    fn finish(&mut self, place: BatchPlace) -> Result<Lacking, DamagedError> {
        assert!(self.rows.len() <= self.most);
        let (rows, skipped) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.skipped));
        Ok(Lacking { rows, skipped, place })
    }
}

fn skipping(spec: PipelineSpec) -> PipelineSpec {
    PipelineSpec { when_damaged: WhenDamaged::Skip, ..spec }
}

fn pipeline<S: Source<Batch = Lacking>>(source: S, spec: PipelineSpec) -> Pipeline<S> {
    let made = Pipeline::new(Arc::new(source), spec, |batch| batch.rows.len());
    made.unwrap_or_else(|error| panic!("{error}"))
}

fn batches<S: Source<Batch = Lacking>>(
    pipeline: &Pipeline<S>,
    from: Option<&LoaderState>,
) -> Result<Vec<Lacking>, S::Error> {
    let epoch = match from {
        Some(state) => pipeline.resume(state)?,
        None => pipeline.epoch(2)?,
    };
    epoch.collect()
}

/// The batches of a source without damage, less the damaged rows.
fn expected(whole: Vec<Lacking>, damaged: &BTreeSet<u64>) -> Vec<Lacking> {
    let without = |batch: Lacking| {
        let n_padding = batch.place.n_padding;
        let padding = &batch.rows[batch.rows.len() - n_padding..];
        let n_padding = padding.iter().filter(|row| !damaged.contains(row)).count();
        let (skipped, rows): (Vec<u64>, Vec<u64>) =
            batch.rows.iter().partition(|row| damaged.contains(row));
        let skipped = skipped.into_iter().map(|row| format!("number {row}")).collect();
        Lacking { rows, skipped, place: BatchPlace { n_padding, ..batch.place } }
    };
    whole.into_iter().map(without).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// For any rows that cannot be read: the batches of a source that can read all, less these
    /// rows, whatever threads there are, for each rank, and from any state.
    #[test]
    fn batches_are_those_without_damage_less_the_damaged_rows(
        is_damaged in prop::collection::vec(prop::bool::weighted(0.2), 1..160),
        (chunk_rows, chunks_per_block, batch_rows) in (1_u64..6, 1_u64..8, 1_u64..9),
        (prefetch_blocks, prefetch_batches, read_threads) in (0_usize..4, 0_usize..3, 0_usize..4),
        (is_shuffled, is_in_order, is_padded) in any::<(bool, bool, bool)>(),
        (rank, size) in prop::sample::select(vec![(0_u64, 1_u64), (0, 2), (1, 2), (2, 3)]),
        (unit, n_taken, draws) in (1_u64..5, 0_usize..12, any::<bool>()),
    ) {
        let n_rows = is_damaged.len() as u64;
        // All rows of a unit are damaged, or none.
        let damaged: BTreeSet<u64> =
            (0..n_rows).filter(|row| is_damaged[(row / unit * unit) as usize]).collect();
        // Otherwise the epoch is an error.
        prop_assume!((damaged.len() as u64) < n_rows);
        let sampling = draws.then(|| Sampling::with_replacement(n_rows, n_rows).unwrap());
        let remainder = match size {
            1 if !is_padded => Remainder::Short,
            _ if is_padded => Remainder::Pad,
            _ => Remainder::Drop,
        };
        let spec = PipelineSpec {
            chunk_rows,
            chunks_per_block,
            batch_rows,
            prefetch_blocks,
            prefetch_batches,
            read_threads,
            remainder,
            sampling,
            order: if is_shuffled { Order::Shuffled } else { Order::InOrder },
            world: World { rank, size },
            ..spec()
        };
        let whole = Store { n_rows, is_in_order, ..Store::default() };
        let whole = batches(&pipeline(whole, spec.clone()), None).unwrap();
        let expected = expected(whole, &damaged);
        // A rank may have no row that can be read.
        prop_assume!(expected.is_empty() || expected.iter().any(|batch| !batch.rows.is_empty()));
        let damaged = Store { n_rows, damaged, unit, is_in_order, ..Store::default() };
        let pipeline = pipeline(damaged, skipping(spec));
        prop_assert_eq!(&batches(&pipeline, None).unwrap(), &expected);

        let mut epoch = pipeline.epoch(2).unwrap();
        let taken = epoch.by_ref().take(n_taken).map(Result::unwrap).collect::<Vec<_>>();
        let state = LoaderState::from_json(&epoch.state().to_json().unwrap()).unwrap();
        let skipped: Vec<&String> = taken.iter().flat_map(|batch| &batch.skipped).collect();
        let stats = epoch.stats();
        prop_assert_eq!(epoch.n_skipped(), skipped.len() as u64);
        prop_assert_eq!(stats.n_rows, taken.iter().map(|batch| batch.rows.len() as u64).sum::<u64>());
        let listed: Vec<&String> = stats.skipped.iter().map(|row| &row.name).collect();
        prop_assert_eq!(&listed[..], &skipped[..skipped.len().min(100)]);
        drop(epoch);
        let rest = batches(&pipeline, Some(&state)).unwrap();
        prop_assert_eq!([taken, rest].concat(), expected);
    }
}

#[test]
fn without_the_setting_the_first_error_ends_the_epoch() {
    for read_threads in [0, 1, 3] {
        let source = Store { n_rows: 96, damaged: [40].into(), ..Store::default() };
        let spec = PipelineSpec { order: Order::InOrder, read_threads, ..spec() };
        let pipeline = pipeline(source, spec);
        let outcomes: Vec<_> = pipeline.epoch(0).unwrap().collect();
        let error = outcomes.last().unwrap().as_ref().unwrap_err();
        assert!(matches!(error, DamagedError::Row(40)), "{error}");
        assert!(outcomes.len() <= 8, "{}", outcomes.len());
    }
}

#[test]
fn parts_name_and_number_the_rows_of_the_whole() {
    let source = Store { n_rows: 30, damaged: [4, 5, 17].into(), unit: 2, ..Store::default() };
    let part = RowSet::from_ascending([1, 4, 9, 17, 18, 20, 25]).unwrap();
    let part = Selected::all(Arc::new(source)).at(&part).unwrap();
    let pipeline = pipeline(part, skipping(PipelineSpec { order: Order::InOrder, ..spec() }));
    let mut epoch = pipeline.epoch(0).unwrap();
    let rows: Vec<u64> = epoch.by_ref().flat_map(|batch| batch.unwrap().rows).collect();
    assert_eq!(rows, [1, 9, 18, 20, 25]);
    let stats = epoch.stats();
    let skipped = stats.skipped.iter().map(|of| (of.row, &*of.name, &*of.error));
    let expected = [(1, "number 4", "row 4 is damaged"), (3, "number 17", "row 17 is damaged")];
    assert!(skipped.eq(expected), "{:?}", stats.skipped);
    assert_eq!((stats.n_skipped, stats.n_rows), (2, 5));
}

#[test]
fn rows_of_a_part_are_stored_together_as_in_the_whole() {
    let whole = Arc::new(Store { n_rows: 30, unit: 10, ..Store::default() });
    let rows = RowSet::from_ascending([1, 4, 9, 17, 18, 20, 25]).unwrap();
    let part = Selected::all(whole).at(&rows).unwrap();
    let ends: Vec<u64> = (0..7).map(|place| part.unit_end(place)).collect();
    assert_eq!(ends, [3, 3, 3, 5, 5, 7, 7]);
}

#[test]
fn an_epoch_of_which_nothing_can_be_read_is_an_error() {
    for n_rows in [1, 3, 12, 40, 90] {
        let source = Store { n_rows, damaged: (0..n_rows).collect(), ..Store::default() };
        let pipeline = pipeline(source, skipping(spec()));
        let mut epoch = pipeline.epoch(0).unwrap();
        let error = epoch.by_ref().find_map(Result::err).unwrap();
        let DamagedError::Engine(Error::Unreadable { n_rows: n_found, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(*n_found, n_rows);
        assert!(error.to_string().contains("is damaged"), "{error}");
        assert!(epoch.next().is_none());
    }
}

#[test]
fn too_many_rows_one_after_another_are_an_error() {
    let in_order = |damaged| {
        let source = Store { n_rows: 2000, damaged, ..Store::default() };
        let spec = PipelineSpec { order: Order::InOrder, ..spec() };
        let pipeline = pipeline(source, skipping(spec));
        batches(&pipeline, None).map(|all| all.iter().map(|batch| batch.rows.len()).sum())
    };
    // A tenth of the epoch.
    assert_eq!(in_order((800..1000).collect()).unwrap(), 1800);
    assert_eq!(in_order((0..2000).filter(|row| row % 3 > 0).collect()).unwrap(), 667);
    let found: Result<usize, _> = in_order((700..1000).collect());
    let error = found.unwrap_err();
    assert!(matches!(error, DamagedError::Engine(Error::Unreadable { .. })), "{error}");
}

#[test]
fn a_store_that_cannot_be_reached_is_never_skipped() {
    for most_reads in [0, 1, 2, 5, 9, 17] {
        let most_reads = Some(most_reads);
        let damaged = [40, 41, 62].into();
        let source = Store { n_rows: 96, damaged, most_reads, ..Store::default() };
        let pipeline = pipeline(source, skipping(spec()));
        let error = batches(&pipeline, None).unwrap_err();
        assert!(matches!(error, DamagedError::Gone(_)), "{error}");
    }
}

#[test]
fn a_large_damaged_part_takes_few_reads() {
    let unit = 1000;
    let damaged = (3000..4000).collect();
    let source = Store { n_rows: 10_000, damaged, unit, ..Store::default() };
    let spec = PipelineSpec {
        order: Order::InOrder,
        chunk_rows: 10_000,
        chunks_per_block: 1,
        batch_rows: 10_000,
        ..spec()
    };
    let pipeline_of = pipeline(source, skipping(spec.clone()));
    assert_eq!(batches(&pipeline_of, None).unwrap()[0].rows.len(), 9000);
    let n_reads = pipeline_of.source().n_reads.load(Ordering::SeqCst);
    assert!(n_reads < 20, "{n_reads}");

    // If nothing of a block can be read, only some rows are tried.
    let damaged = (0..10_000).collect();
    let source = Store { n_rows: 10_000, damaged, ..Store::default() };
    let pipeline_of = pipeline(source, skipping(spec));
    assert!(batches(&pipeline_of, None).is_err());
    let n_reads = pipeline_of.source().n_reads.load(Ordering::SeqCst);
    assert!(n_reads < 20, "{n_reads}");
}

#[test]
fn damage_at_regular_distances_costs_no_other_rows() {
    for distance in [2, 5, 16, 125] {
        let n_rows = 2000;
        let damaged: BTreeSet<u64> = (0..n_rows).step_by(distance).collect();
        let n_readable = n_rows as usize - damaged.len();
        let source = Store { n_rows, damaged, ..Store::default() };
        let spec = PipelineSpec { order: Order::InOrder, chunk_rows: n_rows, ..spec() };
        let pipeline = pipeline(source, skipping(PipelineSpec { batch_rows: n_rows, ..spec }));
        assert_eq!(batches(&pipeline, None).unwrap()[0].rows.len(), n_readable);
    }
}
