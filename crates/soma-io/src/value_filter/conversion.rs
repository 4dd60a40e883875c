//! Converts the values of a filter to the column's type.

use arrow_schema::{DataType, Field};

use super::Problem;
use super::expression::{Comparison, Leaf, Literal, Test, Value};

/// A test on a column, with values of its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// Matches null, or everything but null.
    Null(bool),
    Booleans(Test<bool>),
    /// All values lie within the range of the column's type.
    Integers(Test<i128>),
    /// All values are rounded to the column's type.
    Floats(Test<f64>),
    Bytes(Test<Vec<u8>>),
}

/// Converts the test of `leaf` for the column that `field` describes.
pub(super) fn wanted(leaf: &Leaf, field: &Field) -> Result<Wanted, Problem> {
    let values = match field.data_type() {
        DataType::Dictionary(_, values) => {
            let is_of_order =
                matches!(&leaf.test, Test::Compare(comparison, _) if comparison.is_of_order());
            if is_of_order && field.dict_is_ordered() != Some(true) {
                let what = format!(
                    "the categories of column `{}` have no order: they are compared by == and != only",
                    leaf.column
                );
                return Err(Problem::new(leaf.at, what));
            }
            values
        }
        plain => plain,
    };
    if let Test::Compare(comparison, Literal { value: Value::None, .. }) = &leaf.test {
        return Ok(Wanted::Null(*comparison == Comparison::Equal));
    }
    let convert = Convert { column: &leaf.column, data_type: values };
    let test = &leaf.test;
    Ok(match values {
        DataType::Boolean => Wanted::Booleans(each(test, |literal| convert.boolean(literal))?),
        DataType::Int8 => Wanted::Integers(each(test, |literal| convert.integer::<i8>(literal))?),
        DataType::Int16 => Wanted::Integers(each(test, |literal| convert.integer::<i16>(literal))?),
        DataType::Int32 => Wanted::Integers(each(test, |literal| convert.integer::<i32>(literal))?),
        DataType::Int64 | DataType::Timestamp(..) => {
            Wanted::Integers(each(test, |literal| convert.integer::<i64>(literal))?)
        }
        DataType::UInt8 => Wanted::Integers(each(test, |literal| convert.integer::<u8>(literal))?),
        DataType::UInt16 => {
            Wanted::Integers(each(test, |literal| convert.integer::<u16>(literal))?)
        }
        DataType::UInt32 => {
            Wanted::Integers(each(test, |literal| convert.integer::<u32>(literal))?)
        }
        DataType::UInt64 => {
            Wanted::Integers(each(test, |literal| convert.integer::<u64>(literal))?)
        }
        DataType::Float32 => Wanted::Floats(each(test, |literal| {
            convert.float(literal).map(|float| f64::from(float as f32))
        })?),
        DataType::Float64 => Wanted::Floats(each(test, |literal| convert.float(literal))?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            Wanted::Bytes(each(test, |literal| convert.bytes(literal))?)
        }
        other => {
            let what =
                format!("column `{}` is of type {other}, which cannot be filtered", leaf.column);
            return Err(Problem::new(leaf.at, what));
        }
    })
}

/// Converts each value of a test.
fn each<V>(
    test: &Test<Literal>,
    convert: impl Fn(&Literal) -> Result<V, Problem>,
) -> Result<Test<V>, Problem> {
    Ok(match test {
        Test::Compare(comparison, literal) => Test::Compare(*comparison, convert(literal)?),
        Test::Member { negated, values } => Test::Member {
            negated: *negated,
            values: values.iter().map(convert).collect::<Result<_, _>>()?,
        },
    })
}

struct Convert<'a> {
    column: &'a str,
    data_type: &'a DataType,
}

impl Convert<'_> {
    fn unfit(&self, literal: &Literal, expected: &str) -> Problem {
        let found = literal.value.describe();
        let Self { column, data_type } = self;
        let what =
            format!("column `{column}` is of type {data_type}: expected {expected}, found {found}");
        Problem::new(literal.at, what)
    }

    fn boolean(&self, literal: &Literal) -> Result<bool, Problem> {
        match &literal.value {
            Value::Boolean(truth) => Ok(*truth),
            Value::Integer(1) => Ok(true),
            Value::Integer(0) => Ok(false),
            Value::Float(float) if *float == 1.0 || *float == 0.0 => Ok(*float == 1.0),
            _ => Err(self.unfit(literal, "True or False")),
        }
    }

    /// A whole number that fits `N`.
    fn integer<N: TryFrom<i128>>(&self, literal: &Literal) -> Result<i128, Problem> {
        let integer = match &literal.value {
            Value::Boolean(truth) => Some(i128::from(*truth)),
            Value::Integer(integer) => Some(*integer),
            // Values beyond i128 saturate, and those are out of range for every column.
            Value::Float(float) if float.fract() == 0.0 => Some(*float as i128),
            _ => None,
        };
        integer
            .filter(|integer| N::try_from(*integer).is_ok())
            .ok_or_else(|| self.unfit(literal, "a whole number within its range"))
    }

    fn float(&self, literal: &Literal) -> Result<f64, Problem> {
        match &literal.value {
            Value::Boolean(truth) => Ok(f64::from(u8::from(*truth))),
            Value::Integer(integer) => Ok(*integer as f64),
            Value::Float(float) => Ok(*float),
            _ => Err(self.unfit(literal, "a number")),
        }
    }

    fn bytes(&self, literal: &Literal) -> Result<Vec<u8>, Problem> {
        match &literal.value {
            Value::Text(text) => Ok(text.as_bytes().to_vec()),
            Value::Bytes(bytes) => Ok(bytes.clone()),
            _ => Err(self.unfit(literal, "a text in quotes")),
        }
    }
}
