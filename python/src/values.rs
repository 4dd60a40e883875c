//! X's values in the type in which they are stored, from the loader's f32.

use arrow_schema::DataType;
use half::f16;
use loader::{BatchBuffer as _, ElementsMut};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::border::{Element, Memory, ViewedElement};
use crate::buffers::SlotBuffer;
use crate::memory_limit::Kept;
use crate::waiting::detached;

/// The type of X's values in all experiments; float32 if they differ. An exact read of the loader
/// has all values of either type.
///
/// # Errors
/// X has values of a type that numpy does not have. The error is a message.
pub(crate) fn stored_type(dataset: &loader::Dataset) -> Result<Element, String> {
    let mut of_all = None;
    for reader in dataset.readers() {
        let data_type = reader.data_type();
        let element = element_of(data_type).ok_or_else(|| {
            format!("X has {data_type} values, which numpy does not have: pass dtype=\"float32\"")
        })?;
        let first = *of_all.get_or_insert(element);
        of_all = Some(if first == element { element } else { Element::F32 });
    }
    Ok(of_all.unwrap_or(Element::F32))
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

/// The memory of a batch's buffer, with f32 converted to `element`; `None` leaves it as it is. The
/// values must have been read exactly, so the stored type has each of them.
pub(crate) fn of_values(
    py: Python<'_>,
    mut buffer: SlotBuffer,
    element: Option<Element>,
    keep: Kept,
) -> PyResult<Memory> {
    let Some(element) = element else { return buffer.into_memory(keep) };
    let ElementsMut::F32(values) = buffer.elements_mut() else {
        return Err(PyBufferError::new_err("values of another type than float32"));
    };
    match element {
        Element::F32 => buffer.into_memory(keep),
        // As many bytes as an f32: the same memory is used.
        Element::I32 => {
            let bits = |value: f32| (value as i32).cast_unsigned();
            detached(py, || values.iter_mut().for_each(|to| *to = f32::from_bits(bits(*to))))?;
            buffer.into_memory(keep)?.seen_as(element)
        }
        Element::U32 => {
            let bits = |value: f32| value as u32;
            detached(py, || values.iter_mut().for_each(|to| *to = f32::from_bits(bits(*to))))?;
            buffer.into_memory(keep)?.seen_as(element)
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

fn converted<T: ViewedElement + Copy>(
    py: Python<'_>,
    values: &[f32],
    convert: impl Fn(f32) -> T + Send + Sync,
    keep: impl Send + Sync + 'static,
) -> PyResult<Memory> {
    let values: Vec<T> = detached(py, || values.iter().map(|value| convert(*value)).collect())?;
    Ok(Memory::of_kept_vec(values, keep))
}
