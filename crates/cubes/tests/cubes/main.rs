//! Tests of the program: data sets that are generated, converted, read back and measured.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod bad_files;
mod loaded;
mod peers;
mod program;
mod repeated;
mod sweeps;
mod tune;
mod values;
mod whole;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arrays::ElementType;
use cubes::generate::{CubeSpec, GenerateReport, GenerateSpec, generate};
use cubes::preprocess::{PreprocessReport, PreprocessSpec, preprocess};
use cubes::{Error, Form, FormSpec};
use half::f16;
use images::files::{CubeFile, DecodeScratch, FileFormat};

/// Cubes that are written in an instant.
const SMALL: CubeSpec = CubeSpec {
    n_images: 5,
    shape: [18, 24, 20],
    n_classes: 4,
    n_domains: 2,
    noise: CubeSpec::DEFAULT_NOISE,
    seed: 11,
};

/// Forms with a level of blosc that takes no time.
fn forms(forms: &[Form]) -> FormSpec {
    FormSpec { forms: forms.to_vec(), level: 1, ..FormSpec::default() }
}

fn write(folder: &Path, forms: FormSpec) -> Result<GenerateReport, Error> {
    let spec = GenerateSpec { cubes: SMALL, forms, ..GenerateSpec::default() };
    generate(folder, &spec, &mut |_| {})
}

fn convert(folder: &Path, forms: FormSpec) -> Result<PreprocessReport, Error> {
    let spec = PreprocessSpec { forms, ..PreprocessSpec::default() };
    preprocess(folder, &spec, &mut |_| {}, &mut |_| {})
}

/// The files below a folder, with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (name.join(below), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

/// Asserts that two data sets have the same files.
#[track_caller]
fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{}", name.display());
    }
}

/// An array of a file: its shape, and its values as numbers.
fn read_array(path: &Path, format: FileFormat, name: &str) -> (Vec<usize>, Vec<f32>) {
    let bytes = fs::read(path).unwrap();
    let file = CubeFile::parse(format, &bytes).unwrap();
    let idx = file.index(name).unwrap();
    let array = &file.arrays()[idx];
    let mut values = vec![0; array.n_bytes().unwrap()];
    file.decode(idx, &mut values, &mut DecodeScratch::new()).unwrap();
    let values = match array.element {
        ElementType::F32 => {
            let (values, _) = values.as_chunks();
            values.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
        }
        ElementType::F16 => {
            let (values, _) = values.as_chunks();
            values.iter().map(|bytes| f16::from_ne_bytes(*bytes).to_f32()).collect()
        }
        _ => values.into_iter().map(f32::from).collect(),
    };
    (array.shape.clone(), values)
}

/// The cube of an image in a form that is files.
fn read_cube(folder: &Path, form: Form, image: &str) -> Vec<f32> {
    let (file, format) = match form {
        Form::Dat => (format!("{image}_SpecCube.dat"), FileFormat::Tivita),
        _ => (format!("{image}.blosc"), FileFormat::Blosc),
    };
    let (shape, values) = read_array(&folder.join(form.folder()).join(file), format, "");
    assert_eq!(shape, SMALL.shape);
    values
}
