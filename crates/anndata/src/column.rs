//! One column of a table: what it is stored as, and its Arrow array.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrays::{ElementType, StoredArray};
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, DictionaryArray, LargeStringArray, PrimitiveArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use serde_json::Value;

use crate::elements::Elements;
use crate::error::Error;

/// A column of a table.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) stored: Stored,
}

/// How a column is stored.
#[derive(Debug)]
pub(crate) enum Stored {
    /// Numbers, Booleans or strings.
    Plain(Box<StoredArray>),
    /// Values and a mask, which is true where a value is missing.
    Nullable { values: Box<StoredArray>, mask: Box<StoredArray> },
    /// Codes into a list of categories; -1 is a missing value.
    Categorical(Box<Categorical>),
    /// Not read, for this reason.
    Unsupported(String),
}

/// A categorical column.
#[derive(Debug)]
pub(crate) struct Categorical {
    codes: Box<StoredArray>,
    pub(crate) categories: Column,
    is_ordered: bool,
    /// The categories, once they were read.
    pub(crate) known: OnceLock<ArrayRef>,
}

/// The elements of a stored array that were read.
#[derive(Debug)]
pub(crate) enum Leaf {
    Numbers(Vec<u64>, usize),
    Strings(Vec<String>),
}

impl Leaf {
    /// Its elements as bytes.
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Numbers(words, n_bytes) => {
                bytemuck::cast_slice::<u64, u8>(words).get(..*n_bytes).unwrap_or_default()
            }
            Self::Strings(_) => &[],
        }
    }
}

/// The Arrow type of elements; `None` if Arrow has none.
pub(crate) fn data_type(element: ElementType) -> Option<DataType> {
    Some(match element {
        ElementType::Bool => DataType::Boolean,
        ElementType::I8 => DataType::Int8,
        ElementType::I16 => DataType::Int16,
        ElementType::I32 => DataType::Int32,
        ElementType::I64 => DataType::Int64,
        ElementType::U8 => DataType::UInt8,
        ElementType::U16 => DataType::UInt16,
        ElementType::U32 => DataType::UInt32,
        ElementType::U64 => DataType::UInt64,
        ElementType::F16 => DataType::Float16,
        ElementType::F32 => DataType::Float32,
        ElementType::F64 => DataType::Float64,
        _ => return None,
    })
}

/// The Arrow type of an array's elements; otherwise the reason why it is not read.
fn type_of(array: &StoredArray) -> Result<DataType, String> {
    if array.shape().len() != 1 {
        return Err(format!("{} has {} dimensions", array.path(), array.shape().len()));
    }
    if array.is_strings() {
        return Ok(DataType::LargeUtf8);
    }
    let known = array.element().and_then(data_type);
    known.ok_or_else(|| format!("{} has elements of type {}", array.path(), array.type_name()))
}

impl Column {
    /// The paths of the arrays in a column that is a group.
    pub(crate) fn paths_within(path: &str) -> [String; 4] {
        ["codes", "categories", "values", "mask"].map(|name| format!("{path}/{name}"))
    }

    /// Opens the column `name` of the table `frame`.
    pub(crate) fn open(elements: &Elements, frame: &str, name: &str) -> Result<Self, Error> {
        let path = format!("{frame}/{name}");
        let node = elements.get(&path)?;
        let stored = if node.array.is_some() {
            let old = node.attributes.get("categories").is_some_and(Value::is_string);
            match Self::plain(elements, &path)? {
                // Tables of version 0.1.0 keep all categories in one group.
                Stored::Plain(codes) if old => {
                    let group = format!("{frame}/__categories");
                    let categories = Self::open(elements, &group, name)?;
                    let element = elements.get(&categories.path)?;
                    categorical(codes, categories, element.attributes.get("ordered"))
                }
                stored => stored,
            }
        } else {
            match node.encoding() {
                "categorical" => match Self::plain(elements, &format!("{path}/codes"))? {
                    Stored::Plain(codes) => {
                        let categories = Self::open(elements, &path, "categories")?;
                        categorical(codes, categories, node.attributes.get("ordered"))
                    }
                    stored => stored,
                },
                "nullable-integer" | "nullable-boolean" | "nullable-string-array" => {
                    Self::nullable(elements, &path)?
                }
                encoding => Stored::Unsupported(format!("its encoding-type is `{encoding}`")),
            }
        };
        Ok(Self { name: name.to_owned(), path, stored })
    }

