//! Planning: the order of an epoch, and of one block.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shuffle::PlanSpec;

fn plan(criterion: &mut Criterion) {
    let spec = PlanSpec { n_rows: 10_000_000, seed: 42, ..PlanSpec::default() };
    let mut group = criterion.benchmark_group("plan");
    group.throughput(Throughput::Elements(spec.n_rows));
    group.bench_function("order of the chunks of 10 M rows", |bencher| {
        bencher.iter(|| spec.epoch(black_box(3)));
    });
    let Ok(epoch) = spec.epoch(3) else { unreachable!("the sizes are good") };
    group.throughput(Throughput::Elements(65_536));
    group.bench_function("a block of 65,536 rows", |bencher| {
        bencher.iter(|| epoch.block(black_box(5)));
    });
    group.finish();
}

criterion_group!(benches, plan);
criterion_main!(benches);
