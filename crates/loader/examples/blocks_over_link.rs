//! Reads blocks of an experiment over a link, and prints what each of them asks of the store:
//! requests, bytes, requests under way, and rounds of requests that follow from each other.
//!
//! ```text
//! cargo run --release -p somafeed-loader --example blocks_over_link -- \
//!     FOLDER 30ms,90MB/s,1GB/s 128 64 10
//! ```
//!
//! The last three are chunks of a block, rows of a chunk, and blocks. Without arguments it writes a
//! small experiment of its own.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::Instant;

use link::{BUCKET, LinkCounts, LinkServer, ServeOptions};
use loader::{
    BatchForm, BlockForm, Dataset, DatasetSpec, Loader, LoaderSpec, Matrix, PipelineSpec,
};
use soma_io::{Experiment, OpenOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let own = tempfile::tempdir()?;
    let folder = match arguments.first() {
        Some(folder) => folder.clone(),
        None => generate(own.path().join("experiment").to_str().ok_or("a path is not UTF-8")?)?,
    };
    let number = |idx: usize, default: u64| {
        arguments.get(idx).map_or(Ok(default), |text| text.parse::<u64>())
    };
    let (chunks_per_block, chunk_rows) = (number(2, 16)?, number(3, 64)?);
    let n_blocks = number(4, 5)?;
    let link = arguments.get(1).map_or("30ms,90MB/s,1GB/s", String::as_str);
    let served = ServeOptions { spec: link.parse()?, name: "data".into(), ..Default::default() };
    let server = LinkServer::start_with(&folder, &served)?;
    let mut step = Step { start: Instant::now(), before: server.counts() };
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>6} {:>7}",
        "", "seconds", "requests", "MB", "most", "rounds"
    );

    let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
    let experiment = Experiment::open(&format!("s3://{BUCKET}/data"), &options)?;
    step.print("open", &server);
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())?;
    step.print("select", &server);
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows,
            chunks_per_block,
            batch_rows: chunk_rows * chunks_per_block,
            prefetch_blocks: 0,
            prefetch_batches: 0,
            read_threads: 0,
            ..PipelineSpec::default()
        },
        block_form: BlockForm::Csr,
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    let loader = Loader::new(dataset, spec)?;
    step.print("loader", &server);
    for (idx, batch) in loader.epoch(0)?.take(n_blocks as usize).enumerate() {
        let batch = batch?;
        let Matrix::Csr(x) = &batch.x else { return Err("a batch is not CSR".into()) };
        step.print(&format!("block {idx}"), &server);
        assert_eq!(x.row_offsets.len(), batch.joinids.len() + 1);
    }
    Ok(())
}

/// Writes an experiment of a few tiles.
fn generate(uri: &str) -> Result<String, Box<dyn Error>> {
    let spec = example_data::GenerateSpec {
        n_cells: 8192,
        n_genes: 5000,
        ..example_data::GenerateSpec::default()
    };
    example_data::generate(uri, &spec, &mut |_| {})?;
    Ok(uri.to_owned())
}

/// The time and the counts since the step before.
struct Step {
    start: Instant,
    before: LinkCounts,
}

impl Step {
    fn print(&mut self, name: &str, server: &LinkServer) {
        let counts = server.take_counts();
        let used = counts.since(&self.before);
        println!(
            "{name:>10} {:>9.3} {:>9} {:>9.1} {:>6} {:>7}",
            self.start.elapsed().as_secs_f64(),
            used.requests,
            used.bytes_sent as f64 / 1e6,
            used.most_under_way,
            used.rounds
        );
        *self = Self { start: Instant::now(), before: counts };
    }
}
