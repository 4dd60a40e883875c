//! Ranges that are fetched before they are read: which of them wait, are under way or have arrived,
//! and which make room for others.
//!
//! Reads need not match announcements: a range announced at once may be read in parts, by several
//! threads. So announced ranges are joined and split into *parts* that do not overlap, and a read
//! takes from all parts that it meets. It requests the rest itself. A part is removed when all
//! announced bytes of it were taken; bytes between them are not waited for.
//!
//! Parts are requested in the order announced while they fit into the memory allowed. A read that
//! needs a part which waits for room has it requested at once. Parts that were not read a few
//! announcements later are removed, the oldest first, when their room is needed.
//!
//! If reads find nearly all bytes there already, the reader is slower than the link, and bytes
//! between wanted ranges only cost it time: fewer gaps are then bridged ([`Ahead::rate_share`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::join::{Joined, join};
use super::pace::Pace;
use super::ranges::Ranges;
use super::request::{Pending, Promise, promise};
use crate::storage::Piece;

/// Announcements after which an earlier one is not expected to be read any more. A read makes a
/// few, and a few reads may run at once.
const RECENT_CALLS: u64 = 12;

/// A part takes at most this share of the memory, if that is more than the least bytes.
const PART_SHARE: u64 = 8;
const LEAST_PART_BYTES: u64 = 1 << 20;

/// Bytes read after which the reader is compared with the link.
const JUDGED_BYTES: u64 = 4 << 20;
/// Shares of bytes that were there when they were read: above the first the reader is slower than
/// the link, below the second the link is slower.
const MOSTLY_THERE: f64 = 0.8;
const MOSTLY_AWAITED: f64 = 0.5;
/// The step of the share of the link's rate, and the least one.
const STEP: f64 = 0.8;
const LEAST_RATE_SHARE: f64 = 0.1;

/// The parts of announced ranges.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Most bytes of all parts that are under way or have arrived.
    most_bytes: u64,
    /// By number; numbers ascend in the order of announcement.
    parts: HashMap<u64, Part>,
    /// For each file the numbers of its parts, by where they begin.
    places: HashMap<Arc<str>, BTreeMap<u64, u64>>,
    waiting: BTreeSet<u64>,
    waiting_bytes: u64,
    begun: BTreeSet<u64>,
    held_bytes: u64,
    under_way: usize,
    n_calls: u64,
    n_parts: u64,
    /// Share of the link's rate that the reader uses.
    rate_share: f64,
    /// Bytes that were read since that was last judged, and those of them that were there.
    read_bytes: u64,
    there_bytes: u64,
}

#[derive(Debug)]
struct Part {
    file: Arc<str>,
    range: Range<u64>,
    /// The latest announcement that named it.
    call: u64,
    /// Announced bytes not taken yet.
    wanted: Ranges,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    UnderWay(Arc<Pending<Bytes>>),
    Arrived(Arc<Pending<Bytes>>),
}

/// A part to request.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) id: u64,
    pub(super) file: Arc<str>,
    pub(super) range: Range<u64>,
    pub(super) promise: Promise<Bytes>,
}

/// The source of a range of a read.
#[derive(Debug)]
pub(super) enum Source {
    /// A range that was not requested yet.
    Hole(Range<u64>),
    /// A range that was fetched ahead, `skip` bytes into its part.
    Ahead { range: Range<u64>, pending: Arc<Pending<Bytes>>, skip: usize },
}

impl Source {
    pub(super) fn range(&self) -> &Range<u64> {
        let (Self::Hole(range) | Self::Ahead { range, .. }) = self;
        range
    }
}

impl Part {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn overlap(&self, with: &Range<u64>) -> Range<u64> {
        self.range.start.max(with.start)..self.range.end.min(with.end)
    }
}

