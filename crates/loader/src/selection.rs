//! Which part of an experiment is wanted, and taking it: cells and genes by joinid, by filter, or genes by name.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, DataType, Schema};
use soma_io::{AxisQuery, DataFrame, Experiment, GeneSelection, Joinids, ReaderChoice};

use crate::cells::{Cells, JOINID};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::source::{GenePlaces, Source};

/// Which part of an experiment is wanted. The default is all of `RNA`'s layer `raw`, without obs or var columns.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    /// The measurement, as `RNA`.
    pub measurement: String,
    /// The layer of X, as `raw`.
    pub layer: String,
    /// The cells, which come by ascending joinid where the order is not shuffled.
    pub cells: AxisQuery,
    /// The obs columns that come beside each batch. May be none; `soma_joinid` may be one.
    pub obs_columns: Vec<String>,
    /// The genes, which are the columns of every batch.
    pub genes: Genes,
    /// The var columns that [`Dataset::var`] has. May be none; `soma_joinid` may be one.
    pub var_columns: Vec<String>,
    /// The obs column with each cell's total of all genes, as the Census's `raw_sum`, where values are to be
    /// [scaled](crate::Totals::Obs) by it.
    pub totals: Option<String>,
    /// What reads X.
    pub reader: ReaderChoice,
}

impl Default for DatasetSpec {
    fn default() -> Self {
        Self {
            measurement: "RNA".to_owned(),
            layer: "raw".to_owned(),
            cells: AxisQuery::default(),
            obs_columns: Vec::new(),
            genes: Genes::default(),
            var_columns: Vec::new(),
            totals: None,
            reader: ReaderChoice::Auto,
        }
    }
}

/// The genes that are wanted, and so which column of a batch is which gene.
#[derive(Clone, Debug, PartialEq)]
pub enum Genes {
    /// Those of a query on var, by ascending joinid; those of a list of joinids in the list's order.
    Query(AxisQuery),
    /// One for each name, in this order: a model's own list of genes, say. Genes that the experiment does not have are
    /// columns of zeros.
    Named {
        /// The var column that holds the names, as `feature_id`.
        column: String,
        /// The names, none twice.
        names: Vec<String>,
    },
}

impl Default for Genes {
    fn default() -> Self {
        Self::Query(AxisQuery::default())
    }
}

/// Which genes several experiments are given when they become one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneJoin {
    /// Those that all of them have, in the order of the first.
    Intersection,
    /// Those that any of them has, in the order in which they first come. Zero where an experiment does not have one.
    Union,
}

impl Dataset {
    /// Opens X and reads the wanted obs and var columns of an experiment. A query that selects nothing gives a data set without
    /// rows.
    ///
    /// # Errors
    /// Measurements, layers and columns that do not exist; filters that do not fit them; cells and genes outside X; a gene's
    /// name that is asked for twice or that var has twice.
    pub fn from_experiment(experiment: &Experiment, spec: &DatasetSpec) -> Result<Self, Error> {
        let measurement = experiment
            .measurement(&spec.measurement)
            .map_err(open(format!("measurement {:?}", spec.measurement)))?;
        let x = measurement.x(&spec.layer).map_err(open(format!("layer {:?} of X", spec.layer)))?;
        let reader =
            x.reader(spec.reader).map_err(open(format!("a reader of layer {:?}", spec.layer)))?;

        let wanted: Vec<&str> = spec.obs_columns.iter().map(String::as_str).collect();
        let mut needed = with_joinid(&wanted);
        needed.extend(spec.totals.as_deref());
        let obs = experiment
            .obs()
            .and_then(|obs| obs.query(Some(&needed), &spec.cells))
            .map_err(open(format!("obs columns {} of the cells wanted", needed.join(", "))))?;
        let cells = Cells::from_obs(&obs)?;
        let totals = spec.totals.as_deref().map(|column| numbers(&obs, column)).transpose()?;
        let obs = project(&obs, &wanted).map_err(|source| Error::Columns { of: "obs", source })?;

        let var = measurement.var().map_err(open("var".to_owned()))?;
        let wanted: Vec<&str> = spec.var_columns.iter().map(String::as_str).collect();
        let (genes, var) = match &spec.genes {
            Genes::Query(query) => queried(&var, query, &wanted, reader.n_columns())?,
            Genes::Named { column, names } => {
                named(&var, column, names, &wanted, reader.n_columns())?
            }
        };
        let dataset = Self::of_source(Source { x: reader, cells, genes }, obs, var)?;
        match totals {
            Some(totals) => dataset.with_totals(totals),
            None => Ok(dataset),
        }
    }

