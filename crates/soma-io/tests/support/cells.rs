//! Reads X in both ways that a reader offers, as lists of cells that can be compared.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_schema::DataType;
use soma_io::{CsrBuffers, GeneSelection, RowRanges, XReader};

/// Row and column, as joinids or as positions, and value.
pub(crate) type Cell = (u64, u64, f32);

/// The cells of a block in CSR, by position.
pub(crate) fn cells_of(csr: &CsrBuffers) -> Vec<Cell> {
    (0..csr.n_rows())
        .flat_map(|row| {
            let (columns, values) = csr.row(row);
            columns
                .iter()
                .zip(values)
                .map(move |(column, value)| (row as u64, (*column).into(), *value))
        })
        .collect()
}

/// The result of `read_csr`, checked for structure and against the statistics.
pub(crate) fn read_csr(
    reader: &dyn XReader,
    rows: &RowRanges,
    genes: &GeneSelection,
) -> Result<CsrBuffers, soma_io::Error> {
    let mut csr = CsrBuffers::default();
    let stats = reader.read_csr(rows, genes, &mut csr)?;
    csr.check()?;
    assert_eq!(stats.values, csr.nnz() as u64);
    assert_eq!(csr.n_rows() as u64, rows.n_rows());
    assert_eq!(csr.n_columns, genes.n_columns(reader.n_columns())?);
    Ok(csr)
}

/// The result of `read_coo`, sorted by joinids, values as `f32`.
pub(crate) fn read_coo(
    reader: &dyn XReader,
    rows: &RowRanges,
    genes: &GeneSelection,
) -> Result<Vec<Cell>, soma_io::Error> {
    let mut cells: Vec<Cell> = Vec::new();
    let stats = reader.read_coo(rows, genes, &mut |batch| {
        assert!(batch.num_rows() > 0, "an empty piece was handed over");
        let joinids = |name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        let values = batch.column_by_name("soma_data").unwrap();
        let values = arrow_cast::cast(values, &DataType::Float32).unwrap();
        let (rows, columns) = (joinids("soma_dim_0"), joinids("soma_dim_1"));
        for ((row, column), value) in rows
            .values()
            .iter()
            .zip(columns.values())
            .zip(values.as_primitive::<Float32Type>().values())
        {
            cells.push((*row as u64, *column as u64, *value));
        }
        Ok(())
    })?;
    assert_eq!(stats.values, cells.len() as u64);
    cells.sort_by_key(|(row, column, _)| (*row, *column));
    Ok(cells)
}

/// Every row of X.
pub(crate) fn all_rows(reader: &dyn XReader) -> RowRanges {
    RowRanges::new(vec![0..reader.n_rows()]).unwrap()
}
