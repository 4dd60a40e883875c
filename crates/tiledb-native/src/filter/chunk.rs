//! A chunk before and after decoding.

/// One filtered chunk, in the bytes of its tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filtered<'a> {
    /// Unfiltered length in bytes.
    pub(crate) original_len: usize,
    pub(crate) metadata: &'a [u8],
    pub(crate) data: &'a [u8],
}

/// The values of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decoded<'a> {
    /// Value after value.
    Plain(&'a [u8]),
    /// The lowest bytes of all values, then all second bytes, and so on.
    Planes(&'a [u8]),
    /// The low four bytes of each value; the other bytes are 0.
    LowFour(&'a [u8]),
}
