//! Decompression of chunks. `None` stands for damaged bytes, and for more bytes than allowed.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// LZF: runs of bytes, and copies of bytes before.
pub(crate) fn lzf(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    while let Some((control, after)) = rest.split_first() {
        let control = usize::from(*control);
        rest = after;
        if control < 32 {
            out.extend_from_slice(rest.split_off(..=control)?);
        } else {
            let mut n_bytes = control >> 5;
            if n_bytes == 7 {
                n_bytes += usize::from(*rest.split_off_first()?);
            }
            let low = usize::from(*rest.split_off_first()?);
            copy_before(&mut out, ((control & 31) << 8) + low + 1, n_bytes + 2)?;
        }
        if most < out.len() {
            return None;
        }
    }
    Some(out)
}

/// Blosclz: as LZF, with longer copies from farther away.
pub(crate) fn blosclz(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    let mut is_first = true;
    while let Some((control, after)) = rest.split_first() {
        let control = usize::from(if is_first { control & 31 } else { *control });
        is_first = false;
        rest = after;
        if control < 32 {
            out.extend_from_slice(rest.split_off(..=control)?);
        } else {
            let mut n_bytes = (control >> 5) - 1;
            let mut more = if n_bytes == 6 { 255 } else { 0 };
            while more == 255 && n_bytes <= most {
                more = usize::from(*rest.split_off_first()?);
                n_bytes += more;
            }
            let (high, low) = (control & 31, usize::from(*rest.split_off_first()?));
            let mut distance = (high << 8) + low;
            if (high, low) == (31, 255) {
                let (high, low) = (*rest.split_off_first()?, *rest.split_off_first()?);
                distance = usize::from(u16::from_be_bytes([high, low])) + 8191;
            }
            copy_before(&mut out, distance + 1, n_bytes + 3)?;
        }
        if most < out.len() {
            return None;
        }
    }
    Some(out)
}

/// Repeats bytes that are a distance before the end, the repeated ones among them.
fn copy_before(out: &mut Vec<u8>, distance: usize, n_bytes: usize) -> Option<()> {
    let start = out.len().checked_sub(distance)?;
    out.reserve(n_bytes);
    for at in start..start + n_bytes {
        let byte = *out.get(at)?;
        out.push(byte);
    }
    Some(())
}

/// The filter LZ4: the number of all bytes, that of a block, then blocks with their lengths.
/// Numbers are big-endian.
pub(crate) fn lz4(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut rest = bytes;
    let n_bytes = u64::from_be_bytes(*rest.split_off(..8)?.first_chunk()?);
    let n_bytes = usize::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes <= most)?;
    let block_bytes = u32::from_be_bytes(*rest.split_off(..4)?.first_chunk()?) as usize;
    let mut out = Vec::new();
    while out.len() < n_bytes {
        let of_block = block_bytes.min(n_bytes - out.len());
        let stored = u32::from_be_bytes(*rest.split_off(..4)?.first_chunk()?) as usize;
        let stored = rest.split_off(..stored)?;
        if stored.len() == of_block {
            out.extend_from_slice(stored);
        } else {
            out.extend(lz4_block(stored, of_block)?);
        }
        if of_block == 0 {
            return None;
        }
    }
    Some(out)
}

/// LZ4 without any frame.
pub(crate) fn lz4_block(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    lz4::block::decompress(bytes, Some(i32::try_from(most).ok()?)).ok()
}

pub(crate) fn zstd(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    limited(zstd::stream::read::Decoder::new(bytes).ok()?, most)
}

pub(crate) fn zlib(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    limited(ZlibDecoder::new(bytes), most)
}

fn limited(from: impl std::io::Read, most: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() <= most).then_some(out)
}
