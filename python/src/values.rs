//! X's values in the type in which they are stored, from the loader's f32.

use arrow_schema::DataType;
use half::f16;
use loader::{BatchBuffer as _, ElementsMut, HeapBuffer};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

use crate::border::{Element, Memory, ViewedElement};
use crate::waiting::detached;

/// 2^24: f32 has every whole number below it, and a stored number from here on may have been
/// rounded to another, but never to one below.
const ROUNDED_FROM: f32 = 16_777_216.0;

const REMEDY: &str = "pass dtype=\"float32\" to have values rounded to it";

/// The type of X's values in all experiments; float32 if they differ and float32 has all of them.
///
/// # Errors
/// The values may be others as f32, in a way that their f32 does not show. The error is a message.
pub(crate) fn stored_type(dataset: &loader::Dataset) -> Result<Element, String> {
    let stored = || dataset.readers().map(|reader| element_of(reader.data_type()));
    let all = stored().collect::<Option<Vec<Element>>>().unwrap_or_default();
    let problem = match all.as_slice() {
        [first, others @ ..] if others.iter().all(|other| other == first) => match first {
            Element::F64 => "X has float64 values, but batches are made of float32".to_owned(),
            other => return Ok(*other),
        },
        several if stored().count() == several.len() => {
            if several.iter().all(|element| is_within_f32(*element)) {
                return Ok(Element::F32);
            }
            let names: Vec<&str> = several.iter().map(|element| element.name()).collect();
            format!("the experiments store X as {}, which have no common type", names.join(", "))
        }
        _ => "X has values of a type that numpy does not have".to_owned(),
    };
    Err(format!("{problem}: {REMEDY}"))
}

/// The type as numpy sees it; `None` if it is not that of a number.
pub(crate) fn element_of(data_type: &DataType) -> Option<Element> {
    Some(match data_type {
        DataType::Boolean => Element::Bool,
        DataType::Float16 => Element::F16,
        DataType::Float32 => Element::F32,
        DataType::Float64 => Element::F64,
        DataType::Int8 => Element::I8,
        DataType::Int16 => Element::I16,
        DataType::Int32 => Element::I32,
        DataType::Int64 => Element::I64,
        DataType::UInt8 => Element::U8,
        DataType::UInt16 => Element::U16,
        DataType::UInt32 => Element::U32,
        DataType::UInt64 => Element::U64,
        _ => return None,
    })
}

/// Whether f32 has every value of the type.
fn is_within_f32(element: Element) -> bool {
    use Element as E;
    matches!(element, E::F32 | E::F16 | E::I8 | E::I16 | E::U8 | E::U16 | E::Bool)
}

/// The memory of a batch's buffer, with f32 converted to `element`; `None` leaves it as it is.
///
/// # Errors
/// A value is not certainly the stored one.
pub(crate) fn of_values(
    py: Python<'_>,
    mut buffer: HeapBuffer,
    element: Option<Element>,
    keep: impl Send + Sync + 'static,
) -> PyResult<Memory> {
    let Some(element) = element else { return Memory::of_buffer(buffer, keep) };
    let ElementsMut::F32(values) = buffer.elements_mut() else {
        return Err(PyBufferError::new_err("values of another type than float32"));
    };
    // Only other Python threads profit, so few values are not worth letting them run.
    detached(py, || check_exact(values, element))??;
    match element {
        Element::F32 => Memory::of_buffer(buffer, keep),
        // As many bytes as an f32: the same memory is used.
        Element::I32 => {
            let bits = |value: f32| (value as i32).cast_unsigned();
            detached(py, || values.iter_mut().for_each(|to| *to = f32::from_bits(bits(*to))))?;
            Memory::of_buffer(buffer, keep)?.seen_as(element)
        }
        Element::U32 => {
            let bits = |value: f32| value as u32;
            detached(py, || values.iter_mut().for_each(|to| *to = f32::from_bits(bits(*to))))?;
            Memory::of_buffer(buffer, keep)?.seen_as(element)
        }
        Element::I8 => converted(py, values, |value| value as i8, keep),
        Element::I16 => converted(py, values, |value| value as i16, keep),
        Element::I64 => converted(py, values, |value| value as i64, keep),
        Element::U8 => converted(py, values, |value| value as u8, keep),
        Element::U16 => converted(py, values, |value| value as u16, keep),
        Element::U64 => converted(py, values, |value| value as u64, keep),
        Element::F16 => converted(py, values, f16::from_f32, keep),
        Element::F64 => converted(py, values, f64::from, keep),
        Element::Bool => {
            let truth = |value: f32| u8::from(value != 0.0);
            converted(py, values, truth, keep)?.seen_as(element)
        }
    }
}

/// Fails if a value may be another than the stored one.
fn check_exact(values: &[f32], element: Element) -> PyResult<()> {
    if is_within_f32(element) {
        return Ok(());
    }
    // No early end, so that the loop runs over many values at a time.
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest < ROUNDED_FROM {
        return Ok(());
    }
    let name = element.name();
    let problem = format!(
        "X has {name} values from 2^24 on (here about {largest}), which the loader's float32 does \
         not have exactly: {REMEDY}"
    );
    Err(PyValueError::new_err(problem))
}

fn converted<T: ViewedElement + Copy>(
    py: Python<'_>,
    values: &[f32],
    convert: impl Fn(f32) -> T + Send + Sync,
    keep: impl Send + Sync + 'static,
) -> PyResult<Memory> {
    let values: Vec<T> = detached(py, || values.iter().map(|value| convert(*value)).collect())?;
    Ok(Memory::of_kept_vec(values, keep))
}
