//! Joins ranges of one file that lie close together, and splits long ones: the requests for a list
//! of ranges.

use std::ops::Range;

use crate::storage::Piece;

use super::pace::Pace;

/// The bytes of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined<'a> {
    pub(super) file: &'a str,
    pub(super) range: Range<u64>,
    /// The wanted ranges among them; the last one may go on in the next request.
    pub(super) wanted: Vec<Range<u64>>,
}

/// The requests for `pieces`, in about their order. Neighbours that ascend in one file are joined
/// if no `is_taken` lies between them, and their gap is worth it.
pub(super) fn join<'a>(
    pieces: &[Piece<'a>],
    (pace, most_bytes): (&Pace, u64),
    is_taken: impl Fn(&str, &Range<u64>) -> bool,
) -> Vec<Joined<'a>> {
    let pieces: Vec<&Piece<'a>> =
        pieces.iter().filter(|piece| piece.range.start < piece.range.end).collect();
    let gap = |before: &Piece<'_>, after: &Piece<'_>| {
        let gap = after.range.start.checked_sub(before.range.end)?;
        (before.file == after.file).then_some(gap)
    };
    let most_gap = pace.gap_bytes();
    let part_bytes = pace.part_bytes().min(most_bytes).max(1);
    let mut out: Vec<Joined<'a>> = Vec::new();
    for (idx, piece) in pieces.iter().enumerate() {
        let joins = idx.checked_sub(1).and_then(|before| gap(pieces[before], piece));
        let joins = joins.is_some_and(|gap| gap <= most_gap);
        if joins
            && let Some(last) = out.last_mut()
            && piece.range.end - last.range.start <= part_bytes
            && !is_taken(piece.file, &(last.range.end..piece.range.start))
        {
            last.range.end = piece.range.end;
            last.wanted.push(piece.range.clone());
            continue;
        }
        let len = piece.range.end - piece.range.start;
        let n_parts = len.div_ceil(part_bytes);
        for part in 0..n_parts {
            // Parts have about equal length.
            let at = |part: u64| {
                piece.range.start
                    + (u128::from(len) * u128::from(part) / u128::from(n_parts)) as u64
            };
            let range = at(part)..at(part + 1);
            out.push(Joined { file: piece.file, wanted: vec![range.clone()], range });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::ObjectOptions;
    use crate::object::pace::Link;

    fn pace(request_bytes: u64, gap_bytes: u64) -> Pace {
        let bounds = ObjectOptions { request_bytes, gap_bytes, ..ObjectOptions::default() };
        Pace { link: Link::default(), bounds }
    }

    proptest! {
        #[test]
        fn every_wanted_byte_is_in_exactly_one_request(
            ranges in prop::collection::vec((0..2_u8, 0..50_u64, 1..90_u64), 0..40),
            request_bytes in 1..200_u64, gap_bytes in 0..60_u64, most in 1..200_u64, taken in 0..3000_u64,
        ) {
            let (mut at, mut pieces) = ([0, 0], Vec::new());
            for (file, gap, len) in ranges {
                let start = at[file as usize] + gap;
                at[file as usize] = start + len;
                pieces.push(Piece { file: ["a", "b"][file as usize], range: start..start + len });
            }
            let is_taken = |_: &str, gap: &Range<u64>| gap.contains(&taken);
            let joined = join(&pieces, (&pace(request_bytes, gap_bytes), most), is_taken);
            let bytes = |file: &str, ranges: &mut dyn Iterator<Item = Range<u64>>| {
                let mut bytes: Vec<(String, u64)> = Vec::new();
                ranges.for_each(|range| bytes.extend(range.map(|at| (file.to_owned(), at))));
                bytes
            };
            let expect: Vec<_> = pieces.iter()
                .flat_map(|piece| bytes(piece.file, &mut std::iter::once(piece.range.clone()))).collect();
            let found: Vec<_> = joined.iter()
                .flat_map(|one| bytes(one.file, &mut one.wanted.iter().cloned())).collect();
            prop_assert_eq!(found, expect);
            for one in &joined {
                prop_assert!(one.range.end - one.range.start <= request_bytes.min(most));
                prop_assert_eq!(one.range.start, one.wanted[0].start);
                prop_assert_eq!(one.range.end, one.wanted[one.wanted.len() - 1].end);
                for pair in one.wanted.windows(2) {
                    prop_assert!(pair[1].start - pair[0].end <= gap_bytes);
                    prop_assert!(!(pair[0].end..pair[1].start).contains(&taken));
                }
            }
        }
    }

    #[test]
    fn neighbours_are_joined_and_long_ranges_split() {
        let pieces = [0..10, 15..20, 40..75].map(|range| Piece { file: "a", range });
        let joined = join(&pieces, (&pace(30, 10), 100), |_, _| false);
        let ranges: Vec<_> = joined.into_iter().map(|one| one.range).collect();
        assert_eq!(ranges, [0..20, 40..57, 57..75]);
    }
}
