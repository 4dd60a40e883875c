//! The order in which an array is read and written: in boxes that fit into memory.
//!
//! The target is cut into *regions*, boxes of whole target chunks. A region is read into memory as
//! a whole, each source chunk that it needs once, and then written. A source chunk that several
//! regions need is decoded for each of them, so the regions are chosen that decode the fewest
//! chunks within the memory.
//!
//! Files may be larger than regions: shards of many steps, whose chunks are one step. Such a file
//! grows region by region, and only its encoded chunks are kept. All files that are unfinished at
//! the same time form a *block*: a box of whole regions and of whole files. Blocks follow one
//! another, and so do the regions within a block, both in C order.

use std::ops::Range;

use super::axis::Axis;

/// What is read and written together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) axes: Vec<Axis>,
    /// The shape of a region: in each dimension whole chunks that divide a file, or whole files.
    pub(crate) region: Vec<u64>,
    /// The most memory that a thread needs, in bytes.
    pub(crate) region_bytes: u64,
    /// Source chunks that are decoded, each as often as it is.
    pub(crate) n_decoded: u64,
    /// Source chunks that are needed.
    pub(crate) n_source_chunks: u64,
}

/// Bytes of an element in the source and in the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementBytes {
    pub(crate) source: u64,
    pub(crate) target: u64,
}

/// A region: its place in each dimension of the target, whole chunks that may reach beyond its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) ranges: Vec<Range<u64>>,
    /// The number of its block.
    pub(crate) block: u64,
    /// Whether it is the last one of its block.
    pub(crate) ends_block: bool,
}

/// Buffers of at most this many bytes are used again. Larger ones go back to the system, which
/// keeps smaller ones for the process, in pieces that fit nothing else.
pub(crate) const RETAINED: usize = 32 << 20;

/// The most combinations of lengths that are compared.
const MOST_COMBINATIONS: usize = 200_000;

impl Plan {
    /// Chooses regions for `memory_bytes` of one thread. Fails with the bytes that are needed at
    /// least.
    pub(crate) fn new(
        axes: Vec<Axis>,
        element: ElementBytes,
        memory_bytes: u64,
    ) -> Result<Self, u64> {
        let mut candidates: Vec<Vec<u64>> = axes.iter().map(Axis::candidates).collect();
        let n_combinations = |candidates: &[Vec<u64>]| {
            candidates.iter().fold(1, |n: usize, of| n.saturating_mul(of.len()))
        };
        while MOST_COMBINATIONS < n_combinations(&candidates) {
            // Every second length of the dimension that has the most.
            let Some(most) = candidates.iter_mut().max_by_key(|of| of.len()) else { break };
            let last = most.last().copied();
            let mut idx = 0;
            most.retain(|len| {
                idx += 1;
                idx % 2 == 1 || Some(*len) == last
            });
        }
        let n_reads: Vec<Vec<u64>> = axes
            .iter()
            .zip(&candidates)
            .map(|(axis, of)| of.iter().map(|len| axis.n_reads(*len)).collect())
            .collect();
        let mut best: Option<(u64, u64, Vec<u64>)> = None;
        let mut least_bytes = u64::MAX;
        let mut at = vec![0; axes.len()];
        loop {
            let region: Vec<u64> = candidates.iter().zip(&at).map(|(of, at)| of[*at]).collect();
            let bytes = region_bytes(&axes, &region, element);
            least_bytes = least_bytes.min(bytes);
            let n_decoded =
                n_reads.iter().zip(&at).fold(1, |n: u64, (of, at)| n.saturating_mul(of[*at]));
            let is_better =
                |(fewest, least, _): &(u64, u64, _)| (n_decoded, bytes) < (*fewest, *least);
            if bytes <= memory_bytes && best.as_ref().is_none_or(is_better) {
                best = Some((n_decoded, bytes, region));
            }
            let Some(next) = (0..at.len()).rfind(|axis| at[*axis] + 1 < candidates[*axis].len())
            else {
                break;
            };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
        let (n_decoded, region_bytes, region) = best.ok_or(least_bytes)?;
        let n_source_chunks = axes.iter().map(|axis| axis.n_reads(axis.len().max(1))).product();
        Ok(Self { axes, region, region_bytes, n_decoded, n_source_chunks })
    }

    /// Lengths of a block.
    fn block(&self) -> impl Iterator<Item = u64> {
        self.region.iter().zip(&self.axes).map(|(region, axis)| (*region).max(axis.file))
    }

    /// The number of regions of all blocks.
    pub(crate) fn n_regions(&self) -> u64 {
        let pairs = self.axes.iter().zip(&self.region);
        pairs.map(|(axis, region)| axis.padded().div_ceil(*region)).product()
    }

    /// The number of chunks of the target.
    pub(crate) fn n_chunks(&self) -> u64 {
        self.axes.iter().map(|axis| axis.padded() / axis.chunk).product()
    }

    /// All regions, in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Region> + Send + use<> {
        let padded: Vec<u64> = self.axes.iter().map(Axis::padded).collect();
        let block: Vec<u64> = self.block().collect();
        let region = self.region.clone();
        let whole: Vec<Range<u64>> = padded.iter().map(|len| 0..*len).collect();
        let blocks = boxes(whole, block);
        blocks.zip(0_u64..).flat_map(move |(ranges, block)| {
            let mut regions = boxes(ranges, region.clone()).peekable();
            std::iter::from_fn(move || {
                let ranges = regions.next()?;
                Some(Region { ranges, block, ends_block: regions.peek().is_none() })
            })
        })
    }
}

