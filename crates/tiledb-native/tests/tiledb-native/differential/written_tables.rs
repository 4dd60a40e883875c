//! Tables written by this crate: libtiledb reads the same cells from them as from its own, and
//! their metadata are equal.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Datatype, Dimension, Filter, Layout, ReadQuery, Schema,
    WriteColumn, WriteOrder, WriteQuery,
};
use tiledb_native::{ColumnCells, Error, TableWriter, Threads, WriteOptions, create_array};

use crate::differential::metadata::{compare, metadata};
use crate::differential::written::context;

const TIME: u64 = 7;

/// The cells of an attribute: bytes of each, and whether it is there.
type Cells = Vec<(Vec<u8>, bool)>;

#[derive(Debug, Clone)]
struct Table {
    schema: Schema,
    joinids: Vec<i64>,
    columns: Vec<Cells>,
    /// Numbers of rows per call.
    pieces: Vec<usize>,
}

/// A part of a column as it is given to a writer.
struct Given {
    bytes: Vec<u8>,
    offsets: Option<Vec<u64>>,
    validity: Option<Vec<u8>>,
}

impl Given {
    fn new(attribute: &Attribute, cells: &[(Vec<u8>, bool)]) -> Self {
        let starts = cells.iter().scan(0, |end, (bytes, _)| {
            let start = *end;
            *end += bytes.len() as u64;
            Some(start)
        });
        Self {
            bytes: cells.iter().flat_map(|(bytes, _)| bytes.clone()).collect(),
            offsets: attribute.var_sized.then(|| starts.collect()),
            validity: attribute
                .nullable
                .then(|| cells.iter().map(|(_, is_valid)| u8::from(*is_valid)).collect()),
        }
    }

    fn ours<'a>(&'a self, attribute: &'a Attribute) -> ColumnCells<'a> {
        let (name, datatype) = (attribute.name.as_str(), attribute.datatype);
        let column = match &self.offsets {
            Some(offsets) => ColumnCells::var_sized(name, datatype, &self.bytes, offsets),
            None => ColumnCells::fixed(name, datatype, &self.bytes),
        };
        match &self.validity {
            Some(validity) => column.with_validity(validity),
            None => column,
        }
    }
}

