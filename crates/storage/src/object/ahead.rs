//! Ranges that are fetched before they are read: which of them wait, are under way or have arrived,
//! and which make room for others.
//!
//! Reads need not match announcements: a range announced at once may be read in parts, by several
//! threads. So announced ranges are cut into *parts* that do not overlap, and a read takes from all
//! parts that it meets. It requests the rest itself. A part is removed when all of it was taken.
//!
//! Parts are requested in the order announced while they fit into the memory allowed. After that
//! the oldest part is removed that has been read from (its rest mostly lies between two wanted
//! ranges) or that was not read a few announcements later. An untouched part of a read in progress
//! stays; otherwise a large announcement would drive out its own beginning.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::request::{Pending, Promise, promise};
use crate::storage::Piece;

/// Announcements after which an earlier one is not expected to be read any more. A read makes two,
/// and a few reads may run at once.
const RECENT_CALLS: u64 = 8;

/// Bounds on fetching ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Most bytes of all parts that are under way or have arrived.
    pub(super) bytes: u64,
    /// Most bytes of one part.
    pub(super) part_bytes: u64,
    /// Most parts under way.
    pub(super) requests: usize,
}

/// The parts of announced ranges.
#[derive(Debug)]
pub(super) struct Ahead {
    limits: Limits,
    /// By number; numbers ascend in the order of announcement.
    parts: HashMap<u64, Part>,
    /// For each file the numbers of its parts, by where they begin.
    places: HashMap<Arc<str>, BTreeMap<u64, u64>>,
    waiting: BTreeSet<u64>,
    begun: BTreeSet<u64>,
    held_bytes: u64,
    under_way: usize,
    n_calls: u64,
    n_parts: u64,
}

