#![doc = include_str!("../README.md")]
//!
//! libtiledb decodes whole data tiles. In a matrix of cells by genes written tile by tile, a data
//! tile contains some columns of about a thousand rows, so 64 rows at a random place cost libtiledb
//! sixteen times the necessary work. But a tile is not one compressed unit: it consists of chunks
//! of 64 KiB, each filtered separately. A reader that has the positions of its rows in a tile needs
//! one or two of them. This crate does that. Arrays that it cannot read it rejects before reading
//! ([`Error::Unsupported`] with an [`Unsupported`] reason), so that libtiledb can take over.
//!
//! # What can be read
//!
//! Sparse arrays of two dimensions (int32, uint32, int64, uint64, not negative) and one attribute
//! that is not nullable, with one value per cell, of any integer or float type or bool, converted
//! to f32. Format versions 5 to 23, which libtiledb 2.0 to 2.30 write; tests cover 6 to 22. Any
//! number of fragments, overlapping or not, consolidated with or without the time of each cell,
//! vacuumed or not, at the latest state or an earlier time. Any tile and cell order; fast if both
//! are row-major. The filters zstd, gzip, LZ4, bzip2, RLE, byteshuffle, bitshuffle, bit-width
//! reduction, positive delta, delta, double delta, float scale, XOR, MD5 and SHA-256 (verified).
//!
//! Cells that were deleted by condition are left out from the time of their deletion on.
//!
//! Not supported: other dimensions, several or variable attributes, updates by condition,
//! encryption, dictionaries, WebP, and more than 16 fragments of which some with equal times
//! overlap in an array without duplicates.
//!
//! Beside such a matrix ([`Array`]) this crate reads what else a collection of arrays is made of:
//!
//! | type | what it reads |
//! |---|---|
//! | [`object_type`] | whether a group or an array lies at a place |
//! | [`Group`] | members and metadata of a group |
//! | [`DenseArray`] | blocks of a dense array of two dimensions and one such attribute, in any order of tiles and cells, of one or several fragments |
//! | [`ArrayDescription`] | schema, metadata, enumerations and extent of any array |
//! | [`Table`] | columns of a sparse array of one integer dimension, with any number of attributes, nullable and var-sized ones too, also where attributes were added and dropped, or texts are behind a dictionary |
//!
//! # How a read of a matrix works
//!
//! 1. The rows are sorted and split into *tasks* at the borders of space tiles, so that tasks share
//!    almost no tiles (`read::plan`).
//! 2. For each task the bounding rectangles give the tiles that may contain its rows, and each
//!    tile's *row index* gives the rows' places in it. Row indices are built when first needed,
//!    from the tile's row coordinates, which compress to almost nothing, and are cached within a
//!    memory limit (`row_index`, `index_cache`).
//! 3. Now the number of values of each row is known, and with it the place of each value in the
//!    caller's buffers. Chunks with wanted cells are fetched, neighbours in one read, decoded once
//!    each, and copied to their places (`read::direct`). With a selection of columns, or if the
//!    times of cells or deletes decide which count, tasks collect cells until everything is known
//!    (`read::staged`).
//! 4. Rows whose columns do not ascend (several fragments, other orders) are sorted. In an array
//!    without duplicates, a repeated place repeats the read through the staged path, where the
//!    latest cell stays.
//!
//! Tasks run on a rayon pool of the array's own or one passed in, never the global one. Files are
//! read through a [`storage::Storage`], which takes many ranges at once: of a folder or of an
//! object store, with a cache or a rate limit around it.
//!
//! # What can be written
//!
//! - Sparse arrays of integer dimensions ([`create_array`]), with enumerations, filters of every
//!   kind, and metadata ([`write_array_metadata`]); groups ([`write_group`]). Format 22.
//! - Fragments of matrices ([`FragmentWriter`]): int64 by int64, one float32, in the order of space
//!   tiles, rows and columns; one fragment, or several one after another.
//! - Fragments of tables ([`TableWriter`]): one dimension of int64, and any number of texts, bytes,
//!   numbers, times and booleans, nullable or not.
//!
//! Fragments have format 16 to 22 and the filters zstd, LZ4, RLE, byteshuffle, delta, double delta,
//! bit-width reduction and float scale. What libtiledb alone writes is refused before anything is
//! written ([`Error::Unwritable`]). Tests compare the content of schemas, enumerations, groups and
//! metadata with that of libtiledb's files, byte by byte except for times and random names, and the
//! metadata of fragments field by field. Two pipelines decode faster than filter by filter: delta
//! with bit-width reduction, straight to four bytes a value, and run lengths of rows, straight to a
//! row index.
//!
//! # The format and its specification
//!
//! Files are those of `format_spec/` in TileDB-Inc/TileDB; details that they leave open are in the
//! library's source, under `tiledb/sm`.
//!
//! | fact | source |
//! |---|---|
//! | A generic tile is a header (version, lengths, type, encryption, pipeline) and a tile; schemas, rectangles and offsets are generic tiles | `generic_tile.md` |
//! | A tile is a u64 number of chunks, then for each: original, filtered, metadata length (u32 each), metadata, data | `tile.md` |
//! | libtiledb writes chunks of 64 KiB of whole values, whatever the pipeline's "max chunk size"; this crate reads up to 4 MiB | `tile/tile.cc` |
//! | Windows of bit-width reduction may have any length; one that is not whole values stays as it is | `filter/bit_width_reduction_filter.cc` |
//! | Offsets of var-sized values are relative to their tile, without a last one | `fragment.md` |
//! | Fill values, default filters and the fields of a current domain | `misc/constants.cc`, `array_schema/` |
//! | A group's number of members is a u64, not a u32 as specified | `group/group_details_v2.cc` |
//! | Nulls of var-sized values are not counted; full tiles of nulls have zeros as least and greatest | `tile/tile_metadata_generator.cc`, `query/writers/writer_base.cc` |
//! | Sums, least and greatest values of tiles and fragments, and the placeholders for missing ones | `fragment/fragment_metadata.cc`, `tile/tile_metadata_generator.cc` |
//! | Filters are undone in reverse order; each one's metadata precedes that of the filters before it; compressors also compress that metadata | `tile.md`, `filter/filter_pipeline.cc` |
//! | Double delta, float scale, delta, XOR | `filters/*.md` |
//! | Bitshuffle works on blocks of 8 KiB, and on multiples of eight values | `filter/bitshuffle_filter.cc` |
//! | "Gzip" is a zlib stream, LZ4 a bare block | `compressors/` |
//! | Bit-width reduction and positive delta leave times unchanged before format 20 | `tile.md` |
//! | A dimension without filters has the schema's coordinate filters, which also filter the times of cells | `array_schema.md`, `array_schema/dimension.cc` |
//! | An attribute's enumeration follows its order, from format 20 on | `array_schema/attribute.cc` |
//! | From format 10 on the footer's length is the file's last u64; before, it follows from the schema | `fragment.md` |
//! | File numbers count attributes first, then one place for obsolete coordinates, then dimensions, then times | `fragment/fragment_metadata.h` |
//! | Files are named after attributes and dimensions up to format 8 (percent-encoded in 8), by number from 9 on | `fragment.md` |
//! | The last level of the R-tree has one rectangle per tile; all tiles but the last are as large as the capacity | `fragment.md`, `rtree/rtree.cc` |
//! | Commits: `.ok` beside the fragment up to format 11, `__commits/*.wrt` from 12 on; `.con`, `.ign`, `.vac` | `array_file_hierarchy.md` and the files' own specifications |
//! | Selection of fragments and schema at a time | `array/array_directory.cc` |
//! | Of two cells in one place the later counts; of equal times, the one in the later fragment, in it the later tile, in it the first | `misc/comparators.h`, `query/readers/sparse_global_order_reader.cc` |
//! | XOR outputs integers of the size of its input | `filter/xor_filter.cc` |
//! | Cells outside the current domain of the opening time do not belong to the array | `query/query.cc` |
//! | Fragments store the times of cells from format 15 on | `misc/constants.cc` |
//! | A delete stores the negated condition, with codes for enumerated values | `delete_commit_file.md`, `query/deletes_and_updates/deletes_and_updates.cc` |
//! | Which cells a delete concerns; nulls, missing fields and nested conditions | `query/readers/sparse_index_reader_base.cc`, `query/query_condition.cc` |
//! | Times of deletion (`dt.tdb`), and the names of considered deletes | `fragment.md` |
//! | Metadata are records of key, deletion, type, count and values; the latest record of a key counts | `metadata.md`, `metadata/metadata.cc` |
//! | Details of a group list all members in version 1, and changes in version 2, which the file's name ends in | `group.md`, `group/group_details_v2.cc` |
//! | The schema names the file of each enumeration | `enumeration.md` |
//! | A var-sized field has a file of offsets, which begin at 0 in each tile, and one of values; validity is one byte per cell, in a file of its own | `fragment.md` |
//! | Run lengths and a dictionary of texts replace the offsets; ASCII from schemas of format 12 and 13 on, UTF-8 from 17 on | `filter/filter_pipeline.cc`, `filter/compression_filter.cc` |
//! | Rows of fragments without an attribute have its fill value | `query/readers/sparse_index_reader_base.cc` |
//!
//! Consolidated fragment metadata (`__fragment_meta/*.meta`) repeats the footers of fragments to
//! save requests; this crate reads the fragments' own. Cells of a data tile are in global order,
//! that is by space tile: the rows of one data tile form a few ascending runs, not one.
//!
//! # Damage
//!
//! Files are untrusted. Every length is checked against the file before memory is allocated for it,
//! the claimed size of an unfiltered chunk against the most that its bytes can expand to,
//! coordinates against the bounds of their tile, and these against the array. Damage is an
//! [`Error::Damaged`] that names file and place. Damaged values go unnoticed unless the array has
//! checksums. What is intact and too large for the memory is an [`Error::Memory`]. All code is safe
//! Rust.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod array;
mod cursor;
mod datatype;
mod decoded_cache;
mod decoded_chunk;
mod deletes;
mod dense;
mod description;
mod directory;
mod enumeration;
mod error;
mod filter;
mod fragment;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod gather;
mod generic_tile;
mod group;
mod index_cache;
mod memory;
mod metadata;
mod packed_integers;
mod read;
mod request;
mod row_index;
mod schema;
mod table;
mod tile;
mod timestamped_name;
mod unsupported;
mod values;
mod write;

pub use array::{Array, OpenOptions, Threads};
pub use csr::{ColumnSelection, CsrBuffers, PackedCsr, PackedValues};
pub use datatype::Datatype;
pub use dense::DenseArray;
pub use description::ArrayDescription;
pub use directory::has_conditions;
pub use error::Error;
pub use gather::gather;
pub use group::{Group, GroupMember, object_type};
pub use table::{Table, TableColumn};
pub use timestamped_name::is_in_fragment;
pub use unsupported::Unsupported;
pub use worktime::{ReadStats, ReadTimes, ThreadTime};
pub use write::{
    ColumnCells, FragmentWriter, TableWriter, TileRow, WriteOptions, WrittenFragment, create_array,
    write_array_metadata, write_group,
};
