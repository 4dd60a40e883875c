//! Memory for what files contain, requested in a way that may fail.
//!
//! Lengths in files are checked before; but what is intact may be large, too.

use crate::error::Fault;

/// Makes room for `n` more values.
pub(crate) fn reserve<T>(into: &mut Vec<T>, n: usize) -> Result<(), Fault> {
    into.try_reserve(n).map_err(|_| Fault::memory(n.saturating_mul(size_of::<T>())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn too_much_memory_is_an_error_that_says_how_much() {
        let fault = reserve(&mut vec![1_u64], usize::MAX / 16).unwrap_err();
        let error = fault.moved_to(5).in_unfiltered("a/file", 7);
        assert!(matches!(error, Error::Memory { n_bytes, .. } if n_bytes == usize::MAX / 16 * 8));
        assert!(error.to_string().contains("a/file"), "{error}");
    }
}
