//! Opens a selection of an experiment as a data set: cells and genes by joinid or filter, genes
//! also by name.

mod modality;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, DataType, Schema};
use soma_io::{AxisQuery, DataFrame, Experiment, Joinids, Measurement, ReaderChoice, XReader};

pub use self::modality::{CellJoin, ModalitySpec};
use self::modality::{Presences, names_column};
use crate::cells::{CollectedCells, JOINID};
use crate::dataset::{Dataset, genes_error};
use crate::error::{ColumnsError, DatasetError, OpenError, columns_error, open_error};
use crate::gene_names;
use crate::neighbours::NeighbourSpec;
use crate::selected::{ColumnPlaces, Selected};

/// Selects a part of an experiment. The default is all of layer `raw` of measurement `RNA`, without
/// obs or var columns, and without other matrices beside X.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    /// The measurement; `None` is `RNA`, or else the only one
    /// ([`Experiment::default_measurement`]).
    pub measurement: Option<String>,
    /// The layer of X; `None` is `raw` or `data`, or `X` of an AnnData, or else the only one
    /// ([`Measurement::default_layer`]).
    pub layer: Option<String>,
    /// Further layers that come beside X ([`Batch::layers`](crate::Batch::layers)), with the same
    /// genes. May include `layer`, whose values then come once transformed and once as stored.
    pub layers: Vec<String>,
    /// Arrays of obsm that come beside X ([`Batch::obsm`](crate::Batch::obsm)), for example
    /// `X_pca`, with all columns that are [in use](soma_io::Matrix::used_columns). A value
    /// that a sparse one does not store is 0.
    pub obsm: Vec<String>,
    /// Further measurements of the same cells ([`Batch::modalities`](crate::Batch::modalities)),
    /// for example proteins or peaks, each with genes of its own.
    pub modalities: Vec<ModalitySpec>,
    /// Neighbours of each cell by a graph of obsp of the measurement of X, whose rows of X come
    /// with the batch ([`Batch::neighbours`](crate::Batch::neighbours)).
    pub neighbours: Option<NeighbourSpec>,
    /// The obs column of booleans that says whether X has a cell
    /// ([`Batch::present`](crate::Batch::present)); null means no. `None` means that X has all
    /// cells, except those that a MuData says it lacks.
    pub presence: Option<String>,
    /// Which cells come if X or a modality lacks some.
    pub cell_join: CellJoin,
    /// The cells. Without shuffling they come by ascending joinid.
    pub cells: AxisQuery,
    /// The obs columns of each batch; may be empty, and may include `soma_joinid`.
    pub obs_columns: Vec<String>,
    /// The genes, which are the columns of every batch.
    pub genes: Genes,
    /// The columns of [`Dataset::var`]; may be empty, and may include `soma_joinid`.
    pub var_columns: Vec<String>,
    /// The obs column with each cell's total over all genes, for example `raw_sum` in the Census,
    /// to [scale](crate::Totals::Obs) values by.
    pub totals: Option<String>,
    /// The reader of X and of the matrices beside it.
    pub reader: ReaderChoice,
}

impl Default for DatasetSpec {
    fn default() -> Self {
        Self {
            measurement: None,
            layer: None,
            layers: Vec::new(),
            obsm: Vec::new(),
            modalities: Vec::new(),
            neighbours: None,
            presence: None,
            cell_join: CellJoin::Union,
            cells: AxisQuery::default(),
            obs_columns: Vec::new(),
            genes: Genes::default(),
            var_columns: Vec::new(),
            totals: None,
            reader: ReaderChoice::Auto,
        }
    }
}

impl DatasetSpec {
    /// Opens the measurement.
    pub(crate) fn open_measurement(
        &self,
        experiment: &Experiment,
    ) -> Result<Measurement, OpenError> {
        let name = self.measurement.clone().map_or_else(|| experiment.default_measurement(), Ok);
        let name = name.map_err(open_error("the measurement".to_owned()))?;
        experiment.measurement(&name).map_err(open_error(format!("measurement {name:?}")))
    }
}

/// Selects genes, in the order of the batch columns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Genes {
    /// The genes of a query on var, by ascending joinid; a list of joinids keeps its order.
    Query(AxisQuery),
    /// One gene per name, in this order, for example a model's own list. Genes that the experiment
    /// lacks are columns of zeros ([`Dataset::n_absent_genes`]). At least one must be there, and
    /// [`Dataset::gene_warning`] is a text if fewer than half are.
    Named {
        /// The var column with the names, for example `feature_id`.
        column: String,
        /// Distinct names.
        names: Vec<String>,
    },
    /// The genes of one feature type, for example `Gene Expression`, `Antibody Capture` or `Peaks`:
    /// those with this text in the var column `feature_types`, as matrices of 10x Genomics have it.
    FeatureType(String),
}

