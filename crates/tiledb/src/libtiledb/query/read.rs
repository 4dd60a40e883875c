//! Sparse reads.

use std::ptr;

use super::buffer::{Buffer, Column, kind};
use crate::libtiledb::context::Handle;
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::sys;
use crate::{Array, Error};

/// The order in which cells are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// In the fastest order.
    Unordered,
    /// By the first dimension, then the second.
    RowMajor,
    /// In the array's own order: by tile, then within the tile.
    Global,
}

impl Layout {
    fn raw(self) -> i32 {
        match self {
            Self::RowMajor => 0,
            Self::Global => 2,
            Self::Unordered => 3,
        }
    }
}

const STATUS_COMPLETED: i32 = 1;
const STATUS_INCOMPLETE: i32 = 3;
/// The limit to which a column's buffer grows, in bytes; a single cell that needs more is an error.
const LARGEST_BUFFER: usize = 1 << 32;
/// The smallest buffer, in bytes: one offset, or one value of any type.
const LEAST_BUFFER: usize = 8;

/// A sparse read that returns its cells in pieces, as many at a time as fit its buffers.
pub struct ReadQuery<'a> {
    // Declared before the buffers, so that libtiledb releases them before they are freed.
    query: Handle<sys::Query>,
    _subarray: Handle<sys::Subarray>,
    buffers: Vec<Buffer>,
    buffer_bytes: usize,
    complete: bool,
    failed: bool,
    array: &'a Array,
}

impl std::fmt::Debug for ReadQuery<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReadQuery").field("array", &self.array).finish_non_exhaustive()
    }
}

/// The cells of one step of a read.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    buffers: &'a [Buffer],
    uri: &'a str,
}

impl std::fmt::Debug for Piece<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Piece").field("n_cells", &self.n_cells()).finish_non_exhaustive()
    }
}

impl<'a> Piece<'a> {
    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.buffers.first().map_or(0, Buffer::n_cells)
    }

    /// The column with this index in the list that the read was made with.
    ///
    /// # Panics
    /// `column_idx` is not below the number of columns.
    pub fn column(&self, column_idx: usize) -> Column<'a> {
        self.buffers[column_idx].column(self.uri)
    }
}

fn free_query(functions: &sys::Functions, query: &mut *mut sys::Query) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_query_free)(query) }
}

fn free_subarray(functions: &sys::Functions, subarray: &mut *mut sys::Subarray) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_subarray_free)(subarray) }
}

impl<'a> ReadQuery<'a> {
    /// Makes a read of `columns` from the cells of `array` whose coordinates lie in `ranges`.
    ///
    /// `ranges[d]` lists the ranges of dimension `d`, both ends included; an empty list selects the
    /// whole dimension. A dimension with ranges must be of an integer or time type. Each column
    /// starts with a buffer of `buffer_bytes` bytes (at least 8, at most 4 GiB), which grows if a
    /// single cell needs more.
    pub fn new(
        array: &'a Array,
        layout: Layout,
        ranges: &[&[(i64, i64)]],
        columns: &[&str],
        buffer_bytes: usize,
    ) -> Result<Self, Error> {
        let context = array.context();
        let uri = array.uri();
        let query = context.make("making a read", uri, free_query, |functions, ctx, out| {
            // SAFETY: the array is open for reading; the out pointer is live.
            unsafe { (functions.tiledb_query_alloc)(ctx, array.raw(), 0, out) }
        })?;
        context.call("making a read", uri, |functions, ctx| {
            // SAFETY: the query is live.
            unsafe { (functions.tiledb_query_set_layout)(ctx, query.get(), layout.raw()) }
        })?;
        let subarray = subarray(array, ranges)?;
        context.call("making a read", uri, |functions, ctx| {
            // SAFETY: both are live; the query keeps a copy.
            unsafe { (functions.tiledb_query_set_subarray_t)(ctx, query.get(), subarray.get()) }
        })?;
        let buffer_bytes = buffer_bytes.clamp(LEAST_BUFFER, LARGEST_BUFFER);
        let buffers = columns
            .iter()
            .map(|name| {
                Ok(Buffer::new(
                    c_string("a column's name", name)?,
                    kind(array.schema(), uri, name)?,
                    buffer_bytes,
                ))
            })
            .collect::<Result<_, Error>>()?;
        let mut read = Self {
            query,
            _subarray: subarray,
            buffers,
            buffer_bytes,
            complete: false,
            failed: false,
            array,
        };
        read.set_buffers()?;
        Ok(read)
    }

