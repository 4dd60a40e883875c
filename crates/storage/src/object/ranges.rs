//! A set of bytes of a file, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges that do not touch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    /// The ends, by the beginnings.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether any byte of `range` is in the set.
    pub(super) fn meets(&self, range: &Range<u64>) -> bool {
        let before_end = self.ends.range(..range.end).next_back();
        range.start < range.end && before_end.is_some_and(|(_, &end)| end > range.start)
    }

    /// Adds a range; returns those parts of it that were not in the set.
    pub(super) fn add(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        if range.start >= range.end {
            return Vec::new();
        }
        let (mut start, mut end) = (range.start, range.end);
        let mut fresh = Vec::new();
        let mut next_end = range.end;
        // From the back, because a range that touches the first byte may begin long before it.
        while let Some((&of, &to)) = self.ends.range(..=end).next_back()
            && to >= start
        {
            self.ends.remove(&of);
            if to < next_end {
                fresh.push(to.max(range.start)..next_end);
            }
            next_end = of.min(next_end);
            (start, end) = (start.min(of), end.max(to));
        }
        if range.start < next_end {
            fresh.push(range.start..next_end);
        }
        fresh.retain(|part| part.start < part.end);
        fresh.reverse();
        self.ends.insert(start, end);
        fresh
    }

    /// Removes the bytes of `range`.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        while let Some((&of, &to)) = self.ends.range(..range.end).next_back()
            && to > range.start
            && range.start < range.end
        {
            self.ends.remove(&of);
            if range.end < to {
                self.ends.insert(range.end, to);
            }
            if of < range.start {
                self.ends.insert(of, range.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_a_set_of_bytes(steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0_u64..12), 0..40)) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (adds, start, len) in steps {
                let range = start..start + len;
                prop_assert_eq!(ranges.meets(&range), range.clone().any(|at| bytes.contains(&at)));
                if adds {
                    let fresh: Vec<u64> = ranges.add(range.clone()).into_iter().flatten().collect();
                    let expect: Vec<u64> = range.filter(|at| bytes.insert(*at)).collect();
                    prop_assert_eq!(fresh, expect);
                } else {
                    ranges.remove(&range);
                    bytes.retain(|at| !range.contains(at));
                }
                let all: Vec<u64> = ranges.ends.iter().flat_map(|(start, end)| *start..*end).collect();
                prop_assert_eq!(all, bytes.iter().copied().collect::<Vec<_>>());
                let is_apart = ranges.ends.iter().zip(ranges.ends.iter().skip(1))
                    .all(|((_, end), (start, _))| end < start);
                prop_assert!(is_apart, "{:?}", ranges);
                prop_assert_eq!(ranges.is_empty(), bytes.is_empty());
            }
        }
    }
}
