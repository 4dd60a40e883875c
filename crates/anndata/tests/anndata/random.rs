//! Random matrices in stores of every kind, against the rows that were written.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use csr::{CsrBuffers, Narrowing};
use proptest::prelude::*;
use serde_json::{Value, json};
use zarrs::array::codec::{BloscCodec, GzipCodec, ZstdCodec};
use zarrs::array::{
    Array, ArrayBuilder, ArrayMetadata, BytesToBytesCodecTraits, CodecOptions, DataType,
    ElementOwned, data_type,
};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::GroupBuilder;
use zarrs::plugin::ExtensionName as _;

/// How the arrays of a matrix are stored.
#[derive(Debug, Clone)]
struct Layout {
    is_v2: bool,
    is_sharded: bool,
    chunk_len: u64,
    compression: u8,
    index: u8,
    value: u8,
}

fn layouts() -> impl Strategy<Value = Layout> {
    let forms = prop_oneof![Just((true, false)), Just((false, false)), Just((false, true))];
    (forms, 1..40_u64, 0..4_u8, 0..4_u8, 0..6_u8).prop_map(
        |((is_v2, is_sharded), chunk_len, compression, index, value)| Layout {
            is_v2,
            is_sharded,
            chunk_len,
            compression,
            index,
            value,
        },
    )
}

impl Layout {
    fn codecs(&self) -> Vec<Arc<dyn BytesToBytesCodecTraits>> {
        match self.compression {
            0 => vec![],
            1 => vec![Arc::new(ZstdCodec::new(3, false))],
            2 => vec![Arc::new(GzipCodec::new(5).unwrap())],
            _ => {
                let configuration = json!({
                    "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0,
                });
                let configuration = serde_json::from_value(configuration).unwrap();
                vec![Arc::new(BloscCodec::new_with_configuration(&configuration).unwrap())]
            }
        }
    }

    fn metadata_v2(&self, len: u64, data_type: &DataType) -> ArrayMetadata {
        let name = data_type.name_v3().unwrap();
        let bytes = data_type.fixed_size().unwrap();
        let compressor = match self.compression {
            0 => Value::Null,
            1 => json!({"id": "zstd", "level": 3}),
            2 => json!({"id": "gzip", "level": 5}),
            _ => json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        };
        let sign = if bytes == 1 { '|' } else { '<' };
        let dtype = format!("{sign}{}{bytes}", name.chars().next().unwrap());
        let metadata = json!({
            "zarr_format": 2, "shape": [len], "chunks": [self.chunk_len], "dtype": dtype,
            "fill_value": 0, "order": "C", "filters": null, "compressor": compressor,
        });
        ArrayMetadata::V2(serde_json::from_value(metadata).unwrap())
    }

    fn write<T: ElementOwned + Copy>(
        &self,
        store: &Arc<FilesystemStore>,
        path: &str,
        (data_type, fill): (DataType, T),
        values: &[T],
    ) where
        zarrs::array::FillValue: From<T>,
    {
        let len = values.len() as u64;
        let options = CodecOptions::default().with_store_empty_chunks(true);
        if self.is_v2 {
            let metadata = self.metadata_v2(len, &data_type);
            let array = Array::new_with_metadata(Arc::clone(store), path, metadata).unwrap();
            array.store_metadata().unwrap();
            array.store_array_subset_opt(&array.subset_all(), values, &options).unwrap();
            return;
        }
        let outer = if self.is_sharded { self.chunk_len * 3 } else { self.chunk_len };
        let fill = zarrs::array::FillValue::from(fill);
        let mut builder = ArrayBuilder::new(vec![len], vec![outer], data_type, fill);
        builder.bytes_to_bytes_codecs(self.codecs());
        if self.is_sharded {
            builder.subchunk_shape(vec![self.chunk_len]);
        }
        let array = builder.build(Arc::clone(store), path).unwrap();
        array.store_metadata().unwrap();
        array.store_array_subset_opt(&array.subset_all(), values, &options).unwrap();
    }

    fn write_integers(&self, store: &Arc<FilesystemStore>, path: &str, values: &[u64]) {
        fn all<T: TryFrom<u64, Error: std::fmt::Debug>>(values: &[u64]) -> Vec<T> {
            values.iter().map(|value| T::try_from(*value).unwrap()).collect()
        }
        match self.index {
            0 => self.write(store, path, (data_type::int32(), 0_i32), &all(values)),
            1 => self.write(store, path, (data_type::int64(), 0_i64), &all(values)),
            2 => self.write(store, path, (data_type::uint32(), 0_u32), &all(values)),
            _ => self.write(store, path, (data_type::uint64(), 0_u64), &all(values)),
        }
    }

