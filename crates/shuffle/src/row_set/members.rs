//! The rows of one piece: numbers below 65,536, as a range, a list or bits.

use std::ops::Range;

use super::PIECE;

const WORDS: usize = PIECE as usize / 64;
/// Words of a group, whose members before it are counted.
const GROUP: usize = 8;
/// A list of as many numbers takes as much memory as the bits with their counts.
const LIST_LEN: u32 = (8 * WORDS + 2 * WORDS / GROUP) as u32 / 2;

/// The numbers of a piece, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    Range(Range<u32>),
    List(Box<[u16]>),
    Bits {
        words: Box<[u64]>,
        /// Number of members before each group of words.
        n_before: Box<[u16]>,
    },
}

impl Members {
    /// The member at `place`, which must be below their number.
    pub(super) fn get(&self, place: u32) -> u32 {
        match self {
            Self::Range(range) => range.start + place,
            Self::List(list) => list[place as usize].into(),
            Self::Bits { words, n_before } => {
                let group = n_before.partition_point(|n| u32::from(*n) <= place) - 1;
                let mut rest = place - u32::from(n_before[group]);
                let mut at = group * GROUP;
                while rest >= words[at].count_ones() {
                    rest -= words[at].count_ones();
                    at += 1;
                }
                let mut word = words[at];
                for _ in 0..rest {
                    word &= word - 1;
                }
                at as u32 * 64 + word.trailing_zeros()
            }
        }
    }

    /// Number of members below `number`.
    pub(super) fn n_below(&self, number: u32) -> u32 {
        match self {
            Self::Range(range) => number.clamp(range.start, range.end) - range.start,
            Self::List(list) => list.partition_point(|member| u32::from(*member) < number) as u32,
            Self::Bits { words, n_before } => {
                let at = number as usize / 64;
                let group = at / GROUP;
                let words_before = words[group * GROUP..at].iter();
                let in_word = words[at] & ((1 << (number % 64)) - 1);
                u32::from(n_before[group])
                    + words_before.map(|word| word.count_ones()).sum::<u32>()
                    + in_word.count_ones()
            }
        }
    }

    /// The first range of members that reaches `from` or beyond, from there on.
    pub(super) fn range_from(&self, from: u32) -> Option<Range<u32>> {
        match self {
            Self::Range(range) => {
                let start = range.start.max(from);
                (start < range.end).then_some(start..range.end)
            }
            Self::List(list) => {
                let first = list.partition_point(|member| u32::from(*member) < from);
                let start = u32::from(*list.get(first)?);
                let run = list[first..].iter().zip(start..);
                let n = run.take_while(|(member, at)| u32::from(**member) == *at).count();
                Some(start..start + n as u32)
            }
            Self::Bits { words, .. } => {
                let start = next_bit(words, from, 0)?;
                Some(start..next_bit(words, start, u64::MAX).unwrap_or(PIECE as u32))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Range(_) => 0,
            Self::List(list) => size_of_val(&**list),
            Self::Bits { words, n_before } => size_of_val(&**words) + size_of_val(&**n_before),
        }
    }
}

/// The first bit at `from` or beyond that is set after all bits were combined with `flip` by
/// exclusive or.
fn next_bit(words: &[u64], from: u32, flip: u64) -> Option<u32> {
    let first = from as usize / 64;
    let mut word = (words.get(first)? ^ flip) & (u64::MAX << (from % 64));
    let mut at = first;
    while word == 0 {
        at += 1;
        word = words.get(at)? ^ flip;
    }
    Some(at as u32 * 64 + word.trailing_zeros())
}

/// The members of a piece, while they are added in ascending order.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// One bit for each number; empty before the first member of the first piece.
    words: Vec<u64>,
    /// From the first member to the last.
    bounds: Range<u32>,
    n: u32,
}

impl Collected {
    /// Adds a number above the last.
    pub(super) fn add(&mut self, number: u32) {
        self.begin(number);
        self.words[number as usize / 64] |= 1 << (number % 64);
        self.bounds.end = number + 1;
        self.n += 1;
    }

    /// Adds a range of numbers above the last, which has at least one.
    pub(super) fn add_range(&mut self, numbers: Range<u32>) {
        self.begin(numbers.start);
        let (first, last) = (numbers.start / 64, (numbers.end - 1) / 64);
        for at in first..=last {
            let low = if at == first { numbers.start % 64 } else { 0 };
            let high = if at == last { (numbers.end - 1) % 64 } else { 63 };
            self.words[at as usize] |= (u64::MAX << low) & (u64::MAX >> (63 - high));
        }
        self.bounds.end = numbers.end;
        self.n += numbers.end - numbers.start;
    }

    fn begin(&mut self, number: u32) {
        if self.n == 0 {
            self.words.resize(WORDS, 0);
            self.bounds.start = number;
        }
    }

    /// Takes the members and their number; `None` if there are none.
    pub(super) fn take(&mut self) -> Option<(u32, Members)> {
        let (n, bounds) = (std::mem::take(&mut self.n), self.bounds.clone());
        if n == 0 {
            return None;
        }
        let is_range = n == bounds.end - bounds.start;
        let members = if is_range {
            Members::Range(bounds.clone())
        } else if n < LIST_LEN {
            Members::List(self.list(n))
        } else {
            let words: Box<[u64]> = self.words.as_slice().into();
            let mut n_before = 0;
            let groups = words.chunks(GROUP).map(|group| {
                let before = n_before;
                n_before += group.iter().map(|word| word.count_ones() as u16).sum::<u16>();
                before
            });
            let n_before = groups.collect();
            Members::Bits { words, n_before }
        };
        self.words[bounds.start as usize / 64..=(bounds.end as usize - 1) / 64].fill(0);
        Some((n, members))
    }

    fn list(&self, n: u32) -> Box<[u16]> {
        let mut list = Vec::with_capacity(n as usize);
        let mut at = self.bounds.start;
        while let Some(number) = next_bit(&self.words, at, 0) {
            list.push(number as u16);
            at = number + 1;
        }
        list.into()
    }
}
