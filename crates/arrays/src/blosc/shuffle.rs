//! Bytes and bits of elements in another order, before compression and after decompression.

use std::array;

/// Undoes the byte shuffle: `shuffled` has the first bytes of all elements, then the second ones,
/// and so on. Bytes after the last whole element stay where they are. Both slices have the same
/// length.
pub(super) fn unshuffle_bytes(element_bytes: usize, shuffled: &[u8], into: &mut [u8]) {
    match element_bytes {
        2 => unshuffle(shuffled, into, pairs),
        4 => unshuffle(shuffled, into, quadruples),
        8 => unshuffle(shuffled, into, octuples),
        _ => unshuffle_any(element_bytes, shuffled, into),
    }
}

/// Elements that are put together at once: all that is between bytes and elements stays in the
/// first-level cache. Loops over two sources are what the compiler makes vector instructions of,
/// twice as fast for four bytes as one loop over four sources.
const RUN: usize = 256;

/// [`unshuffle_bytes`], run by run: `join` puts the bytes of a run's elements together.
fn unshuffle<const N: usize>(
    shuffled: &[u8],
    into: &mut [u8],
    join: impl Fn([&[u8]; N], &mut [[u8; N]]),
) {
    let (elements, rest) = into.as_chunks_mut::<N>();
    let n_elements = elements.len();
    for (idx, run) in elements.chunks_mut(RUN).enumerate() {
        let bytes = array::from_fn(|at| &shuffled[at * n_elements + idx * RUN..][..run.len()]);
        join(bytes, run);
    }
    rest.copy_from_slice(&shuffled[N * n_elements..]);
}

fn pairs([low, high]: [&[u8]; 2], into: &mut [[u8; 2]]) {
    for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
        *into = [*low, *high];
    }
}

fn quadruples([a, b, c, d]: [&[u8]; 4], into: &mut [[u8; 4]]) {
    let [mut low, mut high] = [[0; RUN]; 2];
    join_u8([a, b], &mut low);
    join_u8([c, d], &mut high);
    for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
        *into = (u32::from(low) | u32::from(high) << 16).to_le_bytes();
    }
}

fn octuples(bytes: [&[u8]; 8], into: &mut [[u8; 8]]) {
    let mut words = [[0; RUN]; 4];
    for (word, pair) in words.iter_mut().zip(bytes.as_chunks::<2>().0) {
        join_u8(*pair, word);
    }
    let [mut low, mut high] = [[0; RUN]; 2];
    join_u16([&words[0], &words[1]], &mut low);
    join_u16([&words[2], &words[3]], &mut high);
    for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
        *into = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
    }
}

fn join_u8([low, high]: [&[u8]; 2], into: &mut [u16; RUN]) {
    for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
        *into = u16::from_le_bytes([*low, *high]);
    }
}

fn join_u16([low, high]: [&[u16; RUN]; 2], into: &mut [u32; RUN]) {
    for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
        *into = u32::from(*low) | u32::from(*high) << 16;
    }
}

fn unshuffle_any(element_bytes: usize, shuffled: &[u8], into: &mut [u8]) {
    let n_elements = into.len() / element_bytes;
    let (values, rest) = into.split_at_mut(n_elements * element_bytes);
    for at in 0..element_bytes {
        let plane = &shuffled[at * n_elements..(at + 1) * n_elements];
        for (element, byte) in values.chunks_exact_mut(element_bytes).zip(plane) {
            element[at] = *byte;
        }
    }
    rest.copy_from_slice(&shuffled[n_elements * element_bytes..]);
}

/// Applies the byte shuffle to elements of `element_bytes`: puts the first bytes of all elements
/// together, then the second ones, and so on. Both slices have the same length.
pub fn shuffle_bytes(element_bytes: usize, values: &[u8], into: &mut [u8]) {
    let n_elements = values.len() / element_bytes;
    let (shuffled, rest) = into.split_at_mut(n_elements * element_bytes);
    for at in 0..element_bytes {
        let plane = &mut shuffled[at * n_elements..(at + 1) * n_elements];
        for (byte, element) in plane.iter_mut().zip(values.chunks_exact(element_bytes)) {
            *byte = element[at];
        }
    }
    rest.copy_from_slice(&values[n_elements * element_bytes..]);
}

