//! Ranges that are fetched before they are read: which of them wait, are under way or have arrived,
//! and which make room for others.
//!
//! Reads need not match announcements: a range announced at once may be read in parts, by several
//! threads. So announced ranges are joined and split into *parts* that do not overlap, and a read
//! takes from all parts that it meets. It requests the rest itself.
//!
//! A part of which all announced bytes were taken is kept a little longer, because some of its
//! bytes are often taken again soon: two threads read on both sides of a border between tiles. It
//! is removed when another read begins, at the latest. If two reads run at the same time, the
//! second may so remove what the first then requests again.
//!
//! There are two *plans*: parts of the present read, and parts of the next one. They share no
//! bytes, so what both reads want is fetched twice. If the next read took over what the present one
//! has fetched, its plan would lack those bytes once they are taken, and each of its reads would
//! wait for a few of them. When the next read begins, its plan becomes the present one, and what is
//! left of the one before is dropped.
//!
//! Parts are requested in the order announced while they fit into the memory allowed, those of the
//! next read after those of the present one, and in half of the memory. A read that needs a part
//! which waits for room has it requested at once. When room is needed, parts go that are not
//! expected to be read any more, the oldest first: those that the present read did not announce
//! although they were fetched for it, those that were announced two reads ago or earlier, and those
//! that reads have taken a part of and then passed by.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::join::{Joined, join};
use super::pace::Pace;
use super::ranges::Ranges;
use super::request::{Pending, Promise, promise};
use crate::storage::{Expected, Piece};

/// After this many further reads, parts of an earlier one are not expected to be read any more. Two
/// reads may run at the same time if neither has a next one.
const RECENT_CALLS: u64 = 2;

/// Parts of the next read take at most this share of the memory.
const NEXT_SHARE: u64 = 2;

/// Reads of this share of the memory later, or of [`MOST_KEPT_BYTES`] if that is less, a part that
/// was taken whole is removed.
const KEPT_SHARE: u64 = 8;
const MOST_KEPT_BYTES: u64 = 16 << 20;
/// Reads of this share of the memory later, the rest of a part that was taken in part is not
/// expected to be read.
const PASSED_SHARE: u64 = 2;

/// A part takes at most this share of the memory, if that is more than the least bytes: so that
/// enough are under way at once.
const PART_SHARE: u64 = 32;
const LEAST_PART_BYTES: u64 = 1 << 20;

/// The parts of announced ranges.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Most bytes of all parts that are under way or have arrived.
    most_bytes: u64,
    /// By number; numbers ascend in the order of announcement.
    parts: HashMap<u64, Part>,
    /// Those of the present read.
    now: Plan,
    /// Those of the next read.
    next: Plan,
    waiting_bytes: u64,
    begun: BTreeSet<u64>,
    /// Parts that were taken whole, with their [`Part::taken_at`] at that time.
    done: VecDeque<(u64, u64)>,
    /// Parts that were removed while they were under way; they take memory until they end.
    removed: BTreeSet<u64>,
    removed_bytes: u64,
    under_way: usize,
    under_way_bytes: u64,
    /// Bytes that all reads have taken.
    taken_bytes: u64,
    n_calls: u64,
    n_parts: u64,
    /// No part may go for another before this many bytes are taken.
    full_until: u64,
}

/// Parts of a read, which do not overlap.
#[derive(Debug, Default)]
struct Plan {
    /// For each file the numbers of its parts, by where they begin.
    places: HashMap<Arc<str>, BTreeMap<u64, u64>>,
    waiting: BTreeSet<u64>,
    /// Bytes of parts that are under way or have arrived.
    held_bytes: u64,
}

