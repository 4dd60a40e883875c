//! Which cells or genes are wanted: by joinid, by what their columns hold, or by both.

use std::ops::Range;

use crate::{Error, ValueFilter};

/// Rows of obs or var: those of `joinids` that match `value_filter`. The default is all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisQuery {
    /// The coordinates.
    pub joinids: Joinids,
    /// The condition, if there is one.
    pub value_filter: Option<ValueFilter>,
}

/// Coordinates along an axis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Joinids {
    /// All that there are.
    #[default]
    All,
    /// A range, which may hold joinids that no row has.
    Range(Range<u64>),
    /// A list, in any order, none twice. Each must be there.
    List(Vec<u64>),
}

impl AxisQuery {
    /// All rows that match a filter in tiledbsoma's [grammar](crate::value_filter).
    pub fn filter(text: &str) -> Result<Self, Error> {
        Ok(Self { value_filter: Some(ValueFilter::parse(text)?), ..Self::default() })
    }

    /// The rows of a range of joinids.
    pub fn range(joinids: Range<u64>) -> Self {
        Self { joinids: Joinids::Range(joinids), value_filter: None }
    }

    /// The rows of a list of joinids.
    pub fn list(joinids: impl Into<Vec<u64>>) -> Self {
        Self { joinids: Joinids::List(joinids.into()), value_filter: None }
    }
}
