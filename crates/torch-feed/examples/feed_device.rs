//! Measures how fast cells reach a device, by each way of sending them.
//!
//! ```text
//! cargo run --release -p somafeed-torch-feed --example feed_device -- my-experiment --steps-ms 0,5
//! ```
//!
//! It prints a JSON object per line: first the rate of plain copies from pinned memory, then a row
//! for each way and step. `sum` and `nnz` are of the first epoch, which is not timed: equal for all
//! ways if all deliver the same. `au` is the time of the steps as a share of the whole;
//! `au_after_first_batch` leaves out the wait for the very first batch, which a longer epoch hides.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use loader::{BatchForm, Dataset, DatasetSpec, Genes, LoaderSpec, PipelineSpec};
use serde_json::json;
use soma_io::{AxisQuery, Experiment, Joinids, OpenOptions};
use tch::{Cuda, Device, Kind, Tensor};
use torch_feed::{DeviceChoice, TensorBatch, TensorLoader};

/// Measures how fast cells reach a device, by each way of sending them.
#[derive(Debug, Clone, Parser)]
#[command(name = "feed_device", args_override_self = true)]
struct Arguments {
    /// The experiment. `cargo xtask generate <path>` makes one
    experiment: String,
    /// The ways, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "dense,f16,scatter,csr")]
    ways: Vec<Way>,
    /// Number of genes, the first ones; default: all
    #[arg(long)]
    genes: Option<u64>,
    /// Cells per batch
    #[arg(long, default_value_t = 1024)]
    batch_rows: u64,
    /// Consecutive cells that are read together
    #[arg(long, default_value_t = 64)]
    chunk_rows: u64,
    /// Chunks that are shuffled together
    #[arg(long, default_value_t = 1024)]
    chunks_per_block: u64,
    /// Batches that may wait while the device computes
    #[arg(long, default_value_t = 4)]
    prefetch_batches: usize,
    /// Threads that write one dense batch together
    #[arg(long, default_value_t = 1)]
    batch_threads: usize,
    /// Milliseconds of computing for each batch, separated by commas; 0 computes nothing
    #[arg(long, value_delimiter = ',', default_value = "0")]
    steps_ms: Vec<f64>,
    /// A row ends with the first epoch that reaches this time
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// auto, cpu, or cuda:0, cuda:1 and so on; auto is the first GPU, or the CPU if there is none
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
}

/// How the values of a batch reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Dense f32, made on the CPU
    Dense,
    /// Dense f16, made on the CPU
    F16,
    /// Stored values, made dense f32 on the device
    Scatter,
    /// Stored values, which stay sparse: a CSR tensor
    Csr,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::F16 => "f16",
            Self::Scatter => "scatter",
            Self::Csr => "csr",
        }
    }

    fn batch_form(self) -> BatchForm {
        match self {
            Self::Dense | Self::Scatter => BatchForm::Dense,
            Self::F16 => BatchForm::F16,
            Self::Csr => BatchForm::Csr,
        }
    }

    /// Bytes of X that are copied for this number of cells and stored values, if these are counts
    /// of 16 bits.
    fn n_bytes(self, n_cells: f64, n_genes: f64, nnz: f64) -> f64 {
        match self {
            Self::Dense => n_cells * n_genes * 4.0,
            Self::F16 => n_cells * n_genes * 2.0,
            // A column and a count of 2 bytes each, and the row's offset.
            Self::Scatter | Self::Csr => nnz * 4.0 + n_cells * 8.0,
        }
    }
}

/// Work on the device that takes about the same time for each batch.
struct Step {
    matrix: Tensor,
    n_products: u32,
    secs: f64,
}

impl Step {
    /// Finds the number of products that takes this time.
    fn new(wanted_ms: f64, device: Device) -> Result<Self, Box<dyn Error>> {
        let n_rows = if device.is_cuda() { 1_024 } else { 128 };
        let matrix = Tensor::f_randn([n_rows; 2], (Kind::Float, device))?;
        let mut step = Self { matrix, n_products: 10, secs: 0.0 };
        // The first products are slow: the device chooses its kernels.
        step.timed(10)?;
        let secs_of_product = step.timed(20)? / f64::from(step.n_products);
        step.n_products = (wanted_ms / 1e3 / secs_of_product).round().max(0.0) as u32;
        step.secs = if step.n_products == 0 { 0.0 } else { step.timed(40)? };
        Ok(step)
    }

    /// Mean time of a step, in seconds.
    fn timed(&self, n_steps: u32) -> Result<f64, Box<dyn Error>> {
        wait_for(self.matrix.device());
        let begin = Instant::now();
        for _ in 0..n_steps {
            self.queue()?;
        }
        wait_for(self.matrix.device());
        Ok(begin.elapsed().as_secs_f64() / f64::from(n_steps))
    }

    fn queue(&self) -> Result<(), tch::TchError> {
        for _ in 0..self.n_products {
            drop(self.matrix.f_matmul(&self.matrix)?);
        }
        Ok(())
    }
}

fn wait_for(device: Device) {
    if let Device::Cuda(idx) = device {
        Cuda::synchronize(idx as i64);
    }
}