#[derive(Debug)]
struct Part {
    file: Arc<str>,
    range: Range<u64>,
    /// The latest announcement that named it.
    call: u64,
    /// Announced bytes that were not taken yet. Empty when the next read becomes the present one,
    /// until that read announces its bytes itself.
    wanted: Ranges,
    /// The read that it was announced for.
    read: Expected,
    /// [`Ahead::taken_bytes`] when it was last taken from.
    taken_at: Option<u64>,
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
            now: Plan::default(),
            next: Plan::default(),
            waiting_bytes: 0,
            begun: BTreeSet::new(),
            done: VecDeque::new(),
            removed: BTreeSet::new(),
            removed_bytes: 0,
            under_way: 0,
            under_way_bytes: 0,
            taken_bytes: 0,
            n_calls: 0,
            n_parts: 0,
            full_until: 0,
        }
    }

    /// Adds pieces announced for a read; ranges that are there already are not added again.
    pub(super) fn announce(&mut self, pieces: &[Piece<'_>], read: Expected, pace: &Pace) {
        if read == Expected::Now {
            self.n_calls += 1;
            self.full_until = 0;
            self.remove_done(0);
            self.begin_next();
        }
        let mut seen: HashMap<&str, Ranges> = HashMap::new();
        let mut missing = Vec::new();
        for piece in pieces {
            let mut start = piece.range.start;
            let mut add = |range: Range<u64>| {
                let fresh = seen.entry(piece.file).or_default().add(range);
                missing.extend(fresh.into_iter().map(|range| Piece { file: piece.file, range }));
            };
            for id in self.meeting(read, piece.file, &piece.range) {
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
                || !self.meeting(read, file, gap).is_empty()
        };
        let most_of_plan = self.most_bytes_of(read);
        let most = (self.most_bytes / PART_SHARE).max(LEAST_PART_BYTES).min(most_of_plan);
        for joined in join(&missing, (pace, most), is_taken) {
            self.add(joined, read);
        }
    }

    /// Makes the plan of the next read the present one, if there is one. What this read does not
    /// announce itself is unwanted.
    fn begin_next(&mut self) {
        if self.next.places.is_empty() {
            return;
        }
        let of_plan = |plan: &Plan| -> Vec<u64> {
            plan.places.values().flat_map(BTreeMap::values).copied().collect()
        };
        for id in of_plan(&self.now) {
            self.remove(id);
        }
        self.now = std::mem::take(&mut self.next);
        for id in of_plan(&self.now) {
            let Some(part) = self.parts.get_mut(&id) else { continue };
            (part.read, part.wanted) = (Expected::Now, Ranges::default());
        }
    }

    /// Most bytes of a plan's parts that are under way or have arrived.
    fn most_bytes_of(&self, read: Expected) -> u64 {
        match read {
            Expected::Now => self.most_bytes,
            Expected::Next => self.most_bytes / NEXT_SHARE,
        }
    }

    /// Bytes of all parts that are under way or have arrived.
    fn held_bytes(&self) -> u64 {
        self.now.held_bytes + self.next.held_bytes + self.removed_bytes
    }

    fn plan(&mut self, read: Expected) -> &mut Plan {
        match read {
            Expected::Now => &mut self.now,
            Expected::Next => &mut self.next,
        }
    }

    fn add(&mut self, joined: Joined<'_>, read: Expected) {
        let id = self.n_parts;
        self.n_parts += 1;
        let Plan { places, waiting, .. } = self.plan(read);
        let file = match places.get_key_value(joined.file) {
            Some((file, _)) => Arc::clone(file),
            None => Arc::from(joined.file),
        };
        places.entry(Arc::clone(&file)).or_default().insert(joined.range.start, id);
        waiting.insert(id);
        let mut wanted = Ranges::default();
        for range in joined.wanted {
            wanted.add(range);
        }
        let (call, state) = (self.n_calls, State::Waiting);
        let range = joined.range;
        let part = Part { file, range, call, wanted, read, taken_at: None, state };
        self.waiting_bytes += part.len();
        self.parts.insert(id, part);
    }

    /// Marks parts as under way, and returns them to be requested; and whether those under way fill
    /// the link. That is so if they have as many bytes as it carries in its latency, or half of the
    /// memory. Memory full of parts that have arrived says that the reader is slow.
    pub(super) fn begin(&mut self, pace: &Pace) -> (Vec<Begun>, bool) {
        let begun = self.begin_waiting(pace);
        let filling_bytes = (pace.link.total_rate * pace.link.latency_secs) as u64;
        let fills = self.under_way_bytes >= filling_bytes.min(self.most_bytes / 2);
        (begun, fills && self.under_way > 0)
    }

    fn begin_waiting(&mut self, pace: &Pace) -> Vec<Begun> {
        let mut out = Vec::new();
        let n_waiting = self.now.waiting.len() + self.next.waiting.len();
        let mean_bytes = self.waiting_bytes as f64 / n_waiting.max(1) as f64;
        let most_requests = pace.requests(mean_bytes);
        while let Some(&id) = self.now.waiting.first().or_else(|| self.next.waiting.first())
            && let Some(part) = self.parts.get(&id)
        {
            if self.is_late(part) || self.is_unwanted(part) {
                self.remove(id);
                continue;
            }
            if self.under_way >= most_requests {
                break;
            }
            let plan = if part.read == Expected::Now { &self.now } else { &self.next };
            let has_room = plan.held_bytes + part.len() <= self.most_bytes_of(part.read);
            if !(has_room || part.read == Expected::Now) || !self.make_room(part.len()) {
                break;
            }
            out.extend(self.begin_part(id).map(|(begun, _)| begun));
        }
        out
    }

    /// Marks a waiting part as under way.
    fn begin_part(&mut self, id: u64) -> Option<(Begun, Arc<Pending<Bytes>>)> {
        let part = self.parts.get_mut(&id)?;
        let (promise, pending) = promise();
        part.state = State::UnderWay(Arc::clone(&pending));
        let (file, range) = (Arc::clone(&part.file), part.range.clone());
        let (len, read) = (part.len(), part.read);
        if self.plan(read).waiting.remove(&id) {
            self.waiting_bytes -= len;
        }
        self.begun.insert(id);
        self.plan(read).held_bytes += len;
        self.under_way += 1;
        self.under_way_bytes += len;
        Some((Begun { id, file, range, promise }, pending))
    }

    /// Notes that a part is no longer under way. A part that failed is removed, so that the read
    /// requests it itself.
    pub(super) fn ended(&mut self, id: u64, len: u64, arrived: bool) {
        self.under_way -= 1;
        self.under_way_bytes -= len;
        if !arrived {
            self.remove(id);
        }
        if self.removed.remove(&id) {
            self.removed_bytes -= len;
            self.full_until = 0;
        } else if let Some(part) = self.parts.get_mut(&id)
            && let State::UnderWay(pending) = &part.state
        {
            part.state = State::Arrived(Arc::clone(pending));
            if self.parts.get(&id).is_some_and(|part| self.may_go(part)) {
                self.full_until = 0;
            }
        }
    }

    /// Takes the bytes of `range`: their sources, in order and without gaps. Parts that waited are
    /// added to `begun`, to be requested whether or not there is room. Removes parts that were
    /// taken whole some reads ago.
    pub(super) fn take(
        &mut self,
        file: &str,
        range: &Range<u64>,
        begun: &mut Vec<Begun>,
    ) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut start = range.start;
        for id in self.meeting(Expected::Now, file, range) {
            let Some(part) = self.parts.get_mut(&id) else { continue };
            let taken = part.overlap(range);
            let skip = (taken.start - part.range.start) as usize;
            part.wanted.remove(&taken);
            self.taken_bytes += taken.end - taken.start;
            part.taken_at = Some(self.taken_bytes);
            if part.wanted.is_empty() {
                self.done.push_back((id, self.taken_bytes));
            }
            let pending = match &part.state {
                State::Arrived(pending) | State::UnderWay(pending) => Arc::clone(pending),
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
        }
        if start < range.end {
            sources.push(Source::Hole(start..range.end));
        }
        self.remove_done((self.most_bytes / KEPT_SHARE).min(MOST_KEPT_BYTES));
        sources
    }

    /// Removes the parts that were taken whole before the last `kept_bytes` were taken.
    fn remove_done(&mut self, kept_bytes: u64) {
        while let Some(&(id, at)) = self.done.front()
            && at + kept_bytes <= self.taken_bytes
        {
            // Later it may have been announced or taken again.
            let is_done = |part: &Part| part.wanted.is_empty() && part.taken_at == Some(at);
            if self.parts.get(&id).is_some_and(is_done) {
                self.remove(id);
            }
            self.done.pop_front();
        }
    }

    /// The parts of a plan that have bytes of `range`, in order.
    fn meeting(&self, read: Expected, file: &str, range: &Range<u64>) -> Vec<u64> {
        let plan = if read == Expected::Now { &self.now } else { &self.next };
        let Some(places) = plan.places.get(file) else { return Vec::new() };
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

    /// Whether the latest announcement did not name a part of which nothing is wanted.
    fn is_unwanted(&self, part: &Part) -> bool {
        part.wanted.is_empty() && part.call < self.n_calls
    }

    /// Whether a part has arrived and is not expected to be read any more.
    fn may_go(&self, part: &Part) -> bool {
        let is_passed = |at| at + self.passed_bytes() <= self.taken_bytes;
        matches!(part.state, State::Arrived(_))
            && (self.is_late(part)
                || self.is_unwanted(part)
                || part.taken_at.is_some_and(is_passed))
    }

    /// Removes parts until `len` more bytes are allowed. Returns whether they are.
    fn make_room(&mut self, len: u64) -> bool {
        while self.held_bytes() + len > self.most_bytes {
            // Looked for once until a read could have changed it: parts are many.
            if self.taken_bytes < self.full_until {
                return false;
            }
            let may_go = |id: &&u64| self.parts.get(*id).is_some_and(|part| self.may_go(part));
            let Some(&oldest) = self.begun.iter().find(may_go) else {
                let taken = |id: &u64| self.parts.get(id).and_then(|part| part.taken_at);
                let first = self.begun.iter().filter_map(taken).min();
                self.full_until = first.unwrap_or(self.taken_bytes) + self.passed_bytes();
                return false;
            };
            self.remove(oldest);
        }
        true
    }

    fn passed_bytes(&self) -> u64 {
        self.most_bytes / PASSED_SHARE
    }

    fn remove(&mut self, id: u64) {
        let Some(part) = self.parts.remove(&id) else { return };
        let Plan { places, waiting, .. } = self.plan(part.read);
        let was_waiting = waiting.remove(&id);
        if let Some(of_file) = places.get_mut(&part.file) {
            of_file.remove(&part.range.start);
            if of_file.is_empty() {
                places.remove(&part.file);
            }
        }
        if was_waiting {
            self.waiting_bytes -= part.len();
        }
        if self.begun.remove(&id) {
            self.plan(part.read).held_bytes -= part.len();
            if matches!(part.state, State::UnderWay(_)) {
                self.removed.insert(id);
                self.removed_bytes += part.len();
            }
        }
    }
}

#[cfg(test)]
mod tests;
