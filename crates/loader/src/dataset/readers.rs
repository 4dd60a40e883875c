//! The readers of a data set's matrices: their names, their memory, and what they keep.

use std::iter;
use std::sync::Arc;

use arrow_schema::DataType;
use soma_io::{XReader, is_within_f32};

use crate::beside::{Beside, DatasetMatrix};
use crate::dataset::Dataset;
use crate::error::{OpenError, ReaderError, open_error};
use crate::selected::{Selected, SelectedMatrix, aligned, is_same};

impl Dataset {
    /// The readers of X, one per experiment.
    pub fn readers(&self) -> impl Iterator<Item = &Arc<dyn XReader>> {
        self.sources.iter().map(|source| &source.x.reader)
    }

    /// The readers of an experiment's matrices: that of X, then those of the further layers, arrays
    /// of obsm and modalities, in the order in which they were added, then that of the graph of
    /// neighbours. None if there is no such experiment.
    pub fn readers_of(&self, experiment: usize) -> Vec<Arc<dyn XReader>> {
        let matrices = self.sources.get(experiment).into_iter().flat_map(Selected::matrices);
        matrices.map(|matrix| Arc::clone(&matrix.reader)).collect()
    }

    /// The same data set with other readers of the same matrices, a list of them for each
    /// experiment like that of [`readers_of`](Self::readers_of): for example in a forked process,
    /// where the threads of the first readers do not exist.
    ///
    /// # Errors
    /// The number of readers, or the shape of a matrix, differs.
    pub fn with_readers(&self, readers: Vec<Vec<Arc<dyn XReader>>>) -> Result<Self, ReaderError> {
        if readers.len() != self.n_experiments() {
            let (found, expected) = (readers.len(), self.n_experiments());
            return Err(ReaderError::Count { found, expected });
        }
        let replaced = self.sources.iter().zip(readers).enumerate();
        let replaced =
            replaced.map(|(idx, (source, readers))| replace((source, &self.beside), idx, readers));
        Ok(Self { sources: replaced.collect::<Result<_, _>>()?, ..self.clone() })
    }

    /// The same data set with X in full: reading a block fails, naming the cell and the gene,
    /// instead of rounding a value to f32. Matrices beside X are rounded as before, except those
    /// that X's reader reads, too: modalities that are other genes of the same matrix.
    ///
    /// # Errors
    /// A reader cannot be opened again, or it rounds values and cannot do otherwise.
    pub fn exact(&self) -> Result<Self, OpenError> {
        // Parts of one experiment share a reader, and its memory.
        let mut known: Vec<[Arc<dyn XReader>; 2]> = Vec::new();
        let mut sources = self.sources.to_vec();
        for (source, exact) in self.sources.iter().zip(&mut sources) {
            let reader = &source.x.reader;
            if is_within_f32(reader.data_type()) {
                continue;
            }
            let before = known.iter().find(|[one, _]| is_same(one, reader));
            exact.x.reader = if let Some([_, exact]) = before {
                Arc::clone(exact)
            } else {
                let exact = reader.exact().map_err(open_error("exact values of X".to_owned()))?;
                known.push([Arc::clone(reader), Arc::clone(&exact)]);
                exact
            };
            let of_x = exact.beside.iter_mut().filter(|matrix| is_same(&matrix.reader, reader));
            for matrix in of_x {
                matrix.reader = Arc::clone(&exact.x.reader);
            }
        }
        Ok(Self { sources: sources.into(), ..self.clone() })
    }

    /// The name of the reader of X; several names are joined by `+` if the readers of the
    /// experiments, or of the matrices beside X, differ.
    pub fn reader_name(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (_, SelectedMatrix { reader, .. }) in self.uses() {
            if !names.contains(&reader.name()) {
                names.push(reader.name());
            }
        }
        names.join("+")
    }

    /// The reason why [`ReaderChoice::Auto`](crate::ReaderChoice::Auto) chose libtiledb: that of
    /// the first matrix for which it did.
    pub fn why_not_native(&self) -> Option<&str> {
        self.uses().find_map(|(_, matrix)| matrix.reader.why_not_native())
    }

    /// The type in which X's values are stored; `None` if the experiments differ, or if there are
    /// none.
    pub fn data_type(&self) -> Option<&DataType> {
        let first = self.readers().next()?.data_type();
        self.readers().all(|reader| reader.data_type() == first).then_some(first)
    }

    /// Whether the matrices of a block are read at the same time: there are several, and some are
    /// remote, so that reading them is mostly waiting.
    pub(crate) fn reads_at_once(&self) -> bool {
        !self.beside.is_empty() && self.uses().any(|(_, matrix)| matrix.reader.is_remote())
    }

