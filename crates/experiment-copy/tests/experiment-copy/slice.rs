//! Slices of small experiments compared with a naive choice of rows and columns, and rejected
//! slices.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use example_data::{GenerateSpec, generate};
use experiment_copy::{
    ColumnChoice, DatasetSlice, Error, Genes, REPLACE_EXPERIMENT, SliceEvent, SliceReport,
    SliceSpec, slice,
};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use soma_io::{
    AxisQuery, ColumnKind, ColumnSpec, ExperimentSpec, ExperimentWriter, Extent, RowRanges,
    ValueFilter,
};

use crate::contents::{Contents, contents, open};

const N_CELLS: u64 = 600;
const N_GENES: u64 = 150;
/// Small enough that X is read in many pieces, large enough for a reader.
const MIN_MEMORY: u64 = 35_200_000;

fn source() -> &'static (tempfile::TempDir, Contents) {
    static SOURCE: OnceLock<(tempfile::TempDir, Contents)> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("from");
        let spec =
            GenerateSpec { n_cells: N_CELLS, n_genes: N_GENES, seed: 9, ..GenerateSpec::default() };
        generate(path.to_str().unwrap(), &spec, &mut |_| {}).unwrap();
        let contents = contents(&path);
        (folder, contents)
    })
}

fn go_on(_: SliceEvent<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn take(spec: &SliceSpec, to: &Path) -> Result<SliceReport, Error> {
    slice(&open(&source().0.path().join("from")), to.to_str().unwrap(), spec, &mut go_on)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).unwrap()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let texts = arrow_cast::cast(column(batch, name), &DataType::Utf8).unwrap();
    texts.as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
}

