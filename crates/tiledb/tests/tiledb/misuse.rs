//! Mistakes that callers can make, and use from several threads, do no harm.

use std::path::Path;
use std::sync::{Arc, Barrier};

use tempfile::TempDir;
use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Config, Context, Datatype, Dimension, Enumeration,
    Error, Filter, FragmentInfo, Layout, ReadQuery, Schema, WriteColumn, WriteOrder, WriteQuery,
};

fn schema(attributes: Vec<Attribute>) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![Dimension {
            name: "id".into(),
            datatype: Datatype::Int64,
            domain: Some((0, 9999)),
            tile_extent: Some(100),
            filters: vec![Filter::None],
        }],
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: 100,
        allows_duplicates: true,
        offsets_filters: vec![Filter::None],
        coords_filters: vec![Filter::None],
        validity_filters: vec![Filter::None],
        current_domain: None,
        enumerations: Vec::new(),
    }
}

/// An array in its own folder, which is removed with it.
struct Place {
    folder: TempDir,
    context: Context,
    uri: String,
}

impl Place {
    fn with(schema: &Schema) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let context = Context::new(&Config::new()).unwrap();
        let uri = folder.path().join("array").to_str().unwrap().to_owned();
        Array::create(&context, &uri, schema).unwrap();
        Self { folder, context, uri }
    }

    fn with_attributes(attributes: Vec<Attribute>) -> Self {
        Self::with(&schema(attributes))
    }

    fn open(&self) -> Array {
        Array::open(&self.context, &self.uri, None).unwrap()
    }

    fn write(&self, order: WriteOrder) -> WriteQuery {
        let array = Array::open_for_writing(&self.context, &self.uri, None).unwrap();
        WriteQuery::new(&Arc::new(array), order).unwrap()
    }

    fn fragment_cells(&self) -> Vec<u64> {
        let info = FragmentInfo::load(&self.context, &self.uri).unwrap();
        let fragments = info.fragments(self.open().schema().dimensions.as_slice()).unwrap();
        fragments.iter().map(|fragment| fragment.n_cells).collect()
    }
}

fn ids(values: &[i64]) -> WriteColumn<'_> {
    WriteColumn::fixed("id", values)
}

fn values(values: &[i64]) -> WriteColumn<'_> {
    WriteColumn::fixed("value", values)
}

fn is_query_error(result: Result<(), Error>, text: &str) -> bool {
    matches!(result, Err(error @ Error::Query { .. }) if error.to_string().contains(text))
}

#[test]
fn the_first_look_at_an_array_may_come_from_many_threads() {
    let mut schema = schema(vec![Attribute {
        enumeration: Some("kinds".into()),
        ..Attribute::new("value", Datatype::Int64)
    }]);
    schema.enumerations = vec![Enumeration::of_strings("kinds", ["a", "b"])];
    let place = Place::with(&schema);
    let array = Array::open_for_writing(&place.context, &place.uri, None).unwrap();
    for key_idx in 0..100 {
        array.put_metadata(&format!("key{key_idx}"), &(i64::from(key_idx)).into()).unwrap();
    }
    array.close().unwrap();
    let mut write = place.write(WriteOrder::Unordered);
    write.submit(&[ids(&[3, 5]), values(&[0, 1])]).unwrap();
    write.finish().unwrap();

    for _ in 0..200 {
        let (array, barrier) = (place.open(), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    assert_eq!(array.metadata().unwrap().len(), 100);
                    assert_eq!(array.non_empty_domain().unwrap(), Some(vec![(3, 5)]));
                    assert_eq!(array.enumeration("kinds").unwrap().strings(), Some(vec!["a", "b"]));
                });
            }
        });
    }
}

