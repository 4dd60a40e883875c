//! Small data of each kind, the same each time. No two samples are equal.

use std::fs;
use std::path::Path;

use arrays::ElementType;
use images::files::{StoredArray, blosc};
use images::{Image, ImageList, LIST_FILE};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use sequences::SequenceFilesWriter;
use serde_json::{Value, json};

fn random() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

pub(crate) fn write_experiment(folder: &Path) {
    let spec = example_data::GenerateSpec {
        n_cells: 600,
        n_genes: 100,
        fragment_rows: Some(100),
        ..example_data::GenerateSpec::default()
    };
    example_data::generate(folder.to_str().unwrap(), &spec, &mut |_| {}).unwrap();
}

/// An AnnData of format 2 of Zarr, with X as CSR.
pub(crate) fn write_anndata(folder: &Path) {
    let (n_cells, n_genes) = (400, 50);
    let mut random = random();
    let (mut indptr, mut indices, mut data) = (vec![0_i32], Vec::<i32>::new(), Vec::<f32>::new());
    for cell in 0..n_cells {
        let genes = (0..n_genes).filter(|gene| *gene == 0 || random.next_u32().is_multiple_of(10));
        indices.extend(genes);
        let of_cell = indptr[cell as usize] as usize..indices.len();
        data.extend(of_cell.map(|at| (at + 1) as f32));
        indptr.push(indices.len() as i32);
    }
    let version =
        |kind: &str, version: &str| json!({"encoding-type": kind, "encoding-version": version});
    write_group(folder, &version("anndata", "0.1.0"));
    let mut of_x = version("csr_matrix", "0.1.0");
    of_x["shape"] = json!([n_cells, n_genes]);
    write_group(&folder.join("X"), &of_x);
    write_array(
        &folder.join("X/indptr"),
        ("<i4", 4),
        &[indptr.len()],
        100,
        bytemuck::cast_slice(&indptr),
    );
    write_array(
        &folder.join("X/indices"),
        ("<i4", 4),
        &[indices.len()],
        100,
        bytemuck::cast_slice(&indices),
    );
    write_array(
        &folder.join("X/data"),
        ("<f4", 4),
        &[data.len()],
        100,
        bytemuck::cast_slice(&data),
    );
    for (axis, n) in [("obs", n_cells), ("var", n_genes)] {
        let mut of_axis = version("dataframe", "0.2.0");
        of_axis["_index"] = json!("_index");
        of_axis["column-order"] = json!([]);
        write_group(&folder.join(axis), &of_axis);
        write_texts(&folder.join(axis).join("_index"), n as usize, axis);
    }
}

fn write_json(path: &Path, value: &Value) {
    fs::write(path, value.to_string()).unwrap();
}

fn write_group(folder: &Path, attributes: &Value) {
    fs::create_dir_all(folder).unwrap();
    write_json(&folder.join(".zgroup"), &json!({"zarr_format": 2}));
    write_json(&folder.join(".zattrs"), attributes);
}

fn metadata(shape: &[usize], chunk: usize, dtype: &str) -> Value {
    let mut chunks = shape.to_vec();
    chunks[0] = chunk;
    json!({
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "fill_value": 0,
        "order": "C", "filters": null, "compressor": {"id": "zstd", "level": 1},
    })
}

/// Writes an array in chunks of `chunk` steps of its first dimension, compressed by zstd.
fn write_array(
    folder: &Path,
    (dtype, item): (&str, usize),
    shape: &[usize],
    chunk: usize,
    bytes: &[u8],
) {
    fs::create_dir_all(folder).unwrap();
    write_json(&folder.join(".zarray"), &metadata(shape, chunk, dtype));
    let chunk_bytes = item * shape[1..].iter().product::<usize>() * chunk;
    for (number, part) in bytes.chunks(chunk_bytes).enumerate() {
        let mut whole = part.to_vec();
        whole.resize(chunk_bytes, 0);
        let name = format!("{number}{}", ".0".repeat(shape.len() - 1));
        fs::write(folder.join(name), zstd::encode_all(&whole[..], 1).unwrap()).unwrap();
    }
}

