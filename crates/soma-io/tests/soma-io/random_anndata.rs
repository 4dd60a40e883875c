//! Random AnnData that Python wrote, some of which were then changed by hand, and random matrices
//! of 10x Genomics: what we read is what Python's anndata or scanpy read, and where these have an
//! error, we have one or name what is left out.

use std::collections::BTreeSet;
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use serde_json::{Map, Value, json};
use soma_io::{
    CsrBuffers, DataFrame, Error, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges,
};

use crate::python;

/// Stores in each run; `SOMAFEED_RANDOM_ANNDATA` and `SOMAFEED_RANDOM_10X` set other numbers.
const N_STORES: usize = 40;

/// What is read of a store.
#[derive(Debug, PartialEq)]
struct Contents {
    obs: Value,
    var: Value,
    layers: Value,
    obsm: Value,
    uns: BTreeSet<String>,
    unread: BTreeSet<String>,
}

/// The values of a column; numbers as 64-bit floats, and missing ones as null.
fn values(array: &ArrayRef) -> Value {
    let cast = |data_type: &DataType| arrow_cast::cast(array, data_type).unwrap();
    let value_type = match array.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    };
    match value_type {
        DataType::LargeUtf8 => {
            json!(cast(&value_type).as_string::<i64>().iter().collect::<Vec<_>>())
        }
        DataType::Boolean => json!(cast(&value_type).as_boolean().iter().collect::<Vec<_>>()),
        _ => {
            json!(cast(&DataType::Float64).as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
        }
    }
}

/// All numbers as 64-bit floats.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.iter().map(as_floats).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, of)| (name.clone(), as_floats(of))).collect())
        }
        other => other.clone(),
    }
}

/// A table, whose index is the column that is not among `names`.
fn table(frame: &DataFrame, names: &BTreeSet<String>) -> Result<Value, Error> {
    assert_eq!(frame.unread_columns(), []);
    let rows = frame.read(None, None)?;
    let (mut index, mut columns) = (Value::Null, Map::new());
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()).skip(1) {
        if names.contains(field.name()) {
            columns.insert(field.name().clone(), values(column));
        } else {
            assert!(index.is_null() && !column.is_empty());
            index = values(column);
        }
    }
    Ok(json!({"index": index, "columns": columns}))
}

fn column_names(table: &Value) -> BTreeSet<String> {
    let columns = table["columns"].as_object();
    columns.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn matrix(array: &soma_io::Matrix) -> Result<Value, Error> {
    let mut out = CsrBuffers::default();
    let (n_rows, n_columns) = array.shape();
    let all = RowRanges::new(vec![0..n_rows])?;
    array.reader(ReaderChoice::Auto)?.read_csr(&all, &GeneSelection::All, &mut out)?;
    let of_row = |row: usize| {
        let mut values = vec![0.0_f64; n_columns as usize];
        let (columns, stored) = out.row(row);
        columns.iter().zip(stored).for_each(|(at, value)| values[*at as usize] = (*value).into());
        values
    };
    Ok(json!((0..n_rows as usize).map(of_row).collect::<Vec<_>>()))
}

/// Opens a store, with the setting that chooses the genome if one is named.
fn open(path: &Path, genome: &Value) -> Result<Experiment, Error> {
    let genome = genome.as_str().map(|name| ("soma.genome".to_owned(), name.to_owned()));
    let config = genome.into_iter().collect();
    Experiment::open(path.to_str().unwrap(), &OpenOptions { config, ..OpenOptions::default() })
}

fn contents(experiment: &Experiment, expected: &Value) -> Result<Contents, Error> {
    let main = experiment.measurement("RNA")?;
    let (mut layers, mut obsm) = (Map::new(), Map::new());
    for name in main.layers()? {
        layers.insert(name.clone(), matrix(&main.x(&name)?)?);
    }
    for name in main.obsm_names()? {
        obsm.insert(name.clone(), matrix(&main.obsm(&name)?)?);
    }
    let uns = main.uns()?.unwrap_or_default();
    let top = |path: &String| path.split('/').next().unwrap_or_default().to_owned();
    let left_out = uns.left_out.iter().map(|(path, _)| top(path));
    Ok(Contents {
        obs: table(&experiment.obs()?, &column_names(&expected["obs"]))?,
        var: table(&main.var()?, &column_names(&expected["var"]))?,
        layers: layers.into(),
        obsm: obsm.into(),
        uns: uns.values.iter().map(|(name, _)| name.clone()).chain(left_out).collect(),
        unread: experiment.unread_elements()?.into_iter().map(|(path, _)| path).collect(),
    })
}

/// What Python's anndata read.
fn expected(read: &Value) -> Contents {
    let names = |key: &str| serde_json::from_value(read[key].clone()).unwrap();
    let [obs, var, layers, obsm] =
        ["obs", "var", "layers", "obsm"].map(|key| as_floats(&read[key]));
    Contents { obs, var, layers, obsm, uns: names("uns"), unread: names("unread") }
}

/// Reads everything of a store in which anndata found an error. Returns whether we find one, too.
fn is_refused_or_named(path: &Path) -> bool {
    let whole = || {
        let experiment = open(path, &Value::Null)?;
        let main = experiment.measurement("RNA")?;
        for frame in [experiment.obs()?, main.var()?] {
            frame.read(None, None)?;
        }
        for name in main.layers()? {
            matrix(&main.x(&name)?)?;
        }
        for name in main.obsm_names()? {
            matrix(&main.obsm(&name)?)?;
        }
        Ok::<_, Error>(main.uns()?.unwrap_or_default().left_out)
    };
    whole().map_or(true, |left_out| !left_out.is_empty())
}

/// Compares stores that a script writes: as many as the variable says.
fn check(script: &str, variable: &str) {
    let Some(python) = python::interpreter() else { return };
    let number = std::env::var(variable).ok();
    let n_stores = number.map_or(N_STORES, |number| number.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let arguments = [folder.path().to_str().unwrap(), "0", &n_stores.to_string()];
    let found = python::run(&python, script, &arguments);
    for store in found.as_array().unwrap() {
        let (name, changed) = (store["name"].as_str().unwrap(), &store["changed"]);
        let (path, read) = (folder.path().join(name), &store["read"]);
        if read["error"].is_string() {
            assert!(is_refused_or_named(&path), "{name}, {changed}: {read}");
            continue;
        }
        let opened = open(&path, &store["genome"]);
        if let (Ok(experiment), Some(genome)) = (&opened, store["genome"].as_str()) {
            // A copy of one genome does not go on with another, whatever their shapes.
            let version = experiment.anndata_version().unwrap().unwrap();
            assert!(version.contains(&format!(" {genome}/data\n")), "{name}: {version}");
        }
        let ours = opened.and_then(|experiment| contents(&experiment, read));
        let ours = ours.unwrap_or_else(|error| panic!("{name}, {changed}: {error:?}"));
        assert_eq!(ours, expected(read), "{name}, {changed}");
    }
}

#[test]
fn random_anndata_is_read_as_by_python() {
    check("write_random_anndata.py", "SOMAFEED_RANDOM_ANNDATA");
}

#[test]
fn random_matrices_of_10x_genomics_are_read_as_by_scanpy() {
    check("write_random_10x.py", "SOMAFEED_RANDOM_10X");
}