/// Copies from pinned memory, one after another: GB/s, the limit of every way.
fn copy_rate(device: Device) -> Result<f64, Box<dyn Error>> {
    const N_BYTES: i64 = 256 << 20;
    const N_COPIES: u32 = 20;
    let host = Tensor::f_ones([N_BYTES], (Kind::Uint8, Device::Cpu))?;
    let host = if device.is_cuda() { host.f_pin_memory(device)? } else { host };
    drop(host.f_to_device_(device, Kind::Uint8, true, true)?);
    wait_for(device);
    let begin = Instant::now();
    for _ in 0..N_COPIES {
        drop(host.f_to_device_(device, Kind::Uint8, true, true)?);
    }
    wait_for(device);
    Ok(N_BYTES as f64 * f64::from(N_COPIES) / begin.elapsed().as_secs_f64() / 1e9)
}

/// Sum and number of the values of an epoch, computed on the device.
fn totals(loader: &TensorLoader) -> Result<(f64, i64), Box<dyn Error>> {
    let (mut sum, mut nnz) = (0.0, 0);
    for batch in loader.epoch(0)? {
        let (sum_of_batch, nnz_of_batch) = totals_of(&batch?)?;
        sum += sum_of_batch;
        nnz += nnz_of_batch;
    }
    Ok((sum, nnz))
}

fn totals_of(batch: &TensorBatch) -> Result<(f64, i64), Box<dyn Error>> {
    let x = batch.x();
    let values = match x.f_crow_indices() {
        Ok(_) => x.f_values()?,
        Err(_) => x.shallow_clone(),
    };
    let sum = values.f_sum(Kind::Double)?.f_double_value(&[])?;
    Ok((sum, values.f_count_nonzero(None)?.f_int64_value(&[])?))
}

/// Times epochs of one way with one step, and returns the row.
fn measure(
    loader: &TensorLoader,
    step: &Step,
    seconds: f64,
) -> Result<serde_json::Value, Box<dyn Error>> {
    let device = loader.device();
    wait_for(device);
    let begin = Instant::now();
    let (mut n_cells, mut n_batches, mut n_epochs) = (0_u64, 0_u64, 0_u64);
    let (mut first_batch_secs, mut wait_secs) = (None, 0.0);
    for epoch in loader.epochs(1..) {
        let mut epoch = epoch?;
        for batch in epoch.by_ref() {
            n_cells += batch?.n_rows() as u64;
            n_batches += 1;
            step.queue()?;
        }
        wait_for(device);
        n_epochs += 1;
        let stats = epoch.stats();
        wait_secs += stats.engine.wait_secs.iter().sum::<f64>();
        first_batch_secs = first_batch_secs.or(stats.engine.first_batch_secs);
        if begin.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    let secs = begin.elapsed().as_secs_f64();
    let of_steps = n_batches as f64 * step.secs;
    Ok(json!({
        "seconds": secs,
        "epochs": n_epochs,
        "cells": n_cells,
        "batches": n_batches,
        "cells_per_second": n_cells as f64 / secs,
        "first_batch_seconds": first_batch_secs,
        "wait_share": wait_secs / secs,
        "step_seconds": step.secs,
        "au": of_steps / secs,
        "au_after_first_batch": of_steps / (secs - first_batch_secs.unwrap_or(0.0)),
        "copies_beside": loader.copies_beside(),
    }))
}

/// A field of `/proc/self/status` in bytes, for example the peak of the resident memory.
fn memory_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[expect(clippy::print_stderr, reason = "a program says why it fails")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let device = arguments.device.find()?;
    let experiment = Experiment::open(&arguments.experiment, &OpenOptions::default())?;
    let genes = arguments.genes.map_or_else(Genes::default, |n_genes| {
        let joinids = Joinids::Range(0..n_genes);
        Genes::Query(AxisQuery { joinids, value_filter: None })
    });
    let dataset = Dataset::from_experiment(
        &experiment,
        &DatasetSpec { obs_columns: vec!["cell_type".into()], genes, ..DatasetSpec::default() },
    )?;
    let n_genes = dataset.n_columns() as f64;
    println!("{}", json!({"way": "copies", "gigabytes_per_second": copy_rate(device)?}));
    for way in &arguments.ways {
        let spec = LoaderSpec {
            pipeline: PipelineSpec {
                chunk_rows: arguments.chunk_rows,
                chunks_per_block: arguments.chunks_per_block,
                batch_rows: arguments.batch_rows,
                prefetch_batches: arguments.prefetch_batches,
                ..PipelineSpec::default()
            },
            batch_form: way.batch_form(),
            batch_threads: Some(arguments.batch_threads),
            ..LoaderSpec::default()
        };
        let loader = TensorLoader::new(dataset.clone(), spec)?.to_device(device)?;
        let loader = if *way == Way::Scatter { loader.densify_on_device()? } else { loader };
        let (sum, nnz) = totals(&loader)?;
        for step_ms in &arguments.steps_ms {
            let step = Step::new(*step_ms, device)?;
            let mut row = measure(&loader, &step, arguments.seconds)?;
            let nnz_of_cell = nnz as f64 / dataset.n_rows() as f64;
            let cells_per_second = row["cells_per_second"].as_f64().unwrap_or_default();
            let bytes = way.n_bytes(cells_per_second, n_genes, cells_per_second * nnz_of_cell);
            let more = json!({
                "way": way.name(),
                "genes": dataset.n_columns(),
                "step_ms": step_ms,
                "batch_rows": arguments.batch_rows,
                "batch_threads": arguments.batch_threads,
                "device": format!("{device:?}"),
                "sum": sum,
                "nnz": nnz,
                "gigabytes_per_second": bytes / 1e9,
                "peak_memory_bytes": memory_bytes("VmHWM"),
            });
            if let (Some(row), serde_json::Value::Object(more)) = (row.as_object_mut(), more) {
                row.extend(more);
            }
            println!("{row}");
        }
    }
    Ok(())
}
