//! Times the way to the first batch of an experiment: in a folder, or over a link.
//!
//! `cargo run --release -p somafeed-loader --example first_batch -- <folder> [link [chunks]]`
//! serves the experiment in the folder over a link such as `30ms,90MB/s,1GB/s`, from this process,
//! and counts requests; with the link `none` it reads the folder. A block has 1,024 chunks of 64
//! rows, or as many as given. With `write` in place of a link it writes an experiment to the
//! folder, small in cells and large in metadata: 50 fragments of 100,000 tiles.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use link::{BUCKET, LinkServer};
use loader::{BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec};
use soma_io::{
    ColumnKind, ColumnSpec, Config, Experiment, ExperimentSpec, ExperimentWriter, Extent,
    OpenOptions, XLayout,
};

const FRAGMENTS: u64 = 50;
const TILES: u64 = 100_000;
const TILE_CELLS: u64 = 2;
const ROW_CELLS: u64 = 10;
const GENES: u64 = 2000;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: first_batch <folder of the experiment> [write | none | link [chunks]]";
    let folder = arguments.next().ok_or(usage)?;
    let link = arguments.next();
    if link.as_deref() == Some("write") {
        return write(&folder);
    }
    let link = link.filter(|link| link != "none");
    let default = LoaderSpec::default();
    let chunks_per_block = match arguments.next() {
        Some(chunks) => chunks.parse()?,
        None => default.pipeline.chunks_per_block,
    };
    let server = link.map(|link| serve(Path::new(&folder), &link)).transpose()?;
    let (uri, config) = server
        .as_ref()
        .map_or((folder, Config::new()), |(server, uri)| (uri.clone(), server.config()));
    let start = worktime::now();
    let print = |what: &str| {
        let seconds = (worktime::now() - start).wall.as_secs_f64();
        match &server {
            Some((server, _)) => {
                let counts = server.counts();
                let megabytes = counts.bytes_sent as f64 / 1e6;
                println!(
                    "{what:<12} {seconds:6.2} s, {} requests, {} rounds, {megabytes:.1} MB",
                    counts.requests, counts.rounds
                );
            }
            None => println!("{what:<12} {seconds:6.2} s"),
        }
    };
    let experiment = Experiment::open(&uri, &OpenOptions { config, ..OpenOptions::default() })?;
    print("opened");
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())?;
    print("selected");
    let spec = LoaderSpec {
        pipeline: PipelineSpec { chunks_per_block, ..default.pipeline },
        batch_form: BatchForm::Csr,
        ..default
    };
    let loader = Loader::new(dataset, spec)?;
    let mut epoch = loader.epoch(0)?;
    epoch.next().ok_or("there are no cells")??;
    print("first batch");
    Ok(())
}

/// Serves the folder above the experiment; the server, and the experiment's address there.
fn serve(folder: &Path, link: &str) -> Result<(LinkServer, String), Box<dyn Error>> {
    let name = folder.file_name().and_then(|name| name.to_str()).ok_or("the folder has no name")?;
    let parent = folder.parent().ok_or("the folder has no parent")?;
    let server = LinkServer::start(parent, link.parse()?)?;
    Ok((server, format!("s3://{BUCKET}/{name}")))
}

/// Writes an experiment of 50 fragments with 100,000 tiles each.
fn write(uri: &str) -> Result<(), Box<dyn Error>> {
    let fragment_rows = TILES * TILE_CELLS / ROW_CELLS;
    let n_obs = FRAGMENTS * fragment_rows;
    let layout = XLayout {
        tile_rows: fragment_rows,
        tile_columns: GENES,
        capacity: TILE_CELLS,
        row_filters: Vec::new(),
        column_filters: Vec::new(),
        value_filters: Vec::new(),
    };
    let column = || vec![ColumnSpec::new("number", ColumnKind::Int64)];
    let spec = ExperimentSpec {
        n_obs,
        n_var: GENES,
        obs: column(),
        var: column(),
        measurement: "RNA".into(),
        layers: vec!["raw".into()],
        extent: Extent::CurrentDomain,
        x_layout: layout,
        fragment_rows: Some(fragment_rows),
        consolidate: false,
        config: Config::new(),
    };
    let numbers = |n: u64| -> Result<RecordBatch, Box<dyn Error>> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n as i64));
        Ok(RecordBatch::try_from_iter([("number", numbers)])?)
    };
    let mut writer = ExperimentWriter::create(uri, spec)?;
    writer.write_var(&numbers(GENES)?)?;
    writer.write_obs(&numbers(n_obs)?)?;
    for _ in 0..FRAGMENTS {
        let n_cells = fragment_rows * ROW_CELLS;
        let offsets: Vec<usize> =
            (0..=fragment_rows).map(|row| (row * ROW_CELLS) as usize).collect();
        let columns: Vec<u32> = (0..n_cells)
            .map(|cell| {
                (cell % ROW_CELLS * (GENES / ROW_CELLS) + cell / ROW_CELLS % (GENES / ROW_CELLS))
                    as u32
            })
            .collect();
        writer.write_x("raw", &offsets, &columns, &vec![1.0; n_cells as usize])?;
    }
    writer.finish()?;
    Ok(())
}
