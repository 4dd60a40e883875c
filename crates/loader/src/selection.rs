//! Opens a selection of an experiment as a data set: cells and genes by joinid or filter, genes
//! also by name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{ArrowError, DataType, Schema};
use shuffle::RowSetBuilder;
use soma_io::{AxisQuery, DataFrame, Experiment, Joinids, Measurement, ReaderChoice, XReader};

use crate::beside::BesideKind;
use crate::cells::{Cells, CollectedCells, JOINID};
use crate::dataset::{Dataset, genes_error};
use crate::error::{ColumnsError, DatasetError, MatrixError, OpenError, columns_error, open_error};
use crate::gene_names;
use crate::selected::{ColumnPlaces, Selected, SelectedMatrix, aligned};

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

/// A further measurement of the selected cells.
#[derive(Clone, Debug)]
pub struct ModalitySpec {
    /// Its name in the batch.
    pub name: String,
    /// The experiment that has it, for example an AnnData of the same cells in another file; `None`
    /// is that of X. Cells with the same name in both are the same.
    pub experiment: Option<Experiment>,
    /// The obs column with the names of cells, of both experiments; `None` is the first column of
    /// each, which is the index of an AnnData.
    pub names: Option<String>,
    /// The measurement; `None` is the one with this name, or that of X for genes of a
    /// [feature type](Genes::FeatureType).
    pub measurement: Option<String>,
    /// The layer of its X; `None` is [`Measurement::default_layer`], or that of X for genes of a
    /// feature type.
    pub layer: Option<String>,
    /// Its genes: proteins, peaks or other features.
    pub genes: Genes,
    /// The columns of [`Dataset::modality_var`].
    pub var_columns: Vec<String>,
    /// The obs column of booleans that says which cells were measured; null means no. SOMA stores
    /// nothing for a cell that was not measured, so without this column its row of zeros counts as
    /// measured. A MuData needs none.
    pub presence: Option<String>,
}

impl ModalitySpec {
    /// All genes of the measurement `name`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            experiment: None,
            names: None,
            measurement: None,
            layer: None,
            genes: Genes::default(),
            var_columns: Vec::new(),
            presence: None,
        }
    }
}

/// Which cells come if X or a modality lacks some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellJoin {
    /// Cells that X or any of the requested modalities has.
    #[default]
    Union,
    /// Cells that X and all of the requested modalities have.
    Intersection,
}

