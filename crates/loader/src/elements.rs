//! The elements of a buffer, borrowed as slices of their type.

use std::fmt;
use std::ops::Range;

use half::f16;

use crate::element_type::ElementType;

/// The elements of a buffer have another type than its use in a batch requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a buffer has elements of type {found}, but {expected} is required: read a packed batch by \
     CsrBatch::unpacked; BatchBuffers::take must return buffers of the requested type"
)]
pub struct ElementTypeError {
    /// The required type.
    pub expected: ElementType,
    /// The buffer's type.
    pub found: ElementType,
}

/// The elements of a buffer, for reading.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Elements<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 16-bit floats.
    F16(&'a [f16]),
    /// Unsigned 32-bit integers.
    U32(&'a [u32]),
    /// Unsigned 16-bit integers.
    U16(&'a [u16]),
    /// Unsigned 8-bit integers.
    U8(&'a [u8]),
}

impl<'a> Elements<'a> {
    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::F32,
            Self::F16(_) => ElementType::F16,
            Self::U32(_) => ElementType::U32,
            Self::U16(_) => ElementType::U16,
            Self::U8(_) => ElementType::U8,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::U32(numbers) => numbers.len(),
            Self::U16(numbers) => numbers.len(),
            Self::U8(numbers) => numbers.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as 32-bit floats.
    ///
    /// # Errors
    /// They have another type.
    pub fn into_f32(self) -> Result<&'a [f32], ElementTypeError> {
        match self {
            Self::F32(values) => Ok(values),
            other => Err(wrong_type(ElementType::F32, other.element_type())),
        }
    }

    /// The elements as unsigned 32-bit integers.
    ///
    /// # Errors
    /// They have another type.
    pub fn into_u32(self) -> Result<&'a [u32], ElementTypeError> {
        match self {
            Self::U32(numbers) => Ok(numbers),
            other => Err(wrong_type(ElementType::U32, other.element_type())),
        }
    }
}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elements({} x {})", self.len(), self.element_type())
    }
}

/// The elements of a buffer, for writing.
#[non_exhaustive]
pub enum ElementsMut<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// 16-bit floats.
    F16(&'a mut [f16]),
    /// Unsigned 32-bit integers.
    U32(&'a mut [u32]),
    /// Unsigned 16-bit integers.
    U16(&'a mut [u16]),
    /// Unsigned 8-bit integers.
    U8(&'a mut [u8]),
}

impl<'a> ElementsMut<'a> {
    /// The same elements, for reading.
    pub fn as_elements(&self) -> Elements<'_> {
        match self {
            Self::F32(values) => Elements::F32(values),
            Self::F16(values) => Elements::F16(values),
            Self::U32(numbers) => Elements::U32(numbers),
            Self::U16(numbers) => Elements::U16(numbers),
            Self::U8(numbers) => Elements::U8(numbers),
        }
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.as_elements().element_type()
    }

    /// The elements at these positions.
    ///
    /// # Panics
    /// If there are fewer elements.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&mut values[range]),
            Self::F16(values) => Self::F16(&mut values[range]),
            Self::U32(numbers) => Self::U32(&mut numbers[range]),
            Self::U16(numbers) => Self::U16(&mut numbers[range]),
            Self::U8(numbers) => Self::U8(&mut numbers[range]),
        }
    }

    /// Splits into the first `n` elements and the rest.
    ///
    /// # Panics
    /// If there are fewer elements.
    #[must_use]
    pub fn split_at(self, n: usize) -> (Self, Self) {
        match self {
            Self::F32(values) => {
                let (first, rest) = values.split_at_mut(n);
                (Self::F32(first), Self::F32(rest))
            }
            Self::F16(values) => {
                let (first, rest) = values.split_at_mut(n);
                (Self::F16(first), Self::F16(rest))
            }
            Self::U32(numbers) => {
                let (first, rest) = numbers.split_at_mut(n);
                (Self::U32(first), Self::U32(rest))
            }
            Self::U16(numbers) => {
                let (first, rest) = numbers.split_at_mut(n);
                (Self::U16(first), Self::U16(rest))
            }
            Self::U8(numbers) => {
                let (first, rest) = numbers.split_at_mut(n);
                (Self::U8(first), Self::U8(rest))
            }
        }
    }

    /// The elements as 32-bit floats.
    ///
    /// # Errors
    /// They have another type.
    pub fn into_f32(self) -> Result<&'a mut [f32], ElementTypeError> {
        match self {
            Self::F32(values) => Ok(values),
            other => Err(wrong_type(ElementType::F32, other.element_type())),
        }
    }

    /// The elements as unsigned 32-bit integers.
    ///
    /// # Errors
    /// They have another type.
    pub fn into_u32(self) -> Result<&'a mut [u32], ElementTypeError> {
        match self {
            Self::U32(numbers) => Ok(numbers),
            other => Err(wrong_type(ElementType::U32, other.element_type())),
        }
    }
}

impl ElementsMut<'_> {
    /// Copies elements of this type, or of one whose numbers all are of this type, into the first
    /// ones, of which there must be as many.
    pub(crate) fn widen_from(&mut self, from: Elements<'_>) -> Result<(), ElementTypeError> {
        match (self, from) {
            (Self::F32(to), Elements::F32(from)) => widen(from, to),
            (Self::U32(to), Elements::U32(from)) => widen(from, to),
            (Self::U16(to), Elements::U16(from)) => widen(from, to),
            (Self::U8(to), Elements::U8(from)) => widen(from, to),
            (Self::U16(to), Elements::U8(from)) => widen(from, to),
            (Self::F32(to), Elements::U8(from)) => widen(from, to),
            (Self::F32(to), Elements::U16(from)) => widen(from, to),
            (Self::U32(to), Elements::U16(from)) => widen(from, to),
            (to, from) => return Err(wrong_type(to.element_type(), from.element_type())),
        }
        Ok(())
    }
}

fn widen<N: Copy, W: From<N>>(narrow: &[N], wide: &mut [W]) {
    let first = &mut wide[..narrow.len()];
    first.iter_mut().zip(narrow).for_each(|(to, from)| *to = W::from(*from));
}

impl fmt::Debug for ElementsMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_elements().fmt(f)
    }
}

/// The error of a buffer whose elements have another type than its use requires.
pub(crate) fn wrong_type(expected: ElementType, found: ElementType) -> ElementTypeError {
    ElementTypeError { expected, found }
}
