//! Reads rows of X with the native reader and with libtiledb, from a small generated experiment in
//! a warm page cache.
//!
//! `cargo xtask bench-readers` compares the two on an experiment of any size.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use example_data::{GenerateSpec, generate};
use shuffle::PlanSpec;
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};

const N_CELLS: u64 = 8_192;

fn read(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    let spec = GenerateSpec { n_cells: N_CELLS, n_genes: 20_000, ..GenerateSpec::default() };
    generate(&uri, &spec, &mut |_| ()).unwrap();
    let experiment = Experiment::open(&uri, &OpenOptions::default()).unwrap();
    let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
    let readers =
        [ReaderChoice::Native, ReaderChoice::Libtiledb].map(|choice| x.reader(choice).unwrap());
    let in_order = RowRanges::new(vec![0..4_096]).unwrap();
    let plan = PlanSpec {
        n_rows: N_CELLS,
        chunk_rows: 64,
        chunks_per_block: 16,
        seed: 1,
        ..PlanSpec::default()
    };
    let chunks = RowRanges::new(plan.epoch(0).unwrap().block(0).unwrap().chunks).unwrap();
    let genes = GeneSelection::Range(0..2_000);
    let mut csr = CsrBuffers::default();

    let mut group = criterion.benchmark_group("read X as CSR");
    group.sample_size(10);
    for (name, rows, genes) in [
        ("4,096 rows in order", &in_order, &GeneSelection::All),
        ("16 random chunks of 64 rows", &chunks, &GeneSelection::All),
        ("16 random chunks of 64 rows, 2,000 genes", &chunks, &genes),
    ] {
        group.throughput(Throughput::Elements(rows.n_rows()));
        for reader in &readers {
            group.bench_function(BenchmarkId::new(name, reader.name()), |bencher| {
                bencher.iter(|| reader.read_csr(rows, genes, &mut csr).unwrap());
            });
        }
    }
    group.finish();

    let mut group = criterion.benchmark_group("read X as COO");
    group.sample_size(10);
    let mut nnz = 0;
    group.throughput(Throughput::Elements(in_order.n_rows()));
    for reader in &readers {
        group.bench_function(BenchmarkId::new("4,096 rows in order", reader.name()), |bencher| {
            bencher.iter(|| {
                let mut each = |batch: &arrow_array::RecordBatch| {
                    nnz += batch.num_rows();
                    Ok(())
                };
                reader.read_coo(&in_order, &GeneSelection::All, &mut each).unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
