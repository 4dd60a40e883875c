//! `value_filter`: which rows of a data frame are wanted, in the words of tiledbsoma.
//!
//! A filter goes three ways: [`ValueFilter::parse`] reads the text, [`ValueFilter::check`] holds it against the columns that there
//! are, and [`ValueFilter::evaluate`] answers for each row of a record batch.
//!
//! # Grammar
//!
//! The precedence is Python's, from the loosest to the tightest:
//!
//! | what | is written |
//! |---|---|
//! | either | `a or b` |
//! | both | `a and b` |
//! | the opposite | `not a` |
//! | comparison | `column == value`, with `==` `!=` `<` `<=` `>` `>=`; the value may stand first |
//! | chain | `1 < column <= 5`: each neighbouring pair is a column and a value |
//! | one of several | `column in [value, …]`, `column not in [value, …]` |
//! | null, not null | `column == None`, `column != None` |
//! | either, both | <code>(a) &#124; (b)</code>, `(a) & (b)`: tighter than comparisons, so each side is in parentheses |
//! | sign | `-value`, `+value` |
//! | column | `tissue`, or `attr("cell type")` where the name is not a word of letters, digits and `_` |
//! | value | `"text"`, `b"bytes"`, `1`, `0xff`, `1_000`, `2.5e-3`, `True`, `False`, each also as `val(…)` |
//!
//! Texts have Python's quotes (single, double, tripled), prefixes (`r`, `u`, `b`, `br`) and escapes, all but `\N{…}`; texts that stand
//! side by side are one. `#` begins a comment. Outside parentheses and lists a filter is one line. Parentheses nest at most 64 deep.
//! Names are compared as they are written, not brought to Unicode's NFKC as Python does.
//!
//! # Columns and values
//!
//! | column | value | comparison |
//! |---|---|---|
//! | integer | a whole number in the range of the column; `True` is 1 | by value |
//! | float | a number; it is rounded to the type of the column | IEEE: NaN is `!=` to all; `in` and categories go by the bits, so 0.0 is not -0.0 |
//! | truth value | `True`, `False`, 1, 0 | false < true |
//! | text, bytes | text or bytes, text as UTF-8 | by bytes |
//! | timestamp | a whole number: its ticks since 1970, in the unit of the column | by value |
//! | categories | as for their values; one that is not among them is unequal to all | `<` and the like only where they are ordered, by that order |
//!
//! Null matches `== None` and nothing else, neither `!=` nor `not in`. `not` is pushed down to the comparisons, so
//! `not column == 1` is `column != 1`: null matches neither.
//!
//! # Next to tiledbsoma
//!
//! Where tiledbsoma 2.3.0 and this module both answer, they give the same rows, but for one thing: tiledbsoma turns the sign of a
//! negative number twice where it stands in the middle of a chain, `a > -5 < b`.
//!
//! Refused here is what tiledbsoma answers by altering the filter: `count == 5.9` on integers (it cuts to 5), `truth == 2`,
//! `count == b"5"`, `-"text"`, `<` with `None`, what follows `in […]` in a chain (it is left out), named arguments of `attr(…)`
//! and `val(…)`. Refused as well are integers of more than 127 bits, `\N{…}`, and `(attr)("name")`.
//!
//! Answered here is what fails there: `in` for `int16`, `uint8` and truth values, signs and whole floats in lists, signs in
//! `val(…)`, `val(val(…))`, blanks at the start, and `not` before `in`, before `not` and before more than one comparison, by
//! which tiledbsoma crashes. The tests name each of these.

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

/// A condition on the rows of a data frame, parsed. The [grammar](crate::value_filter) is that of tiledbsoma's `value_filter`.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueFilter {
    text: String,
    expression: Expression,
}

impl ValueFilter {
    /// Parses a filter. Which columns there are is not asked yet.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let expression = parser::parse(text).map_err(|problem| problem.within(text))?;
        Ok(Self { text: text.to_owned(), expression })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns that it names, each once, in the order in which they first stand.
    pub fn columns(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        self.expression.for_each_leaf(&mut |leaf| {
            if !names.contains(&leaf.column.as_str()) {
                names.push(&leaf.column);
            }
        });
        names
    }

    /// Fails when a column does not exist, or when a value does not fit its column.
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

    /// Whether each row matches; no answer is null. The batch must have the columns that the filter names.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, Error> {
        let matches =
            rows(&self.expression, batch).map_err(|problem| problem.within(&self.text))?;
        Ok(BooleanArray::new(matches, None))
    }
}

/// What is wrong with a filter, and at which of its characters, from 0.
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

/// Which rows match. The recursion ends: the parser limits how deep an expression is.
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
