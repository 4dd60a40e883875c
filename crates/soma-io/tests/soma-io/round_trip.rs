//! Written experiments are read back with every value, in every layout of the writer.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use proptest::prelude::*;
use soma_io::{
    Config, CsrBuffers, Experiment, Extent, GeneSelection, Matrix, MemoryReader, OpenOptions,
    ReadLimit, ReaderChoice, RowRanges, XReader,
};

use crate::cells::{all_rows, cells_of, read_coo, read_csr};
use crate::small::{self, Small};

fn uri(folder: &Path) -> String {
    folder.join("experiment").to_str().unwrap().to_owned()
}

fn open(folder: &Path) -> Experiment {
    open_with_buffers(folder, "1048576")
}

fn open_with_buffers(folder: &Path, bytes: &str) -> Experiment {
    let config = Config::from([("soma.init_buffer_bytes".into(), bytes.into())]);
    Experiment::open(&uri(folder), &OpenOptions { config, ..OpenOptions::default() }).unwrap()
}

/// Writes, reopens, and compares everything.
#[track_caller]
fn check(small: &Small) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    let experiment = open(folder.path());
    assert_eq!(experiment.measurements().unwrap(), ["RNA"]);
    let measurement = experiment.measurement("RNA").unwrap();
    assert_eq!(measurement.layers().unwrap(), small.spec.layers);
    assert!(measurement.obsm_names().unwrap().is_empty());
    let error = measurement.obsm("X_pca").unwrap_err().to_string();
    assert!(error.contains("obsm"), "{error}");
    for (frame, expected) in
        [(experiment.obs().unwrap(), &small.obs), (measurement.var().unwrap(), &small.var)]
    {
        assert_eq!(frame.schema(), &expected.schema());
        assert_eq!(frame.n_rows().unwrap(), expected.num_rows() as u64);
        assert_eq!(&frame.read(None, None).unwrap(), expected);
    }
    for layer in &small.spec.layers {
        let x = measurement.x(layer).unwrap();
        assert_eq!(x.shape(), (small.spec.n_obs, small.spec.n_var));
        assert_eq!(x.nnz().unwrap(), small.x.nnz() as u64);
        let written = small.x.columns.iter().max().map_or(0, |last| u64::from(*last) + 1);
        let used = match small.spec.extent {
            Extent::CurrentDomain => small.spec.n_var,
            Extent::FixedDomain => written,
        };
        assert_eq!(x.used_columns().unwrap(), used);
        for reader in both_readers(&x) {
            let rows = all_rows(&*reader);
            assert_eq!(read_csr(&*reader, &rows, &GeneSelection::All).unwrap(), small.x);
            assert_eq!(read_coo(&*reader, &rows, &GeneSelection::All).unwrap(), cells_of(&small.x));
        }
    }
    folder
}

/// The native reader, which `Auto` also chooses, and libtiledb.
fn both_readers(x: &Matrix) -> [Arc<dyn XReader>; 2] {
    let (native, libtiledb) =
        (x.reader(ReaderChoice::Auto).unwrap(), x.reader(ReaderChoice::Libtiledb).unwrap());
    assert_eq!((native.name(), native.why_not_native()), ("native", None));
    assert_eq!((libtiledb.name(), libtiledb.why_not_native()), ("libtiledb", None));
    [native, libtiledb]
}

/// Number of fragments of X.
fn n_fragments(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("experiment/ms/RNA/X/raw/__fragments")).map_or(0, Iterator::count)
}

#[test]
fn several_tiles_of_rows_and_of_genes() {
    let folder = check(&Small::new(4_500, 5_000, 12));
    assert_eq!(n_fragments(folder.path()), 1);
}

#[test]
fn a_domain_of_the_size_in_use() {
    let mut small = Small::new(2_100, 300, 3);
    small.spec.extent = Extent::FixedDomain;
    check(&small);
    // Smaller than a tile.
    let mut small = Small::new(9, 7, 3);
    small.spec.extent = Extent::FixedDomain;
    check(&small);
}

#[test]
fn exact_multiples_of_a_tile() {
    check(&Small::new(2_048, 2_048, 2));
    check(&Small::new(4_096, 4_096, 2));
}

#[test]
fn one_cell_and_one_gene() {
    check(&Small::new(1, 1, 1));
}