/// Writes an index of texts: `start` with numbers.
fn write_texts(folder: &Path, n: usize, start: &str) {
    fs::create_dir_all(folder).unwrap();
    let mut of_texts = metadata(&[n], n, "|O");
    of_texts["filters"] = json!([{"id": "vlen-utf8"}]);
    of_texts["fill_value"] = json!("");
    write_json(&folder.join(".zarray"), &of_texts);
    write_json(
        &folder.join(".zattrs"),
        &json!({"encoding-type": "string-array", "encoding-version": "0.2.0"}),
    );
    let mut bytes = (n as u32).to_le_bytes().to_vec();
    for number in 0..n {
        let text = format!("{start}{number}");
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    fs::write(folder.join("0"), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
}

/// 300 steps of 8 x 6 points and 2 channels, two steps in a chunk.
pub(crate) fn write_fields(folder: &Path) {
    let shape = [300, 8, 6, 2];
    let mut random = random();
    let values: Vec<f32> =
        (0..shape.iter().product()).map(|_| (random.next_u32() >> 8) as f32).collect();
    fs::create_dir_all(folder).unwrap();
    write_array(&folder.join("fields"), ("<f4", 4), &shape, 2, bytemuck::cast_slice(&values));
}

/// 100 cubes of 6 x 5 pixels and 3 channels, with two masks.
pub(crate) fn write_cubes(folder: &Path) {
    const SHAPE: [usize; 3] = [6, 5, 3];
    let name = |image: usize| format!("image_{image:03}");
    let images = (0..100).map(|image| Image {
        name: name(image),
        domain: "camera".to_owned(),
        subject: format!("subject_{}", image / 2),
    });
    let list = ImageList {
        version: 1,
        shape: SHAPE,
        n_classes: 4,
        classes: Vec::new(),
        images: images.collect(),
        generator: None,
    };
    for part in ["raw32", "segmentations"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    write_json(&folder.join(LIST_FILE), &serde_json::to_value(&list).unwrap());
    let mut random = random();
    let array =
        |name: &str, shape: &[usize], element| StoredArray::new(name, shape, element).unwrap();
    let (cubes, labels) =
        (array("", &SHAPE, ElementType::F32), array("labels", &SHAPE[..2], ElementType::U8));
    let valid = array("valid_pixels", &SHAPE[..2], ElementType::Bool);
    for image in 0..100 {
        let cube: Vec<f32> = (0..90).map(|_| (random.next_u32() >> 8) as f32).collect();
        let of_pixels: Vec<u8> = (0..30).map(|_| (random.next_u32() % 4) as u8).collect();
        let is_valid: Vec<u8> = of_pixels.iter().map(|label| label % 2).collect();
        let cube = blosc::write_array(&cubes, bytemuck::cast_slice(&cube), 5).unwrap();
        fs::write(folder.join(format!("raw32/{}.blosc", name(image))), cube).unwrap();
        let masks: [(&StoredArray, &[u8]); 2] = [(&labels, &of_pixels), (&valid, &is_valid)];
        let masks = blosc::write_dictionary(&masks, 5).unwrap();
        fs::write(folder.join(format!("segmentations/{}.blosc", name(image))), masks).unwrap();
    }
}

/// 500 sequences of 10 to 200 letters.
pub(crate) fn write_sequences(folder: &Path) {
    let mut writer = SequenceFilesWriter::create(folder, &[]).unwrap();
    let mut random = random();
    for number in 0..500 {
        let n_letters = 10 + random.next_u32() % 190;
        let letters = (0..n_letters).map(|_| b"ACGT"[random.next_u32() as usize % 4]);
        writer.push(&letters.collect::<Vec<u8>>(), format!("s{number}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}
