//! Rounds a table of shares to whole rows, so that each entry, line sum and column sum is rounded
//! to a neighbouring whole number.
//!
//! Entries are parts of a row, below [`WHOLE`]; each line and each column sums to whole rows. As
//! long as some entries are neither 0 nor a whole row, some of them form a cycle, with two entries
//! in each line and column that it passes. Adding an amount to every other entry of the cycle and
//! subtracting it from those between keeps all sums, up to the amount that makes an entry whole.
//! The choice of the entries to add to is random and keeps each entry's expectation: Cox, "A
//! Constructive Procedure for Unbiased Controlled Rounding" (1987).
//!
//! Lines are added one by one, and cycles are removed at once. Without a cycle there are fewer open
//! lines than columns, so the work per line does not grow with their number.

use rand_chacha::ChaCha8Rng;

use super::parts::WHOLE;
use crate::random::below;

/// A line with entries that are not whole yet.
#[derive(Debug)]
struct Line {
    line_idx: usize,
    entries: Vec<u64>,
}

/// An entry, by its place in the open lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    open_idx: usize,
    column: usize,
}

/// Rounds lines of remainders; `rounded[line_idx][column]` is true if the entry became a row.
///
/// Every line sums to a multiple of [`WHOLE`], and so does every column over all lines. Entries
/// must be below [`WHOLE`].
pub(super) fn round_lines(
    generator: &mut ChaCha8Rng,
    lines: impl Iterator<Item = Vec<u64>>,
) -> Vec<Vec<bool>> {
    let mut open: Vec<Line> = Vec::new();
    let mut rounded = Vec::new();
    for (line_idx, entries) in lines.enumerate() {
        rounded.push(Vec::new());
        open.push(Line { line_idx, entries });
        loop {
            close_whole_lines(&mut open, &mut rounded);
            let Some(cycle) = find_cycle(&open) else { break };
            shift(generator, &mut open, &cycle);
        }
    }
    rounded
}

fn is_part(entry: u64) -> bool {
    entry != 0 && entry != WHOLE
}

fn close_whole_lines(open: &mut Vec<Line>, rounded: &mut [Vec<bool>]) {
    open.retain(|line| {
        let has_parts = line.entries.iter().any(|entry| is_part(*entry));
        if !has_parts {
            rounded[line.line_idx] = line.entries.iter().map(|entry| *entry == WHOLE).collect();
        }
        has_parts
    });
}

/// A cycle of entries that are parts of a row: two neighbours share a line, the next two a column,
/// and so on.
///
/// Only the last line is new, and the others have no cycle among them, so the cycle passes through
/// the last line, by two of its entries whose columns the other lines connect.
fn find_cycle(open: &[Line]) -> Option<Vec<Place>> {
    let (last, others) = open.split_last()?;
    let mut is_goal: Vec<bool> = last.entries.iter().map(|entry| is_part(*entry)).collect();
    for from in 0..is_goal.len() {
        if !is_goal[from] {
            continue;
        }
        // A later search need not come back here: it would have been found now.
        is_goal[from] = false;
        let place = |column: usize| Place { open_idx: others.len(), column };
        let mut path = vec![place(from)];
        if let Some(to) = connect(others, from, &is_goal, &mut vec![false; others.len()], &mut path)
        {
            path.push(place(to));
            return Some(path);
        }
    }
    None
}

/// Walks from column `from` to the first goal column that the lines connect with it, and leaves the
/// entries on the way in `path`.
fn connect(
    lines: &[Line],
    from: usize,
    is_goal: &[bool],
    is_passed: &mut [bool],
    path: &mut Vec<Place>,
) -> Option<usize> {
    for (open_idx, line) in lines.iter().enumerate() {
        if is_passed[open_idx] || !is_part(line.entries[from]) {
            continue;
        }
        is_passed[open_idx] = true;
        for column in (0..line.entries.len())
            .filter(|column| *column != from && is_part(line.entries[*column]))
        {
            let n_before = path.len();
            path.extend([Place { open_idx, column: from }, Place { open_idx, column }]);
            if is_goal[column] {
                return Some(column);
            }
            if let Some(to) = connect(lines, column, is_goal, is_passed, path) {
                return Some(to);
            }
            path.truncate(n_before);
        }
    }
    None
}

/// Makes at least one entry of the cycle whole.
fn shift(generator: &mut ChaCha8Rng, open: &mut [Line], cycle: &[Place]) {
    let entry = |place: &Place| open[place.open_idx].entries[place.column];
    let (mut even_up, mut even_down) = (WHOLE, WHOLE);
    for (idx, place) in cycle.iter().enumerate() {
        let (to_whole, to_nothing) = (WHOLE - entry(place), entry(place));
        let (up, down) = if idx % 2 == 0 { (to_whole, to_nothing) } else { (to_nothing, to_whole) };
        even_up = even_up.min(up);
        even_down = even_down.min(down);
    }
    // The longer step is taken less often, which keeps the expectation of each entry.
    let is_even_up = below(generator, even_up + even_down) < even_down;
    for (idx, place) in cycle.iter().enumerate() {
        let entry = &mut open[place.open_idx].entries[place.column];
        match (idx % 2 == 0, is_even_up) {
            (true, true) => *entry += even_up,
            (false, true) => *entry -= even_up,
            (true, false) => *entry -= even_down,
            (false, false) => *entry += even_down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{SplitDecision, split_generator};

    /// Uses lines of thirds, so that no column is whole before the third line.
    #[test]
    fn lines_and_columns_keep_their_sums() {
        let third = WHOLE / 3;
        let line = vec![third, third, WHOLE - 2 * third];
        let turned = vec![WHOLE - 2 * third, third, third];
        let back = vec![third, WHOLE - 2 * third, third];
        for seed in 0..50 {
            let mut generator = split_generator(seed, SplitDecision::Sizes);
            let rounded = round_lines(
                &mut generator,
                [line.clone(), turned.clone(), back.clone()].into_iter(),
            );
            for line_idx in 0..3 {
                assert_eq!(
                    rounded[line_idx].iter().filter(|is_row| **is_row).count(),
                    1,
                    "{rounded:?}"
                );
                assert_eq!(rounded.iter().filter(|line| line[line_idx]).count(), 1, "{rounded:?}");
            }
        }
    }

    #[test]
    fn whole_entries_stay() {
        let mut generator = split_generator(0, SplitDecision::Sizes);
        let rounded = round_lines(&mut generator, [vec![0, 0], vec![0, 0]].into_iter());
        assert_eq!(rounded, [[false, false], [false, false]]);
    }
}