#[test]
fn fragments_by_rows() {
    let mut small = Small::new(9_000, 60, 3);
    small.spec.fragment_rows = Some(2_500);
    let folder = check(&small);
    assert_eq!(n_fragments(folder.path()), 3);
}

#[test]
fn fragments_that_are_consolidated() {
    for extent in [Extent::CurrentDomain, Extent::FixedDomain] {
        let mut small = Small::new(7_000, 2_100, 4);
        small.spec.fragment_rows = Some(2_048);
        small.spec.consolidate = true;
        small.spec.extent = extent;
        let folder = check(&small);
        assert_eq!(n_fragments(folder.path()), 1);
    }
}

#[test]
fn x_without_any_value() {
    for (consolidate, extent) in [(true, Extent::CurrentDomain), (false, Extent::FixedDomain)] {
        let mut small = Small::new(3_000, 40, 0);
        small.spec.consolidate = consolidate;
        small.spec.extent = extent;
        let folder = check(&small);
        let x = open(folder.path()).measurement("RNA").unwrap().x("raw").unwrap();
        assert_eq!(x.non_empty_domain().unwrap(), None);
    }
}

#[test]
fn several_layers() {
    let mut small = Small::new(30, 20, 3);
    small.spec.layers = vec!["normalized".into(), "raw".into()];
    check(&small);
}

#[test]
fn the_non_empty_domain_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small::new(5, 10, 3);
    small.x = CsrBuffers {
        row_offsets: vec![0, 0, 2, 2, 3, 3],
        columns: vec![2, 7, 4],
        values: vec![1.0, 2.0, 3.0],
        n_columns: 10,
    };
    small.write(&uri(folder.path())).unwrap();
    let x = open(folder.path()).measurement("RNA").unwrap().x("raw").unwrap();
    assert_eq!(x.non_empty_domain().unwrap(), Some(((1, 3), (2, 7))));
}

#[test]
fn frames_by_column_and_by_row() {
    let small = Small::new(40, 3, 1);
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    let obs = open(folder.path()).obs().unwrap();
    let rows = RowRanges::new(vec![3..4, 10..17, 39..40]).unwrap();
    let expected = |names: &[&str]| -> RecordBatch {
        let columns: Vec<_> =
            names.iter().map(|name| small.obs.schema().index_of(name).unwrap()).collect();
        let parts = rows.ranges().iter().map(|range| {
            let length = range.end - range.start;
            small.obs.slice(range.start as usize, length as usize).project(&columns).unwrap()
        });
        let schema = small.obs.schema().project(&columns).unwrap();
        arrow_select::concat::concat_batches(&schema.into(), &parts.collect::<Vec<_>>()).unwrap()
    };
    for names in [
        ["truth", "category"].as_slice(),
        &["text_or_none"],
        &["share", "soma_joinid", "ordered_category_or_none"],
    ] {
        assert_eq!(obs.read(Some(names), Some(&rows)).unwrap(), expected(names));
    }
    // A column requested twice is returned once.
    assert_eq!(obs.read(Some(&["count", "count"]), Some(&rows)).unwrap(), expected(&["count"]));
    let nothing = obs.read(Some(&[]), Some(&rows)).unwrap();
    assert_eq!((nothing.num_rows(), nothing.num_columns()), (9, 0));
    let none = obs.read(None, Some(&RowRanges::default())).unwrap();
    assert_eq!((none.num_rows(), none.schema()), (0, small.obs.schema()));
}

#[test]
fn texts_and_categories_may_come_in_other_arrow_types() {
    use arrow_schema::DataType;
    let mut small = Small::new(12, 3, 1);
    let expected = small.obs.clone();
    let cast = |batch: &RecordBatch, change: &dyn Fn(&DataType) -> Option<DataType>| {
        let schema = batch.schema();
        let arrays = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
            let target = change(field.data_type()).unwrap_or_else(|| field.data_type().clone());
            (field.name().clone(), arrow_cast::cast(array, &target).unwrap())
        });
        RecordBatch::try_from_iter(arrays.collect::<Vec<_>>()).unwrap()
    };
    let of_texts = |data_type: &DataType| match data_type {
        DataType::LargeUtf8 => Some(DataType::Utf8),
        DataType::Dictionary(_, _) => Some(DataType::LargeUtf8),
        _ => None,
    };
    let of_keys = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, _) => {
            Some(DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()))
        }
        _ => None,
    };
    for change in [&of_texts as &dyn Fn(&DataType) -> Option<DataType>, &of_keys] {
        small.obs = cast(&expected, change);
        let folder = tempfile::tempdir().unwrap();
        small.write(&uri(folder.path())).unwrap();
        assert_eq!(open(folder.path()).obs().unwrap().read(None, None).unwrap(), expected);
    }
}