impl Default for DatasetSpec {
    fn default() -> Self {
        Self {
            measurement: None,
            layer: None,
            layers: Vec::new(),
            obsm: Vec::new(),
            modalities: Vec::new(),
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

    /// The names of the measurement and of the layer of each modality. Those that are `None` are
    /// chosen, as its fields say.
    ///
    /// # Errors
    /// There is no such measurement; a layer is not named and there are several; the experiment
    /// cannot be read.
    pub fn modality_names(
        &self,
        experiment: &Experiment,
    ) -> Result<Vec<(String, String)>, OpenError> {
        let names = |modality: &ModalitySpec| {
            let name = &modality.name;
            let failed = || open_error(format!("the measurement of modality {name:?}"));
            let (measurement, layer) = match &modality.genes {
                // In another experiment the usual ones are meant.
                _ if modality.experiment.is_some() => (None, None),
                Genes::FeatureType(_) => (self.measurement.as_ref(), self.layer.as_deref()),
                _ => (Some(name), None),
            };
            let measurement = modality.measurement.as_ref().or(measurement);
            let layer = modality.layer.as_deref().or(layer);
            let experiment = modality.experiment.as_ref().unwrap_or(experiment);
            experiment.names(measurement.map(String::as_str), layer).map_err(failed())
        };
        self.modalities.iter().map(names).collect()
    }

    /// Opens the measurement of the modality at `idx`.
    pub(crate) fn open_modality(
        &self,
        experiment: &Experiment,
        idx: usize,
    ) -> Result<(Measurement, String), OpenError> {
        let (measurement, layer) = self.modality_names(experiment)?.swap_remove(idx);
        let ModalitySpec { name, experiment: other, .. } = &self.modalities[idx];
        let what = format!("measurement {measurement:?} of modality {name:?}");
        let experiment = other.as_ref().unwrap_or(experiment);
        Ok((experiment.measurement(&measurement).map_err(open_error(what))?, layer))
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
        let presences = Presences { obs: &obs, cells: &cells };
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
        let mut open = vec![(measurement.uri().to_owned(), main, x)];
        for (idx, modality) in spec.modalities.iter().enumerate() {
            let (measurement, layer) = spec.open_modality(experiment, idx)?;
            // Columns are those of the cells, which a matrix of another experiment is joined to.
            let column = modality.presence.as_deref().filter(|_| modality.experiment.is_none());
            let present = presences.of(&measurement, column)?;
            let reader = modality_reader(&measurement, &layer, &mut open, spec.reader)?;
            let SelectedGenes { genes, rows: var, warning } = choose(&measurement, Some(idx))?;
            let columns = ColumnPlaces::aligned(&genes, reader.n_columns());
            let columns = columns.map_err(|source| modality_error(modality, &*reader, source))?;
            let mut matrix = SelectedMatrix { present, ..SelectedMatrix::new(reader, columns) };
            if let Some(other) = &modality.experiment {
                let column = names_column(&frame, modality)?;
                matrix = presences.joined(matrix, (modality, other), &column)?;
            }
            dataset = dataset.with_modality_of(&modality.name, matrix, var)?;
            dataset.gene_warning = dataset.gene_warning.or_else(|| warning.map(Into::into));
        }
        dataset.joined_cells(spec.cell_join)
    }

    /// Only the cells that X or any modality has, or those that all have.
    fn joined_cells(self, join: CellJoin) -> Result<Self, DatasetError> {
        let has_mask = |matrix: &SelectedMatrix| matrix.present.is_some();
        let matrices: Vec<SelectedMatrix> = self
            .matrices()
            .filter(|of| of.beside.is_none_or(|of| of.kind == BesideKind::Modality))
            .flat_map(|of| of.of_each.into_iter().cloned())
            .collect();
        let drops = match join {
            CellJoin::Union => matrices.iter().all(has_mask),
            CellJoin::Intersection => matrices.iter().any(has_mask),
        };
        let [source] = &self.sources[..] else { return Ok(self) };
        if !drops {
            return Ok(self);
        }
        let mut rows = RowSetBuilder::default();
        for (row, joinid) in (0..).zip(source.cells.joinids()) {
            let has_cell = |matrix: &SelectedMatrix| matrix.has_cell(joinid);
            let is_wanted = match join {
                CellJoin::Union => matrices.iter().any(has_cell),
                CellJoin::Intersection => matrices.iter().all(has_cell),
            };
            if is_wanted && rows.push(row).is_err() {
                unreachable!("rows are counted up")
            }
        }
        Ok(self.part(&rows.finish())?)
    }
}

/// What obs says of the presence of cells in measurements.
struct Presences<'a> {
    obs: &'a RecordBatch,
    /// The cells of the rows of obs.
    cells: &'a Cells,
}

impl Presences<'_> {
    /// By joinid, whether a measurement has a cell, by itself and by the obs column of this name;
    /// `None` if it has all.
    fn of(
        &self,
        measurement: &Measurement,
        column: Option<&str>,
    ) -> Result<Option<BooleanBuffer>, DatasetError> {
        let what = || format!("which cells measurement {:?} has", measurement.uri());
        let by_itself = measurement.present().map_err(open_error(what()))?;
        let Some(column) = column else { return Ok(by_itself) };
        let of_rows = booleans(self.obs, column)?;
        let mut present = BooleanBufferBuilder::new(self.cells.end() as usize);
        present.append_n(self.cells.end() as usize, false);
        for (joinid, is_there) in self.cells.joinids().zip(&of_rows) {
            let joinid = joinid as usize;
            let has_cell = |all: &BooleanBuffer| joinid < all.len() && all.value(joinid);
            present.set_bit(joinid, is_there && by_itself.as_ref().is_none_or(has_cell));
        }
        Ok(Some(present.finish()))
    }

