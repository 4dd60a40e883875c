//! AnnData on the command line: `import`, `relayout`, and commands that read it in place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use soma_io::{
    CsrBuffers, Experiment, GeneSelection, Matrix, OpenOptions, ReaderChoice, RowRanges,
};

use crate::program;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program::command(folder, arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn open(path: &Path) -> Experiment {
    Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap()
}

/// Returns all rows of a matrix of seven cells.
fn matrix(array: &Matrix) -> CsrBuffers {
    let all = RowRanges::new(vec![0..7]).unwrap();
    let mut out = CsrBuffers::default();
    let reader = array.reader(ReaderChoice::Auto).unwrap();
    reader.read_csr(&all, &GeneSelection::All, &mut out).unwrap();
    out
}

/// Returns all rows of a layer of X.
fn rows(path: &Path, layer: &str) -> CsrBuffers {
    matrix(&open(path).measurement("RNA").unwrap().x(layer).unwrap())
}

#[test]
fn an_anndata_is_imported_and_laid_out_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data");
    let v3 = stores.join("v3");
    let all = run(folder, &["import", v3.to_str().unwrap(), "to"]);
    assert!(!all.status.success() && !folder.join("to").exists());
    assert!(stderr(&all).contains("layers[\"by_columns\"].tocsr()"), "{}", stderr(&all));
    for name in ["v2", "v3", "x.h5ad"] {
        let source = stores.join(name);
        let to = format!("copy of {name}");
        let layers = ["X", "counts", "dense"];
        let arguments = ["import", source.to_str().unwrap(), &to, "--layers", &layers.join(",")];
        let done = run(folder, &arguments);
        let printed = stderr(&done);
        assert!(done.status.success(), "{printed}");
        assert!(printed.contains(&format!("{to}: 7 cells x 4 genes, ")), "{printed}");
        assert!(printed.contains("obsm X_pca: values were rounded to 32-bit floats"), "{printed}");
        let left_out = "not copied: uns pca/variance (it has 1 dimensions of elements of type float64); \
            uns table (its encoding-type is `dataframe`)\n";
        assert!(printed.contains(left_out), "{printed}");
        let to = folder.join(to);
        for layer in layers {
            assert_eq!(rows(&to, layer), rows(&source, layer), "{layer}");
        }
        let [ours, theirs] = [&to, &source].map(|path| {
            let experiment = open(path);
            let columns = ["cell_id", "donor", "n_counts"];
            let obs = experiment.obs().unwrap().read(Some(&columns), None).unwrap();
            let raw = experiment.measurement("raw").unwrap();
            let genes = raw.var().unwrap().n_rows().unwrap();
            (obs, genes, matrix(&raw.x("X").unwrap()), {
                let pca = experiment.measurement("RNA").unwrap().obsm("X_pca").unwrap();
                (pca.used_columns().unwrap(), matrix(&pca))
            })
        });
        assert_eq!(ours, theirs);
    }
    for (name, layers) in [("x.h5ad", &["--layer", "counts"][..]), ("v3", &[])] {
        let source = stores.join(name);
        let arguments = ["relayout", source.to_str().unwrap(), "relaid", "-f", "-q"];
        let done = run(folder, &[&arguments[..], layers].concat());
        assert!(done.status.success(), "{}", stderr(&done));
        let layer = layers.get(1).copied().unwrap_or("X");
        assert_eq!(rows(&folder.join("relaid"), layer), rows(&source, layer));
    }
    fs::write(folder.join("broken.h5ad"), "no HDF5").unwrap();
    for (source, words) in [("broken.h5ad", "HDF5"), ("absent.zarr", "absent.zarr")] {
        let refused = run(folder, &["import", source, "other", "-q"]);
        assert_eq!(refused.status.code(), Some(1));
        let printed = stderr(&refused);
        assert!(printed.contains(words) && printed.lines().count() == 1, "{printed}");
        assert!(!folder.join("other").exists());
    }
}

