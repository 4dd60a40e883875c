//! Writes memory past the processor's caches.
//!
//! A dense batch is larger than the caches. An ordinary store reads each cache line from memory
//! first, and evicts data that is needed again, such as the block that rows come from. x86-64 has
//! stores that do neither; elsewhere this is a plain copy.
#![expect(unsafe_code, reason = "nothing safe gives the stores that go past the caches")]

/// A number that may be copied as raw bytes.
///
/// # Safety
/// All bytes belong to the value: there is no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: 32 bits without padding.
unsafe impl Plain for f32 {}
// SAFETY: 16 bits without padding.
unsafe impl Plain for half::f16 {}

/// Writes past the caches. After it is dropped, other threads that synchronize with this one see
/// everything that was written.
#[derive(Debug)]
pub(crate) struct PastCaches {
    is_fenced: bool,
}

impl PastCaches {
    pub(crate) fn new() -> Self {
        Self { is_fenced: true }
    }

    /// Copies `from` to the beginning of `to`, which must not be shorter.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn copy<T: Plain>(&mut self, from: &[T], to: &mut [T]) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

        self.is_fenced = false;
        let to = &mut to[..from.len()];
        // SAFETY: `T` has no padding, so it may be viewed as whole groups of 16 bytes, and bytes
        // copied from values of `T` are values of `T`.
        let (head, body, tail) = unsafe { to.align_to_mut::<__m128i>() };
        let (from_head, from) = from.split_at(head.len());
        head.copy_from_slice(from_head);
        let (from_body, from_tail) = from.split_at(from.len() - tail.len());
        tail.copy_from_slice(from_tail);
        let from_body = from_body.as_ptr().cast::<__m128i>();
        for (idx, place) in body.iter_mut().enumerate() {
            // SAFETY: `from_body` has as many bytes as `body`, of which `idx` is an index, and need
            // not be aligned; `place` is aligned, being a reference. Both instructions are SSE2,
            // which every x86-64 has. `fence` orders the stores.
            unsafe { _mm_stream_si128(place, _mm_loadu_si128(from_body.add(idx))) };
        }
    }

    /// Copies `from` to the beginning of `to`, which must not be shorter.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn copy<T: Plain>(&mut self, from: &[T], to: &mut [T]) {
        self.is_fenced = false;
        to[..from.len()].copy_from_slice(from);
    }

    /// Orders all later writes after the earlier ones.
    pub(crate) fn fence(&mut self) {
        if std::mem::replace(&mut self.is_fenced, true) {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE, which every x86-64 has.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

impl Drop for PastCaches {
    fn drop(&mut self) {
        self.fence();
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_what_a_copy_copies(n in 0_usize..200, at in 0_usize..40, spare in 0_usize..3) {
            check(n, at, spare, |value| value as f32);
            check(n, at, spare, |value| f16::from_f32(value as f32));
        }
    }

    fn check<T: Plain + PartialEq + std::fmt::Debug>(
        n: usize,
        at: usize,
        spare: usize,
        value: impl Fn(usize) -> T,
    ) {
        let from: Vec<T> = (0..n + at).map(|idx| value(idx + 1)).collect();
        let mut to = vec![value(0); at + n + spare];
        PastCaches::new().copy(&from[at..], &mut to[at..]);
        assert!(to[..at].iter().chain(&to[at + n..]).all(|untouched| *untouched == value(0)));
        assert_eq!(&to[at..at + n], &from[at..]);
    }
}