    /// Returns the next cells, or `None` after the last.
    ///
    /// After an error the read is over: every further call is an error.
    pub fn next_piece(&mut self) -> Result<Option<Piece<'_>>, Error> {
        if self.failed {
            return Err(Error::Query {
                operation: "reading",
                uri: self.array.uri().to_owned(),
                message: "an earlier step of this read failed; make a new one",
            });
        }
        // Cleared after the step: a failed step may leave libtiledb with pointers to freed buffers.
        self.failed = true;
        let n_cells = self.step()?;
        self.failed = false;
        Ok((n_cells > 0).then_some(Piece { buffers: &self.buffers, uri: self.array.uri() }))
    }

    /// Submits until cells arrive, and returns their number; 0 at the end.
    fn step(&mut self) -> Result<usize, Error> {
        while !self.complete {
            // The counters still have the sizes that the previous step filled.
            self.buffers.iter_mut().for_each(Buffer::reset);
            let context = self.array.context();
            context.call("reading", self.array.uri(), |functions, ctx| {
                // SAFETY: the query is live, and so are the buffers that it knows.
                unsafe { (functions.tiledb_query_submit)(ctx, self.query.get()) }
            })?;
            let mut status = 0;
            context.call("reading", self.array.uri(), |functions, ctx| {
                // SAFETY: query and out pointer are live.
                unsafe {
                    (functions.tiledb_query_get_status)(ctx, self.query.get(), &raw mut status)
                }
            })?;
            let n_cells = self.buffers.first().map_or(0, Buffer::n_cells);
            match status {
                STATUS_COMPLETED => self.complete = true,
                STATUS_INCOMPLETE if n_cells == 0 => self.grow()?,
                STATUS_INCOMPLETE => {}
                other => {
                    let uri = self.array.uri().to_owned();
                    return Err(Error::Unknown {
                        what: "a read that ended with status",
                        value: other.into(),
                        uri,
                    });
                }
            }
            if n_cells > 0 {
                return Ok(n_cells);
            }
        }
        Ok(0)
    }

    fn grow(&mut self) -> Result<(), Error> {
        if self.buffer_bytes >= LARGEST_BUFFER {
            return Err(Error::Buffer {
                uri: self.array.uri().to_owned(),
                buffer_bytes: self.buffer_bytes,
            });
        }
        self.buffer_bytes *= 2;
        for buffer in &mut self.buffers {
            buffer.grow(self.buffer_bytes);
        }
        self.set_buffers()
    }

    fn set_buffers(&mut self) -> Result<(), Error> {
        let (context, query) = (self.array.context(), self.query.get());
        for buffer in &mut self.buffers {
            let name = buffer.name.as_ptr();
            let data = buffer.data_pointer().cast();
            let size = &raw mut buffer.data_bytes;
            context.call("setting a buffer", self.array.uri(), |functions, ctx| {
                // SAFETY: `data` has as many bytes as `size` says. Both live in the vector of
                // buffers, whose length does not change after construction, so they stay in place
                // until the query is freed or they are set again.
                unsafe { (functions.tiledb_query_set_data_buffer)(ctx, query, name, data, size) }
            })?;
            if buffer.kind.var_sized {
                let offsets = buffer.offsets_pointer();
                let size = &raw mut buffer.offsets_bytes;
                context.call("setting a buffer", self.array.uri(), |functions, ctx| {
                    // SAFETY: as above.
                    unsafe {
                        (functions.tiledb_query_set_offsets_buffer)(ctx, query, name, offsets, size)
                    }
                })?;
            }
            if buffer.kind.nullable {
                let validity = buffer.validity_pointer();
                let size = &raw mut buffer.validity_bytes;
                context.call("setting a buffer", self.array.uri(), |functions, ctx| {
                    // SAFETY: as above.
                    unsafe {
                        (functions.tiledb_query_set_validity_buffer)(
                            ctx, query, name, validity, size,
                        )
                    }
                })?;
            }
        }
        Ok(())
    }
}

fn subarray(array: &Array, ranges: &[&[(i64, i64)]]) -> Result<Handle<sys::Subarray>, Error> {
    let (context, uri) = (array.context(), array.uri());
    let subarray = context.make("choosing cells", uri, free_subarray, |functions, ctx, out| {
        // SAFETY: the array is open, the out pointer live.
        unsafe { (functions.tiledb_subarray_alloc)(ctx, array.raw(), out) }
    })?;
    for (dimension_idx, ranges) in (0_u32..).zip(ranges) {
        // libtiledb rejects ranges of a dimension that the array does not have.
        let dimension = array.schema().dimensions.get(dimension_idx as usize);
        for (start, end) in *ranges {
            let bytes = |bound: i64| match dimension {
                Some(dimension) => {
                    dimension.datatype.integer_bytes(bound.into()).ok_or_else(|| Error::Column {
                        column: dimension.name.clone(),
                        uri: uri.to_owned(),
                        message: format!(
                            "{bound} is not a coordinate of type {:?}, so no range can end there",
                            dimension.datatype
                        ),
                    })
                }
                None => Ok(bound.to_le_bytes().to_vec()),
            };
            let (start, end) = (bytes(*start)?, bytes(*end)?);
            context.call("choosing cells", uri, |functions, ctx| {
                // SAFETY: both ends have the size of the dimension's coordinates; they are copied.
                unsafe {
                    (functions.tiledb_subarray_add_range)(
                        ctx,
                        subarray.get(),
                        dimension_idx,
                        start.as_ptr().cast(),
                        end.as_ptr().cast(),
                        ptr::null(),
                    )
                }
            })?;
        }
    }
    Ok(subarray)
}
