#![doc = include_str!("../README.md")]
//!
//! Both formats keep an array as a grid of chunks that are encoded one by one, so a reader of Zarr
//! can read HDF5 once it knows where each chunk lies. [`Hdf5Storage`] is a storage whose files are
//! those that the same groups and arrays would have in Zarr: it makes `zarr.json` from the objects'
//! headers, and a chunk's file is a range of the HDF5 file. Where Zarr has no filter or type like
//! those of a dataset, chunks are decoded here when they are read.
//!
//! Crate `hdf5-reader` parses most of the
//! [format](https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html). It is written in
//! Rust alone, so no build needs the C library.
//!
//! # Mapping
//!
//! | in HDF5 | in Zarr |
//! |---|---|
//! | group, attributes | group, attributes |
//! | dataset in chunks | array with the same chunks |
//! | contiguous dataset | array with chunks of whole rows, about 128 KiB each, without codecs |
//! | compact dataset | array with one chunk |
//! | numbers of either byte order | `int8` to `uint64`, `float16` to `float64` |
//! | integers with another precision or offset | those of as many bytes, decoded here |
//! | floats of other formats, such as bfloat16 | `float32` or `float64`, decoded here |
//! | enumeration of FALSE and TRUE, as h5py writes it | `bool` |
//! | other enumerations | their integers |
//! | strings of fixed and of variable length | `string`, the same chunks, decoded here |
//! | deflate, shuffle, zstd, blosc | `numcodecs.zlib`, `numcodecs.shuffle`, `zstd`, `blosc` |
//! | lzf, lz4, szip, nbit, scaleoffset, fletcher32 | none: decoded here, checksums compared |
//! | an attribute that refers to an object | the object's path, if it lies in the same group or in `__categories` there |
//! | soft link | what it leads to |
//!
//! # What is not read
//!
//! Such an object is an array of a type named `hdf5.*`, which no reader of Zarr knows, and its
//! attribute [`UNREADABLE`] says why and what to do. So it is an error when it is opened, and does
//! not hinder the others:
//!
//! - elements that are compounds, arrays, references, opaque, times, bits, or lists of any length;
//!   numbers that 64 bits do not have
//! - external storage, virtual datasets, links into other files, links that lead nowhere or to a
//!   group around them
//! - filters of other numbers; chunks at the edge that are left unfiltered by a chunk option
//! - objects whose headers are damaged
//!
//! # Memory
//!
//! What is kept of a file is in proportion to its bytes, whatever lengths it declares. Names,
//! attributes and strings that lie in a heap once are never larger than the file; once the same
//! bytes are referred to so often that they are, reading fails. So does an array of far more
//! strings than the file has bytes, and a path to an object once there are more paths than the file
//! has room for objects. A chunk that is decoded here has at most 256 MiB.
#![forbid(unsafe_code)]

mod array;
mod attributes;
mod blosc;
mod chunks;
mod datatype;
mod error;
mod file;
mod filters;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod header;
mod heap;
mod layout;
mod links;
mod lz;
mod node;
mod numbers;
mod objects;
mod storage;
mod strings;
mod unreadable;

pub use self::error::Error;
pub use self::storage::Hdf5Storage;

/// The attribute of an object that is not read: a sentence that says why, and what to do.
pub const UNREADABLE: &str = "hdf5.unreadable";
