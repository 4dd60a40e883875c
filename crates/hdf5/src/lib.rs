//! An HDF5 file as a store of [Zarr](https://zarr.dev) v3, read in place from any
//! [`Storage`](::storage::Storage).
//!
//! Both formats keep an array as a grid of chunks that are encoded one by one, so a reader of Zarr
//! can read HDF5 if it is told where each chunk lies. [`Hdf5Storage`] is a storage whose files are
//! those that the same groups and arrays would have in Zarr: it makes `zarr.json` from the objects'
//! headers, and a chunk's file is a range of the HDF5 file. Nothing is copied or decoded on the
//! way, except strings.
//!
//! Crate `hdf5-reader` parses the [format](https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html).
//! It is written in Rust alone, so no build needs the C library.
//!
//! ```
//! # fn read(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use hdf5::Hdf5Storage;
//! use storage::{LocalStorage, Storage};
//!
//! let files: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder));
//! let hdf5: Arc<dyn Storage> = Arc::new(Hdf5Storage::open(files, "kinds.h5")?);
//! let values = arrays::StoredArray::open(&hdf5, "numbers/int32")?;
//! assert_eq!(values.shape(), [10]);
//! # Ok(())
//! # }
//! # read(std::path::Path::new("tests/data")).unwrap();
//! ```
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
//! | enumeration of FALSE and TRUE, as h5py writes it | `bool` |
//! | other enumerations | their integers |
//! | strings of fixed and of variable length | `string`, chunks of at most 65,536 |
//! | deflate, shuffle, zstd, blosc | `numcodecs.zlib`, `numcodecs.shuffle`, `zstd`, `blosc` |
//! | fletcher32 as the last filter | none: the checksum is cut off and not compared |
//! | other filters and types | codecs and types named `hdf5.*`, which no reader of Zarr knows |
//! | an attribute that refers to an object | the object's path, if it lies in the same group or in `__categories` there |
//!
//! So a dataset that cannot be read is an error when it is opened, and no hindrance before. Strings
//! of a dataset are read together when the first of them is wanted, and kept. Links into other
//! files and virtual datasets are not followed.
//!
//! A chunk whose deflate filter was skipped, as libhdf5 does where it saves nothing, is wrapped in
//! a zlib stream without compression.
#![forbid(unsafe_code)]

mod attributes;
mod chunks;
mod error;
mod file;
mod filters;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod node;
mod numbers;
mod storage;
mod strings;

pub use self::error::Error;
pub use self::storage::Hdf5Storage;
