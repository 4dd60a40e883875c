//! Pages of a read: looks for them, decodes those that are there, writes the others.

use rayon::prelude::*;
use storage::{BlockId, BlockStore, KeepOutcome, Lookup, WrittenBlock};
use worktime::{ReadStats, ThreadTime};

use super::{Columns, RowCache};
use crate::row_cache::output::{Output, Parts, PartsMut, split};
use crate::row_cache::page::{
    Column, Encoder, Head, Kind, MOST_HEAD_BYTES, PageRows, Value, bits, unpack,
};
use crate::row_cache::requests::PageRequest;

/// Pages that are written before they get their names under one lock.
const BATCH_PAGES: usize = 64;
/// Number of times that a page is written however few rows a read adds, for instance those at the
/// borders of chunks.
const FREE_WRITES: u32 = 12;
/// After that, a read must add at least one row for each `WORTH_ADDING` rows that the page has. So
/// the bytes written for a page stay within a few times its size even if each read adds one row.
const WORTH_ADDING: u32 = 8;

/// Memory of a thread, reused from page to page.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// A page's file.
    file: Vec<u8>,
    rows: PageRows,
    encoder: Encoder,
    /// Rows that a page has already.
    columns: Vec<u32>,
    values: Vec<f32>,
}

/// What the folder has of a page.
#[derive(Debug)]
pub(super) enum Found {
    /// All rows that are wanted.
    Hit(Head),
    /// Other rows, at least one of those that are wanted not among them.
    Part(Head),
    Absent,
    Damaged,
}

impl Found {
    pub(super) fn is_hit(&self) -> bool {
        matches!(self, Self::Hit(_))
    }

    /// Whether it is there and all its values are whole numbers below 65,536.
    pub(super) fn has_counts(&self) -> bool {
        matches!(self, Self::Hit(head) | Self::Part(head) if head.kind == Kind::Counts)
    }
}

impl RowCache {
    /// Looks for pages in the folder.
    pub(super) fn look(
        &self,
        columns: &Columns,
        requests: &[PageRequest],
    ) -> (Vec<Found>, ReadStats) {
        let looked: Vec<(Found, ReadStats)> = self.pool.install(|| {
            requests.par_iter().map(|request| self.look_for(columns, request)).collect()
        });
        let mut stats = ReadStats::nothing();
        let found = looked.into_iter().map(|(found, of_page)| {
            stats += of_page;
            found
        });
        (found.collect(), stats)
    }

    fn look_for(&self, columns: &Columns, request: &PageRequest) -> (Found, ReadStats) {
        let start = worktime::now();
        let mut n_bytes = 0;
        let found = self.with_scratch(|Scratch { file, .. }| {
            match self.store.read_start(&id(columns, request), MOST_HEAD_BYTES, file) {
                Lookup::Absent => return Found::Absent,
                Lookup::Damaged => return Found::Damaged,
                Lookup::Whole => n_bytes = file.len() as u64,
            }
            match Head::parse(BlockStore::payload(file)) {
                Some(head) if head.rows & request.rows == request.rows => Found::Hit(head),
                Some(head) => Found::Part(head),
                None => Found::Damaged,
            }
        });
        if matches!(found, Found::Damaged) {
            self.counters.damaged.add(1);
        }
        let mut stats = ReadStats::nothing();
        stats.add_fetched(n_bytes, worktime::now() - start);
        (found, stats)
    }

    /// Decodes the pages that are there into their rows. Returns the numbers of requests whose page
    /// turned out to be damaged, or was removed by another process just now.
    pub(super) fn decode(
        &self,
        columns: &Columns,
        requests: &[PageRequest],
        found: &[Found],
        out: &mut Output<'_>,
    ) -> (Vec<usize>, ReadStats) {
        let hits: Vec<Hit<'_>> = requests
            .iter()
            .zip(found)
            .enumerate()
            .filter_map(|(idx, (request, found))| match found {
                Found::Hit(head) => Some(Hit { idx, request, head }),
                _ => None,
            })
            .collect();
        let decoded = out.with_parts_mut(Decode { cache: self, columns, hits });
        let (mut lost, mut stats) = (Vec::new(), ReadStats::nothing());
        for (idx, of_page) in decoded {
            match of_page {
                Ok(of_page) => stats += of_page,
                Err(lookup) => {
                    self.counters.damaged.add(u64::from(lookup == Lookup::Damaged));
                    lost.push(idx);
                }
            }
        }
        (lost, stats)
    }

