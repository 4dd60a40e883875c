//! Decodes rows of a page.

use bitpacking::{BitPacker as _, BitPacker4x};

use super::head::{Head, Kind};
use super::{Column, GROUP, Value, group_bytes};

/// Most bits of a number.
const MOST_BITS: u8 = 32;

/// The parts of a page.
struct Parts<'a> {
    first_keys: &'a [[u8; 4]],
    key_bits: &'a [u8],
    /// Empty if values are floats.
    value_bits: &'a [u8],
    /// Empty without a table.
    least: &'a [[u8; 4]],
    table: &'a [[u8; 4]],
    groups: &'a [u8],
    /// Empty if values are in the groups.
    floats: &'a [[u8; 4]],
}

impl<'a> Parts<'a> {
    /// Cuts a page whose head is `head`; `None` if it is too short.
    fn split(head: &Head, page: &'a [u8]) -> Option<Self> {
        let (nnz, n_groups) = (head.nnz(), head.nnz().div_ceil(GROUP));
        let (is_packed, has_table) = (head.kind != Kind::Floats, head.kind == Kind::Table);
        let mut rest = page.get(head.len()..)?;
        let mut take = |len: usize, is_there: bool| {
            let (part, others) = rest.split_at_checked(if is_there { len } else { 0 })?;
            rest = others;
            Some(part)
        };
        let first_keys = take(4 * n_groups, true)?.as_chunks().0;
        let key_bits = take(n_groups, true)?;
        let value_bits = take(n_groups, is_packed)?;
        let least = take(4 * n_groups, has_table)?.as_chunks().0;
        let table = take(4 * head.n_table as usize, has_table)?.as_chunks().0;
        let bits = key_bits.iter().chain(value_bits);
        if bits.clone().any(|bits| *bits > MOST_BITS) {
            return None;
        }
        let groups = take(bits.map(|bits| group_bytes(*bits)).sum(), true)?;
        let floats = take(4 * nnz, !is_packed)?.as_chunks().0;
        Some(Self { first_keys, key_bits, value_bits, least, table, groups, floats })
    }
}

/// Decodes groups one after another.
struct Groups<'a> {
    parts: Parts<'a>,
    packer: BitPacker4x,
    /// The group that is decoded, after a first one.
    current: Option<usize>,
    /// The next group, and where it begins.
    next: usize,
    start: usize,
    keys: [u32; GROUP],
    values: [u32; GROUP],
}

impl Groups<'_> {
    /// Decodes a group that is not before those decoded so far.
    fn decode(&mut self, group: usize) -> Option<()> {
        if self.current == Some(group) {
            return Some(());
        }
        let bits = |bits: &[u8], group: usize| bits.get(group).copied().unwrap_or(0);
        let Parts { key_bits, value_bits, groups, .. } = &self.parts;
        while self.next < group {
            self.start += group_bytes(bits(key_bits, self.next));
            self.start += group_bytes(bits(value_bits, self.next));
            self.next += 1;
        }
        let key_bits = *key_bits.get(group)?;
        let first = u32::from_le_bytes(*self.parts.first_keys.get(group)?);
        let (keys, rest) = groups.get(self.start..)?.split_at_checked(group_bytes(key_bits))?;
        self.packer.decompress_sorted(first, keys, &mut self.keys, key_bits);
        if let Some(value_bits) = value_bits.get(group) {
            let values = rest.get(..group_bytes(*value_bits))?;
            self.packer.decompress(values, &mut self.values, *value_bits);
        }
        self.current = Some(group);
        Some(())
    }
}

/// Decodes `rows` of a page, all of which it has, into columns and values that have their place for
/// each. `None` if the page is damaged, or its values do not fit the type.
pub(crate) fn unpack<C: Column, V: Value>(
    head: &Head,
    page: &[u8],
    n_columns: usize,
    rows: u64,
    mut columns: &mut [C],
    mut values: &mut [V],
) -> Option<()> {
    if head.kind != Kind::Counts && !V::IS_FLOAT {
        return None;
    }
    let parts = Parts::split(head, page)?;
    let mut groups = Groups {
        parts,
        packer: BitPacker4x::new(),
        current: None,
        next: 0,
        start: 0,
        keys: [0; GROUP],
        values: [0; GROUP],
    };
    for (row, place) in head.places(rows) {
        let base = row.wrapping_mul(n_columns as u32);
        let mut at = place.start;
        while at < place.end {
            let group = at / GROUP;
            groups.decode(group)?;
            let end = place.end.min((group + 1) * GROUP);
            let within = at - group * GROUP..end - group * GROUP;
            let to_columns = columns.split_off_mut(..within.len())?;
            let to_values = values.split_off_mut(..within.len())?;
            let keys = &groups.keys[within.clone()];
            let most = keys.iter().map(|key| key.wrapping_sub(base)).fold(0, u32::max);
            if u64::from(most) >= n_columns as u64 {
                return None;
            }
            let places = to_columns.iter_mut().zip(keys);
            places.for_each(|(to, key)| *to = C::from_u32(key.wrapping_sub(base)));
            let packed = &groups.values[within];
            let Parts { least, table, floats, .. } = &groups.parts;
            match head.kind {
                Kind::Counts => {
                    to_values.iter_mut().zip(packed).for_each(|(to, &n)| *to = V::of_count(n));
                }
                Kind::Table => {
                    let least = u32::from_le_bytes(*least.get(group)?);
                    for (to, place) in to_values.iter_mut().zip(packed) {
                        let bits = table.get(least.wrapping_add(*place) as usize)?;
                        *to = V::of_float(f32::from_le_bytes(*bits));
                    }
                }
                Kind::Floats => {
                    let floats = floats.get(at..end)?.iter();
                    let floats = floats.map(|bits| f32::from_le_bytes(*bits));
                    to_values
                        .iter_mut()
                        .zip(floats)
                        .for_each(|(to, value)| *to = V::of_float(value));
                }
            }
            at = end;
        }
    }
    Some(())
}
