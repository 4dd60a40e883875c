//! Reads in every form, compared with the expected rows.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;

use super::requests::{self, Request};
use crate::{
    CsrBuffers, Error, GeneSelection, PackedCsr, PackedValues, ReadStats, RowRanges, XReader,
};

/// Buffers that all reads share.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    csr: CsrBuffers,
    other: CsrBuffers,
    packed: PackedCsr,
}

/// Joinids of a cell and its gene, and the bits of its value.
type Cell = (i64, i64, u32);

pub(super) fn check(
    reader: &dyn XReader,
    request: &Request,
    expected: &CsrBuffers,
    buffers: &mut Buffers,
) {
    let what = || format!("reader `{}`, {request:?}", reader.name());
    let Request { rows, genes } = request;
    let stats = reader.read_csr(rows, genes, &mut buffers.csr);
    let stats = stats.unwrap_or_else(|error| panic!("{}: CSR: {error}", what()));
    check_csr(&buffers.csr, expected, &what);
    check_stats((reader, &stats), expected.nnz(), &what);

    if let Some(reader_of_all) = reader.whole_rows() {
        let mut twice = [(genes, &mut buffers.csr), (genes, &mut buffers.other)];
        let stats = reader_of_all.read_selections(rows, &mut twice);
        let stats = stats.unwrap_or_else(|error| panic!("{}: selections: {error}", what()));
        check_csr(&buffers.csr, expected, &what);
        check_csr(&buffers.other, expected, &what);
        check_stats((reader, &stats), 2 * expected.nnz(), &what);
    }

    let packed = reader.read_packed(rows, genes, &mut buffers.packed);
    if reader.packs(genes) {
        assert!(expected.n_columns <= PackedCsr::MAX_COLUMNS, "{}: packs too much", what());
        let stats = packed.unwrap_or_else(|error| panic!("{}: packed: {error}", what()));
        let unpacked = buffers.packed.unpack();
        let unpacked = CsrBuffers {
            row_offsets: unpacked.row_offsets,
            columns: unpacked.columns,
            values: unpacked.values,
            n_columns: unpacked.n_columns,
        };
        check_csr(&unpacked, expected, &what);
        check_stats((reader, &stats), expected.nnz(), &what);
        check_packed(&buffers.packed, expected, &what);
    } else {
        let error = packed.expect_err("rows are packed only where `packs` says so");
        assert!(matches!(error, Error::Unpacked { .. }), "{}: {error}", what());
    }

    let mut cells = Vec::new();
    let stats = reader.read_coo(rows, genes, &mut |piece| {
        assert!(piece.num_rows() > 0, "{}: a piece without cells", what());
        add_cells(reader, piece, &mut cells);
        Ok(())
    });
    let stats = stats.unwrap_or_else(|error| panic!("{}: COO: {error}", what()));
    check_stats((reader, &stats), expected.nnz(), &what);
    cells.sort_unstable();
    let mut of_expected = cells_of(request, expected);
    of_expected.sort_unstable();
    assert!(cells == of_expected, "{}: other cells as COO", what());
}

/// Fails unless both have the same rows; cells with equal row and column may be in any order.
fn check_csr(found: &CsrBuffers, expected: &CsrBuffers, what: &dyn Fn() -> String) {
    found.check().unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert_eq!(found.n_columns, expected.n_columns, "{}: columns", what());
    assert_eq!(found.row_offsets, expected.row_offsets, "{}: row offsets", what());
    assert_eq!(found.columns, expected.columns, "{}: columns of the cells", what());
    for row_idx in 0..found.n_rows() {
        let cells = |csr: &CsrBuffers| {
            let (columns, values) = csr.row(row_idx);
            let mut cells: Vec<(u32, u32)> =
                columns.iter().copied().zip(values.iter().map(|value| value.to_bits())).collect();
            cells.sort_unstable();
            cells
        };
        assert!(cells(found) == cells(expected), "{}: values of row {row_idx}", what());
    }
}

