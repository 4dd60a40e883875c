//! The memory that a server takes for a value.
//!
//! A server keeps each value in a piece of memory of its own, and its allocator (jemalloc) has
//! pieces of certain sizes only: four between a power of two and the next. So a value of 1,040
//! bytes takes 1,280, and one of 16,000 takes 16,384. Values that are just short of a size waste
//! least; for small ones the key and the server's own fields count as well.

/// Bytes of a string's end: texts of C end with a zero.
const ZERO: u64 = 1;

/// Bytes of the object that points to a value.
const OBJECT: u64 = 16;

/// Bytes of an entry of the table of keys, in a cluster: three pointers, and two that link the
/// entries of a slot.
const ENTRY: u64 = 40;

/// Mean bytes of the table for an entry: a pointer, with half of the table empty just after it
/// grew and none before.
const TABLE: u64 = 12;

/// The smallest piece of memory for a text.
const SMALLEST: u64 = 16;

/// Bytes before the characters of a text, from short texts to long ones.
const HEADERS: [u64; 4] = [1, 3, 5, 9];

/// Estimates the bytes that a server takes for a value of `value_bytes` whose key has `key_bytes`:
/// namespace, colon and digits.
///
/// For Redis 7.0 with jemalloc as Debian builds it, measured values are within 3 % above, because
/// of the server's own buffers. Other versions differ by a few bytes for each key.
pub fn estimated_memory(value_bytes: u64, key_bytes: u64) -> u64 {
    let key = piece(key_bytes + header(key_bytes) + ZERO);
    piece(value_bytes + header(value_bytes) + ZERO) + key + piece(OBJECT) + piece(ENTRY) + TABLE
}

/// The largest size of a value, up to `at_most` bytes, that fills its piece of memory. Whoever
/// joins samples to values should come close to it from below. 0 if `at_most` is too small.
pub fn full_value(at_most: u64) -> u64 {
    let mut best = 0;
    let mut size = SMALLEST;
    while size <= piece(at_most + header(at_most) + ZERO) {
        best = best.max(longest_in(size).filter(|len| *len <= at_most).unwrap_or(0));
        size = piece(size + 1);
    }
    best
}

/// The longest text in a piece of memory.
fn longest_in(piece: u64) -> Option<u64> {
    // The header that leaves the most room may be too short for what fits then.
    let lens = HEADERS.iter().filter_map(|header| piece.checked_sub(header + ZERO));
    lens.filter(|len| len + header(*len) + ZERO <= piece).max()
}

/// Bytes before the characters of a text, which hold its length.
fn header(len: u64) -> u64 {
    match len {
        0..32 => 1,
        32..256 => 3,
        256..65_536 => 5,
        // No value has more than 512 MB.
        _ => 9,
    }
}

/// The piece of memory that `bytes` get: a multiple of 16 up to 128, then a multiple of a quarter
/// of the power of two below.
fn piece(bytes: u64) -> u64 {
    if bytes <= 8 {
        return 8;
    }
    let below = (bytes - 1).checked_ilog2().map_or(1, |exponent| 1_u64 << exponent);
    bytes.next_multiple_of((below / 4).max(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_jemalloc() {
        // Its manual lists them under "size classes".
        let listed = [
            8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
            896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192,
            10_240, 12_288, 14_336, 16_384, 20_480, 24_576, 28_672, 32_768, 40_960,
        ];
        for (below, size) in [0].iter().chain(&listed).zip(&listed) {
            assert_eq!((piece(below + 1), piece(*size)), (*size, *size));
        }
    }

    #[test]
    fn full_values_waste_nothing() {
        for (at_most, expect) in [
            (0, 0),
            (20, 14),
            (1040, 1018),
            (2000, 1786),
            (16_384, 16_378),
            (16_377, 14_330),
            (65_530, 65_530),
            (65_536, 65_530),
            (100_000, 98_294),
        ] {
            assert_eq!(full_value(at_most), expect, "{at_most}");
        }
    }

    #[test]
    fn estimates_add_up() {
        assert_eq!(estimated_memory(1040, 10), 1280 + 16 + 16 + 48 + 12);
        assert_eq!(estimated_memory(1018, 10), 1024 + 16 + 16 + 48 + 12);
    }
}
