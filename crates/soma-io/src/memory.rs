//! A reader of rows in memory, for tests and for small data.

use std::sync::Arc;

use arrow_array::{Float32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;

use crate::columns::coo_batch;
use crate::genes::GeneIndex;
use crate::{CsrBuffers, Error, GeneSelection, ReadForm, ReadStats, RowRanges, XReader};

/// Reads X from memory.
#[derive(Debug, Clone)]
pub struct MemoryReader {
    csr: CsrBuffers,
}

/// Maximum number of cells in a piece of COO.
const PIECE_CELLS: usize = 1 << 16;
/// Bytes of one cell in Arrow: two joinids and a value.
const COO_CELL_BYTES: u64 = 20;

impl MemoryReader {
    /// Makes a reader of all rows of `csr`; row `i` has joinid `i`. Fails if offsets, columns and
    /// values are inconsistent.
    pub fn new(csr: CsrBuffers) -> Result<Self, Error> {
        csr.check()?;
        Ok(Self { csr })
    }

    fn stats(nnz: usize) -> ReadStats {
        let (values, bytes_read) = (nnz as u64, Some(0));
        ReadStats { values, values_decoded: Some(values), bytes_read, ..ReadStats::default() }
    }

    /// The selected cells of a row, as `(joinid of the gene, column, value)`.
    fn cells<'a>(
        &'a self,
        row: u64,
        index: &'a GeneIndex,
        n_columns: usize,
    ) -> impl Iterator<Item = (u32, u32, f32)> + 'a {
        let (genes, values) = self.csr.row(row as usize);
        genes.iter().zip(values).filter_map(move |(gene, value)| {
            let column =
                index.column(i64::from(*gene)).filter(|column| (*column as usize) < n_columns)?;
            Some((*gene, column, *value))
        })
    }
}

impl XReader for MemoryReader {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn n_rows(&self) -> u64 {
        self.csr.n_rows() as u64
    }

    fn n_columns(&self) -> u64 {
        self.csr.n_columns as u64
    }

    fn data_type(&self) -> &DataType {
        &DataType::Float32
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(Some(self.csr.nnz() as u64))
    }

    /// Its values are f32, so nothing is rounded.
    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        Ok(Arc::new(self.clone()))
    }

    fn working_bytes(&self, _nnz: u64, _genes: &GeneSelection, _form: ReadForm) -> u64 {
        PIECE_CELLS as u64 * COO_CELL_BYTES
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within("X in memory", self.n_rows())?;
        let n_columns = genes.n_columns(self.n_columns())?;
        let index = GeneIndex::new(genes);
        out.clear();
        out.n_columns = n_columns;
        let mut cells: Vec<(u32, f32)> = Vec::new();
        for row in rows.iter() {
            cells.clear();
            cells.extend(
                self.cells(row, &index, n_columns).map(|(_, column, value)| (column, value)),
            );
            cells.sort_by_key(|(column, _)| *column);
            out.columns.extend(cells.iter().map(|(column, _)| *column));
            out.values.extend(cells.iter().map(|(_, value)| *value));
            out.row_offsets.push(out.values.len());
        }
        Ok(Self::stats(out.nnz()))
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        rows.check_within("X in memory", self.n_rows())?;
        let n_columns = genes.n_columns(self.n_columns())?;
        let index = GeneIndex::new(genes);
        let (mut joinids, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut nnz = 0;
        let mut hand_over =
            |joinids: &mut Vec<i64>, columns: &mut Vec<i64>, values: &mut Vec<f32>| {
                if values.is_empty() {
                    return Ok(());
                }
                nnz += values.len();
                let take = std::mem::take::<Vec<i64>>;
                let batch = coo_batch(
                    "X in memory",
                    Int64Array::from(take(joinids)),
                    Int64Array::from(take(columns)),
                    Arc::new(Float32Array::from(std::mem::take(values))),
                )?;
                each(&batch)
            };
        for row in rows.iter() {
            for (gene, _, value) in self.cells(row, &index, n_columns) {
                joinids.push(row as i64);
                columns.push(i64::from(gene));
                values.push(value);
            }
            if values.len() >= PIECE_CELLS {
                hand_over(&mut joinids, &mut columns, &mut values)?;
            }
        }
        hand_over(&mut joinids, &mut columns, &mut values)?;
        Ok(Self::stats(nnz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;

    #[test]
    fn it_keeps_the_contract_with_no_rows_and_with_cells_that_come_twice() {
        let none = CsrBuffers { n_columns: 4, ..CsrBuffers::default() };
        contract::check(&MemoryReader::new(none.clone()).unwrap(), &none);
        let twice = CsrBuffers {
            row_offsets: vec![0, 3, 3, 5],
            columns: vec![1, 1, 3, 0, 0],
            values: vec![2.0, 1.0, 5.0, f32::NAN, -0.0],
            n_columns: 4,
        };
        contract::check(&MemoryReader::new(twice.clone()).unwrap(), &twice);
    }
}
