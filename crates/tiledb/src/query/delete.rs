//! Deletes cells by condition.

use super::buffer::kind;
use crate::datatype::Value;
use crate::ffi::c_string;
use crate::{Array, Context, Error, sys};

/// How a column is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Less than.
    Less,
    /// Less than or equal to.
    LessOrEqual,
    /// Greater than.
    Greater,
    /// Greater than or equal to.
    GreaterOrEqual,
    /// Equal to.
    Equal,
    /// Not equal to.
    NotEqual,
}

impl Comparison {
    fn raw(self) -> i32 {
        match self {
            Self::Less => 0,
            Self::LessOrEqual => 1,
            Self::Greater => 2,
            Self::GreaterOrEqual => 3,
            Self::Equal => 4,
            Self::NotEqual => 5,
        }
    }
}

/// Selects cells by comparing a column of fixed size with a value.
#[derive(Debug, Clone)]
pub struct Condition {
    column: String,
    comparison: Comparison,
    value: Vec<u8>,
    /// Whether the type of the value fits a datatype.
    fits: fn(crate::Datatype) -> bool,
}

impl Condition {
    /// Selects the cells whose value in `column` compares to `value` like this.
    pub fn new<T: Value>(column: &str, comparison: Comparison, value: T) -> Self {
        Self {
            column: column.to_owned(),
            comparison,
            value: bytemuck::bytes_of(&value).to_vec(),
            fits: T::stands_for,
        }
    }
}

fn free_query(functions: &sys::Functions, query: &mut *mut sys::Query) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_free)(query) }
}

fn free_condition(functions: &sys::Functions, condition: &mut *mut sys::QueryCondition) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_condition_free)(condition) }
}

/// Deletes the cells of `array` that match `condition`; the array must be open for deleting. Their
/// bytes stay until the array is consolidated and vacuumed.
pub(crate) fn delete(context: &Context, array: &Array, condition: &Condition) -> Result<(), Error> {
    const OPERATION: &str = "deleting cells";
    let uri = array.uri();
    let of_column = kind(array.schema(), uri, &condition.column)?;
    let is_plain = !of_column.var_sized && of_column.value_bytes == condition.value.len();
    if !is_plain || !(condition.fits)(of_column.datatype) {
        return Err(Error::Column {
            column: condition.column.clone(),
            uri: uri.to_owned(),
            message: format!("cells of type {:?} have other values", of_column.datatype),
        });
    }
    let name = c_string("a column's name", &condition.column)?;
    let query = context.make(OPERATION, uri, free_query, |functions, ctx, out| {
        // SAFETY: the array is open for deleting; the out pointer is live.
        unsafe { (functions.tiledb_query_alloc)(ctx, array.raw(), 2, out) }
    })?;
    let raw = context.make(OPERATION, uri, free_condition, |functions, ctx, out| {
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_query_condition_alloc)(ctx, out) }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: handle, string and value are live; copies are taken. The value has the size of
        // the column's, checked above.
        unsafe {
            (functions.tiledb_query_condition_init)(
                ctx,
                raw.get(),
                name.as_ptr(),
                condition.value.as_ptr().cast(),
                condition.value.len() as u64,
                condition.comparison.raw(),
            )
        }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: both handles are live; a copy is taken.
        unsafe { (functions.tiledb_query_set_condition)(ctx, query.get(), raw.get()) }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: the query is live.
        unsafe { (functions.tiledb_query_submit)(ctx, query.get()) }
    })
}
