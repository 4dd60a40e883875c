//! Sorts the values of a cell in linear time.

use std::cmp::Ordering;

/// Bits of a digit: two digits' counters fit a processor's first cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// From this length on, two passes over digits are faster than comparing.
const LEAST_FOR_DIGITS: usize = 192;

/// Memory of [`Sorter::sort`], used again for the next cell.
#[derive(Debug)]
pub(crate) struct Sorter {
    swap: Vec<u64>,
    low: Box<[u32; DIGITS]>,
    high: Box<[u32; DIGITS]>,
}

impl Default for Sorter {
    fn default() -> Self {
        Self { swap: Vec::new(), low: Box::new([0; DIGITS]), high: Box::new([0; DIGITS]) }
    }
}

/// An entry whose high half is compared first.
#[inline]
pub(crate) fn entry(key: u32, place: usize) -> u64 {
    u64::from(key) << 32 | place as u64
}

/// The low half of an entry.
#[inline]
pub(crate) fn place(entry: u64) -> usize {
    (entry & u64::from(u32::MAX)) as usize
}

/// The high half of an entry.
#[inline]
pub(crate) fn key(entry: u64) -> u32 {
    (entry >> 32) as u32
}

impl Sorter {
    /// Sorts entries by `compare`, which must agree with the order of their keys where those
    /// differ.
    ///
    /// The highest 22 of the bits in which keys differ are sorted digit by digit. Entries that are
    /// equal in these lie together then, and only they are compared.
    pub(crate) fn sort(
        &mut self,
        entries: &mut [u64],
        compare: impl Fn(&u64, &u64) -> Ordering + Copy,
    ) {
        if entries.len() < LEAST_FOR_DIGITS {
            entries.sort_unstable_by(compare);
            return;
        }
        let first = entries[0];
        let differing = entries.iter().fold(0, |all, entry| all | key(*entry ^ first));
        let n_bits = u32::BITS - differing.leading_zeros();
        // Small counts differ in a few high bits only.
        let first_bit = differing.trailing_zeros().min(n_bits);
        let shift = first_bit.max(n_bits.saturating_sub(2 * DIGIT_BITS));
        let coarse = |entry: u64| entry >> (u32::BITS + shift);
        self.sort_digits(entries, n_bits - shift, coarse);
        let mut at = 1;
        while at < entries.len() {
            let (before, this) = (entries[at - 1], entries[at]);
            if coarse(before) == coarse(this) && compare(&before, &this).is_gt() {
                let is_equal = |other: &&u64| coarse(**other) == coarse(this);
                let start = at - entries[..at].iter().rev().take_while(is_equal).count();
                at += entries[at..].iter().take_while(is_equal).count();
                entries[start..at].sort_unstable_by(compare);
            }
            at += 1;
        }
    }

    /// Sorts entries by numbers that differ in their last `n_bits` only, at most two digits. Keeps
    /// the order of equal ones.
    fn sort_digits(&mut self, entries: &mut [u64], n_bits: u32, number: impl Fn(u64) -> u64) {
        let low_of = |entry: u64| number(entry) as usize % DIGITS;
        let high_of = |entry: u64| (number(entry) >> DIGIT_BITS) as usize % DIGITS;
        self.low.fill(0);
        self.high.fill(0);
        for entry in entries.iter() {
            self.low[low_of(*entry)] += 1;
            self.high[high_of(*entry)] += 1;
        }
        if self.swap.len() < entries.len() {
            self.swap.resize(entries.len(), 0);
        }
        let swap = &mut self.swap[..entries.len()];
        scatter(entries, swap, &mut self.low, low_of);
        if n_bits <= DIGIT_BITS {
            entries.copy_from_slice(swap);
        } else {
            scatter(swap, entries, &mut self.high, high_of);
        }
    }
}

/// Copies entries to the places that the counts of their digits give.
fn scatter(from: &[u64], to: &mut [u64], counts: &mut [u32; DIGITS], digit: impl Fn(u64) -> usize) {
    let mut before = 0;
    for count in counts.iter_mut() {
        before += std::mem::replace(count, before);
    }
    for entry in from {
        let place = &mut counts[digit(*entry)];
        to[*place as usize] = *entry;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_are_sorted(
            keys in prop::collection::vec(prop_oneof![any::<u32>(), 0_u32..9], 0..1_000),
            shift in 0_u32..32,
        ) {
            let keys = keys.iter().map(|key| key >> shift);
            let mut entries: Vec<u64> = keys.enumerate().map(|(at, key)| entry(key, at)).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            Sorter::default().sort(&mut entries, u64::cmp);
            prop_assert_eq!(entries, expected);
        }
    }
}
