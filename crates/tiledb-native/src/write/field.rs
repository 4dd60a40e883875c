//! The metadata of one field of a fragment: an attribute, a dimension, or the obsolete zipped
//! coordinates.

use super::footer::put_all;
use super::statistics::Statistics;
use crate::datatype::Number;

/// Kind of a field, which decides its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An attribute; without a type if its values have neither order nor sum.
    Attribute { number: Option<Number>, is_nullable: bool },
    /// The zipped coordinates of old formats: zeros for this many dimensions.
    Obsolete { n_dimensions: usize },
    /// A dimension, whose bounds are in the tree of rectangles.
    Dimension { number: Number },
}

/// A field, tile by tile.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) kind: Kind,
    /// The beginning of each tile in the file of values; for values of variable size, of offsets.
    pub(super) offsets: Vec<u64>,
    /// The beginning of each tile in the file of values of variable size.
    pub(super) var_offsets: Vec<u64>,
    /// The bytes of the values of variable size of each tile, before filtering.
    pub(super) var_sizes: Vec<u64>,
    /// The beginning of each tile in the file of validity.
    pub(super) validity_offsets: Vec<u64>,
    pub(super) statistics: Vec<Statistics>,
    /// The lengths of the files: values or offsets; values of variable size; validity.
    pub(super) file_bytes: [u64; 3],
}

impl Field {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            offsets: Vec::new(),
            var_offsets: Vec::new(),
            var_sizes: Vec::new(),
            validity_offsets: Vec::new(),
            statistics: Vec::new(),
            file_bytes: [0; 3],
        }
    }

    /// The obsolete coordinates of `n_tiles` tiles.
    pub(super) fn obsolete(n_dimensions: usize, n_tiles: usize) -> Self {
        let mut field = Self::new(Kind::Obsolete { n_dimensions });
        (0..n_tiles).for_each(|_| field.add([0; 3], 0, Statistics::default()));
        field
    }

    /// Adds a tile: its beginnings in the three files, and the bytes of its values of variable
    /// size. What the field does not have is 0.
    pub(super) fn add(
        &mut self,
        [offset, var_offset, validity_offset]: [u64; 3],
        var_bytes: u64,
        statistics: Statistics,
    ) {
        self.offsets.push(offset);
        self.var_offsets.push(var_offset);
        self.var_sizes.push(var_bytes);
        self.validity_offsets.push(validity_offset);
        self.statistics.push(statistics);
    }

    /// The least value of each tile, one after another; none if the field has no order. The first
    /// tile has `of_first` cells, and so have all others but the last.
    pub(super) fn least(&self, of_first: u64) -> Vec<u8> {
        self.ends(of_first, |tile| tile.least)
    }

    /// The greatest values, like [`Self::least`].
    pub(super) fn greatest(&self, of_first: u64) -> Vec<u8> {
        self.ends(of_first, |tile| tile.greatest)
    }

    fn ends(&self, of_first: u64, end: fn(&Statistics) -> u64) -> Vec<u8> {
        match self.kind {
            Kind::Attribute { number: Some(number), .. } => {
                // libtiledb writes zeros for a tile of nothing but nulls, except for a last tile
                // with fewer cells than others: it takes all tiles to be as long as the first.
                let is_empty = |tile: &Statistics| tile.n_nulls == of_first;
                let ends =
                    self.statistics.iter().map(|tile| if is_empty(tile) { 0 } else { end(tile) });
                ends.flat_map(|end| bytes(number, end)).collect()
            }
            Kind::Obsolete { n_dimensions } => vec![0; 8 * n_dimensions * self.offsets.len()],
            Kind::Attribute { number: None, .. } | Kind::Dimension { .. } => Vec::new(),
        }
    }

    /// The sum of each tile; none if the field has no sums.
    pub(super) fn sums(&self) -> Vec<u64> {
        if matches!(self.kind, Kind::Attribute { number: None, .. }) {
            return Vec::new();
        }
        self.statistics.iter().map(|tile| tile.sum).collect()
    }

    /// The number of nulls of each tile; none if the field is not nullable.
    pub(super) fn null_counts(&self) -> Vec<u64> {
        if !matches!(self.kind, Kind::Attribute { is_nullable: true, .. }) {
            return Vec::new();
        }
        self.statistics.iter().map(|tile| tile.n_nulls).collect()
    }

    /// Appends the least and the greatest value, each after its length, the sum and the number of
    /// nulls of all tiles, which have these numbers of cells.
    pub(super) fn put_whole(&self, n_cells: &[u64], out: &mut Vec<u8>) {
        let tiles: Vec<_> = self.statistics.iter().copied().zip(n_cells.iter().copied()).collect();
        let (number, has_ends) = match self.kind {
            Kind::Attribute { number, .. } => (number, number.is_some()),
            Kind::Dimension { number } => (Some(number), false),
            // They have the type of the first dimension, which is written as 64 bits.
            Kind::Obsolete { .. } => (Some(Number::I64), true),
        };
        let whole = match number {
            Some(number) => Statistics::of_tiles(number, &tiles),
            None => Statistics {
                n_nulls: tiles.iter().map(|(tile, _)| tile.n_nulls).sum(),
                ..Statistics::default()
            },
        };
        for end in [whole.least, whole.greatest] {
            let end = number.filter(|_| has_ends).map_or(Vec::new(), |number| bytes(number, end));
            put_all(&[end.len() as u64], out);
            out.extend_from_slice(&end);
        }
        put_all(&[whole.sum, whole.n_nulls], out);
    }
}

/// A value's bytes.
fn bytes(number: Number, bits: u64) -> Vec<u8> {
    bits.to_le_bytes()[..number.size()].to_vec()
}
