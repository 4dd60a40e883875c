//! Tests of `store`.

use std::{collections::BTreeMap, fs};

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray,
    StructArray, TimestampMicrosecondArray, UInt64Array,
    types::{Float64Type, Int64Type},
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, TimeUnit};
use tempfile::TempDir;

use super::*;
use crate::{
    GridPoint, IO_LIMIT, Measured, OWN_LOADER, OrderEntropy, RunInfo, Settings, Status,
    column::Scalar, fixture, settings::add_columns_of_before,
};

fn write_file(folder: &Path, version: Option<&str>, batch: &RecordBatch) {
    let metadata =
        version.map(|version| vec![KeyValue::new(VERSION_KEY.to_owned(), version.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    fs::write(folder.join(EPOCHS_FILE), writer.into_inner().unwrap()).unwrap();
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Neither reading nor appending works, both say why, and the file is unchanged.
#[track_caller]
fn check_refused(folder: &TempDir, expected: &str) {
    let path = folder.path().join(EPOCHS_FILE);
    let before = fs::read(&path).unwrap();
    let errors = [
        read(folder.path()).unwrap_err(),
        append(folder.path(), &fixture::grid()).unwrap_err(),
        check_folder(folder.path()).unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(
            text.contains(expected) && text.contains(EPOCHS_FILE) && !text.contains('\n'),
            "{text}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_list_with_another_type_of_elements_is_refused() {
    let folder = TempDir::new().unwrap();
    let waits = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1_i64)])]);
    let batch = batch(vec![("batch_wait_secs", Arc::new(waits) as ArrayRef)]);
    write_file(folder.path(), Some("1"), &batch);
    check_refused(&folder, "column batch_wait_secs of");
}

#[test]
fn the_schema_is_what_readers_of_the_file_rely_on() {
    let lines: Vec<String> = EpochRecord::fields()
        .iter()
        .map(|field| format!("{}: {}", field.name(), field.data_type()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn no_two_fields_share_a_column() {
    let fields = EpochRecord::fields();
    let names: std::collections::BTreeSet<&String> = fields.iter().map(Field::name).collect();
    assert_eq!(names.len(), fields.len());
    let json = serde_json::to_value(EpochRecord::default()).unwrap();
    // The file has one column more than the JSON: the derived point_id.
    assert_eq!(json.as_object().unwrap().len() + 1, fields.len());
}

/// A different value in each column shows that each field is written where it is read; then a row
/// of nulls.
#[test]
fn each_column_comes_back_as_itself() {
    let schema = Arc::new(Schema::new(EpochRecord::fields()));
    let columns = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(idx, field)| one_value_and_null(idx, field))
        .collect();
    let written = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let records = EpochRecord::decode(&written).unwrap();
    let again = encode(&records).unwrap();
    for field in schema.fields().iter().filter(|field| field.name() != "point_id") {
        let [before, after] =
            [&written, &again].map(|batch| batch.column_by_name(field.name()).unwrap());
        assert_eq!(&before.slice(0, 1), &after.slice(0, 1), "{}", field.name());
    }
    // A row of nulls gives the default of each field.
    assert_eq!(records[1], EpochRecord::default());
}

fn one_value_and_null(idx: usize, field: &Field) -> ArrayRef {
    let number = idx as u64 + 7;
    match field.data_type() {
        DataType::UInt64 => Arc::new(UInt64Array::from(vec![Some(number), None])),
        DataType::Float64 => Arc::new(Float64Array::from(vec![Some(number as f64 + 0.5), None])),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![Some(true), None])),
        DataType::Utf8 if field.name() == "status" => {
            Arc::new(StringArray::from(vec![Some("oom"), None]))
        }
        DataType::Utf8 => Arc::new(StringArray::from(vec![Some(number.to_string()), None])),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Arc::new(
            TimestampMicrosecondArray::from(vec![i64::try_from(number).ok(), None])
                .with_timezone("UTC"),
        ),
        DataType::List(item) if matches!(item.data_type(), DataType::Struct(_)) => {
            let entropy =
                OrderEntropy { label: number.to_string(), mean: Some(1.5), ..Default::default() };
            <Vec<OrderEntropy> as Scalar>::to_array([Some(vec![entropy]), None].into_iter())
        }
        DataType::List(_) => Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(1.5), Some(2.5)]),
            None,
        ])),
        DataType::Map(..) => {
            let record = |metadata| EpochRecord {
                run: RunInfo { metadata, ..RunInfo::default() },
                ..EpochRecord::default()
            };
            let records =
                [BTreeMap::from([("a".to_owned(), "ü=1".to_owned())]), BTreeMap::new()].map(record);
            Arc::clone(encode(&records).unwrap().column_by_name(field.name()).unwrap())
        }
        other => panic!("no test value for {other}"),
    }
}

