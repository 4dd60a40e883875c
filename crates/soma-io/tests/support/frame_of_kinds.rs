//! Random record batches with columns of several kinds, and their cells one by one.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int8Array,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, RecordBatch, StringArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{Field, Schema};
use proptest::prelude::*;

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int8,
    UInt64,
    Moment,
    Float32,
    Float64,
    Truth,
    Text,
    Bytes,
    Category,
    Level,
}

pub(crate) const COLUMNS: [(&str, Kind); 10] = [
    ("small", Kind::Int8),
    ("large", Kind::UInt64),
    ("moment", Kind::Moment),
    ("f32", Kind::Float32),
    ("f64", Kind::Float64),
    ("truth", Kind::Truth),
    ("text", Kind::Text),
    ("blob", Kind::Bytes),
    ("kind", Kind::Category),
    ("level", Kind::Level),
];

const CATEGORIES: [&str; 4] = ["mid", "a b", "é", ""];
/// Not in alphabetical order.
const LEVELS: [&str; 3] = ["low", "mid", "high"];

/// A value of a filter.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Truth(bool),
    Text(String),
}

/// A value of a column.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Integer(i128),
    Float32(f32),
    Float64(f64),
    Truth(bool),
    Text(String),
    /// The index of a category, and all categories.
    Category(usize, &'static [&'static str]),
}

/// A cell for each column; `None` is null.
pub(crate) type Row = Vec<Option<Cell>>;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) if float.is_infinite() => {
                write!(f, "{}1e400", if *float < 0.0 { "-" } else { "" })
            }
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Truth(true) => f.write_str("True"),
            Self::Truth(false) => f.write_str("False"),
            Self::Text(text) => write!(f, "'{text}'"),
        }
    }
}

impl Value {
    fn number(&self) -> f64 {
        match self {
            Self::Integer(integer) => *integer as f64,
            Self::Float(float) => *float,
            Self::Truth(truth) => f64::from(u8::from(*truth)),
            Self::Text(text) => panic!("{text} is not a number"),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other} is not a text"),
        }
    }
}

impl Cell {
    /// The order relative to a value; `None` if they are neither ordered nor equal.
    pub(crate) fn order(&self, value: &Value) -> Option<Ordering> {
        match self {
            Self::Integer(integer) => Some(match value {
                Value::Integer(value) => integer.cmp(value),
                other => integer.cmp(&(other.number() as i128)),
            }),
            Self::Float32(float) => float.partial_cmp(&(value.number() as f32)),
            Self::Float64(float) => float.partial_cmp(&value.number()),
            Self::Truth(truth) => Some(truth.cmp(&(value.number() == 1.0))),
            Self::Text(text) => Some(text.as_bytes().cmp(value.text().as_bytes())),
            Self::Category(code, categories) => {
                Some(code.cmp(&categories.iter().position(|category| *category == value.text())?))
            }
        }
    }

    /// Whether a list that contains the value contains the cell.
    pub(crate) fn is_same(&self, value: &Value) -> bool {
        match self {
            Self::Float32(float) => float.to_bits() == (value.number() as f32).to_bits(),
            Self::Float64(float) => float.to_bits() == value.number().to_bits(),
            _ => self.order(value) == Some(Ordering::Equal),
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(["", "a", "b", "é", "mid", "low", "a b"].as_slice())
            .prop_map(str::to_owned),
        "[a-cé]{0,3}",
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        proptest::sample::select([0.0, -0.0, 0.1, 1.0, -2.5, f64::INFINITY, 1e39].as_slice()),
        -3.0..3.0_f64,
    ]
}

impl Kind {
    pub(crate) fn has_order(self) -> bool {
        self != Self::Category
    }

    /// A value that a filter may compare with the column.
    pub(crate) fn value(self) -> BoxedStrategy<Value> {
        match self {
            Self::Int8 => prop_oneof![
                (-4..5_i128).prop_map(Value::Integer),
                (-4..5_i8).prop_map(|integer| Value::Float(integer.into())),
                any::<i8>().prop_map(|integer| Value::Integer(integer.into())),
                any::<bool>().prop_map(Value::Truth),
            ]
            .boxed(),
            Self::UInt64 => prop_oneof![0..5_u64, u64::MAX - 4..=u64::MAX]
                .prop_map(|integer| Value::Integer(integer.into()))
                .boxed(),
            Self::Moment => (-4..5_i128).prop_map(Value::Integer).boxed(),
            Self::Float32 | Self::Float64 => prop_oneof![
                3 => float().prop_map(Value::Float),
                1 => (-2..3_i128).prop_map(Value::Integer),
            ]
            .boxed(),
            Self::Truth => prop_oneof![
                any::<bool>().prop_map(Value::Truth),
                (0..2_i128).prop_map(Value::Integer)
            ]
            .boxed(),
            Self::Text | Self::Bytes | Self::Category | Self::Level => {
                text().prop_map(Value::Text).boxed()
            }
        }
    }

