//! Copies of AnnData: what no one here wrote, beside tiledbsoma.io's conversion of it.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use arrow_array::RecordBatch;
use experiment_copy::{Error, SliceEvent, SliceReport, SliceSpec, slice};
use serde_json::Value;
use soma_io::{
    CsrBuffers, Experiment, GeneSelection, Matrix, OpenOptions, ReaderChoice, RowRanges,
};

use crate::python;

fn open(path: &Path) -> Experiment {
    Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap()
}

/// All that can be copied of an AnnData.
fn everything(source: &Experiment) -> SliceSpec {
    let measurement = source.measurement("RNA").unwrap();
    SliceSpec {
        layers: measurement.layers().unwrap(),
        obsm: measurement.obsm_names().unwrap(),
        others: vec!["raw".to_owned()],
        uns: true,
        memory_bytes: 512 << 20,
        ..SliceSpec::default()
    }
}

/// Copies all that can be of an AnnData.
fn copy(source: &Path, target: &Path) -> SliceReport {
    let source = open(source);
    let spec = everything(&source);
    let mut n_last = 0;
    let report = slice(&source, target.to_str().unwrap(), &spec, &mut |event| {
        if let SliceEvent::Written { n_rows } = event {
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
            let is_named = report.left_out_of_uns.iter().any(|(path, _)| path.ends_with(name));
            assert!(is_named, "{name} is not named: {:?}", report.left_out_of_uns);
        }
    }
}

/// The tables and matrices of an experiment, with the files of its uns.
#[derive(Debug, PartialEq)]
struct Contents {
    frames: Vec<RecordBatch>,
    matrices: Vec<CsrBuffers>,
    uns: Vec<String>,
}

fn contents(path: &Path) -> Contents {
    let experiment = open(path);
    let mut frames = vec![experiment.obs().unwrap().read(None, None).unwrap()];
    let mut matrices = Vec::new();
    let mut read = |array: &Matrix| {
        let mut values = CsrBuffers::default();
        let reader = array.reader(ReaderChoice::Auto).unwrap();
        let rows = RowRanges::new(vec![0..9_000]).unwrap();
        reader.read_csr(&rows, &GeneSelection::All, &mut values).unwrap();
        matrices.push(values);
    };
    for name in experiment.measurements().unwrap() {
        let measurement = experiment.measurement(&name).unwrap();
        frames.push(measurement.var().unwrap().read(None, None).unwrap());
        for layer in measurement.layers().unwrap() {
            read(&measurement.x(&layer).unwrap());
        }
        for array in measurement.obsm_names().unwrap() {
            read(&measurement.obsm(&array).unwrap());
        }
    }
    let uns = path.join("ms/RNA/uns");
    let lists = ["list", "nested/list"].map(|name| uns.join(name));
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let uns = lists.iter().map(|list| names(&list.join("__commits")).len().to_string());
    Contents { frames, matrices, uns: uns.chain(names(&path.join("ms/RNA/uns"))).collect() }
}

/// Copies, and ends at the `stop`th event. Returns whether it came to its end, and whether it went
/// on with an earlier copy.
fn copy_until(source: &Experiment, target: &Path, spec: &SliceSpec, stop: usize) -> (bool, bool) {
    let (mut n_events, mut is_resumed) = (0, false);
    let outcome = slice(source, target.to_str().unwrap(), spec, &mut |event| {
        is_resumed |= matches!(event, SliceEvent::Resumed(_));
        n_events += 1;
        if n_events < stop { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match outcome {
        Ok(_) => (true, is_resumed),
        Err(Error::Interrupted) => (false, is_resumed),
        Err(other) => panic!("{other}"),
    }
}

/// What a killed process leaves: of a fragment that it wrote, of an array that it created, and of
/// groups that it did not come to complete.
const LEFT_BEHIND: [&str; 5] = [
    "ms/RNA/X/X/__fragments/__1_1_0123456789abcdef0123456789abcdef_22/a0.tdb",
    "ms/RNA/obsm/other/__fragments/__1_1_0123456789abcdef0123456789abcdef_22/d0.tdb",
    "ms/RNA/uns/__meta/__1_1_0123456789abcdef0123456789abcdef",
    "ms/__group/__1_1_0123456789abcdef0123456789abcdef_2",
    "__tiledb_group.tdb",
];

fn leave_behind(folder: &Path) {
    for path in LEFT_BEHIND.map(|path| folder.join(path)) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "half").unwrap();
    }
}

#[test]
fn a_copy_that_was_stopped_goes_on_to_the_same_experiment() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let done: Value = python::run(&python, "write_many_cells.py", &[at.to_str().unwrap()]);
    assert_eq!(done["n_cells"], 9_000);
    for name in ["many.h5ad", "many.zarr"] {
        let source = open(&at.join(name));
        let whole = at.join(format!("whole of {name}"));
        // So little memory that many small reads make a fragment.
        let mut spec = SliceSpec { memory_bytes: 1, ..everything(&source) };
        let copied =
            slice(&source, whole.to_str().unwrap(), &spec, &mut |_| ControlFlow::Continue(()));
        let Err(Error::Memory { least_bytes, .. }) = copied else { panic!("{copied:?}") };
        spec.memory_bytes = least_bytes + (1 << 18);
        assert_eq!(copy_until(&source, &whole, &spec, usize::MAX), (true, false));
        let expected = contents(&whole);
        let spec = SliceSpec { resumable: NonZeroU64::new(1), ..spec };
        let target = at.join(format!("copy of {name}"));
        let partial = at.join(format!("copy of {name}.partial"));
        // Each copy comes a little further than the one before.
        let (mut n_copies, mut stop) = (0, 1);
        loop {
            let stayed = partial.exists();
            let (is_done, is_resumed) = copy_until(&source, &target, &spec, stop);
            assert_eq!(is_resumed, stayed, "copy {n_copies}");
            n_copies += 1;
            if is_done {
                break;
            }
            assert!(!target.exists());
            if partial.exists() {
                // A copy that adds nothing takes nothing away.
                assert_eq!(copy_until(&source, &target, &spec, 1), (false, true));
                assert!(partial.exists());
                leave_behind(&partial.join("experiment"));
            }
            stop += 1 + n_copies % 3;
        }
        assert!(n_copies > 4, "{n_copies} copies");
        assert!(!partial.exists());
        assert_eq!(contents(&target), expected);
        let is_left = |path: &&&str| std::fs::read(target.join(path)).is_ok_and(|of| of == b"half");
        let left: Vec<_> = LEFT_BEHIND.iter().filter(is_left).collect();
        assert!(left.is_empty(), "{left:?}");
        let n_fragments = std::fs::read_dir(target.join("ms/RNA/X/X/__commits")).unwrap().count();
        // One of the five has no values.
        assert_eq!(n_fragments, 4);
        let nnz = |path: &Path| {
            let x = open(path).measurement("RNA").unwrap().x("X").unwrap();
            x.reader(ReaderChoice::Auto).unwrap().nnz().unwrap()
        };
        assert_eq!(nnz(&target), nnz(&whole));

        // For another selection, or once the source has changed, everything is copied anew.
        let again = at.join(format!("again {name}"));
        let stays = |spec: &SliceSpec| copy_until(&open(&at.join(name)), &again, spec, 5);
        assert_eq!(stays(&spec), (false, false));
        assert_eq!(stays(&spec), (false, true));
        let other = SliceSpec { layers: vec!["second".to_owned()], ..spec.clone() };
        assert_eq!(stays(&other), (false, false));
        assert_eq!(stays(&other), (false, true));
        let of_zarr = ["X/.zattrs", "layers/second/data/.zarray", "obsm/X_pca/0.0"];
        for touched in of_zarr.map(|file| at.join("many.zarr").join(file)) {
            let touched = if name == "many.h5ad" { at.join(name) } else { touched };
            let bytes = std::fs::read(&touched).unwrap_or_else(|e| panic!("{touched:?}: {e}"));
            std::fs::write(&touched, bytes).unwrap();
            assert_eq!(stays(&other), (false, false), "{touched:?}");
            assert_eq!(stays(&other), (false, true), "{touched:?}");
        }
    }
}
