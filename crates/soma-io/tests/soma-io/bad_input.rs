//! Invalid requests and data end in a message of one line that names the problem.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{BooleanArray, LargeStringArray, RecordBatch};
use soma_io::{
    Config, CsrBuffers, Error, Experiment, ExperimentWriter, GeneSelection, OpenOptions,
    ReaderChoice, RowRanges, XLayout, XReader,
};
use tiledb::{Array, ArrayType, Context, Group};

use crate::small::Small;

/// Checks the message of an error: one line that contains all of `parts`.
#[track_caller]
fn check<T: Debug>(outcome: Result<T, Error>, parts: &[&str]) {
    let message = outcome.unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message:?} has more than one line");
    assert!(message.chars().count() < 500, "{message} is too long");
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn open(path: &Path) -> Result<Experiment, Error> {
    Experiment::open(text(path), &OpenOptions::default())
}

/// A written experiment of 12 cells and 10 genes, in a folder that is removed with it.
fn written() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    Small::new(12, 10, 3).write(text(&path)).unwrap();
    (folder, path)
}

fn context() -> Context {
    Context::new(&Config::new()).unwrap()
}

#[test]
fn nothing_or_something_else_is_at_the_uri() {
    let folder = tempfile::tempdir().unwrap();
    check(open(&folder.path().join("absent")), &["nothing is at", "absent", "check the path"]);
    check(open(folder.path()), &[text(folder.path()), "neither", "not a SOMAExperiment"]);
    let file = folder.path().join("matrix.mtx");
    std::fs::write(&file, "%%MatrixMarket").unwrap();
    check(open(&file), &[text(&file), "is a file", "not a SOMAExperiment"]);
    check(Experiment::open("", &OpenOptions::default()), &["nothing is at"]);
}

#[test]
fn an_address_that_libtiledb_does_not_know() {
    check(Experiment::open("nosuch://bucket/x", &OpenOptions::default()), &["nosuch://bucket/x"]);
    check(Experiment::open("a\0b", &OpenOptions::default()), &["zero byte"]);
}

#[test]
fn another_part_of_an_experiment() {
    let (_folder, path) = written();
    let wanted = "not a SOMAExperiment";
    check(open(&path.join("ms")), &["SOMACollection", wanted]);
    check(open(&path.join("ms/RNA")), &["SOMAMeasurement", wanted]);
    check(open(&path.join("obs")), &["SOMADataFrame", wanted]);
    check(open(&path.join("ms/RNA/X/raw")), &["SOMASparseNDArray", wanted]);
    let group = path.with_file_name("group");
    Group::create(&context(), text(&group)).unwrap();
    check(open(&group), &["TileDB group that is not of SOMA", wanted]);
}

#[test]
fn names_that_are_not_there() {
    let (_folder, path) = written();
    let experiment = open(&path).unwrap();
    check(experiment.measurement("ATAC"), &["measurement \"ATAC\"", "it has RNA"]);
    let measurement = experiment.measurement("RNA").unwrap();
    check(measurement.x("normalized"), &["layer of X \"normalized\"", "it has raw"]);
    let obs = experiment.obs().unwrap();
    let columns = ["soma_joinid, text, text_or_none, category", "share_or_none"];
    check(obs.read(Some(&["cell_type"]), None), &["column \"cell_type\"", columns[0], columns[1]]);
}

#[test]
fn members_of_another_type() {
    let (_folder, path) = written();
    // obs in the place of X/raw, and the other way round.
    let (obs, raw) = (path.join("obs"), path.join("ms/RNA/X/raw"));
    let aside = path.join("aside");
    for (from, to) in [(&obs, &aside), (&raw, &obs), (&aside, &raw)] {
        std::fs::rename(from, to).unwrap();
    }
    let experiment = open(&path).unwrap();
    check(experiment.obs(), &["SOMASparseNDArray", "not a SOMADataFrame"]);
    check(
        experiment.measurement("RNA").unwrap().x("raw"),
        &["SOMADataFrame", "not a SOMASparseNDArray"],
    );
    std::fs::remove_dir_all(&raw).unwrap();
    check(experiment.measurement("RNA").unwrap().x("raw"), &["nothing is at", "X/raw"]);
    Group::create(&context(), text(&raw)).unwrap();
    check(experiment.measurement("RNA").unwrap().x("raw"), &["a group", "not a SOMASparseNDArray"]);
}

