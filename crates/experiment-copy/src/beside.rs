//! What is copied beside the measurement's X: arrays of obsm, and other measurements.

use soma_io::{
    ColumnChoice, Experiment, ExperimentWriter, FrameCopy, GeneSelection, Measurement,
    ReaderChoice, RowRanges, is_within_f32,
};

use crate::matrix::{FRAME_ROWS, Matrix, Progress, selection};
use crate::{Error, Genes};

/// An array of obsm.
pub(crate) struct Obsm {
    pub(crate) matrix: Matrix,
    n_columns: u64,
    /// Whether its values are rounded to 32-bit floats.
    pub(crate) is_rounded: bool,
}

impl Obsm {
    pub(crate) fn open(
        measurement: &Measurement,
        name: &str,
        choice: ReaderChoice,
    ) -> Result<Self, Error> {
        let array = measurement.obsm(name)?;
        let (reader, uri) = (array.reader(choice)?, array.uri().to_owned());
        let is_rounded = !is_within_f32(reader.data_type());
        let matrix = Matrix { name: name.to_owned(), uri, reader };
        Ok(Self { matrix, n_columns: array.used_columns()?, is_rounded })
    }

    /// The columns that are copied.
    pub(crate) fn columns(&self) -> GeneSelection {
        GeneSelection::Range(0..self.n_columns)
    }

    pub(crate) fn copy(
        &self,
        cells: &RowRanges,
        memory_bytes: u64,
        writer: &mut ExperimentWriter,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let name = &self.matrix.name;
        writer.add_obsm(name, self.n_columns)?;
        let (to, columns) = (writer.main_measurement(), self.columns());
        let n_written = to.n_obsm_written(name);
        progress(n_written)?;
        self.matrix.copy(cells, n_written, &columns, memory_bytes, &mut |rows| {
            to.write_obsm(name, &rows.row_offsets, &rows.columns, &rows.values)?;
            progress(rows.n_rows() as u64)
        })
    }
}

/// A measurement that is copied with all its genes.
pub(crate) struct Other {
    name: String,
    var: FrameCopy,
    pub(crate) layers: Vec<Matrix>,
}

impl Other {
    pub(crate) fn open(
        source: &Experiment,
        name: &str,
        choice: ReaderChoice,
        joinid_column: Option<&str>,
    ) -> Result<Self, Error> {
        let measurement = source.measurement(name)?;
        let layers = Matrix::layers(&measurement, &measurement.layers()?, choice)?;
        let var = FrameCopy::new(measurement.var()?, &ColumnChoice::All, joinid_column)?;
        Ok(Self { name: name.to_owned(), var, layers })
    }

    /// The genes that are copied.
    pub(crate) fn columns(&self) -> Result<GeneSelection, Error> {
        Ok(selection(&Genes::All.choose(self.var.frame())?))
    }

    pub(crate) fn copy(
        &self,
        cells: &RowRanges,
        memory_bytes: u64,
        writer: &mut ExperimentWriter,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let genes = Genes::All.choose(self.var.frame())?;
        let layers: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        let (n_genes, columns) = (genes.n_rows(), self.var.specs());
        let to = writer.add_measurement(&self.name, n_genes, columns, &layers)?;
        if to.n_var_written() == 0 {
            for part in FrameCopy::parts(&genes, FRAME_ROWS) {
                to.write_var(&self.var.read(&part)?)?;
            }
        }
        for layer in &self.layers {
            let n_written = to.n_x_written(&layer.name);
            progress(n_written)?;
            layer.copy(cells, n_written, &selection(&genes), memory_bytes, &mut |rows| {
                to.write_x(&layer.name, &rows.row_offsets, &rows.columns, &rows.values)?;
                progress(rows.n_rows() as u64)
            })?;
        }
        Ok(())
    }
}