/// Nulls may occur in a dictionary's keys or in its values, and a dictionary may be empty.
#[test]
fn nulls_of_dictionaries() {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, LargeStringArray};
    use soma_io::{ColumnKind, ColumnSpec};
    let kinds = [("category", vec!["a".into(), "b".into()]), ("nothing", Vec::new())]
        .map(|(name, values)| (name, ColumnKind::Categorical { values, ordered: false }));
    let columns = kinds.into_iter().chain([("text", ColumnKind::Text)]);
    let dictionary = |keys: [Option<i32>; 3], values: Vec<Option<&str>>| -> ArrayRef {
        let values = Arc::new(LargeStringArray::from(values));
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(keys.to_vec()), values))
    };
    let with_null = dictionary([Some(1), Some(0), None], vec![None, Some("b")]);
    let mut small = Small::new(3, 3, 1);
    small.spec.obs = columns
        .map(|(name, kind)| ColumnSpec { nullable: true, ..ColumnSpec::new(name, kind) })
        .collect();
    small.obs = RecordBatch::try_from_iter([
        ("category", Arc::clone(&with_null)),
        ("nothing", dictionary([None; 3], Vec::new())),
        ("text", with_null),
    ])
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    let obs = open(folder.path()).obs().unwrap();
    let obs = obs.read(Some(&["category", "nothing", "text"]), None).unwrap();
    let texts = |column_idx: usize| {
        let texts = arrow_cast::cast(obs.column(column_idx), &arrow_schema::DataType::LargeUtf8);
        texts.unwrap().as_any().downcast_ref::<LargeStringArray>().unwrap().clone()
    };
    let expected = LargeStringArray::from(vec![Some("b"), None, None]);
    assert_eq!((texts(0), texts(2)), (expected.clone(), expected));
    assert_eq!(texts(1), LargeStringArray::new_null(3));
}

