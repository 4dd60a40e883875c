//! Random filter pipelines, of the filters that libtiledb accepts for a type.

use tiledb::{Datatype, Filter};

use super::draw::Draw;

fn is_integer(datatype: Datatype) -> bool {
    !matches!(datatype, Datatype::Float32 | Datatype::Float64)
}

fn any_integer(size: usize) -> Datatype {
    match size {
        1 => Datatype::Int8,
        2 => Datatype::Int16,
        4 => Datatype::Int32,
        _ => Datatype::Int64,
    }
}

/// A pipeline for values of `datatype`, of up to four filters.
pub(in crate::differential) fn pipeline(draw: &mut Draw, datatype: Datatype) -> Vec<Filter> {
    let n_filters = draw.pick(&[0, 1, 1, 2, 2, 2, 3, 4]);
    let (first, mut datatype) = (datatype, datatype);
    let mut filters = Vec::new();
    let mut are_bytes = false;
    while filters.len() < n_filters {
        let Some((filter, output)) = one(draw, datatype) else { continue };
        // Run lengths count values of the size at the start of the pipeline.
        let is_of_size = filter != Filter::Rle || datatype.size() == first.size();
        if (are_bytes && needs_values(filter)) || !is_of_size {
            continue;
        }
        are_bytes |= gives_bytes(filter);
        filters.push(filter);
        datatype = output;
    }
    filters
}

/// Whether the output of `filter` may not be a whole number of values.
fn gives_bytes(filter: Filter) -> bool {
    !matches!(
        filter,
        Filter::None
            | Filter::BitShuffle
            | Filter::ByteShuffle
            | Filter::ChecksumMd5
            | Filter::ChecksumSha256
            | Filter::Delta(_)
            | Filter::PositiveDelta
            | Filter::ScaleFloat { .. }
            | Filter::Xor
    )
}

/// Whether libtiledb loses bytes, fails or crashes in `filter` if its input is not a whole number
/// of values.
fn needs_values(filter: Filter) -> bool {
    matches!(
        filter,
        Filter::BitWidthReduction
            | Filter::BitWidthReductionWithin(_)
            | Filter::Delta(_)
            | Filter::DoubleDelta(_)
            | Filter::PositiveDelta
            | Filter::Rle
            | Filter::ScaleFloat { .. }
            | Filter::Xor
    )
}

/// A filter for values of `datatype`, and its output type; `None` if the random filter does not
/// support the type.
fn one(draw: &mut Draw, datatype: Datatype) -> Option<(Filter, Datatype)> {
    let size = datatype.size()?;
    let same = |filter| Some((filter, datatype));
    match draw.below(21) {
        0 => same(Filter::None),
        1 => same(Filter::Gzip(draw.within(1..9) as i32)),
        2 | 3 => same(Filter::Zstd(draw.within(1..6) as i32)),
        4 => same(Filter::Lz4(-1)),
        5 => same(Filter::Rle),
        6 => same(Filter::Bzip2(1)),
        7 => same(Filter::BitShuffle),
        8 | 9 => same(Filter::ByteShuffle),
        10 => same(Filter::ChecksumMd5),
        11 => same(Filter::ChecksumSha256),
        12 | 19 | 20 => Some((Filter::Xor, any_integer(size))),
        13 if is_integer(datatype) => same(Filter::BitWidthReduction),
        14 if is_integer(datatype) => {
            same(Filter::BitWidthReductionWithin(draw.pick(&[16, 64, 1000, 4096])))
        }
        // Fails unless values ascend, which few do.
        15 if is_integer(datatype) && draw.chance(30) => same(Filter::PositiveDelta),
        16 => delta(draw, datatype, size, Filter::DoubleDelta),
        17 => delta(draw, datatype, size, Filter::Delta),
        18 if matches!(size, 4 | 8) && !is_integer(datatype) => {
            let byte_width = draw.pick(&[2, 4, 8]);
            let (factor, offset) = draw.pick(&[(1.0, 0.0), (0.25, 0.0), (0.5, 3.0)]);
            Some((
                Filter::ScaleFloat { byte_width, factor, offset },
                any_integer(byte_width as usize),
            ))
        }
        _ => None,
    }
}

fn delta(
    draw: &mut Draw,
    datatype: Datatype,
    size: usize,
    filter: fn(Option<Datatype>) -> Filter,
) -> Option<(Filter, Datatype)> {
    let narrower = [Datatype::UInt8, Datatype::Int16, Datatype::UInt32, Datatype::Int64];
    let other = draw.pick(&narrower);
    if draw.chance(25) && size.is_multiple_of(other.size()?) {
        return Some((filter(Some(other)), other));
    }
    is_integer(datatype).then(|| (filter(None), datatype))
}