#[test]
fn x_that_is_dense() {
    let (_folder, path) = written();
    let raw = path.join("ms/RNA/X/raw");
    let context = context();
    let mut schema = Array::open(&context, text(&raw), None).unwrap().schema().clone();
    std::fs::remove_dir_all(&raw).unwrap();
    schema.array_type = ArrayType::Dense;
    schema.allows_duplicates = false;
    schema.current_domain = None;
    for dimension in &mut schema.dimensions {
        dimension.domain = Some((0, 9));
        dimension.tile_extent = Some(10);
    }
    Array::create(&context, text(&raw), &schema).unwrap();
    mark(&raw, "SOMADenseNDArray", "1.1.0");
    let x = open(&path).unwrap().measurement("RNA").unwrap().x("raw").unwrap();
    assert_eq!((x.shape(), x.nnz().unwrap()), ((10, 10), 100));
    // An array that claims to be sparse but is dense is an error.
    mark(&raw, "SOMASparseNDArray", "1.1.0");
    check(open(&path).unwrap().measurement("RNA").unwrap().x("raw"), &["X/raw", "dense"]);
}

fn mark(array: &Path, object_type: &str, version: &str) {
    let array = Array::open_for_writing(&context(), text(array), None).unwrap();
    array.put_metadata("soma_object_type", &object_type.into()).unwrap();
    array.put_metadata("soma_encoding_version", &version.into()).unwrap();
    array.close().unwrap();
}

#[test]
fn x_that_only_libtiledb_reads() {
    let (_folder, path) = written();
    let raw = path.join("ms/RNA/X/raw");
    let context = context();
    let mut schema = Array::open(&context, text(&raw), None).unwrap().schema().clone();
    std::fs::remove_dir_all(&raw).unwrap();
    schema.capacity = 1 << 27;
    Array::create(&context, text(&raw), &schema).unwrap();
    mark(&raw, "SOMASparseNDArray", "1.1.0");
    let x = open(&path).unwrap().measurement("RNA").unwrap().x("raw").unwrap();
    let reader = x.reader(ReaderChoice::Auto).unwrap();
    assert_eq!(reader.name(), "libtiledb");
    assert!(reader.why_not_native().unwrap().contains("134217728 cells"), "{reader:?}");
    check(
        x.reader(ReaderChoice::Native),
        &["X/raw", "native reader", "134217728 cells", "`libtiledb`"],
    );
}

#[test]
fn a_damaged_x_is_not_left_to_libtiledb() {
    let (_folder, path) = written();
    let fragments = path.join("ms/RNA/X/raw/__fragments");
    let fragment = std::fs::read_dir(fragments).unwrap().next().unwrap().unwrap().path();
    std::fs::write(fragment.join("a0.tdb"), [1; 30]).unwrap();
    let x = open(&path).unwrap().measurement("RNA").unwrap().x("raw").unwrap();
    let reader = x.reader(ReaderChoice::Auto).unwrap();
    let rows = RowRanges::new(vec![0..12]).unwrap();
    let mut csr = CsrBuffers::default();
    check(reader.read_csr(&rows, &GeneSelection::All, &mut csr), &["a0.tdb"]);
    assert_eq!((csr.n_rows(), csr.nnz()), (0, 0));
}