impl Ahead {
    /// Keeps at most `most_bytes` that were fetched ahead.
    pub(super) fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            parts: HashMap::new(),
            places: HashMap::new(),
            waiting: BTreeSet::new(),
            waiting_bytes: 0,
            begun: BTreeSet::new(),
            held_bytes: 0,
            under_way: 0,
            n_calls: 0,
            n_parts: 0,
            rate_share: 1.0,
            read_bytes: 0,
            there_bytes: 0,
        }
    }

    /// Adds announced pieces; ranges that are there already are not added again. Returns the bytes
    /// between announced ranges that will be fetched with them.
    pub(super) fn announce(&mut self, pieces: &[Piece<'_>], pace: &Pace) -> u64 {
        self.n_calls += 1;
        self.judge();
        let mut seen: HashMap<&str, Ranges> = HashMap::new();
        let mut missing = Vec::new();
        for piece in pieces {
            let mut start = piece.range.start;
            let mut add = |range: Range<u64>| {
                let fresh = seen.entry(piece.file).or_default().add(range);
                missing.extend(fresh.into_iter().map(|range| Piece { file: piece.file, range }));
            };
            for id in self.meeting(piece.file, &piece.range) {
                let Some(part) = self.parts.get_mut(&id) else { continue };
                let again = part.overlap(&piece.range);
                part.call = self.n_calls;
                part.wanted.add(again.clone());
                add(start..again.start);
                start = again.end;
            }
            add(start..piece.range.end);
        }
        let is_taken = |file: &str, gap: &Range<u64>| {
            seen.get(file).is_some_and(|seen| seen.meets(gap))
                || !self.meeting(file, gap).is_empty()
        };
        let most = (self.most_bytes / PART_SHARE).max(LEAST_PART_BYTES).min(self.most_bytes);
        let joined = join(&missing, (pace, self.rate_share, most), is_taken);
        joined.into_iter().map(|joined| self.add(joined)).sum()
    }

    /// Adds a part; returns its bytes between announced ranges.
    fn add(&mut self, joined: Joined<'_>) -> u64 {
        let file = match self.places.get_key_value(joined.file) {
            Some((file, _)) => Arc::clone(file),
            None => Arc::from(joined.file),
        };
        let id = self.n_parts;
        self.n_parts += 1;
        self.places.entry(Arc::clone(&file)).or_default().insert(joined.range.start, id);
        self.waiting.insert(id);
        let mut wanted = Ranges::default();
        let mut n_wanted = 0;
        for range in joined.wanted {
            n_wanted += range.end - range.start;
            wanted.add(range);
        }
        let (call, state) = (self.n_calls, State::Waiting);
        let part = Part { file, range: joined.range, call, wanted, state };
        let len = part.len();
        self.waiting_bytes += len;
        self.parts.insert(id, part);
        len - n_wanted
    }

    /// Compares the reader with the link, by what was there when it was read.
    fn judge(&mut self) {
        if self.read_bytes < JUDGED_BYTES {
            return;
        }
        let there = self.there_bytes as f64 / self.read_bytes as f64;
        if there > MOSTLY_THERE {
            self.rate_share = (self.rate_share * STEP).max(LEAST_RATE_SHARE);
        } else if there < MOSTLY_AWAITED {
            self.rate_share = (self.rate_share / STEP).min(1.0);
        }
        (self.read_bytes, self.there_bytes) = (0, 0);
    }

    /// Marks parts as under way, and returns them to be requested; and whether others wait only
    /// because as many are under way as `pace` wants.
    pub(super) fn begin(&mut self, pace: &Pace) -> (Vec<Begun>, bool) {
        let mut out = Vec::new();
        let mean_bytes = self.waiting_bytes as f64 / self.waiting.len().max(1) as f64;
        let most_requests = pace.requests(mean_bytes);
        while let Some(&id) = self.waiting.first()
            && let Some(part) = self.parts.get(&id)
        {
            if self.is_late(part) {
                self.remove(id);
                continue;
            }
            if self.under_way >= most_requests {
                return (out, true);
            }
            if !self.make_room(part.len()) {
                break;
            }
            out.extend(self.begin_part(id).map(|(begun, _)| begun));
        }
        (out, false)
    }

    /// Marks a waiting part as under way.
    fn begin_part(&mut self, id: u64) -> Option<(Begun, Arc<Pending<Bytes>>)> {
        let part = self.parts.get_mut(&id)?;
        let (promise, pending) = promise();
        part.state = State::UnderWay(Arc::clone(&pending));
        let (file, range) = (Arc::clone(&part.file), part.range.clone());
        if self.waiting.remove(&id) {
            self.waiting_bytes -= part.len();
        }
        self.begun.insert(id);
        self.held_bytes += part.len();
        self.under_way += 1;
        Some((Begun { id, file, range, promise }, pending))
    }

    /// Notes that a part is no longer under way. A part that failed is removed, so that the read
    /// requests it itself.
    pub(super) fn ended(&mut self, id: u64, arrived: bool) {
        self.under_way -= 1;
        if !arrived {
            self.remove(id);
        } else if let Some(part) = self.parts.get_mut(&id)
            && let State::UnderWay(pending) = &part.state
        {
            part.state = State::Arrived(Arc::clone(pending));
        }
    }

    /// Takes the bytes of `range`: their sources, in order and without gaps. Parts that waited are
    /// added to `begun`, to be requested whether or not there is room. A part without wanted bytes
    /// is removed.
    pub(super) fn take(
        &mut self,
        file: &str,
        range: &Range<u64>,
        begun: &mut Vec<Begun>,
    ) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut start = range.start;
        for id in self.meeting(file, range) {
            let Some(part) = self.parts.get_mut(&id) else { continue };
            let taken = part.overlap(range);
            let skip = (taken.start - part.range.start) as usize;
            part.wanted.remove(&taken);
            let is_empty = part.wanted.is_empty();
            self.read_bytes += taken.end - taken.start;
            let pending = match &part.state {
                State::Arrived(pending) => {
                    self.there_bytes += taken.end - taken.start;
                    Arc::clone(pending)
                }
                State::UnderWay(pending) => Arc::clone(pending),
                State::Waiting => {
                    let Some((one, pending)) = self.begin_part(id) else { continue };
                    begun.push(one);
                    pending
                }
            };
            if start < taken.start {
                sources.push(Source::Hole(start..taken.start));
            }
            start = taken.end;
            sources.push(Source::Ahead { range: taken, pending, skip });
            if is_empty {
                self.remove(id);
            }
        }
        if start < range.end {
            sources.push(Source::Hole(start..range.end));
        }
        sources
    }

    /// The parts that have bytes of `range`, in order.
    fn meeting(&self, file: &str, range: &Range<u64>) -> Vec<u64> {
        let Some(places) = self.places.get(file) else { return Vec::new() };
        if range.start >= range.end {
            return Vec::new();
        }
        let meets = |id: &u64| self.parts.get(id).is_some_and(|part| part.range.end > range.start);
        let before_end = places.range(..range.end).rev().map(|(_, &id)| id);
        let mut ids: Vec<u64> = before_end.take_while(meets).collect();
        ids.reverse();
        ids
    }

    fn is_late(&self, part: &Part) -> bool {
        part.call + RECENT_CALLS <= self.n_calls
    }

    /// Removes parts until `len` more bytes are allowed. Returns whether they are.
    fn make_room(&mut self, len: u64) -> bool {
        while self.held_bytes + len > self.most_bytes {
            let may_go = |id: &&u64| {
                self.parts.get(*id).is_some_and(|part| {
                    matches!(part.state, State::Arrived(_)) && self.is_late(part)
                })
            };
            let Some(&oldest) = self.begun.iter().find(may_go) else { return false };
            self.remove(oldest);
        }
        true
    }

    fn remove(&mut self, id: u64) {
        let Some(part) = self.parts.remove(&id) else { return };
        if let Some(places) = self.places.get_mut(&part.file) {
            places.remove(&part.range.start);
            if places.is_empty() {
                self.places.remove(&part.file);
            }
        }
        if self.waiting.remove(&id) {
            self.waiting_bytes -= part.len();
        }
        if self.begun.remove(&id) {
            self.held_bytes -= part.len();
        }
    }
}

#[cfg(test)]
mod tests;
