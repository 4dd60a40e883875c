//! Import of a 10x Genomics folder: matrix.mtx, barcodes.tsv and features.tsv, each plain or
//! gzipped.
//!
//! 10x writes the matrix cell by cell, so it is streamed. A file in another order is detected at
//! the first line that is out of order; then all entries are read into memory and sorted, if they
//! fit into the memory limit.

mod folder;
mod lines;
mod matrix;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use soma_io::{
    ColumnKind, ColumnSpec, Config, Destination, Existing, ExperimentSpec, ExperimentWriter,
    Extent, XLayout,
};

use crate::generate::check_interrupted;
use crate::{Error, LAYER, MEASUREMENT};
use folder::{Feature, Folder};
use matrix::{Entry, MatrixFile};
use rows::{RowBuilder, Rows, Source};

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportSpec {
    /// Memory limit for sorting entries, 24 bytes each. Unused if the file is ordered by cell.
    pub sort_budget_bytes: u64,
    /// Ends a fragment of X after at least this number of rows; `None` writes one fragment.
    pub fragment_rows: Option<u64>,
    /// Whether fragments of X are merged at the end, each value keeping its timestamp.
    pub consolidate: bool,
    /// Compression level of zstd for X.
    pub zstd_level: i32,
    /// How arrays declare their size.
    pub extent: Extent,
    /// TileDB's parameters.
    pub config: Config,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Default for ImportSpec {
    /// One fragment; up to 4 GiB for sorting, enough for 178 million entries.
    fn default() -> Self {
        Self {
            sort_budget_bytes: 4 << 30,
            fragment_rows: None,
            consolidate: false,
            zstd_level: 9,
            extent: Extent::default(),
            config: Config::new(),
            interrupted: None,
        }
    }
}

/// The result of [`import_10x`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Number of cells.
    pub n_cells: u64,
    /// Number of genes.
    pub n_genes: u64,
    /// Number of non-zero values.
    pub nnz: u64,
    /// Sum of all values.
    pub sum: f64,
    /// Whether the matrix was sorted in memory.
    pub sorted_in_memory: bool,
    /// Size of all files in bytes, if the experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
    /// A killed run's leftover that was removed.
    pub leftover: Option<PathBuf>,
}

/// Imports a 10x Genomics folder as an experiment at `uri`, a local path or an address in an
/// object store, to which libtiledb writes. Nothing may exist there yet.
///
/// The folder has `matrix.mtx` (MatrixMarket, genes by cells), `barcodes.tsv` and `features.tsv`
/// (or `genes.tsv`), each plain or gzipped. obs gets the columns `obs_id` (the barcode), `raw_sum`
/// and `nnz`; var gets `feature_id`, `feature_name`, `feature_type` and `nnz`. Explicit zeros are
/// dropped. A local experiment is written under another name and renamed at the end. `progress` is
/// called with the number of cells written so far; it restarts if the matrix has to be sorted. An
/// object store does not allow removing written objects, so there the whole matrix is checked
/// first, with its own progress.
///
/// # Errors
/// A problem in a file is reported with path and line: entries out of range or duplicated, more or
/// fewer entries than the header promises, tables that do not fit the matrix, a truncated gzip
/// stream.
pub fn import_10x(
    folder: &Path,
    uri: &str,
    spec: &ImportSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportReport, Error> {
    let started = Instant::now();
    let files = Folder::open(folder)?;
    let matrix = MatrixFile::open(&files.matrix)?;
    let mut import = Import {
        barcodes: files.barcodes(matrix.n_cells)?,
        features: files.features(matrix.n_genes)?,
        source: Source {
            path: files.matrix.clone(),
            sorting_bytes: matrix.n_entries.saturating_mul(size_of::<Entry>() as u64),
            budget_bytes: spec.sort_budget_bytes,
        },
        spec,
        progress,
    };
    let read: Vec<_> = files.paths().iter().map(|path| path.to_string_lossy()).collect();
    let read: Vec<&str> = read.iter().map(AsRef::as_ref).collect();
    let destination = Destination::claim(uri, Existing::Keep, &read)?;
    let leftover = destination.leftover().map(Into::into);
    let checked = if destination.is_local() {
        Ok(())
    } else {
        MatrixFile::open(&files.matrix).and_then(|matrix| import.check(matrix))
    };
    let streamed = checked.and_then(|()| import.streamed(matrix, &destination));
    let (totals, sorted_in_memory) = match streamed {
        Err(Error::Unsorted { needed_bytes, budget_bytes, .. }) if needed_bytes <= budget_bytes => {
            // Cells written so far lack entries.
            destination.clear()?;
            let matrix = MatrixFile::open(&files.matrix)?;
            (import.sorted(matrix, &destination)?, true)
        }
        streamed => (streamed?, false),
    };
    let bytes_on_disk = destination.publish()?;
    Ok(ImportReport {
        n_cells: import.barcodes.len() as u64,
        n_genes: import.features.len() as u64,
        nnz: totals.gene_nnz.iter().map(|nnz| *nnz as u64).sum(),
        sum: totals.sum,
        sorted_in_memory,
        bytes_on_disk,
        seconds: started.elapsed().as_secs_f64(),
        leftover,
    })
}

struct Import<'a> {
    barcodes: Vec<String>,
    features: Vec<Feature>,
    source: Source,
    spec: &'a ImportSpec,
    progress: &'a mut dyn FnMut(u64),
}

/// Sums over the values, known when all are written.
struct Totals {
    gene_nnz: Vec<i64>,
    sum: f64,
}

