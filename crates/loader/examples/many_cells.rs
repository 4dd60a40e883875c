//! Opens, filters, encodes, splits and shuffles an experiment of very many cells, and prints the
//! time and the memory of each step.
//!
//! ```text
//! cargo run --release -p somafeed-loader --example many_cells -- write /tmp/many 100000000
//! cargo run --release -p somafeed-loader --example many_cells -- read /tmp/many all
//! cargo run --release -p somafeed-loader --example many_cells -- read /tmp/many third
//! ```
//!
//! The cells have one obs column, `cell_type` of a thousand classes, and three values each.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::types::Int16Type;
use arrow_array::{ArrayRef, DictionaryArray, Int16Array, RecordBatch, StringArray};
use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::split::{self, Method};
use loader::{AxisQuery, BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec};
use soma_io::{
    ColumnKind, ColumnSpec, Config, Experiment, ExperimentSpec, ExperimentWriter, Extent,
    OpenOptions, XLayout,
};

const LABEL: &str = "cell_type";
const N_CLASSES: u64 = 1000;
const N_GENES: u64 = 300;
const VALUES_PER_CELL: u64 = 3;
/// Cells that are written at once.
const PIECE_CELLS: u64 = 1 << 18;
/// Cells of a dataset, which has some of the cell types.
const DATASET_CELLS: u64 = 10_000;
const TYPES_PER_DATASET: u64 = 20;
/// Batches that are delivered.
const N_BATCHES: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", folder, n_cells] => write(folder, n_cells.parse()?),
        ["read", folder, "all"] => read(folder, AxisQuery::default()),
        ["read", folder, "third"] => read(folder, AxisQuery::filter(&every_third_class())?),
        _ => Err("usage: many_cells write FOLDER CELLS | read FOLDER all|third".into()),
    }
}

/// Mixes the bits of a number, so that neighbors have nothing in common.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The class of a cell: one of those of its dataset.
fn class(cell: u64) -> u64 {
    let choice = mixed(cell) % TYPES_PER_DATASET;
    mixed(!(cell / DATASET_CELLS * TYPES_PER_DATASET + choice)) % N_CLASSES
}

fn class_name(class: u64) -> String {
    format!("cell type {class}")
}

fn every_third_class() -> String {
    let names = (0..N_CLASSES).step_by(3).map(|class| format!("{:?}", class_name(class)));
    format!("{LABEL} in [{}]", names.collect::<Vec<_>>().join(", "))
}

fn write(folder: &str, n_cells: u64) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let values: Vec<String> = (0..N_CLASSES).map(class_name).collect();
    let categories: ArrayRef = Arc::new(StringArray::from(values.clone()));
    let spec = ExperimentSpec {
        n_obs: n_cells,
        n_var: N_GENES,
        obs: vec![ColumnSpec::new(LABEL, ColumnKind::Categorical { values, ordered: false })],
        var: vec![ColumnSpec::new("feature_id", ColumnKind::Text)],
        measurement: "RNA".to_owned(),
        layers: vec!["raw".to_owned()],
        extent: Extent::default(),
        x_layout: XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: Config::new(),
    };
    let mut writer = ExperimentWriter::create(folder, spec)?;
    let genes: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..N_GENES).map(|gene| format!("gene {gene}"))));
    writer.write_var(&RecordBatch::try_from_iter([("feature_id", genes)])?)?;
    for first in (0..n_cells).step_by(PIECE_CELLS as usize) {
        let cells = first..n_cells.min(first + PIECE_CELLS);
        let codes = Int16Array::from_iter_values(cells.clone().map(|cell| class(cell) as i16));
        let labels = DictionaryArray::<Int16Type>::try_new(codes, Arc::clone(&categories))?;
        writer.write_obs(&RecordBatch::try_from_iter([(LABEL, Arc::new(labels) as ArrayRef)])?)?;
        let n_values = (cells.end - cells.start) * VALUES_PER_CELL;
        let offsets: Vec<usize> =
            (0..=n_values as usize).step_by(VALUES_PER_CELL as usize).collect();
        let step = N_GENES / VALUES_PER_CELL;
        let columns: Vec<u32> = cells
            .flat_map(|cell| {
                (0..VALUES_PER_CELL).map(move |n| (n * step + (cell + n) % step) as u32)
            })
            .collect();
        let values: Vec<f32> = columns.iter().map(|column| (column % 7 + 1) as f32).collect();
        writer.write_x("raw", &offsets, &columns, &values)?;
    }
    writer.finish()?;
    println!("{n_cells} cells written in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn read(folder: &str, cells: AxisQuery) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let step = |name: &str| {
        let secs = started.elapsed().as_secs_f64();
        println!("{secs:7.2} s, peak {:6.0} MB: {name}", peak_bytes() as f64 / 1e6);
    };
    let experiment = Experiment::open(folder, &OpenOptions::default())?;
    let n_cells = experiment.obs()?.n_rows()?;
    let spec = DatasetSpec { cells, obs_columns: vec![LABEL.to_owned()], ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &spec)?;
    step("opened and filtered");

    let column = dataset.obs().column_by_name(LABEL).ok_or("the column was requested")?;
    let encoder = LabelEncoder::fit(LABEL, column, Rules::default())?;
    let dataset = dataset.with_encoders(&Encoders::new(vec![Arc::new(encoder)])?)?;
    step("encoded");

    let splits = split::by_fraction(dataset.n_rows(), &[0.8, 0.1, 0.1], Method::Deterministic, 42)?;
    step("split");
    let parts: Vec<Dataset> =
        splits.iter().map(|rows| dataset.part(rows)).collect::<Result<_, _>>()?;
    step("parts made");

    let train = parts.first().ok_or("three fractions give three parts")?.clone();
    let spec = LoaderSpec { batch_form: BatchForm::Csr, ..LoaderSpec::default() };
    let loader = Loader::new(train, spec)?;
    let (mut n_rows, mut sum) = (0, 0);
    for (idx, batch) in loader.epoch(0)?.take(N_BATCHES).enumerate() {
        let batch = batch?;
        if idx == 0 {
            step("first batch");
        }
        n_rows += batch.n_rows();
        sum += batch.joinids.iter().sum::<i64>();
    }
    step(&format!("{N_BATCHES} batches: {n_rows} rows, joinids sum to {sum}"));

    // The whole data set, its three parts and the sets of their rows are all in memory.
    let mut bytes_of: Vec<(&str, u64)> = vec![("sets of a split", 0)];
    bytes_of[0].1 = splits.iter().map(|rows| rows.memory_bytes() as u64).sum();
    for (name, of) in
        ["whole: ", "part: ", "part: ", "part: "].iter().zip([&dataset].into_iter().chain(&parts))
    {
        bytes_of.push((name, of.cell_memory().bytes() - of.cell_memory().index));
    }
    for (name, bytes) in loader.cell_memory().parts() {
        println!("train: {name}: {:.3} bytes per cell", bytes as f64 / n_cells as f64);
    }
    for (name, bytes) in bytes_of {
        println!("{name} {:.3} bytes per cell", bytes as f64 / n_cells as f64);
    }
    Ok(())
}

/// The greatest memory of this process so far; 0 where the system does not say it.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
