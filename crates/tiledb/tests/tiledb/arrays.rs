//! Arrays, groups and their parts, created and read back through libtiledb.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Comparison, Condition, Config, Context, Datatype,
    Dimension, Enumeration, EnumerationValues, Evolution, Filter, FragmentInfo, Group, Layout,
    MetadataValue, ObjectType, ReadQuery, Schema, Vfs, WriteColumn, WriteOrder, WriteQuery,
};

fn context() -> Context {
    Context::new(&Config::new()).unwrap()
}

fn uri(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

fn dimension(name: &str, end: i128, filters: Vec<Filter>) -> Dimension {
    Dimension {
        name: name.into(),
        datatype: Datatype::Int64,
        domain: Some((0, end)),
        tile_extent: Some(16),
        filters,
    }
}

fn matrix(allows_duplicates: bool) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![
            dimension("row", 999, vec![Filter::Zstd(9)]),
            dimension("column", 99, vec![Filter::ByteShuffle, Filter::Zstd(9)]),
        ],
        attributes: vec![Attribute {
            filters: vec![Filter::ByteShuffle, Filter::Zstd(5)],
            ..Attribute::new("value", Datatype::Float32)
        }],
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: 64,
        allows_duplicates,
        offsets_filters: vec![Filter::Zstd(-1)],
        coords_filters: vec![Filter::Zstd(-1)],
        validity_filters: vec![Filter::Rle],
        current_domain: Some(vec![(0, 499), (0, 49)]),
        enumerations: Vec::new(),
    }
}

/// Writes the value `row + column / 100` for every row and every seventh column.
fn fill(context: &Context, at: &str, rows: std::ops::Range<i64>, timestamp: Option<u64>) -> usize {
    let cells: Vec<(i64, i64)> =
        rows.flat_map(|row| (0..50).step_by(7).map(move |column| (row, column))).collect();
    let (rows, columns): (Vec<_>, Vec<_>) = cells.iter().copied().unzip();
    let values: Vec<f32> =
        cells.iter().map(|(row, column)| *row as f32 + *column as f32 / 100.0).collect();
    let array = Arc::new(Array::open_for_writing(context, at, timestamp).unwrap());
    let mut write = WriteQuery::new(&array, WriteOrder::Unordered).unwrap();
    write
        .submit(&[
            WriteColumn::fixed("row", &rows),
            WriteColumn::fixed("column", &columns),
            WriteColumn::fixed("value", &values),
        ])
        .unwrap();
    write.finish().unwrap();
    cells.len()
}

fn read(
    array: &Array,
    layout: Layout,
    ranges: &[&[(i64, i64)]],
    buffer_bytes: usize,
) -> Vec<(i64, i64, f32)> {
    let mut query =
        ReadQuery::new(array, layout, ranges, &["row", "column", "value"], buffer_bytes).unwrap();
    let mut cells = Vec::new();
    while let Some(piece) = query.next_piece().unwrap() {
        let rows = piece.column(0).values::<i64>().unwrap();
        let columns = piece.column(1).values::<i64>().unwrap();
        let values = piece.column(2).values::<f32>().unwrap();
        assert_eq!(rows.len(), piece.n_cells());
        cells.extend(
            rows.iter()
                .zip(columns)
                .zip(values)
                .map(|((row, column), value)| (*row, *column, *value)),
        );
    }
    cells.sort_by_key(|(row, column, _)| (*row, *column));
    cells
}