fn check_packed(found: &PackedCsr, expected: &CsrBuffers, what: &dyn Fn() -> String) {
    assert_eq!(found.n_rows(), expected.n_rows(), "{}: packed rows", what());
    assert_eq!(found.nnz(), expected.nnz(), "{}: packed values", what());
    let n_values = match found.values() {
        PackedValues::Counts(values) => values.len(),
        PackedValues::Floats(values) => values.len(),
    };
    assert_eq!(n_values, expected.nnz(), "{}: packed values", what());
}

fn check_stats((reader, stats): (&dyn XReader, &ReadStats), nnz: usize, what: &dyn Fn() -> String) {
    let may_count = reader.is_remote() || stats.requests.is_none();
    assert!(may_count, "{}: {:?} requests to a folder", what(), stats.requests);
    assert_eq!(stats.values, nnz as u64, "{}: values in the statistics", what());
}

fn add_cells(reader: &dyn XReader, piece: &RecordBatch, cells: &mut Vec<Cell>) {
    let names: Vec<&str> =
        piece.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["soma_dim_0", "soma_dim_1", "soma_data"]);
    let (stored, found) = (reader.data_type(), piece.column(2).data_type());
    assert!(found == stored || *found == DataType::Float32, "values of {found}, not {stored}");
    assert!(piece.columns().iter().all(|column| column.null_count() == 0), "nulls");
    let values = arrow_cast::cast(piece.column(2), &DataType::Float32);
    let values = values.unwrap_or_else(|error| panic!("values of {found}: {error}"));
    let [rows, genes] = [0, 1].map(|idx| piece.column(idx).as_primitive::<Int64Type>().values());
    let values = values.as_primitive::<Float32Type>().values();
    let all = rows.iter().zip(genes).zip(values);
    cells.extend(all.map(|((row, gene), value)| (*row, *gene, value.to_bits())));
}

fn cells_of(request: &Request, expected: &CsrBuffers) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (row_idx, joinid) in request.rows.iter().enumerate() {
        let (columns, values) = expected.row(row_idx);
        cells.extend(
            columns
                .iter()
                .zip(values)
                .map(|(column, value)| (joinid as i64, request.joinid(*column), value.to_bits())),
        );
    }
    cells
}

/// Fails unless every form of read rejects the request because of its rows or genes.
pub(super) fn check_refused(
    reader: &dyn XReader,
    rows: &RowRanges,
    genes: &GeneSelection,
    buffers: &mut Buffers,
) {
    let name = reader.name();
    let check = |form: &str, read: Result<ReadStats, Error>, may_not_pack: bool| {
        let Err(error) = read else {
            panic!("reader `{name}` reads {rows:?}, {genes:?} as {form}")
        };
        let is_typed = match &error {
            Error::RowsOutside { .. } | Error::Genes { .. } => true,
            Error::Unpacked { .. } => may_not_pack,
            _ => false,
        };
        assert!(is_typed, "reader `{name}`, {rows:?}, {genes:?} as {form}: {error:?}");
    };
    check("CSR", reader.read_csr(rows, genes, &mut buffers.csr), false);
    let packed = reader.read_packed(rows, genes, &mut buffers.packed);
    check("packed CSR", packed, !reader.packs(genes));
    let coo = reader.read_coo(rows, genes, &mut |_| panic!("a piece of a refused read"));
    check("COO", coo, false);
}

/// Fails unless a read ends with its consumer's error, without another piece.
pub(super) fn check_giving_up(reader: &dyn XReader, expected: &CsrBuffers) {
    if expected.nnz() == 0 {
        return;
    }
    let rows = requests::every_row(reader.n_rows());
    let mut n_pieces = 0;
    let read = reader.read_coo(&rows, &GeneSelection::All, &mut |_| {
        n_pieces += 1;
        Err(Error::Consumer { message: "enough".to_owned() })
    });
    let error = read.expect_err("a consumer that gives up ends the read");
    assert!(matches!(&error, Error::Consumer { message } if message == "enough"), "{error:?}");
    assert_eq!(n_pieces, 1, "pieces come after the consumer gave up");
}
