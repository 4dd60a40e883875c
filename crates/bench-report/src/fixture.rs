//! Records for this crate's tests: a small grid on a machine that never was.

use jiff::Timestamp;

use crate::{
    BatchSample, DataInfo, EpochRecord, GridPoint, HostInfo, Measured, OrderEntropy, RunInfo,
    StageTimes, Status, Versions,
};

/// One epoch; `n_batches` batches of 1,024 rows, each waited for `wait_secs`, the first five times as long.
pub(crate) fn epoch(
    method: &str,
    (chunk_size, chunks_per_block): (u64, u64),
    wait_secs: f64,
) -> EpochRecord {
    let batch = BatchSample { wait_secs, consume_secs: 0.0625, n_rows: 1024, nnz: 1_500_000 };
    let first = BatchSample { wait_secs: wait_secs * 5.0, ..batch };
    let mut measured = Measured::from_batches(&[first, batch, batch, batch], 0.0);
    measured.epoch = Some(0);
    measured.max_mem = Some(500_000_000 + chunk_size * chunks_per_block * 40_000);
    measured.cells_decoded = Some(12_000_000);
    measured.order_entropy = entropies(chunks_per_block);
    measured.fill_rates();
    EpochRecord {
        run: RunInfo {
            run_id: "2026-07-01-example".to_owned(),
            run_start_dt: Timestamp::UNIX_EPOCH,
            command: "cargo xtask sweep -b '64x16'".to_owned(),
            sha: Some("0123abcd".to_owned()),
            git_dirty: Some(true),
            metadata: [("disk".to_owned(), "NVMe".to_owned())].into(),
        },
        host: host(),
        versions: Versions { somafeed: Some("0.1.0".to_owned()), ..Versions::default() },
        data: data(),
        point: point(method, (chunk_size, chunks_per_block)),
        measured,
        stages: StageTimes::default(),
    }
}

/// Of two labels; more chunks to a block are more random.
fn entropies(chunks_per_block: u64) -> Vec<OrderEntropy> {
    let label = |label: &str, bits: f64| OrderEntropy {
        label: label.to_owned(),
        mean: Some(bits - 1.0 / chunks_per_block as f64),
        standard_deviation: Some(0.125),
        expected: Some(bits - 0.75 / chunks_per_block as f64),
        expected_by: Some("formula".to_owned()),
        perfect: Some(bits),
        data: Some(bits + 0.25),
    };
    vec![label("cell_type", 4.5), label("tissue", 2.5)]
}

/// An epoch that the kernel ended.
pub(crate) fn killed(method: &str, chunks: (u64, u64)) -> EpochRecord {
    let measured = Measured::failed(Status::Oom, "killed by signal 9 | no memory");
    EpochRecord { measured, ..epoch(method, chunks, 1.0) }
}

/// A grid of three methods, with two epochs of one point, and one that failed.
pub(crate) fn grid() -> Vec<EpochRecord> {
    vec![
        epoch("np.array", (64, 16), 0.25),
        epoch("np.array", (64, 256), 0.125),
        epoch("np.array", (64, 256), 0.1875),
        epoch("scipy.csr", (64, 16), 0.5),
        killed("scipy.csr", (64, 256)),
        epoch("native", (64, 16), 0.0625),
        epoch("native", (64, 256), 0.03125),
        epoch("native", (4096, 1), 0.04),
    ]
}

fn host() -> HostInfo {
    HostInfo {
        hostname: "bench-1".to_owned(),
        host: "Example CPU, 8 cores, 32 GiB".to_owned(),
        n_cores: 8,
        memory_bytes: 32 << 30,
        os: Some("Linux (Example 1)".to_owned()),
        ..HostInfo::default()
    }
}

fn data() -> DataInfo {
    DataInfo {
        uri: "/data/census-20000x20000".to_owned(),
        measurement: Some("RNA".to_owned()),
        layer: Some("raw".to_owned()),
        obs_filter: None,
        var_filter: None,
        total_rows: 20_000,
        n_cols: 20_000,
        total_nnz: None,
    }
}

fn point(method: &str, (chunk_size, chunks_per_block): (u64, u64)) -> GridPoint {
    GridPoint {
        chunk_method: method.to_owned(),
        batch_size: 1024,
        chunk_size,
        chunks_per_block,
        block_size: chunk_size * chunks_per_block,
        order: "shuffled".to_owned(),
        form: "dense".to_owned(),
        reader: "libtiledb".to_owned(),
        prefetch_blocks: 1,
        seed: u64::MAX,
        cache: "warm".to_owned(),
        ..GridPoint::default()
    }
}