impl Default for Genes {
    fn default() -> Self {
        Self::Query(AxisQuery::default())
    }
}

impl Dataset {
    /// Opens X of an experiment and reads the requested obs and var columns. If the query selects
    /// no cells, the data set has no rows.
    ///
    /// # Errors
    /// A measurement, layer, array of obsm, modality or column does not exist; a filter does not
    /// fit the columns; cells or genes are outside X or a matrix beside it; a matrix is listed
    /// twice; a gene's name is listed twice, or is twice in var; none of the named genes is there.
    pub fn from_experiment(
        experiment: &Experiment,
        spec: &DatasetSpec,
    ) -> Result<Self, DatasetError> {
        let columns: Vec<&str> = spec.var_columns.iter().map(String::as_str).collect();
        Self::with_genes(experiment, spec, |measurement, modality| match modality {
            None => select_genes(measurement, &spec.genes, &columns),
            Some(idx) => {
                let ModalitySpec { genes, var_columns, .. } = &spec.modalities[idx];
                let columns: Vec<&str> = var_columns.iter().map(String::as_str).collect();
                select_genes(measurement, genes, &columns)
            }
        })
    }

    /// Opens the cells of a specification, with the genes that `choose` selects of X, or of the
    /// modality with this index.
    pub(crate) fn with_genes(
        experiment: &Experiment,
        spec: &DatasetSpec,
        choose: impl Fn(&Measurement, Option<usize>) -> Result<SelectedGenes, DatasetError>,
    ) -> Result<Self, DatasetError> {
        let measurement = spec.open_measurement(experiment)?;
        let main = spec.layer.clone().map_or_else(|| measurement.default_layer(), Ok);
        let main = main.map_err(open_error("the layer of X".to_owned()))?;
        let x = open_layer(&measurement, &main, spec.reader)?;

        let requested: Vec<&str> = spec.obs_columns.iter().map(String::as_str).collect();
        let mut needed = requested.clone();
        needed.extend(spec.totals.as_deref());
        needed.extend(spec.presence.as_deref());
        needed.extend(spec.modalities.iter().filter_map(|of| of.presence.as_deref()));
        let frame = experiment.obs().map_err(open_error("obs".to_owned()))?;
        let others = spec.modalities.iter().filter(|of| of.experiment.is_some());
        let joined = others.map(|of| names_column(&frame, of)).collect::<Result<Vec<_>, _>>()?;
        needed.extend(joined.iter().map(String::as_str));
        let mut seen = HashSet::new();
        needed.retain(|name| seen.insert(*name));
        let mut cells = CollectedCells::default();
        let obs = frame
            .select(Some(&needed), &spec.cells, &mut |joinids| cells.add(joinids))
            .map_err(open_error(format!(
                "obs columns {} of the selected cells",
                with_joinid(&needed).join(", ")
            )))?;
        let cells = cells.finish()?;
        let totals = spec.totals.as_deref().map(|column| numbers(&obs, column)).transpose()?;
        let presences = Presences { frame: &frame, obs: &obs, cells: &cells };
        let of_x = presences.of(&measurement, spec.presence.as_deref())?;

        let SelectedGenes { genes, rows: var, warning } = choose(&measurement, None)?;
        let columns = ColumnPlaces::aligned(&genes, x.n_columns());
        let columns = columns.map_err(genes_error(x.n_columns()))?;
        let mut selected = Selected::new(cells.clone(), Arc::clone(&x), columns);
        selected.x.present = of_x;
        let requested = project(&obs, &requested).map_err(columns_error("obs"))?;
        let mut dataset = Self::of_source(selected, requested, var)?;
        dataset.gene_warning = warning.map(Into::into);
        dataset.unnamed_layer = spec.layer.is_none().then(|| main.as_str().into());
        for layer in &spec.layers {
            let reader = if *layer == main {
                Arc::clone(&x)
            } else {
                open_layer(&measurement, layer, spec.reader)?
            };
            dataset = dataset.with_layer_of(layer, reader, &genes)?;
        }
        for name in &spec.obsm {
            let failed = || open_error(format!("array {name:?} of obsm"));
            let array = measurement.obsm(name).map_err(failed())?;
            let n_columns = array.used_columns().map_err(failed())?;
            let reader = array.reader(spec.reader).map_err(failed())?;
            dataset = dataset.with_obsm_columns(name, reader, n_columns)?;
        }
        if let Some(totals) = totals {
            dataset = dataset.with_totals(totals)?;
        }
        let dataset = dataset.with_graph_of(&measurement, spec.neighbours.as_ref(), spec.reader)?;
        let open = vec![(measurement.uri().to_owned(), main, x)];
        let dataset = dataset.with_modalities((experiment, spec), &presences, open, &choose)?;
        dataset.joined_cells(spec.cell_join)
    }
}