/// Values of fixed size, as libtiledb's crate takes them.
enum Typed {
    I8(Vec<i8>),
    U8(Vec<u8>),
    I16(Vec<i16>),
    U16(Vec<u16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Typed {
    fn parse(datatype: Datatype, bytes: &[u8]) -> Self {
        macro_rules! of {
            ($type:ty) => {
                bytes.as_chunks().0.iter().map(|bytes| <$type>::from_le_bytes(*bytes)).collect()
            };
        }
        match datatype {
            Datatype::Int8 => Self::I8(of!(i8)),
            Datatype::Int16 => Self::I16(of!(i16)),
            Datatype::UInt16 => Self::U16(of!(u16)),
            Datatype::Int32 => Self::I32(of!(i32)),
            Datatype::UInt32 => Self::U32(of!(u32)),
            Datatype::Int64
            | Datatype::DateTimeSecond
            | Datatype::DateTimeMillisecond
            | Datatype::DateTimeMicrosecond
            | Datatype::DateTimeNanosecond => Self::I64(of!(i64)),
            Datatype::UInt64 => Self::U64(of!(u64)),
            Datatype::Float32 => Self::F32(of!(f32)),
            Datatype::Float64 => Self::F64(of!(f64)),
            _ => Self::U8(bytes.to_vec()),
        }
    }

    fn column<'a>(&'a self, name: &'a str) -> WriteColumn<'a> {
        match self {
            Self::I8(values) => WriteColumn::fixed(name, values),
            Self::U8(values) => WriteColumn::fixed(name, values),
            Self::I16(values) => WriteColumn::fixed(name, values),
            Self::U16(values) => WriteColumn::fixed(name, values),
            Self::I32(values) => WriteColumn::fixed(name, values),
            Self::U32(values) => WriteColumn::fixed(name, values),
            Self::I64(values) => WriteColumn::fixed(name, values),
            Self::U64(values) => WriteColumn::fixed(name, values),
            Self::F32(values) => WriteColumn::fixed(name, values),
            Self::F64(values) => WriteColumn::fixed(name, values),
        }
    }
}

impl Table {
    /// Writes it with this crate, in pieces.
    fn write(&self, at: &Path) {
        create_array(at, &self.schema, 1).unwrap();
        let mut writer =
            TableWriter::create(at, &WriteOptions::new(Threads::Own(2), TIME)).unwrap();
        let mut start = 0;
        for n in self.pieces.iter().cycle() {
            let end = self.joinids.len().min(start + n);
            let given: Vec<Given> = self.given(start..end);
            let columns = self.schema.attributes.iter().zip(&given);
            let columns: Vec<_> = columns.map(|(attribute, given)| given.ours(attribute)).collect();
            writer.write(&self.joinids[start..end], &columns).unwrap();
            start = end;
            if start == self.joinids.len() {
                break;
            }
        }
        assert_eq!(writer.finish().unwrap().n_cells, self.joinids.len() as u64);
    }

    fn given(&self, rows: std::ops::Range<usize>) -> Vec<Given> {
        let columns = self.schema.attributes.iter().zip(&self.columns);
        columns.map(|(attribute, cells)| Given::new(attribute, &cells[rows.clone()])).collect()
    }

    /// Writes it with libtiledb.
    fn write_with_libtiledb(&self, at: &Path) {
        let uri = at.to_str().unwrap();
        let context = context();
        Array::create(&context, uri, &self.schema).unwrap();
        let array = Arc::new(Array::open_for_writing(&context, uri, Some(TIME)).unwrap());
        let mut query = WriteQuery::new(&array, WriteOrder::Global).unwrap();
        let given = self.given(0..self.joinids.len());
        let typed: Vec<Typed> = self
            .schema
            .attributes
            .iter()
            .zip(&given)
            .map(|(attribute, given)| Typed::parse(attribute.datatype, &given.bytes))
            .collect();
        let mut columns = vec![WriteColumn::fixed("soma_joinid", &self.joinids)];
        for ((attribute, given), typed) in self.schema.attributes.iter().zip(&given).zip(&typed) {
            let column = match &given.offsets {
                Some(offsets) => WriteColumn::var_sized(&attribute.name, &given.bytes, offsets),
                None => typed.column(&attribute.name),
            };
            columns.push(match &given.validity {
                Some(validity) => column.with_validity(validity),
                None => column,
            });
        }
        query.submit(&columns).unwrap();
        query.finish().unwrap();
    }

    /// The rows as libtiledb reads them: joinids, then the cells of each attribute.
    fn read_with_libtiledb(&self, at: &Path) -> (Vec<i64>, Vec<Cells>) {
        let array = Array::open(&context(), at.to_str().unwrap(), None).unwrap();
        let names: Vec<&str> = ["soma_joinid"]
            .into_iter()
            .chain(self.schema.attributes.iter().map(|attribute| attribute.name.as_str()))
            .collect();
        let mut query = ReadQuery::new(&array, Layout::Global, &[], &names, 1 << 20).unwrap();
        let (mut joinids, mut columns) = (Vec::new(), vec![Vec::new(); names.len() - 1]);
        while let Some(piece) = query.next_piece().unwrap() {
            joinids.extend_from_slice(piece.column(0).values::<i64>().unwrap());
            for (idx, attribute) in self.schema.attributes.iter().enumerate() {
                let column = piece.column(idx + 1);
                let n = piece.n_cells();
                let size = attribute.datatype.size().unwrap();
                let offsets: Vec<usize> = if attribute.var_sized {
                    column.offsets().unwrap().iter().map(|offset| *offset as usize).collect()
                } else {
                    (0..=n).map(|row| row * size).collect()
                };
                for row in 0..n {
                    let end = offsets.get(row + 1).copied().unwrap_or_else(|| column.bytes().len());
                    let is_valid = !attribute.nullable || column.validity().unwrap()[row] != 0;
                    columns[idx].push((column.bytes()[offsets[row]..end].to_vec(), is_valid));
                }
            }
        }
        (joinids, columns)
    }

    /// Writes it both ways, and compares the metadata and what libtiledb reads.
    #[track_caller]
    fn check(&self) {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
        self.write(&ours);
        self.write_with_libtiledb(&theirs);
        let (joinids, columns) = self.read_with_libtiledb(&ours);
        assert!(joinids == self.joinids);
        for ((attribute, found), written) in
            self.schema.attributes.iter().zip(&columns).zip(&self.columns)
        {
            assert!(found == written, "{attribute:?}");
        }
        let shape = (self.columns.len(), 1);
        let is_float = |idx: &usize| {
            matches!(self.schema.attributes[*idx].datatype, Datatype::Float32 | Datatype::Float64)
        };
        let floats: Vec<usize> = (0..self.columns.len()).filter(is_float).collect();
        compare(&metadata(&ours, shape), &metadata(&theirs, shape), &floats);
    }
}

fn schema(capacity: u64, attributes: Vec<Attribute>) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![Dimension {
            name: "soma_joinid".into(),
            datatype: Datatype::Int64,
            domain: Some((0, i128::from(i64::MAX) - 2049)),
            tile_extent: Some(2048),
            filters: vec![Filter::DoubleDelta(None), Filter::Zstd(19)],
        }],
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity,
        allows_duplicates: true,
        offsets_filters: vec![
            Filter::DoubleDelta(None),
            Filter::BitWidthReduction,
            Filter::Zstd(9),
        ],
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: Some(vec![(0, 1 << 40)]),
        enumerations: Vec::new(),
    }
}

