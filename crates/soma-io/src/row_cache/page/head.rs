//! The beginning of a page: which rows it has, and how many values each.

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

/// Bytes before the rows' lengths.
const FIXED_BYTES: usize = 40;
/// Most bytes of a head.
pub(crate) const MOST_HEAD_BYTES: usize = FIXED_BYTES + 4 * super::MOST_ROWS as usize;
const MAGIC: [u8; 8] = *b"rowspage";
/// Format of pages. Pages of another format have other names.
pub(crate) const FORMAT: u32 = 1;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers below 65,536, packed.
    Counts = 1,
    /// Places in a table, packed.
    Table = 2,
    /// The bits of floats.
    Floats = 3,
}

/// The beginning of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bit `i` is set if the page has its row `i`.
    pub(crate) rows: u64,
    pub(crate) kind: Kind,
    /// Different values in the table.
    pub(crate) n_table: u32,
    /// How often the page was written, each time with more rows.
    pub(crate) n_writes: u32,
    /// Number of values of each row that the page has.
    pub(crate) lengths: Vec<u32>,
}

impl Head {
    /// Its bytes: magic, format, kind, rows, size of the table, number of writes, checksum,
    /// lengths.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut fixed = [0; FIXED_BYTES];
        fixed[..8].copy_from_slice(&MAGIC);
        fixed[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        fixed[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        fixed[16..24].copy_from_slice(&self.rows.to_le_bytes());
        fixed[24..28].copy_from_slice(&self.n_table.to_le_bytes());
        fixed[28..32].copy_from_slice(&self.n_writes.to_le_bytes());
        let lengths: Vec<u8> =
            self.lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
        let checksum = checksum(&fixed[..32], &lengths);
        fixed[32..].copy_from_slice(&checksum.to_le_bytes());
        [&fixed[..], &lengths].concat()
    }

    /// Parses the head at the beginning of `page`; `None` if there is none, or it is damaged.
    pub(crate) fn parse(page: &[u8]) -> Option<Self> {
        let (fixed, rest) = page.split_first_chunk::<FIXED_BYTES>()?;
        let rows = u64::from_le_bytes(*fixed[16..].first_chunk()?);
        let lengths = rest.get(..4 * rows.count_ones() as usize)?;
        let number = |at: usize| fixed[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let is_ours = fixed[..8] == MAGIC
            && number(8)? == FORMAT
            && fixed[32..] == checksum(&fixed[..32], lengths).to_le_bytes();
        let kind = match number(12)? {
            1 => Kind::Counts,
            2 => Kind::Table,
            3 => Kind::Floats,
            _ => return None,
        };
        let (lengths, _) = lengths.as_chunks();
        let lengths = lengths.iter().map(|length| u32::from_le_bytes(*length)).collect();
        let (n_table, n_writes) = (number(24)?, number(28)?);
        is_ours.then_some(Self { rows, kind, n_table, n_writes, lengths })
    }

    /// Bytes of the head.
    pub(super) fn len(&self) -> usize {
        FIXED_BYTES + 4 * self.lengths.len()
    }

    /// The number of values.
    pub(crate) fn nnz(&self) -> usize {
        self.lengths.iter().map(|length| *length as usize).sum()
    }

    /// Whether both have `rows`, of the same lengths.
    pub(crate) fn has_same_rows(&self, other: &Self, rows: u64) -> bool {
        let lengths = |head: &Self| -> Vec<usize> {
            head.places(rows).map(|(_, place)| place.len()).collect()
        };
        (self.rows & other.rows & rows) == rows && lengths(self) == lengths(other)
    }

    /// Number and values of each row of `rows`, all of which the page has.
    pub(crate) fn places(&self, rows: u64) -> impl Iterator<Item = (u32, std::ops::Range<usize>)> {
        let mut end = 0;
        bits(self.rows)
            .zip(&self.lengths)
            .map(move |(row, length)| {
                let start = end;
                end += *length as usize;
                (row, start..end)
            })
            .filter(move |(row, _)| rows >> row & 1 == 1)
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        bit
    })
}

fn checksum(fixed: &[u8], lengths: &[u8]) -> u64 {
    let mut hasher = XxHash3_64::new();
    hasher.write(fixed);
    hasher.write(lengths);
    hasher.finish()
}
