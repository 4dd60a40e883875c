//! Brings a decoded array into its place: normalised, mapped, converted.

use arrays::ElementType;
use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;

use crate::augment::{AugmentError, ImageElement, Parameters, warp_image, warp_mask};
use crate::files::{Norm, normalize};
use crate::open_key::OpenKey;
use crate::spec::Role;

/// Puts a key's `decoded` array into `into`. `decoded` may be changed.
pub(crate) fn place(
    key: &OpenKey,
    (decoded, norm): (&mut [u8], Option<Norm>),
    into: &mut [u8],
    parameters: &Parameters,
) -> Result<(), AugmentError> {
    match (key.role, key.stored) {
        (Role::Plain, _) => {
            into.copy_from_slice(decoded);
            Ok(())
        }
        (Role::Mask, element) => {
            let shape = [key.shape[0], key.shape[1]];
            place_mask(shape, element.n_bytes(), (decoded, into), parameters)
        }
        (Role::Image, ElementType::F16) => {
            place_image::<f16>(key, cast_slice(decoded), into, parameters)
        }
        (Role::Image, _) => {
            let values: &mut [f32] = cast_slice_mut(decoded);
            if let Some(norm) = norm {
                normalize(values, key.shape[2], norm);
            }
            place_image::<f32>(key, values, into, parameters)
        }
    }
}

/// Puts an image into its place, in the elements that are wanted there.
fn place_image<S: ImageElement>(
    key: &OpenKey,
    image: &[S],
    into: &mut [u8],
    parameters: &Parameters,
) -> Result<(), AugmentError> {
    let shape = [key.shape[0], key.shape[1], key.shape[2]];
    let rows = 0..shape[0];
    match key.element {
        ElementType::F16 => {
            warp_image::<S, f16>(parameters, shape, image, rows, cast_slice_mut(into))
        }
        _ => warp_image::<S, f32>(parameters, shape, image, rows, cast_slice_mut(into)),
    }
}

/// Puts a mask into its place; `n_bytes` are an element's.
fn place_mask(
    shape: [usize; 2],
    n_bytes: usize,
    (mask, into): (&[u8], &mut [u8]),
    parameters: &Parameters,
) -> Result<(), AugmentError> {
    fn of_size<const N: usize>(
        shape: [usize; 2],
        (mask, into): (&[u8], &mut [u8]),
        parameters: &Parameters,
    ) -> Result<(), AugmentError> {
        let (mask, _) = mask.as_chunks::<N>();
        let (into, _) = into.as_chunks_mut::<N>();
        warp_mask(parameters, shape, mask, 0..shape[0], into)
    }
    let from_to = (mask, into);
    match n_bytes {
        1 => of_size::<1>(shape, from_to, parameters),
        2 => of_size::<2>(shape, from_to, parameters),
        4 => of_size::<4>(shape, from_to, parameters),
        _ => of_size::<8>(shape, from_to, parameters),
    }
}