const TYPES: [Datatype; 15] = [
    Datatype::StringUtf8,
    Datatype::Blob,
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::Int32,
    Datatype::UInt32,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Bool,
    Datatype::DateTimeSecond,
    Datatype::DateTimeNanosecond,
];

fn attribute() -> impl Strategy<Value = Attribute> {
    let filters = prop_oneof![
        Just(vec![]),
        Just(vec![Filter::Zstd(19)]),
        Just(vec![Filter::ByteShuffle, Filter::Zstd(9)]),
    ];
    (0..TYPES.len(), any::<bool>(), filters).prop_map(|(kind, nullable, filters)| Attribute {
        nullable,
        filters,
        ..Attribute::new("name", TYPES[kind])
    })
}

fn cells(attribute: &Attribute, n: usize) -> BoxedStrategy<Cells> {
    let nullable = attribute.nullable;
    let bytes = if attribute.var_sized {
        let length = prop_oneof![3 => 0_usize..12, 1 => Just(0), 1 => 200_usize..3000];
        (length, any::<u8>()).prop_map(|(n, byte)| vec![b'a' + byte % 26; n]).boxed()
    } else {
        let size = attribute.datatype.size().unwrap();
        let is_truth = attribute.datatype == Datatype::Bool;
        let any = prop::collection::vec(any::<u8>(), size);
        let small = (0_u8..4).prop_map(move |low| {
            let mut bytes = vec![0; size];
            bytes[0] = low;
            bytes
        });
        prop_oneof![small, any]
            .prop_map(move |bytes| if is_truth { vec![bytes[0] & 1] } else { bytes })
            .boxed()
    };
    let cell = (bytes, 0_u8..4).prop_map(move |(bytes, valid)| (bytes, !nullable || valid > 0));
    prop::collection::vec(cell, n).boxed()
}

