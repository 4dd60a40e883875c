//! Reads and writes the cells of sparse arrays.
//!
//! libtiledb keeps pointers to a read's buffers between submits. So the query owns its buffers and
//! lends out their contents piece by piece: a buffer can neither move nor be freed while libtiledb
//! uses it.
//!
//! ```compile_fail
//! # fn example(mut query: tiledb::ReadQuery<'_>) -> Result<(), tiledb::Error> {
//! let piece = query.next_piece()?;
//! drop(query); // error: the piece still borrows the query's buffers
//! println!("{:?}", piece.is_some());
//! # Ok(())
//! # }
//! ```

mod buffer;
mod delete;
mod read;
mod write;

pub use buffer::Column;
pub(crate) use delete::delete;
pub use delete::{Comparison, Condition};
pub use read::{Layout, Piece, ReadQuery};
pub use write::{WriteColumn, WriteOrder, WriteQuery};
