//! Compares the loader's batches of a selection row by row with the answer.

use half::f16;
use loader::{
    Batch, BatchForm, BlockForm, Dataset, Loader, LoaderSpec, Matrix, Order, PipelineSpec,
    ReaderChoice, Totals, Transform,
};
use serde_json::Value;

use crate::interop::answer::Answer;
use crate::interop::described;
use crate::interop::selection::Selection;
use crate::pipeline::sample::dense_rows;

/// Forms of blocks, with the forms of batches that can be made from them.
const WAYS: [(BlockForm, BatchForm); 10] = [
    (BlockForm::Dense, BatchForm::Dense),
    (BlockForm::ConvertedCsr, BatchForm::Dense),
    (BlockForm::Csr, BatchForm::Dense),
    (BlockForm::Dense, BatchForm::F16),
    (BlockForm::ConvertedCsr, BatchForm::F16),
    (BlockForm::Csr, BatchForm::F16),
    (BlockForm::ConvertedCsr, BatchForm::Csr),
    (BlockForm::Csr, BatchForm::Csr),
    (BlockForm::ConvertedCsr, BatchForm::Coo),
    (BlockForm::Csr, BatchForm::Coo),
];

/// Selections with more values than this, zeros included, are not loaded in every form with every
/// transform.
const MANY_VALUES: usize = 1_000_000;

/// The expected values of a run: stored or transformed.
#[derive(Clone, Copy)]
enum ExpectedValues<'a> {
    Plain { values: &'a [f32], halves: &'a [f16] },
    Transformed(&'a [f32]),
}

/// Compares everything. Returns the number of transformed values that differ in the last bit.
#[track_caller]
pub(crate) fn check(
    dataset: &Dataset,
    selection: &Selection,
    answer: &Answer,
    reader: ReaderChoice,
) -> usize {
    let frames = [("obs", dataset.obs()), ("var", dataset.var())];
    let frames = frames.map(|(name, frame)| (name.to_owned(), described::frame(frame)));
    let [mut found, mut expected] = [frames.into_iter().collect(), answer.frames.clone()];
    [&mut found, &mut expected].into_iter().for_each(without_categories_of_no_rows);
    described::assert_same_frames(&found, &expected);
    let n_columns = answer.frames["var"][0]["values"].as_array().unwrap().len();
    assert_eq!(dataset.n_columns(), n_columns);
    assert_eq!(dataset.n_rows(), answer.joinids.len() as u64);

    let is_large = answer.joinids.len() * n_columns > MANY_VALUES;
    // Transforms do not depend on the reader.
    let is_other = reader == ReaderChoice::Libtiledb;
    // Three blocks for each of the experiments.
    let chunk_rows = if dataset.n_rows() > 1000 { 64 } else { 16 };
    let plain = ExpectedValues::Plain { values: &answer.values, halves: &answer.halves };
    let mut n_unequal = 0;
    for (idx, (block_form, batch_form)) in WAYS.into_iter().enumerate() {
        let mut run = |expected_values, transform, totals, order| {
            let spec = LoaderSpec {
                pipeline: PipelineSpec {
                    chunk_rows,
                    chunks_per_block: 16,
                    order,
                    seed: 3,
                    batch_rows: 100,
                    ..PipelineSpec::default()
                },
                block_form,
                batch_form,
                transform,
                totals,
                ..LoaderSpec::default()
            };
            n_unequal += check_epoch(dataset, answer, expected_values, spec);
        };
        let order = if idx.is_multiple_of(2) { Order::Shuffled } else { Order::InOrder };
        // Each form of blocks once in any case.
        if !is_large || !is_other || [0, 1, 7].contains(&idx) {
            run(plain, Transform::default(), Totals::Genes, order);
        }
        let transforms = selection.transforms.iter().zip(&answer.transformed).enumerate();
        for (transform_idx, ((transform, totals), values)) in transforms {
            if !is_other && (!is_large || idx == 2 * transform_idx) {
                run(ExpectedValues::Transformed(values), *transform, *totals, order);
            }
        }
    }
    n_unequal
}

/// Arrow keeps unused categories of a column in some cases and drops them in others.
fn without_categories_of_no_rows(frames: &mut Value) {
    for frame in ["obs", "var"] {
        for column in frames[frame].as_array_mut().unwrap() {
            let n_rows = column["values"].as_array().unwrap().len();
            if let Some(categories) = column.get_mut("categories").filter(|_| n_rows == 0) {
                *categories = Value::Null;
            }
        }
    }
}

/// Checks one epoch: every cell comes once, with its obs and values.
fn check_epoch(
    dataset: &Dataset,
    answer: &Answer,
    expected_values: ExpectedValues<'_>,
    spec: LoaderSpec,
) -> usize {
    let what = format!("{} {} {}", spec.block_form, spec.batch_form, spec.transform);
    let in_order = spec.pipeline.order == Order::InOrder;
    let check_obs = spec.transform.is_identity() && spec.batch_form == BatchForm::Dense;
    let loader = Loader::new(dataset.clone(), spec).unwrap();
    let mut order = Vec::new();
    let mut n_unequal = 0;
    for batch in loader.epoch(1).unwrap() {
        let batch = batch.unwrap();
        let rows: Vec<usize> =
            batch.joinids.iter().map(|id| answer.joinids.binary_search(id).unwrap()).collect();
        assert_eq!(batch.x.shape(), (rows.len(), dataset.n_columns()), "{what}");
        check_beside(&batch, &rows, &answer.frames, &what);
        n_unequal += check_values(&batch, &rows, answer, expected_values, &what);
        if check_obs {
            check_obs_rows(&batch, &rows, &answer.frames["obs"]);
        }
        order.extend(rows);
    }
    if !in_order {
        order.sort_unstable();
    }
    assert!(order.into_iter().eq(0..answer.joinids.len()), "{what}: the cells");
    n_unequal
}