/// Opens a reader of a layer of X.
fn open_layer(
    measurement: &Measurement,
    layer: &str,
    reader: ReaderChoice,
) -> Result<Arc<dyn XReader>, OpenError> {
    let x = measurement.x(layer).map_err(open_error(format!("layer {layer:?} of X")))?;
    x.reader(reader).map_err(open_error(format!("a reader of layer {layer:?}")))
}

fn with_joinid<'a>(columns: &[&'a str]) -> Vec<&'a str> {
    let mut columns = columns.to_vec();
    if !columns.contains(&JOINID) {
        columns.push(JOINID);
    }
    columns
}

/// Genes of var, one per batch column.
pub(crate) struct SelectedGenes {
    /// The joinid of each gene; `None` if the experiment lacks it.
    pub(crate) genes: Vec<Option<u64>>,
    /// The var row of each gene; null if the experiment lacks it.
    pub(crate) rows: RecordBatch,
    /// What to say if the experiment lacks most of the named genes.
    pub(crate) warning: Option<String>,
}

/// Reads the selected genes with these columns of var.
pub(crate) fn select_genes(
    measurement: &Measurement,
    genes: &Genes,
    columns: &[&str],
) -> Result<SelectedGenes, DatasetError> {
    let var = measurement.var().map_err(open_error("var".to_owned()))?;
    match genes {
        Genes::Query(query) => genes_of_query(&var, query, columns),
        Genes::Named { column, names } => genes_by_name(&var, column, names, columns),
        Genes::FeatureType(name) => genes_of_feature_type(&var, name, columns),
    }
}

/// The var column with the feature types, as scanpy calls it.
const FEATURE_TYPES: &str = "feature_types";

/// Reads the genes of a feature type, with these columns of var.
fn genes_of_feature_type(
    var: &DataFrame,
    name: &str,
    columns: &[&str],
) -> Result<SelectedGenes, DatasetError> {
    let uri = || var.uri().to_owned();
    let none =
        |existing| DatasetError::NoFeatureType { uri: uri(), name: name.to_owned(), existing };
    if var.schema().column_with_name(FEATURE_TYPES).is_none() {
        return Err(none(Vec::new()));
    }
    let mut needed = with_joinid(columns);
    needed.push(FEATURE_TYPES);
    let rows = var
        .query(Some(&needed), &AxisQuery::default())
        .map_err(open_error("the feature types of the genes".to_owned()))?;
    let types = texts("var", &rows, FEATURE_TYPES)?;
    let of_type = (0..).zip(&types).filter(|(_, of)| of.as_deref() == Some(name));
    let places: UInt32Array = of_type.map(|(row, _)| Some(row)).collect();
    if places.is_empty() {
        let existing: BTreeSet<String> = types.into_iter().flatten().collect();
        return Err(none(existing.into_iter().collect()));
    }
    let rows = take_or_null(&rows, &places).map_err(columns_error("var"))?;
    let genes = joinids(&rows)?.iter().map(|joinid| Some(*joinid as u64)).collect();
    let rows = project(&rows, columns).map_err(columns_error("var"))?;
    Ok(SelectedGenes { genes, rows, warning: None })
}

/// Reads the genes of a query, with these columns of var.
fn genes_of_query(
    var: &DataFrame,
    query: &AxisQuery,
    columns: &[&str],
) -> Result<SelectedGenes, DatasetError> {
    let mut rows = var
        .query(Some(&with_joinid(columns)), query)
        .map_err(open_error("the selected genes".to_owned()))?;
    if let Joinids::List(list) = &query.joinids {
        rows = in_order_of(list, &rows).map_err(columns_error("var"))?;
    }
    let genes = joinids(&rows)?.iter().map(|joinid| Some(*joinid as u64)).collect();
    let rows = project(&rows, columns).map_err(columns_error("var"))?;
    Ok(SelectedGenes { genes, rows, warning: None })
}

