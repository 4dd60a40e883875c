//! What is copied: the tables and matrices of the source, opened.

use std::num::NonZeroU64;

use soma_io::{
    CsrBuffers, Experiment, ExperimentSpec, ExperimentWriter, FrameCopy, GeneSelection,
    Measurement, RowRanges, XLayout,
};

use crate::beside::{Obsm, Other};
use crate::matrix::{FRAME_ROWS, LeastMemory, Matrix, Progress, selection};
use crate::{Error, SliceSpec};

/// The chosen rows of obs and of var.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) cells: &'a RowRanges,
    pub(crate) genes: &'a RowRanges,
}

/// The tables and matrices to copy.
pub(crate) struct Parts {
    measurement: Measurement,
    pub(crate) obs: FrameCopy,
    pub(crate) var: FrameCopy,
    pub(crate) layers: Vec<Matrix>,
    pub(crate) obsm: Vec<Obsm>,
    others: Vec<Other>,
}

impl Parts {
    pub(crate) fn open(source: &Experiment, spec: &SliceSpec) -> Result<Self, Error> {
        let measurement = source.measurement(&spec.measurement)?;
        let layers = Matrix::layers(&measurement, &spec.layers, spec.reader)?;
        let joinid_column = spec.joinid_column.as_deref();
        let obs = FrameCopy::new(source.obs()?, &spec.obs_columns, joinid_column)?;
        let var = FrameCopy::new(measurement.var()?, &spec.var_columns, joinid_column)?;
        let others =
            spec.others.iter().map(|name| Other::open(source, name, spec.reader, joinid_column));
        let others = others.collect::<Result<_, _>>()?;
        let obsm = spec.obsm.iter().map(|name| Obsm::open(&measurement, name, spec.reader));
        let obsm = obsm.collect::<Result<_, _>>()?;
        Ok(Self { measurement, obs, var, layers, obsm, others })
    }

    /// All matrices with a row for each cell.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.layers.iter().chain(self.beside_layers())
    }

    /// The matrices of which all columns are copied.
    fn beside_layers(&self) -> impl Iterator<Item = &Matrix> {
        let of_others = self.others.iter().flat_map(|other| &other.layers);
        of_others.chain(self.obsm.iter().map(|array| &array.matrix))
    }

    /// Fails if a matrix needs more memory than `memory_bytes`, and names the one that needs most.
    pub(crate) fn check_memory(
        &self,
        memory_bytes: u64,
        n_cells: u64,
        genes: &RowRanges,
    ) -> Result<(), Error> {
        let mut needs = Vec::new();
        let columns = selection(genes);
        for layer in &self.layers {
            needs.push(layer.least_memory(n_cells, &columns)?);
        }
        for array in &self.obsm {
            needs.push(array.matrix.least_memory(n_cells, &array.columns())?);
        }
        for other in &self.others {
            let columns = other.columns()?;
            for layer in &other.layers {
                needs.push(layer.least_memory(n_cells, &columns)?);
            }
        }
        let most = needs.into_iter().max_by_key(|need| need.n_bytes);
        match most.filter(|need| memory_bytes < need.n_bytes) {
            Some(LeastMemory { n_bytes: least_bytes, n_values, uri }) => {
                Err(Error::Memory { memory_bytes, uri: uri.to_owned(), n_values, least_bytes })
            }
            None => Ok(()),
        }
    }

    /// The places that are read.
    pub(crate) fn places<'a>(&'a self, source: &'a Experiment) -> Vec<&'a str> {
        let frames = [source.uri(), self.obs.frame().uri(), self.var.frame().uri()];
        frames.into_iter().chain(self.matrices().map(|matrix| matrix.uri.as_str())).collect()
    }

    /// The specification of the new experiment. A fragment has about `fragment_values` values of
    /// the densest matrix; `None` makes one fragment of each.
    pub(crate) fn experiment(
        &self,
        spec: &SliceSpec,
        n_obs: u64,
        genes: &RowRanges,
        fragment_values: Option<NonZeroU64>,
    ) -> Result<ExperimentSpec, Error> {
        let columns = selection(genes);
        let mut row_nnz = 1;
        let layers = self.layers.iter().map(|layer| (layer, &columns));
        let beside = self.beside_layers().map(|matrix| (matrix, &GeneSelection::All));
        for (matrix, columns) in layers.chain(beside) {
            row_nnz = row_nnz.max(matrix.values_per_row(columns)?);
        }
        Ok(ExperimentSpec {
            n_obs,
            n_var: genes.n_rows(),
            obs: self.obs.specs().to_vec(),
            var: self.var.specs().to_vec(),
            measurement: spec.measurement.clone(),
            layers: spec.layers.clone(),
            extent: spec.extent,
            x_layout: XLayout::census(spec.zstd_level),
            fragment_rows: fragment_values.map(|n_values| n_values.get().div_ceil(row_nnz)),
            consolidate: false,
            config: spec.config.clone(),
        })
    }

    /// Writes uns and var. Returns the paths within uns that are left out, and why.
    pub(crate) fn write_uns_and_var(
        &self,
        writer: &mut ExperimentWriter,
        spec: &SliceSpec,
        genes: &RowRanges,
    ) -> Result<Vec<(String, String)>, Error> {
        let uns = if spec.uns { self.measurement.uns()? } else { None };
        let left_out = uns.map(|uns| writer.write_uns(&uns)).transpose()?;
        if writer.main_measurement().n_var_written() == 0 {
            for part in FrameCopy::parts(genes, FRAME_ROWS) {
                writer.write_var(&self.var.read(&part)?)?;
            }
        }
        Ok(left_out.unwrap_or_default())
    }

    /// Writes all matrices, and returns the number of reads of X.
    pub(crate) fn write_matrices(
        &self,
        writer: &mut ExperimentWriter,
        Rows { cells, genes }: Rows<'_>,
        spec: &SliceSpec,
        progress: &mut Progress<'_>,
    ) -> Result<u64, Error> {
        let (memory_bytes, columns) = (spec.memory_bytes, selection(genes));
        let mut n_reads = 0;
        for layer in &self.layers {
            let n_written = writer.main_measurement().n_x_written(&layer.name);
            progress(n_written)?;
            layer.copy(cells, n_written, &columns, memory_bytes, &mut |rows: &CsrBuffers| {
                writer.write_x(&layer.name, &rows.row_offsets, &rows.columns, &rows.values)?;
                n_reads += 1;
                progress(rows.n_rows() as u64)
            })?;
        }
        for array in &self.obsm {
            array.copy(cells, memory_bytes, writer, progress)?;
        }
        for other in &self.others {
            other.copy(cells, memory_bytes, writer, progress)?;
        }
        Ok(n_reads)
    }
}
