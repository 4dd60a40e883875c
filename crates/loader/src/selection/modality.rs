//! Modalities of a selection: further measurements of the same cells, and which cells they have.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{ArrowError, DataType};
use shuffle::RowSetBuilder;
use soma_io::{AxisQuery, DataFrame, Experiment, Measurement, ReaderChoice, XReader};

use super::{DatasetSpec, Genes, SelectedGenes, joinids, open_layer, texts};
use crate::beside::{Beside, BesideKind};
use crate::cells::{Cells, JOINID};
use crate::dataset::Dataset;
use crate::error::{ColumnsError, DatasetError, OpenError, columns_error, open_error};
use crate::selected::{ColumnPlaces, SelectedMatrix, aligned, is_present};

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

impl DatasetSpec {
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
        self.modalities.iter().map(|modality| self.names_of(experiment, modality)).collect()
    }

    fn names_of(
        &self,
        experiment: &Experiment,
        modality: &ModalitySpec,
    ) -> Result<(String, String), OpenError> {
        let name = &modality.name;
        let (measurement, layer) = match &modality.genes {
            // In another experiment the usual ones are meant.
            _ if modality.experiment.is_some() => (None, None),
            Genes::FeatureType(_) => (self.measurement.as_ref(), self.layer.as_deref()),
            _ => (Some(name), None),
        };
        let measurement = modality.measurement.as_ref().or(measurement);
        let layer = modality.layer.as_deref().or(layer);
        let experiment = modality.experiment.as_ref().unwrap_or(experiment);
        let names = experiment.names(measurement.map(String::as_str), layer);
        names.map_err(open_error(format!("the measurement of modality {name:?}")))
    }

    /// Opens the measurement of the modality at `idx`.
    pub(crate) fn open_modality(
        &self,
        experiment: &Experiment,
        idx: usize,
    ) -> Result<(Measurement, String), OpenError> {
        let modality = &self.modalities[idx];
        let (measurement, layer) = self.names_of(experiment, modality)?;
        let ModalitySpec { name, experiment: other, .. } = modality;
        let what = format!("measurement {measurement:?} of modality {name:?}");
        let experiment = other.as_ref().unwrap_or(experiment);
        Ok((experiment.measurement(&measurement).map_err(open_error(what))?, layer))
    }
}

/// Chooses the genes of X, or of the modality with this index.
pub(super) type Choose<'a> =
    dyn Fn(&Measurement, Option<usize>) -> Result<SelectedGenes, DatasetError> + 'a;

/// A layer of a measurement that is open: the address of the measurement, its layer, and the
/// reader.
type OpenLayer = (String, String, Arc<dyn XReader>);

impl Dataset {
    /// Adds the modalities of a specification. `open` has the layers that are open already.
    pub(super) fn with_modalities(
        self,
        (experiment, spec): (&Experiment, &DatasetSpec),
        presences: &Presences<'_>,
        mut open: Vec<OpenLayer>,
        choose: &Choose<'_>,
    ) -> Result<Self, DatasetError> {
        let mut dataset = self;
        for (idx, modality) in spec.modalities.iter().enumerate() {
            let (measurement, layer) = spec.open_modality(experiment, idx)?;
            // Columns are those of the cells, which a matrix of another experiment is joined to.
            let column = modality.presence.as_deref().filter(|_| modality.experiment.is_none());
            let present = presences.of(&measurement, column)?;
            let reader = modality_reader(&measurement, &layer, &mut open, spec.reader)?;
            let SelectedGenes { genes, rows: var, warning } = choose(&measurement, Some(idx))?;
            let columns = ColumnPlaces::aligned(&genes, reader.n_columns());
            let columns = columns.map_err(|source| {
                Beside::modality(&modality.name, 0).columns_error(&*reader, source)
            })?;
            let mut matrix = SelectedMatrix { present, ..SelectedMatrix::new(reader, columns) };
            if let Some(other) = &modality.experiment {
                let column = names_column(presences.frame, modality)?;
                matrix = presences.joined(matrix, (modality, other), &column)?;
            }
            dataset = dataset.with_modality_of(&modality.name, matrix, var)?;
            dataset.gene_warning = dataset.gene_warning.or_else(|| warning.map(Into::into));
        }
        Ok(dataset)
    }

    /// Only the cells that X or any modality has, or those that all have.
    pub(super) fn joined_cells(self, join: CellJoin) -> Result<Self, DatasetError> {
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
pub(super) struct Presences<'a> {
    /// All of obs.
    pub(super) frame: &'a DataFrame,
    /// The rows of the selected cells.
    pub(super) obs: &'a RecordBatch,
    /// The selected cells.
    pub(super) cells: &'a Cells,
}

impl Presences<'_> {
    /// By joinid, whether a measurement has a cell, by itself and by the obs column of this name;
    /// `None` if it has all.
    pub(super) fn of(
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
            let has_cell = is_there && is_present(by_itself.as_ref(), joinid);
            present.set_bit(joinid as usize, has_cell);
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
pub(super) fn names_column(
    obs: &DataFrame,
    modality: &ModalitySpec,
) -> Result<String, DatasetError> {
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
    open: &mut Vec<OpenLayer>,
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