#[test]
fn codes_are_as_wide_as_their_values_need() {
    use std::sync::Arc;

    use arrow_array::LargeStringArray;
    use arrow_schema::DataType;
    use soma_io::{ColumnKind, ColumnSpec};
    for (n_values, keys) in [
        (126, DataType::Int8),
        (127, DataType::Int16),
        (32_766, DataType::Int16),
        (32_767, DataType::Int32),
    ] {
        let values: Vec<String> = (0..n_values).map(|value| format!("value {value}")).collect();
        let mut small = Small::new(3, 3, 1);
        let kind = ColumnKind::Categorical { values: values.clone(), ordered: false };
        small.spec.obs = vec![ColumnSpec::new("kind", kind)];
        let texts = [&values[n_values - 1], &values[0], &values[n_values / 2]];
        let texts = LargeStringArray::from_iter_values(texts);
        small.obs = RecordBatch::try_from_iter([("kind", Arc::new(texts.clone()) as _)]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        small.write(&uri(folder.path())).unwrap();
        let obs = open(folder.path()).obs().unwrap().read(Some(&["kind"]), None).unwrap();
        let expected = DataType::Dictionary(keys.into(), DataType::LargeUtf8.into());
        assert_eq!(obs.column(0).data_type(), &expected);
        let found = arrow_cast::cast(obs.column(0), &DataType::LargeUtf8).unwrap();
        assert_eq!(found.as_ref(), &texts as &dyn arrow_array::Array);
    }
}

#[test]
fn tiny_buffers_change_nothing() {
    let small = Small::new(300, 200, 9);
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    for bytes in ["1", "64", "1000"] {
        let experiment = open_with_buffers(folder.path(), bytes);
        let reader = experiment
            .measurement("RNA")
            .unwrap()
            .x("raw")
            .unwrap()
            .reader(ReaderChoice::Libtiledb)
            .unwrap();
        let rows = all_rows(&*reader);
        assert_eq!(read_csr(&*reader, &rows, &GeneSelection::All).unwrap(), small.x);
        assert_eq!(read_coo(&*reader, &rows, &GeneSelection::All).unwrap(), cells_of(&small.x));
    }
}

/// Ascending ranges below `n`, from gaps and lengths.
fn row_ranges(n: u64) -> impl Strategy<Value = RowRanges> {
    prop::collection::vec((0..n / 3, 1..n / 4), 0..9).prop_map(move |pairs| {
        let mut at = 0;
        let mut ranges = Vec::new();
        for (gap, length) in pairs {
            let start = at + gap;
            at = (start + length).min(n);
            if start < at {
                ranges.push(start..at);
            }
        }
        RowRanges::new(ranges).unwrap()
    })
}

fn gene_selection(n: u64) -> impl Strategy<Value = GeneSelection> {
    prop_oneof![
        Just(GeneSelection::All),
        (0..=n, 0..=n).prop_map(|(a, b)| GeneSelection::Range(a.min(b)..a.max(b))),
        prop::sample::subsequence((0..n).collect::<Vec<_>>(), 0..40)
            .prop_shuffle()
            .prop_map(GeneSelection::List),
    ]
}

/// Two row tiles by three of genes, in two fragments.
const SHAPE: (u64, u64) = (2_500, 4_200);

#[test]
fn any_selection_equals_the_one_from_memory() {
    let mut small = Small::new(SHAPE.0, SHAPE.1, 12);
    small.spec.fragment_rows = Some(2_048);
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    let reader = |choice, bytes: &str| {
        let experiment = open_with_buffers(folder.path(), bytes);
        experiment.measurement("RNA").unwrap().x("raw").unwrap().reader(choice).unwrap()
    };
    let readers = [
        reader(ReaderChoice::Native, "4096"),
        reader(ReaderChoice::Libtiledb, "4194304"),
        reader(ReaderChoice::Libtiledb, "4096"),
    ];
    let memory = MemoryReader::new(small.x).unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(48));
    let cases = (row_ranges(SHAPE.0), gene_selection(SHAPE.1));
    let outcome = runner.run(&cases, |(rows, genes)| {
        let expected = read_csr(&memory, &rows, &genes).unwrap();
        let expected_cells = read_coo(&memory, &rows, &genes).unwrap();
        prop_assert_eq!(expected.nnz(), expected_cells.len());
        for reader in &readers {
            prop_assert_eq!(&read_csr(&**reader, &rows, &genes).unwrap(), &expected);
            prop_assert_eq!(&read_coo(&**reader, &rows, &genes).unwrap(), &expected_cells);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// The reader in memory, compared with cells selected one by one: it is the oracle above.
#[test]
fn the_reader_in_memory_picks_cells() {
    let x = small::csr(60, 50, 6);
    let cells = cells_of(&x);
    let memory = MemoryReader::new(x).unwrap();
    let mut runner = proptest::test_runner::TestRunner::default();
    let outcome = runner.run(&(row_ranges(60), gene_selection(50)), |(rows, genes)| {
        let genes_in_order: Vec<u64> = match &genes {
            GeneSelection::All => (0..50).collect(),
            GeneSelection::Range(range) => range.clone().collect(),
            GeneSelection::List(genes) => genes.clone(),
        };
        let picked = rows.iter().enumerate().flat_map(|(position, row)| {
            genes_in_order.iter().enumerate().filter_map({
                let cells = &cells;
                move |(column, gene)| {
                    let cell = cells.iter().find(|cell| (cell.0, cell.1) == (row, *gene))?;
                    Some((position as u64, column as u64, cell.2))
                }
            })
        });
        let csr = read_csr(&memory, &rows, &genes).unwrap();
        prop_assert_eq!(cells_of(&csr), picked.collect::<Vec<_>>());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn two_threads_read_through_one_reader() {
    let small = Small::new(2_500, 300, 9);
    let folder = tempfile::tempdir().unwrap();
    small.write(&uri(folder.path())).unwrap();
    let reader = open(folder.path())
        .measurement("RNA")
        .unwrap()
        .x("raw")
        .unwrap()
        .reader(ReaderChoice::Auto)
        .unwrap();
    let expected = cells_of(&small.x);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let rows = all_rows(&*reader);
                    let csr = read_csr(&*reader, &rows, &GeneSelection::All).unwrap();
                    assert_eq!(cells_of(&csr), expected);
                }
            });
        }
    });
}

/// Arrays from before the current domain store the used size as metadata, and their version is 1.
/// Values outside an outdated size exist all the same.
#[test]
fn the_size_that_old_arrays_note() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small::new(20, 30, 3);
    small.spec.extent = Extent::FixedDomain;
    small.write(&uri(folder.path())).unwrap();
    let context = tiledb::Context::new(&Config::new()).unwrap();
    let raw = format!("{}/ms/RNA/X/raw", uri(folder.path()));
    let note = |rows: i64, genes: i64| {
        let array = tiledb::Array::open_for_writing(&context, &raw, None).unwrap();
        array.put_metadata("soma_encoding_version", &"1".into()).unwrap();
        for (key, n) in [("soma_dim_0_domain_upper", rows), ("soma_dim_1_domain_upper", genes)] {
            array.put_metadata(key, &(n - 1).into()).unwrap();
        }
        array.close().unwrap();
        open(folder.path()).measurement("RNA").unwrap().x("raw").unwrap()
    };
    let used = |cells: &[(u64, u64, f32)]| {
        let end = |of: fn(&(u64, u64, f32)) -> u64| cells.iter().map(of).max().unwrap() + 1;
        (end(|cell| cell.0), end(|cell| cell.1))
    };
    let cells = cells_of(&small.x);
    let used = used(&cells);
    for (noted, expected) in [
        ((1, 2), used),
        (used, used),
        ((20, 30), (20, 30)),
        // At most the domain.
        ((21, 31), (20, 30)),
    ] {
        let x = note(noted.0 as i64, noted.1 as i64);
        assert_eq!(x.shape(), expected, "{noted:?} is noted");
        for reader in both_readers(&x) {
            let csr = read_csr(&*reader, &all_rows(&*reader), &GeneSelection::All).unwrap();
            assert_eq!(cells_of(&csr), cells);
        }
    }
}

