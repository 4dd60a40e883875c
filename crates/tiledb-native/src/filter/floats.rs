//! Float scaling: floats as integers, `round((value - offset) / scale)`.
//!
//! Specification: `format_spec/filters/float_scale.md`. Metadata: the number of parts, then the
//! stored length of each.

use super::integers::{load, widen};
use crate::cursor::Cursor;
use crate::error::Fault;

#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) scale: f64,
    pub(super) offset: f64,
}

impl Scaling {
    /// Whether the integers equal the values.
    fn is_none(self) -> bool {
        self.scale == 1.0 && self.offset == 0.0
    }
}

/// Converts integers of `stored_bytes` bytes to f32, in a loop that the compiler vectorizes.
/// Returns false if there is no loop for this size.
fn widen_unscaled(part: &[u8], stored_bytes: usize, out: &mut Vec<u8>) -> bool {
    match stored_bytes {
        1 => widen(part, out, |bytes| f32::from(i8::from_le_bytes(bytes)).to_le_bytes()),
        2 => widen(part, out, |bytes| f32::from(i16::from_le_bytes(bytes)).to_le_bytes()),
        4 => widen(part, out, |bytes| (i32::from_le_bytes(bytes) as f32).to_le_bytes()),
        _ => return false,
    }
    true
}

/// Scales integers of `bytes.0` bytes back to floats of `bytes.1` bytes.
pub(super) fn undo_scale(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    scaling: Scaling,
    bytes: (usize, usize),
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let (stored_bytes, value_bytes) = bytes;
    let n_parts = metadata.u32("the number of parts")?;
    let mut data = Cursor::new(data);
    for _ in 0..n_parts {
        let len = metadata.u32("the length of a part")? as usize;
        let part = data.take(len, "a part")?;
        if value_bytes == 4 && scaling.is_none() && widen_unscaled(part, stored_bytes, out) {
            continue;
        }
        out.reserve(len / stored_bytes * value_bytes);
        for stored in part.chunks_exact(stored_bytes) {
            let integer = load(stored, true).cast_signed();
            if value_bytes == 4 {
                // The writer's library rounds in this order: to f32, then in f64, then to f32.
                let value = (scaling.scale * f64::from(integer as f32) + scaling.offset) as f32;
                out.extend_from_slice(&value.to_le_bytes());
            } else {
                let value = scaling.scale * (integer as f64) + scaling.offset;
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
    Ok(())
}