fn table() -> impl Strategy<Value = Table> {
    let sizes = (1_usize..120, prop_oneof![1_u64..20, Just(1000)]);
    let attributes = prop::collection::vec(attribute(), 0..6);
    (sizes, attributes, prop::collection::vec(1_usize..50, 1..4)).prop_flat_map(
        |((n, capacity), mut attributes, pieces)| {
            for (idx, attribute) in attributes.iter_mut().enumerate() {
                attribute.name = format!("a{idx}");
            }
            let columns: Vec<_> = attributes.iter().map(|attribute| cells(attribute, n)).collect();
            let gaps = prop::collection::vec(prop_oneof![4 => Just(1_i64), 1 => 0_i64..100_000], n);
            (gaps, columns).prop_map(move |(gaps, columns)| Table {
                schema: schema(capacity, attributes.clone()),
                joinids: gaps
                    .iter()
                    .scan(-1, |at, gap| {
                        *at = (*at + gap).max(0);
                        Some(*at)
                    })
                    .collect(),
                columns,
                pieces: pieces.clone(),
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_table(table in table()) {
        table.check();
    }
}

/// A table of `n` rows: texts, numbers and truths, each also with nulls.
fn ordinary(n: usize, capacity: u64) -> Table {
    let attribute = |name: &str, datatype, nullable| Attribute {
        nullable,
        filters: vec![Filter::Zstd(19)],
        ..Attribute::new(name, datatype)
    };
    let attributes = vec![
        attribute("text", Datatype::StringUtf8, false),
        attribute("text_or_null", Datatype::StringUtf8, true),
        attribute("number", Datatype::Float64, false),
        attribute("truth", Datatype::Bool, true),
        attribute("nothing", Datatype::StringUtf8, false),
        attribute("all_null", Datatype::Int32, true),
    ];
    let text = |row: usize| format!("cell {}", row * 31 % 1000).into_bytes();
    let columns = vec![
        (0..n).map(|row| (text(row), true)).collect(),
        (0..n).map(|row| (text(row), row % 3 > 0)).collect(),
        (0..n).map(|row| ((row as f64 / 3.0).to_le_bytes().to_vec(), true)).collect(),
        (0..n).map(|row| (vec![(row % 2) as u8], row % 5 > 0)).collect(),
        vec![(Vec::new(), true); n],
        vec![(vec![0; 4], false); n],
    ];
    Table {
        schema: schema(capacity, attributes),
        joinids: (0..n as i64).collect(),
        columns,
        pieces: vec![700],
    }
}

#[test]
fn tiles_of_several_chunks_and_the_tree_of_many_tiles() {
    ordinary(30_000, 20_000).check();
    ordinary(3_000, 20).check();
    // A text longer than a chunk.
    let mut table = ordinary(10, 4);
    table.columns[0][3].0 = b"long".repeat(50_000);
    table.check();
}

/// The sum of floats that are no numbers has the bits of one of them.
#[test]
fn sums_of_floats_that_are_no_numbers() {
    for datatype in [Datatype::Float32, Datatype::Float64] {
        let size = datatype.size().unwrap();
        let cell = |row: usize| {
            let mut bytes = vec![0xff; size];
            bytes[0] = row as u8;
            if row.is_multiple_of(3) {
                bytes[size - 1] = 0x7f;
            }
            (bytes, true)
        };
        let mut table = ordinary(50, 7);
        table.schema.attributes = vec![Attribute::new("a0", datatype)];
        table.columns = vec![(0..50).map(cell).collect()];
        table.check();
    }
}

#[test]
fn last_tiles_of_nothing_but_nulls() {
    (1..=9).for_each(|n| ordinary(n, 4).check());
}

#[test]
fn tables_without_rows_are_no_fragment() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    let table = Table { joinids: Vec::new(), ..ordinary(0, 10) };
    table.write(&at);
    assert_eq!(std::fs::read_dir(at.join("__fragments")).unwrap().count(), 0);
    assert!(table.read_with_libtiledb(&at).0.is_empty());
}

#[test]
fn nothing_counts_before_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    let table = ordinary(100, 10);
    create_array(&at, &table.schema, 1).unwrap();
    let options = WriteOptions::new(Threads::Own(1), TIME);
    let n_fragments = || std::fs::read_dir(at.join("__fragments")).unwrap().count();
    let mut writer = TableWriter::create(&at, &options).unwrap();
    let given = table.given(0..100);
    let columns: Vec<_> =
        table.schema.attributes.iter().zip(&given).map(|(of, given)| given.ours(of)).collect();
    writer.write(&table.joinids, &columns).unwrap();
    assert_eq!(n_fragments(), 1);
    assert!(table.read_with_libtiledb(&at).0.is_empty());
    drop(writer);
    assert_eq!(n_fragments(), 0);
}

#[test]
fn what_are_no_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    let text = Attribute::new("text", Datatype::StringUtf8);
    let number = Attribute { nullable: true, ..Attribute::new("number", Datatype::Int16) };
    create_array(&at, &schema(10, vec![text, number]), 1).unwrap();
    let options = WriteOptions::new(Threads::Own(1), TIME);
    let mut writer = TableWriter::create(&at, &options).unwrap();
    let texts = |offsets: &'static [u64]| {
        ColumnCells::var_sized("text", Datatype::StringUtf8, b"abc", offsets)
    };
    let text = texts(&[0, 1]);
    let number = ColumnCells::fixed("number", Datatype::Int16, &[1, 0, 2, 0]);
    let valid = number.with_validity(&[1, 0]);
    let mut refused = |joinids: &[i64], columns: &[ColumnCells<'_>], part: &str| {
        let refused = writer.write(joinids, columns).unwrap_err();
        assert!(matches!(refused, Error::Column { .. }), "{refused:?}");
        assert!(refused.to_string().contains(part), "{refused}");
    };
    refused(&[0, 1], &[text], "number");
    refused(&[0, 1], &[text, text, valid], "twice");
    refused(&[0, 1], &[text, number], "validity");
    refused(&[0, 1], &[text, valid.with_validity(&[1])], "cells");
    refused(&[0, 1, 2], &[text, valid], "3 coordinates");
    refused(&[0, 1], &[texts(&[1, 2]), valid], "ascend");
    refused(&[0, 1], &[texts(&[0, 4]), valid], "ascend");
    refused(&[0, 1], &[text, ColumnCells::fixed("number", Datatype::Int32, &[0; 8])], "int16");
    refused(
        &[0, 1],
        &[text, valid, ColumnCells::fixed("x", Datatype::Int8, &[0; 2])],
        "not an attribute",
    );
    refused(&[1, 0], &[text, valid], "comes after");
    refused(&[-1, 0], &[text, valid], "outside");
    refused(&[0, (1 << 40) + 1], &[text, valid], "outside");
    writer.write(&[3, 3], &[valid, text]).unwrap();
    let refused = writer.write(&[2, 4], &[valid, text]).unwrap_err();
    assert!(refused.to_string().contains("comes after"), "{refused}");
    assert_eq!(writer.finish().unwrap().n_cells, 2);
}

