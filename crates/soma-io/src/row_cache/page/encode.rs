//! Encodes rows as a page.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bitpacking::{BitPacker as _, BitPacker4x};
use csr::pack_counts;

use super::head::{Head, Kind};
use super::{Column, GROUP, Value, group_bytes};

/// A table is used if a page has this many times as many values as different ones.
const TABLE_WORTH: usize = 4;

/// Rows of a page on their way to disk, by number.
#[derive(Debug, Default)]
pub(crate) struct PageRows {
    rows: u64,
    n_writes: u32,
    lengths: Vec<u32>,
    keys: Vec<u32>,
    values: Vec<f32>,
}

/// Memory for encoding, reused from page to page.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    counts: Vec<u16>,
    table: HashMap<u32, u32, BuildHasherDefault<BitsHasher>>,
    /// The place of each value in the table.
    places: Vec<u32>,
}

impl PageRows {
    /// Removes all rows and keeps the memory, for a page that was written so often before.
    pub(crate) fn begin(&mut self, n_writes: u32) {
        self.rows = 0;
        self.n_writes = n_writes.saturating_add(1);
        self.lengths.clear();
        self.keys.clear();
        self.values.clear();
    }

    /// Adds a row, whose number is above those of the rows before.
    pub(crate) fn add<C: Column, V: Value>(
        &mut self,
        row: u32,
        n_columns: usize,
        columns: &[C],
        values: &[V],
    ) {
        let base = row.wrapping_mul(n_columns as u32);
        self.rows |= 1 << row;
        self.lengths.push(values.len() as u32);
        self.keys.extend(columns.iter().map(|column| base.wrapping_add(column.get())));
        self.values.extend(values.iter().map(|value| value.float()));
    }
}

impl Encoder {
    /// The page of these rows.
    pub(crate) fn encode(&mut self, rows: &PageRows) -> Vec<u8> {
        let PageRows { rows: mask, n_writes, lengths, keys, values } = rows;
        let kind = self.kind_of(values);
        let table = match kind {
            Kind::Table => self.sorted_table(),
            Kind::Counts | Kind::Floats => Vec::new(),
        };
        let head = Head {
            rows: *mask,
            kind,
            n_table: table.len() as u32,
            n_writes: *n_writes,
            lengths: lengths.clone(),
        };
        let (packer, n_groups) = (BitPacker4x::new(), keys.len().div_ceil(GROUP));
        let mut first_keys = Vec::with_capacity(4 * n_groups);
        let (mut key_bits, mut value_bits) = (Vec::new(), Vec::new());
        let (mut least, mut groups) = (Vec::new(), Vec::with_capacity(keys.len() * 2));
        let mut group = [0; GROUP];
        let mut before: u32 = 0;
        for (idx, keys) in keys.chunks(GROUP).enumerate() {
            group[..keys.len()].copy_from_slice(keys);
            let last = group[keys.len() - 1];
            group[keys.len()..].fill(last);
            first_keys.extend(before.to_le_bytes());
            let bits = packer.num_bits_sorted(before, &group);
            put(&mut groups, bits, |to| packer.compress_sorted(before, &group, to, bits));
            key_bits.push(bits);
            before = last;
            let places = idx * GROUP..idx * GROUP + keys.len();
            let of_values = &mut group[..keys.len()];
            match kind {
                Kind::Floats => continue,
                Kind::Counts => {
                    let counts = self.counts[places].iter().copied().map(u32::from);
                    of_values.iter_mut().zip(counts).for_each(|(to, count)| *to = count);
                }
                Kind::Table => {
                    let places = &self.places[places];
                    let lowest = places.iter().copied().min().unwrap_or(0);
                    least.extend(lowest.to_le_bytes());
                    of_values.iter_mut().zip(places).for_each(|(to, place)| *to = place - lowest);
                }
            }
            group[keys.len()..].fill(0);
            let bits = packer.num_bits(&group);
            put(&mut groups, bits, |to| packer.compress(&group, to, bits));
            value_bits.push(bits);
        }
        let mut page = head.bytes();
        for part in [first_keys, key_bits, value_bits, least] {
            page.extend(part);
        }
        page.extend(table.iter().flat_map(|bits| bits.to_le_bytes()));
        page.extend(groups);
        if kind == Kind::Floats {
            page.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        page
    }

    /// Chooses how values are stored, and converts them.
    fn kind_of(&mut self, values: &[f32]) -> Kind {
        self.counts.resize(values.len(), 0);
        if pack_counts(values.iter().copied(), &mut self.counts) {
            return Kind::Counts;
        }
        self.table.clear();
        self.places.clear();
        let most = values.len() / TABLE_WORTH;
        for value in values {
            let next = self.table.len() as u32;
            self.places.push(*self.table.entry(value.to_bits()).or_insert(next));
            if self.table.len() > most {
                return Kind::Floats;
            }
        }
        Kind::Table
    }

    /// The bits of each value of the table, by place.
    fn sorted_table(&self) -> Vec<u32> {
        let mut table = vec![0; self.table.len()];
        for (bits, place) in &self.table {
            table[*place as usize] = *bits;
        }
        table
    }
}

/// Appends a group of numbers of `bits` bits each, which `write` writes.
fn put(groups: &mut Vec<u8>, bits: u8, write: impl FnOnce(&mut [u8]) -> usize) {
    let start = groups.len();
    groups.resize(start + group_bytes(bits), 0);
    write(&mut groups[start..]);
}

/// Hashes the bits of floats fast. A page has few different values, and nobody chooses them to
/// collide.
#[derive(Debug, Default)]
pub(crate) struct BitsHasher(u64);

impl Hasher for BitsHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, bits: u32) {
        let mixed = (self.0 ^ u64::from(bits)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