#[test]
fn a_matrix_is_written_and_read_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    assert_eq!(context.object_type(&at).unwrap(), Some(ObjectType::Array));
    let n_cells = fill(&context, &at, 0..200, None);

    let array = Array::open(&context, &at, None).unwrap();
    assert_eq!(array.schema(), &matrix(true), "the schema reads back as it was given");
    assert_eq!(array.non_empty_domain().unwrap(), Some(vec![(0, 199), (0, 49)]));
    for buffer_bytes in [8, 1000, 1 << 20] {
        let all = read(&array, Layout::Unordered, &[], buffer_bytes);
        assert_eq!(all.len(), n_cells, "with buffers of {buffer_bytes} bytes");
        assert!(
            all.iter().all(|(row, column, value)| *value == *row as f32 + *column as f32 / 100.0)
        );
    }
    let some = read(&array, Layout::RowMajor, &[&[(3, 4), (198, 205)], &[(7, 14)]], 1 << 16);
    let expected =
        [3, 4, 198, 199].iter().flat_map(|row| [(*row, 7), (*row, 14)]).collect::<Vec<_>>();
    assert_eq!(some.iter().map(|(row, column, _)| (*row, *column)).collect::<Vec<_>>(), expected);
    assert!(context.bytes_read().unwrap() > 0, "libtiledb counts the bytes that it reads");
}

#[test]
fn fragments_timestamps_and_consolidation() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    let dimensions = matrix(true).dimensions;
    let early = fill(&context, &at, 0..10, Some(1000));
    let late = fill(&context, &at, 10..30, Some(1010));

    let fragments = FragmentInfo::load(&context, &at).unwrap().fragments(&dimensions).unwrap();
    assert_eq!(
        fragments.iter().map(|fragment| fragment.n_cells as usize).collect::<Vec<_>>(),
        [early, late]
    );
    assert_eq!(fragments[1].non_empty_domain, [(10, 29), (0, 49)]);
    assert_eq!(fragments[1].timestamps, (1010, 1010));

    let before = Array::open(&context, &at, Some(1005)).unwrap();
    assert_eq!(read(&before, Layout::Unordered, &[], 1 << 16).len(), early);

    let upkeep = context
        .with(&[
            ("sm.consolidation.mode", "fragments".into()),
            ("sm.consolidation.timestamp_end", "1100".into()),
            ("sm.vacuum.mode", "fragments".into()),
            ("sm.vacuum.timestamp_end", "1100".into()),
        ])
        .unwrap();
    Array::consolidate(&upkeep, &at).unwrap();
    Array::vacuum(&upkeep, &at).unwrap();
    let info = FragmentInfo::load(&context, &at).unwrap();
    let fragments = info.fragments(&dimensions).unwrap();
    assert_eq!(fragments.len(), 1);
    assert_eq!(fragments[0].n_cells as usize, early + late);
    assert!(fragments[0].n_tiles > 1);
}

