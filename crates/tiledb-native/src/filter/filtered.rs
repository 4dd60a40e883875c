//! A chunk as it is stored.

/// One filtered chunk, in the bytes of its tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filtered<'a> {
    /// Bytes once unfiltered.
    pub(crate) original_len: usize,
    pub(crate) metadata: &'a [u8],
    pub(crate) data: &'a [u8],
}
