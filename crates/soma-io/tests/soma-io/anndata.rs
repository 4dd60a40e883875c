//! AnnData in Zarr as an experiment, beside what tiledbsoma.io makes of the same AnnData.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use soma_io::{
    AxisQuery, CsrBuffers, DataFrame, Error, Experiment, GeneSelection, Joinids, Matrix,
    OpenOptions, ReaderChoice, RowRanges, ValueFilter, contract,
};

use crate::python;

fn open(path: &Path) -> Experiment {
    Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap()
}

fn rows(x: &Matrix) -> CsrBuffers {
    let mut out = CsrBuffers::default();
    let all = RowRanges::new(vec![0..x.shape().0]).unwrap();
    let reader = x.reader(ReaderChoice::Auto).unwrap();
    reader.read_csr(&all, &GeneSelection::All, &mut out).unwrap();
    out
}

/// Compares all columns, and rows that are selected in each way.
fn check_frame(ours: &DataFrame, soma: &DataFrame) {
    let names: Vec<String> = soma.schema().fields().iter().map(|of| of.name().clone()).collect();
    let mut found: Vec<String> =
        ours.schema().fields().iter().map(|of| of.name().clone()).collect();
    let mut sorted = names.clone();
    found.sort();
    sorted.sort();
    assert_eq!(found, sorted);
    assert_eq!(ours.n_rows().unwrap(), soma.n_rows().unwrap());
    assert_eq!(ours.joinid_bounds().unwrap(), soma.joinid_bounds().unwrap());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let last = ours.n_rows().unwrap() - 1;
    let filtered = |filter: &str| AxisQuery {
        value_filter: Some(ValueFilter::parse(filter).unwrap()),
        ..AxisQuery::default()
    };
    let queries = [
        AxisQuery::default(),
        filtered("cell_type == 'T cell' and doublet == True"),
        filtered("donor in ['donor 0', 'donor 2'] and n_counts > 3000"),
        AxisQuery { joinids: Joinids::Range(1..last), ..AxisQuery::default() },
        AxisQuery { joinids: Joinids::Range(2..2), ..AxisQuery::default() },
        AxisQuery { joinids: Joinids::List(vec![last, 0, 3]), ..filtered("small > -101") },
    ];
    for query in &queries {
        let read = |frame: &DataFrame| frame.query(Some(&names), query).unwrap();
        same_batches(&read(ours), &read(soma));
    }
    let absent = AxisQuery { joinids: Joinids::List(vec![last + 1]), ..AxisQuery::default() };
    assert!(ours.query(None, &absent).is_err());
    let none = ours.query(Some(&["nothing"]), &AxisQuery::default()).unwrap_err().to_string();
    assert!(none.contains("no column \"nothing\"") && none.contains("cell_type"), "{none}");
}

fn same_batches(ours: &RecordBatch, soma: &RecordBatch) {
    assert_eq!(ours.num_rows(), soma.num_rows());
    let schema = soma.schema();
    for (at, field) in schema.fields().iter().enumerate() {
        let (mut column, mut expected) = (Arc::clone(ours.column(at)), Arc::clone(soma.column(at)));
        // tiledbsoma writes wider codes than pandas, and a collection unites categories.
        if let DataType::Dictionary(_, values) = field.data_type() {
            assert!(matches!(column.data_type(), DataType::Dictionary(_, of) if of == values));
            [column, expected] =
                [column, expected].map(|of| arrow_cast::cast(&of, values).unwrap());
        }
        assert_eq!(column.data_type(), expected.data_type(), "{}", field.name());
        assert_eq!(&column, &expected, "{}", field.name());
    }
}

/// Compares all values, and whatever else a reader must keep.
fn check_matrix(ours: &Matrix, soma: &Matrix) {
    assert_eq!(
        (ours.shape(), ours.data_type().unwrap()),
        (soma.shape(), soma.data_type().unwrap())
    );
    let reader = ours.reader(ReaderChoice::Native).unwrap();
    assert_eq!(reader.name(), "anndata");
    contract::check(&*reader, &rows(soma));
}

