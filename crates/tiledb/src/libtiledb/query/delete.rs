//! Deletes cells by condition.

use super::buffer::kind;
use crate::libtiledb::context::Handle;
use crate::libtiledb::datatype::Value;
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::sys;
use crate::{Array, Context, Datatype, Error};

const OPERATION: &str = "deleting cells";

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

/// Selects cells by the values of their columns.
#[derive(Debug, Clone)]
pub struct Condition(Node);

#[derive(Debug, Clone)]
enum Node {
    Comparison { column: String, comparison: Comparison, value: Vec<u8>, fits: Fits },
    Set { column: String, is_in: bool, members: Vec<Vec<u8>>, fits: Fits },
    Combined { is_and: bool, conditions: Box<[Self; 2]> },
}

/// Whether the type of a value fits a datatype.
type Fits = fn(Datatype) -> bool;

impl Condition {
    /// Selects the cells whose value in `column` compares to `value` like this.
    pub fn new<T: Value>(column: &str, comparison: Comparison, value: T) -> Self {
        Self(Node::Comparison {
            column: column.to_owned(),
            comparison,
            value: bytemuck::bytes_of(&value).to_vec(),
            fits: T::stands_for,
        })
    }

    /// Selects the cells whose text in `column` compares to `text` like this. The text of an
    /// enumerated column is one of its values.
    pub fn text(column: &str, comparison: Comparison, text: &str) -> Self {
        Self(Node::Comparison {
            column: column.to_owned(),
            comparison,
            value: text.as_bytes().to_vec(),
            fits: Datatype::is_string,
        })
    }

    /// Selects the cells whose value in `column` is one of `members`, or is none of them.
    pub fn members<T: Value>(column: &str, is_in: bool, members: &[T]) -> Self {
        Self(Node::Set {
            column: column.to_owned(),
            is_in,
            members: members.iter().map(|member| bytemuck::bytes_of(member).to_vec()).collect(),
            fits: T::stands_for,
        })
    }

    /// Selects the cells whose text in `column` is one of `members`, or is none of them.
    pub fn text_members(column: &str, is_in: bool, members: &[&str]) -> Self {
        Self(Node::Set {
            column: column.to_owned(),
            is_in,
            members: members.iter().map(|member| member.as_bytes().to_vec()).collect(),
            fits: Datatype::is_string,
        })
    }

    /// Selects the cells that both conditions select.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Node::Combined { is_and: true, conditions: Box::new([self.0, other.0]) })
    }

    /// Selects the cells that either condition selects.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Node::Combined { is_and: false, conditions: Box::new([self.0, other.0]) })
    }
}

impl Node {
    /// Makes libtiledb's condition for `array`.
    fn make(&self, context: &Context, array: &Array) -> Result<Handle<sys::QueryCondition>, Error> {
        match self {
            Self::Comparison { column, comparison, value, fits } => {
                check(array, column, &[value], *fits)?;
                compare(context, array.uri(), column, (*comparison, value))
            }
            Self::Set { column, is_in, members, fits } => {
                let values: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
                check(array, column, &values, *fits)?;
                set(context, array.uri(), column, (*is_in, &values))
            }
            Self::Combined { is_and, conditions } => {
                let [left, right] = &**conditions;
                let (left, right) = (left.make(context, array)?, right.make(context, array)?);
                let operation = i32::from(!is_and);
                context.make(OPERATION, array.uri(), free_condition, |functions, ctx, out| {
                    // SAFETY: both handles and the out pointer are live; copies are taken.
                    unsafe {
                        (functions.tiledb_query_condition_combine)(
                            ctx,
                            left.get(),
                            right.get(),
                            operation,
                            out,
                        )
                    }
                })
            }
        }
    }
}

/// Fails if cells of `column` cannot be compared with these values: libtiledb would read beyond
/// them. Values of an enumerated column are looked up, so that any will do.
fn check(array: &Array, column: &str, values: &[&[u8]], fits: Fits) -> Result<(), Error> {
    let schema = array.schema();
    let of_column = kind(schema, array.uri(), column)?;
    let attribute = schema.attributes.iter().find(|attribute| attribute.name == column);
    let is_enumerated = attribute.is_some_and(|attribute| attribute.enumeration.is_some());
    let is_sized = |value: &&[u8]| of_column.var_sized || value.len() == of_column.value_bytes;
    if is_enumerated || (fits(of_column.datatype) && values.iter().all(is_sized)) {
        return Ok(());
    }
    Err(Error::Column {
        column: column.to_owned(),
        uri: array.uri().to_owned(),
        message: format!("cells of type {:?} have other values", of_column.datatype),
    })
}

fn free_query(functions: &sys::Functions, query: &mut *mut sys::Query) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_free)(query) }
}

fn free_condition(functions: &sys::Functions, condition: &mut *mut sys::QueryCondition) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_condition_free)(condition) }
}

fn compare(
    context: &Context,
    uri: &str,
    column: &str,
    (comparison, value): (Comparison, &[u8]),
) -> Result<Handle<sys::QueryCondition>, Error> {
    let name = c_string("a column's name", column)?;
    let condition = context.make(OPERATION, uri, free_condition, |functions, ctx, out| {
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_query_condition_alloc)(ctx, out) }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: handle, string and value are live; copies are taken. The value has the size of
        // the column's, if that is fixed, checked before.
        unsafe {
            (functions.tiledb_query_condition_init)(
                ctx,
                condition.get(),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len() as u64,
                comparison.raw(),
            )
        }
    })?;
    Ok(condition)
}

fn set(
    context: &Context,
    uri: &str,
    column: &str,
    (is_in, members): (bool, &[&[u8]]),
) -> Result<Handle<sys::QueryCondition>, Error> {
    let name = c_string("a column's name", column)?;
    let data = members.concat();
    let mut offsets = Vec::with_capacity(members.len());
    let mut next = 0_u64;
    for member in members {
        offsets.push(next);
        next += member.len() as u64;
    }
    let operator = if is_in { 6 } else { 7 };
    context.make(OPERATION, uri, free_condition, |functions, ctx, out| {
        // SAFETY: string, values and offsets are live and have these sizes; copies are taken.
        unsafe {
            (functions.tiledb_query_condition_alloc_set_membership)(
                ctx,
                name.as_ptr(),
                data.as_ptr().cast(),
                data.len() as u64,
                offsets.as_ptr().cast(),
                size_of_val(offsets.as_slice()) as u64,
                operator,
                out,
            )
        }
    })
}

/// Deletes the cells of `array` that match `condition`; the array must be open for deleting. Their
/// bytes stay until the array is consolidated and vacuumed.
pub(crate) fn delete(context: &Context, array: &Array, condition: &Condition) -> Result<(), Error> {
    let uri = array.uri();
    let condition = condition.0.make(context, array)?;
    let query = context.make(OPERATION, uri, free_query, |functions, ctx, out| {
        // SAFETY: the array is open for deleting; the out pointer is live.
        unsafe { (functions.tiledb_query_alloc)(ctx, array.raw(), 2, out) }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: both handles are live; a copy is taken.
        unsafe { (functions.tiledb_query_set_condition)(ctx, query.get(), condition.get()) }
    })?;
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: the query is live.
        unsafe { (functions.tiledb_query_submit)(ctx, query.get()) }
    })
}
