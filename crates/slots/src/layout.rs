//! Where the keys of a slot lie in its memory.

use std::ops::Range;

use crate::error::Error;

/// Each key begins at a multiple of this: a cache line, and what devices and vector instructions
/// want.
pub(crate) const ALIGNMENT: usize = 64;

/// Where the keys of a slot lie in its memory.
#[derive(Debug)]
pub(crate) struct Layout {
    keys: Vec<Range<usize>>,
    /// Bytes from the start of the first key to the end of the last one.
    pub(crate) n_bytes: usize,
}

impl Layout {
    /// Places keys of these sizes one after another.
    pub(crate) fn new(key_bytes: &[usize]) -> Result<Self, Error> {
        let mut n_bytes = 0_usize;
        let mut keys = Vec::with_capacity(key_bytes.len());
        for len in key_bytes {
            let start = n_bytes.checked_next_multiple_of(ALIGNMENT);
            let place = start.and_then(|start| Some(start..start.checked_add(*len)?));
            // No object has more bytes than `isize` can count.
            let place = place.filter(|place| isize::try_from(place.end).is_ok());
            let place = place.ok_or_else(|| Error::TooLarge { key_bytes: key_bytes.to_vec() })?;
            n_bytes = place.end;
            keys.push(place);
        }
        Ok(Self { keys, n_bytes })
    }

    /// The number of keys.
    pub(crate) fn n_keys(&self) -> usize {
        self.keys.len()
    }

    /// The place of a key in a slot's memory.
    pub(crate) fn key(&self, idx: usize) -> Range<usize> {
        self.keys[idx].clone()
    }

    /// Splits a slot's memory into the bytes of each key.
    pub(crate) fn split<'a>(&self, memory: &'a mut [u8]) -> Vec<&'a mut [u8]> {
        let (mut rest, mut at) = (memory, 0);
        let mut parts = Vec::with_capacity(self.keys.len());
        for place in &self.keys {
            let (_, from_start) = rest.split_at_mut(place.start - at);
            let (key, after) = from_start.split_at_mut(place.len());
            parts.push(key);
            (rest, at) = (after, place.end);
        }
        parts
    }
}