#[test]
fn it_is_what_tiledbsoma_makes_of_the_same_anndata() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (cells, genes) = (113, 60);
    let arguments = [folder.path().to_str().unwrap(), &cells.to_string(), &genes.to_string()];
    python::run(&python, "write_anndata.py", &arguments);
    let soma = open(&folder.path().join("experiment"));
    let names = ["v2.zarr", "v3.zarr", "collection.zarr", "gap.zarr", "plain.h5ad", "gzip.h5ad"];
    for name in names {
        let ours = open(&folder.path().join(name));
        assert!(ours.is_anndata() && !soma.is_anndata());
        assert_eq!(ours.measurements().unwrap(), ["RNA", "raw"]);
        check_frame(&ours.obs().unwrap(), &soma.obs().unwrap());
        for measurement in ["RNA", "raw"] {
            let ours = ours.measurement(measurement).unwrap();
            let soma = soma.measurement(measurement).unwrap();
            check_frame(&ours.var().unwrap(), &soma.var().unwrap());
            for layer in ours.layers().unwrap() {
                let opened = ours.x(&layer);
                if layer == "by_columns" {
                    let error = opened.unwrap_err().to_string();
                    assert!(error.contains("layers[\"by_columns\"].tocsr()"), "{error}");
                    continue;
                }
                check_matrix(&opened.unwrap(), &soma.x(&layer).unwrap());
            }
        }
        let main = ours.measurement("RNA").unwrap();
        assert_eq!(main.layers().unwrap(), ["X", "by_columns", "counts", "dense"]);
        assert_eq!(main.obsm_names().unwrap(), ["X_pca"]);
        let soma = soma.measurement("RNA").unwrap().obsm("X_pca").unwrap();
        let pca = main.obsm("X_pca").unwrap();
        assert_eq!((pca.shape(), pca.used_columns().unwrap()), ((cells, 3), 3));
        assert_eq!(rows(&pca).values, rows(&soma).values);
    }
    for (name, words) in [
        ("slipped.zarr", "its data sets begin at rows [0, 2, 6], and those of obs at [0, 3, 6]"),
        ("few_genes.zarr", "it has 6 columns, and var 5 rows"),
    ] {
        let error = open(&folder.path().join(name)).measurement("RNA").unwrap().x("X").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_modality_of_mudata_is_an_anndata_at_its_address() {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data");
    for (store, of_root) in [("v2", [".zgroup", ".zattrs"].as_slice()), ("v3", &["zarr.json"])] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("mdata.zarr");
        std::fs::create_dir_all(root.join("mod")).unwrap();
        for name in of_root {
            let attributes = r#"{"encoding-type": "MuData", "encoding-version": "0.1.0"}"#;
            let text = match *name {
                ".zgroup" => r#"{"zarr_format": 2}"#.to_owned(),
                ".zattrs" => attributes.to_owned(),
                _ => format!(
                    r#"{{"zarr_format": 3, "node_type": "group", "attributes": {attributes}}}"#
                ),
            };
            std::fs::write(root.join(name), text).unwrap();
        }
        let (whole, part) = (stores.join(store), root.join("mod/rna"));
        let copied = std::process::Command::new("cp").arg("-r").args([&whole, &part]).status();
        assert!(copied.unwrap().success());
        let x = |path: &Path| rows(&open(path).measurement("RNA").unwrap().x("X").unwrap());
        assert_eq!(x(&part), x(&whole));
        let obs = |path: &Path| open(path).obs().unwrap().read(None, None).unwrap();
        assert_eq!(obs(&part), obs(&whole));
        assert_eq!(open(&root).measurements().unwrap(), ["rna"]);
    }
}

#[test]
fn cells_that_others_wrote_are_what_tiledbsoma_makes_of_them() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    python::run(&python, "write_outside_anndata.py", &[folder.path().to_str().unwrap()]);
    let soma = open(&folder.path().join("experiment"));
    for name in ["v2.zarr", "v3.zarr", "new.h5ad"] {
        let ours = open(&folder.path().join(name));
        let whole = |frame: DataFrame, names: Option<&[&str]>| frame.read(names, None).unwrap();
        let check = |ours: DataFrame, soma: DataFrame| {
            let soma = whole(soma, None);
            let schema = soma.schema();
            let names: Vec<&str> = schema.fields().iter().map(|of| of.name().as_str()).collect();
            assert_eq!(ours.schema().fields().len(), names.len());
            same_batches(&whole(ours, Some(&names)), &soma);
        };
        check(ours.obs().unwrap(), soma.obs().unwrap());
        for measurement in ["RNA", "raw"] {
            let ours = ours.measurement(measurement).unwrap();
            let soma = soma.measurement(measurement).unwrap();
            check(ours.var().unwrap(), soma.var().unwrap());
            assert_eq!(ours.layers().unwrap(), soma.layers().unwrap());
            check_matrix(&ours.x("X").unwrap(), &soma.x("X").unwrap());
        }
        let [ours, soma] = [&ours, &soma].map(|of| of.measurement("RNA").unwrap());
        assert_eq!(ours.obsm_names().unwrap(), ["X_pca", "X_umap"]);
        for name in ["X_pca", "X_umap"] {
            let [ours, soma] = [&ours, &soma].map(|of| rows(&of.obsm(name).unwrap()).values);
            assert_eq!(ours, soma, "{name}");
        }
    }
    let old = folder.path().join("old.h5ad");
    let old = Experiment::open(old.to_str().unwrap(), &OpenOptions::default());
    let error = old.and_then(|old| old.obs()).unwrap_err().to_string();
    assert!(error.contains("old.h5ad") && error.contains("write_zarr"), "{error}");
}

