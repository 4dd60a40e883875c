//! Sparse writes.

use std::sync::Arc;

use super::buffer::kind;
use crate::libtiledb::context::Handle;
use crate::libtiledb::datatype::Value;
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::sys;
use crate::{Array, Error};

/// The order in which cells are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any order: libtiledb sorts. All cells go into one submit, which makes one fragment.
    Unordered,
    /// The array's own order, tile by tile: nothing is sorted, and all submits together make one
    /// fragment.
    Global,
}

const AFTER_FAILURE: &str = "an earlier submit of this write failed; make a new one";

/// The values of one column to write.
#[derive(Debug, Clone, Copy)]
pub struct WriteColumn<'a> {
    name: &'a str,
    bytes: &'a [u8],
    /// Whether values of this type fit a datatype.
    fits: fn(crate::Datatype) -> bool,
    offsets: Option<&'a [u64]>,
    validity: Option<&'a [u8]>,
}

impl<'a> WriteColumn<'a> {
    /// Makes a column of values of fixed size.
    pub fn fixed<T: Value>(name: &'a str, values: &'a [T]) -> Self {
        Self {
            name,
            bytes: bytemuck::cast_slice(values),
            fits: T::stands_for,
            offsets: None,
            validity: None,
        }
    }

    /// Makes a column of texts or bytes; `offsets` says where each begins in `bytes`.
    pub fn var_sized(name: &'a str, bytes: &'a [u8], offsets: &'a [u64]) -> Self {
        Self {
            name,
            bytes,
            fits: <u8 as Value>::stands_for,
            offsets: Some(offsets),
            validity: None,
        }
    }

    /// Adds validity for a nullable column: one byte per cell, which is not 0 if the cell has a
    /// value.
    #[must_use]
    pub fn with_validity(self, validity: &'a [u8]) -> Self {
        Self { validity: Some(validity), ..self }
    }
}

/// The calls that may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A submit, or the end.
    Open,
    /// Only the end: an unordered write has one submit.
    Full,
    /// None: a submit failed.
    Failed,
}