/// Checks the layers and the arrays of obsm of each row of a batch against these rows of the
/// answer, bit for bit.
fn check_beside(batch: &Batch, rows: &[usize], answer: &Value, what: &str) {
    for (of_batch, kind) in [(&batch.layers, "layers"), (&batch.obsm, "obsm")] {
        let expected = answer[kind].as_object().unwrap();
        assert_eq!(of_batch.len(), expected.len(), "{what}: {kind}");
        for (name, matrix) in of_batch {
            let found = dense_rows(matrix);
            assert_eq!(found.len(), rows.len(), "{what}: {name}");
            for (found, row) in found.iter().zip(rows) {
                let expected = expected[name][row].as_array().unwrap();
                let expected = expected.iter().map(|value| value.as_f64().unwrap() as f32);
                let same = match matrix.dense_f16() {
                    Some(_) => found
                        .iter()
                        .copied()
                        .eq(expected.map(|value| f16::from_f32(value).to_f32())),
                    None => found.iter().copied().eq(expected),
                };
                assert!(same, "{what}: {name} of the cell at row {row}: {found:?}");
            }
        }
    }
}

fn check_obs_rows(batch: &Batch, rows: &[usize], expected: &Value) {
    let found = described::frame(&batch.obs);
    let columns = |frame: &Value| frame.as_array().unwrap().clone();
    assert_eq!(columns(&found).len(), columns(expected).len());
    for (found, expected) in columns(&found).iter().zip(columns(expected)) {
        for (idx, row) in rows.iter().enumerate() {
            assert_eq!(found["values"][idx], expected["values"][row], "{}", expected["name"]);
        }
    }
}

impl ExpectedValues<'_> {
    /// Whether a value is the `at`-th expected one. The last bit of a transformed value may differ.
    fn check(self, found: f32, at: usize, n_unequal: &mut usize) -> bool {
        match self {
            Self::Plain { values, .. } => found == values[at],
            Self::Transformed(values) => {
                *n_unequal += usize::from(found != values[at]);
                found.to_bits().abs_diff(values[at].to_bits()) <= 1
            }
        }
    }

    fn check_half(self, found: f16, at: usize, n_unequal: &mut usize) -> bool {
        match self {
            Self::Plain { halves, .. } => found == halves[at],
            Self::Transformed(values) => {
                let expected = f16::from_f32(values[at]);
                *n_unequal += usize::from(found != expected);
                found.to_bits().abs_diff(expected.to_bits()) <= 1
            }
        }
    }
}

/// Checks the values of each row of a batch against these rows of the answer.
fn check_values(
    batch: &Batch,
    rows: &[usize],
    answer: &Answer,
    expected_values: ExpectedValues<'_>,
    what: &str,
) -> usize {
    let n_columns = batch.x.shape().1;
    let mut n_unequal = 0;
    let mut coo_at = 0;
    for (idx, row) in rows.iter().enumerate() {
        let expected = answer.row_offsets[*row]..answer.row_offsets[*row + 1];
        let columns = &answer.columns[expected.clone()];
        let dense = idx * n_columns..(idx + 1) * n_columns;
        let cell = || format!("{what}: cell {}", batch.joinids[idx]);
        match &batch.x {
            Matrix::Dense { .. } => {
                let mut places = expected.clone().zip(columns);
                if let Some(values) = batch.x.dense() {
                    let row = &values[dense];
                    let same = |(at, column): (usize, &u32)| {
                        expected_values.check(row[*column as usize], at, &mut n_unequal)
                    };
                    assert!(places.all(same), "{}", cell());
                    let n_zeros = row.iter().filter(|value| **value == 0.0).count();
                    assert_eq!(n_zeros, n_columns - columns.len(), "{}", cell());
                } else {
                    let row = &batch.x.dense_f16().unwrap()[dense];
                    let same = |(at, column): (usize, &u32)| {
                        expected_values.check_half(row[*column as usize], at, &mut n_unequal)
                    };
                    assert!(places.all(same), "{}", cell());
                    let n_zeros = row.iter().filter(|value| value.to_bits() << 1 == 0).count();
                    assert_eq!(n_zeros, n_columns - columns.len(), "{}", cell());
                }
            }
            Matrix::Csr(csr) => {
                let found = csr.row_offsets[idx]..csr.row_offsets[idx + 1];
                assert_eq!(&csr.columns().unwrap()[found.clone()], columns, "{}", cell());
                let mut pairs = csr.values().unwrap()[found].iter().zip(expected);
                let same =
                    |(value, at): (&f32, usize)| expected_values.check(*value, at, &mut n_unequal);
                assert!(pairs.all(same), "{}", cell());
            }
            Matrix::Coo(coo) => {
                let found = coo_at..coo_at + columns.len();
                coo_at = found.end;
                assert_eq!(coo.columns().unwrap().get(found.clone()), Some(columns), "{}", cell());
                assert!(coo.rows().unwrap()[found.clone()].iter().all(|row| *row as usize == idx));
                let mut pairs = coo.values().unwrap()[found].iter().zip(expected);
                let same =
                    |(value, at): (&f32, usize)| expected_values.check(*value, at, &mut n_unequal);
                assert!(pairs.all(same), "{}", cell());
            }
            other => panic!("{other:?}"),
        }
    }
    if let Matrix::Coo(coo) = &batch.x {
        assert_eq!(coo_at, coo.values().unwrap().len(), "{what}");
    }
    n_unequal
}