#[test]
fn a_file_that_is_no_hdf5_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5ad");
    let open = || Experiment::open(path.to_str().unwrap(), &OpenOptions::default());
    let error = open().unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    std::fs::write(&path, "no HDF5").unwrap();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("x.h5ad") && error.contains("HDF5"), "{error}");
}

pub(crate) fn fixture() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../anndata/tests/data/v3")
}

#[test]
fn what_is_not_there_is_an_error_that_says_what_is() {
    let experiment = open(&fixture());
    let error = experiment.measurement("ATAC").unwrap_err().to_string();
    assert!(error.contains("\"ATAC\"") && error.contains("RNA, raw"), "{error}");
    let rna = experiment.measurement("RNA").unwrap();
    let error = rna.x("raw").unwrap_err().to_string();
    assert!(error.contains("X, by_columns, counts, dense"), "{error}");
    let error = rna.obsm("X_umap").unwrap_err().to_string();
    assert!(error.contains("X_pca"), "{error}");
    let error = rna.x("X").unwrap().reader(ReaderChoice::Libtiledb).unwrap_err();
    assert!(matches!(error, Error::NotForAnnData { .. }), "{error}");
    let options = OpenOptions { timestamp: Some(1), ..OpenOptions::default() };
    let error = Experiment::open(fixture().to_str().unwrap(), &options).unwrap_err();
    assert!(error.to_string().contains("no timestamp"), "{error}");
}

#[test]
fn a_value_that_float32_lacks_is_not_read_exactly() {
    let rna = open(&fixture()).measurement("RNA").unwrap();
    let read = |x: Matrix, genes: &GeneSelection| {
        let exact = x.reader(ReaderChoice::Auto).unwrap().exact().unwrap();
        let mut out = CsrBuffers::default();
        let all = RowRanges::new(vec![0..x.shape().0]).unwrap();
        exact.read_csr(&all, genes, &mut out).map(|_| out)
    };
    for layer in ["counts", "dense"] {
        let x = rna.x(layer).unwrap();
        assert_eq!(rows(&x), read(x, &GeneSelection::All).unwrap(), "{layer}");
    }
    // Random numbers of float64.
    for (genes, first) in [(GeneSelection::All, 0), (GeneSelection::List(vec![2, 1]), 2)] {
        let error = read(rna.obsm("X_pca").unwrap(), &genes).unwrap_err();
        assert!(matches!(error, Error::Inexact { cell: 0, .. }), "{error}");
        let text = format!("float64 value of cell 0 and gene {first}");
        assert!(error.to_string().contains(&text), "{error}");
    }
    let raw = open(&fixture()).measurement("raw").unwrap().x("X").unwrap();
    assert_eq!(raw.data_type().unwrap(), DataType::Int64);
    assert_eq!(rows(&raw), read(raw, &GeneSelection::All).unwrap());
}

#[test]
fn damage_is_an_error_of_the_anndata() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("zarr.json"), "{\"zarr_format\": 3, ").unwrap();
    let open = || Experiment::open(path.to_str().unwrap(), &OpenOptions::default());
    let error = open().unwrap_err();
    assert!(matches!(error, Error::AnnData(_)), "{error}");
    assert!(error.to_string().contains("zarr.json"), "{error}");
    // Zarr, but no AnnData.
    std::fs::write(path.join("zarr.json"), "{\"zarr_format\": 3, \"node_type\": \"group\"}")
        .unwrap();
    assert!(matches!(open().unwrap_err(), Error::NotA { .. }));
}
