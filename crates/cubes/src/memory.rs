//! Buffers that are used again.

use crate::Error;

/// Makes a buffer `len` elements long; what it contained is left or dropped. Fails if memory is
/// short.
pub(crate) fn resized<'a, T: Copy + Default>(
    buffer: &'a mut Vec<T>,
    len: usize,
    what: &'static str,
) -> Result<&'a mut [T], Error> {
    let more = len.saturating_sub(buffer.len());
    buffer
        .try_reserve_exact(more)
        .map_err(|_| Error::Memory { what, n_bytes: len.saturating_mul(size_of::<T>()) })?;
    buffer.resize(len, T::default());
    Ok(buffer)
}
