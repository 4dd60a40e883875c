//! The blocks that the pieces of a read lie in, and the ranges to fetch for missing ones.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use super::block::{BlockId, ObjectId};
use crate::storage::Piece;

/// A file whose blocks may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) object: ObjectId,
    pub(super) size: u64,
}

/// A block that a read needs bytes of.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) file: &'a str,
    pub(super) id: BlockId,
    /// Its place in the file; the last block of a file ends with the file.
    pub(super) range: Range<u64>,
    parts: Vec<Part>,
}

/// The part of a block that belongs to a piece.
#[derive(Debug)]
struct Part {
    piece: usize,
    /// Its place in the block.
    from: Range<usize>,
    /// Its place in the output.
    at: usize,
}

/// A read, in blocks.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    /// By file and place.
    pub(super) blocks: Vec<Wanted<'a>>,
    /// Pieces to be read uncached, and their places in the output.
    pub(super) whole: Vec<(Piece<'a>, usize)>,
}

impl<'a> Plan<'a> {
    /// Cuts `pieces`, which lie one after another in `len` bytes of output, into blocks. Pieces of
    /// files that `known` does not know, and pieces that reach beyond their file, are read
    /// uncached.
    pub(super) fn new(
        pieces: &[Piece<'a>],
        len: usize,
        block_bytes: u64,
        known: impl Fn(&str) -> Option<Known>,
    ) -> io::Result<Self> {
        let mut blocks: BTreeMap<BlockId, Wanted<'a>> = BTreeMap::new();
        let mut whole = Vec::new();
        let mut at = 0_usize;
        for (idx, piece) in pieces.iter().enumerate() {
            let Range { start, end } = piece.range;
            let piece_len = end
                .checked_sub(start)
                .and_then(|len| usize::try_from(len).ok())
                .filter(|&piece_len| piece_len <= len - at)
                .ok_or(io::ErrorKind::InvalidInput)?;
            match known(piece.file) {
                Some(Known { object, size }) if end <= size => {
                    for number in start / block_bytes..end.div_ceil(block_bytes) {
                        let id = BlockId { object, idx: number };
                        let first = number * block_bytes;
                        let range = first..size.min(first.saturating_add(block_bytes));
                        let overlap = start.max(range.start)..end.min(range.end);
                        // An empty piece on the border of two blocks lies in neither.
                        if overlap.start >= overlap.end {
                            continue;
                        }
                        let part = Part {
                            piece: idx,
                            from: (overlap.start - first) as usize..(overlap.end - first) as usize,
                            at: at + (overlap.start - start) as usize,
                        };
                        let wanted = blocks.entry(id).or_insert_with(|| Wanted {
                            file: piece.file,
                            id,
                            range,
                            parts: Vec::new(),
                        });
                        wanted.parts.push(part);
                    }
                }
                _ => whole.push((piece.clone(), at)),
            }
            at += piece_len;
        }
        Ok(Self { blocks: blocks.into_values().collect(), whole })
    }

    /// Reads the pieces of all blocks uncached, and removes the blocks.
    pub(super) fn give_up_blocks(&mut self, pieces: &[Piece<'a>]) {
        let mut needs = vec![false; pieces.len()];
        for part in self.blocks.drain(..).flat_map(|block| block.parts) {
            needs[part.piece] = true;
        }
        let mut at = 0;
        for (piece, needs) in pieces.iter().zip(needs) {
            if needs {
                self.whole.push((piece.clone(), at));
            }
            at += (piece.range.end - piece.range.start) as usize;
        }
    }
}

impl Wanted<'_> {
    /// Bytes of the block.
    pub(super) fn len(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }

    /// Copies the wanted parts of the block's bytes to their places. Returns the number of bytes.
    pub(super) fn copy(&self, block: &[u8], into: &mut [u8]) -> u64 {
        let mut copied = 0;
        for Part { from, at, .. } in &self.parts {
            into[*at..at + from.len()].copy_from_slice(&block[from.clone()]);
            copied += from.len() as u64;
        }
        copied
    }
}

/// The ranges that hold `blocks`, which are in order. Blocks of a file at most `gap` bytes apart
/// are fetched as one range, with the bytes between.
pub(super) fn runs<'a: 'b, 'b>(
    blocks: impl IntoIterator<Item = &'b Wanted<'a>>,
    gap: u64,
) -> Vec<Piece<'a>> {
    let mut runs: Vec<Piece<'a>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(last)
                if last.file == block.file
                    && block.range.start >= last.range.end
                    && block.range.start - last.range.end <= gap =>
            {
                last.range.end = block.range.end;
            }
            _ => runs.push(Piece { file: block.file, range: block.range.clone() }),
        }
    }
    runs
}