    /// Several experiments as one data set, their genes aligned by a var column (as `feature_id`, which the Census keeps from
    /// release to release). Each specification says which cells and genes of its experiment take part, by whichever column;
    /// genes named there that the experiment does not have do not take part. See [`Dataset::concat`].
    ///
    /// # Errors
    /// As those of [`Dataset::from_experiment`] and [`Dataset::concat`].
    pub fn from_experiments(
        experiments: &[(&Experiment, DatasetSpec)],
        gene_column: &str,
        join: GeneJoin,
    ) -> Result<Self, Error> {
        let mut of_each = Vec::with_capacity(experiments.len());
        for (experiment, spec) in experiments {
            of_each.push(names_of(experiment, spec, gene_column)?);
        }
        let names = joined(&of_each, join);
        let datasets = experiments
            .iter()
            .map(|(experiment, spec)| {
                let genes = Genes::Named { column: gene_column.to_owned(), names: names.clone() };
                Self::from_experiment(experiment, &DatasetSpec { genes, ..spec.clone() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Self::concat(&datasets)
    }
}

fn open(what: String) -> impl FnOnce(soma_io::Error) -> Error {
    move |source| Error::Open { what, source: Box::new(source) }
}

fn with_joinid<'a>(columns: &[&'a str]) -> Vec<&'a str> {
    let mut columns = columns.to_vec();
    if !columns.contains(&JOINID) {
        columns.push(JOINID);
    }
    columns
}

/// The genes of a query, and their rows of var.
fn queried(
    var: &DataFrame,
    query: &AxisQuery,
    columns: &[&str],
    x_columns: u64,
) -> Result<(GenePlaces, RecordBatch), Error> {
    let mut rows = var
        .query(Some(&with_joinid(columns)), query)
        .map_err(open("the genes wanted".to_owned()))?;
    if let Joinids::List(list) = &query.joinids {
        rows = in_order_of(list, &rows).map_err(|source| Error::Columns { of: "var", source })?;
    }
    let joinids: Vec<u64> = joinids(&rows)?.iter().map(|joinid| *joinid as u64).collect();
    let consecutive = joinids.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let selection = match (joinids.first(), joinids.last()) {
        (Some(0), Some(last)) if consecutive && last + 1 == x_columns => GeneSelection::All,
        (Some(first), Some(last)) if consecutive => GeneSelection::Range(*first..last + 1),
        _ => GeneSelection::List(joinids),
    };
    let rows = project(&rows, columns).map_err(|source| Error::Columns { of: "var", source })?;
    Ok((GenePlaces::new(selection, x_columns)?, rows))
}

/// The genes of these names, and their rows of var; nulls for those that are not there.
fn named(
    var: &DataFrame,
    column: &str,
    names: &[String],
    columns: &[&str],
    x_columns: u64,
) -> Result<(GenePlaces, RecordBatch), Error> {
    let mut needed = with_joinid(columns);
    needed.push(column);
    let rows = var
        .query(Some(&needed), &AxisQuery::default())
        .map_err(open(format!("the genes by their {column}")))?;
    let existing = texts(&rows, column)?;
    let mut row_of: HashMap<&str, (u32, bool)> = HashMap::with_capacity(existing.len());
    for (row, name) in (0..).zip(&existing) {
        if let Some(name) = name {
            row_of.entry(name).and_modify(|(_, twice)| *twice = true).or_insert((row, false));
        }
    }
    let mut found = Vec::with_capacity(names.len());
    let mut asked = std::collections::HashSet::with_capacity(names.len());
    for name in names {
        let gene = row_of.get(name.as_str());
        if gene.is_some_and(|(_, twice)| *twice) || !asked.insert(name) {
            return Err(Error::GeneTwice { column: column.to_owned(), name: name.clone() });
        }
        found.push(gene.map(|(row, _)| *row));
    }
    let joinids = joinids(&rows)?;
    let genes: Vec<Option<u64>> =
        found.iter().map(|row| row.map(|row| joinids[row as usize] as u64)).collect();
    let rows = project(&rows, columns)
        .and_then(|rows| take_or_null(&rows, &UInt32Array::from(found)))
        .map_err(|source| Error::Columns { of: "var", source })?;
    Ok((GenePlaces::aligned(&genes, x_columns)?, rows))
}

/// What `column` calls the genes that a specification selects and the experiment has.
fn names_of(
    experiment: &Experiment,
    spec: &DatasetSpec,
    column: &str,
) -> Result<Vec<String>, Error> {
    let failed = || open(format!("the genes by their {column}"));
    let measurement = experiment.measurement(&spec.measurement).map_err(failed())?;
    let var = measurement.var().map_err(failed())?;
    let rows = match &spec.genes {
        Genes::Query(query) => var.query(Some(&[column]), query).map_err(failed())?,
        Genes::Named { column: by, names } => {
            let x = measurement.x(&spec.layer).map_err(failed())?;
            named(&var, by, names, &[column], x.shape().1)?.1
        }
    };
    Ok(texts(&rows, column)?.into_iter().flatten().collect())
}

/// The names that the experiments are given.
fn joined(of_each: &[Vec<String>], join: GeneJoin) -> Vec<String> {
    let mut n_having: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for names in of_each {
        for name in names {
            *n_having.entry(name).or_insert_with(|| {
                order.push(name);
                0
            }) += 1;
        }
    }
    let least = match join {
        GeneJoin::Union => 1,
        GeneJoin::Intersection => of_each.len(),
    };
    order.into_iter().filter(|name| n_having[name] >= least).map(str::to_owned).collect()
}

/// A column's texts, whether they are stored plainly or as categories.
fn texts(rows: &RecordBatch, name: &str) -> Result<Vec<Option<String>>, Error> {
    let broken = |source| Error::Columns { of: "var", source };
    let column = rows.column(rows.schema_ref().index_of(name).map_err(broken)?);
    let texts = arrow_cast::cast(column, &DataType::LargeUtf8).map_err(broken)?;
    Ok(texts.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect())
}

/// A column's numbers; NaN where it is null.
fn numbers(rows: &RecordBatch, name: &str) -> Result<Vec<f64>, Error> {
    let broken = |source| Error::Columns { of: "obs", source };
    let column = rows.column(rows.schema_ref().index_of(name).map_err(broken)?);
    if !column.data_type().is_numeric() {
        let problem =
            format!("column {name} is of type {}, totals are numbers", column.data_type());
        return Err(broken(ArrowError::CastError(problem)));
    }
    let numbers = arrow_cast::cast(column, &DataType::Float64).map_err(broken)?;
    Ok(numbers.as_primitive::<Float64Type>().iter().map(|n| n.unwrap_or(f64::NAN)).collect())
}

fn joinids(rows: &RecordBatch) -> Result<&[i64], Error> {
    rows.column_by_name(JOINID)
        .and_then(|column| column.as_primitive_opt::<Int64Type>())
        .filter(|joinids| joinids.null_count() == 0 && joinids.values().iter().all(|id| *id >= 0))
        .map(|joinids| joinids.values().as_ref())
        .ok_or_else(|| Error::JoinidColumn {
            problem: "var has no column of joinids from 0 on".to_owned(),
        })
}

/// `rows`, which ascend by joinid, in the order of `list`; those of `list` that are not there are left out.
fn in_order_of(list: &[u64], rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some(column) = rows.column_by_name(JOINID) else { return Ok(rows.clone()) };
    let joinids: &Int64Array = column.as_primitive();
    let places = list
        .iter()
        .filter_map(|joinid| joinids.values().binary_search(&(*joinid as i64)).ok())
        .map(|row| row as u32);
    take_or_null(rows, &UInt32Array::from_iter_values(places))
}

/// Rows by their places; all null where there is none.
fn take_or_null(rows: &RecordBatch, places: &UInt32Array) -> Result<RecordBatch, ArrowError> {
    let columns: Vec<ArrayRef> = rows
        .columns()
        .iter()
        .map(|column| arrow_select::take::take(column, places, None))
        .collect::<Result<_, _>>()?;
    let nulls = places.null_count() > 0;
    let fields: Vec<_> = rows
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(field.is_nullable() || nulls))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// The columns of these names, in this order; may be none.
fn project(batch: &RecordBatch, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema_ref();
    let positions =
        names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    batch.project(&positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn genes_are_joined_in_the_order_in_which_they_come() {
        let of_each = [names("b a c"), names("c d b"), names("e b c")];
        assert_eq!(joined(&of_each, GeneJoin::Intersection), names("b c"));
        assert_eq!(joined(&of_each, GeneJoin::Union), names("b a c d e"));
        assert!(joined(&[names("a"), names("b")], GeneJoin::Intersection).is_empty());
    }
}