    fn plain(elements: &Elements, path: &str) -> Result<Stored, Error> {
        Ok(match elements.array(path) {
            Ok(array) => match type_of(&array) {
                Ok(_) => Stored::Plain(Box::new(array)),
                Err(reason) => Stored::Unsupported(reason),
            },
            // Metadata that Zarr's readers do not know concerns this column only.
            Err(Error::Array(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                Stored::Unsupported(format!("{error}: {}", cause.unwrap_or_default()))
            }
            Err(Error::Unsupported { reason, .. }) => Stored::Unsupported(reason),
            Err(error) => return Err(error),
        })
    }

    fn nullable(elements: &Elements, path: &str) -> Result<Stored, Error> {
        let both = ["values", "mask"].map(|name| Self::plain(elements, &format!("{path}/{name}")));
        let [values, mask] = both;
        Ok(match (values?, mask?) {
            (Stored::Plain(values), Stored::Plain(mask)) => {
                if mask.element() == Some(ElementType::Bool) {
                    Stored::Nullable { values, mask }
                } else {
                    Stored::Unsupported(format!(
                        "its mask has elements of type {}",
                        mask.type_name()
                    ))
                }
            }
            (Stored::Unsupported(reason), _) | (_, Stored::Unsupported(reason)) => {
                Stored::Unsupported(reason)
            }
            _ => Stored::Unsupported("its values are not a list".to_owned()),
        })
    }

    /// The Arrow field; otherwise the reason why the column is not read.
    pub(crate) fn field(&self) -> Result<Field, String> {
        let name = self.name.as_str();
        match &self.stored {
            Stored::Plain(array) => Ok(Field::new(name, type_of(array)?, false)),
            Stored::Nullable { values, .. } => Ok(Field::new(name, type_of(values)?, true)),
            Stored::Categorical(of) => {
                let (key, value) = (type_of(&of.codes)?, of.categories.field()?);
                let value = value.data_type().clone();
                let dictionary = DataType::Dictionary(Box::new(key), Box::new(value));
                Ok(Field::new(name, dictionary, true).with_dict_is_ordered(of.is_ordered))
            }
            Stored::Unsupported(reason) => Err(reason.clone()),
        }
    }

    /// The number of rows; `None` if the column is not read.
    pub(crate) fn n_rows(&self) -> Option<u64> {
        match &self.stored {
            Stored::Plain(array) | Stored::Nullable { values: array, .. } => Some(array.n_rows()),
            Stored::Categorical(of) => Some(of.codes.n_rows()),
            Stored::Unsupported(_) => None,
        }
    }

    /// The arrays that are read for its rows; the categories are read before.
    pub(crate) fn leaves(&self) -> Vec<&StoredArray> {
        match &self.stored {
            Stored::Plain(array) => vec![array],
            Stored::Nullable { values, mask } => vec![values, mask],
            Stored::Categorical(of) => vec![&of.codes],
            Stored::Unsupported(_) => Vec::new(),
        }
    }

    /// The Arrow array of the elements that were read of its leaves.
    pub(crate) fn assemble(&self, leaves: Vec<Leaf>) -> Result<ArrayRef, String> {
        let mut leaves = leaves.into_iter();
        let first = leaves.next().ok_or("nothing was read")?;
        match &self.stored {
            Stored::Plain(array) => array_of(array, first, None),
            Stored::Nullable { values, .. } => {
                let mask = leaves.next().ok_or("its mask was not read")?;
                let valid = mask.bytes().iter().map(|is_missing| *is_missing == 0);
                array_of(values, first, Some(NullBuffer::from(valid.collect::<BooleanBuffer>())))
            }
            Stored::Categorical(of) => {
                let categories = of.known.get().ok_or("its categories were not read")?;
                let bytes = first.bytes();
                match of.codes.element() {
                    Some(ElementType::I8) => dictionary::<Int8Type>(bytes, categories),
                    Some(ElementType::I16) => dictionary::<Int16Type>(bytes, categories),
                    Some(ElementType::I32) => dictionary::<Int32Type>(bytes, categories),
                    Some(ElementType::I64) => dictionary::<Int64Type>(bytes, categories),
                    _ => Err("its codes are of another type".to_owned()),
                }
            }
            Stored::Unsupported(reason) => Err(reason.clone()),
        }
    }
}

fn categorical(codes: Box<StoredArray>, categories: Column, ordered: Option<&Value>) -> Stored {
    let is_code = matches!(
        codes.element(),
        Some(ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64)
    );
    if !is_code {
        return Stored::Unsupported(format!("its codes are of type {}", codes.type_name()));
    }
    if let Stored::Unsupported(reason) = categories.stored {
        return Stored::Unsupported(reason);
    }
    // Python wrote numbers for Booleans.
    let is_ordered = ordered.is_some_and(|of| of.as_bool() == Some(true) || of.as_u64() == Some(1));
    let known = OnceLock::new();
    Stored::Categorical(Box::new(Categorical { codes, categories, is_ordered, known }))
}

/// Codes with their categories.
fn dictionary<K: ArrowDictionaryKeyType>(
    bytes: &[u8],
    categories: &ArrayRef,
) -> Result<ArrayRef, String>
where
    K::Native: bytemuck::AnyBitPattern + Into<i64> + Default,
{
    let codes: &[K::Native] = bytemuck::cast_slice(bytes);
    let n_categories = categories.len() as i64;
    let is_wrong = |code: i64| code < -1 || n_categories <= code;
    let wrong = codes.iter().copied().enumerate().find(|(_, code)| is_wrong((*code).into()));
    if let Some((row, code)) = wrong {
        let code: i64 = code.into();
        return Err(format!(
            "the code at place {row} is {code}, but there are {n_categories} categories"
        ));
    }
    let is_known = |code: &K::Native| 0 <= (*code).into();
    let valid = NullBuffer::from(codes.iter().map(is_known).collect::<BooleanBuffer>());
    let known = codes.iter().map(|code| if is_known(code) { *code } else { K::Native::default() });
    let values = ScalarBuffer::from(known.collect::<Vec<_>>());
    let keys = PrimitiveArray::<K>::try_new(values, Some(valid)).map_err(|e| e.to_string())?;
    let array = DictionaryArray::try_new(keys, Arc::clone(categories));
    Ok(Arc::new(array.map_err(|error| error.to_string())?))
}

/// The Arrow array of plain elements.
fn array_of(
    array: &StoredArray,
    leaf: Leaf,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, String> {
    if let Leaf::Strings(strings) = leaf {
        let Some(nulls) = nulls else {
            return Ok(Arc::new(LargeStringArray::from(strings)));
        };
        let strings = strings.iter().zip(&nulls).map(|(text, valid)| valid.then_some(text));
        return Ok(Arc::new(strings.collect::<LargeStringArray>()));
    }
    let bytes = leaf.bytes();
    match array.element() {
        Some(ElementType::Bool) => {
            let values = bytes.iter().map(|byte| *byte != 0).collect::<BooleanBuffer>();
            Ok(Arc::new(BooleanArray::new(values, nulls)))
        }
        Some(ElementType::I8) => primitive::<Int8Type>(bytes, nulls),
        Some(ElementType::I16) => primitive::<Int16Type>(bytes, nulls),
        Some(ElementType::I32) => primitive::<Int32Type>(bytes, nulls),
        Some(ElementType::I64) => primitive::<Int64Type>(bytes, nulls),
        Some(ElementType::U8) => primitive::<UInt8Type>(bytes, nulls),
        Some(ElementType::U16) => primitive::<UInt16Type>(bytes, nulls),
        Some(ElementType::U32) => primitive::<UInt32Type>(bytes, nulls),
        Some(ElementType::U64) => primitive::<UInt64Type>(bytes, nulls),
        Some(ElementType::F16) => primitive::<Float16Type>(bytes, nulls),
        Some(ElementType::F32) => primitive::<Float32Type>(bytes, nulls),
        Some(ElementType::F64) => primitive::<Float64Type>(bytes, nulls),
        _ => Err(format!("its elements are of type {}", array.type_name())),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    bytes: &[u8],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, String>
where
    T::Native: bytemuck::AnyBitPattern,
{
    let values: Vec<T::Native> = bytemuck::cast_slice(bytes).to_vec();
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls);
    Ok(Arc::new(array.map_err(|error| error.to_string())?))
}

/// Reads a range of rows of several columns together: an Arrow array for each.
pub(crate) fn read_columns(
    elements: &Elements,
    columns: &[(&Column, Range<u64>)],
) -> Result<Vec<ArrayRef>, Error> {
    let mut leaves: Vec<(&StoredArray, &Range<u64>, Leaf)> = Vec::new();
    for (column, rows) in columns {
        for array in column.leaves() {
            let leaf = match array.element() {
                None => Leaf::Strings(Vec::new()),
                Some(element) => memory(rows, element.n_bytes())
                    .ok_or_else(|| elements.damaged(&column.path, "its rows do not fit memory"))?,
            };
            leaves.push((array, rows, leaf));
        }
    }
    let mut requests = Vec::new();
    for (array, rows, leaf) in &mut leaves {
        match leaf {
            Leaf::Strings(strings) => {
                *strings = elements.pool().install(|| array.read_strings((*rows).clone()))?;
            }
            Leaf::Numbers(words, n_bytes) => {
                let bytes = bytemuck::cast_slice_mut::<u64, u8>(words).get_mut(..*n_bytes);
                let rows = std::slice::from_ref(*rows);
                requests.push(array.request_bytes(rows, bytes.unwrap_or_default())?);
            }
        }
    }
    elements.read(requests)?;
    let mut leaves = leaves.into_iter().map(|(.., leaf)| leaf);
    let assemble = |(column, _): &(&Column, Range<u64>)| {
        let of_column = leaves.by_ref().take(column.leaves().len()).collect();
        column.assemble(of_column).map_err(|what| elements.damaged(&column.path, what))
    };
    columns.iter().map(assemble).collect()
}

/// Memory for the elements of rows; `None` if there is too little.
fn memory(rows: &Range<u64>, element_bytes: usize) -> Option<Leaf> {
    let n_rows = usize::try_from(rows.end.saturating_sub(rows.start)).ok()?;
    let n_bytes = n_rows.checked_mul(element_bytes)?;
    let mut words: Vec<u64> = Vec::new();
    words.try_reserve_exact(n_bytes.div_ceil(size_of::<u64>())).ok()?;
    words.resize(n_bytes.div_ceil(size_of::<u64>()), 0);
    Some(Leaf::Numbers(words, n_bytes))
}