#[test]
fn records_come_back_as_they_were_and_in_order() {
    let folder = TempDir::new().unwrap();
    let mut expected = fixture::grid();
    expected[0].measured.batch_wait_secs = Vec::new();
    expected[2].measured.order_entropy = Vec::new();
    expected[1].point.seed = u64::MAX;
    append(folder.path(), &expected[..3]).unwrap();
    append(folder.path(), &[]).unwrap();
    append(folder.path(), &expected[3..]).unwrap();
    assert_eq!(read(folder.path()).unwrap(), expected);
}

#[test]
fn records_come_back_from_json() {
    for record in fixture::grid() {
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<EpochRecord>(&text).unwrap(), record);
    }
    let sparse: EpochRecord =
        serde_json::from_str(r#"{"status": "ok", "n_rows": 3, "of another version": 1}"#).unwrap();
    assert_eq!(
        sparse.measured,
        Measured { status: Status::Ok, n_rows: Some(3), ..Measured::default() }
    );
}

#[test]
fn columns_of_another_version_survive_and_missing_ones_are_null() {
    let folder = TempDir::new().unwrap();
    let old = batch(vec![
        ("run_id", Arc::new(StringArray::from(vec!["old"])) as ArrayRef),
        ("n_rows", Arc::new(UInt64Array::from(vec![5])) as ArrayRef),
        ("from_the_future", Arc::new(Int64Array::from(vec![77])) as ArrayRef),
    ]);
    write_file(folder.path(), Some("1"), &old);
    let new = fixture::epoch("native", (64, 16), 0.5);
    append(folder.path(), std::slice::from_ref(&new)).unwrap();

    let records = read(folder.path()).unwrap();
    let expected = EpochRecord {
        run: RunInfo { run_id: "old".to_owned(), ..RunInfo::default() },
        measured: Measured { n_rows: Some(5), ..Measured::default() },
        ..EpochRecord::default()
    };
    assert_eq!(records, [expected, new]);

    let kept = read_batches(&folder.path().join(EPOCHS_FILE)).unwrap();
    let values: Vec<Option<i64>> = kept
        .iter()
        .flat_map(|batch| {
            let column = batch.column_by_name("from_the_future").unwrap();
            column.as_any().downcast_ref::<Int64Array>().unwrap().iter().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(values, [Some(77), None]);
}

/// Labels of files from before the entropy of first batches.
#[test]
fn lists_whose_structs_lack_members_are_read_and_kept() {
    let folder = TempDir::new().unwrap();
    let names = ["label", "mean"]
        .map(|name| OrderEntropy::fields().into_iter().find(|field| field.name() == name).unwrap());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["tissue", "donor"])),
        Arc::new(Float64Array::from(vec![Some(1.5), None])),
    ];
    let labels = StructArray::new(names.to_vec().into(), columns, None);
    let item = Arc::new(Field::new_list_field(labels.data_type().clone(), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([2]), Arc::new(labels), None);
    let old = batch(vec![("order_entropy", Arc::new(lists) as ArrayRef)]);
    write_file(folder.path(), Some("2"), &old);
    let check = |records: &[EpochRecord]| {
        let found: Vec<(&str, Option<f64>)> = records[0]
            .measured
            .order_entropy
            .iter()
            .map(|one| (one.label.as_str(), one.mean))
            .collect();
        assert_eq!(found, [("tissue", Some(1.5)), ("donor", None)]);
    };
    check(&read(folder.path()).unwrap());
    let new = fixture::epoch("native", (64, 16), 0.5);
    append(folder.path(), std::slice::from_ref(&new)).unwrap();
    let both = read(folder.path()).unwrap();
    check(&both);
    assert_eq!(both[1], new);
}

/// Results of all versions before, as they are in this repository.
#[test]
fn every_committed_file_of_epochs_is_read() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut folders = vec![results];
    let mut n_read = 0;
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
        match read(&folder) {
            Ok(records) => {
                assert!(!records.is_empty(), "{}", folder.display());
                n_read += 1;
            }
            // One is of another program.
            Err(Error::NoEpochs { .. } | Error::ForeignEpochs { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(n_read > 0);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(EPOCHS_FILE), "elapsed,n_rows\n1.5,2\n").unwrap();
    check_refused(&folder, "not a readable Parquet file");

    let foreign = batch(vec![("elapsed", Arc::new(Float64Array::from(vec![1.5])) as ArrayRef)]);
    write_file(folder.path(), None, &foreign);
    check_refused(&folder, "not written by this program");

    write_file(folder.path(), Some("4"), &foreign);
    check_refused(&folder, "record version 4");

    let text = batch(vec![("elapsed", Arc::new(StringArray::from(vec!["fast"])) as ArrayRef)]);
    write_file(folder.path(), Some("1"), &text);
    check_refused(&folder, "column elapsed");
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let folder = TempDir::new().unwrap();
    append(folder.path(), &fixture::grid()).unwrap();
    let path = folder.path().join(EPOCHS_FILE);
    let whole = fs::read(&path).unwrap();
    for n_bytes in [0, 4, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..n_bytes]).unwrap();
        check_refused(&folder, "not a readable Parquet file");
    }
}

