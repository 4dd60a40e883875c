//! Small data in which every value identifies its cell and gene.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use loader::{
    Batch, BatchForm, BlockForm, Cells, Dataset, GeneSelection, LoaderSpec, Matrix, Order,
    PipelineSpec, ReadableBuffer,
};
use soma_io::{
    ColumnSpec, Config, CsrBuffers, ExperimentSpec, Extent, MemoryReader, XLayout, XReader,
};

/// The value of a cell and gene, if one is stored. Every seventh cell has no values.
pub(crate) fn value(joinid: u64, gene: u64) -> Option<f32> {
    let stored = !joinid.is_multiple_of(7) && (joinid * 31 + gene * 17).is_multiple_of(3);
    stored.then(|| (joinid * 1000 + gene + 1) as f32)
}

pub(crate) fn label(joinid: u64) -> String {
    format!("cell {joinid}")
}

pub(crate) fn reader(n_rows: u64, n_genes: u64) -> MemoryReader {
    MemoryReader::new(csr(n_rows, n_genes)).unwrap()
}

pub(crate) fn csr(n_rows: u64, n_genes: u64) -> CsrBuffers {
    let mut csr =
        CsrBuffers { row_offsets: vec![0], n_columns: n_genes as usize, ..CsrBuffers::default() };
    for joinid in 0..n_rows {
        for gene in 0..n_genes {
            if let Some(value) = value(joinid, gene) {
                csr.columns.push(gene as u32);
                csr.values.push(value);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

pub(crate) fn joinids(cells: &Cells) -> Vec<u64> {
    (0..cells.n_rows()).map(|row| cells.joinid(row)).collect()
}

/// obs with a string and an integer that each identify the cell.
pub(crate) fn obs(joinids: &[u64]) -> RecordBatch {
    let labels = StringArray::from_iter_values(joinids.iter().map(|&id| label(id)));
    let doubled = Int64Array::from_iter_values(joinids.iter().map(|&id| 2 * id as i64));
    RecordBatch::try_from_iter([
        ("label", Arc::new(labels) as ArrayRef),
        ("doubled", Arc::new(doubled)),
    ])
    .unwrap()
}

pub(crate) fn dataset(x: Arc<dyn XReader>, cells: Cells, genes: GeneSelection) -> Dataset {
    let obs = obs(&joinids(&cells));
    Dataset::new(x, cells, obs, genes).unwrap()
}

/// All cells and genes of a reader in memory.
pub(crate) fn whole(n_rows: u64, n_genes: u64) -> Dataset {
    dataset(Arc::new(reader(n_rows, n_genes)), Cells::Range(0..n_rows), GeneSelection::All)
}

/// Blocks of 2 x 4 rows, batches of 3, shuffled, one block and one batch ahead.
pub(crate) fn spec() -> LoaderSpec {
    LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 4,
            chunks_per_block: 2,
            order: Order::Shuffled,
            seed: 42,
            batch_rows: 3,
            ..PipelineSpec::default()
        },
        block_form: BlockForm::Csr,
        batch_form: BatchForm::Dense,
        ..LoaderSpec::default()
    }
}

/// Forms of blocks, with the forms of batches that can be made from them.
pub(crate) const WAYS: [(BlockForm, BatchForm); 9] = [
    (BlockForm::Dense, BatchForm::Dense),
    (BlockForm::ConvertedCsr, BatchForm::Dense),
    (BlockForm::Csr, BatchForm::Dense),
    (BlockForm::ConvertedCsr, BatchForm::Csr),
    (BlockForm::Csr, BatchForm::Csr),
    (BlockForm::ConvertedCsr, BatchForm::Coo),
    (BlockForm::Csr, BatchForm::Coo),
    (BlockForm::ConvertedCsr, BatchForm::Packed),
    (BlockForm::Csr, BatchForm::Packed),
];

/// A batch's values as dense rows, whatever its form.
pub(crate) fn dense_rows<B: ReadableBuffer>(x: &Matrix<B>) -> Vec<Vec<f32>> {
    let (n_rows, n_columns) = x.shape();
    match x {
        Matrix::Dense { .. } => {
            let values = match (x.dense(), x.dense_f16()) {
                (Some(values), None) => values.to_vec(),
                (None, Some(values)) => values.iter().map(|value| value.to_f32()).collect(),
                both => panic!("{both:?}"),
            };
            assert_eq!(values.len(), n_rows * n_columns);
            (0..n_rows).map(|row| values[row * n_columns..(row + 1) * n_columns].to_vec()).collect()
        }
        Matrix::Coo(coo) => {
            let mut dense = vec![vec![0.0; n_columns]; n_rows];
            let (rows, columns) = (coo.rows().unwrap(), coo.columns().unwrap());
            assert!(rows.is_sorted());
            for ((row, column), value) in rows.iter().zip(columns).zip(coo.values().unwrap()) {
                let place = &mut dense[*row as usize][*column as usize];
                assert_eq!(*place, 0.0, "a value came twice");
                *place = *value;
            }
            dense
        }
        Matrix::Csr(csr) => {
            let (columns, values) = csr.unpacked().unwrap();
            let dense = |row: usize| {
                let mut dense = vec![0.0; n_columns];
                let entries = csr.row_offsets[row]..csr.row_offsets[row + 1];
                for (column, value) in columns[entries.clone()].iter().zip(&values[entries]) {
                    assert_eq!(dense[*column as usize], 0.0, "a value came twice");
                    dense[*column as usize] = *value;
                }
                dense
            };
            (0..n_rows).map(dense).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Checks that each row of the batch has the values and the obs of its joinid. Appends the joinids
/// to `seen`.
pub(crate) fn check_rows<B: ReadableBuffer>(batch: &Batch<B>, genes: &[u64], seen: &mut Vec<u64>) {
    let rows = dense_rows(&batch.x);
    assert_eq!(rows.len(), batch.n_rows());
    assert_eq!(batch.obs.num_rows(), batch.n_rows());
    let labels = batch.obs.column_by_name("label").unwrap().as_string::<i32>();
    let doubled = batch.obs.column_by_name("doubled").unwrap().as_primitive::<Int64Type>();
    for (idx, (row, &joinid)) in rows.iter().zip(&batch.joinids).enumerate() {
        let joinid = u64::try_from(joinid).unwrap();
        seen.push(joinid);
        let expected: Vec<f32> =
            genes.iter().map(|&gene| value(joinid, gene).unwrap_or(0.0)).collect();
        assert_eq!(row, &expected, "cell {joinid}");
        assert_eq!(labels.value(idx), label(joinid));
        assert_eq!(doubled.value(idx), 2 * joinid as i64);
    }
}

/// A small experiment of this size with a layer `raw`.
pub(crate) fn experiment_spec(
    (n_obs, n_var): (u64, u64),
    obs: Vec<ColumnSpec>,
    var: Vec<ColumnSpec>,
) -> ExperimentSpec {
    ExperimentSpec {
        n_obs,
        n_var,
        obs,
        var,
        measurement: "RNA".into(),
        layers: vec!["raw".into()],
        extent: Extent::CurrentDomain,
        x_layout: XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: Config::new(),
    }
}
