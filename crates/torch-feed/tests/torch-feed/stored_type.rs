//! Tensors of X's own type contain the stored numbers, or there is an error.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use loader::{BatchForm, Cells, Dataset, GeneSelection, LoaderSpec, PipelineSpec, Transform};
use soma_io::{
    CacheUse, CsrBuffers, Error as ReadError, MemoryReader, PackedCsr, ReadForm, ReadStats,
    RowCacheUse, RowRanges, WholeRows, XReader, contract,
};
use tch::Kind;
use torch_feed::{Error, TensorLoader};

/// X in memory that claims to be stored as another type.
#[derive(Debug)]
struct Typed {
    inner: MemoryReader,
    data_type: DataType,
}

#[deny(clippy::missing_trait_methods)]
impl XReader for Typed {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn n_rows() -> u64;
        fn n_columns() -> u64;
        fn nnz() -> Result<Option<u64>, ReadError>;
        fn most_nnz() -> Result<Option<u64>, ReadError>;
        fn working_bytes(nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64;
        fn is_remote() -> bool;
        fn whole_rows() -> Option<&dyn WholeRows>;
        fn cache() -> Option<CacheUse>;
        fn row_cache() -> Option<RowCacheUse>;
        fn keep_decoded(holder: u64, limit_bytes: u64);
        fn asks_next_reads() -> bool;
        fn index_bytes() -> u64;
        fn decoded_bytes() -> u64;
        fn announce_next(rows: &RowRanges, genes: &GeneSelection);
        fn exact() -> Result<Arc<dyn XReader>, ReadError>;
        fn read_csr(rows: &RowRanges, genes: &GeneSelection, out: &mut CsrBuffers)
            -> Result<ReadStats, ReadError>;
        fn packs(genes: &GeneSelection) -> bool;
        fn read_packed(rows: &RowRanges, genes: &GeneSelection, out: &mut PackedCsr)
            -> Result<ReadStats, ReadError>;
        fn read_coo(
            rows: &RowRanges,
            genes: &GeneSelection,
            each: &mut dyn FnMut(&RecordBatch) -> Result<(), ReadError>
        ) -> Result<ReadStats, ReadError>;
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }
}

fn rows(values: &[f32]) -> CsrBuffers {
    CsrBuffers {
        row_offsets: vec![0, 1, 1, values.len()],
        columns: (0..values.len() as u32).collect(),
        values: values.to_vec(),
        n_columns: values.len(),
    }
}

fn typed(data_type: DataType, values: &[f32]) -> Typed {
    Typed { inner: MemoryReader::new(rows(values)).unwrap(), data_type }
}

#[test]
fn another_type_changes_nothing_else() {
    for (data_type, _, values) in KINDS {
        contract::check(&typed(data_type, values), &rows(values));
    }
}

fn dataset(data_type: DataType, values: &[f32]) -> Dataset {
    let x = typed(data_type, values);
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let schema = Arc::new(Schema::empty());
    let obs = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    Dataset::new(Arc::new(x), Cells::Range(0..3), obs, GeneSelection::All).unwrap()
}

fn loader(dataset: Dataset, spec: &LoaderSpec) -> Result<TensorLoader, Error> {
    TensorLoader::new(
        dataset,
        LoaderSpec {
            pipeline: PipelineSpec { batch_rows: 2, ..spec.pipeline.clone() },
            ..spec.clone()
        },
    )?
    .in_stored_type()
}

const KINDS: [(DataType, Kind, &[f32]); 7] = [
    (DataType::Float32, Kind::Float, &[1.5, -2.25, 3e30]),
    (DataType::Boolean, Kind::Bool, &[1.0, 0.0, 1.0]),
    (DataType::Int8, Kind::Int8, &[-128.0, 127.0, 5.0]),
    (DataType::UInt8, Kind::Uint8, &[255.0, 1.0, 0.0]),
    (DataType::Int16, Kind::Int16, &[-32_768.0, 32_767.0, 9.0]),
    (DataType::Int32, Kind::Int, &[-16_777_215.0, 16_777_215.0, 3.0]),
    (DataType::Int64, Kind::Int64, &[7.0, 16_777_215.0, 3.0]),
];

#[test]
fn numbers_come_back_as_they_are_stored() {
    for (data_type, kind, values) in KINDS {
        for batch_form in [BatchForm::Dense, BatchForm::Csr, BatchForm::Coo] {
            let spec = LoaderSpec { batch_form, ..LoaderSpec::default() };
            let feed = loader(dataset(data_type.clone(), values), &spec).unwrap();
            let (mut sum, mut n_rows) = (0.0, 0);
            for batch in feed.epoch(0).unwrap() {
                let batch = batch.unwrap();
                assert_eq!(batch.x().kind(), kind, "{data_type} {batch_form}");
                assert_eq!(batch.x().size(), [batch.n_rows() as i64, values.len() as i64]);
                let dense = if batch_form == BatchForm::Dense {
                    batch.x().shallow_clone()
                } else {
                    batch.x().f_to_dense(None::<Kind>, false).unwrap()
                };
                sum += dense.to_kind(Kind::Double).sum(Kind::Double).double_value(&[]);
                n_rows += batch.n_rows();
            }
            assert_eq!(n_rows, 3);
            assert_eq!(
                sum,
                values.iter().copied().map(f64::from).sum::<f64>(),
                "{data_type} {batch_form}"
            );
        }
    }
}

#[test]
fn what_f32_has_rounded_is_an_error() {
    for data_type in [DataType::Int32, DataType::Int64] {
        for batch_form in [BatchForm::Dense, BatchForm::Csr, BatchForm::Coo] {
            let spec = LoaderSpec { batch_form, ..LoaderSpec::default() };
            // 16,777,217 is read as this value.
            let feed = loader(dataset(data_type.clone(), &[1.0, -16_777_216.0]), &spec).unwrap();
            let mut epoch = feed.epoch(0).unwrap();
            let mut n_good = 0;
            let error = loop {
                match epoch.next().unwrap() {
                    Ok(_) => n_good += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Inexact { .. }), "{error}");
            assert!(epoch.next().is_none());
            assert_eq!(epoch.state().batches_delivered(), n_good);
        }
    }
}

#[test]
fn types_that_cannot_be_had_are_refused_before_reading() {
    let ints = || dataset(DataType::Int32, &[1.0]);
    let plain = LoaderSpec::default();
    let f16 = LoaderSpec { batch_form: BatchForm::F16, ..LoaderSpec::default() };
    let log1p = Transform { log1p: true, ..Transform::default() };
    let transformed = LoaderSpec { transform: log1p, ..LoaderSpec::default() };
    let two = Dataset::concat(&[ints(), dataset(DataType::Int64, &[1.0])]).unwrap();
    for (dataset, spec, expected) in [
        (dataset(DataType::Float64, &[1.0]), plain.clone(), "Float64"),
        (dataset(DataType::UInt16, &[1.0]), plain.clone(), "UInt16"),
        (two, plain, "different types"),
        (ints(), f16, "f16"),
        (ints(), transformed, "transformed"),
    ] {
        let error = loader(dataset, &spec).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
