//! Batches of one group each, with controls.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::{Draw, Error, Sampling, check_size, reserved};
use crate::random::{SampleDecision, SampleSeed, below, permute};
use crate::stop::{Stopped, begin_rows, pieces, ranges, sort};

/// Composes batches whose rows are all of one group, for instance of a perturbation, a donor or a
/// slide, with control rows of the same context beside them.
///
/// Each row that is not a control comes in one batch of its group. Rows are dealt out while all
/// rows pass by in a random order of chunks, shuffled in windows: with a window of all rows, all
/// ways to divide a group into batches, and all orders of the batches, are equally likely; with a
/// smaller one, the rows of a batch lie in few chunks, which are read faster. The rows of a batch
/// are in random order.
#[derive(Debug, Clone, Copy)]
pub struct GroupBatches<'a> {
    /// Group of each row; any codes will do.
    pub groups: &'a [u32],
    /// Control rows and how many a batch has; `None` if there are none.
    pub controls: Option<Controls<'a>>,
    /// Rows of a batch, controls included: the batch size of each rank.
    pub batch_rows: u64,
    /// The rows of a group that do not fill a batch.
    pub rest: Rest,
    /// Consecutive rows that pass by together.
    pub chunk_rows: u64,
    /// Rows that are shuffled together.
    pub window_rows: u64,
}

/// The control rows of [`GroupBatches`].
///
/// A batch has controls from the context of its rows, and its rows are then of one context as well
/// as of one group. Controls are drawn anew for each batch, each with equal probability, and differ
/// within a batch if the context has enough of them.
#[derive(Debug, Clone, Copy)]
pub struct Controls<'a> {
    /// Whether each row is a control.
    pub is_control: &'a [bool],
    /// Context of each row, for instance its donor; any codes will do. Equal codes for all rows
    /// match every row with every control.
    pub contexts: &'a [u32],
    /// Controls of a batch, fewer than its rows.
    pub n_rows: u64,
}

/// What becomes of the rows of a group that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rest {
    /// They are left out of this epoch; others in the next.
    Drop,
    /// Further rows of the group fill a last batch: each row then comes at least once. They differ
    /// from those of this batch if the group has enough rows.
    Fill,
}

/// The tables of [`GroupBatches`]: 8 bytes per row.
#[derive(Debug, PartialEq)]
pub(super) struct Batches {
    batch_rows: u64,
    n_controls: u64,
    rest: Rest,
    chunk_rows: u64,
    window_rows: u64,
    /// The number of each row's group; [`CONTROL`] for controls.
    group_of: Vec<u32>,
    /// The rows of each group, by group.
    rows: Table,
    /// The controls of each context, by context.
    controls: Table,
    /// The context of each group.
    contexts: Vec<u32>,
}

/// Lists of rows.
#[derive(Debug, PartialEq)]
struct Table {
    rows: Vec<u32>,
    /// Where each list begins; and the end.
    starts: Vec<u32>,
}

/// In place of a group's number.
const CONTROL: u32 = u32::MAX;

impl Sampling {
    /// Composes batches of one group each, in the order of [`Order::Listed`](crate::Order::Listed).
    ///
    /// ```
    /// use shuffle::sample::{GroupBatches, Rest, Sampling};
    ///
    /// let groups = &[7, 7, 7, 8, 8, 8, 8];
    /// let sampling = Sampling::group_batches(&GroupBatches {
    ///     groups, controls: None, batch_rows: 2, rest: Rest::Drop, chunk_rows: 1, window_rows: 7,
    /// })?;
    /// let rows = sampling.rows(42, 0)?;
    /// assert_eq!(rows.len(), 6);
    /// assert!(rows.chunks(2).all(|of| groups[of[0] as usize] == groups[of[1] as usize]));
    /// # Ok::<(), shuffle::sample::Error>(())
    /// ```
    ///
    /// # Errors
    /// Lists differ in length; a size is 0; controls leave no room for other rows; a context has
    /// rows but no control; there are 2^32 rows or more.
    pub fn group_batches(spec: &GroupBatches<'_>) -> Result<Self, Error> {
        let n_rows = spec.groups.len();
        check_size(n_rows, 0)?;
        let batches = Batches::new(spec)?;
        let n_samples = batches.n_batches().saturating_mul(spec.batch_rows);
        check_size(n_rows, n_samples)?;
        Ok(Self { n_rows: n_rows as u64, n_samples, draw: Draw::Groups(Arc::new(batches)) })
    }
}

