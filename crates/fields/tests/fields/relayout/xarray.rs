//! xarray opens a store and its copy as the same: dimensions, coordinates, attributes, values.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use arrays::{ElementType, Indices, Label};
use fields::generate::Codec;
use fields::relayout::{Length, RelayoutSpec, StoredAs};

use super::lay_out;
use crate::xarray::python;

#[track_caller]
fn script(python: &OsStr, arguments: &[&OsStr]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/relayout_stores.py");
    let mut command = Command::new(python);
    command.arg(script).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

#[test]
fn a_copy_is_identical_to_xarray() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().as_os_str();
    script(&python, &["write".as_ref(), path, "7".as_ref()]);
    let one = |name: &str, n| (name.to_owned(), Length::Indices(n));
    for idx in 0..8 {
        let store = |kind: &str| folder.path().join(kind).join(idx.to_string());
        let codec = [Codec::None, Codec::Zstd(1), Codec::Gzip(1), Codec::Blosc(5)][idx / 2];
        let spec = RelayoutSpec {
            chunks: vec![one("time", 1), one("level", 1)],
            shards: if idx % 3 == 0 { vec![one("time", 4)] } else { Vec::new() },
            codec,
            ..RelayoutSpec::default()
        };
        let from = store("from");
        lay_out(&from, &store("to"), &spec).unwrap();
        let halves = RelayoutSpec {
            dtype: vec![
                (None, StoredAs::Element(ElementType::F16)),
                (Some("geopotential".to_owned()), StoredAs::Source),
            ],
            ..spec.clone()
        };
        lay_out(&from, &store("halves"), &halves).unwrap();
        let part = RelayoutSpec {
            variables: Some(vec!["temperature".to_owned()]),
            isel: vec![("time".to_owned(), Indices::Range(1..u64::MAX))],
            sel: vec![("level".to_owned(), vec![Label::Number(950.0), Label::Number(1000.0)])],
            ..spec
        };
        lay_out(&from, &store("part"), &part).unwrap();
    }
    script(&python, &["compare".as_ref(), path]);
}