    fn write_values(&self, store: &Arc<FilesystemStore>, path: &str, values: &[u8]) {
        fn all<T: From<u8>>(values: &[u8]) -> Vec<T> {
            values.iter().copied().map(T::from).collect()
        }
        match self.value {
            0 => self.write(store, path, (data_type::float32(), 0_f32), &all(values)),
            1 => self.write(store, path, (data_type::float64(), 0_f64), &all(values)),
            2 => self.write(store, path, (data_type::int64(), 0_i64), &all(values)),
            3 => self.write(store, path, (data_type::uint16(), 0_u16), &all(values)),
            4 => self.write(store, path, (data_type::int32(), 0_i32), &all(values)),
            _ => self.write(store, path, (data_type::uint8(), 0_u8), &all(values)),
        }
    }
}

fn write_group(layout: &Layout, folder: &Path, path: &str, attributes: &Value) {
    if layout.is_v2 {
        let folder = folder.join(path.trim_matches('/'));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        fs::write(folder.join(".zattrs"), attributes.to_string()).unwrap();
        return;
    }
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let mut group = GroupBuilder::new();
    group.attributes(attributes.as_object().unwrap().clone());
    group.build(store, path).unwrap().store_metadata().unwrap();
}

/// Writes rows of columns and values as X, each row in its own order.
fn write(folder: &Path, layout: &Layout, n_columns: u32, rows: &[Vec<(u32, u8)>]) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    write_group(
        layout,
        folder,
        "/",
        &json!({"encoding-type": "anndata", "encoding-version": "0.1.0"}),
    );
    let shape = [rows.len(), n_columns as usize];
    let attributes = json!({
        "encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape,
    });
    write_group(layout, folder, "/X", &attributes);
    let mut indptr = vec![0_u64];
    let (mut indices, mut data) = (Vec::new(), Vec::new());
    for row in rows {
        indices.extend(row.iter().map(|(column, _)| u64::from(*column)));
        data.extend(row.iter().map(|(_, value)| *value));
        indptr.push(data.len() as u64);
    }
    layout.write_integers(&store, "/X/indptr", &indptr);
    layout.write_integers(&store, "/X/indices", &indices);
    layout.write_values(&store, "/X/data", &data);
}

/// Rows as they must be read.
fn oracle(rows: &[Vec<(u32, u8)>], wanted: &[Range<u64>], n_columns: usize) -> CsrBuffers {
    let mut csr = CsrBuffers::empty(n_columns);
    for row in wanted.iter().cloned().flatten() {
        let mut cells = rows[row as usize].clone();
        cells.sort_by_key(|(column, _)| *column);
        csr.columns.extend(cells.iter().map(|(column, _)| *column));
        csr.values.extend(cells.iter().map(|(_, value)| f32::from(*value)));
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

/// A row of a matrix of 30 columns, in any order.
fn row() -> impl Strategy<Value = Vec<(u32, u8)>> {
    let columns = prop::sample::subsequence((0..30_u32).collect::<Vec<_>>(), 0..25).prop_shuffle();
    let values = prop::collection::vec(any::<u8>(), 25);
    (columns, values).prop_map(|(columns, values)| columns.into_iter().zip(values).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_those_that_were_written(
        layout in layouts(),
        rows in prop::collection::vec(row(), 1..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        n_datasets in 1..4_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        if n_datasets == 1 {
            write(folder.path(), &layout, 30, &rows);
        } else {
            let root = json!({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"});
            write_group(&layout, folder.path(), "/", &root);
            for (n, rows) in rows.chunks(rows.len().div_ceil(n_datasets)).enumerate() {
                write(&folder.path().join(format!("dataset_{n}")), &layout, 30, rows);
            }
        }
        let anndata = crate::open(folder.path()).unwrap();
        let x = anndata.x().unwrap();
        let nnz: usize = rows.iter().map(Vec::len).sum();
        prop_assert_eq!((x.shape(), x.nnz()), ((rows.len() as u64, 30), Some(nnz as u64)));
        let mut cuts: Vec<u64> = cuts.iter().map(|cut| cut.index(rows.len() + 1) as u64).collect();
        cuts.sort_unstable();
        let wanted: Vec<Range<u64>> =
            cuts.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect();
        let mut out = CsrBuffers::new();
        for wanted in [&wanted[..], &[0..rows.len() as u64], &[]] {
            // f32 has all of these values, whatever their stored type.
            for narrowing in [Narrowing::Nearest, Narrowing::Exact] {
                let counts = x.read_rows(wanted, narrowing, &mut out).unwrap();
                prop_assert_eq!(&out, &oracle(&rows, wanted, 30));
                prop_assert!(layout.is_sharded || Some(out.nnz() as u64) <= counts.values_decoded);
            }
        }
    }
}