#[test]
fn encoding_versions_that_are_not_known() {
    let (_folder, path) = written();
    mark(&path.join("obs"), "SOMADataFrame", "2.0.0");
    check(open(&path).unwrap().obs(), &["obs", "\"2.0.0\"", "versions 1 and 1.1.0"]);
    mark(&path.join("obs"), "SOMADataFrame", "1");
    open(&path).unwrap().obs().unwrap();
    let group = Group::open_for_writing(&context(), text(&path)).unwrap();
    group.put_metadata("soma_encoding_version", &"0.9".into()).unwrap();
    group.close().unwrap();
    check(open(&path), &[text(&path), "\"0.9\"", "versions 1 and 1.1.0"]);
}

#[test]
fn rows_and_genes_outside() {
    let (_folder, path) = written();
    let measurement = open(&path).unwrap().measurement("RNA").unwrap();
    let reader = measurement.x("raw").unwrap().reader(ReaderChoice::Auto).unwrap();
    let read = |rows: RowRanges, genes: GeneSelection| {
        let coo = reader.read_coo(&rows, &genes, &mut |_| Ok(())).map(|_| ());
        let csr = reader.read_csr(&rows, &genes, &mut CsrBuffers::default()).map(|_| ());
        assert_eq!(coo.as_ref().err().map(Error::to_string), csr.err().map(|e| e.to_string()));
        coo
    };
    let rows = |range| RowRanges::new(vec![range]).unwrap();
    check(read(rows(3..13), GeneSelection::All), &["rows 3..13", "X/raw", "12 rows"]);
    check(read(rows(0..u64::MAX), GeneSelection::All), &["12 rows"]);
    check(read(rows(0..3), GeneSelection::Range(4..11)), &["gene 10", "10 genes"]);
    check(read(rows(0..3), GeneSelection::List(vec![3, 1 << 50])), &["10 genes"]);
    check(read(rows(0..3), GeneSelection::List(vec![3, 5, 3])), &["gene 3 occurs twice"]);
    // Also if no row is read.
    check(read(RowRanges::default(), GeneSelection::Range(4..11)), &["gene 10"]);
    read(rows(0..12), GeneSelection::Range(10..10)).unwrap();
    check(RowRanges::new(vec![4..6, 5..7]), &["5..7 stands after 6"]);
}

#[test]
fn frames_leave_out_rows_that_are_not_there() {
    let (_folder, path) = written();
    let obs = open(&path).unwrap().obs().unwrap();
    let rows = RowRanges::new(vec![10..12]).unwrap();
    assert_eq!(obs.read(Some(&["text"]), Some(&rows)).unwrap().num_rows(), 2);
    let rows = RowRanges::new(vec![10..2_000]).unwrap();
    check(obs.read(Some(&["text"]), Some(&rows)), &["rows 10..2000", "obs", "12 rows"]);
}

#[test]
fn config_that_is_no_config() {
    let (_folder, path) = written();
    let open = |name: &str, value: &str| {
        let config = Config::from([(name.into(), value.into())]);
        Experiment::open(text(&path), &OpenOptions { config, ..OpenOptions::default() })
    };
    for bytes in ["0", "-1", "64k"] {
        let experiment = open("soma.init_buffer_bytes", bytes).unwrap();
        let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
        check(x.reader(ReaderChoice::Libtiledb), &["soma.init_buffer_bytes is not a number"]);
    }
    let threads = open("sm.compute_concurrency_level", "many").and_then(|one| one.obs());
    check(threads, &["sm.compute_concurrency_level is not a number of threads"]);
    // A parameter of libtiledb alone is read with libtiledb.
    let config = Config::from([("vfs.min_parallel_size".into(), "much".into())]);
    let options = OpenOptions { config, reader: ReaderChoice::Libtiledb, timestamp: None };
    check(Experiment::open(text(&path), &options), &["much"]);
    check("mixed".parse::<ReaderChoice>(), &["\"mixed\"", "auto, native and libtiledb"]);
}

#[test]
fn a_consumer_that_gives_up_ends_the_read() {
    let (_folder, path) = written();
    let x = open(&path).unwrap().measurement("RNA").unwrap().x("raw").unwrap();
    let reader: Arc<dyn XReader> = x.reader(ReaderChoice::Auto).unwrap();
    let rows = RowRanges::new(vec![0..12]).unwrap();
    let outcome = reader.read_coo(&rows, &GeneSelection::All, &mut |_| {
        Err(Error::Consumer { message: "enough".into() })
    });
    check(outcome, &["enough"]);
}