/// Reads the genes with these names in `column`, with these columns of var.
fn genes_by_name(
    var: &DataFrame,
    column: &str,
    names: &[String],
    columns: &[&str],
) -> Result<SelectedGenes, DatasetError> {
    let mut needed = with_joinid(columns);
    needed.push(column);
    let rows = var
        .query(Some(&needed), &AxisQuery::default())
        .map_err(open_error(format!("the genes by their {column}")))?;
    let existing = texts("var", &rows, column)?;
    let mut row_of: HashMap<&str, (u32, bool)> = HashMap::with_capacity(existing.len());
    for (row, name) in (0..).zip(&existing) {
        if let Some(name) = name {
            row_of.entry(name).and_modify(|(_, twice)| *twice = true).or_insert((row, false));
        }
    }
    let mut gene_rows = Vec::with_capacity(names.len());
    let mut seen = HashSet::with_capacity(names.len());
    for name in names {
        let gene = row_of.get(name.as_str());
        if gene.is_some_and(|(_, twice)| *twice) || !seen.insert(name) {
            return Err(DatasetError::GeneTwice { column: column.to_owned(), name: name.clone() });
        }
        gene_rows.push(gene.map(|(row, _)| *row));
    }
    let n_known = gene_rows.iter().flatten().count();
    let warning = gene_names::check(var, column, names, &existing, n_known)?;
    let joinids = joinids(&rows)?;
    let genes = gene_rows.iter().map(|row| row.map(|row| joinids[row as usize] as u64)).collect();
    let rows = project(&rows, columns)
        .and_then(|rows| take_or_null(&rows, &UInt32Array::from(gene_rows)))
        .map_err(columns_error("var"))?;
    Ok(SelectedGenes { genes, rows, warning })
}

/// The texts of a column, plain or a dictionary.
pub(crate) fn texts(
    of: &'static str,
    rows: &RecordBatch,
    name: &str,
) -> Result<Vec<Option<String>>, ColumnsError> {
    let broken = columns_error(of);
    let column = rows.column(rows.schema_ref().index_of(name).map_err(broken)?);
    let texts = arrow_cast::cast(column, &DataType::LargeUtf8).map_err(broken)?;
    Ok(texts.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect())
}

/// The numbers of a column; NaN for null.
fn numbers(rows: &RecordBatch, name: &str) -> Result<Vec<f64>, ColumnsError> {
    let broken = columns_error("obs");
    let column = rows.column(rows.schema_ref().index_of(name).map_err(broken)?);
    if !column.data_type().is_numeric() {
        let problem =
            format!("column {name} has type {}, but totals are numbers", column.data_type());
        return Err(broken(ArrowError::CastError(problem)));
    }
    let numbers = arrow_cast::cast(column, &DataType::Float64).map_err(broken)?;
    Ok(numbers.as_primitive::<Float64Type>().iter().map(|n| n.unwrap_or(f64::NAN)).collect())
}

fn joinids(rows: &RecordBatch) -> Result<&[i64], DatasetError> {
    rows.column_by_name(JOINID)
        .and_then(|column| column.as_primitive_opt::<Int64Type>())
        .filter(|joinids| joinids.null_count() == 0 && joinids.values().iter().all(|id| *id >= 0))
        .map(|joinids| joinids.values().as_ref())
        .ok_or_else(|| DatasetError::JoinidColumn {
            problem: "var has no int64 column of joinids from 0 on".to_owned(),
        })
}

/// Reorders rows, which ascend by joinid, by a list of joinids. Joinids without a row are left out.
fn in_order_of(list: &[u64], rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let joinids: &Int64Array = rows
        .column(rows.schema_ref().index_of(JOINID)?)
        .as_primitive_opt()
        .ok_or_else(|| ArrowError::SchemaError(format!("column {JOINID} is not of type int64")))?;
    let places = list
        .iter()
        .filter_map(|joinid| joinids.values().binary_search(&(*joinid as i64)).ok())
        .map(|row| row as u32);
    take_or_null(rows, &UInt32Array::from_iter_values(places))
}

/// The rows at these positions; a null position makes a row of nulls.
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

/// The columns with these names, in this order; `names` may be empty.
pub(crate) fn project(batch: &RecordBatch, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema_ref();
    let positions =
        names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    batch.project(&positions)
}