#[derive(Debug)]
struct Part {
    file: Arc<str>,
    range: Range<u64>,
    /// The latest announcement that named it.
    call: u64,
    /// Bytes not taken yet.
    left: u64,
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
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            parts: HashMap::new(),
            places: HashMap::new(),
            waiting: BTreeSet::new(),
            begun: BTreeSet::new(),
            held_bytes: 0,
            under_way: 0,
            n_calls: 0,
            n_parts: 0,
        }
    }

    /// Adds announced pieces; ranges that are there already are not added again.
    pub(super) fn announce(&mut self, pieces: &[Piece<'_>]) {
        self.n_calls += 1;
        for piece in pieces {
            let mut start = piece.range.start;
            for id in self.meeting(piece.file, &piece.range) {
                let Some(part) = self.parts.get_mut(&id) else { continue };
                let again = part.overlap(&piece.range);
                part.call = self.n_calls;
                part.left = part.len().min(part.left + (again.end - again.start));
                self.add(piece.file, start..again.start);
                start = again.end;
            }
            self.add(piece.file, start..piece.range.end);
        }
    }

    fn add(&mut self, file: &str, range: Range<u64>) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(self.limits.part_bytes));
            let file = match self.places.get_key_value(file) {
                Some((file, _)) => Arc::clone(file),
                None => Arc::from(file),
            };
            let id = self.n_parts;
            self.n_parts += 1;
            self.places.entry(Arc::clone(&file)).or_default().insert(start, id);
            self.waiting.insert(id);
            let part = Part {
                file,
                range: start..end,
                call: self.n_calls,
                left: end - start,
                state: State::Waiting,
            };
            self.parts.insert(id, part);
            start = end;
        }
    }

    /// Marks parts as under way, and returns them to be requested.
    pub(super) fn begin(&mut self) -> Vec<Begun> {
        let mut out = Vec::new();
        while self.under_way < self.limits.requests
            && let Some(&id) = self.waiting.first()
            && let Some(part) = self.parts.get(&id)
        {
            if self.is_late(part) {
                self.remove(id);
                continue;
            }
            let len = part.len();
            if !self.make_room(len) {
                break;
            }
            let Some(part) = self.parts.get_mut(&id) else { break };
            let (promise, pending) = promise();
            part.state = State::UnderWay(pending);
            out.push(Begun {
                id,
                file: Arc::clone(&part.file),
                range: part.range.clone(),
                promise,
            });
            self.waiting.remove(&id);
            self.begun.insert(id);
            self.held_bytes += len;
            self.under_way += 1;
        }
        out
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

    /// Takes the bytes of `range`: their sources, in order and without gaps. A part without bytes
    /// left is removed.
    pub(super) fn take(&mut self, file: &str, range: &Range<u64>) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut start = range.start;
        for id in self.meeting(file, range) {
            let Some(part) = self.parts.get_mut(&id) else { continue };
            let taken = part.overlap(range);
            let pending = match &part.state {
                State::UnderWay(pending) | State::Arrived(pending) => Arc::clone(pending),
                // The read must not wait until there is room for it.
                State::Waiting => {
                    self.remove(id);
                    continue;
                }
            };
            part.left = part.left.saturating_sub(taken.end - taken.start);
            let skip = (taken.start - part.range.start) as usize;
            let is_empty = part.left == 0;
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
        while self.held_bytes + len > self.limits.bytes {
            let may_go = |id: &&u64| {
                self.parts.get(*id).is_some_and(|part| {
                    matches!(part.state, State::Arrived(_))
                        && (part.left < part.len() || self.is_late(part))
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
        self.waiting.remove(&id);
        if self.begun.remove(&id) {
            self.held_bytes -= part.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(bytes: u64) -> Ahead {
        Ahead::new(Limits { bytes, part_bytes: 100, requests: 4 })
    }

    fn piece(range: Range<u64>) -> Piece<'static> {
        Piece { file: "a", range }
    }

    fn ranges(begun: &[Begun]) -> Vec<Range<u64>> {
        begun.iter().map(|begun| begun.range.clone()).collect()
    }

    fn arrive(ahead: &mut Ahead, begun: Vec<Begun>) {
        for begun in begun {
            ahead.ended(begun.id, true);
            begun.promise.keep(Ok(Bytes::new()));
        }
    }

    /// The ranges to ask for, and those that were asked for.
    fn taken(ahead: &mut Ahead, range: Range<u64>) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let sources = ahead.take("a", &range);
        assert_eq!(sources.first().map_or(range.start, |first| first.range().start), range.start);
        for pair in sources.windows(2) {
            assert_eq!(pair[0].range().end, pair[1].range().start);
        }
        assert_eq!(sources.last().map_or(range.end, |last| last.range().end), range.end);
        let (holes, found): (Vec<_>, Vec<_>) =
            sources.iter().partition(|source| matches!(source, Source::Hole(_)));
        let ranges =
            |sources: Vec<&Source>| sources.iter().map(|one| one.range().clone()).collect();
        (ranges(holes), ranges(found))
    }

    #[test]
    fn nothing_is_asked_for_twice() {
        let mut ahead = ahead(1000);
        ahead.announce(&[piece(0..150), piece(300..350)]);
        ahead.announce(&[piece(100..320)]);
        assert_eq!(ranges(&ahead.begin()), [0..100, 100..150, 300..350, 150..250]);
        assert_eq!(taken(&mut ahead, 90..160), (vec![], vec![90..100, 100..150, 150..160]));
        assert_eq!(taken(&mut ahead, 340..400), (vec![350..400], vec![340..350]));
    }

    #[test]
    fn what_was_taken_makes_room() {
        let mut ahead = ahead(200);
        ahead.announce(&[piece(0..500)]);
        let begun = ahead.begin();
        assert_eq!(ranges(&begun), [0..100, 100..200]);
        arrive(&mut ahead, begun);
        assert!(ahead.begin().is_empty());
        assert_eq!(taken(&mut ahead, 0..100), (vec![], vec![0..100]));
        assert_eq!(ranges(&ahead.begin()), [200..300]);
        // What waits for room is asked for by the read, and no longer waits.
        assert_eq!(taken(&mut ahead, 300..400), (vec![300..400], vec![]));
        taken(&mut ahead, 100..200);
        assert_eq!(ranges(&ahead.begin()), [400..500]);
    }

    #[test]
    fn the_oldest_unused_parts_go_first() {
        let mut ahead = ahead(300);
        ahead.announce(&[piece(0..300)]);
        let begun = ahead.begin();
        arrive(&mut ahead, begun);
        // Of this one something is left.
        taken(&mut ahead, 120..150);
        ahead.announce(&[piece(1000..1100)]);
        let begun = ahead.begin();
        assert_eq!(ranges(&begun), [1000..1100]);
        arrive(&mut ahead, begun);
        assert_eq!(taken(&mut ahead, 150..200), (vec![150..200], vec![]));
        // Untouched ones stay for a while.
        ahead.announce(&[piece(2000..2100)]);
        assert!(ahead.begin().is_empty());
        for _ in 2..RECENT_CALLS {
            ahead.announce(&[]);
        }
        assert_eq!(ranges(&ahead.begin()), [2000..2100]);
        assert_eq!(taken(&mut ahead, 0..100), (vec![0..100], vec![]));
        assert_eq!(taken(&mut ahead, 200..300), (vec![], vec![200..300]));
    }

    #[test]
    fn few_requests_at_once_and_failures_are_forgotten() {
        let mut ahead = ahead(10_000);
        ahead.announce(&[piece(0..1000)]);
        let begun = ahead.begin();
        assert_eq!(begun.len(), 4);
        for begun in begun {
            ahead.ended(begun.id, false);
        }
        assert_eq!((ahead.held_bytes, ahead.under_way), (0, 0));
        assert_eq!(taken(&mut ahead, 0..300), (vec![0..300], vec![]));
        assert_eq!(ranges(&ahead.begin()), [400..500, 500..600, 600..700, 700..800]);
        // Taken while it is under way: ends without a trace.
        taken(&mut ahead, 400..1000);
        assert_eq!((ahead.held_bytes, ahead.parts.len(), ahead.under_way), (0, 0, 4));
    }
}