#[test]
fn an_experiment_that_was_cut_short_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let small = Small::new(5, 4, 2);
    let mut writer = ExperimentWriter::create(text(&path), small.spec.clone()).unwrap();
    small.write_rows(&mut writer).unwrap();
    drop(writer);
    check(open(&path), &[text(&path), "not a SOMAExperiment"]);
    // And its existing parts are not overwritten.
    check(ExperimentWriter::create(text(&path), small.spec), &["exists already", text(&path)]);
}

#[test]
fn nothing_is_written_over() {
    let (_folder, path) = written();
    let spec = Small::new(1, 1, 1).spec;
    check(ExperimentWriter::create(text(&path), spec.clone()), &["exists already", text(&path)]);
    assert_eq!(open(&path).unwrap().obs().unwrap().n_rows().unwrap(), 12);
    let file = path.with_file_name("file");
    std::fs::write(&file, "").unwrap();
    check(ExperimentWriter::create(text(&file), spec.clone()), &["exists already", text(&file)]);
    check(ExperimentWriter::create(text(&file.join("below")), spec), &[text(&file)]);
}

/// Invalid specifications.
#[test]
fn specifications_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let check_spec = |change: &dyn Fn(&mut soma_io::ExperimentSpec), parts: &[&str]| {
        let path = folder.path().join("experiment");
        let mut spec = Small::new(5, 4, 2).spec;
        change(&mut spec);
        check(ExperimentWriter::create(text(&path), spec), parts);
        assert!(!path.exists(), "{} was left behind", text(&path));
    };
    check_spec(&|spec| spec.n_obs = 0, &["no cells"]);
    check_spec(&|spec| spec.n_var = 0, &["no genes"]);
    check_spec(&|spec| spec.n_var = 1 << 33, &["genes"]);
    check_spec(&|spec| spec.n_obs = u64::MAX, &["cells"]);
    check_spec(&|spec| spec.measurement = String::new(), &["\"\""]);
    check_spec(&|spec| spec.measurement = "a\\b".into(), &["\"a\\\\b\""]);
    check_spec(&|spec| spec.layers = vec!["..".into()], &["\"..\""]);
    check_spec(&|spec| spec.layers = vec!["raw".into(), "raw".into()], &["\"raw\"", "twice"]);
    check_spec(&|spec| spec.fragment_rows = Some(0), &["fragment"]);
    check_spec(&|spec| spec.x_layout = XLayout::census(99), &["zstd", "99"]);
    check_spec(&|spec| spec.obs[1].name = "text".into(), &["obs", "\"text\"", "twice"]);
    check_spec(&|spec| spec.var[1].name = "soma_joinid".into(), &["var", "\"soma_joinid\""]);
    check_spec(&|spec| spec.var[1].name = "soma_x".into(), &["var", "\"soma_x\""]);
    let repeated = |spec: &mut soma_io::ExperimentSpec| {
        let values = vec!["a".into(), "b".into(), "a".into()];
        spec.obs[2].kind = soma_io::ColumnKind::Categorical { values, ordered: false };
    };
    check_spec(&repeated, &["obs", "category", "\"a\"", "twice"]);
}