#[test]
fn columns_of_every_kind_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "frame"));
    let nullable = |name, datatype| Attribute { nullable: true, ..Attribute::new(name, datatype) };
    let schema = Schema {
        dimensions: vec![dimension("id", 999, vec![Filter::DoubleDelta(None), Filter::Zstd(19)])],
        attributes: vec![
            Attribute::new("text", Datatype::StringUtf8),
            nullable("maybe_text", Datatype::StringUtf8),
            nullable("maybe_number", Datatype::Int16),
            Attribute {
                enumeration: Some("kinds".into()),
                ..Attribute::new("kind", Datatype::Int8)
            },
            Attribute::new("flag", Datatype::Bool),
        ],
        offsets_filters: vec![
            Filter::DoubleDelta(None),
            Filter::BitWidthReduction,
            Filter::Zstd(9),
        ],
        current_domain: None,
        enumerations: vec![
            Enumeration::of_strings("kinds", ["T cell", "", "B cell"]),
            Enumeration {
                name: "numbers".into(),
                datatype: Datatype::Int32,
                ordered: true,
                values: EnumerationValues::Fixed(
                    [7_i32, 9].iter().flat_map(|value| value.to_le_bytes()).collect(),
                ),
            },
        ],
        ..matrix(false)
    };
    Array::create(&context, &at, &schema).unwrap();
    let array = Arc::new(Array::open_for_writing(&context, &at, None).unwrap());
    let mut write = WriteQuery::new(&array, WriteOrder::Global).unwrap();
    for start in [0_i64, 2] {
        write
            .submit(&[
                WriteColumn::fixed("id", &[start, start + 1]),
                WriteColumn::var_sized("text", "aβ".as_bytes(), &[0, 3]),
                WriteColumn::var_sized("maybe_text", b"x", &[0, 1]).with_validity(&[1, 0]),
                WriteColumn::fixed::<i16>("maybe_number", &[-5, 0]).with_validity(&[1, 0]),
                WriteColumn::fixed::<i8>("kind", &[2, 0]),
                WriteColumn::fixed::<u8>("flag", &[1, 0]),
            ])
            .unwrap();
    }
    write.finish().unwrap();

    let array = Array::open(&context, &at, None).unwrap();
    let kinds =
        array.enumeration(array.schema().attributes[3].enumeration.as_deref().unwrap()).unwrap();
    assert_eq!(kinds.strings(), Some(vec!["T cell", "", "B cell"]));
    assert_eq!((kinds.len(), kinds.ordered), (3, false));
    let numbers = array.enumeration("numbers").unwrap();
    assert_eq!((numbers.len(), numbers.ordered, numbers.strings()), (2, true, None));
    let names = ["id", "text", "maybe_text", "maybe_number", "kind", "flag"];
    let mut query = ReadQuery::new(&array, Layout::RowMajor, &[], &names, 1 << 12).unwrap();
    let piece = query.next_piece().unwrap().unwrap();
    assert_eq!(piece.column(0).values::<i64>().unwrap(), [0, 1, 2, 3]);
    assert_eq!(piece.column(1).bytes(), "aβaβ".as_bytes());
    assert_eq!(piece.column(1).offsets().unwrap(), [0, 3, 3, 6]);
    assert_eq!(piece.column(2).validity().unwrap(), [1, 0, 1, 0]);
    assert_eq!(piece.column(3).validity().unwrap(), [1, 0, 1, 0]);
    assert_eq!(piece.column(3).values::<i16>().unwrap()[0], -5);
    assert_eq!(piece.column(4).values::<i8>().unwrap(), [2, 0, 2, 0]);
    assert_eq!(piece.column(5).values::<u8>().unwrap(), [1, 0, 1, 0]);
    let message = piece.column(4).values::<f32>().unwrap_err().to_string();
    assert!(message.contains("kind") && message.contains("Int8"), "{message}");
}

#[test]
fn groups_have_members_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "group"));
    Group::create(&context, &at).unwrap();
    Array::create(&context, &format!("{at}/matrix"), &matrix(false)).unwrap();
    Group::create(&context, &format!("{at}/inner")).unwrap();
    let group = Group::open_for_writing(&context, &at).unwrap();
    group.add_relative("matrix").unwrap();
    group.add_relative("inner").unwrap();
    let values = [
        ("empty", "".into()),
        ("ends in zeros", "a\0\0".into()),
        (
            "four",
            MetadataValue::Bytes {
                datatype: Datatype::UInt16,
                n_values: 2,
                bytes: vec![1, 2, 3, 4],
            },
        ),
        ("number", MetadataValue::from(42)),
        ("ratio", MetadataValue::Float(0.5)),
        ("word", "β".into()),
        ("zero", "\0".into()),
    ];
    for (key, value) in &values {
        group.put_metadata(key, value).unwrap();
    }
    group.close().unwrap();

    let group = Group::open(&context, &at, None).unwrap();
    let mut members = group.members().unwrap();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        members.iter().map(|m| (m.name.as_str(), m.kind)).collect::<Vec<_>>(),
        [("inner", Some(ObjectType::Group)), ("matrix", Some(ObjectType::Array))]
    );
    assert!(members[1].uri.ends_with("group/matrix"), "{}", members[1].uri);
    let expected: Vec<_> =
        values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    assert_eq!(group.metadata().unwrap(), expected);
    assert!(
        Group::open(&context, &at, Some(1)).unwrap().members().unwrap().is_empty(),
        "nothing was added before 1970"
    );

    let array = Array::open_for_writing(&context, &members[1].uri, None).unwrap();
    array.put_metadata("key", &"value".into()).unwrap();
    array.close().unwrap();
    let array = Array::open(&context, &members[1].uri, None).unwrap();
    assert_eq!(array.metadata().unwrap(), [("key".to_owned(), MetadataValue::from("value"))]);
}