#[test]
fn layers_whose_names_have_slashes_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let v3 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data/v3");
    let store = folder.join("x.zarr");
    fs::create_dir_all(store.join("layers/a")).unwrap();
    let group = |attributes| {
        format!(
            "{{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {{{attributes}}}}}"
        )
    };
    for (name, attributes) in
        [("", "\"encoding-type\": \"anndata\""), ("layers", ""), ("layers/a", "")]
    {
        fs::write(store.join(name).join("zarr.json"), group(attributes)).unwrap();
    }
    for (name, of) in [("X", "X"), ("obs", "obs"), ("var", "var"), ("layers/a/b", "layers/counts")]
    {
        symlink(v3.join(of).canonicalize().unwrap(), store.join(name)).unwrap();
    }
    let done = run(folder, &["import", "x.zarr", "to"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let copy = open(&folder.join("to")).measurement("RNA").unwrap();
    assert_eq!(copy.layers().unwrap(), ["X", "a/b"]);
    assert_eq!(rows(&folder.join("to"), "a/b"), rows(&v3, "counts"));
}

#[test]
fn a_matrix_of_10x_genomics_is_measured_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let h5 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hdf5/tests/data/ten_x.h5");
    fs::copy(h5, folder.join("x.h5")).unwrap();
    let sweep = ["sweep", "--uri", "x.h5", "-b", "2x2", "-m", "native", "-B", "2", "-d", "out"];
    for arguments in [&sweep[..], &["import", "x.h5", "to"]] {
        let done = run(folder, arguments);
        assert!(done.status.success(), "{}", stderr(&done));
    }
    let genes = [folder.join("to"), folder.join("x.h5")].map(|path| {
        let measurement = open(&path).measurement("RNA").unwrap();
        let columns = ["var_id", "gene_ids", "feature_types", "genome"];
        measurement.var().unwrap().read(Some(&columns), None).unwrap()
    });
    assert_eq!(genes[0], genes[1]);
    let values = |path: &Path| {
        let x = open(path).measurement("RNA").unwrap().x("X").unwrap();
        let (all, mut out) = (RowRanges::new(vec![0..5]).unwrap(), CsrBuffers::default());
        let reader = x.reader(ReaderChoice::Auto).unwrap();
        reader.read_csr(&all, &GeneSelection::All, &mut out).unwrap();
        out
    };
    assert_eq!(values(&folder.join("to")), values(&folder.join("x.h5")));
}

#[test]
fn an_anndata_is_read_in_place_without_naming_its_layer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data");
    fs::copy(stores.join("x.h5ad"), folder.join("x.h5ad")).unwrap();
    let sweep = ["sweep", "--uri", "x.h5ad", "-b", "2x2", "-m", "native", "-B", "3", "-d", "out"];
    let done = run(folder, &sweep);
    assert!(done.status.success(), "{}", stderr(&done));
    // Its reader has a name that no choice has.
    let tune = ["tune", "--uri", "x.h5ad", "-B", "2", "--entropy", "none", "-d", "tuned"];
    let done = run(folder, &tune);
    assert!(done.status.success(), "{}", stderr(&done));
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(printed.contains("ExperimentDataset(uri=\"x.h5ad\", batch_size=2, "), "{printed}");
    let done = run(folder, &["slice", "x.h5ad", "part", "--joinids", "2..5", "--obsm", "X_pca"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let part = open(&folder.join("part")).measurement("RNA").unwrap();
    assert_eq!(
        (part.layers().unwrap(), part.obsm_names().unwrap()),
        (vec!["X".into()], vec!["X_pca".into()])
    );
    assert_eq!(part.obsm("X_pca").unwrap().shape(), (3, 3));
    let twice = run(folder, &["slice", "x.h5ad", "twice", "--obsm", "X_pca,X_pca"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("--obsm names X_pca twice"), "{}", stderr(&twice));
}

#[test]
fn the_only_layer_is_read_without_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    copy_without_x(folder, "several.zarr", &["by_columns"]);
    copy_without_x(folder, "one.zarr", &["by_columns", "dense"]);
    // What is imported has the layer `counts` alone, too.
    let done = run(folder, &["import", "one.zarr", "one", "-q"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(rows(&folder.join("one"), "counts"), rows(&folder.join("one.zarr"), "counts"));
    for source in ["one.zarr", "one"] {
        let copies = ["relaid", "part"].map(|name| format!("{source}-{name}"));
        let commands = [
            vec!["sweep", source, "-b", "2x2", "-m", "native", "-B", "3", "-d", "out"],
            vec!["relayout", source, &copies[0], "-q", "--codec", "zstd,zstd"],
            vec!["slice", source, &copies[1], "-q"],
        ];
        for command in commands {
            let done = run(folder, &command);
            assert!(done.status.success(), "{command:?}: {}", stderr(&done));
        }
        for copy in copies {
            assert_eq!(rows(&folder.join(copy), "counts"), rows(&folder.join("one"), "counts"));
        }
    }
    let sweep = ["sweep", "several.zarr", "-b", "2x2", "-m", "native", "-B", "3", "-d", "out"];
    for command in [&sweep[..], &["relayout", "several.zarr", "x"], &["slice", "several.zarr", "x"]]
    {
        let refused = run(folder, command);
        assert_eq!(refused.status.code(), Some(1), "{command:?}");
        let printed = stderr(&refused);
        assert!(printed.contains("name one of counts, dense (--layer"), "{command:?}: {printed}");
    }
}

/// Copies an AnnData without its X, without these layers, and without lists of its elements.
fn copy_without_x(folder: &Path, name: &str, layers: &[&str]) {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data/v2");
    let copy = folder.join(name);
    let copied = Command::new("cp").arg("-r").arg(&store).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::remove_file(copy.join(".zmetadata")).unwrap();
    fs::remove_dir_all(copy.join("X")).unwrap();
    for layer in layers {
        fs::remove_dir_all(copy.join("layers").join(layer)).unwrap();
    }
}