#[test]
fn a_status_that_is_none_is_refused_with_its_name() {
    let folder = TempDir::new().unwrap();
    let odd = batch(vec![("status", Arc::new(StringArray::from(vec!["splendid"])) as ArrayRef)]);
    write_file(folder.path(), Some("1"), &odd);
    let text = read(folder.path()).unwrap_err().to_string();
    assert!(text.contains("splendid") && text.contains("status"), "{text}");
}

#[test]
fn what_a_killed_writer_left_is_passed_over_and_swept_away() {
    let folder = TempDir::new().unwrap();
    append(folder.path(), &fixture::grid()).unwrap();
    let partial = folder.path().join("epochs.parquet.partial");
    fs::write(&partial, b"PAR1 and then nothing").unwrap();
    assert_eq!(read(folder.path()).unwrap(), fixture::grid());
    append(folder.path(), &[]).unwrap();
    assert!(!partial.exists());
    assert_eq!(read(folder.path()).unwrap(), fixture::grid());
}

#[test]
fn a_file_in_place_of_the_folder_is_named() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("results");
    fs::write(&folder, "mine").unwrap();
    for error in
        [check_folder(&folder).unwrap_err(), append(&folder, &fixture::grid()).unwrap_err()]
    {
        assert!(error.to_string().starts_with("cannot create the results folder"), "{error}");
        assert!(error.to_string().contains(&folder.display().to_string()), "{error}");
    }
    assert_eq!(fs::read_to_string(&folder).unwrap(), "mine");
}

#[test]
fn a_new_folder_is_ready_and_empty() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("results/2026/run");
    check_folder(&folder).unwrap();
    assert_eq!(read(&folder).unwrap(), []);
    let nothing = read(outer.path()).unwrap_err().to_string();
    assert!(nothing.contains("no epochs"), "{nothing}");
}

#[test]
fn a_point_is_named_by_its_settings_but_the_seed() {
    let point = fixture::epoch("native", (64, 1024), 0.5).point;
    let id = "native 64x1024 b1024 dense shuffled libtiledb warm";
    let further = "layer=raw measurement=RNA prefetch_blocks=1";
    assert_eq!(point.id(), format!("{id} {further}"));
    assert_eq!(GridPoint { seed: 1, ..point.clone() }.id(), point.id());
    let settings = point.settings.clone().with("n_threads", 2);
    let limited = GridPoint { max_batches: Some(9), settings, ..point };
    let further = "layer=raw measurement=RNA n_threads=2 prefetch_blocks=1";
    assert_eq!(limited.id(), format!("{id} batches=9 {further}"));
    let ours = GridPoint { loader: Some(OWN_LOADER.to_owned()), ..limited.clone() };
    assert_eq!(ours.id(), limited.id(), "files from before there were peers hold ours");
    let peers = GridPoint {
        loader: Some("tiledbsoma-ml".to_owned()),
        consumer: Some("fixed:5".to_owned()),
        ..limited
    };
    assert_eq!(peers.id(), format!("{id} tiledbsoma-ml batches=9 fixed:5 {further}"));
}

#[test]
fn settings_of_before_come_from_their_columns() {
    let folder = TempDir::new().unwrap();
    let old = batch(vec![
        ("transform", Arc::new(StringArray::from(vec![Some("log1p"), None])) as ArrayRef),
        ("prefetch_blocks", Arc::new(UInt64Array::from(vec![5, 0])) as ArrayRef),
        ("io_limit", Arc::new(UInt64Array::from(vec![Some(9000), None])) as ArrayRef),
        ("memory_limit", Arc::new(UInt64Array::from(vec![None, Some(64)])) as ArrayRef),
        ("drop_last", Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef),
    ]);
    write_file(folder.path(), Some("2"), &old);
    let new = fixture::epoch("native", (64, 16), 0.5);
    append(folder.path(), std::slice::from_ref(&new)).unwrap();
    let settings: Vec<Settings> =
        read(folder.path()).unwrap().into_iter().map(|record| record.point.settings).collect();
    let first = Settings::default()
        .with("transform", "log1p")
        .with("prefetch_blocks", 5)
        .with_rate(IO_LIMIT, Some(9000))
        .with("drop_last", true);
    let second = Settings::default().with_bytes("memory_limit", Some(64));
    assert_eq!(settings, [first, second, new.point.settings.clone()]);
    // Settings at their usual values are left out, as in new rows.
    let mut old = new.point.clone();
    let columns = ["read_threads", "prefetch_batches"];
    let columns = columns.map(|name| (name, Arc::new(UInt64Array::from(vec![1])) as ArrayRef));
    add_columns_of_before(&batch(columns.to_vec()), std::slice::from_mut(&mut old)).unwrap();
    assert_eq!(old.id(), new.point.id());
    let odd = batch(vec![("slots", Arc::new(StringArray::from(vec!["many"])) as ArrayRef)]);
    write_file(folder.path(), Some("2"), &odd);
    assert!(read(folder.path()).unwrap_err().to_string().contains("slots"));
}
