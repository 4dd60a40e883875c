//! Which part of an experiment is wanted, and taking it: cells and genes by joinid, by filter, or genes by name.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, DataType, Schema};
use soma_io::{AxisQuery, DataFrame, Experiment, Joinids, Measurement, ReaderChoice};

use crate::cells::{Cells, JOINID};
use crate::dataset::Dataset;
use crate::error::{Error, open};
use crate::selected_x::{GenePlaces, SelectedX};

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

impl Dataset {
    /// Opens X and reads the wanted obs and var columns of an experiment. A query that selects nothing gives a data set without
    /// rows.
    ///
    /// # Errors
    /// Measurements, layers and columns that do not exist; filters that do not fit them; cells and genes outside X; a gene's
    /// name that is asked for twice or that var has twice.
    pub fn from_experiment(experiment: &Experiment, spec: &DatasetSpec) -> Result<Self, Error> {
        let columns: Vec<&str> = spec.var_columns.iter().map(String::as_str).collect();
        Self::with_genes(experiment, spec, |measurement| {
            selected(measurement, &spec.genes, &columns)
        })
    }

    /// The cells of a specification, with the genes that `choose` chooses of the measurement.
    pub(crate) fn with_genes(
        experiment: &Experiment,
        spec: &DatasetSpec,
        choose: impl FnOnce(&Measurement) -> Result<Selected, Error>,
    ) -> Result<Self, Error> {
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

        let Selected { genes, rows: var } = choose(&measurement)?;
        let genes = GenePlaces::aligned(&genes, reader.n_columns())?;
        let dataset = Self::of_source(SelectedX { x: reader, cells, genes }, obs, var)?;
        match totals {
            Some(totals) => dataset.with_totals(totals),
            None => Ok(dataset),
        }
    }
}

fn with_joinid<'a>(columns: &[&'a str]) -> Vec<&'a str> {
    let mut columns = columns.to_vec();
    if !columns.contains(&JOINID) {
        columns.push(JOINID);
    }
    columns
}

/// Genes of var, one for each column of a batch.
pub(crate) struct Selected {
    /// The joinid of each; none of a gene that is not there.
    pub(crate) genes: Vec<Option<u64>>,
    /// Their rows of var; null where a gene is not there.
    pub(crate) rows: RecordBatch,
}

/// The genes that are wanted, with these columns of var.
pub(crate) fn selected(
    measurement: &Measurement,
    genes: &Genes,
    columns: &[&str],
) -> Result<Selected, Error> {
    let var = measurement.var().map_err(open("var".to_owned()))?;
    match genes {
        Genes::Query(query) => queried(&var, query, columns),
        Genes::Named { column, names } => named(&var, column, names, columns),
    }
}

fn queried(var: &DataFrame, query: &AxisQuery, columns: &[&str]) -> Result<Selected, Error> {
    let mut rows = var
        .query(Some(&with_joinid(columns)), query)
        .map_err(open("the genes wanted".to_owned()))?;
    if let Joinids::List(list) = &query.joinids {
        rows = in_order_of(list, &rows).map_err(|source| Error::Columns { of: "var", source })?;
    }
    let genes = joinids(&rows)?.iter().map(|joinid| Some(*joinid as u64)).collect();
    let rows = project(&rows, columns).map_err(|source| Error::Columns { of: "var", source })?;
    Ok(Selected { genes, rows })
}

fn named(
    var: &DataFrame,
    column: &str,
    names: &[String],
    columns: &[&str],
) -> Result<Selected, Error> {
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
    let genes = found.iter().map(|row| row.map(|row| joinids[row as usize] as u64)).collect();
    let rows = project(&rows, columns)
        .and_then(|rows| take_or_null(&rows, &UInt32Array::from(found)))
        .map_err(|source| Error::Columns { of: "var", source })?;
    Ok(Selected { genes, rows })
}

/// A column's texts, whether they are stored plainly or as categories.
pub(crate) fn texts(rows: &RecordBatch, name: &str) -> Result<Vec<Option<String>>, Error> {
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
pub(crate) fn take_or_null(
    rows: &RecordBatch,
    places: &UInt32Array,
) -> Result<RecordBatch, ArrowError> {
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
pub(crate) fn project(batch: &RecordBatch, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema_ref();
    let positions =
        names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    batch.project(&positions)
}