    fn cell(self) -> BoxedStrategy<Option<Cell>> {
        let cell = match self {
            Self::Int8 => prop_oneof![-4..5_i8, any::<i8>()]
                .prop_map(|integer| Cell::Integer(integer.into()))
                .boxed(),
            Self::UInt64 => prop_oneof![0..5_u64, u64::MAX - 4..=u64::MAX]
                .prop_map(|integer| Cell::Integer(integer.into()))
                .boxed(),
            Self::Moment => (-4..5_i128).prop_map(Cell::Integer).boxed(),
            Self::Float32 => prop_oneof![9 => float(), 1 => Just(f64::NAN)]
                .prop_map(|float| Cell::Float32(float as f32))
                .boxed(),
            Self::Float64 => {
                prop_oneof![9 => float(), 1 => Just(f64::NAN)].prop_map(Cell::Float64).boxed()
            }
            Self::Truth => any::<bool>().prop_map(Cell::Truth).boxed(),
            Self::Text | Self::Bytes => text().prop_map(Cell::Text).boxed(),
            Self::Category => {
                (0..CATEGORIES.len()).prop_map(|code| Cell::Category(code, &CATEGORIES)).boxed()
            }
            Self::Level => (0..LEVELS.len()).prop_map(|code| Cell::Category(code, &LEVELS)).boxed(),
        };
        proptest::option::weighted(0.8, cell).boxed()
    }
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row: Vec<_> = COLUMNS.iter().map(|(_, kind)| kind.cell()).collect();
    proptest::collection::vec(row, 0..20)
}

/// The rows as a batch.
pub(crate) fn batch(rows: &[Row]) -> RecordBatch {
    let arrays = (0..COLUMNS.len()).map(|column_idx| array(rows, column_idx));
    let arrays: Vec<ArrayRef> = arrays.collect();
    let fields = COLUMNS.iter().zip(&arrays).map(|((name, kind), array)| {
        Field::new(*name, array.data_type().clone(), true)
            .with_dict_is_ordered(*kind == Kind::Level)
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

fn array(rows: &[Row], column_idx: usize) -> ArrayRef {
    let cells = || rows.iter().map(|row| row[column_idx].as_ref());
    let integer = |cell: &Cell| match cell {
        Cell::Integer(integer) => *integer,
        other => panic!("{other:?} is not an integer"),
    };
    let float = |cell: &Cell| match cell {
        Cell::Float32(float) => f64::from(*float),
        Cell::Float64(float) => *float,
        other => panic!("{other:?} is not a float"),
    };
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        other => panic!("{other:?} is not a text"),
    };
    let code = |cell: &Cell| match cell {
        Cell::Category(code, _) => *code,
        other => panic!("{other:?} is not a category"),
    };
    match COLUMNS[column_idx].1 {
        Kind::Int8 => Arc::new(
            cells().map(|cell| cell.map(|cell| integer(cell) as i8)).collect::<Int8Array>(),
        ),
        Kind::UInt64 => Arc::new(
            cells().map(|cell| cell.map(|cell| integer(cell) as u64)).collect::<UInt64Array>(),
        ),
        Kind::Moment => Arc::new(
            cells()
                .map(|cell| cell.map(|cell| integer(cell) as i64))
                .collect::<TimestampMillisecondArray>(),
        ),
        Kind::Float32 => Arc::new(
            cells().map(|cell| cell.map(|cell| float(cell) as f32)).collect::<Float32Array>(),
        ),
        Kind::Float64 => Arc::new(cells().map(|cell| cell.map(float)).collect::<Float64Array>()),
        Kind::Truth => Arc::new(
            cells()
                .map(|cell| cell.map(|cell| matches!(cell, Cell::Truth(true))))
                .collect::<BooleanArray>(),
        ),
        Kind::Text => Arc::new(cells().map(|cell| cell.map(text)).collect::<LargeStringArray>()),
        Kind::Bytes => Arc::new(cells().map(|cell| cell.map(text)).collect::<LargeBinaryArray>()),
        Kind::Category => {
            let codes = cells().map(|cell| cell.map(|cell| code(cell) as i8));
            let codes: PrimitiveArray<Int8Type> = codes.collect();
            let values = Arc::new(LargeStringArray::from(CATEGORIES.to_vec()));
            Arc::new(DictionaryArray::new(codes, values))
        }
        Kind::Level => {
            let codes = cells().map(|cell| cell.map(|cell| code(cell) as u16));
            let codes: PrimitiveArray<UInt16Type> = codes.collect();
            let values = Arc::new(StringArray::from(LEVELS.to_vec()));
            Arc::new(DictionaryArray::new(codes, values))
        }
    }
}
