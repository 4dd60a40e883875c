//! Parts of a buffer as targets for a decoder.
#![expect(unsafe_code, reason = "zarrs decodes into memory of its caller's by an unsafe view")]

use unsafe_cell_slice::UnsafeCellSlice;
use zarrs::array::{ArrayBytesDecodeIntoTarget, ArrayBytesFixedDisjointView, ArraySubset};

use crate::element::Element;
use crate::error::Cause;

/// Calls `decode` for each of `parts` in order, with the part's elements in `into` as the target.
/// `into` is an array of shape `shape` in C order.
///
/// # Errors
/// `into` has a different number of elements than `shape`; a part extends beyond `shape`; or the
/// error of a part or of `decode`.
pub(crate) fn for_each_part<T: Element, P>(
    into: &mut [T],
    shape: &[u64],
    parts: impl Iterator<Item = Result<(ArraySubset, P), Cause>>,
    mut decode: impl FnMut(P, ArrayBytesDecodeIntoTarget<'_>) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
    for part in parts {
        let (part, with) = part?;
        // SAFETY: `bytes` is borrowed anew for each view, so no two views exist at once. `new`
        // checks that `bytes` is as long as `shape` times the element's size and that `part` lies
        // within `shape`. Every bit pattern is a value of `T`, which is `Pod`.
        let mut view = unsafe {
            ArrayBytesFixedDisjointView::new(
                UnsafeCellSlice::new(bytes),
                size_of::<T>(),
                shape,
                part,
            )?
        };
        decode(with, ArrayBytesDecodeIntoTarget::Fixed(&mut view))?;
    }
    Ok(())
}