#[test]
fn files_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = Vfs::new(&context()).unwrap();
    let at = uri(folder.path(), "a");
    vfs.create_dir(&at).unwrap();
    std::fs::write(folder.path().join("a/b"), "12345").unwrap();
    assert!(vfs.is_dir(&at).unwrap() && !vfs.is_file(&at).unwrap());
    let listed = vfs.ls(&at).unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].ends_with("a/b"), "{listed:?}");
    vfs.remove_dir(&at).unwrap();
    assert!(!vfs.is_dir(&at).unwrap());
}

#[test]
fn errors_say_what_was_tried_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    let message = Array::open(&context, &at, None).unwrap_err().to_string();
    assert!(
        message.starts_with("opening an array failed for ") && message.contains(&at),
        "{message}"
    );
    Array::create(&context, &at, &matrix(false)).unwrap();
    let message = Array::create(&context, &at, &matrix(false)).unwrap_err().to_string();
    assert!(message.contains("already exists"), "{message}");

    let array = Array::open(&context, &at, None).unwrap();
    let message =
        ReadQuery::new(&array, Layout::Unordered, &[], &["wrong"], 64).unwrap_err().to_string();
    assert!(message.contains("wrong") && message.contains("row, column, value"), "{message}");
    assert!(
        ReadQuery::new(&array, Layout::Unordered, &[&[(600, 1000)]], &["row"], 64).is_err(),
        "outside the domain"
    );

    let array = Arc::new(Array::open_for_writing(&context, &at, None).unwrap());
    let mut write = WriteQuery::new(&array, WriteOrder::Unordered).unwrap();
    let columns = [WriteColumn::fixed("row", &[1_i64, 2]), WriteColumn::fixed("column", &[1_i64])];
    assert!(
        write
            .submit(&columns)
            .unwrap_err()
            .to_string()
            .contains("1 cells, the columns before have 2")
    );
    let mut write = WriteQuery::new(&array, WriteOrder::Unordered).unwrap();
    let columns = [WriteColumn::fixed("row", &[1_i64]), WriteColumn::fixed("value", &[1_i32])];
    assert!(write.submit(&columns).unwrap_err().to_string().contains("not of type Float32"));
}

#[test]
fn a_context_serves_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    fill(&context, &at, 0..100, None);
    let array = Array::open(&context, &at, None).unwrap();
    std::thread::scope(|scope| {
        for row in 0..8 {
            let array = &array;
            scope.spawn(move || {
                let cells = read(array, Layout::Unordered, &[&[(row, row + 10)]], 256);
                assert_eq!(cells.len(), 11 * 8);
            });
        }
    });
}

#[test]
fn an_array_that_the_reference_implementation_wrote() {
    let real = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/visium-2898x19465/soma/ms/RNA/X/raw");
    let array = Array::open(&context(), real.to_str().unwrap(), None).unwrap();
    assert_eq!(array.schema().current_domain, Some(vec![(0, 2897), (0, 19464)]));
    let mut query =
        ReadQuery::new(&array, Layout::Unordered, &[], &["soma_data"], 1 << 22).unwrap();
    let (mut n_cells, mut sum) = (0, 0.0);
    while let Some(piece) = query.next_piece().unwrap() {
        n_cells += piece.n_cells();
        sum += piece
            .column(0)
            .values::<f32>()
            .unwrap()
            .iter()
            .map(|value| f64::from(*value))
            .sum::<f64>();
    }
    assert_eq!((n_cells, sum), (1_069_459, 3_085_005.0));
}

