//! Matrices beside X: further layers, arrays of obsm, and modalities.
//!
//! They have a row for each selected cell, so whatever chooses, orders or divides rows holds for
//! them, too. A modality may lack cells: their rows are zeros, and a mask says so.

use std::fmt;
use std::iter;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use soma_io::{GeneSelection, ReadForm, XReader};

use crate::dataset::Dataset;
use crate::error::{ConcatError, MatrixError};
use crate::selected::{ColumnPlaces, Selected, SelectedMatrix, is_same};
use crate::spec::{BatchForm, LoaderSpec};

/// A matrix beside X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) kind: BesideKind,
    pub(crate) name: String,
    /// Number of columns in a batch.
    pub(crate) n_columns: usize,
}

/// Kind of a matrix beside X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BesideKind {
    /// A further layer, with the genes of X as columns.
    Layer,
    /// An array of obsm, with columns of its own.
    Obsm,
    /// X of a further measurement, with genes of its own and maybe without some of the cells.
    Modality,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BesideKind::Layer => write!(f, "layer {:?}", self.name),
            BesideKind::Obsm => write!(f, "obsm array {:?}", self.name),
            BesideKind::Modality => write!(f, "modality {:?}", self.name),
        }
    }
}

/// One matrix of a data set: X or one beside it, in all experiments.
pub(crate) struct DatasetMatrix<'a> {
    /// `None` for X.
    pub(crate) beside: Option<&'a Beside>,
    /// Number of columns in a batch.
    pub(crate) n_columns: usize,
    /// The matrix of each experiment.
    pub(crate) of_each: Vec<&'a SelectedMatrix>,
}

impl DatasetMatrix<'_> {
    /// Whether rows can be read as packed CSR: the reader can, there is one experiment, and all
    /// batch columns are columns of it.
    pub(crate) fn packs(&self) -> bool {
        match &self.of_each[..] {
            [one] => !one.columns.is_placed() && one.reader.packs(&one.columns.selection),
            _ => false,
        }
    }

    /// Whether both are columns of the same rows in all experiments, which one read decodes for
    /// both.
    fn shares_rows_with(&self, other: &Self) -> bool {
        self.of_each.iter().zip(&other.of_each).all(|(one, other)| {
            is_same(&one.reader, &other.reader) && one.reader.whole_rows().is_some()
        })
    }

    /// Bytes of memory that reading `nnz` values needs at most, over all experiments.
    pub(crate) fn working_bytes(&self, nnz: u64, form: ReadForm) -> u64 {
        let bytes =
            |one: &&SelectedMatrix| one.reader.working_bytes(nnz, &one.columns.selection, form);
        self.of_each.iter().map(bytes).max().unwrap_or(0)
    }

    /// The form of this matrix in batches: arrays of obsm are always dense, and modalities may have
    /// forms of their own.
    pub(crate) fn batch_form(&self, spec: &LoaderSpec) -> BatchForm {
        let of_x = spec.batch_form;
        let Some(Beside { kind, name, .. }) = self.beside else { return of_x };
        match kind {
            BesideKind::Obsm if of_x.dense_type().is_none() => BatchForm::Dense,
            BesideKind::Modality => spec.modality_forms.get(name).copied().unwrap_or(of_x),
            BesideKind::Obsm | BesideKind::Layer => of_x,
        }
    }
}

impl Dataset {
    /// Adds a further layer, which [`Batch::layers`](crate::Batch::layers) then has: row and column
    /// of a value are the joinids of its cell and gene, like in X.
    ///
    /// # Errors
    /// The data set has several experiments, or this layer already; the layer has another number of
    /// columns than X, or too few rows for the selected cells.
    pub fn with_layer(self, name: &str, reader: Arc<dyn XReader>) -> Result<Self, MatrixError> {
        let n_columns = self.n_columns;
        let layer = Beside { kind: BesideKind::Layer, name: name.to_owned(), n_columns };
        let x = &self.only_source(&layer)?.x;
        let (found, of_x) = (reader.n_columns(), x.reader.n_columns());
        if found != of_x {
            let layer = layer.to_string();
            return Err(MatrixError::LayerColumns { layer, found, of_x });
        }
        let columns = x.columns.clone();
        self.with_matrix(layer, SelectedMatrix::new(reader, columns))
    }