#[test]
fn rows_of_x_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let spec = Small::new(3, 4, 2).spec;
    let uri = folder.path().join("experiment");
    let mut writer = ExperimentWriter::create(text(&uri), spec).unwrap();
    let mut write = |layer: &str, offsets: &[usize], columns: &[u32]| {
        writer.write_x(layer, offsets, columns, &vec![1.0; columns.len()])
    };
    check(write("counts", &[0], &[]), &["layer of X \"counts\"", "it has raw"]);
    check(write("raw", &[0, 2], &[3, 1]), &["X/raw", "row 0", "do not ascend"]);
    check(write("raw", &[0, 2], &[1, 1]), &["X/raw", "row 0", "do not ascend"]);
    check(write("raw", &[0, 1], &[4]), &["X/raw", "row 0 has column 4, there are 4"]);
    check(write("raw", &[0, 2, 1], &[0, 1]), &["X/raw", "do not match"]);
    check(write("raw", &[0, 3], &[0, 1]), &["X/raw", "do not match"]);
    check(write("raw", &[0; 5], &[]), &["X/raw", "4 rows were given", "has 3"]);
    write("raw", &[0, 1, 1], &[2]).unwrap();
    check(write("raw", &[0, 0, 1], &[2]), &["X/raw", "4 rows were given", "has 3"]);
    check(write("raw", &[0, 2], &[3, 2]), &["row 2"]);
    check(writer.write_x("raw", &[0, 1], &[1], &[]), &["do not match"]);
}

#[test]
fn rows_of_obs_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::new(6, 4, 2);
    let uri = folder.path().join("experiment");
    let mut writer = ExperimentWriter::create(text(&uri), small.spec).unwrap();
    let rows = small.obs.slice(0, 2);
    let with = |name: &str, array: arrow_array::ArrayRef| -> RecordBatch {
        let arrays = rows.columns().iter().zip(rows.schema_ref().fields()).map(|(old, field)| {
            let new = if field.name() == name { &array } else { old };
            (field.name().clone(), Arc::clone(new))
        });
        RecordBatch::try_from_iter(arrays.collect::<Vec<_>>()).unwrap()
    };
    let texts = |texts: [Option<&str>; 2]| -> arrow_array::ArrayRef {
        Arc::new(LargeStringArray::from(texts.to_vec()))
    };
    check(
        writer.write_obs(&rows.project(&[1, 2]).unwrap()),
        &["obs", "column category is missing"],
    );
    check(
        writer.write_obs(&with("category", texts([Some("T cell"), Some("T-cell")]))),
        &["obs", "column category", "\"T-cell\""],
    );
    check(
        writer.write_obs(&with("text", texts([Some("a"), None]))),
        &["obs", "column text", "not nullable"],
    );
    check(
        writer.write_obs(&with("count", texts([Some("1"), Some("2")]))),
        &["column count", "LargeUtf8"],
    );
    let truths: arrow_array::ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    for name in ["share", "count_or_none"] {
        check(writer.write_obs(&with(name, Arc::clone(&truths))), &["column", name, "Boolean"]);
    }
    check(writer.write_obs(&with("text", Arc::clone(&truths))), &["column text", "Boolean"]);
    check(writer.write_obs(&with("category", truths)), &["column category", "Boolean"]);
    check(writer.write_obs(&with("truth", texts([Some("a"), Some("b")]))), &["column truth"]);
    for _ in 0..3 {
        writer.write_obs(&rows).unwrap();
    }
    check(writer.write_obs(&rows), &["obs", "8 rows were given", "has 6"]);
}

#[test]
fn rows_that_are_missing_at_the_end() {
    let finish = |leave_out: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment");
        let small = Small::new(6, 4, 2);
        let mut writer = ExperimentWriter::create(text(&path), small.spec).unwrap();
        let n = |name: &str, n_rows: usize| if name == leave_out { n_rows - 1 } else { n_rows };
        writer.write_obs(&small.obs.slice(0, n("obs", 6))).unwrap();
        writer.write_var(&small.var.slice(0, n("var", 4))).unwrap();
        let offsets = &small.x.row_offsets[..=n("raw", 6)];
        writer.write_x("raw", offsets, &small.x.columns, &small.x.values).unwrap();
        let outcome = writer.finish();
        open(&path).unwrap_err();
        outcome
    };
    check(finish("obs"), &["obs", "5 of 6 rows were written"]);
    check(finish("var"), &["var", "3 of 4 rows were written"]);
    check(finish("raw"), &["X/raw", "5 of 6 rows were written"]);
}
