//! Runs a relayout: open, choose codecs, write, verify, publish.

use std::ops::ControlFlow;
use std::thread;
use std::time::Instant;

use soma_io::{CsrBuffers, Destination, Experiment, ExperimentSpec, ExperimentWriter, RowRanges};

use crate::ahead::ahead;
use crate::buckets::{Buckets, Gather};
use crate::codec::{CodecChoice, Codecs, MeasuredCodecs, first_not_whole};
use crate::order::Order;
use crate::source::Source;
use crate::spec::{RelayoutEvent, RelayoutReport, RelayoutSpec, Spilled};
use crate::speed::ReadSpeed;
use crate::temporary::Temporary;
use crate::{Error, frames, layout, measure};

/// Cells to compare with the source after writing.
const COMPARED_ROWS: u64 = 256;

/// libtiledb's checks of each cell that the writer of X has already made: order and bounds.
const CHECKS: [&str; 2] = ["sm.check_global_order", "sm.check_coord_oob"];

/// Receives events; may stop the relayout.
type Watch<'a> = dyn FnMut(RelayoutEvent<'_>) -> ControlFlow<()> + 'a;

/// Writes `source` to `uri`, laid out for training; `uri` is a local path or an address that
/// libtiledb knows.
///
/// Copies obs and var with all columns, and the measurement and layer that `spec` names. A local
/// experiment is written under a temporary name and renamed at the end, after a sample of it was
/// compared with the source. `watch` receives events and may stop the relayout, which then leaves
/// nothing behind.
///
/// # Errors
/// Something is missing or cannot be read or written; sizes are out of range;
/// [`Error::Interrupted`].
pub fn relayout(
    source: &Experiment,
    uri: &str,
    spec: &RelayoutSpec,
    watch: &mut dyn FnMut(RelayoutEvent<'_>) -> ControlFlow<()>,
) -> Result<RelayoutReport, Error> {
    let started = Instant::now();
    spec.check()?;
    let source = Source::open(source, spec)?;
    let uris = source.uris();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let destination = Destination::claim(uri, spec.existing, &uris)?;
    let temporary = Temporary::claim(uri, spec.temporary.as_deref(), &uris)?;
    if let Some(path) = destination.leftover() {
        notify(watch, RelayoutEvent::Leftover(path))?;
    }
    let (n_cells, n_genes) = (source.cells.n_rows(), source.genes.n_rows());
    let reader = source.reader.name();
    let why_not_native = source.reader.why_not_native();
    notify(watch, RelayoutEvent::Opened { n_cells, n_genes, reader, why_not_native })?;
    let order = Order::new(&source.cells, spec.shuffle_seed);
    let mut job = Job { source: &source, order: &order, spec, temporary: &temporary };
    let measured = job.measure()?;
    let mut codecs = match spec.codec {
        CodecChoice::Named(codecs) => codecs,
        CodecChoice::Measured { .. } => measured[0].codecs,
    };
    notify(watch, RelayoutEvent::Chosen(codecs))?;
    let counts = match job.write(&destination, codecs, watch) {
        Err(Error::NotWhole { .. }) if !measured.is_empty() => {
            codecs = Codecs::named(codecs.genes.name, "zstd")?;
            notify(watch, RelayoutEvent::NotWhole(codecs))?;
            destination.clear()?;
            job.write(&destination, codecs, watch)?
        }
        written => written?,
    };
    notify(watch, RelayoutEvent::Measuring)?;
    let measuring = Instant::now();
    let written = job.open_written(&destination)?;
    job.compare(&written)?;
    let before = ReadSpeed::measure(source.reader.as_ref(), source.x.shape().0, spec.chunk_rows)?;
    let after = ReadSpeed::measure(written.reader.as_ref(), n_cells, spec.chunk_rows)?;
    let measuring_seconds = measuring.elapsed().as_secs_f64();
    let x_bytes = local_bytes(written.x.uri())?;
    let source_x_bytes = local_bytes(source.x.uri())?;
    drop(written);
    let bytes_on_disk = destination.publish()?;
    Ok(RelayoutReport {
        n_cells,
        n_genes,
        nnz: counts.nnz,
        spilled: counts.spilled,
        obs_passes: counts.obs_passes,
        codecs,
        measured,
        source_x_bytes,
        x_bytes,
        bytes_on_disk,
        before,
        after,
        seconds: started.elapsed().as_secs_f64(),
        measuring_seconds,
    })
}

fn notify(watch: &mut Watch<'_>, event: RelayoutEvent<'_>) -> Result<(), Error> {
    match watch(event) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// The size of an array's files, if they are in a local folder of its own: not in an HDF5 file, and
/// not in a folder for each data set.
fn local_bytes(uri: &str) -> Result<Option<u64>, Error> {
    let folder = soma_io::local_path(uri).filter(|path| path.is_dir());
    folder.map(measure::folder_bytes).transpose()
}

/// The inputs of all steps.
struct Job<'a> {
    source: &'a Source,
    order: &'a Order,
    spec: &'a RelayoutSpec,
    temporary: &'a Temporary,
}

/// Counts of the rows written.
struct Counts {
    nnz: u64,
    spilled: Spilled,
    obs_passes: u64,
}

/// The new X, open for reading.
struct Written {
    x: soma_io::Matrix,
    reader: std::sync::Arc<dyn soma_io::XReader>,
}

impl Job<'_> {
    /// Measures codecs, unless they are named.
    fn measure(&mut self) -> Result<Vec<MeasuredCodecs>, Error> {
        let CodecChoice::Measured { storage_bytes_per_second } = self.spec.codec else {
            return Ok(Vec::new());
        };
        let sample = measure::sample(self.source, self.order, self.spec)?;
        measure::measure(&sample, &self.temporary.folder(), self.spec, storage_bytes_per_second)
    }

    /// Writes the new experiment.
    fn write(
        &self,
        destination: &Destination,
        codecs: Codecs,
        watch: &mut Watch<'_>,
    ) -> Result<Counts, Error> {
        let Self { source, order, spec, .. } = self;
        let is_local = destination.is_local();
        // An object store keeps what was written, so writing cannot start over: check all values
        // first.
        let mut gather = None;
        if !is_local && order.is_shuffled() {
            gather = Some(self.scatter(codecs, watch)?);
        } else if !is_local && codecs.values.whole_numbers {
            self.check_all(codecs, watch)?;
        }
        let mut writer = ExperimentWriter::create(destination.uri(), self.experiment_spec(codecs))?;
        if is_local {
            writer.write_x_natively(layout::n_threads())?;
        }
        let mut write_frames = || {
            frames::write_var(&mut writer, &source.var, &source.genes)?;
            frames::write_obs(&mut writer, &source.obs, &source.cells, order, spec.obs_rows())
        };
        let obs_passes;
        if order.is_shuffled() && is_local {
            // Each data frame is compressed by one thread, beside the scattering, which leaves
            // processor time.
            let (scattered, n_passes) = thread::scope(|scope| {
                let builder = thread::Builder::new().name("relayout-frames".to_owned());
                let frames = builder
                    .spawn_scoped(scope, write_frames)
                    .map_err(|source| Error::Thread { source })?;
                let gather = self.scatter(codecs, watch);
                let n_passes =
                    frames.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                Ok::<_, Error>((gather?, n_passes))
            })?;
            (gather, obs_passes) = (Some(scattered), n_passes);
        } else {
            obs_passes = write_frames()?;
        }
        let (mut n_rows, mut nnz) = (0, 0);
        let take = |rows: &CsrBuffers| {
            if !order.is_shuffled() {
                self.check(rows, n_rows, codecs)?;
            }
            writer.write_x(&spec.layer, &rows.row_offsets, &rows.columns, &rows.values)?;
            n_rows += rows.n_rows() as u64;
            nnz += rows.nnz() as u64;
            notify(watch, RelayoutEvent::Written { n_rows })
        };
        match &mut gather {
            Some(gather) => {
                let n_values = spec.piece_values() as usize;
                ahead(|buffer| gather.next(n_values, buffer), take)?;
            }
            None => self.each_part(take)?,
        }
        writer.finish()?;
        let spilled = gather.as_ref().map_or_else(Spilled::default, Gather::spilled);
        Ok(Counts { nnz, spilled, obs_passes })
    }

    /// Reads all rows of the source in order.
    fn each_part(&self, take: impl FnMut(&CsrBuffers) -> Result<(), Error>) -> Result<(), Error> {
        let mut parts = self.source.parts(self.spec.piece_values());
        let make = |mut buffer| {
            let Some(rows) = parts.next() else { return Ok(None) };
            self.source.read(&rows, &mut buffer)?;
            Ok(Some(buffer))
        };
        ahead(make, take)
    }

    /// Checks that the codec keeps the values of all rows of the source.
    fn check_all(&self, codecs: Codecs, watch: &mut Watch<'_>) -> Result<(), Error> {
        let mut n_rows = 0;
        self.each_part(|rows| {
            self.check(rows, n_rows, codecs)?;
            n_rows += rows.n_rows() as u64;
            notify(watch, RelayoutEvent::Checked { n_rows })
        })
    }

    /// Scatters all rows to temporary files by their new places.
    fn scatter(&self, codecs: Codecs, watch: &mut Watch<'_>) -> Result<Gather, Error> {
        let Self { source, spec, .. } = self;
        let places = self.order.places();
        let n_cells = source.cells.n_rows();
        // At most eight bytes a value, plus the header of the row.
        let bucket_rows = (spec.bucket_bytes() / (8 * source.mean_nnz() + 16)).clamp(1, n_cells);
        let mut buckets = Buckets::create(
            &self.temporary.folder(),
            n_cells,
            source.genes.n_rows() as usize,
            bucket_rows,
            spec.memory_bytes / 8,
        )?;
        let mut n_rows = 0;
        self.each_part(|rows| {
            self.check(rows, n_rows, codecs)?;
            let end = n_rows + rows.n_rows() as u64;
            buckets.scatter(rows, &places[n_rows as usize..end as usize])?;
            n_rows = end;
            notify(watch, RelayoutEvent::Scattered { n_rows, spilled: buckets.spilled() })
        })?;
        buckets.gather()
    }

    /// Checks that the codec keeps the values of these rows of the source, which `n_before` rows
    /// precede.
    fn check(&self, rows: &CsrBuffers, n_before: u64, codecs: Codecs) -> Result<(), Error> {
        if !codecs.values.whole_numbers {
            return Ok(());
        }
        let Some(row) = first_not_whole(&rows.row_offsets, &rows.values) else { return Ok(()) };
        let position = n_before + row as u64;
        Err(Error::NotWhole {
            uri: self.source.x.uri().to_owned(),
            joinid: self.source.cells.iter().nth(position as usize).unwrap_or_default(),
            codec: codecs.values.name,
        })
    }

    fn experiment_spec(&self, codecs: Codecs) -> ExperimentSpec {
        let Self { source, spec, .. } = self;
        let (n_obs, n_var) = (source.cells.n_rows(), source.genes.n_rows());
        let mut config = spec.config.clone();
        for check in CHECKS {
            config.entry(check.to_owned()).or_insert_with(|| "false".to_owned());
        }
        ExperimentSpec {
            n_obs,
            n_var,
            obs: source.obs.specs().to_vec(),
            var: source.var.specs().to_vec(),
            measurement: spec.measurement.clone(),
            layers: vec![spec.layer.clone()],
            extent: spec.extent,
            x_layout: layout::for_training(spec.chunk_rows, n_var, &codecs),
            fragment_rows: None,
            consolidate: false,
            config,
        }
    }

    fn open_written(&self, destination: &Destination) -> Result<Written, Error> {
        let options = measure::options(&self.spec.config);
        let experiment = Experiment::open(destination.uri(), &options)?;
        let x = experiment.measurement(&self.spec.measurement)?.x(&self.spec.layer)?;
        let reader = x.reader(soma_io::ReaderChoice::Native)?;
        Ok(Written { x, reader })
    }

    /// Reads sampled cells of both experiments, and checks that they are the same bit for bit.
    fn compare(&self, written: &Written) -> Result<(), Error> {
        let n_cells = self.source.cells.n_rows();
        let n_runs = COMPARED_ROWS.min(n_cells);
        let starts = (0..n_runs).map(|idx| idx * n_cells / n_runs);
        let (mut here, mut there) = (CsrBuffers::default(), CsrBuffers::default());
        for row in starts {
            let joinid = self.order.joinids(row..row + 1)[0];
            let one = |row: u64| RowRanges::new(vec![row..row + 1]);
            self.source.read(&one(joinid)?, &mut there)?;
            written.reader.read_csr(&one(row)?, &soma_io::GeneSelection::All, &mut here)?;
            let same = here.columns == there.columns
                && here.values.len() == there.values.len()
                && here.values.iter().zip(&there.values).all(|(a, b)| a.to_bits() == b.to_bits());
            if !same {
                return Err(Error::Differs { uri: self.source.x.uri().to_owned(), joinid });
            }
        }
        Ok(())
    }
}