/// The names of the fragments of the array at `at`, oldest first.
fn fragment_names(context: &Context, at: &str) -> Vec<String> {
    let dimensions = Array::open(context, at, None).unwrap().schema().dimensions.clone();
    let fragments = FragmentInfo::load(context, at).unwrap().fragments(&dimensions).unwrap();
    let name = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();
    fragments.iter().map(|fragment| name(&fragment.uri)).collect()
}

#[test]
fn named_fragments_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    let n_cells: usize = (1..4).map(|time| fill(&context, &at, 0..10, Some(time))).sum();
    let names = fragment_names(&context, &at);
    Array::consolidate_fragments(&context, &at, &[&names[0], &names[2]]).unwrap();
    let merged = fragment_names(&context, &at);
    assert_eq!(merged.len(), 2);
    assert!(merged.contains(&names[1]));
    let array = Array::open(&context, &at, None).unwrap();
    assert_eq!(read(&array, Layout::Unordered, &[], 1 << 16).len(), n_cells);
    let unknown = Array::consolidate_fragments(&context, &at, &["__1_1_no", "__2_2_no"]);
    assert!(unknown.unwrap_err().to_string().contains("required fragments"));
    let window = [
        ("sm.consolidation.timestamp_start", "1".to_owned()),
        ("sm.consolidation.timestamp_end", "2".to_owned()),
    ];
    // The merged fragment extends to time 3.
    Array::consolidate_with(&context, &at, &window).unwrap();
    assert_eq!(fragment_names(&context, &at), merged);
}

#[test]
fn a_schema_evolves_from_a_time_on() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    let later = i64::MAX as u64;
    let evolution = Evolution {
        added: vec![Attribute { nullable: true, ..Attribute::new("more", Datatype::Int16) }],
        dropped: vec!["value".to_owned()],
        current_domain: Some(vec![(0, 599), (0, 49)]),
        timestamp: Some(later),
    };
    Array::evolve(&context, &at, &evolution).unwrap();
    let schema = |time| Array::open(&context, &at, time).unwrap().schema().clone();
    assert_eq!(schema(Some(later - 1)), matrix(true));
    let evolved = schema(Some(later));
    assert_eq!(evolved.attributes.iter().map(|one| &one.name).collect::<Vec<_>>(), ["more"]);
    assert_eq!(evolved.current_domain, evolution.current_domain);
    let smaller = Evolution { current_domain: Some(vec![(0, 5), (0, 5)]), ..Evolution::default() };
    assert!(Array::evolve(&context, &at, &smaller).is_err());
    let missing = Evolution { dropped: vec!["none".to_owned()], ..Evolution::default() };
    assert!(Array::evolve(&context, &at, &missing).is_err());
}

#[test]
fn cells_are_deleted_from_a_time_on() {
    let folder = tempfile::tempdir().unwrap();
    let (context, at) = (context(), uri(folder.path(), "matrix"));
    Array::create(&context, &at, &matrix(true)).unwrap();
    fill(&context, &at, 0..10, Some(1));
    let rows = |time| {
        let array = Array::open(&context, &at, time).unwrap();
        let cells = read(&array, Layout::Unordered, &[], 1 << 16);
        cells.iter().map(|cell| cell.0).collect::<std::collections::BTreeSet<_>>()
    };
    let condition = Condition::new("row", Comparison::GreaterOrEqual, 4_i64);
    Array::delete(&context, &at, Some(2), &condition).unwrap();
    assert_eq!(rows(Some(1)), (0..10).collect());
    assert_eq!(rows(Some(2)), (0..4).collect());
    // A value of another type is rejected before libtiledb reads beyond it.
    let narrow = Condition::new("row", Comparison::Equal, 4_i8);
    assert!(Array::delete(&context, &at, None, &narrow).is_err());
    let unknown = Condition::new("no_column", Comparison::Equal, 4_i64);
    assert!(Array::delete(&context, &at, None, &unknown).is_err());
}
