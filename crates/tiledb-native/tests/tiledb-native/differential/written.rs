//! Arrays written by libtiledb for tests, and libtiledb's reads of them.

use std::path::Path;
use std::sync::Arc;

use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Config, Context, Datatype, Dimension, Filter, Layout,
    ReadQuery, Schema, Value, WriteColumn, WriteOrder, WriteQuery,
};

use crate::differential::histories::draw::Draw;

/// A cell in a test: row, column, value.
pub(crate) type Cell = (u64, u64, i32);

/// An array to write.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) shape: (u64, u64),
    pub(crate) extents: (u64, u64),
    pub(crate) capacity: u64,
    pub(crate) orders: (CellOrder, CellOrder),
    pub(crate) allows_duplicates: bool,
    pub(crate) dimension_type: Datatype,
    pub(crate) dimension_filters: (Vec<Filter>, Vec<Filter>),
    pub(crate) attribute_type: Datatype,
    pub(crate) attribute_filters: Vec<Filter>,
    /// Cells of each fragment; fragment `n` is written at time `n + 1`.
    pub(crate) fragments: Vec<Vec<Cell>>,
    pub(crate) upkeep: Upkeep,
}

/// Maintenance of the fragments after they are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Upkeep {
    Nothing,
    Consolidated,
    Vacuumed,
    /// Only the commits are consolidated, into one file.
    CommitsVacuumed,
}

/// An ordinary array of `shape`: int64, f32, zstd, small tiles.
pub(crate) fn plain(shape: (u64, u64), fragments: Vec<Vec<Cell>>) -> Spec {
    Spec {
        shape,
        extents: (16, 16),
        capacity: 50,
        orders: (CellOrder::RowMajor, CellOrder::RowMajor),
        allows_duplicates: true,
        dimension_type: Datatype::Int64,
        dimension_filters: (vec![Filter::Zstd(3)], vec![Filter::ByteShuffle, Filter::Zstd(3)]),
        attribute_type: Datatype::Float32,
        attribute_filters: vec![Filter::ByteShuffle, Filter::Zstd(3)],
        fragments,
        upkeep: Upkeep::Nothing,
    }
}

impl Spec {
    pub(crate) fn schema(&self) -> Schema {
        let dimension = |name: &str, n: u64, extent: u64, filters: &[Filter]| Dimension {
            name: name.into(),
            datatype: self.dimension_type,
            domain: Some((0, i128::from(n) - 1)),
            tile_extent: (self.orders.1 != CellOrder::Hilbert).then_some(i128::from(extent.min(n))),
            filters: filters.to_vec(),
        };
        Schema {
            array_type: ArrayType::Sparse,
            dimensions: vec![
                dimension("row", self.shape.0, self.extents.0, &self.dimension_filters.0),
                dimension("column", self.shape.1, self.extents.1, &self.dimension_filters.1),
            ],
            attributes: vec![Attribute {
                filters: self.attribute_filters.clone(),
                ..Attribute::new("value", self.attribute_type)
            }],
            tile_order: self.orders.0,
            cell_order: self.orders.1,
            capacity: self.capacity,
            allows_duplicates: self.allows_duplicates,
            offsets_filters: Vec::new(),
            coords_filters: Vec::new(),
            validity_filters: Vec::new(),
            current_domain: None,
            enumerations: Vec::new(),
        }
    }

    /// Writes the array at `at`.
    pub(crate) fn write(&self, at: &Path) {
        let uri = at.to_str().unwrap();
        let context = context();
        Array::create(&context, uri, &self.schema()).unwrap();
        self.write_fragments(at, 1);
        match self.upkeep {
            Upkeep::Nothing => {}
            Upkeep::Consolidated => Array::consolidate(&context, uri).unwrap(),
            Upkeep::Vacuumed => {
                Array::consolidate(&context, uri).unwrap();
                Array::vacuum(&context, uri).unwrap();
            }
            Upkeep::CommitsVacuumed => {
                let commits = context
                    .with(&[
                        ("sm.consolidation.mode", "commits".to_owned()),
                        ("sm.vacuum.mode", "commits".to_owned()),
                    ])
                    .unwrap();
                Array::consolidate(&commits, uri).unwrap();
                Array::vacuum(&commits, uri).unwrap();
            }
        }
    }

    /// Writes the fragments into the array at `at`, the first at time `first`.
    pub(crate) fn write_fragments(&self, at: &Path, first: u64) {
        for (time, cells) in (first..).zip(&self.fragments) {
            if !cells.is_empty() {
                self.write_fragment(&context(), at.to_str().unwrap(), cells, time);
            }
        }
    }

    /// Writes a row of 32-bit floats into the array at `at`.
    pub(crate) fn write_values(at: &Path, columns: &[u32], values: &[f32]) {
        let array = Array::open_for_writing(&context(), at.to_str().unwrap(), Some(1)).unwrap();
        let mut write = WriteQuery::new(&Arc::new(array), WriteOrder::Unordered).unwrap();
        let rows = vec![0_i64; columns.len()];
        let columns: Vec<i64> = columns.iter().map(|column| i64::from(*column)).collect();
        let fields = [
            WriteColumn::fixed("row", &rows),
            WriteColumn::fixed("column", &columns),
            WriteColumn::fixed("value", values),
        ];
        write.submit(&fields).unwrap();
        write.finish().unwrap();
    }

