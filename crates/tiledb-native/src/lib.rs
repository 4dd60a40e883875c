//! Reads TileDB sparse fragments without libtiledb: only the filter chunks that hold the wanted rows, straight into CSR. Writes them, too.
//!
//! libtiledb decodes whole data tiles. In a matrix of cells by genes that was written tile by tile a data tile holds some columns of a
//! thousand rows, so that 64 rows from a random place cost it sixteen times what was asked for. But a tile is not one compressed
//! unit: it is cut into chunks of 64 KiB, each filtered by itself. A reader that knows where in a tile its rows are needs one or two
//! of them. That is what this crate adds; everything it does not know how to read it declines before reading
//! ([`Error::Unsupported`] with an [`Unsupported`] reason), and libtiledb takes over.
//!
//! ```no_run
//! use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions};
//!
//! let array = Array::open_local("experiment/ms/RNA/X/raw", &OpenOptions::new(4))?;
//! let mut out = CsrBuffers::new();
//! array.read_csr(&[128..192, 4096..4160], &ColumnSelection::All, &mut out)?;
//! let (columns, values) = out.row(0);
//! assert_eq!(columns.len(), values.len());
//! # Ok::<(), tiledb_native::Error>(())
//! ```
//!
//! # What is read
//!
//! Sparse arrays of two dimensions (int32, uint32, int64, uint64, not negative) and one attribute that is not nullable, of one value a
//! cell, of any integer or float type or bool, which becomes f32. Format versions 5 to 23, which libtiledb 2.0 to 2.30 write; tests
//! hold arrays of 6 to 22. Any number of fragments, overlapping or not, consolidated with or without the time of each cell, vacuumed
//! or not, at the latest state or at a time before it. Any tile and cell order; fast where both are row-major. The filters zstd,
//! gzip, LZ4, bzip2, RLE, byteshuffle, bitshuffle, bit-width reduction, positive delta, delta, double delta, float scale, XOR, MD5
//! and SHA-256 (verified). Not: dense arrays, other dimensions, several or variable attributes, deletes and updates by condition,
//! encryption, dictionaries, WebP, more than 16 fragments of which some of one
//! time overlap in an array without duplicates.
//!
//! # How a read goes
//!
//! 1. The rows are sorted and cut into *tasks* at the borders of space tiles, so that tasks share next to no tiles (`read::plan`).
//! 2. For each task the bounding rectangles give the tiles that may hold its rows, and each tile's *row index* where in it they are.
//!    Row indices are built from the tile's row coordinates, which compress to almost nothing, when first needed, and are kept within a
//!    bound of memory (`row_index`, `index_cache`).
//! 3. The number of values of each row is now known, and with it where each one goes in the caller's buffers. Chunks that hold wanted
//!    cells are fetched, neighbours in one read, decoded once each, and copied to where they belong (`read::direct`). With a selection
//!    of columns, or where the times of cells decide which count, tasks keep what they find until all is known (`read::staged`).
//! 4. Rows whose columns do not ascend (several fragments, other orders) are sorted. In an array without duplicates a place that is
//!    found twice sends the read through the staged path again, where the latest cell stays.
//!
//! Tasks run on a rayon pool of the array's own or one handed in, never the global one. Files
//! are read through a [`storage::Storage`], which is given many ranges at once: of a folder, or of
//! an object store, with a cache or a limit of rate around it.
//!
//! # What is written
//!
//! A fragment of an array that libtiledb made ([`FragmentWriter`]): int64 by int64, one float32, cells row by row, format 16 to 22; the
//! filters zstd, LZ4, RLE, byteshuffle, delta, bit-width reduction and float scale. Tests compare its metadata with that of libtiledb's
//! own for the same cells, field by field. Two pipelines are read back with less work than filter by filter: delta with bit-width
//! reduction, straight to four bytes a value, and run lengths of rows, straight to a row index.
//!
//! # The format, and where its specification says so
//!
//! Files are those of `format_spec/` in TileDB-Inc/TileDB; what they leave open is in the library's source, under `tiledb/sm`.
//!
//! | fact | where |
//! |---|---|
//! | A generic tile is a header (version, lengths, type, encryption, pipeline) and a tile; schemas, rectangles and offsets are such | `generic_tile.md` |
//! | A tile is a u64 number of chunks, then for each: original, filtered, metadata length (u32 each), metadata, data | `tile.md` |
//! | libtiledb writes chunks of 64 KiB of whole values, whatever the pipeline's "max chunk size" says; up to 4 MiB are read | `tile/tile.cc` |
//! | Windows of bit-width reduction may have any length | `filter/bit_width_reduction_filter.cc` |
//! | Sums, least and greatest values of tiles and fragments, and what stands for those that there are not | `fragment/fragment_metadata.cc`, `tile/tile_metadata_generator.cc` |
//! | Filters are undone backwards; each one's metadata stands before that of the filters before it; compressors compress that, too | `tile.md`, `filter/filter_pipeline.cc` |
//! | Double delta, float scale, delta, XOR | `filters/*.md` |
//! | Bitshuffle works on blocks of 8 KiB, and on multiples of eight values | `filter/bitshuffle_filter.cc` |
//! | "Gzip" is a zlib stream, LZ4 a bare block | `compressors/` |
//! | Bit-width reduction and positive delta leave times alone before format 20 | `tile.md` |
//! | A dimension without filters has the schema's coordinate filters, which also filter the times of cells | `array_schema.md`, `array_schema/dimension.cc` |
//! | An attribute's enumeration stands behind its order, from format 20 on | `array_schema/attribute.cc` |
//! | The footer's length is the file's last u64 from format 10 on, and follows from the schema before | `fragment.md` |
//! | Files count attributes first, then one place for coordinates of old, then dimensions, then times | `fragment/fragment_metadata.h` |
//! | Files are named after attributes and dimensions up to format 8 (percent-encoded in 8), by number from 9 on | `fragment.md` |
//! | The last level of the R-tree has one rectangle a tile; all tiles but the last are as large as the capacity | `fragment.md`, `rtree/rtree.cc` |
//! | Commits: `.ok` beside the fragment up to format 11, `__commits/*.wrt` from 12 on; `.con`, `.ign`, `.vac` | `array_file_hierarchy.md` and the files' own |
//! | Which fragments and which schema count at a time | `array/array_directory.cc` |
//! | Of two cells of one place the later counts; of one time, that of the later fragment, in it of the later tile, in it the first | `misc/comparators.h`, `query/readers/sparse_global_order_reader.cc` |
//! | XOR gives integers of the size of what it was given to the filter after it | `filter/xor_filter.cc` |
//! | Cells outside the current domain of the opening time are not the array's | `query/query.cc` |
//! | Fragments hold the times of cells from format 15 on | `misc/constants.cc` |
//!
//! Consolidated fragment metadata (`__fragment_meta/*.meta`) repeats the footers of fragments to save requests; fragments keep their
//! own, which are read instead. Cells of a data tile stand in global order, that is by space tile: the rows of one data tile are a few
//! ascending runs, not one.
//!
//! # Damage
//!
//! Files are believed nothing: every length is checked against what there is before memory is taken for it, what a chunk claims to
//! unfilter to against what its bytes can possibly hold, coordinates against the bounds of their tile and these against the array.
//! What is wrong is an [`Error::Damaged`] that names file and place. Damaged values cannot be told from others unless the array has
//! checksums. All code is safe Rust.
#![forbid(unsafe_code)]

mod array;
mod cursor;
mod datatype;
mod decoded_cache;
mod decoded_chunk;
mod directory;
mod error;
mod filter;
mod fragment;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod generic_tile;
mod index_cache;
mod packed_integers;
mod read;
mod request;
mod row_index;
mod schema;
mod tile;
mod timestamped_name;
mod unsupported;
mod values;
mod write;

pub use array::{Array, OpenOptions, Threads};
pub use csr::{CsrBuffers, PackedCsr, PackedValues};
pub use datatype::Datatype;
pub use directory::has_conditions;
pub use error::Error;
pub use read::ReadStats;
pub use request::ColumnSelection;
pub use timestamped_name::is_in_fragment;
pub use unsupported::Unsupported;
pub use worktime::{ReadTimes, ThreadTime};
pub use write::{FragmentWriter, WriteOptions, WrittenFragment};