impl Batches {
    fn new(spec: &GroupBatches<'_>) -> Result<Self, Error> {
        let GroupBatches { groups, controls, batch_rows, rest, chunk_rows, window_rows } = *spec;
        let sizes = [
            ("the batch size", batch_rows),
            ("the chunk size", chunk_rows),
            ("the window size", window_rows),
        ];
        if let Some((size, _)) = sizes.into_iter().find(|(_, n)| *n == 0) {
            return Err(Error::Zero { size });
        }
        let n_rows = groups.len();
        let n_controls = controls.map_or(0, |controls| controls.n_rows);
        if batch_rows <= n_controls {
            return Err(Error::OnlyControls { batch_rows, n_controls });
        }
        let found = controls.map(|of| [of.is_control.len(), of.contexts.len()]);
        for (what, n_found) in
            ["a mark of controls", "a context"].into_iter().zip(found.into_iter().flatten())
        {
            if n_found != n_rows {
                return Err(Error::UnequalLists { first: "a group", n_rows, what, n_found });
            }
        }
        let is_control = |row: usize| controls.is_some_and(|controls| controls.is_control[row]);
        let context = |row: usize| controls.map_or(0, |controls| controls.contexts[row]);
        let (mut of_context, mut of_group) = (Vec::new(), Vec::with_capacity(n_rows));
        for rows in ranges(n_rows as u64) {
            for row in rows?.map(|row| row as usize) {
                if is_control(row) {
                    of_context.push((context(row), row as u32));
                } else {
                    of_group.push((groups[row], context(row), row as u32));
                }
            }
        }
        sort(&mut of_context)?;
        let codes: Vec<u32> = of_context.chunk_by(|a, b| a.0 == b.0).map(|of| of[0].0).collect();
        sort(&mut of_group)?;
        let (mut group_of, mut contexts) = (vec![CONTROL; n_rows], Vec::new());
        for of in of_group.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (group, code, _) = of[0];
            let place = match codes.binary_search(&code) {
                Ok(place) => place,
                Err(_) if n_controls == 0 => 0,
                Err(_) => return Err(Error::NoControls { group, context: code }),
            };
            for piece in pieces(of) {
                piece?.iter().for_each(|of| group_of[of.2 as usize] = contexts.len() as u32);
            }
            contexts.push(place as u32);
        }
        let rows = Table::from_items(&of_group, |(_, _, row)| (group_of[*row as usize], *row))?;
        let controls = Table::from_items(&of_context, |of| *of)?;
        Ok(Self {
            batch_rows,
            n_controls,
            rest,
            chunk_rows,
            window_rows,
            group_of,
            rows,
            controls,
            contexts,
        })
    }

    pub(super) fn batch_rows(&self) -> u64 {
        self.batch_rows
    }

    /// Rows of a batch that are no controls.
    fn n_own(&self) -> usize {
        (self.batch_rows - self.n_controls) as usize
    }

    fn n_batches(&self) -> u64 {
        let n_own = self.n_own();
        let sizes = (0..self.contexts.len()).map(|group| self.rows.of_key(group).len());
        sizes
            .map(|n| if self.rest == Rest::Drop { n / n_own } else { n.div_ceil(n_own) } as u64)
            .sum()
    }

    /// The rows of all batches of an epoch.
    pub(super) fn draw(&self, seed: SampleSeed) -> Result<Vec<u32>, Error> {
        let mut generator = seed.generator(SampleDecision::GroupBatches);
        let (dealt, rest) = self.deal(&mut generator)?;
        let n_own = self.n_own();
        let rest = match self.rest {
            Rest::Drop => Vec::new(),
            Rest::Fill => self.filled(&mut generator, rest),
        };
        // The last batches of groups come anywhere among the others.
        let n_dealt = dealt.len() / n_own;
        let mut is_rest: Vec<u32> = vec![0; n_dealt];
        is_rest.resize(n_dealt + rest.len() / n_own, 1);
        if !rest.is_empty() {
            permute(&mut generator, &mut is_rest);
        }
        let mut all: Vec<u32> = reserved(is_rest.len() * self.batch_rows as usize)?;
        let (mut dealt, mut rest) = (dealt.chunks(n_own), rest.chunks(n_own));
        for is_rest in is_rest {
            let Some(own) = (if is_rest == 1 { rest.next() } else { dealt.next() }) else { break };
            begin_rows(self.batch_rows as usize)?;
            let start = all.len();
            all.extend(own);
            self.add_controls(&mut generator, own[0], &mut all);
            permute(&mut generator, &mut all[start..]);
        }
        Ok(all)
    }

    /// Deals the rows of groups into full batches. Also returns the rows that are left of each
    /// group.
    fn deal(&self, generator: &mut ChaCha8Rng) -> Result<(Vec<u32>, Vec<Vec<u32>>), Error> {
        let n_rows = self.group_of.len() as u64;
        let mut chunks: Vec<u32> = (0..n_rows.div_ceil(self.chunk_rows) as u32).collect();
        permute(generator, &mut chunks);
        let n_own = self.n_own();
        let mut pending: Vec<Vec<u32>> = vec![Vec::new(); self.contexts.len()];
        let mut dealt: Vec<u32> = reserved(self.rows.rows.len())?;
        let mut window: Vec<u32> = Vec::new();
        let mut chunks = chunks.into_iter().peekable();
        while chunks.peek().is_some() {
            window.clear();
            while let Some(chunk) = chunks.next_if(|_| (window.len() as u64) < self.window_rows) {
                let start = u64::from(chunk) * self.chunk_rows;
                let end = (start + self.chunk_rows).min(n_rows);
                window.extend(start as u32..end as u32);
            }
            permute(generator, &mut window);
            let first = dealt.len() / n_own;
            for piece in pieces(&window) {
                let rows = piece?.iter().map(|row| (*row, self.group_of[*row as usize]));
                for (row, group) in rows.filter(|(_, group)| *group != CONTROL) {
                    let of_group = &mut pending[group as usize];
                    of_group.push(row);
                    if of_group.len() == n_own {
                        dealt.append(of_group);
                    }
                }
            }
            permute_batches(generator, &mut dealt[first * n_own..], n_own);
        }
        Ok((dealt, pending))
    }

    /// Fills the last batch of each group with random rows of it. In random order.
    fn filled(&self, generator: &mut ChaCha8Rng, rest: Vec<Vec<u32>>) -> Vec<u32> {
        let n_own = self.n_own();
        let mut filled = Vec::new();
        for (group, mut batch) in rest.into_iter().enumerate().filter(|(_, of)| !of.is_empty()) {
            draw_into(generator, self.rows.of_key(group), n_own, &mut batch);
            filled.append(&mut batch);
        }
        permute_batches(generator, &mut filled, n_own);
        filled
    }

    /// Appends the controls of a batch that has this row.
    fn add_controls(&self, generator: &mut ChaCha8Rng, row: u32, all: &mut Vec<u32>) {
        if self.n_controls > 0 {
            let group = self.group_of[row as usize] as usize;
            let pool = self.controls.of_key(self.contexts[group] as usize);
            let mut drawn = Vec::new();
            draw_into(generator, pool, self.n_controls as usize, &mut drawn);
            all.append(&mut drawn);
        }
    }

    pub(super) fn write_to(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(match self.rest {
            Rest::Drop => b"drop",
            Rest::Fill => b"fill",
        });
        for size in [self.batch_rows, self.n_controls, self.chunk_rows, self.window_rows] {
            sink(&size.to_le_bytes());
        }
        for table in [&self.group_of, &self.contexts, &self.controls.starts, &self.controls.rows] {
            sink(&(table.len() as u64).to_le_bytes());
            for entry in table {
                sink(&entry.to_le_bytes());
            }
        }
    }
}

