//! Sparse writes.

use std::sync::Arc;

use super::buffer::kind;
use crate::context::{Handle, c_string};
use crate::datatype::Value;
use crate::{Array, Error, sys};

/// The order in which cells are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any order: libtiledb sorts. Each submit makes a fragment of its own.
    Unordered,
    /// The array's own order, tile by tile: nothing is sorted, and all submits make one fragment together.
    Global,
}

/// The values of one column to write.
#[derive(Debug, Clone, Copy)]
pub struct WriteColumn<'a> {
    name: &'a str,
    bytes: &'a [u8],
    /// Whether the type of the values fits a datatype.
    fits: fn(crate::Datatype) -> bool,
    offsets: Option<&'a [u64]>,
    validity: Option<&'a [u8]>,
}

impl<'a> WriteColumn<'a> {
    /// A column of values of fixed size.
    pub fn fixed<T: Value>(name: &'a str, values: &'a [T]) -> Self {
        Self {
            name,
            bytes: bytemuck::cast_slice(values),
            fits: T::stands_for,
            offsets: None,
            validity: None,
        }
    }

    /// A column of texts or bytes: where each begins in `bytes`.
    pub fn var_sized(name: &'a str, bytes: &'a [u8], offsets: &'a [u64]) -> Self {
        Self {
            name,
            bytes,
            fits: <u8 as Value>::stands_for,
            offsets: Some(offsets),
            validity: None,
        }
    }

    /// The same with a byte per cell that says whether it has a value, for a nullable column.
    #[must_use]
    pub fn with_validity(self, validity: &'a [u8]) -> Self {
        Self { validity: Some(validity), ..self }
    }
}

/// A sparse write.
pub struct WriteQuery {
    query: Handle<sys::Query>,
    order: WriteOrder,
    array: Arc<Array>,
}

impl std::fmt::Debug for WriteQuery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WriteQuery")
            .field("array", &self.array)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

fn free(functions: &sys::Functions, query: &mut *mut sys::Query) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_free)(query) }
}

impl WriteQuery {
    /// A write to an array that is open for writing. The query keeps it open.
    pub fn new(array: &Arc<Array>, order: WriteOrder) -> Result<Self, Error> {
        let context = array.context();
        let query = context.make("making a write", array.uri(), free, |functions, ctx, out| {
            // SAFETY: the array is open, the out pointer live.
            unsafe { (functions.tiledb_query_alloc)(ctx, array.raw(), 1, out) }
        })?;
        let layout = match order {
            WriteOrder::Global => 2,
            WriteOrder::Unordered => 3,
        };
        context.call("making a write", array.uri(), |functions, ctx| {
            // SAFETY: the query is live.
            unsafe { (functions.tiledb_query_set_layout)(ctx, query.get(), layout) }
        })?;
        Ok(Self { query, order, array: Arc::clone(array) })
    }

    /// Writes cells: every dimension and attribute of the array, all with the same number of cells.
    pub fn submit(&mut self, columns: &[WriteColumn<'_>]) -> Result<(), Error> {
        let n_cells = self.check(columns)?;
        if n_cells == 0 {
            return Ok(());
        }
        let context = self.array.context();
        let query = self.query.get();
        let names = columns
            .iter()
            .map(|column| c_string("a column's name", column.name))
            .collect::<Result<Vec<_>, _>>()?;
        // The sizes of values, offsets and validity: libtiledb keeps pointers to them until the submit below is over.
        let mut sizes: Vec<[u64; 3]> = columns
            .iter()
            .map(|column| {
                let offsets = column.offsets.map_or(0, |offsets| size_of_val(offsets) as u64);
                [
                    column.bytes.len() as u64,
                    offsets,
                    column.validity.map_or(0, |validity| validity.len() as u64),
                ]
            })
            .collect();
        for ((column, name), [bytes, offsets, validity]) in
            columns.iter().zip(&names).zip(&mut sizes)
        {
            context.call("setting a buffer", self.array.uri(), |functions, ctx| {
                // SAFETY: a write only reads its buffers, which the caller lends for as long as this function runs; the next
                // submit sets new ones, and finishing a write reads none.
                unsafe {
                    let data = column.bytes.as_ptr().cast_mut().cast();
                    let mut status = (functions.tiledb_query_set_data_buffer)(
                        ctx,
                        query,
                        name.as_ptr(),
                        data,
                        bytes,
                    );
                    if let Some(starts) = column.offsets {
                        let starts = starts.as_ptr().cast_mut();
                        status |= (functions.tiledb_query_set_offsets_buffer)(
                            ctx,
                            query,
                            name.as_ptr(),
                            starts,
                            offsets,
                        );
                    }
                    if let Some(valid) = column.validity {
                        let valid = valid.as_ptr().cast_mut();
                        status |= (functions.tiledb_query_set_validity_buffer)(
                            ctx,
                            query,
                            name.as_ptr(),
                            valid,
                            validity,
                        );
                    }
                    status
                }
            })?;
        }
        context.call("writing", self.array.uri(), |functions, ctx| {
            // SAFETY: the query and all buffers that it knows are live.
            unsafe { (functions.tiledb_query_submit)(ctx, query) }
        })
    }

    /// Ends the write; its cells are then on storage.
    pub fn finish(self) -> Result<(), Error> {
        self.array.context().call("finishing a write", self.array.uri(), |functions, ctx| {
            // SAFETY: the query is live; what is left to write lies in its own memory.
            unsafe { (functions.tiledb_query_finalize)(ctx, self.query.get()) }
        })
    }

    /// Checks names, types and lengths, since libtiledb would read past a buffer that is too short.
    fn check(&self, columns: &[WriteColumn<'_>]) -> Result<usize, Error> {
        let uri = self.array.uri();
        let mut first = None;
        for column in columns {
            let failed = |message: String| Error::Column {
                column: column.name.to_owned(),
                uri: uri.to_owned(),
                message,
            };
            let kind = kind(self.array.schema(), uri, column.name)?;
            if !(column.fits)(kind.datatype) {
                return Err(failed(format!("the values are not of type {:?}", kind.datatype)));
            }
            if kind.var_sized != column.offsets.is_some()
                || kind.nullable != column.validity.is_some()
            {
                return Err(failed("offsets or validity are missing, or not wanted".into()));
            }
            let n_cells =
                column.offsets.map_or(column.bytes.len() / kind.value_bytes, <[u64]>::len);
            if column.offsets.is_some_and(|starts| {
                !starts.is_sorted()
                    || starts.last().is_some_and(|last| *last > column.bytes.len() as u64)
            }) {
                return Err(failed("the offsets do not ascend within the bytes".into()));
            }
            if column.validity.is_some_and(|validity| validity.len() != n_cells) {
                return Err(failed(format!(
                    "there are {n_cells} cells, but another number of validity bytes"
                )));
            }
            match first {
                None => first = Some(n_cells),
                Some(expected) if expected != n_cells => {
                    return Err(failed(format!(
                        "there are {n_cells} cells, the columns before have {expected}"
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(first.unwrap_or(0))
    }
}