impl Import<'_> {
    /// Reads all entries like [`Self::streamed`], but writes nothing.
    fn check(&mut self, mut matrix: MatrixFile) -> Result<(), Error> {
        let (progress, interrupted) = (&mut *self.progress, self.spec.interrupted);
        let mut n_done = 0;
        let mut take = |rows: &Rows| {
            n_done += rows.n_rows();
            progress(n_done as u64);
            check_interrupted(interrupted)
        };
        let mut rows = RowBuilder::new(&self.source, &mut take);
        while let Some(entry) = matrix.next_entry()? {
            rows.add(entry)?;
        }
        rows.finish(self.barcodes.len() as u64)
    }

    /// Writes entries while they are read.
    fn streamed(&mut self, mut matrix: MatrixFile, to: &Destination) -> Result<Totals, Error> {
        self.write(to, &mut || matrix.next_entry())
    }

    /// Reads all entries, then writes them sorted.
    fn sorted(&mut self, mut matrix: MatrixFile, to: &Destination) -> Result<Totals, Error> {
        let mut entries = Vec::with_capacity(matrix.n_entries as usize);
        while let Some(entry) = matrix.next_entry()? {
            entries.push(entry);
        }
        entries.sort_unstable_by_key(|entry: &Entry| (entry.cell, entry.gene, entry.line));
        let mut entries = entries.into_iter();
        self.write(to, &mut || Ok(entries.next()))
    }

    fn write(
        &mut self,
        to: &Destination,
        next_entry: &mut dyn FnMut() -> Result<Option<Entry>, Error>,
    ) -> Result<Totals, Error> {
        let n_cells = self.barcodes.len() as u64;
        let mut writer = ExperimentWriter::create(to.uri(), self.experiment_spec())?;
        let mut totals = Totals { gene_nnz: vec![0; self.features.len()], sum: 0.0 };
        let (barcodes, progress) = (&self.barcodes, &mut *self.progress);
        let interrupted = self.spec.interrupted;
        let mut n_done = 0;
        let mut take = |rows: &Rows| {
            let first = n_done;
            n_done += rows.n_rows();
            writer.write_obs(&obs_batch(&barcodes[first..n_done], rows)?)?;
            writer.write_x(LAYER, &rows.row_offsets, &rows.columns, &rows.values)?;
            for (gene, value) in rows.columns.iter().zip(&rows.values) {
                totals.gene_nnz[*gene as usize] += 1;
                totals.sum += f64::from(*value);
            }
            progress(n_done as u64);
            check_interrupted(interrupted)
        };
        let mut rows = RowBuilder::new(&self.source, &mut take);
        while let Some(entry) = next_entry()? {
            rows.add(entry)?;
        }
        rows.finish(n_cells)?;
        writer.write_var(&var_batch(&self.features, &totals.gene_nnz)?)?;
        writer.finish()?;
        Ok(totals)
    }

    fn experiment_spec(&self) -> ExperimentSpec {
        let mut types: Vec<String> = Vec::new();
        for feature in &self.features {
            if !types.contains(&feature.kind) {
                types.push(feature.kind.clone());
            }
        }
        let columns = |columns: &[(&str, ColumnKind)]| {
            columns.iter().map(|(name, kind)| ColumnSpec::new(name, kind.clone())).collect()
        };
        let spec = self.spec;
        ExperimentSpec {
            n_obs: self.barcodes.len() as u64,
            n_var: self.features.len() as u64,
            obs: columns(&[
                ("obs_id", ColumnKind::Text),
                ("raw_sum", ColumnKind::Float64),
                ("nnz", ColumnKind::Int64),
            ]),
            var: columns(&[
                ("feature_id", ColumnKind::Text),
                ("feature_name", ColumnKind::Text),
                ("feature_type", ColumnKind::Categorical { values: types, ordered: false }),
                ("nnz", ColumnKind::Int64),
            ]),
            measurement: MEASUREMENT.to_owned(),
            layers: vec![LAYER.to_owned()],
            extent: spec.extent,
            x_layout: XLayout::census(spec.zstd_level),
            fragment_rows: spec.fragment_rows,
            consolidate: spec.consolidate,
            config: spec.config.clone(),
        }
    }
}

fn obs_batch(barcodes: &[String], rows: &Rows) -> Result<RecordBatch, Error> {
    let bounds = || rows.row_offsets.windows(2).map(|pair| pair[0]..pair[1]);
    let sums = bounds().map(|row| rows.values[row].iter().map(|value| f64::from(*value)).sum());
    let columns: [(&str, ArrayRef); 3] = [
        ("obs_id", Arc::new(StringArray::from_iter_values(barcodes))),
        ("raw_sum", Arc::new(Float64Array::from_iter_values(sums))),
        ("nnz", Arc::new(Int64Array::from_iter_values(bounds().map(|row| row.len() as i64)))),
    ];
    RecordBatch::try_from_iter(columns).map_err(|source| Error::Arrow { frame: "obs", source })
}

fn var_batch(features: &[Feature], gene_nnz: &[i64]) -> Result<RecordBatch, Error> {
    let texts = |text: fn(&Feature) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(features.iter().map(text)))
    };
    let columns: [(&str, ArrayRef); 4] = [
        ("feature_id", texts(|feature| &feature.id)),
        ("feature_name", texts(|feature| &feature.name)),
        ("feature_type", texts(|feature| &feature.kind)),
        ("nnz", Arc::new(Int64Array::from(gene_nnz.to_vec()))),
    ];
    RecordBatch::try_from_iter(columns).map_err(|source| Error::Arrow { frame: "var", source })
}