impl Table {
    /// Lists of rows by key. Keys count from 0 if they are numbers of groups; otherwise a key's
    /// number is its place among the sorted ones.
    fn from_items<Item>(
        items: &[Item],
        keyed: impl Fn(&Item) -> (u32, u32),
    ) -> Result<Self, Stopped> {
        let (mut rows, mut starts, mut latest) = (Vec::new(), Vec::new(), None);
        for piece in pieces(items) {
            for (key, row) in piece?.iter().map(&keyed) {
                if latest != Some(key) {
                    starts.push(rows.len() as u32);
                    latest = Some(key);
                }
                rows.push(row);
            }
        }
        starts.push(rows.len() as u32);
        Ok(Self { rows, starts })
    }

    fn of_key(&self, key: usize) -> &[u32] {
        &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize]
    }
}

/// Appends random rows of `from` until there are `n`: rows that are not there yet, as long as there
/// are any, then all again.
fn draw_into(generator: &mut ChaCha8Rng, from: &[u32], n: usize, rows: &mut Vec<u32>) {
    // Among many rows, most draws find one that is not there yet.
    while rows.len() < n && n <= from.len() / 4 {
        let row = from[below(generator, from.len() as u64) as usize];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    while rows.len() < n {
        let mut others: Vec<u32> = from.iter().copied().filter(|row| !rows.contains(row)).collect();
        if others.is_empty() {
            others.extend(from);
        }
        permute(generator, &mut others);
        others.truncate(n - rows.len());
        rows.append(&mut others);
    }
}

/// Permutes batches of `n_rows` rows each.
fn permute_batches(generator: &mut ChaCha8Rng, rows: &mut [u32], n_rows: usize) {
    let n_batches = rows.len() / n_rows;
    for last in (1..n_batches).rev() {
        let other = below(generator, last as u64 + 1) as usize;
        if other != last {
            let (before, from_last) = rows.split_at_mut(last * n_rows);
            before[other * n_rows..][..n_rows].swap_with_slice(&mut from_last[..n_rows]);
        }
    }
}