/// The boxes of shape `lens` that cover `whole`, in C order; the last ones are cut.
fn boxes(whole: Vec<Range<u64>>, lens: Vec<u64>) -> impl Iterator<Item = Vec<Range<u64>>> + Send {
    let is_empty = whole.iter().any(Range::is_empty);
    let mut next = (!is_empty).then(|| whole.iter().map(|range| range.start).collect::<Vec<_>>());
    std::iter::from_fn(move || {
        let starts = next.take()?;
        let ends = starts.iter().zip(&lens).zip(&whole);
        let found = starts
            .iter()
            .zip(ends)
            .map(|(start, ((_, len), all))| *start..all.end.min(start + len));
        let found: Vec<Range<u64>> = found.collect();
        let axis = (0..starts.len()).rfind(|axis| found[*axis].end < whole[*axis].end);
        next = axis.map(|axis| {
            let mut starts = starts;
            starts[axis] = found[axis].end;
            for (start, all) in starts.iter_mut().zip(&whole).skip(axis + 1) {
                *start = all.start;
            }
            starts
        });
        Some(found)
    })
}

/// The most memory that a thread needs for a region: its values, beside them first a source chunk
/// as stored, as decoded and as a codec has it in between, then its encoded chunks and one that is
/// being encoded. A source chunk that makes a region is decoded in its place. Small buffers stay,
/// so their sum counts.
fn region_bytes(axes: &[Axis], region: &[u64], element: ElementBytes) -> u64 {
    let product =
        |lens: &mut dyn Iterator<Item = u64>| lens.fold(1, |n: u64, len| n.saturating_mul(len));
    let source = &mut axes.iter().map(|axis| axis.source_chunk);
    let source = product(source).saturating_mul(element.source);
    let chunk = &mut axes.iter().map(|axis| axis.chunk);
    let chunk = product(chunk).saturating_mul(element.target);
    let values = &mut axes.iter().zip(region).map(|(axis, len)| (*len).min(axis.padded()));
    let values = product(values).saturating_mul(element.target);
    let is_in_place = element.source == element.target
        && axes.iter().zip(region).all(|(axis, len)| axis.has_chunks_of(*len));
    let decoded = if is_in_place { 0 } else { source };
    let reading = source.saturating_mul(2).saturating_add(decoded);
    let writing = values.saturating_add(chunk.saturating_mul(2));
    let beside = if values.max(decoded) <= RETAINED as u64 {
        reading.saturating_add(writing)
    } else {
        reading.max(writing)
    };
    values.saturating_add(beside)
}