    fn write_fragment(&self, context: &Context, uri: &str, cells: &[Cell], time: u64) {
        let array = Arc::new(Array::open_for_writing(context, uri, Some(time)).unwrap());
        let mut write = WriteQuery::new(&array, WriteOrder::Unordered).unwrap();
        let rows = Numbers::new(self.dimension_type, cells.iter().map(|cell| cell.0 as i128));
        let columns = Numbers::new(self.dimension_type, cells.iter().map(|cell| cell.1 as i128));
        let values = Numbers::new(self.attribute_type, cells.iter().map(|cell| i128::from(cell.2)));
        write
            .submit(&[rows.column("row"), columns.column("column"), values.column("value")])
            .unwrap();
        write.finish().unwrap();
    }

    /// libtiledb's read at `timestamp`, by row and column, with values as f32.
    pub(crate) fn read_with_libtiledb(
        &self,
        at: &Path,
        timestamp: Option<u64>,
    ) -> Vec<(u64, u64, f32)> {
        let context = context();
        let array = Array::open(&context, at.to_str().unwrap(), timestamp).unwrap();
        let mut query =
            ReadQuery::new(&array, Layout::Unordered, &[], &["row", "column", "value"], 1 << 20)
                .unwrap();
        let mut cells = Vec::new();
        while let Some(piece) = query.next_piece().unwrap() {
            let rows = read_numbers(self.dimension_type, &piece, 0);
            let columns = read_numbers(self.dimension_type, &piece, 1);
            let values = read_numbers(self.attribute_type, &piece, 2);
            cells.extend(
                rows.into_iter()
                    .zip(columns)
                    .zip(values)
                    .map(|((row, column), value)| (row.0, column.0, value.1)),
            );
        }
        cells.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        cells
    }
}

pub(crate) fn context() -> Context {
    let parameters = [
        ("sm.compute_concurrency_level", "2"),
        ("sm.io_concurrency_level", "2"),
        ("sm.mem.total_budget", "268435456"),
    ];
    let config: Config =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Context::new(&config).unwrap()
}

/// Numbers of one type.
pub(crate) enum Numbers {
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

impl Numbers {
    pub(crate) fn new(datatype: Datatype, numbers: impl Iterator<Item = i128>) -> Self {
        match datatype {
            Datatype::Int8 => Self::I8(numbers.map(|number| number as i8).collect()),
            Datatype::Bool => Self::U8(numbers.map(|number| (number & 1) as u8).collect()),
            Datatype::UInt8 => Self::U8(numbers.map(|number| number as u8).collect()),
            Datatype::Int16 => Self::I16(numbers.map(|number| number as i16).collect()),
            Datatype::UInt16 => Self::U16(numbers.map(|number| number as u16).collect()),
            Datatype::Int32 => Self::I32(numbers.map(|number| number as i32).collect()),
            Datatype::UInt32 => Self::U32(numbers.map(|number| number as u32).collect()),
            Datatype::Int64
            | Datatype::DateTimeSecond
            | Datatype::DateTimeMillisecond
            | Datatype::DateTimeMicrosecond
            | Datatype::DateTimeNanosecond => {
                Self::I64(numbers.map(|number| number as i64).collect())
            }
            Datatype::UInt64 => Self::U64(numbers.map(|number| number as u64).collect()),
            Datatype::Float32 => Self::F32(numbers.map(|number| number as f32 / 4.0).collect()),
            Datatype::Float64 => Self::F64(numbers.map(|number| number as f64 / 3.0).collect()),
            other => panic!("no test writes {other:?}"),
        }
    }

    /// Sets some floats to what is no number, zero or infinite.
    pub(in crate::differential) fn with_special_floats(mut self, draw: &mut Draw) -> Self {
        macro_rules! special {
            ($values:expr, $rust:ty) => {{
                let special =
                    [<$rust>::NAN, -<$rust>::NAN, -0.0, 0.0, <$rust>::INFINITY, -<$rust>::INFINITY];
                for value in $values.iter_mut() {
                    *value = if draw.chance(20) { draw.pick(&special) } else { *value };
                }
            }};
        }
        match &mut self {
            Self::F32(values) => special!(values, f32),
            Self::F64(values) => special!(values, f64),
            _ => {}
        }
        self
    }

    pub(crate) fn column<'a>(&'a self, name: &'a str) -> WriteColumn<'a> {
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

/// Each number as an integer and as an f32.
pub(crate) fn read_numbers(
    datatype: Datatype,
    piece: &tiledb::Piece<'_>,
    column: usize,
) -> Vec<(u64, f32)> {
    fn read<T: Value + Copy>(
        piece: &tiledb::Piece<'_>,
        column: usize,
        convert: impl Fn(T) -> (u64, f32),
    ) -> Vec<(u64, f32)> {
        piece.column(column).values::<T>().unwrap().iter().map(|&value| convert(value)).collect()
    }
    match datatype {
        Datatype::Int8 => read::<i8>(piece, column, |value| (value as u64, value as f32)),
        Datatype::UInt8 | Datatype::Bool => {
            read::<u8>(piece, column, |value| (value as u64, value as f32))
        }
        Datatype::Int16 => read::<i16>(piece, column, |value| (value as u64, value as f32)),
        Datatype::UInt16 => read::<u16>(piece, column, |value| (value as u64, value as f32)),
        Datatype::Int32 => read::<i32>(piece, column, |value| (value as u64, value as f32)),
        Datatype::UInt32 => read::<u32>(piece, column, |value| (value as u64, value as f32)),
        Datatype::Int64 => read::<i64>(piece, column, |value| (value as u64, value as f32)),
        Datatype::UInt64 => read::<u64>(piece, column, |value| (value, value as f32)),
        Datatype::Float32 => read::<f32>(piece, column, |value| (value as u64, value)),
        Datatype::Float64 => read::<f64>(piece, column, |value| (value as u64, value as f32)),
        other => panic!("no test reads {other:?}"),
    }
}
