//! The interface of all readers of X.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;

use crate::{
    CacheUse, CsrBuffers, Error, GeneSelection, PackedCsr, ReadStats, RowCacheUse, RowRanges,
};

/// Form in which a read returns rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadForm {
    /// [`XReader::read_csr`], or [`XReader::read_packed`].
    Csr,
    /// [`XReader::read_coo`].
    Coo,
}

/// Reads rows of X. Several threads can use one reader at the same time.
///
/// [`contract::check`](crate::contract::check) tests any reader for all promises below, given the
/// rows of its X. A decorator forwards every method, also those with a default;
/// `#[deny(clippy::missing_trait_methods)]` on its `impl` has clippy check that.
///
/// # Every read
///
/// Rows are returned by ascending joinid, because [`RowRanges`] allows no other order; a caller
/// that wants another order, or a row twice, rearranges the result. Empty lists of rows or genes
/// are valid requests. Before anything is read, a read fails with [`Error::RowsOutside`] if a row
/// is at or beyond [`n_rows`](Self::n_rows), and with [`Error::Genes`] if a gene is at or beyond
/// [`n_columns`](Self::n_columns) or is listed twice.
///
/// All forms return the same cells. If the array allows duplicates, a cell that X has twice is
/// returned twice. Buffers may contain the rows of an earlier read, also of another reader. After
/// an error their contents are unspecified, but the next read may use them.
pub trait XReader: Send + Sync + Debug {
    /// The name of the reader in reports.
    fn name(&self) -> &'static str;

    /// The reason that libtiledb reads X, if the choice was automatic and the native reader cannot.
    fn why_not_native(&self) -> Option<&str> {
        None
    }

    /// Number of rows of X: joinids of cells are below it.
    fn n_rows(&self) -> u64;

    /// Number of columns of X: joinids of genes are below it.
    fn n_columns(&self) -> u64;

    /// The type of the stored values.
    fn data_type(&self) -> &DataType;

    /// The number of values of X, if known without reading them. It may be slightly too high, never
    /// too low. If cells were deleted by condition, possibly nearly all, they are read and counted.
    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// The greatest number that [`nnz`](Self::nnz) may be, as far as it is known without reading
    /// cells; for estimates of memory.
    fn most_nnz(&self) -> Result<Option<u64>, Error> {
        self.nnz()
    }

    /// Upper bound of the bytes of memory that a read of `nnz` values of these genes uses, without
    /// the returned values. It never shrinks as `nnz` grows.
    fn working_bytes(&self, _nnz: u64, _genes: &GeneSelection, _form: ReadForm) -> u64 {
        0
    }

    /// Whether X is remote, so that reads mostly wait for answers and those of several matrices
    /// are best under way at the same time.
    fn is_remote(&self) -> bool {
        false
    }

    /// Statistics of the reader's cache, if it reads an object store through one.
    fn cache(&self) -> Option<CacheUse> {
        None
    }

    /// Statistics of the cache of rows on disk, if the reader has one.
    fn row_cache(&self) -> Option<RowCacheUse> {
        None
    }

    /// Allows the reader to keep up to `limit_bytes` of decoded values for later reads, if it can.
    /// The limit belongs to `holder`, a number that the caller chooses; the limits of all holders
    /// add up, and 0 removes the holder's own. Values beyond the sum are dropped. The results of
    /// reads do not change.
    fn keep_decoded(&self, _holder: u64, _limit_bytes: u64) {}

    /// Whether the reader asks when rows are read again ([`RowRanges::next_reads`]), to keep what
    /// is needed soonest.
    fn asks_next_reads(&self) -> bool {
        false
    }

    /// Bytes of memory that kept values use now, never more than the sum of all holders' limits.
    fn decoded_bytes(&self) -> u64 {
        0
    }

    /// Bytes of memory for the places of rows that the reader remembers. It grows with the rows
    /// that were read, up to a limit of the reader.
    fn index_bytes(&self) -> u64 {
        0
    }

    /// Names the rows that the read after the next one will want, so that a reader of a remote X
    /// can request them while the next one is decoded. Only for reads that follow each other. The
    /// results of reads do not change.
    fn announce_next(&self, _rows: &RowRanges, _genes: &GeneSelection) {}

    /// A reader of the same X that never rounds: instead of returning the nearest `f32`, its reads
    /// fail with [`Error::Inexact`], which names the cell and the gene. It keeps decoded values of
    /// its own.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the reader cannot do that, which is the default.
    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        let data_type = self.data_type().to_string().to_lowercase();
        Err(Error::NotExact { reader: self.name(), data_type })
    }

    /// Reads rows as CSR: one row per joinid of `rows`, even if it has no values; columns are
    /// numbered by `genes` and ascend within a row. Replaces the contents of `out`, its number of
    /// columns included.
    ///
    /// Values of every numeric type become the nearest `f32` (see [`exact`](Self::exact)); Booleans
    /// become 0 and 1.
    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error>;

    /// Reads several selections of genes at once, if a read decodes whole rows whatever the genes;
    /// `None` otherwise.
    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        None
    }

    /// Whether these genes can be read as packed rows: `false` for more than
    /// [`PackedCsr::MAX_COLUMNS`] genes and for an invalid selection.
    fn packs(&self, _genes: &GeneSelection) -> bool {
        false
    }

    /// Reads rows like [`read_csr`](Self::read_csr), in half the memory; unpacked they are bit for
    /// bit the same.
    ///
    /// # Errors
    /// Those of [`read_csr`](Self::read_csr), and [`Error::Unpacked`] if [`packs`](Self::packs)
    /// returns `false`.
    fn read_packed(
        &self,
        _rows: &RowRanges,
        _genes: &GeneSelection,
        _out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        Err(Error::Unpacked { reader: self.name() })
    }

    /// Reads rows as Arrow tables, piece by piece, with cells in any order. The columns are
    /// `soma_dim_0` and `soma_dim_1` (Int64, joinids, not positions) and `soma_data` (of
    /// [`data_type`](Self::data_type), or Float32 if the reader converts all values, like the
    /// native one). A piece is never empty and has no nulls.
    ///
    /// # Errors
    /// Those of [`read_csr`](Self::read_csr), and the first error of `each`, unchanged; `each` is
    /// not called again after it.
    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error>;
}

/// A reader that decodes whole rows, whatever the genes.
pub trait WholeRows {
    /// Reads rows for several selections of genes, each like [`XReader::read_csr`], and decodes the
    /// rows once. The statistics are those of all selections together.
    ///
    /// # Errors
    /// Those of [`XReader::read_csr`].
    fn read_selections(
        &self,
        rows: &RowRanges,
        selections: &mut [(&GeneSelection, &mut CsrBuffers)],
    ) -> Result<ReadStats, Error>;
}
