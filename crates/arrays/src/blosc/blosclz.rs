//! Decompression of blosclz, c-blosc's own codec.
//!
//! A stream is of literals and matches. The first byte of a literal is its length less 1, below 32;
//! the bytes follow. The first byte of a match has its length less 2 in the upper 3 bits, where 7
//! means that further bytes are added up to and with the first below 255, and the upper 5 bits of
//! its distance; the next byte has the lower 8 bits. Distances from 8192 have all 13 bits set and
//! then 16 bits more, big-endian. The stream begins and ends with a literal. Source:
//! `blosc/blosclz.c` of Blosc/c-blosc 1.21.

/// The distance whose bits are all set, which is followed by another one.
const FAR: usize = 8191;

/// Decompresses `compressed` into the beginning of `into`, and returns the number of bytes.
pub(super) fn decompress(compressed: &[u8], into: &mut [u8]) -> Result<usize, &'static str> {
    let mut input = Input(compressed);
    let mut n_bytes = 0;
    // The first byte's upper bits have no meaning.
    let mut control = input.byte()? & 31;
    loop {
        let output = into.get_mut(n_bytes..).unwrap_or_default();
        if control < 32 {
            let literal = input.bytes(usize::from(control) + 1)?;
            let output = output.get_mut(..literal.len()).ok_or("a literal exceeds the block")?;
            output.copy_from_slice(literal);
            n_bytes += literal.len();
            if input.0.is_empty() {
                return Ok(n_bytes);
            }
        } else {
            let (length, distance) = input.found(control)?;
            if distance > n_bytes {
                return Err("a match begins before the block");
            }
            if length > output.len() {
                return Err("a match exceeds the block");
            }
            copy_match(into, n_bytes, distance, length);
            n_bytes += length;
        }
        control = input.byte()?;
    }
}

/// Copies `length` bytes to `at` from `distance` before; a longer copy than that repeats itself.
fn copy_match(into: &mut [u8], at: usize, distance: usize, length: usize) {
    let from = at - distance;
    let mut done = 0;
    while done < length {
        let copied = (distance + done).min(length - done);
        into.copy_within(from..from + copied, at + done);
        done += copied;
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or("the stream ends early")?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or("the stream ends early")?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Length and distance of the match that begins with `control`.
    fn found(&mut self, control: u8) -> Result<(usize, usize), &'static str> {
        let mut length = usize::from(control >> 5) + 2;
        if control >> 5 == 7 {
            loop {
                let more = self.byte()?;
                length += usize::from(more);
                if more < 255 {
                    break;
                }
            }
        }
        let near = usize::from(control & 31) << 8 | usize::from(self.byte()?);
        if near < FAR {
            return Ok((length, near + 1));
        }
        let far = usize::from(self.byte()?) << 8 | usize::from(self.byte()?);
        Ok((length, FAR + far + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::decompress;

    #[track_caller]
    fn check(compressed: &[u8], expected: Result<&[u8], &str>) {
        let mut into = [0; 16];
        let n_bytes = decompress(compressed, &mut into);
        assert_eq!(n_bytes.map(|n_bytes| &into[..n_bytes]), expected);
    }

    #[test]
    fn literals_and_matches_are_copied() {
        check(&[1, b'a', b'b'], Ok(b"ab"));
        check(&[0xe1, b'a', b'b'], Ok(b"ab"));
        // Three bytes from two before, which overlaps itself.
        check(
            &[1, b'a', b'b', 0x20, 1, 0, b'c'],
            Ok(b"abababc".get(..6).map(|_| b"ababac").unwrap()),
        );
        check(&[0, b'a', 0xe0, 2, 0, 0, b'b'], Ok(b"aaaaaaaaaaaab"));
    }

    #[test]
    fn damaged_streams_are_refused() {
        let early = "the stream ends early";
        check(&[], Err(early));
        check(&[1, b'a'], Err(early));
        check(&[0, b'a', 0x20], Err(early));
        check(&[0, b'a', 0x20, 0], Err(early));
        check(&[0, b'a', 0xe0, 255], Err(early));
        check(&[0, b'a', 0x3f, 255, 0], Err(early));
        check(&[0, b'a', 0x20, 1, 0, b'b'], Err("a match begins before the block"));
        check(&[0, b'a', 0x3f, 255, 0, 0, 0, b'b'], Err("a match begins before the block"));
        check(&[0, b'a', 0xe0, 7, 0, 0, b'b'], Err("a match exceeds the block"));
        check(&[[16].as_slice(), &[0; 17]].concat(), Err("a literal exceeds the block"));
    }
}