#[cfg(test)]
mod tests {
    use arrays::Indices;

    use super::*;

    fn axis(len: u64, source_chunk: u64, chunk: u64, file: u64) -> Axis {
        Axis { selected: Indices::Range(0..len), source_chunk, chunk, file }
    }

    const FLOATS: ElementBytes = ElementBytes { source: 4, target: 4 };

    #[test]
    fn levels_are_taken_apart_and_steps_put_together_with_one_decoding() {
        // Hours of 37 levels, as ERA5 is stored, to levels in shards of 32 hours.
        let axes = vec![
            axis(8760, 1, 1, 32),
            axis(37, 37, 1, 1),
            axis(721, 721, 721, 721),
            axis(1440, 1440, 1440, 1440),
        ];
        let plan = Plan::new(axes.clone(), FLOATS, 1 << 30).unwrap();
        assert_eq!(plan.region, [1, 37, 721, 1440]);
        // Two threads.
        assert!(2 * plan.region_bytes < 1 << 30, "{}", plan.region_bytes);
        assert_eq!((plan.n_decoded, plan.n_source_chunks), (8760, 8760));
        let regions: Vec<Region> = plan.regions().take(33).collect();
        assert_eq!((regions[31].ends_block, regions[32].block), (true, 1));
        assert_eq!(plan.n_regions(), 8760);
        let least = Plan::new(axes, FLOATS, 100 << 20).unwrap_err();
        assert!(400 << 20 < least && least < 500 << 20, "{least}");
    }

    #[test]
    fn with_less_memory_chunks_are_decoded_more_often() {
        // Maps to series of 100 steps.
        let axes =
            vec![axis(1000, 1, 100, 100), axis(721, 721, 103, 103), axis(1440, 1440, 144, 144)];
        for (memory, n_decoded) in [(1 << 30, 1000), (500 << 20, 2000)] {
            let plan = Plan::new(axes.clone(), FLOATS, memory).unwrap();
            assert!(plan.region_bytes <= memory);
            assert_eq!((plan.n_decoded, plan.n_source_chunks), (n_decoded, 1000));
        }
        let least = Plan::new(axes, FLOATS, 100).unwrap_err();
        assert!(20 << 20 < least && least < 40 << 20, "{least}");
    }

    #[test]
    fn regions_cover_the_target_once() {
        let axes = vec![axis(10, 3, 2, 4), axis(5, 5, 2, 2), axis(3, 1, 3, 3)];
        for memory in [100, 150, 200, 1 << 20] {
            let plan = Plan::new(axes.clone(), FLOATS, memory);
            let Ok(plan) = plan else { continue };
            let mut seen = vec![0; 10 * 6 * 3];
            let regions: Vec<Region> = plan.regions().collect();
            assert_eq!(regions.len() as u64, plan.n_regions());
            for region in &regions {
                let [a, b, c] = &region.ranges[..] else { panic!("{region:?}") };
                for i in a.clone() {
                    for j in b.clone() {
                        for k in c.clone() {
                            seen[((i * 6 + j) * 3 + k) as usize] += 1;
                        }
                    }
                }
            }
            assert!(seen.iter().all(|n| *n == 1), "{plan:?}");
            assert!(
                regions
                    .windows(2)
                    .all(|pair| pair[0].ends_block == (pair[0].block < pair[1].block))
            );
        }
        let none = Plan::new(vec![axis(0, 3, 2, 4)], FLOATS, 1 << 20).unwrap();
        assert_eq!((none.n_regions(), none.regions().count()), (0, 0));
        let single = Plan::new(Vec::new(), FLOATS, 1 << 20).unwrap();
        assert_eq!((single.n_regions(), single.regions().count(), single.n_chunks()), (1, 1, 1));
    }
}