    /// Decodes one page. `Err` if it is not there any more, or not what its head said.
    fn decode_page<C: Column, V: Value>(
        &self,
        columns: &Columns,
        Hit { request, head, .. }: &Hit<'_>,
        to_columns: &mut [C],
        to_values: &mut [V],
    ) -> Result<ReadStats, Lookup> {
        self.with_scratch(|Scratch { file, .. }| {
            let start = worktime::now();
            let found = self.store.read(&id(columns, request), file);
            let fetched = worktime::now();
            if found != Lookup::Whole {
                return Err(found);
            }
            let page = BlockStore::payload(file);
            let now = Head::parse(page).ok_or(Lookup::Damaged)?;
            // Another thread may have written it again with more rows, or with others.
            if now.rows & request.rows != request.rows {
                return Err(Lookup::Absent);
            }
            if !now.has_same_rows(head, request.rows) {
                return Err(Lookup::Damaged);
            }
            let values = to_values.len() as u64;
            unpack(&now, page, columns.n_columns, request.rows, to_columns, to_values)
                .ok_or(Lookup::Damaged)?;
            let mut stats = ReadStats { values, ..ReadStats::nothing() };
            stats.add_fetched(file.len() as u64, fetched - start);
            stats.add_decoded(values, 0, worktime::now() - fetched);
            Ok(stats)
        })
    }

    /// Writes the pages that were not there, or lacked rows. Returns the time of all threads.
    pub(super) fn keep(
        &self,
        columns: &Columns,
        requests: &[PageRequest],
        found: &[Found],
        out: &Output<'_>,
    ) -> ThreadTime {
        let misses: Vec<(&PageRequest, &Found)> =
            requests.iter().zip(found).filter(|(_, found)| !found.is_hit()).collect();
        let mut spent = ThreadTime::default();
        for batch in misses.chunks(BATCH_PAGES) {
            if self.store.is_paused() {
                self.store.leave_out(batch.len() as u64);
                self.counters.not_written.add(batch.len() as u64);
                continue;
            }
            let pages = out.with_parts(Encode { cache: self, columns, batch });
            let mut written = Vec::with_capacity(pages.len());
            for (page, time) in pages {
                spent += time;
                written.extend(page);
            }
            self.counters.not_written.add((batch.len() - written.len()) as u64);
            if written.is_empty() {
                continue;
            }
            let n_written = written.len() as u64;
            match self.store.keep_written(written) {
                KeepOutcome::Yes { n_removed, n_left_out } => {
                    self.counters.evictions.add(n_removed);
                    self.counters.written.add(n_written - n_left_out);
                    self.counters.not_written.add(n_left_out);
                }
                KeepOutcome::Busy => self.counters.not_written.add(n_written),
                KeepOutcome::Failed(error) => {
                    self.counters.not_written.add(n_written);
                    self.note_problem(&error);
                }
            }
        }
        spent
    }

