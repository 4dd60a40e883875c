//! The choice of genes: the first ones, those of a query, or a list of names.

use std::collections::{HashMap, HashSet};

use soma_io::{AxisQuery, DataFrame, RowRanges};

use crate::cells::{joinids, texts};
use crate::rows::Rows;
use crate::{Error, JOINID};

/// The genes to copy. They keep the order of the source, whatever the order of their names.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Genes {
    /// All genes.
    #[default]
    All,
    /// The first genes by joinid; all if there are not more.
    First(u64),
    /// The genes that a query on var selects.
    Query(AxisQuery),
    /// A list of genes.
    Named {
        /// Names of the genes, without duplicates.
        names: Vec<String>,
        /// The var column with the names. `None` for `feature_id` or `feature_name`: the one that
        /// has the first of the names that occurs in either.
        column: Option<String>,
        /// Whether names that var lacks are skipped.
        skip_absent: bool,
    },
}

/// Largest number of names in a message.
const MAX_NAMES: usize = 5;

/// The Census's columns, searched for genes if no column is named.
const NAME_COLUMNS: [&str; 2] = ["feature_id", "feature_name"];

impl Genes {
    /// The joinids of the genes.
    pub(crate) fn choose(&self, var: &DataFrame) -> Result<RowRanges, Error> {
        let genes = match self {
            Self::All => queried(var, &AxisQuery::default(), u64::MAX)?,
            Self::First(n_genes) => queried(var, &AxisQuery::default(), *n_genes)?,
            Self::Query(query) => queried(var, query, u64::MAX)?,
            Self::Named { names, column, skip_absent } => {
                named(var, names, column.as_deref(), *skip_absent)?
            }
        };
        if genes.n_rows() == 0 {
            return Err(Error::NoGenes { uri: var.uri().to_owned() });
        }
        Ok(genes)
    }
}

fn queried(var: &DataFrame, query: &AxisQuery, n_genes: u64) -> Result<RowRanges, Error> {
    let batch = var.query(Some(&[JOINID]), query)?;
    let mut genes = Rows::default();
    let most = usize::try_from(n_genes).unwrap_or(usize::MAX);
    for joinid in joinids(var, &batch)?.iter().take(most) {
        genes.push(*joinid as u64);
    }
    Ok(genes.finish()?)
}

fn named(
    var: &DataFrame,
    names: &[String],
    column: Option<&str>,
    skip_absent: bool,
) -> Result<RowRanges, Error> {
    let mut wanted = HashSet::with_capacity(names.len());
    for name in names {
        if !wanted.insert(name.as_str()) {
            let place = "the list of genes".to_owned();
            return Err(Error::GeneTwice { name: name.clone(), place, todo: "name it once" });
        }
    }
    let column = match column {
        Some(column) => column.to_owned(),
        None => column_of(var, names)?,
    };
    let joinid_of = joinids_by_name(var, &column, &wanted)?;
    let absent: Vec<&String> =
        names.iter().filter(|name| !joinid_of.contains_key(name.as_str())).collect();
    if !absent.is_empty() && !skip_absent {
        return Err(Error::AbsentGenes {
            uri: var.uri().to_owned(),
            column,
            n_absent: absent.len(),
            n_genes: names.len(),
            first: absent.into_iter().take(MAX_NAMES).cloned().collect(),
        });
    }
    let mut found: Vec<u64> = joinid_of.into_values().collect();
    found.sort_unstable();
    let mut genes = Rows::default();
    for joinid in found {
        genes.push(joinid);
    }
    Ok(genes.finish()?)
}

/// The joinids of the `wanted` names that the column has.
fn joinids_by_name(
    var: &DataFrame,
    column: &str,
    wanted: &HashSet<&str>,
) -> Result<HashMap<String, u64>, Error> {
    let batch = var.query(Some(&[JOINID, column]), &AxisQuery::default())?;
    let mut joinid_of = HashMap::with_capacity(wanted.len());
    for (joinid, name) in joinids(var, &batch)?.iter().zip(texts(var, &batch, column)?.iter()) {
        let Some(name) = name.filter(|name| wanted.contains(name)) else { continue };
        if joinid_of.insert(name.to_owned(), *joinid as u64).is_some() {
            return Err(Error::GeneTwice {
                name: name.to_owned(),
                place: format!("column {column} of {}", var.uri()),
                todo: "choose a column with distinct names",
            });
        }
    }
    Ok(joinid_of)
}

/// The column that has the first of the names that occurs in any.
fn column_of(var: &DataFrame, names: &[String]) -> Result<String, Error> {
    let there: Vec<&str> = NAME_COLUMNS
        .into_iter()
        .filter(|column| var.schema().field_with_name(column).is_ok())
        .collect();
    let mut first_of: Vec<(usize, &str)> = Vec::with_capacity(there.len());
    for column in &there {
        let batch = var.query(Some(&[column]), &AxisQuery::default())?;
        let texts = texts(var, &batch, column)?;
        let known: HashSet<&str> = texts.iter().flatten().collect();
        let first = names.iter().position(|name| known.contains(name.as_str()));
        first_of.push((first.unwrap_or(names.len()), column));
    }
    // If both have the same first name, the column listed first.
    let best = first_of.into_iter().min_by_key(|(first, _)| *first);
    Ok(best.map_or(NAME_COLUMNS[0], |(_, column)| column).to_owned())
}