    /// A matrix of another experiment, whose rows become those of the cells of the same names.
    /// `column` has the names of the selected cells.
    fn joined(
        &self,
        matrix: SelectedMatrix,
        (modality, other): (&ModalitySpec, &Experiment),
        column: &str,
    ) -> Result<SelectedMatrix, DatasetError> {
        let what = format!("the names of cells in the experiment of modality {:?}", modality.name);
        let failed = || open_error(what.clone());
        let problem = |problem: String| {
            let modality = modality.name.clone();
            DatasetError::NoCommonCells { modality, problem }
        };
        let obs = other.obs().map_err(failed())?;
        let of_other = names_column(&obs, modality)?;
        let read = obs.query(Some(&[JOINID, &of_other]), &AxisQuery::default()).map_err(failed())?;
        let names = texts("obs", &read, &of_other)?;
        let rows = rows_of_names(&names, joinids(&read)?).map_err(problem)?;
        let is_there = |row: &u32| matrix.has_cell(u64::from(*row) - 1);
        let mut of_cells = vec![0; self.cells.end() as usize];
        for (joinid, name) in self.cells.joinids().zip(texts("obs", self.obs, column)?) {
            let row = name.and_then(|name| rows.get(name.as_str()).copied());
            of_cells[joinid as usize] = row.filter(is_there).unwrap_or(0);
        }
        if self.cells.n_rows() > 0 && of_cells.iter().all(|row| *row == 0) {
            let text = format!("no selected cell of column {column:?} is in column {of_other:?}");
            return Err(problem(text));
        }
        if let Some(presence) = &modality.presence {
            for (joinid, is_there) in self.cells.joinids().zip(&booleans(self.obs, presence)?) {
                of_cells[joinid as usize] *= u32::from(is_there);
            }
        }
        let present = Some(of_cells.iter().map(|row| *row > 0).collect());
        let rows: Arc<[u32]> = of_cells.into();
        let reader = aligned(matrix.reader, &format!("modality {:?}", modality.name), &rows)?;
        Ok(SelectedMatrix { reader, present, rows: Some(rows), columns: matrix.columns })
    }
}

/// The obs column with the names of cells by which a modality of another experiment is joined.
fn names_column(obs: &DataFrame, modality: &ModalitySpec) -> Result<String, DatasetError> {
    let first = || obs.schema().fields().iter().find(|field| field.name() != JOINID);
    let column = modality.names.clone().or_else(|| Some(first()?.name().clone()));
    column.ok_or_else(|| DatasetError::NoCommonCells {
        modality: modality.name.clone(),
        problem: format!("obs of {} has no column with their names", obs.uri()),
    })
}

/// The row of each name in a table, counted from 1.
fn rows_of_names<'a>(
    names: &'a [Option<String>],
    joinids: &[i64],
) -> Result<HashMap<&'a str, u32>, String> {
    let mut rows: HashMap<&str, u32> = HashMap::with_capacity(names.len());
    for (name, joinid) in names.iter().zip(joinids) {
        let Some(name) = name else { continue };
        let row = u32::try_from(*joinid + 1).map_err(|_| "it has too many cells".to_owned())?;
        if rows.insert(name, row).is_some() {
            return Err(format!("two cells there are called {name:?}"));
        }
    }
    Ok(rows)
}

/// The reader of a modality's X: one that is open already, if it is of the same matrix.
fn modality_reader(
    measurement: &Measurement,
    layer: &str,
    open: &mut Vec<(String, String, Arc<dyn XReader>)>,
    reader: ReaderChoice,
) -> Result<Arc<dyn XReader>, OpenError> {
    let uri = measurement.uri();
    let known = open.iter().find(|(of, name, _)| of == uri && name == layer);
    if let Some((_, _, reader)) = known {
        return Ok(Arc::clone(reader));
    }
    let opened = open_layer(measurement, layer, reader)?;
    open.push((uri.to_owned(), layer.to_owned(), Arc::clone(&opened)));
    Ok(opened)
}

/// The error of genes that the X of a modality lacks.
fn modality_error(
    modality: &ModalitySpec,
    reader: &dyn XReader,
    source: soma_io::Error,
) -> MatrixError {
    let matrix = format!("modality {:?}", modality.name);
    MatrixError::ColumnsOutside { matrix, n_columns: reader.n_columns(), source: Box::new(source) }
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

/// The booleans of a column, or its numbers that are not zero; false for null.
fn booleans(rows: &RecordBatch, name: &str) -> Result<BooleanBuffer, ColumnsError> {
    let broken = columns_error("obs");
    let column = rows.column(rows.schema_ref().index_of(name).map_err(broken)?);
    let plain = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        plain => plain,
    };
    if *plain != DataType::Boolean && !plain.is_integer() {
        let problem =
            format!("column {name} has type {plain}, but presence is a column of booleans");
        return Err(broken(ArrowError::CastError(problem)));
    }
    let column = arrow_cast::cast(column, plain).map_err(broken)?;
    let column = arrow_cast::cast(&column, &DataType::Boolean).map_err(broken)?;
    let column = column.as_boolean();
    Ok(match column.nulls() {
        Some(nulls) => column.values() & nulls.inner(),
        None => column.values().clone(),
    })
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
