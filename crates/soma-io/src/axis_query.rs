//! Selects cells or genes: by joinid, by the values of their columns, or by both.

use std::ops::Range;

use crate::{Error, ValueFilter};

/// Selects rows of obs or var: those of `joinids` that match `value_filter`. The default selects
/// all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisQuery {
    /// The joinids to select from.
    pub joinids: Joinids,
    /// The condition; `None` accepts every row.
    pub value_filter: Option<ValueFilter>,
}

/// Joinids along an axis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Joinids {
    /// All rows.
    #[default]
    All,
    /// A range, which may contain joinids that no row has.
    Range(Range<u64>),
    /// A list of distinct joinids in any order. Each must exist.
    List(Vec<u64>),
}

impl AxisQuery {
    /// Selects all rows that match a filter in tiledbsoma's [grammar](crate::value_filter).
    pub fn filter(text: &str) -> Result<Self, Error> {
        Ok(Self { value_filter: Some(ValueFilter::parse(text)?), ..Self::default() })
    }

    /// Selects the rows in a range of joinids.
    pub fn range(joinids: Range<u64>) -> Self {
        Self { joinids: Joinids::Range(joinids), value_filter: None }
    }

    /// Selects the rows in a list of joinids.
    pub fn list(joinids: impl Into<Vec<u64>>) -> Self {
        Self { joinids: Joinids::List(joinids.into()), value_filter: None }
    }
}
