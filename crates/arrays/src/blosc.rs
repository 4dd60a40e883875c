//! Buffers of c-blosc 1, which are decoded block by block.
//!
//! Blocks are independent of one another, so that a part of a buffer needs only the blocks that it
//! lies in: [`Header`] says where they are. [`Buffer`] is one in memory.

mod blosclz;
mod buffer;
mod error;
mod header;
mod scratch;
mod shuffle;

pub use buffer::Buffer;
pub use error::Error;
pub use header::{CODEC_VERSION, Header, MAX_BYTES, MIN_PART_BYTES, VERSION, ZSTD, flags};
pub use scratch::DecodeScratch;
pub use shuffle::shuffle_bytes;
