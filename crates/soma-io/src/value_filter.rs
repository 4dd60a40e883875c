//! `value_filter`: conditions on the rows of a data frame, in tiledbsoma's language.
//!
//! A filter is used in three steps: [`ValueFilter::parse`] reads the text, [`ValueFilter::check`]
//! checks it against the columns of a data frame, and [`ValueFilter::evaluate`] decides for each
//! row of a record batch.
//!
//! # Grammar
//!
//! The precedence is Python's, from the loosest to the tightest:
//!
//! | meaning | syntax |
//! |---|---|
//! | or | `a or b` |
//! | and | `a and b` |
//! | not | `not a` |
//! | comparison | `column == value`, with `==` `!=` `<` `<=` `>` `>=`; the value may come first |
//! | chain | `1 < column <= 5`: each neighbouring pair is a column and a value |
//! | membership | `column in [value, …]`, `column not in [value, …]` |
//! | null, not null | `column == None`, `column != None` |
//! | or, and | <code>(a) &#124; (b)</code>, `(a) & (b)`: tighter than comparisons, so each side needs parentheses |
//! | sign | `-value`, `+value` |
//! | column | `tissue`, or `attr("cell type")` if the name has other characters than letters, digits and `_` |
//! | value | `"text"`, `b"bytes"`, `1`, `0xff`, `1_000`, `2.5e-3`, `True`, `False`, each also as `val(…)` |
//!
//! Texts have Python's quotes (single, double, tripled), prefixes (`r`, `u`, `b`, `br`) and
//! escapes, except `\N{…}`; adjacent texts are joined. `#` begins a comment. Outside parentheses
//! and lists a filter is one line. Parentheses nest at most 64 deep. Names are compared as written,
//! without Python's NFKC normalization.
//!
//! # Columns and values
//!
//! | column | value | comparison |
//! |---|---|---|
//! | integer | a whole number in the range of the column; `True` is 1 | by value |
//! | float | a number; it is rounded to the column's type | IEEE: NaN is `!=` to everything; `in` and categories compare bits, so 0.0 is not -0.0 |
//! | boolean | `True`, `False`, 1, 0 | false < true |
//! | text, bytes | text or bytes, text as UTF-8 | by bytes |
//! | timestamp | a whole number: ticks since 1970, in the column's unit | by value |
//! | categories | as for their values; a value outside them is unequal to all | `<` and the like only if they are ordered, by that order |
//!
//! Null matches only `== None`, neither `!=` nor `not in`. `not` is pushed down to the comparisons,
//! so `not column == 1` is `column != 1`: null matches neither.
//!
//! # Differences from tiledbsoma
//!
//! If tiledbsoma 2.3.0 and this module both accept a filter, they select the same rows, with one
//! exception: in the middle of a chain, `a > -5 < b`, tiledbsoma applies the sign of a negative
//! number twice.
//!
//! This module rejects filters that tiledbsoma silently alters: `count == 5.9` on integers
//! (truncated to 5), `truth == 2`, `count == b"5"`, `-"text"`, `<` with `None`, the part after
//! `in […]` in a chain (ignored), named arguments of `attr(…)` and `val(…)`. It also rejects
//! integers of more than 127 bits, `\N{…}`, and `(attr)("name")`.
//!
//! This module accepts filters that fail in tiledbsoma: `in` for `int16`, `uint8` and booleans,
//! signs and whole floats in lists, signs in `val(…)`, `val(val(…))`, leading blanks, and `not`
//! before `in`, before `not` and before several comparisons, which crashes tiledbsoma. The tests
//! name each of these.

mod conversion;
mod evaluation;
mod expression;
mod number;
mod parser;
mod quoted;
mod token;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Field, Schema};

use crate::Error;
use expression::{Expression, Leaf};

/// A parsed condition on the rows of a data frame, in the [grammar](crate::value_filter) of
/// tiledbsoma's `value_filter`.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueFilter {
    text: String,
    expression: Expression,
}

impl ValueFilter {
    /// Parses a filter, without checking that its columns exist.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let expression = parser::parse(text).map_err(|problem| problem.within(text))?;
        Ok(Self { text: text.to_owned(), expression })
    }

    /// The text of the filter.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of its columns, each once, in the order of their first occurrence.
    pub fn columns(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        self.expression.for_each_leaf(&mut |leaf| {
            if !names.contains(&leaf.column.as_str()) {
                names.push(&leaf.column);
            }
        });
        names
    }

    /// Fails if a column does not exist, or if a value does not fit its column.
    pub fn check(&self, schema: &Schema) -> Result<(), Error> {
        let mut checked = Ok(());
        self.expression.for_each_leaf(&mut |leaf| {
            if checked.is_ok() {
                checked = field_of(leaf, schema)
                    .and_then(|(_, field)| conversion::wanted(leaf, field).map(|_| ()));
            }
        });
        checked.map_err(|problem| problem.within(&self.text))
    }

    /// Whether each row matches; the result has no nulls. The batch must have the columns that the
    /// filter names.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, Error> {
        let matches =
            rows(&self.expression, batch).map_err(|problem| problem.within(&self.text))?;
        Ok(BooleanArray::new(matches, None))
    }
}

/// A problem of a filter, and the index of its character, from 0.
#[derive(Debug, Clone, PartialEq)]
struct Problem {
    at: usize,
    what: String,
}

impl Problem {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    fn within(self, text: &str) -> Error {
        Error::ValueFilter { filter: text.to_owned(), position: self.at + 1, problem: self.what }
    }
}

fn field_of<'a>(leaf: &Leaf, schema: &'a Schema) -> Result<(usize, &'a Field), Problem> {
    schema.column_with_name(&leaf.column).ok_or_else(|| {
        let existing: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let existing = if existing.is_empty() { "none".to_owned() } else { existing.join(", ") };
        Problem::new(leaf.at, format!("there is no column {:?}; there are {existing}", leaf.column))
    })
}

/// The rows that match. The recursion is bounded: the parser limits the depth of an expression.
fn rows(expression: &Expression, batch: &RecordBatch) -> Result<BooleanBuffer, Problem> {
    let joined = |parts: &[Expression], join: fn(&BooleanBuffer, &BooleanBuffer) -> _| {
        let mut matches: Option<BooleanBuffer> = None;
        for part in parts {
            let more = rows(part, batch)?;
            matches = Some(match matches {
                Some(matches) => join(&matches, &more),
                None => more,
            });
        }
        Ok(matches.unwrap_or_else(|| BooleanBuffer::new_unset(batch.num_rows())))
    };
    match expression {
        Expression::All(parts) => joined(parts, |a, b| a & b),
        Expression::Any(parts) => joined(parts, |a, b| a | b),
        Expression::Leaf(leaf) => {
            let schema = batch.schema();
            let (column_idx, field) = field_of(leaf, &schema)?;
            let wanted = conversion::wanted(leaf, field)?;
            evaluation::matches(batch.column(column_idx), &wanted).ok_or_else(|| {
                let what = format!("columns of type {} cannot be filtered", field.data_type());
                Problem::new(leaf.at, what)
            })
        }
    }
}
