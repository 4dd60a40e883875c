//! Reading rows of X through libtiledb: a small generated experiment, page cache warm.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use example_data::{GenerateSpec, generate};
use shuffle::{Order, PlanSpec};
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};

const N_CELLS: u64 = 8_192;

fn read(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    let spec = GenerateSpec { n_cells: N_CELLS, n_genes: 20_000, ..GenerateSpec::default() };
    generate(&uri, &spec, &mut |_| ()).unwrap();
    let experiment = Experiment::open(&uri, &OpenOptions::default()).unwrap();
    let reader = experiment
        .measurement("RNA")
        .unwrap()
        .x("raw")
        .unwrap()
        .reader(ReaderChoice::Auto)
        .unwrap();
    let in_order = RowRanges::new(vec![0..4_096]).unwrap();
    let plan = PlanSpec {
        n_rows: N_CELLS,
        chunk_rows: 64,
        chunks_per_block: 16,
        order: Order::Shuffled,
        seed: 1,
    };
    let chunks = RowRanges::new(plan.epoch(0).unwrap().block(0).unwrap().chunks).unwrap();
    let mut csr = CsrBuffers::default();

    let mut group = criterion.benchmark_group("read X as CSR, 20000 genes");
    group.sample_size(10);
    for (name, rows) in
        [("4,096 rows in order", &in_order), ("16 random chunks of 64 rows", &chunks)]
    {
        group.throughput(Throughput::Elements(rows.n_rows()));
        group.bench_function(name, |bencher| {
            bencher.iter(|| reader.read_csr(rows, &GeneSelection::All, &mut csr).unwrap());
        });
    }
    let mut nnz = 0;
    group.throughput(Throughput::Elements(in_order.n_rows()));
    group.bench_function("4,096 rows in order, as COO", |bencher| {
        bencher.iter(|| {
            reader
                .read_coo(&in_order, &GeneSelection::All, &mut |batch| {
                    nnz += batch.num_rows();
                    Ok(())
                })
                .unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