/// Undoes the bit shuffle: `shuffled` has bit 0 of the first byte of all elements, then bit 1, and
/// so on. Bytes after the last whole element stay where they are, and all do if the number of
/// elements is not a multiple of 8. Both slices have the same length.
pub(super) fn unshuffle_bits(element_bytes: usize, shuffled: &[u8], into: &mut [u8]) {
    let n_elements = into.len() / element_bytes;
    if !n_elements.is_multiple_of(8) {
        into.copy_from_slice(shuffled);
        return;
    }
    let row_bytes = n_elements / 8;
    let (values, rest) = into.split_at_mut(n_elements * element_bytes);
    for at in 0..element_bytes {
        let rows: [&[u8]; 8] =
            array::from_fn(|bit| &shuffled[(at * 8 + bit) * row_bytes..][..row_bytes]);
        for (idx, elements) in values.chunks_exact_mut(8 * element_bytes).enumerate() {
            let bits = u64::from_le_bytes(rows.map(|row| row[idx]));
            for (element, byte) in
                elements.chunks_exact_mut(element_bytes).zip(transpose(bits).to_le_bytes())
            {
                element[at] = byte;
            }
        }
    }
    rest.copy_from_slice(&shuffled[n_elements * element_bytes..]);
}

/// Transposes a matrix of 8 x 8 bits whose rows are the bytes of `rows`, by exchanging halves of
/// ever larger squares (Henry S. Warren, Hacker's Delight, 7-3).
fn transpose(rows: u64) -> u64 {
    let swap = |rows: u64, distance: u32, mask: u64| {
        let different = (rows ^ (rows >> distance)) & mask;
        rows ^ different ^ (different << distance)
    };
    let rows = swap(rows, 7, 0x00aa_00aa_00aa_00aa);
    let rows = swap(rows, 14, 0x0000_cccc_0000_cccc);
    swap(rows, 28, 0x0000_0000_f0f0_f0f0)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{shuffle_bytes, unshuffle_bits, unshuffle_bytes};

    /// Byte `at` of element `idx` goes to place `idx` of plane `at`.
    fn naive_bytes(element_bytes: usize, values: &[u8]) -> Vec<u8> {
        let n_elements = values.len() / element_bytes;
        let mut shuffled = values.to_vec();
        for idx in 0..n_elements {
            for at in 0..element_bytes {
                shuffled[at * n_elements + idx] = values[idx * element_bytes + at];
            }
        }
        shuffled
    }

    /// Bit `bit` of element `idx` goes to place `idx` of row `bit`.
    fn naive_bits(element_bytes: usize, values: &[u8]) -> Vec<u8> {
        let n_elements = values.len() / element_bytes;
        let mut shuffled = values.to_vec();
        if !n_elements.is_multiple_of(8) {
            return shuffled;
        }
        shuffled[..n_elements * element_bytes].fill(0);
        for idx in 0..n_elements {
            for bit in 0..8 * element_bytes {
                let is_set = values[idx * element_bytes + bit / 8] >> (bit % 8) & 1;
                shuffled[bit * (n_elements / 8) + idx / 8] |= is_set << (idx % 8);
            }
        }
        shuffled
    }

    proptest! {
        #[test]
        fn shuffles_are_undone(element_bytes in 1..20_usize, values in vec(any::<u8>(), 0..5000)) {
            let mut shuffled = vec![0; values.len()];
            shuffle_bytes(element_bytes, &values, &mut shuffled);
            prop_assert_eq!(&shuffled, &naive_bytes(element_bytes, &values));
            let mut undone = vec![0; values.len()];
            unshuffle_bytes(element_bytes, &shuffled, &mut undone);
            prop_assert_eq!(&undone, &values);

            let whole = values.len() / (8 * element_bytes) * 8 * element_bytes;
            for values in [&values[..], &values[..whole]] {
                let mut undone = vec![0; values.len()];
                unshuffle_bits(element_bytes, &naive_bits(element_bytes, values), &mut undone);
                prop_assert_eq!(&undone, values);
            }
        }
    }
}