#[test]
fn a_write_needs_every_column_once() {
    let place = Place::with_attributes(vec![Attribute::new("value", Datatype::Int64)]);
    for (columns, text) in [
        (vec![ids(&[4, 5])], "column value of"),
        (vec![values(&[4, 5])], "column id of"),
        (vec![], "column id of"),
        (vec![ids(&[4]), values(&[4]), values(&[5])], "given 2 times"),
    ] {
        let mut write = place.write(WriteOrder::Global);
        write.submit(&[ids(&[0, 1]), values(&[0, 1])]).unwrap();
        let message = write.submit(&columns).unwrap_err().to_string();
        assert!(message.contains(text), "{message}");
        assert!(is_query_error(write.submit(&[ids(&[4]), values(&[4])]), "earlier submit"));
        assert!(is_query_error(write.finish(), "earlier submit"));
    }
    assert!(place.fragment_cells().is_empty(), "a write that failed leaves no cells");
}

#[test]
fn an_unordered_write_takes_one_submit() {
    let place = Place::with_attributes(vec![Attribute::new("value", Datatype::Int64)]);
    let mut write = place.write(WriteOrder::Unordered);
    write.submit(&[ids(&[]), values(&[])]).unwrap();
    write.submit(&[ids(&[7, 1]), values(&[0, 1])]).unwrap();
    assert!(is_query_error(write.submit(&[ids(&[2]), values(&[2])]), "takes one submit"));
    write.finish().unwrap();
    assert_eq!(place.fragment_cells(), [2], "the submit before is as good as it was");
    place.write(WriteOrder::Unordered).finish().unwrap();
    assert_eq!(place.fragment_cells(), [2], "a write of nothing makes no fragment");
}

#[test]
fn a_write_that_libtiledb_refuses_cannot_be_finished() {
    let place = Place::with_attributes(vec![Attribute::new("value", Datatype::Int64)]);
    for order in [WriteOrder::Unordered, WriteOrder::Global] {
        let mut write = place.write(order);
        let outside = write.submit(&[ids(&[10_000]), values(&[0])]);
        assert!(matches!(outside, Err(Error::Call { .. })), "{outside:?}");
        assert!(is_query_error(write.finish(), "earlier submit"));
    }
    assert!(place.fragment_cells().is_empty());
}

#[test]
fn a_part_of_a_cell_is_refused() {
    let pair = Attribute { values_per_cell: 2, ..Attribute::new("pair", Datatype::Int32) };
    let place = Place::with_attributes(vec![pair]);
    let mut write = place.write(WriteOrder::Unordered);
    let columns = [ids(&[0, 1]), WriteColumn::fixed("pair", &[1_i32, 2, 3, 4, 5])];
    let message = write.submit(&columns).unwrap_err().to_string();
    assert!(
        message.contains("column pair of") && message.contains("cells of 8 bytes"),
        "{message}"
    );
}

fn write_texts(place: &Place) {
    let mut write = place.write(WriteOrder::Unordered);
    let texts = WriteColumn::var_sized("text", b"abba text longer than eight bytes", &[0, 1, 3]);
    write.submit(&[ids(&[0, 1, 2]), texts]).unwrap();
    write.finish().unwrap();
}

fn read_texts(context: &Context, uri: &str, buffer_bytes: usize) -> Vec<String> {
    let array = Array::open(context, uri, None).unwrap();
    let mut query =
        ReadQuery::new(&array, Layout::RowMajor, &[], &["text", "id"], buffer_bytes).unwrap();
    let mut texts = Vec::new();
    while let Some(piece) = query.next_piece().unwrap() {
        let column = piece.column(0);
        let starts = column.offsets().unwrap();
        assert_eq!(starts.len(), piece.column(1).values::<i64>().unwrap().len());
        let ends = starts.iter().skip(1).copied().chain([column.bytes().len() as u64]);
        texts.extend(starts.iter().zip(ends).map(|(start, end)| {
            String::from_utf8(column.bytes()[*start as usize..end as usize].to_vec()).unwrap()
        }));
    }
    texts
}

#[test]
fn parameters_of_offsets_do_not_change_what_is_read() {
    let place = Place::with_attributes(vec![Attribute::new("text", Datatype::StringUtf8)]);
    write_texts(&place);
    for (name, value) in [("extra_element", "true"), ("bitsize", "32"), ("mode", "elements")] {
        let config = Config::from([(format!("sm.var_offsets.{name}"), value.to_owned())]);
        let context = Context::new(&config).unwrap();
        let texts = read_texts(&context, &place.uri, 1 << 12);
        assert_eq!(texts, ["a", "bb", "a text longer than eight bytes"], "with {name}");
    }
}

