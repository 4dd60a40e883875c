//! Reads that fail instead of rounding a value to f32.

use arrow_schema::DataType;
use csr::first_inexact;

use crate::{CsrBuffers, Error, GeneSelection, PackedCsr, PackedValues, RowRanges};

/// Whether f32 has every value of the type, so that no read rounds one.
pub fn is_within_f32(data_type: &DataType) -> bool {
    use DataType as D;
    matches!(
        data_type,
        D::Boolean | D::Float16 | D::Float32 | D::Int8 | D::Int16 | D::UInt8 | D::UInt16
    )
}

/// The request of a read, to name the place of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) uri: &'a str,
    pub(crate) rows: &'a RowRanges,
    pub(crate) genes: &'a GeneSelection,
    pub(crate) data_type: &'a DataType,
}

impl Request<'_> {
    /// Fails if one of the values that were read is not exact.
    pub(crate) fn check_csr(&self, out: &CsrBuffers) -> Result<(), Error> {
        first_inexact(&out.values).map_or(Ok(()), |at| {
            Err(self.inexact_in_row(row_of(&out.row_offsets, at), out.columns[at]))
        })
    }

    /// Fails if one of the values that were read is not exact.
    pub(crate) fn check_packed(&self, out: &PackedCsr) -> Result<(), Error> {
        let PackedValues::Floats(values) = out.values() else { return Ok(()) };
        first_inexact(values).map_or(Ok(()), |at| {
            let column = out.columns()[at];
            Err(self.inexact_in_row(row_of(out.row_offsets(), at), column.into()))
        })
    }

    /// The error of a value in the row at this position of the result, and this column of it.
    pub(crate) fn inexact_in_row(&self, row: usize, column: u32) -> Error {
        let cell = self.rows.iter().nth(row).unwrap_or_default();
        self.inexact(cell, self.genes.stored_column(column))
    }

    /// The error of the value of a cell and a gene.
    pub(crate) fn inexact(&self, cell: u64, gene: u64) -> Error {
        let (uri, data_type) = (self.uri.to_owned(), self.data_type.to_string().to_lowercase());
        Error::Inexact { uri, data_type, cell, gene }
    }
}

/// The row whose values include the one at this position.
fn row_of(row_offsets: &[usize], at: usize) -> usize {
    row_offsets.partition_point(|offset| *offset <= at) - 1
}

#[cfg(test)]
mod tests {
    use csr::INEXACT;

    use super::*;

    #[test]
    fn the_cell_and_the_gene_of_a_value_are_named() {
        let rows = RowRanges::new(vec![4..6, 10..12]).unwrap();
        // Rows 4, 5, 10 and 11; the second and the last are empty.
        let csr = CsrBuffers {
            row_offsets: vec![0, 2, 2, 4, 4],
            columns: vec![0, 2, 1, 2],
            values: vec![1.0, f32::NAN, 70_000.5, INEXACT],
            n_columns: 3,
        };
        let exact = CsrBuffers { values: vec![1.0, f32::NAN, 3.0, f32::INFINITY], ..csr.clone() };
        for (genes, gene) in [
            (GeneSelection::All, 2),
            (GeneSelection::Range(7..10), 9),
            (GeneSelection::List(vec![30, 20, 10]), 10),
        ] {
            let data_type = &DataType::Float64;
            let request = Request { uri: "here", rows: &rows, genes: &genes, data_type };
            let packed = PackedCsr::pack(&csr).unwrap();
            for error in [request.check_csr(&csr), request.check_packed(&packed)] {
                let error = error.unwrap_err();
                assert!(matches!(error, Error::Inexact { cell: 10, gene: g, .. } if g == gene));
                let text = error.to_string();
                assert!(
                    text.contains(&format!("float64 value of cell 10 and gene {gene}")),
                    "{text}"
                );
            }
            request.check_csr(&exact).unwrap();
            request.check_packed(&PackedCsr::pack(&exact).unwrap()).unwrap();
        }
    }

    #[test]
    fn types_within_f32_have_at_most_24_bits() {
        assert!(is_within_f32(&DataType::UInt16) && is_within_f32(&DataType::Boolean));
        for data_type in [DataType::Int32, DataType::UInt32, DataType::Int64, DataType::Float64] {
            assert!(!is_within_f32(&data_type));
        }
    }
}
