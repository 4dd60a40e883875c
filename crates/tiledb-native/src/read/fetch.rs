//! Fetches ranges of bytes, and joins neighbouring ones into one read.

use std::ops::Range;

use storage::{Expected, Files, Piece};

use crate::error::Error;
use crate::memory::reserve;

/// The reads for a list of pieces.
struct Joined<'a> {
    reads: Vec<Piece<'a>>,
    /// The place of each piece in the concatenated reads.
    places: Vec<Range<usize>>,
    /// Bytes of all reads.
    len: u64,
}

/// Joins neighbours, in the given order, that are at most `gap` bytes apart.
fn join<'a>(wanted: &[Piece<'a>], gap: u64) -> Joined<'a> {
    let mut reads: Vec<Piece<'a>> = Vec::new();
    let mut places = Vec::with_capacity(wanted.len());
    let mut len = 0_u64;
    for piece in wanted {
        let start = match reads.last_mut() {
            Some(last) if joins(last, piece, gap) => {
                // The place is relative to the end of the read so far.
                let start = len + piece.range.start - last.range.end;
                len += piece.range.end - last.range.end;
                last.range.end = piece.range.end;
                start
            }
            _ => {
                let start = len;
                len += piece.range.end - piece.range.start;
                reads.push(piece.clone());
                start
            }
        };
        places.push(start as usize..(start + piece.range.end - piece.range.start) as usize);
    }
    Joined { reads, places, len }
}

/// Reads `wanted` into `buffer`, which only grows. Returns the place of each piece in it, and the
/// number of bytes read.
pub(crate) fn fetch(
    files: &Files,
    wanted: &[Piece<'_>],
    buffer: &mut Vec<u8>,
) -> Result<(Vec<Range<usize>>, u64), Error> {
    let Joined { reads, places, len } = join(wanted, files.storage().coalesce().gap_bytes);
    if buffer.len() < len as usize {
        // The old contents are not needed: growing should not copy them.
        buffer.clear();
        reserve(buffer, len as usize).map_err(|fault| fault.in_file(files.place(), 0))?;
        buffer.resize(len as usize, 0);
    }
    files.read_into(&reads, &mut buffer[..len as usize])?;
    Ok((places, len))
}

/// Announces to a storage with prefetching that `wanted` will be fetched soon.
pub(super) fn announce(files: &Files, wanted: &[Piece<'_>], read: Expected) {
    let coalesce = files.storage().coalesce();
    // Also without pieces a read begins.
    if coalesce.prefetches() && (!wanted.is_empty() || read == Expected::Now) {
        files.storage().prefetch(&join(wanted, coalesce.gap_bytes).reads, read);
    }
}

/// Whether `next` begins inside `last` or shortly after it, and ends after it.
fn joins(last: &Piece<'_>, next: &Piece<'_>, gap: u64) -> bool {
    last.file == next.file
        && next.range.start >= last.range.start
        && next.range.end >= last.range.end
        && next.range.start <= last.range.end.saturating_add(gap)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use storage::LocalStorage;

    use super::*;

    proptest! {
        #[test]
        fn every_piece_is_where_it_is_said_to_be(pieces in prop::collection::vec((any::<bool>(), 0_u64..30_000, 1_u64..9_000), 1..12)) {
            let folder = tempfile::tempdir().unwrap();
            let bytes: Vec<u8> = (0..40_000_u32).map(|idx| (idx % 251) as u8).collect();
            std::fs::write(folder.path().join("a"), &bytes).unwrap();
            std::fs::write(folder.path().join("b"), &bytes).unwrap();
            let files = Files::new(Arc::new(LocalStorage::new(folder.path())));
            let wanted: Vec<_> = pieces.iter().map(|&(a, start, len)| Piece { file: if a { "a" } else { "b" }, range: start..start + len }).collect();
            let mut buffer = Vec::new();
            let (places, read) = fetch(&files, &wanted, &mut buffer).unwrap();
            prop_assert!(read <= buffer.len() as u64);
            for (piece, place) in wanted.iter().zip(places) {
                prop_assert_eq!(&buffer[place], &bytes[piece.range.start as usize..piece.range.end as usize]);
            }
        }
    }
}
