//! Joins neighbouring ranges of bytes into one read.

use std::ops::Range;

use storage::Piece;

/// The reads for a list of pieces.
#[derive(Debug)]
pub(crate) struct Joined<'a> {
    pub(crate) reads: Vec<Piece<'a>>,
    /// The place of each piece in the concatenated reads.
    pub(crate) places: Vec<Range<usize>>,
    /// Bytes of all reads.
    pub(crate) n_bytes: usize,
}

/// Joins neighbours of one file, in the given order, that are at most `gap` bytes apart.
///
/// The pieces have no more bytes than memory has addresses.
pub(crate) fn join<'a>(wanted: impl Iterator<Item = Piece<'a>>, gap: u64) -> Joined<'a> {
    let mut joined = Joined { reads: Vec::new(), places: Vec::new(), n_bytes: 0 };
    for piece in wanted {
        let n_bytes = (piece.range.end - piece.range.start) as usize;
        let start = match joined.reads.last_mut() {
            Some(last) if joins(last, &piece, gap) => {
                joined.n_bytes += (piece.range.end - last.range.end) as usize;
                last.range.end = piece.range.end;
                joined.n_bytes - n_bytes
            }
            _ => {
                joined.reads.push(piece);
                joined.n_bytes += n_bytes;
                joined.n_bytes - n_bytes
            }
        };
        joined.places.push(start..start + n_bytes);
    }
    joined
}

/// Whether `next` begins at the end of `last` or shortly after it.
fn joins(last: &Piece<'_>, next: &Piece<'_>, gap: u64) -> bool {
    last.file == next.file
        && next.range.start >= last.range.end
        && next.range.start - last.range.end <= gap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_read_and_pieces_keep_their_places() {
        let pieces =
            [("a", 0..10), ("a", 10..20), ("a", 24..30), ("a", 50..51), ("b", 51..60), ("b", 3..5)];
        let pieces = pieces.map(|(file, range)| Piece { file, range });
        let joined = join(pieces.into_iter(), 4);
        let reads: Vec<_> = joined.reads.iter().map(|read| (read.file, &read.range)).collect();
        assert_eq!(reads, [("a", &(0..30)), ("a", &(50..51)), ("b", &(51..60)), ("b", &(3..5))]);
        assert_eq!(joined.places, [0..10, 10..20, 24..30, 30..31, 31..40, 40..42]);
        assert_eq!(joined.n_bytes, 42);
    }
}
