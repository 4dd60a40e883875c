//! Errors of settings and of the sizes of images.

use std::ops::Range;

/// An error of this module.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentError {
    /// A setting is outside of its range.
    #[error("the augmentation's {setting} is {value}, but must be {range}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// The values that it can have.
        range: &'static str,
    },

    /// The scale's first limit is larger than its second.
    #[error("the augmentation's scale is from {from} to {to}: exchange the two")]
    ScaleOrder {
        /// The first limit.
        from: f64,
        /// The second limit.
        to: f64,
    },

    /// A slice has another length than its shape says.
    #[error("{what} of shape {shape:?} has {expected} values, the given slice has {found}")]
    Length {
        /// The slice's role.
        what: &'static str,
        /// The shape: rows, columns and, for an image, channels.
        shape: Vec<usize>,
        /// Number of values of that shape.
        expected: usize,
        /// Number of values of the slice.
        found: usize,
    },

    /// The requested rows are not rows of the image.
    #[error("rows {} to {} are not rows of an image of height {height}", rows.start, rows.end)]
    Rows {
        /// The requested rows; the end is excluded.
        rows: Range<usize>,
        /// The image's height.
        height: usize,
    },

    /// An image of this shape does not fit into memory.
    #[error("an image of shape {shape:?} has more values than memory can have")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
}

/// Number of values of a shape.
fn n_values(shape: &[usize]) -> Result<usize, AugmentError> {
    let product = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    product.ok_or_else(|| AugmentError::TooLarge { shape: shape.to_vec() })
}

fn check_length(what: &'static str, shape: &[usize], found: usize) -> Result<(), AugmentError> {
    let expected = n_values(shape)?;
    if expected == found {
        return Ok(());
    }
    Err(AugmentError::Length { what, shape: shape.to_vec(), expected, found })
}

/// Checks the sizes of an image and of the slice for some of its warped rows.
///
/// `shape` is rows, columns and, for an image, channels.
pub(super) fn check_sizes(
    shape: &[usize],
    n_source: usize,
    rows: &Range<usize>,
    n_warped: usize,
) -> Result<(), AugmentError> {
    let height = shape[0];
    if rows.start > rows.end || rows.end > height {
        return Err(AugmentError::Rows { rows: rows.clone(), height });
    }
    check_length("the source", shape, n_source)?;
    let mut warped_shape = shape.to_vec();
    warped_shape[0] = rows.len();
    check_length("the result", &warped_shape, n_warped)
}