/// A sparse write.
pub struct WriteQuery {
    query: Handle<sys::Query>,
    order: WriteOrder,
    stage: Stage,
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
    /// Makes a write to an array that is open for writing. The query keeps it open.
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
        Ok(Self { query, order, stage: Stage::Open, array: Arc::clone(array) })
    }

    /// Writes cells: every dimension and attribute of the array once, all with the same number of
    /// cells. Without cells it does nothing.
    ///
    /// After an error the write is over: every further call is an error, and cells of a global
    /// write's earlier submits are not on storage.
    pub fn submit(&mut self, columns: &[WriteColumn<'_>]) -> Result<(), Error> {
        match self.stage {
            Stage::Open => {}
            Stage::Full => {
                return Err(self.refused(
                    "writing",
                    "an unordered write takes one submit; make a new write for more cells",
                ));
            }
            Stage::Failed => return Err(self.refused("writing", AFTER_FAILURE)),
        }
        // Reset after the submit: a failed submit may leave libtiledb with pointers to the caller's
        // memory.
        self.stage = Stage::Failed;
        let n_cells = self.check(columns)?;
        if n_cells > 0 {
            self.submit_checked(columns)?;
        }
        self.stage = match self.order {
            WriteOrder::Unordered if n_cells > 0 => Stage::Full,
            _ => Stage::Open,
        };
        Ok(())
    }

    fn refused(&self, operation: &'static str, message: &'static str) -> Error {
        Error::Query { operation, uri: self.array.uri().to_owned(), message }
    }

    fn submit_checked(&self, columns: &[WriteColumn<'_>]) -> Result<(), Error> {
        let context = self.array.context();
        let query = self.query.get();
        let names = columns
            .iter()
            .map(|column| c_string("a column's name", column.name))
            .collect::<Result<Vec<_>, _>>()?;
        // Sizes of values, offsets and validity: libtiledb keeps pointers to them until the submit
        // below is over.
        let mut sizes: Vec<[u64; 3]> = columns
            .iter()
            .map(|column| {
                let [offsets, validity] =
                    [column.offsets.map_or(0, size_of_val), column.validity.map_or(0, <[u8]>::len)];
                [column.bytes.len() as u64, offsets as u64, validity as u64]
            })
            .collect();
        for ((column, name), [bytes, offsets, validity]) in
            columns.iter().zip(&names).zip(&mut sizes)
        {
            context.call("setting a buffer", self.array.uri(), |functions, ctx| {
                // SAFETY: a write only reads its buffers, which the caller lends while this
                // function runs. The next submit sets all of them again, since all columns are
                // required, and finishing a write reads none.
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

    /// Ends the write; its cells are then on storage. Fails if a submit failed.
    pub fn finish(self) -> Result<(), Error> {
        if self.stage == Stage::Failed {
            return Err(self.refused("finishing a write", AFTER_FAILURE));
        }
        self.array.context().call("finishing a write", self.array.uri(), |functions, ctx| {
            // SAFETY: the query is live; remaining cells lie in its own memory.
            unsafe { (functions.tiledb_query_finalize)(ctx, self.query.get()) }
        })
    }

    /// Checks names, types and lengths. libtiledb would read beyond a short buffer, or reuse one of
    /// an earlier submit.
    fn check(&self, columns: &[WriteColumn<'_>]) -> Result<usize, Error> {
        let schema = self.array.schema();
        let dimensions = schema.dimensions.iter().map(|dimension| &dimension.name);
        let attributes = schema.attributes.iter().map(|attribute| &attribute.name);
        let mut first = None;
        for column in columns {
            let n_cells = self.check_column(column)?;
            let expected = *first.get_or_insert(n_cells);
            if expected != n_cells {
                return Err(self.failed(
                    column.name,
                    format!("there are {n_cells} cells, the columns before have {expected}"),
                ));
            }
        }
        for name in dimensions.chain(attributes) {
            match columns.iter().filter(|column| column.name == name).count() {
                1 => {}
                0 => return Err(self.failed(name, "it is missing from the write".into())),
                n => return Err(self.failed(name, format!("it is given {n} times"))),
            }
        }
        Ok(first.unwrap_or(0))
    }

    /// Checks one column, and returns its number of cells.
    fn check_column(&self, column: &WriteColumn<'_>) -> Result<usize, Error> {
        let failed = |message| self.failed(column.name, message);
        let kind = kind(self.array.schema(), self.array.uri(), column.name)?;
        if !(column.fits)(kind.datatype) {
            return Err(failed(format!("the values are not of type {:?}", kind.datatype)));
        }
        if kind.var_sized != column.offsets.is_some() || kind.nullable != column.validity.is_some()
        {
            return Err(failed("offsets or validity are missing, or not wanted".into()));
        }
        let n_cells = if let Some(starts) = column.offsets {
            if !starts.is_sorted()
                || starts.last().is_some_and(|last| *last > column.bytes.len() as u64)
            {
                return Err(failed("the offsets do not ascend within the bytes".into()));
            }
            starts.len()
        } else {
            if !column.bytes.len().is_multiple_of(kind.value_bytes) {
                return Err(failed(format!(
                    "{} bytes are not a whole number of cells of {} bytes",
                    column.bytes.len(),
                    kind.value_bytes
                )));
            }
            column.bytes.len() / kind.value_bytes
        };
        if column.validity.is_some_and(|validity| validity.len() != n_cells) {
            return Err(failed(format!(
                "there are {n_cells} cells, but another number of validity bytes"
            )));
        }
        Ok(n_cells)
    }

    fn failed(&self, column: &str, message: String) -> Error {
        Error::Column { column: column.to_owned(), uri: self.array.uri().to_owned(), message }
    }
}
