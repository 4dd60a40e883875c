//! Compares reads through a warm cache of rows with reads of a relaid copy and of the experiment
//! itself: `beside_row_cache [cells] [genes] [threads]`.
//!
//! An experiment is generated, by default of 40,000 cells by 60,000 genes, and relaid. Each epoch
//! reads all cells, in blocks of 128 chunks of 64 rows in random order, as packed CSR. The first
//! one through the cache fills it. Later ones alternate with those of the others; the best of three
//! counts.
#![expect(clippy::print_stdout, reason = "it is a program that reports")]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use example_data::{GenerateSpec, generate};
use relayout::{RelayoutEvent, RelayoutSpec, relayout};
use soma_io::{
    Config, Experiment, GeneSelection, OpenOptions, PackedCsr, ReaderChoice, RowRanges, XReader,
};

const CHUNK_ROWS: u64 = 64;
const BLOCK_CHUNKS: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let number = |idx: usize, default: u64| numbers.get(idx).copied().unwrap_or(default);
    let (n_cells, n_genes, n_threads) = (number(0, 40_000), number(1, 60_000), number(2, 2));
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (untouched, relaid, cache) = (path("untouched"), path("relaid"), path("cache"));
    let spec = GenerateSpec { n_cells, n_genes, ..GenerateSpec::default() };
    generate(&untouched, &spec, &mut |_| {})?;
    let source = Experiment::open(&untouched, &OpenOptions::default())?;
    let watch = &mut |_: RelayoutEvent<'_>| ControlFlow::Continue(());
    let report = relayout(&source, &relaid, &RelayoutSpec::default(), watch)?;
    println!("relaid with {}", report.codecs);
    let open = |uri: &str, cache: Option<&str>| -> Result<Arc<dyn XReader>, soma_io::Error> {
        let threads = ("sm.compute_concurrency_level".to_owned(), n_threads.to_string());
        let mut config = Config::from([threads]);
        config.extend(cache.map(|folder| ("soma.row_cache_folder".to_owned(), folder.to_owned())));
        let experiment = Experiment::open(uri, &OpenOptions { config, ..OpenOptions::default() })?;
        experiment.measurement("RNA")?.x("raw")?.reader(ReaderChoice::Native)
    };
    let cold = open(&untouched, Some(&cache))?;
    println!("the epoch that fills the cache: {:.0} cells/s", epoch(&*cold, 0)?);
    let usage = cold.row_cache().ok_or("there is no cache")?;
    let size = |folder: &str| bytes(Path::new(folder)).map(|bytes| bytes as f64 / 1e6);
    println!(
        "{} pages, {:.1} MB; relaid {:.1} MB; untouched {:.1} MB",
        usage.stats.written,
        size(&cache)?,
        size(&format!("{relaid}/ms/RNA/X/raw"))?,
        size(&format!("{untouched}/ms/RNA/X/raw"))?,
    );
    let readers = [
        ("untouched", open(&untouched, None)?),
        ("relaid", open(&relaid, None)?),
        ("cache of rows", open(&untouched, Some(&cache))?),
    ];
    let mut best = [0.0_f64; 3];
    for round in 0..3 {
        for (best, (_, reader)) in best.iter_mut().zip(&readers) {
            *best = best.max(epoch(&**reader, round)?);
        }
    }
    for (best, (name, _)) in best.iter().zip(&readers) {
        println!("{name}: {best:.0} cells/s");
    }
    println!("cache of rows / relaid: {:.2}", best[2] / best[1]);
    Ok(())
}

/// Reads all cells in random order; cells per second.
fn epoch(reader: &dyn XReader, seed: u64) -> Result<f64, soma_io::Error> {
    let mut chunks: Vec<u64> = (0..reader.n_rows().div_ceil(CHUNK_ROWS)).collect();
    // A generator that is good enough to mix chunks.
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for idx in (1..chunks.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        chunks.swap(idx, (state >> 33) as usize % (idx + 1));
    }
    let mut out = PackedCsr::default();
    let start = Instant::now();
    for block in chunks.chunks_mut(BLOCK_CHUNKS) {
        block.sort_unstable();
        let ranges = block
            .iter()
            .map(|chunk| chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(reader.n_rows()));
        reader.read_packed(&RowRanges::new(ranges.collect())?, &GeneSelection::All, &mut out)?;
    }
    Ok(reader.n_rows() as f64 / start.elapsed().as_secs_f64())
}

/// Bytes of all files below a folder.
fn bytes(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}