    /// Adds a further layer of an experiment, with the same genes as X: the joinid of each, `None`
    /// for one that the experiment lacks.
    pub(crate) fn with_layer_of(
        self,
        name: &str,
        reader: Arc<dyn XReader>,
        genes: &[Option<u64>],
    ) -> Result<Self, MatrixError> {
        let n_columns = self.n_columns;
        let layer = Beside { kind: BesideKind::Layer, name: name.to_owned(), n_columns };
        let columns = ColumnPlaces::aligned(genes, reader.n_columns())
            .map_err(|source| layer.columns_error(&*reader, source))?;
        self.with_matrix(layer, SelectedMatrix::new(reader, columns))
    }

    /// Adds an array of obsm, which [`Batch::obsm`](crate::Batch::obsm) then has: the row of a
    /// value is the joinid of its cell. All its columns are read.
    ///
    /// # Errors
    /// The data set has several experiments, or this array already; the array has too few rows for
    /// the selected cells, or more columns than 32 bits can count.
    pub fn with_obsm(self, name: &str, reader: Arc<dyn XReader>) -> Result<Self, MatrixError> {
        let all = reader.n_columns();
        self.with_obsm_columns(name, reader, all)
    }

    /// Adds the first `n_columns` columns of an array of obsm.
    pub(crate) fn with_obsm_columns(
        self,
        name: &str,
        reader: Arc<dyn XReader>,
        n_columns: u64,
    ) -> Result<Self, MatrixError> {
        let mut array = Beside { kind: BesideKind::Obsm, name: name.to_owned(), n_columns: 0 };
        let selection = if n_columns == reader.n_columns() {
            GeneSelection::All
        } else {
            GeneSelection::Range(0..n_columns)
        };
        let columns = ColumnPlaces::new(selection, reader.n_columns())
            .map_err(|source| array.columns_error(&*reader, source))?;
        array.n_columns = columns.n_columns;
        self.with_matrix(array, SelectedMatrix::new(reader, columns))
    }

    /// Adds a modality, which [`Batch::modalities`](crate::Batch::modalities) then has: X of a
    /// further measurement of the same cells, with genes of its own. `present` says by joinid which
    /// cells were measured; `None` means all. Cells at or beyond the reader's rows count as not
    /// measured.
    ///
    /// # Errors
    /// The data set has several experiments, or this modality already; a gene is outside the
    /// matrix.
    pub fn with_modality(
        self,
        name: &str,
        reader: Arc<dyn XReader>,
        genes: GeneSelection,
        present: Option<BooleanBuffer>,
    ) -> Result<Self, MatrixError> {
        let modality = Beside::modality(name, 0);
        let columns = ColumnPlaces::new(genes, reader.n_columns())
            .map_err(|source| modality.columns_error(&*reader, source))?;
        let var = crate::obs::without_columns("var", columns.n_columns)?;
        let matrix = SelectedMatrix { present, ..SelectedMatrix::new(reader, columns) };
        self.with_modality_of(name, matrix, var)
    }

    /// Adds a modality; `var` has a row for each of its columns.
    pub(crate) fn with_modality_of(
        self,
        name: &str,
        matrix: SelectedMatrix,
        var: RecordBatch,
    ) -> Result<Self, MatrixError> {
        let n_columns = matrix.columns.n_columns;
        let modality = Beside::modality(name, n_columns);
        let n_cells = self.only_source(&modality)?.cells.end();
        let matrix = matrix.with_rows(n_cells, &modality.to_string())?;
        let modality_var = self.modality_var.iter().cloned().chain([var]).collect();
        Ok(Self { modality_var, ..self.with_matrix(modality, matrix)? })
    }

    /// Adds a matrix to a data set of one experiment.
    pub(crate) fn with_matrix(
        self,
        new: Beside,
        matrix: SelectedMatrix,
    ) -> Result<Self, MatrixError> {
        let is_new = |old: &Beside| (old.kind, &old.name) != (new.kind, &new.name);
        if !self.beside.iter().all(is_new) {
            return Err(MatrixError::Twice { matrix: new.to_string() });
        }
        let mut source = self.only_source(&new)?.clone();
        let n_rows = matrix.reader.n_rows();
        if let Some(joinid) = source.cells.first_outside(n_rows) {
            let matrix = new.to_string();
            return Err(MatrixError::CellOutside { matrix, joinid, n_rows });
        }
        source.beside.push(matrix);
        let beside = self.beside.iter().cloned().chain([new]).collect();
        Ok(Self { sources: Arc::new([source]), beside, ..self })
    }

    fn only_source(&self, new: &Beside) -> Result<&Selected, MatrixError> {
        match &self.sources[..] {
            [source] => Ok(source),
            several => Err(MatrixError::SeveralExperiments {
                matrix: new.to_string(),
                n_experiments: several.len(),
            }),
        }
    }

