//! The kernels: a batch of 1,024 cells from COO and CSR to dense rows.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;

use benches::cells;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use csr::{CsrBuffers, CsrView, PackedValues, PackedView};
use densify::{
    AxisIndex, CooToCsr, CooView, RowTransforms, Transform, csr_gather_rows, csr_rows_to_dense,
    scatter_coo,
};
use half::f16;

const N_ROWS: usize = 1_024;

fn densify(criterion: &mut Criterion) {
    for n_columns in [20_000, 60_000] {
        let cells = cells(N_ROWS, n_columns);
        let coo = CooView { rows: &cells.rows, columns: &cells.genes, values: &cells.values };
        let csr = CsrView {
            row_offsets: &cells.row_offsets,
            columns: &cells.columns,
            values: &cells.values,
            n_columns,
        };
        let rows = AxisIndex::ranges("cell", [0..N_ROWS as u64]).unwrap();
        let columns = AxisIndex::ranges("gene", [0..n_columns as u64]).unwrap();
        // A fixed order other than the stored one: 389 and 1,024 have no common divisor.
        let order: Vec<u32> = (0..N_ROWS as u32).map(|row| row * 389 % N_ROWS as u32).collect();
        let mut dense = vec![0.0; N_ROWS * n_columns];

        let mut group = criterion.benchmark_group(format!("densify {n_columns} genes"));
        group.throughput(Throughput::Elements(N_ROWS as u64));
        group.bench_function("np.array: COO into a zeroed block", |bencher| {
            bencher.iter(|| {
                dense.fill(0.0);
                scatter_coo(black_box(coo), &rows, &columns, &mut dense)
            });
        });
        // Like a selection of genes: one by one, in another order than the stored one.
        let list: Vec<u64> = (0..n_columns as u64).rev().collect();
        let list = AxisIndex::list("gene", &list).unwrap();
        group.bench_function("np.array: COO of listed genes", |bencher| {
            bencher.iter(|| {
                dense.fill(0.0);
                scatter_coo(black_box(coo), &rows, &list, &mut dense)
            });
        });
        let mut counter = CooToCsr::new();
        let mut counted = CsrBuffers::empty(n_columns);
        group.bench_function("scipy.csr: COO counted into CSR", |bencher| {
            bencher.iter(|| {
                counter.clear();
                counter.add(black_box(coo), &rows, &columns)?;
                counter.finish(N_ROWS, n_columns, &mut counted)
            });
        });
        group.bench_function("native: CSR into a used dense batch", |bencher| {
            bencher.iter(|| csr_rows_to_dense(black_box(csr), &order, None, &mut dense));
        });
        let narrow: Vec<u16> = cells.columns.iter().map(|column| *column as u16).collect();
        let counts: Vec<u16> = cells.values.iter().map(|value| *value as u16).collect();
        let packed = PackedView {
            row_offsets: &cells.row_offsets,
            columns: &narrow,
            values: PackedValues::Counts(&counts),
            n_columns,
        };
        group.bench_function("native: packed CSR into a used dense batch", |bencher| {
            bencher.iter(|| csr_rows_to_dense(black_box(packed), &order, None, &mut dense));
        });
        let transform = Transform { target_sum: Some(1e4), log1p: true, clip: Some((0.0, 10.0)) };
        let transforms = Some(RowTransforms { transform: &transform, totals: None });
        group.bench_function("native: the same, per 10,000, log1p and clipped", |bencher| {
            bencher.iter(|| csr_rows_to_dense(black_box(csr), &order, transforms, &mut dense));
        });
        let mut half = vec![f16::ZERO; N_ROWS * n_columns];
        group.bench_function("native: CSR into a used dense batch of f16", |bencher| {
            bencher.iter(|| csr_rows_to_dense(black_box(csr), &order, None, &mut half));
        });
        group.bench_function("native: CSR rows gathered", |bencher| {
            bencher.iter(|| {
                counted.clear();
                csr_gather_rows(black_box(csr), &order, None, &mut counted)
            });
        });
        group.bench_function("native: packed CSR rows gathered", |bencher| {
            bencher.iter(|| {
                counted.clear();
                csr_gather_rows(black_box(packed), &order, None, &mut counted)
            });
        });
        group.finish();
    }
}

criterion_group!(benches, densify);
criterion_main!(benches);