#[test]
fn a_read_may_begin_with_no_buffer() {
    let place = Place::with_attributes(vec![Attribute::new("text", Datatype::StringUtf8)]);
    write_texts(&place);
    let texts = read_texts(&place.context, &place.uri, 0);
    assert_eq!(texts, ["a", "bb", "a text longer than eight bytes"]);

    let five = Attribute { values_per_cell: 5, ..Attribute::new("five", Datatype::Float64) };
    let place = Place::with_attributes(vec![five]);
    let written: Vec<f64> = (0..15).map(f64::from).collect();
    let mut write = place.write(WriteOrder::Unordered);
    write.submit(&[ids(&[0, 1, 2]), WriteColumn::fixed("five", &written)]).unwrap();
    write.finish().unwrap();
    let array = place.open();
    let mut query = ReadQuery::new(&array, Layout::RowMajor, &[], &["five"], 0).unwrap();
    let mut read = Vec::new();
    while let Some(piece) = query.next_piece().unwrap() {
        read.extend_from_slice(piece.column(0).values::<f64>().unwrap());
    }
    assert_eq!(read, written);
}

fn remove_data(folder: &Path) {
    for fragment in std::fs::read_dir(folder.join("array/__fragments")).unwrap() {
        std::fs::remove_file(fragment.unwrap().path().join("a0.tdb")).unwrap();
    }
}

#[test]
fn a_read_that_failed_stays_failed() {
    let place = Place::with_attributes(vec![Attribute::new("value", Datatype::Int64)]);
    let mut write = place.write(WriteOrder::Unordered);
    write.submit(&[ids(&[0, 1]), values(&[0, 1])]).unwrap();
    write.finish().unwrap();
    let array = place.open();
    let mut query = ReadQuery::new(&array, Layout::RowMajor, &[], &["value"], 64).unwrap();
    remove_data(place.folder.path());
    let first = query.next_piece().map(|piece| piece.is_some());
    assert!(matches!(first, Err(Error::Call { .. })), "{first:?}");
    assert!(is_query_error(query.next_piece().map(drop), "earlier step"));
}

#[test]
fn a_schema_reads_back_as_it_was_given() {
    let given = schema(vec![
        Attribute::new("text", Datatype::StringUtf8),
        Attribute { values_per_cell: 3, ..Attribute::new("three", Datatype::Int16) },
    ]);
    assert_eq!(Place::with(&given).open().schema(), &given);

    let mut defaults = given;
    defaults.dimensions[0].filters.clear();
    // Dimensions without filters of their own use those of coordinates.
    assert_eq!(Place::with(&defaults).open().schema().dimensions[0].filters, [Filter::None]);
    defaults.offsets_filters.clear();
    defaults.coords_filters.clear();
    defaults.validity_filters.clear();
    let place = Place::with(&defaults);
    let array = place.open();
    assert_eq!(array.schema().dimensions[0].filters, [Filter::Zstd(-1)], "libtiledb's default");
    assert_eq!(array.schema().offsets_filters, [Filter::Zstd(-1)], "libtiledb's default");
    assert_eq!(array.schema().coords_filters, [Filter::Zstd(-1)], "libtiledb's default");
    assert_eq!(array.schema().validity_filters, [Filter::Rle], "libtiledb's default");
}

#[test]
fn a_current_domain_has_bounds_for_each_dimension() {
    let place = Place::with_attributes(vec![Attribute::new("value", Datatype::Int64)]);
    for bounds in [vec![], vec![(0, 9), (0, 9)]] {
        let mut schema = schema(vec![Attribute::new("value", Datatype::Int64)]);
        schema.current_domain = Some(bounds);
        let error =
            Array::create(&place.context, &format!("{}-2", place.uri), &schema).unwrap_err();
        assert!(matches!(error, Error::Schema { .. }), "{error}");
    }
}