#[test]
fn a_limit_holds_the_native_reader_and_libtiledb_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::new(500, 60, 3);
    small.write(&uri(folder.path())).unwrap();
    let limit = Arc::new(ReadLimit::new(NonZeroU64::new(1 << 30).unwrap()));
    let experiment = open(folder.path()).with_read_limit(Arc::clone(&limit));
    let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
    let error = x.reader(ReaderChoice::Libtiledb).unwrap_err().to_string();
    assert!(error.contains("would be read by libtiledb, whose reads cannot be held"), "{error}");
    assert_eq!(limit.used().bytes, 0);
    for _ in 0..2 {
        // Bytes read on opening an array count, too, and those of several arrays add up.
        let reader = x.reader(ReaderChoice::Auto).unwrap();
        let opened = limit.used().bytes;
        let mut csr = CsrBuffers::default();
        let stats = reader.read_csr(&all_rows(&*reader), &GeneSelection::All, &mut csr).unwrap();
        assert_eq!(csr, small.x);
        // In addition, the parts of footers that are read when first needed.
        assert!(stats.bytes_read.unwrap() <= limit.used().bytes - opened);
        assert!(0 < stats.bytes_read.unwrap() && 0 < opened);
    }
}

#[test]
fn an_experiment_in_an_archive_is_read_natively() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("experiment"), folder.path().join("x.zip"));
    let mut small = Small::new(300, 40, 5);
    small.spec.layers = vec!["raw".into(), "a/b".into()];
    small.write(path.to_str().unwrap()).unwrap();
    test_storage::pack(&path, &archive);
    let experiment = Experiment::open(archive.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let here = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let frames = [&experiment, &here].map(|of| of.obs().unwrap().read(None, None).unwrap());
    assert_eq!(frames[0], frames[1]);
    let measurement = experiment.measurement("RNA").unwrap();
    assert_eq!(measurement.layers().unwrap(), ["a/b", "raw"]);
    let reader = measurement.x("a/b").unwrap().reader(ReaderChoice::Native).unwrap();
    let (all, mut rows) = (RowRanges::new(vec![0..300]).unwrap(), CsrBuffers::default());
    reader.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
    assert_eq!(rows, small.x);
}
