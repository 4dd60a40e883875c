//! What every reader of X offers.

use std::fmt::Debug;

use arrow_array::RecordBatch;
use arrow_schema::DataType;

use crate::{CacheUse, CsrBuffers, Error, GeneSelection, PackedCsr, ReadTimes, RowRanges};

/// What a read did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadStats {
    /// The reader that did it.
    pub reader: &'static str,
    /// The values that were returned.
    pub nnz: u64,
    /// The values that were decoded to find them, where the reader knows.
    pub cells_decoded: Option<u64>,
    /// The bytes that were read from storage, where the reader knows. libtiledb counts those of a
    /// reader, so that of two reads at the same time each counts some of the other's.
    pub bytes_read: Option<u64>,
    /// The requests that were sent to an object store, tries after the first not counted. `None`
    /// where X is in a folder, and where the reader does not know, as libtiledb. Of two reads of
    /// one reader at the same time each counts some of the other's.
    pub requests: Option<u64>,
    /// The bytes that the filters gave, where the reader knows.
    pub bytes_decoded: Option<u64>,
    /// The bytes that the values returned take as they are stored: cell, gene and value of each,
    /// where the reader knows.
    pub bytes_needed: Option<u64>,
    /// Time that the reader's threads spent fetching and decoding. A reader that can tell the two
    /// apart gives it for every form of read.
    pub times: Option<ReadTimes>,
}

/// What a read gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadForm {
    /// [`XReader::read_csr`], or [`XReader::read_packed`].
    Csr,
    /// [`XReader::read_coo`].
    Coo,
}

/// Reads rows of X. Can be used by several threads at once.
///
/// [`contract::check`](crate::contract::check) checks everything below for any reader, given the
/// rows of its X. A decorator forwards every method, those with a default included: have clippy
/// check that with `#[deny(clippy::missing_trait_methods)]` on its `impl`.
///
/// # Every read
///
/// Rows come by joinid, ascending, since [`RowRanges`] cannot hold others: whoever wants another
/// order or a row twice sorts and repeats what was read. No rows, and no genes, are requests like
/// others. Before anything is read, a read fails with [`Error::RowsOutside`] if a row is at or
/// beyond [`n_rows`](Self::n_rows), and with [`Error::Genes`] if a gene is at or beyond
/// [`n_columns`](Self::n_columns) or comes twice.
///
/// All forms give the same cells. A cell that X holds twice, where the array allows duplicates,
/// comes twice. Buffers may hold the rows of another read, of this reader or of another one. After
/// an error what they hold is unspecified, but the next read may use them.
pub trait XReader: Send + Sync + Debug {
    /// Its name, as reports give it, and as [`ReadStats::reader`] has it.
    fn name(&self) -> &'static str;

    /// Why libtiledb reads and not the native reader, if that was left to choose.
    fn why_not_native(&self) -> Option<&str> {
        None
    }

    /// The rows of X: joinids of cells are below it.
    fn n_rows(&self) -> u64;

    /// The columns of X: joinids of genes are below it.
    fn n_columns(&self) -> u64;

    /// The type that values are stored as.
    fn data_type(&self) -> &DataType;

    /// The number of values of X or a few more, never fewer, if the reader knows it without reading
    /// them.
    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Bytes of memory that a read of `nnz` values of these genes takes at most, beside those of
    /// what it returns. More values never take less.
    fn working_bytes(&self, _nnz: u64, _genes: &GeneSelection, _form: ReadForm) -> u64 {
        0
    }

    /// What its cache has done, if it reads an object store through one.
    fn cache(&self) -> Option<CacheUse> {
        None
    }

    /// Lets the reader keep up to `limit_bytes` of values decoded for later reads, if it can, on
    /// behalf of `holder`, a number that the caller chooses. What several holders allow adds up; 0
    /// withdraws what a holder allowed. Values past the sum are dropped. What is read stays the
    /// same.
    fn keep_decoded(&self, _holder: u64, _limit_bytes: u64) {}

    /// Bytes of memory that the values kept take at the moment, never more than holders allow.
    fn decoded_bytes(&self) -> u64 {
        0
    }

    /// Reads rows as CSR: one row for each joinid of `rows`, also if it has no values; columns as
    /// `genes` numbers them, ascending within a row. What `out` held is replaced, its number of
    /// columns included.
    ///
    /// Values of every numeric type become the nearest `f32`; truth values become 0 and 1.
    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error>;

    /// Whether these genes can be read as packed rows: never more than [`PackedCsr::MAX_COLUMNS`],
    /// and none that are an error.
    fn packs(&self, _genes: &GeneSelection) -> bool {
        false
    }

    /// Reads rows as [`read_csr`](Self::read_csr) does, in half the memory; unpacked they are the
    /// same to the bit.
    ///
    /// # Errors
    /// Those of [`read_csr`](Self::read_csr), and [`Error::Unpacked`] if [`packs`](Self::packs)
    /// says that it cannot.
    fn read_packed(
        &self,
        _rows: &RowRanges,
        _genes: &GeneSelection,
        _out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        Err(Error::Unpacked { reader: self.name() })
    }

    /// Reads rows as Arrow tables, piece by piece, in any order of cells: `soma_dim_0` and
    /// `soma_dim_1` (Int64, joinids, not positions) and `soma_data` (of
    /// [`data_type`](Self::data_type), or Float32 if the reader makes all values such, as the
    /// native one). No piece is empty, and none has nulls.
    ///
    /// # Errors
    /// Those of [`read_csr`](Self::read_csr), and the first of `each`, as it is: then `each` is not
    /// called again.
    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error>;
}