    /// The names of the layers beside X, in the order of [`Batch::layers`](crate::Batch::layers).
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.of_kind(BesideKind::Layer).map(|layer| layer.name.as_str())
    }

    /// The names of the arrays of obsm, each with its number of columns, in the order of
    /// [`Batch::obsm`](crate::Batch::obsm).
    pub fn obsm(&self) -> impl Iterator<Item = (&str, usize)> {
        self.of_kind(BesideKind::Obsm).map(|array| (array.name.as_str(), array.n_columns))
    }

    /// The names of the modalities, each with its number of genes, in the order of
    /// [`Batch::modalities`](crate::Batch::modalities).
    pub fn modalities(&self) -> impl Iterator<Item = (&str, usize)> {
        self.of_kind(BesideKind::Modality).map(|one| (one.name.as_str(), one.n_columns))
    }

    /// The var columns of a modality: one row per column, null if no experiment has the gene.
    /// `None` if the data set has no such modality.
    pub fn modality_var(&self, name: &str) -> Option<&RecordBatch> {
        let place = self.of_kind(BesideKind::Modality).position(|one| one.name == name)?;
        self.modality_var.get(place)
    }

    fn of_kind(&self, kind: BesideKind) -> impl Iterator<Item = &Beside> {
        self.beside.iter().filter(move |beside| beside.kind == kind)
    }

    /// X in all experiments.
    pub(crate) fn x_matrix(&self) -> DatasetMatrix<'_> {
        let of_each = self.sources.iter().map(|source| &source.x).collect();
        DatasetMatrix { beside: None, n_columns: self.n_columns, of_each }
    }

    /// The matrices beside X, in all experiments.
    pub(crate) fn matrices_beside(&self) -> impl Iterator<Item = DatasetMatrix<'_>> {
        self.beside.iter().enumerate().map(|(idx, beside)| DatasetMatrix {
            beside: Some(beside),
            n_columns: beside.n_columns,
            of_each: self.sources.iter().map(|source| &source.beside[idx]).collect(),
        })
    }

    /// All matrices: X, then those beside it.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = DatasetMatrix<'_>> {
        iter::once(self.x_matrix()).chain(self.matrices_beside())
    }

    /// All matrices, in groups that one read serves: matrices are in one group if they are columns
    /// of the same rows, which their reader decodes whole. With neighbours, X has further rows, so
    /// it is alone. Each has its place among [`matrices`](Self::matrices).
    pub(crate) fn read_groups(&self) -> Vec<Vec<(usize, DatasetMatrix<'_>)>> {
        let mut groups: Vec<Vec<(usize, DatasetMatrix<'_>)>> = Vec::new();
        for (place, matrix) in self.matrices().enumerate() {
            let of_x = usize::from(self.neighbours.is_some());
            let mut known = groups.iter_mut().skip(of_x);
            match known.find(|group| group[0].1.shares_rows_with(&matrix)) {
                Some(group) => group.push((place, matrix)),
                None => groups.push(vec![(place, matrix)]),
            }
        }
        groups
    }

    /// Fails if another data set, the one at `idx`, has other matrices beside X than this one.
    pub(crate) fn check_same_matrices(&self, idx: usize, other: &Self) -> Result<(), ConcatError> {
        if self.beside == other.beside && self.neighbours == other.neighbours {
            return Ok(());
        }
        let list = |of: &Self| {
            let matrices = of.beside.iter();
            let matrices = matrices.map(|one| format!("{one} of {} columns", one.n_columns));
            let graph = of.neighbours.iter().map(|of| format!("{of:?}"));
            let list: Vec<String> = matrices.chain(graph).collect();
            if list.is_empty() { "none".to_owned() } else { list.join(", ") }
        };
        Err(ConcatError::Matrices { idx, found: list(other), first: list(self) })
    }
}

impl Beside {
    /// A modality with this number of columns.
    pub(crate) fn modality(name: &str, n_columns: usize) -> Self {
        Self { kind: BesideKind::Modality, name: name.to_owned(), n_columns }
    }

    /// The error of columns that the matrix lacks.
    pub(crate) fn columns_error(
        &self,
        reader: &dyn XReader,
        source: soma_io::Error,
    ) -> MatrixError {
        let (matrix, n_columns) = (self.to_string(), reader.n_columns());
        MatrixError::ColumnsOutside { matrix, n_columns, source: Box::new(source) }
    }
}
