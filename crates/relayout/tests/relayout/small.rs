//! Small experiments with known values: writing them, and reading them back.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int64Array, LargeStringArray, RecordBatch,
};
use relayout::{Error, RelayoutEvent, RelayoutReport, RelayoutSpec, relayout};
use soma_io::{
    ColumnKind, ColumnSpec, Config, CsrBuffers, Experiment, ExperimentSpec, ExperimentWriter,
    Extent, GeneSelection, OpenOptions, ReaderChoice, RowRanges, XLayout,
};

const CATEGORIES: [&str; 3] = ["B cell", "T cell", "unknown"];

/// Rows of X: columns with their values.
pub(crate) type Rows = Vec<Vec<(u32, f32)>>;

/// Writes rows of X with `n_var` genes; obs has a text and a category that follow from the joinid.
pub(crate) fn write(path: &Path, rows: &Rows, n_var: u64) {
    let kinds = [
        ("name", ColumnKind::Text),
        (
            "kind",
            ColumnKind::Categorical {
                values: CATEGORIES.map(str::to_owned).to_vec(),
                ordered: false,
            },
        ),
    ];
    let spec = ExperimentSpec {
        n_obs: rows.len() as u64,
        n_var,
        obs: kinds.map(|(name, kind)| ColumnSpec::new(name, kind)).to_vec(),
        var: vec![ColumnSpec::new("gene", ColumnKind::Int64)],
        measurement: "RNA".into(),
        layers: vec!["raw".into()],
        extent: Extent::CurrentDomain,
        x_layout: XLayout { capacity: 700, ..XLayout::census(1) },
        fragment_rows: None,
        consolidate: false,
        config: Config::new(),
    };
    let mut writer = ExperimentWriter::create(path.to_str().unwrap(), spec).unwrap();
    let joinids = 0..rows.len() as u64;
    let names: ArrayRef = Arc::new(LargeStringArray::from_iter_values(joinids.clone().map(name)));
    let codes: Int8Array = joinids.map(|joinid| (joinid % 3) as i8).collect();
    let values = Arc::new(LargeStringArray::from(CATEGORIES.to_vec()));
    let kinds: ArrayRef = Arc::new(DictionaryArray::new(codes, values));
    writer
        .write_obs(&RecordBatch::try_from_iter([("name", names), ("kind", kinds)]).unwrap())
        .unwrap();
    let genes: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..n_var as i64).map(|gene| gene * 7)));
    writer.write_var(&RecordBatch::try_from_iter([("gene", genes)]).unwrap()).unwrap();
    let x = csr(rows);
    writer.write_x("raw", &x.row_offsets, &x.columns, &x.values).unwrap();
    writer.finish().unwrap();
}

fn name(joinid: u64) -> String {
    format!("cell {joinid}")
}

fn csr(rows: &Rows) -> CsrBuffers {
    let mut out = CsrBuffers::default();
    for row in rows {
        out.columns.extend(row.iter().map(|(column, _)| column));
        out.values.extend(row.iter().map(|(_, value)| value));
        out.row_offsets.push(out.values.len());
    }
    out
}

/// Rows that look random: every third is empty, the others have about `n_row` values.
pub(crate) fn rows(n_rows: u64, n_var: u64, n_row: u64) -> Rows {
    let mix = |a: u64, b: u64| (a.wrapping_mul(0x9e37_79b9) ^ b.wrapping_mul(0x85eb_ca6b)) >> 7;
    let row = |row: u64| {
        let mut columns: Vec<u32> = (0..if row % 3 == 1 { 0 } else { n_row })
            .map(|at| (mix(row, at) % n_var) as u32)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        columns
            .into_iter()
            .map(|column| (column, (mix(row, column.into()) % 300 + 1) as f32))
            .collect()
    };
    (0..n_rows).map(row).collect()
}

pub(crate) fn open(path: &Path) -> Result<Experiment, soma_io::Error> {
    Experiment::open(path.to_str().unwrap(), &OpenOptions::default())
}

/// Rows of counts, except the last, which a sample with little memory does not contain.
pub(crate) fn rows_with_a_late_fraction() -> Rows {
    let mut rows = rows(5_000, 2_000, 250);
    let last = rows.len() - 1;
    rows[last] = vec![(5, 0.25)];
    rows
}

/// Lays out an experiment, ignoring events.
pub(crate) fn lay_out(
    from: &Path,
    to: &Path,
    spec: &RelayoutSpec,
) -> Result<RelayoutReport, Error> {
    watched(from, to, spec, &mut |_| {})
}

/// Lays out an experiment, and passes each event to `see`.
pub(crate) fn watched(
    from: &Path,
    to: &Path,
    spec: &RelayoutSpec,
    see: &mut dyn FnMut(RelayoutEvent<'_>),
) -> Result<RelayoutReport, Error> {
    let source = open(from)?;
    relayout(&source, to.to_str().unwrap(), spec, &mut |event| {
        see(event);
        ControlFlow::Continue(())
    })
}

/// Reads all rows of X with a reader.
pub(crate) fn read_x(path: &Path, reader: ReaderChoice) -> Rows {
    let x = open(path).unwrap().measurement("RNA").unwrap().x("raw").unwrap();
    let mut out = CsrBuffers::default();
    let all = RowRanges::new(vec![0..x.shape().0]).unwrap();
    x.reader(reader).unwrap().read_csr(&all, &GeneSelection::All, &mut out).unwrap();
    let row = |row: usize| {
        let (columns, values) = out.row(row);
        columns.iter().copied().zip(values.iter().copied()).collect()
    };
    (0..out.n_rows()).map(row).collect()
}

/// Checks that an experiment contains `rows` in the order of `joinids`, with both readers and in
/// obs and var.
pub(crate) fn check(path: &Path, rows: &Rows, joinids: &[u64], joinid_column: Option<&str>) {
    let expected: Rows = joinids.iter().map(|joinid| rows[*joinid as usize].clone()).collect();
    for reader in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
        assert_eq!(bits(&read_x(path, reader)), bits(&expected), "{reader:?}");
    }
    let experiment = open(path).unwrap();
    let obs = experiment.obs().unwrap().read(None, None).unwrap();
    let integers = |name: &str| {
        obs.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
    };
    assert!(integers("soma_joinid").into_iter().eq(0..joinids.len() as i64));
    match joinid_column {
        Some(name) => {
            assert!(integers(name).into_iter().eq(joinids.iter().map(|joinid| *joinid as i64)));
        }
        None => assert_eq!(obs.num_columns(), 3),
    }
    let names = obs.column_by_name("name").unwrap().as_string::<i64>();
    assert!(names.iter().flatten().eq(joinids.iter().map(|joinid| name(*joinid))));
    let kinds = obs.column_by_name("kind").unwrap().as_any_dictionary();
    let codes = kinds.normalized_keys();
    assert!(codes.into_iter().eq(joinids.iter().map(|joinid| (joinid % 3) as usize)));
    let var = experiment.measurement("RNA").unwrap().var().unwrap().read(None, None).unwrap();
    let genes = var.column_by_name("gene").unwrap().as_primitive::<Int64Type>();
    assert!(genes.values().iter().copied().eq((0..var.num_rows() as i64).map(|gene| gene * 7)));
}

fn bits(rows: &Rows) -> Vec<Vec<(u32, u32)>> {
    rows.iter()
        .map(|row| row.iter().map(|(column, value)| (*column, value.to_bits())).collect())
        .collect()
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
