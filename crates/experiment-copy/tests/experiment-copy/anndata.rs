//! Copies of AnnData: what no one here wrote, beside tiledbsoma.io's conversion of it.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use experiment_copy::{SliceReport, SliceSpec, slice};
use serde_json::Value;
use soma_io::{Experiment, OpenOptions};

use crate::python;

/// Copies all that can be of an AnnData.
fn copy(source: &Path, target: &Path) -> SliceReport {
    let source = Experiment::open(source.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let measurement = source.measurement("RNA").unwrap();
    let spec = SliceSpec {
        layers: measurement.layers().unwrap(),
        obsm: measurement.obsm_names().unwrap(),
        others: vec!["raw".to_owned()],
        uns: true,
        memory_bytes: 512 << 20,
        ..SliceSpec::default()
    };
    let mut n_last = 0;
    let report = slice(&source, target.to_str().unwrap(), &spec, &mut |event| {
        if let experiment_copy::SliceEvent::Written { n_rows } = event {
            n_last = n_rows;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(n_last, report.n_cells * 5);
    report
}

#[test]
fn a_copy_has_what_tiledbsoma_makes_of_the_same_cells() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../soma-io/tests/python/write_outside_anndata.py");
    let mut write = Command::new(&python);
    let output = write.arg(script).arg(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs = folder.path().join("experiment");
    for name in ["new.h5ad", "v2.zarr", "v3.zarr"] {
        let ours = folder.path().join(format!("copy of {name}"));
        let report = copy(&folder.path().join(name), &ours);
        assert_eq!(report.rounded, ["X_umap"]);
        let found: Value = python::run(
            &python,
            "check_import.py",
            &[ours.to_str().unwrap(), theirs.to_str().unwrap()],
        );
        for part in ["columns", "values of X", "values of obsm"] {
            assert!(found[part].as_u64().unwrap() > 10, "{found}");
        }
        let uns = &found["uns"];
        assert!(uns["values"].as_u64() > Some(1) && uns["lists"].as_u64() > Some(1), "{found}");
        let left_out = uns["left out"].as_array().unwrap();
        for name in left_out {
            let name = name.as_str().unwrap();
            let told = report.left_out_of_uns.iter().any(|(path, _)| path.ends_with(name));
            assert!(told, "{name} is not told: {:?}", report.left_out_of_uns);
        }
    }
}
