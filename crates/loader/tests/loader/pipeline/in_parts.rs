//! However many threads write a batch together, it is the same.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use densify::Transform;
use loader::{
    BatchForm, Cells, Dataset, Elements, GeneSelection, HeapBuffer, Loader, LoaderSpec, Matrix,
    PipelineSpec, ReadableBuffer as _,
};
use soma_io::{CsrBuffers, MemoryReader};

/// So large that a dense batch is written by two threads and a sparse one by four.
const N_CELLS: u64 = 2_900;
const N_GENES: usize = 3_000;

/// Rows of very different lengths, some without values.
fn dataset() -> Dataset {
    let mut csr = CsrBuffers { row_offsets: vec![0], n_columns: N_GENES, ..CsrBuffers::default() };
    for cell in 0..N_CELLS {
        let of_cell = cell % 7;
        for gene in 0..N_GENES as u64 {
            let hash = (cell * 31 + gene * 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            if hash % 16 < of_cell {
                csr.columns.push(gene as u32);
                csr.values.push((hash % 900 + 1) as f32);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    let kinds = Int64Array::from_iter_values(0..N_CELLS as i64);
    let obs = RecordBatch::try_from_iter([("kind", Arc::new(kinds) as ArrayRef)]).unwrap();
    let reader = Arc::new(MemoryReader::new(csr).unwrap());
    Dataset::new(reader, Cells::Range(0..N_CELLS), obs, GeneSelection::All).unwrap()
}

/// The parts of a matrix as bits.
fn bits(x: &Matrix) -> Vec<Vec<u32>> {
    let numbers = |of: &HeapBuffer| of.elements().into_u32().unwrap().to_vec();
    let values = |of: &HeapBuffer| match of.elements() {
        Elements::F16(values) => values.iter().map(|value| u32::from(value.to_bits())).collect(),
        values => values.into_f32().unwrap().iter().map(|value| value.to_bits()).collect(),
    };
    match x {
        Matrix::Dense { values: of_rows, .. } => vec![values(of_rows)],
        Matrix::Csr(csr) => {
            let offsets = csr.row_offsets.iter().map(|offset| *offset as u32).collect();
            let (columns, values) = csr.unpacked().unwrap();
            vec![offsets, columns, values.into_iter().map(f32::to_bits).collect()]
        }
        Matrix::Coo(coo) => vec![numbers(&coo.rows), numbers(&coo.columns), values(&coo.values)],
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_number_of_threads_changes_no_value() {
    let dataset = dataset();
    let log1p = Transform { target_sum: Some(1e4), log1p: true, ..Transform::default() };
    for transform in [Transform::default(), log1p] {
        for batch_form in BatchForm::ALL {
            let batches = |n_threads: usize| {
                let pipeline = PipelineSpec {
                    batch_rows: N_CELLS - 100,
                    chunk_rows: 50,
                    chunks_per_block: 60,
                    ..PipelineSpec::default()
                };
                let spec = LoaderSpec {
                    pipeline,
                    batch_form,
                    transform,
                    batch_threads: Some(n_threads),
                    ..LoaderSpec::default()
                };
                let epoch = Loader::new(dataset.clone(), spec).unwrap().epoch(1).unwrap();
                epoch.map(Result::unwrap).map(|batch| (batch.joinids, bits(&batch.x)))
            };
            for n_threads in [2, 3, 8] {
                assert!(batches(1).eq(batches(n_threads)), "{batch_form}, {n_threads} threads");
            }
        }
    }
}
