//! The contract check rejects readers that each break one rule.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;

use super::check;
use crate::{
    CacheUse, CsrBuffers, Error, GeneSelection, MemoryReader, PackedCsr, ReadForm, ReadStats,
    RowCacheUse, RowRanges, WholeRows, XReader,
};

/// The rule that a reader breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    NValues,
    MostNValues,
    StatsNnz,
    Requests,
    Order,
    OldRows,
    OldColumns,
    PacksNothing,
    EmptyPiece,
    LostPiece,
    GoesOn,
    RowsOutside,
    GeneTwice,
    Memory,
    Kept,
}

const ALL: [Wrong; 15] = [
    Wrong::NValues,
    Wrong::MostNValues,
    Wrong::StatsNnz,
    Wrong::Requests,
    Wrong::Order,
    Wrong::OldRows,
    Wrong::OldColumns,
    Wrong::PacksNothing,
    Wrong::EmptyPiece,
    Wrong::LostPiece,
    Wrong::GoesOn,
    Wrong::RowsOutside,
    Wrong::GeneTwice,
    Wrong::Memory,
    Wrong::Kept,
];

#[derive(Debug)]
struct Flawed {
    inner: MemoryReader,
    wrong: Wrong,
}

impl Flawed {
    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == wrong
    }

    /// The rows and genes to read instead of invalid ones, if that is the rule to break.
    fn allowed(&self, rows: &RowRanges, genes: &GeneSelection) -> (RowRanges, GeneSelection) {
        let is_outside = rows.check_within("here", self.n_rows()).is_err();
        let is_wrong = genes.n_columns(self.n_columns()).is_err();
        (
            if self.is(Wrong::RowsOutside) && is_outside {
                RowRanges::default()
            } else {
                rows.clone()
            },
            if self.is(Wrong::GeneTwice) && is_wrong { GeneSelection::All } else { genes.clone() },
        )
    }

    fn stats(&self, stats: ReadStats) -> ReadStats {
        ReadStats {
            values: stats.values + u64::from(self.is(Wrong::StatsNnz)),
            requests: stats.requests.or_else(|| self.is(Wrong::Requests).then_some(0)),
            ..stats
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for Flawed {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn n_rows() -> u64;
        fn n_columns() -> u64;
        fn data_type() -> &DataType;
        fn is_remote() -> bool;
        fn cache() -> Option<CacheUse>;
        fn row_cache() -> Option<RowCacheUse>;
        fn keep_decoded(holder: u64, limit_bytes: u64);
        fn asks_next_reads() -> bool;
        fn index_bytes() -> u64;
        fn announce_next(rows: &RowRanges, genes: &GeneSelection);
        fn exact() -> Result<Arc<dyn XReader>, Error>;
        fn read_packed(rows: &RowRanges, genes: &GeneSelection, out: &mut PackedCsr)
            -> Result<ReadStats, Error>;
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        None
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(self.inner.nnz()?.map(|nnz| if self.is(Wrong::NValues) { nnz - 1 } else { nnz }))
    }

    fn most_nnz(&self) -> Result<Option<u64>, Error> {
        let most = self.inner.most_nnz()?;
        Ok(most.map(|nnz| if self.is(Wrong::MostNValues) { nnz - 1 } else { nnz }))
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        let bytes = self.inner.working_bytes(nnz, genes, form);
        if self.is(Wrong::Memory) { bytes - nnz.min(bytes) } else { bytes }
    }

    fn decoded_bytes(&self) -> u64 {
        if self.is(Wrong::Kept) { 1 } else { self.inner.decoded_bytes() }
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let (rows, genes) = self.allowed(rows, genes);
        let old = out.clone();
        let stats = self.inner.read_csr(&rows, &genes, out)?;
        if self.is(Wrong::OldColumns) {
            out.n_columns = old.n_columns.max(out.n_columns);
        }
        if self.is(Wrong::OldRows) && old.nnz() > out.nnz() {
            *out = old;
        }
        if self.is(Wrong::Order) && rows.n_rows() > 0 && genes == GeneSelection::All {
            let end = out.row_offsets[1];
            out.columns[..end].reverse();
            out.values[..end].reverse();
        }
        Ok(self.stats(stats))
    }

    fn packs(&self, genes: &GeneSelection) -> bool {
        self.is(Wrong::PacksNothing) || self.inner.packs(genes)
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        let (rows, genes) = self.allowed(rows, genes);
        let stats = self.inner.read_coo(&rows, &genes, &mut |piece| {
            if self.is(Wrong::EmptyPiece) {
                each(&piece.slice(0, 0))?;
            }
            let piece = if self.is(Wrong::LostPiece) { &piece.slice(1, 0) } else { piece };
            let each_of_it = if piece.num_rows() == 0 { Ok(()) } else { each(piece) };
            if self.is(Wrong::GoesOn) { Ok(()) } else { each_of_it }
        });
        Ok(self.stats(stats?))
    }
}

#[test]
fn every_broken_promise_is_found() {
    let rows = CsrBuffers {
        row_offsets: vec![0, 2, 2, 5],
        columns: vec![0, 3, 1, 2, 3],
        values: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        n_columns: 4,
    };
    let flawed = |wrong| Flawed { inner: MemoryReader::new(rows.clone()).unwrap(), wrong };
    check(&flawed(Wrong::Nothing), &rows);
    for wrong in ALL {
        let reader = flawed(wrong);
        let checked = catch_unwind(AssertUnwindSafe(|| check(&reader, &rows)));
        assert!(checked.is_err(), "{wrong:?} is not found");
    }
}
