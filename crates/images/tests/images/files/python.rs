//! Python's blosc and pickle read our files, and we read theirs. Norms are numpy's.
//!
//! The interpreter is the one that `SOMAFEED_PYTHON` names (`cargo xtask test` sets it). Without it
//! nothing is compared, unless `SOMAFEED_REQUIRE_PYTHON` demands it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use arrays::ElementType;
use images::files::{CubeFile, FileFormat, Norm, blosc, normalize, tivita};

use super::{decode, stored, values};

#[expect(clippy::print_stderr, reason = "a test prints what it cannot check")]
pub(super) fn python() -> Option<OsString> {
    let python = env::var_os("SOMAFEED_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        let absent = "SOMAFEED_PYTHON names no interpreter with blosc";
        assert!(env::var_os("SOMAFEED_REQUIRE_PYTHON").is_none(), "{absent}");
        eprintln!("not compared with blosc: {absent} (`cargo xtask test` makes one)");
    }
    python
}

/// numpy's names of types that are written here.
const TYPES: [(&str, ElementType); 8] = [
    ("|b1", ElementType::Bool),
    ("|u1", ElementType::U8),
    ("<i2", ElementType::I16),
    ("<f2", ElementType::F16),
    ("<u4", ElementType::U32),
    ("<f4", ElementType::F32),
    ("<i8", ElementType::I64),
    ("<f8", ElementType::F64),
];

/// Writes files for Python, and returns the number of arrays in them and of norms.
fn write(folder: &Path) -> (usize, usize) {
    let mut arrays = Vec::new();
    for (name, element) in TYPES {
        for (level, lengths) in [(0, [0, 1, 20_001]), (1, [7, 1000, 20_001]), (9, [1, 128, 20_001])]
        {
            for length in lengths {
                let described = format!("{name} 1 {level} {length}");
                let array = stored(&described, &[length], element);
                arrays.push((array, values(element.n_bytes(), length), level));
            }
        }
    }
    // Several blocks at the highest level.
    arrays.push((stored("<f2 1 9 530001", &[530_001], ElementType::F16), values(2, 530_001), 9));
    for (array, values, level) in &arrays {
        let file = blosc::write_array(array, values, *level).unwrap();
        fs::write(folder.join(format!("{}.blosc", array.name)), file).unwrap();
    }
    let n_single = arrays.len();
    arrays.pop();
    let borrowed: Vec<_> = arrays.iter().map(|(array, values, _)| (array, &values[..])).collect();
    let file = blosc::write_dictionary(&borrowed, 5).unwrap();
    fs::write(folder.join("dictionary.blosc"), file).unwrap();

    let cube: Vec<f32> = (0..4_u16 * 6 * 5).map(f32::from).collect();
    fs::write(folder.join("cube.dat"), tivita::write(&cube, [4, 6, 5]).unwrap()).unwrap();
    (n_single + arrays.len(), write_norms(folder))
}

fn write_norms(folder: &Path) -> usize {
    let channels = [1, 5, 8, 100, 128, 129, 300, 1001];
    for (order, norm) in [(1, Norm::L1), (2, Norm::L2)] {
        for channels in channels {
            let mut pixels: Vec<f32> =
                (0..60 * channels as u64).map(|idx| (idx * idx % 10007) as f32 / 7.0).collect();
            pixels[..channels].fill(0.0);
            normalize(&mut pixels, channels, norm);
            let bytes: Vec<u8> = pixels.iter().flat_map(|value| value.to_le_bytes()).collect();
            fs::write(folder.join(format!("norm {order} {channels}.f32")), bytes).unwrap();
        }
    }
    2 * channels.len()
}

/// Reads a file of Python, and returns the number of its arrays.
fn read(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    let file = CubeFile::parse(FileFormat::Blosc, &bytes).unwrap();
    for (idx, array) in file.arrays().iter().enumerate() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let described = if array.name.is_empty() { stem } else { &array.name };
        let length: usize = described.split(' ').nth(3).unwrap().parse().unwrap();
        let expected = values(array.element.n_bytes(), length);
        let found = decode(&file, idx).unwrap_or_else(|error| panic!("{described}: {error:?}"));
        assert!(found == expected, "{described} of {}", path.display());
    }
    file.arrays().len()
}

#[test]
fn python_and_we_read_each_others_files() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    fs::create_dir(&ours).unwrap();
    let (n_arrays, n_norms) = write(&ours);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/blosc_files.py");
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim(), format!("{n_arrays} {n_norms}"));
    let theirs = fs::read_dir(folder.path().join("theirs")).unwrap();
    let n_read: usize = theirs.map(|entry| read(&entry.unwrap().path())).sum();
    assert_eq!(n_read, 5 * 4 * 3 * 4 * 4 + 2 + 2 * 4);
}