    /// Each experiment with each of its matrices.
    fn uses(&self) -> impl Iterator<Item = (&Selected, &SelectedMatrix)> {
        self.sources.iter().flat_map(|source| source.matrices().map(move |matrix| (source, matrix)))
    }

    /// Estimated mean number of values of a matrix in a selected row: the mean over all its rows,
    /// times the share of the columns that are read. 0 if the reader does not know the number of
    /// values.
    pub(crate) fn mean_row_nnz(&self, matrix: &DatasetMatrix<'_>) -> Result<f64, OpenError> {
        let mut mean = 0.0;
        for (source, matrix) in self.sources.iter().zip(&matrix.of_each) {
            let share = source.cells.n_rows() as f64 / self.n_rows().max(1) as f64;
            mean += share * matrix.mean_row_nnz()?;
        }
        Ok(mean)
    }

    /// Bytes of decoded values that the readers keep now
    /// ([`PipelineSpec::keep_bytes`](crate::PipelineSpec::keep_bytes)).
    pub fn decoded_bytes(&self) -> u64 {
        self.distinct_readers().map(|(_, reader)| reader.decoded_bytes()).sum()
    }

    /// Lets the readers keep up to `limit_bytes` of decoded values for a loader, each in proportion
    /// to its rows; if there are other matrices than X and all readers know their numbers of
    /// values, in proportion to the values that it reads.
    pub(crate) fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        let all: u128 = self.distinct_readers().map(|(weight, _)| weight).sum();
        for (weight, reader) in self.distinct_readers() {
            let share = u128::from(limit_bytes) * weight / all.max(1);
            reader.keep_decoded(holder, share as u64);
        }
    }

    /// Whether a reader asks when rows are read again.
    pub(crate) fn asks_next_reads(&self) -> bool {
        self.uses().any(|(_, matrix)| matrix.reader.asks_next_reads())
    }

    /// Each reader once, with its weight over all its uses.
    pub(crate) fn distinct_readers(&self) -> impl Iterator<Item = (u128, &Arc<dyn XReader>)> {
        let is_known = |(_, matrix): (_, &SelectedMatrix)| {
            // A reader that cannot count its values reports the error when it reads.
            matches!(matrix.reader.most_nnz(), Ok(Some(_)))
        };
        let has_several = !self.beside.is_empty() || self.neighbours.is_some();
        let by_values = has_several && self.uses().all(is_known);
        let weight = |source: &Selected, matrix: &SelectedMatrix| {
            let n_rows = source.cells.n_rows();
            match matrix.mean_row_nnz() {
                Ok(row_nnz) if by_values => (n_rows as f64 * row_nnz).ceil() as u128,
                _ => u128::from(n_rows),
            }
        };
        let uses: Vec<(u128, &Arc<dyn XReader>)> =
            self.uses().map(|(source, matrix)| (weight(source, matrix), &matrix.reader)).collect();
        (0..uses.len()).filter_map(move |idx| {
            let reader = uses[idx].1;
            if uses[..idx].iter().any(|(_, before)| is_same(before, reader)) {
                return None;
            }
            let of_reader = uses[idx..].iter().filter(|(_, one)| is_same(one, reader));
            Some((of_reader.map(|(weight, _)| weight).sum(), reader))
        })
    }
}

/// The experiment at `idx` with other readers of its matrices.
fn replace(
    (source, beside): (&Selected, &[Beside]),
    idx: usize,
    readers: Vec<Arc<dyn XReader>>,
) -> Result<Selected, ReaderError> {
    let (found, expected) = (readers.len(), source.matrices().count());
    if found != expected {
        return Err(ReaderError::Count { found, expected });
    }
    let names = iter::once("X".to_owned()).chain(beside.iter().map(Beside::to_string));
    let names = names.chain(iter::once("the graph of neighbours".to_owned()));
    let matrices = source.matrices().zip(readers).zip(names).map(|((matrix, reader), name)| {
        let reader = match &matrix.rows {
            Some(rows) => aligned(reader, &name, rows)?,
            None => reader,
        };
        let replaced = SelectedMatrix { reader, ..matrix.clone() };
        let shape = |reader: &Arc<dyn XReader>| (reader.n_rows(), reader.n_columns());
        let (found, expected) = (shape(&replaced.reader), shape(&matrix.reader));
        if found != expected {
            return Err(ReaderError::Shape { idx, found, expected });
        }
        Ok(replaced)
    });
    let mut matrices = matrices.collect::<Result<Vec<_>, _>>()?;
    let x = matrices.remove(0);
    let graph = source.graph.as_ref().and_then(|_| matrices.pop());
    Ok(Selected { cells: source.cells.clone(), x, beside: matrices, graph })
}
