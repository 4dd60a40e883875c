//! Whole numbers in as many bits as they need, 128 at a time.

use std::ops::Range;

use bitpacking::{BitPacker, BitPacker4x};

const GROUP: usize = BitPacker4x::BLOCK_LEN;

/// Numbers, each group of 128 in as many bits as its largest takes.
#[derive(Debug)]
pub(crate) struct PackedIntegers {
    n: usize,
    /// The bits of each group's numbers, then the groups.
    bytes: Box<[u8]>,
}

impl PackedIntegers {
    /// Packs `n` numbers. `numbers` is called for one group after another and writes the numbers of
    /// the given range; if it returns false, the result is `None`. `scratch` only grows.
    pub(crate) fn pack(
        n: usize,
        scratch: &mut Vec<u8>,
        mut numbers: impl FnMut(Range<usize>, &mut [u32]) -> bool,
    ) -> Option<Self> {
        let packer = BitPacker4x::new();
        let n_groups = n.div_ceil(GROUP);
        let most = n_groups * (1 + GROUP * size_of::<u32>());
        if scratch.len() < most {
            scratch.resize(most, 0);
        }
        let mut end = n_groups;
        for (idx, start) in (0..n).step_by(GROUP).enumerate() {
            let mut group = [0; GROUP];
            let range = start..n.min(start + GROUP);
            let len = range.len();
            if !numbers(range, &mut group[..len]) {
                return None;
            }
            let bits = packer.num_bits(&group);
            scratch[idx] = bits;
            end += packer.compress(&group, &mut scratch[end..], bits);
        }
        Some(Self { n, bytes: scratch[..end].into() })
    }

    /// Bytes of memory that they take.
    pub(crate) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `each` for groups of the numbers `range`, one after another: where in the range the
    /// group is, and its numbers.
    pub(crate) fn unpack(&self, range: Range<usize>, mut each: impl FnMut(Range<usize>, &[u32])) {
        let packer = BitPacker4x::new();
        let n_groups = self.n.div_ceil(GROUP);
        let (bits, groups) = self.bytes.split_at(n_groups);
        let group_bytes = |bits: u8| usize::from(bits) * GROUP / 8;
        let first = range.start / GROUP;
        let mut at: usize = bits[..first].iter().map(|&bits| group_bytes(bits)).sum();
        let mut numbers = [0; GROUP];
        for (idx, &bits) in bits.iter().enumerate().skip(first) {
            let of_group = idx * GROUP..(idx + 1) * GROUP;
            if of_group.start >= range.end {
                break;
            }
            packer.decompress(&groups[at..], &mut numbers, bits);
            at += group_bytes(bits);
            let wanted = of_group.start.max(range.start)..of_group.end.min(range.end);
            let to = wanted.start - range.start..wanted.end - range.start;
            each(to, &numbers[wanted.start - of_group.start..wanted.end - of_group.start]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpacked(packed: &PackedIntegers, range: Range<usize>) -> Vec<u32> {
        let mut out = vec![u32::MAX; range.len()];
        packed.unpack(range, |to, numbers| out[to].copy_from_slice(numbers));
        out
    }

    proptest! {
        #[test]
        fn every_range_comes_back(
            (numbers, ends) in (0_u32..33)
                .prop_flat_map(|bits| {
                    let most = if bits == 0 { 0 } else { u32::MAX >> (32 - bits) };
                    prop::collection::vec(0..=most, 0..600)
                })
                .prop_flat_map(|numbers| {
                    let n = numbers.len();
                    (Just(numbers), prop::collection::vec((0..=n, 0..=n), 1..8))
                })
        ) {
            let mut scratch = Vec::new();
            for _ in 0..2 {
                let packed = PackedIntegers::pack(numbers.len(), &mut scratch, |range, out| {
                    out.copy_from_slice(&numbers[range]);
                    true
                })
                .unwrap();
                for &(a, b) in &ends {
                    let range = a.min(b)..a.max(b);
                    prop_assert_eq!(&unpacked(&packed, range.clone()), &numbers[range]);
                }
            }
        }
    }

    #[test]
    fn small_numbers_take_few_bits() {
        let mut scratch = Vec::new();
        let packed = PackedIntegers::pack(1024, &mut scratch, |range, out| {
            out.iter_mut().zip(range).for_each(|(to, idx)| *to = idx as u32 % 8);
            true
        });
        assert_eq!(packed.map(|packed| packed.n_bytes()), Some(8 + 1024 * 3 / 8));
        assert!(PackedIntegers::pack(300, &mut scratch, |range, _| range.start == 0).is_none());
    }
}
