//! Decompresses data. Unlike other filters, compressors also compressed the metadata of the earlier
//! filters.
//!
//! Metadata: number of metadata parts, number of data parts, then the original and the compressed
//! length of each. Data: the compressed parts, those of the metadata first.

use super::Codec;
use crate::cursor::Cursor;
use crate::error::Fault;
use crate::memory::reserve;

/// The largest expansion of an LZ4 block: a byte extends a match by 255 bytes at most.
const MAX_LZ4_EXPANSION: usize = 255;

/// Decompresses with `decompress(from, to, len)`, which appends exactly `len` bytes to the empty
/// `to`.
pub(super) fn undo(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    limit: usize,
    (metadata_out, out): (&mut Vec<u8>, &mut Vec<u8>),
    mut decompress: impl FnMut(&[u8], &mut Vec<u8>, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let n_metadata_parts = metadata.u32("the number of metadata parts")?;
    let n_data_parts = metadata.u32("the number of data parts")?;
    let mut data = Cursor::new(data);
    let mut part = |metadata: &mut Cursor<'_>, out: &mut Vec<u8>| {
        let original_len = metadata.u32("a part's length")? as usize;
        let compressed_len = metadata.u32("a part's compressed length")? as usize;
        if original_len.saturating_add(out.len()) > limit {
            return Err(Fault::new(format!(
                "a part claims {original_len} bytes in a chunk that has room for {limit}"
            )));
        }
        let from = data.take(compressed_len, "a compressed part")?;
        if out.is_empty() {
            return decompress(from, out, original_len);
        }
        let mut another = Vec::new();
        decompress(from, &mut another, original_len)?;
        reserve(out, another.len())?;
        out.extend_from_slice(&another);
        Ok(())
    };
    for _ in 0..n_metadata_parts {
        part(metadata, metadata_out)?;
    }
    for _ in 0..n_data_parts {
        part(metadata, out)?;
    }
    Ok(())
}

fn check(codec: &str, found: usize, len: usize) -> Result<(), Fault> {
    if found == len {
        Ok(())
    } else {
        Err(Fault::new(format!("{codec} returned {found} bytes instead of {len}")))
    }
}

pub(super) fn zstd(
    decompressor: &mut zstd::bulk::Decompressor<'_>,
    from: &[u8],
    to: &mut Vec<u8>,
    len: usize,
) -> Result<(), Fault> {
    reserve(to, len)?;
    // Written into the spare capacity, which need not be zeroed first.
    let found = decompressor
        .decompress_to_buffer(from, to)
        .map_err(|error| Fault::new(format!("zstd data is damaged: {error}")))?;
    check("zstd", found, len)
}

pub(super) fn decompress(
    codec: Codec,
    value_bytes: usize,
    from: &[u8],
    to: &mut Vec<u8>,
    len: usize,
) -> Result<(), Fault> {
    match codec {
        Codec::Zstd => {
            let mut decompressor =
                zstd::bulk::Decompressor::new().map_err(|error| Fault::new(error.to_string()))?;
            zstd(&mut decompressor, from, to, len)
        }
        Codec::Gzip => {
            reserve(to, len)?;
            let mut inflate = flate2::Decompress::new(true);
            let status = inflate.decompress_vec(from, to, flate2::FlushDecompress::Finish);
            match status {
                Ok(flate2::Status::StreamEnd) => check("gzip", to.len(), len),
                Ok(_) => {
                    Err(Fault::new(format!("gzip data ends after {} of {len} bytes", to.len())))
                }
                Err(error) => Err(Fault::new(format!("gzip data is damaged: {error}"))),
            }
        }
        Codec::Lz4 => {
            // The memory is written before the block is decoded.
            if len > from.len().saturating_mul(MAX_LZ4_EXPANSION) {
                let from = from.len();
                return Err(Fault::new(format!("LZ4 data of {from} bytes claims to be {len}")));
            }
            reserve(to, len)?;
            to.resize(len, 0);
            let most = i32::try_from(len)
                .map_err(|_| Fault::new(format!("LZ4 data of {len} bytes: 2^31 - 1 at most")))?;
            let found = lz4::block::decompress_to_buffer(from, Some(most), to)
                .map_err(|error| Fault::new(format!("LZ4 data is damaged: {error}")))?;
            check("LZ4", found, len)
        }
        Codec::Bzip2 => {
            reserve(to, len)?;
            let mut stream = bzip2::Decompress::new(false);
            let mut consumed = 0;
            loop {
                let before = (stream.total_in(), to.len());
                let status = stream
                    .decompress_vec(from.get(consumed..).unwrap_or_default(), to)
                    .map_err(|error| Fault::new(format!("bzip2 data is damaged: {error}")))?;
                consumed = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
                match status {
                    bzip2::Status::StreamEnd => return check("bzip2", to.len(), len),
                    _ if before == (stream.total_in(), to.len()) => {
                        return Err(Fault::new(format!(
                            "bzip2 data ends after {} of {len} bytes",
                            to.len()
                        )));
                    }
                    _ => {}
                }
            }
        }
        Codec::Rle => run_lengths(value_bytes, from, to, len),
    }
}

fn run_lengths(value_bytes: usize, from: &[u8], to: &mut Vec<u8>, len: usize) -> Result<(), Fault> {
    reserve(to, len)?;
    runs(value_bytes, from, len, &mut |value, count| {
        match value {
            // Validity is stored so.
            [byte] => to.resize(to.len() + usize::from(count), *byte),
            _ => (0..count).for_each(|_| to.extend_from_slice(value)),
        }
        Ok(())
    })
}

/// Calls `each` with every run, for `len` bytes of values. A run is stored as its value, then its
/// length in two bytes, the high one first.
pub(super) fn runs(
    value_bytes: usize,
    from: &[u8],
    len: usize,
    each: &mut impl FnMut(&[u8], u16) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let run_bytes = value_bytes + 2;
    if value_bytes == 0 || !from.len().is_multiple_of(run_bytes) {
        return Err(Fault::new(format!("{} bytes are not a whole number of runs", from.len())));
    }
    let mut n_bytes = 0;
    for run in from.chunks_exact(run_bytes) {
        let (value, count) = run.split_at(value_bytes);
        let count = u16::from_be_bytes([count[0], count[1]]);
        n_bytes += usize::from(count) * value_bytes;
        if n_bytes > len {
            return Err(Fault::new(format!("runs give more than {len} bytes")));
        }
        each(value, count)?;
    }
    check("run lengths", n_bytes, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_lz4_block_is_as_large_as_its_bytes_can_be() {
        let bytes = vec![7; 100_000];
        let from = lz4::block::compress(&bytes, None, false).unwrap();
        let mut to = Vec::new();
        decompress(Codec::Lz4, 1, &from, &mut to, 100_000).unwrap();
        assert_eq!(to, bytes);
        let mut to = Vec::new();
        let fault = decompress(Codec::Lz4, 1, &from, &mut to, 1 << 30).unwrap_err();
        assert!(fault.what.contains("claims"), "{}", fault.what);
        assert_eq!(to.capacity(), 0);
    }
}