/// The names of data sets in order, computed naively.
fn datasets(obs: &RecordBatch, sorted: bool) -> Vec<String> {
    let of_cells = texts(obs, "dataset_id");
    let mut names: Vec<String> = Vec::new();
    for name in &of_cells {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if sorted {
        let mut n_cells: HashMap<&String, usize> = HashMap::new();
        for name in &of_cells {
            *n_cells.entry(name).or_default() += 1;
        }
        names.sort_by_key(|name| n_cells[name]);
    }
    names
}

/// The expected rows of a frame, without joinids.
fn rows_of(batch: &RecordBatch, rows: &[u64]) -> Vec<ArrayRef> {
    let places = arrow_array::UInt64Array::from(rows.to_vec());
    batch.columns()[1..]
        .iter()
        .map(|column| arrow_select::take::take(column, &places, None).unwrap())
        .collect()
}

/// Checks that the slice at `path` has these cells and genes of the source.
#[track_caller]
fn assert_holds(path: &Path, cells: &[u64], genes: &[u64]) {
    let (_, from) = source();
    let found = contents(path);
    let joinids =
        |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert!(joinids(&found.obs).into_iter().eq(0..cells.len() as i64));
    assert!(joinids(&found.var).into_iter().eq(0..genes.len() as i64));
    assert_eq!(found.obs.columns()[1..], rows_of(&from.obs, cells));
    assert_eq!(found.var.columns()[1..], rows_of(&from.var, genes));
    assert_eq!(found.obs.schema(), from.obs.schema());
    assert_eq!(found.var.schema(), from.var.schema());
    assert_eq!((found.x.n_rows(), found.x.n_columns), (cells.len(), genes.len()));
    for (row_idx, cell) in cells.iter().enumerate() {
        let (columns, values) = from.x.row(*cell as usize);
        let expected: Vec<(usize, f32)> = columns
            .iter()
            .zip(values)
            .filter_map(|(gene, value)| {
                Some((genes.binary_search(&u64::from(*gene)).ok()?, *value))
            })
            .collect();
        let (columns, values) = found.x.row(row_idx);
        let found: Vec<(usize, f32)> =
            columns.iter().map(|column| *column as usize).zip(values.iter().copied()).collect();
        assert_eq!(found, expected, "cell {cell}");
    }
}

/// A choice and its expected result.
#[derive(Debug)]
struct Choice {
    spec: SliceSpec,
    cells: Vec<u64>,
    genes: Vec<u64>,
}

prop_compose! {
    fn genes()(
        kind in 0..4_u8,
        first in 1..N_GENES + 40,
        named in subsequence((0..N_GENES).collect::<Vec<_>>(), 1..40).prop_shuffle(),
        by_name in any::<bool>(),
    ) -> (Genes, Vec<u64>) {
        let var = &source().1.var;
        let mut sorted = named.clone();
        sorted.sort_unstable();
        match kind {
            0 => (Genes::All, (0..N_GENES).collect()),
            1 => (Genes::First(first), (0..first.min(N_GENES)).collect()),
            2 => (Genes::Query(AxisQuery::list(named)), sorted),
            _ => {
                let column = if by_name { "feature_name" } else { "feature_id" };
                let all = texts(var, column);
                let mut names: Vec<String> =
                    named.iter().map(|gene| all[*gene as usize].clone()).collect();
                names.push("no such gene".to_owned());
                (Genes::Named { names, column: None, skip_absent: true }, sorted)
            }
        }
    }
}

prop_compose! {
    fn choice()(
        joinids in proptest::option::of(proptest::collection::vec((0_u64..40, 1_u64..60), 1..20)),
        least_nnz in proptest::option::of(0_i64..60),
        datasets in proptest::option::of((any::<Index>(), any::<Index>(), any::<bool>(), any::<bool>())),
        (genes, gene_joinids) in genes(),
        memory_bytes in MIN_MEMORY..MIN_MEMORY + 400_000,
    ) -> Choice {
        let obs = &source().1.obs;
        let mut at = 0;
        let joinids = joinids.map(|gaps| {
            let ranges = gaps.iter().map(|(gap, n)| { let start = at + gap; at = start + n; start..at });
            RowRanges::new(ranges.collect()).unwrap()
        });
        let of_cells = texts(obs, "dataset_id");
        let datasets = datasets.map(|(start, length, open_end, sorted)| {
            let names = self::datasets(obs, sorted);
            let start = start.index(names.len());
            let end = start + 1 + length.index(names.len());
            let end = (!open_end).then_some(end);
            let names = names[start..end.unwrap_or(names.len()).min(names.len())].to_vec();
            (DatasetSlice { column: "dataset_id".into(), start, end, sorted }, names)
        });
        let nnz = column(obs, "nnz").as_primitive::<Int64Type>();
        let cells = (0..N_CELLS)
            .filter(|cell| joinids.as_ref().is_none_or(|rows| rows.iter().any(|row| row == *cell)))
            .filter(|cell| least_nnz.is_none_or(|least| nnz.value(*cell as usize) > least))
            .filter(|cell| {
                datasets.as_ref().is_none_or(|(_, names)| names.contains(&of_cells[*cell as usize]))
            })
            .collect();
        let spec = SliceSpec {
            joinids,
            obs_filter: least_nnz.map(|least| ValueFilter::parse(&format!("nnz > {least}")).unwrap()),
            datasets: datasets.map(|(slice, _)| slice),
            genes,
            memory_bytes,
            zstd_level: 1,
            ..SliceSpec::default()
        };
        Choice { spec, cells, genes: gene_joinids }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_slice_is_the_rows_and_columns_that_were_asked_for(choice in choice()) {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        match take(&choice.spec, &to) {
            Ok(report) => {
                prop_assert_eq!(report.n_cells, choice.cells.len() as u64);
                prop_assert_eq!(report.n_genes, choice.genes.len() as u64);
                assert_holds(&to, &choice.cells, &choice.genes);
            }
            Err(Error::NoCells { .. }) => prop_assert!(choice.cells.is_empty()),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn more_cells_than_are_looked_at_together() {
    const N: usize = 600_000;
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let values: Vec<String> = (0..5).map(|idx| format!("set {idx}")).collect();
    let column = ColumnSpec::new("dataset_id", ColumnKind::Categorical { values, ordered: false });
    let spec = ExperimentSpec {
        n_obs: N as u64,
        n_var: 3,
        obs: vec![column],
        var: Vec::new(),
        measurement: "RNA".into(),
        layers: vec!["raw".into()],
        extent: Extent::CurrentDomain,
        x_layout: soma_io::XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: soma_io::Config::new(),
    };
    // Data sets in runs, and one cell far from its run.
    let name_of = |cell: usize| {
        if cell == N - 1 { "set 0".to_owned() } else { format!("set {}", cell / 130_000) }
    };
    let mut writer = ExperimentWriter::create(from.to_str().unwrap(), spec).unwrap();
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..N).map(name_of)));
    writer.write_obs(&RecordBatch::try_from_iter([("dataset_id", names)]).unwrap()).unwrap();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(3));
    let schema = Arc::new(arrow_schema::Schema::empty());
    writer
        .write_var(&RecordBatch::try_new_with_options(schema, vec![], &options).unwrap())
        .unwrap();
    let offsets: Vec<usize> = (0..=N).collect();
    let columns: Vec<u32> = (0..N).map(|cell| (cell % 3) as u32).collect();
    let values: Vec<f32> = (0..N).map(|cell| cell as f32).collect();
    writer.write_x("raw", &offsets, &columns, &values).unwrap();
    writer.finish().unwrap();

    let datasets =
        DatasetSlice { column: "dataset_id".into(), start: 0, end: Some(2), sorted: false };
    let spec = SliceSpec { datasets: Some(datasets), ..SliceSpec::default() };
    let report = slice(&open(&from), to.to_str().unwrap(), &spec, &mut go_on).unwrap();
    assert_eq!((report.n_cells, report.n_datasets), (260_001, Some(2)));
    let found = contents(&to);
    let expected = (0..260_000).chain([N - 1]);
    assert!(found.x.values.iter().map(|value| *value as usize).eq(expected));
    // The fifth data set has the fewest cells, 79,999; the first has the most.
    let datasets = DatasetSlice { column: "dataset_id".into(), start: 4, end: None, sorted: true };
    let spec = SliceSpec {
        datasets: Some(datasets),
        existing: REPLACE_EXPERIMENT,
        ..SliceSpec::default()
    };
    let report = slice(&open(&from), to.to_str().unwrap(), &spec, &mut go_on).unwrap();
    assert_eq!(report.n_cells, 130_001);
}

/// The limit on memory is checked for all matrices before anything is written: one attempt names
/// what is enough for all.
#[test]
fn too_little_memory_for_the_last_matrix_is_an_error_before_the_first_is_written() {
    const N: usize = 3_000;
    const N_GENES: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let layers = vec!["thin".to_owned(), "thick".to_owned()];
    let spec = ExperimentSpec {
        n_obs: N as u64,
        n_var: N_GENES as u64,
        obs: Vec::new(),
        var: Vec::new(),
        measurement: "RNA".into(),
        layers: layers.clone(),
        extent: Extent::CurrentDomain,
        x_layout: soma_io::XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: soma_io::Config::new(),
    };
    let rows = |n_rows: usize| {
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(n_rows));
        let schema = Arc::new(arrow_schema::Schema::empty());
        RecordBatch::try_new_with_options(schema, vec![], &options).unwrap()
    };
    let mut writer = ExperimentWriter::create(from.to_str().unwrap(), spec).unwrap();
    writer.write_obs(&rows(N)).unwrap();
    writer.write_var(&rows(N_GENES)).unwrap();
    for (layer, per_row) in layers.iter().zip([1, N_GENES]) {
        let offsets: Vec<usize> = (0..=N).map(|row| row * per_row).collect();
        let columns: Vec<u32> = (0..N).flat_map(|_| 0..per_row as u32).collect();
        writer.write_x(layer, &offsets, &columns, &vec![1.0; N * per_row]).unwrap();
    }
    writer.finish().unwrap();

    let mut spec = SliceSpec { layers, memory_bytes: 1, zstd_level: 1, ..SliceSpec::default() };
    let copy = |spec: &SliceSpec| {
        let mut n_written = 0;
        let copied = slice(&open(&from), to.to_str().unwrap(), spec, &mut |event| {
            n_written += u32::from(matches!(event, SliceEvent::Written { .. }));
            ControlFlow::Continue(())
        });
        (copied, n_written)
    };
    let (copied, n_written) = copy(&spec);
    let Err(Error::Memory { least_bytes, uri, n_values, .. }) = copied else {
        panic!("{copied:?}")
    };
    assert!(uri.ends_with("X/thick") && n_values == N_GENES as u64, "{uri} {n_values}");
    assert_eq!(n_written, 0);
    spec.memory_bytes = least_bytes - 1;
    assert!(matches!(copy(&spec), (Err(Error::Memory { .. }), 0)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    spec.memory_bytes = least_bytes;
    copy(&spec).0.unwrap();
}

#[test]
fn columns_are_chosen_and_old_joinids_kept() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let spec = SliceSpec {
        joinids: Some(RowRanges::new(vec![7..9, 500..501]).unwrap()),
        genes: Genes::Query(AxisQuery::list([4, 90])),
        obs_columns: ColumnChoice::Only(vec!["nnz".into(), "assay".into()]),
        var_columns: ColumnChoice::Without(vec!["nnz".into(), "feature_id".into()]),
        joinid_column: Some("source_joinid".into()),
        ..SliceSpec::default()
    };
    take(&spec, &to).unwrap();
    let found = contents(&to);
    let names = |batch: &RecordBatch| -> Vec<String> {
        batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    };
    assert_eq!(names(&found.obs), ["soma_joinid", "assay", "nnz", "source_joinid"]);
    assert_eq!(
        names(&found.var),
        [
            "soma_joinid",
            "feature_name",
            "feature_type",
            "feature_length",
            "n_measured_obs",
            "source_joinid"
        ]
    );
    let old = |batch: &RecordBatch| {
        column(batch, "source_joinid").as_primitive::<Int64Type>().values().to_vec()
    };
    assert_eq!(old(&found.obs), [7, 8, 500]);
    assert_eq!(old(&found.var), [4, 90]);
    // Categories stay those of the source, with codes of the same type.
    let assay = column(&found.obs, "assay").as_dictionary::<Int8Type>();
    let before = column(&source().1.obs, "assay").as_dictionary::<Int8Type>();
    assert_eq!(assay.values(), before.values());
}

#[test]
fn an_experiment_is_not_replaced_by_a_part_of_itself() {
    let from = source().0.path().join("from");
    let roundabout = source().0.path().join("../").join(source().0.path()).join("from");
    let spec =
        SliceSpec { genes: Genes::First(1), existing: REPLACE_EXPERIMENT, ..SliceSpec::default() };
    for to in [&from, &roundabout] {
        let error = take(&spec, to).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Destination(soma_io::DestinationError::SourceAtRisk { relation: "is", .. })
            ),
            "{error}"
        );
    }
    assert_eq!(contents(&from).var.num_rows() as u64, N_GENES);
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Checks that the slice fails with a message that contains `message`, and leaves nothing.
#[track_caller]
fn fails(spec: &SliceSpec, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let error = take(spec, &folder.path().join("to")).unwrap_err();
    assert!(error.to_string().contains(message), "{error}");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let named = |names: &[&str]| Genes::Named {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        column: None,
        skip_absent: false,
    };
    let datasets = |start, end, column: &str| {
        Some(DatasetSlice { column: column.into(), start, end, sorted: true })
    };
    let base = SliceSpec::default;
    fails(&SliceSpec { measurement: "ATAC".into(), ..base() }, "\"ATAC\"");
    fails(&SliceSpec { layers: vec!["raw".into(), "other".into()], ..base() }, "\"other\"");
    let filter = Some(ValueFilter::parse("nnz < 0").unwrap());
    fails(&SliceSpec { obs_filter: filter, ..base() }, "scanned cells of");
    let beyond = Some(RowRanges::new(vec![5_000..6_000]).unwrap());
    fails(&SliceSpec { joinids: beyond, ..base() }, "none of 0 scanned cells");
    fails(
        &SliceSpec { datasets: datasets(4_000, Some(4_001), "dataset_id"), ..base() },
        "4000 to 4001",
    );
    fails(&SliceSpec { datasets: datasets(0, None, "nnz"), ..base() }, "has type Int64");
    fails(&SliceSpec { datasets: datasets(0, None, "set"), ..base() }, "no column \"set\"");
    fails(
        &SliceSpec { genes: named(&["SYN1", "XYZ", "SYN2"]), ..base() },
        "1 of 3 genes are not in column feature_name",
    );
    fails(&SliceSpec { genes: named(&["SYN1", "SYN1"]), ..base() }, "\"SYN1\" occurs twice");
    let absent = Genes::Named { names: vec!["XYZ".into()], column: None, skip_absent: true };
    fails(&SliceSpec { genes: absent, ..base() }, "no gene of");
    let columns = ColumnChoice::Without(vec!["cell_kind".into()]);
    fails(&SliceSpec { obs_columns: columns, ..base() }, "no column \"cell_kind\"");
    fails(&SliceSpec { joinid_column: Some("nnz".into()), ..base() }, "column nnz");
    fails(&SliceSpec { joinid_column: Some("soma_old".into()), ..base() }, "\"soma_old\"");
    fails(&SliceSpec { memory_bytes: 100_000, ..base() }, "100000 bytes of memory are too few");
}

#[test]
fn whoever_watches_can_end_it_at_any_event() {
    let folder = tempfile::tempdir().unwrap();
    let from = open(&source().0.path().join("from"));
    let to = folder.path().join("to");
    let spec = SliceSpec { zstd_level: 1, memory_bytes: MIN_MEMORY, ..SliceSpec::default() };
    for n_events in 0.. {
        let mut n_seen = 0;
        let outcome = slice(&from, to.to_str().unwrap(), &spec, &mut |_| {
            n_seen += 1;
            if n_seen > n_events { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Err(Error::Interrupted) => assert!(names_in(folder.path()).is_empty()),
            Ok(_) => {
                assert!(n_events > 3, "{n_events}");
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(names_in(folder.path()), ["to"]);
}