    /// Encodes and writes a page of rows that were read, with those that it has already. `None` if
    /// it is not worth it, or could not be written.
    fn write_page<C: Column, V: Value>(
        &self,
        columns: &Columns,
        (request, found): &(&PageRequest, &Found),
        row_offsets: &[usize],
        (from_columns, from_values): (&[C], &[V]),
    ) -> Option<WrittenBlock> {
        if self.store.is_paused() {
            self.store.leave_out(1);
            return None;
        }
        self.with_scratch(|scratch| {
            let id = id(columns, request);
            let mut had = match found {
                Found::Part(head) => Some(head),
                Found::Hit(_) | Found::Absent | Found::Damaged => None,
            };
            if let Some(head) = had {
                let n_new = (request.rows & !head.rows).count_ones();
                let is_worth_it = n_new * WORTH_ADDING >= head.rows.count_ones();
                if head.n_writes >= FREE_WRITES && !is_worth_it {
                    return None;
                }
                // If it was removed, replaced or damaged just now, it is written anew.
                had = had.filter(|head| self.unpack_all(columns, &id, head, scratch).is_some());
            }
            let Scratch { rows, encoder, columns: had_columns, values: had_values, .. } = scratch;
            rows.begin(had.map_or(0, |head| head.n_writes));
            let mut positions = request.positions();
            let mut had_places = had.into_iter().flat_map(|head| head.places(head.rows)).peekable();
            for row in bits(request.rows | had.map_or(0, |head| head.rows)) {
                let had_place = had_places.next_if(|(had_row, _)| *had_row == row);
                if request.rows >> row & 1 == 1 {
                    let position = positions.next()?;
                    let place = row_offsets[position]..row_offsets[position + 1];
                    let (of_row, values) = (&from_columns[place.clone()], &from_values[place]);
                    rows.add(row, columns.n_columns, of_row, values);
                } else if let Some((_, place)) = had_place {
                    let (of_row, values) = (&had_columns[place.clone()], &had_values[place]);
                    rows.add(row, columns.n_columns, of_row, values);
                }
            }
            let page = encoder.encode(rows);
            match self.store.write(&id, &page) {
                Ok(written) => Some(written),
                Err(error) => {
                    self.note_problem(&error);
                    self.store.failed(error);
                    None
                }
            }
        })
    }

    /// Decodes all rows that a page has into `scratch`; `None` if it is not what its head said.
    fn unpack_all(
        &self,
        columns: &Columns,
        id: &BlockId,
        head: &Head,
        Scratch { file, columns: to_columns, values, .. }: &mut Scratch,
    ) -> Option<()> {
        if self.store.read(id, file) != Lookup::Whole {
            return None;
        }
        let page = BlockStore::payload(file);
        if Head::parse(page).as_ref() != Some(head) {
            return None;
        }
        to_columns.resize(head.nnz(), 0);
        values.resize(head.nnz(), 0.0);
        unpack(head, page, columns.n_columns, head.rows, to_columns, values)
    }
}

fn id(columns: &Columns, request: &PageRequest) -> BlockId {
    BlockId { object: columns.object, idx: request.page }
}

/// A page that is there.
struct Hit<'a> {
    /// The number of its request.
    idx: usize,
    request: &'a PageRequest,
    head: &'a Head,
}

/// Decodes pages into the rows of a read, in parallel.
struct Decode<'a> {
    cache: &'a RowCache,
    columns: &'a Columns,
    hits: Vec<Hit<'a>>,
}

impl PartsMut for Decode<'_> {
    type Answer = Vec<(usize, Result<ReadStats, Lookup>)>;

    fn work<C: Column, V: Value>(
        self,
        row_offsets: &[usize],
        columns: &mut [C],
        values: &mut [V],
    ) -> Self::Answer {
        let positions = || self.hits.iter().map(|hit| hit.request.positions());
        let columns = split(row_offsets, columns, positions());
        let values = split(row_offsets, values, positions());
        self.cache.pool.install(|| {
            let places = columns.into_par_iter().zip(values);
            let decoded = self.hits.par_iter().zip(places).map(|(hit, (columns, values))| {
                (hit.idx, self.cache.decode_page(self.columns, hit, columns, values))
            });
            decoded.collect()
        })
    }
}

/// Encodes and writes pages of the rows of a read, in parallel.
struct Encode<'a> {
    cache: &'a RowCache,
    columns: &'a Columns,
    batch: &'a [(&'a PageRequest, &'a Found)],
}

impl Parts for Encode<'_> {
    type Answer = Vec<(Option<WrittenBlock>, ThreadTime)>;

    fn work<C: Column, V: Value>(
        self,
        row_offsets: &[usize],
        columns: &[C],
        values: &[V],
    ) -> Self::Answer {
        self.cache.pool.install(|| {
            let pages = self.batch.par_iter().map(|page| {
                let start = worktime::now();
                let from = (columns, values);
                let written = self.cache.write_page(self.columns, page, row_offsets, from);
                (written, worktime::now() - start)
            });
            pages.collect()
        })
    }
}
