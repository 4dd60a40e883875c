//! Small stores of any layout, written by zarrs, and what a naive copy of a part has.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata};
use zarrs::filesystem::FilesystemStore;

/// Types of elements: their names in Zarr 3 and 2, their bytes, and a fill value.
pub(crate) const ELEMENTS: [(&str, &str, usize, Fill); 7] = [
    ("float32", "<f4", 4, Fill::Text("NaN")),
    ("int16", ">i2", 2, Fill::Number(-7)),
    ("float64", "<f8", 8, Fill::Number(3)),
    ("uint8", "|u1", 1, Fill::Number(0)),
    ("int64", "<i8", 8, Fill::Number(-1)),
    ("float16", "<f2", 2, Fill::Number(0)),
    ("uint32", "<u4", 4, Fill::Number(4_000_000_000)),
];

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fill {
    Text(&'static str),
    Number(i64),
}

/// An array `v` with the dimensions `d0`, `d1`, ...
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) is_v2: bool,
    pub(crate) element: usize,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    /// Chunks of a shard along each dimension, if it has shards.
    pub(crate) in_shard: Option<Vec<u64>>,
    pub(crate) compression: usize,
    pub(crate) seed: u64,
}

impl Source {
    pub(crate) fn element_bytes(&self) -> usize {
        ELEMENTS[self.element].2
    }

    pub(crate) fn dimensions(&self) -> Vec<String> {
        (0..self.shape.len()).map(|at| format!("d{at}")).collect()
    }

    fn metadata(&self) -> Value {
        let (v3, v2, n_bytes, fill) = ELEMENTS[self.element];
        let fill = match fill {
            Fill::Text(text) => json!(text),
            Fill::Number(number) => json!(number),
        };
        if self.is_v2 {
            let compressors = [
                Value::Null,
                json!({ "id": "zstd", "level": 1 }),
                json!({ "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0 }),
            ];
            return json!({
                "zarr_format": 2, "shape": self.shape, "chunks": self.chunk, "dtype": v2,
                "compressor": compressors[self.compression], "fill_value": fill, "order": "C",
                "filters": null, "dimension_separator": ".",
            });
        }
        let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
        let mut codecs = vec![bytes.clone()];
        codecs.extend(match self.compression {
            0 => None,
            1 => Some(json!({
                "name": "zstd", "configuration": { "level": 1, "checksum": false },
            })),
            _ => Some(json!({ "name": "blosc", "configuration": {
                "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": n_bytes,
                "blocksize": 0,
            }})),
        });
        let mut file = self.chunk.clone();
        if let Some(in_shard) = &self.in_shard {
            file = file.iter().zip(in_shard).map(|(len, n)| len * n).collect();
            codecs = vec![json!({ "name": "sharding_indexed", "configuration": {
                "chunk_shape": self.chunk, "codecs": codecs,
                "index_codecs": [bytes, { "name": "crc32c" }], "index_location": "end",
            }})];
        }
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": v3,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": file } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": fill, "codecs": codecs, "attributes": { "units": "K" },
            "dimension_names": self.dimensions(),
        })
    }

    /// Writes the store. About one chunk or shard in four is not stored.
    pub(crate) fn write(&self, store: &Path) {
        fs::create_dir_all(store.join("v")).unwrap();
        let metadata = self.metadata();
        if self.is_v2 {
            fs::write(store.join(".zgroup"), json!({ "zarr_format": 2 }).to_string()).unwrap();
            fs::write(store.join("v/.zarray"), metadata.to_string()).unwrap();
            let attributes = json!({ "units": "K", "_ARRAY_DIMENSIONS": self.dimensions() });
            fs::write(store.join("v/.zattrs"), attributes.to_string()).unwrap();
        } else {
            let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": { "a": 1 } });
            fs::write(store.join("zarr.json"), group.to_string()).unwrap();
            fs::write(store.join("v/zarr.json"), metadata.to_string()).unwrap();
        }
        let files = Arc::new(FilesystemStore::new(store).unwrap());
        let metadata = ArrayMetadata::try_from(metadata.to_string().as_str()).unwrap();
        let array = Array::new_with_metadata(files, "/v", metadata).unwrap();
        let mut random = self.seed;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as u8
        };
        let grid = array.chunk_grid_shape().to_vec();
        for number in 0..grid.iter().product::<u64>() {
            if next() % 4 == 0 {
                continue;
            }
            let mut rest = number;
            let mut chunk: Vec<u64> = grid
                .iter()
                .rev()
                .map(|n| {
                    let at = rest % n;
                    rest /= n;
                    at
                })
                .collect();
            chunk.reverse();
            let shape = array.chunk_shape(&chunk).unwrap();
            let n_elements: u64 = shape.iter().map(|len| len.get()).product();
            // Finite, and of few kinds, so that codecs have something to do.
            let bytes: Vec<u8> =
                (0..n_elements as usize * self.element_bytes()).map(|_| next() % 64).collect();
            array.store_chunk(&chunk, ArrayBytes::new_flen(bytes)).unwrap();
        }
    }
}

/// All elements of an array as zarrs reads them.
pub(crate) fn elements(store: &Path, name: &str) -> (Vec<u64>, Vec<u8>) {
    let files = Arc::new(FilesystemStore::new(store).unwrap());
    let array = Array::open(files, &format!("/{name}")).unwrap();
    let bytes: ArrayBytes<'_> = array.retrieve_array_subset(&array.subset_all()).unwrap();
    (array.shape().to_vec(), bytes.into_fixed().unwrap().into_owned())
}

/// The elements at some indices of each dimension.
pub(crate) fn picked(
    (shape, bytes): &(Vec<u64>, Vec<u8>),
    n_bytes: usize,
    indices: &[Vec<u64>],
) -> Vec<u8> {
    let mut all = vec![0_usize];
    for (len, indices) in shape.iter().zip(indices) {
        all = all
            .iter()
            .flat_map(|at| indices.iter().map(move |idx| at * *len as usize + *idx as usize))
            .collect();
    }
    all.into_iter().flat_map(|at| bytes[at * n_bytes..(at + 1) * n_bytes].to_vec()).collect()
}