#[test]
fn tables_that_only_libtiledb_can_write_are_refused() {
    let schema_of = |attribute: Attribute| schema(10, vec![attribute]);
    let with = |filter| Attribute { filters: vec![filter], ..Attribute::new("a", Datatype::Int32) };
    let mut two = schema_of(Attribute::new("a", Datatype::Int32));
    let other = Dimension { name: "other".into(), ..two.dimensions[0].clone() };
    two.dimensions.push(other);
    two.current_domain = None;
    let cases = [
        (schema_of(Attribute::new("a", Datatype::StringAscii)), "ascii"),
        (
            schema_of(Attribute { values_per_cell: 2, ..Attribute::new("a", Datatype::Int32) }),
            "one value",
        ),
        (schema_of(with(Filter::Gzip(3))), "gzip"),
        (schema_of(with(Filter::ChecksumMd5)), "MD5"),
        (
            schema_of(Attribute {
                filters: vec![Filter::Rle],
                ..Attribute::new("a", Datatype::StringUtf8)
            }),
            "run lengths",
        ),
        (two, "2 dimensions"),
        (
            Schema { cell_order: CellOrder::Hilbert, ..schema_of(with(Filter::Zstd(3))) },
            "row by row",
        ),
    ];
    for (schema, part) in cases {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("table");
        let mut schema = schema;
        if schema.cell_order == CellOrder::Hilbert {
            schema.dimensions[0].tile_extent = None;
        }
        Array::create(&context(), at.to_str().unwrap(), &schema).unwrap();
        let options = WriteOptions::new(Threads::Own(1), TIME);
        let refused = TableWriter::create(&at, &options).unwrap_err();
        assert!(matches!(refused, Error::Unwritable { .. }), "{refused:?}");
        assert!(refused.to_string().contains(part), "{refused}");
    }
}
