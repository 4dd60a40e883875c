//! Records for this crate's tests: a small grid on an invented machine.

use jiff::Timestamp;

use crate::{
    BatchSample, DataInfo, EpochRecord, GridPoint, HostInfo, Measured, OrderEntropy, RunInfo,
    Settings, StageTimes, Status, Versions,
};

/// One epoch of `n_batches` batches of 1,024 rows, each with a wait of `wait_secs`, the first with
/// five times that.
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

/// Entropy of two labels, larger for more chunks per block.
fn entropies(chunks_per_block: u64) -> Vec<OrderEntropy> {
    let label = |label: &str, bits: f64| OrderEntropy {
        label: label.to_owned(),
        mean: Some(bits - 1.0 / chunks_per_block as f64),
        standard_deviation: Some(0.125),
        expected: Some(bits - 0.75 / chunks_per_block as f64),
        expected_by: Some("formula".to_owned()),
        perfect: Some(bits),
        first_mean: None,
        first_expected: None,
        data: Some(bits + 0.25),
    };
    vec![label("cell_type", 4.5), label("tissue", 2.5)]
}

/// An epoch whose process the kernel killed.
pub(crate) fn killed(method: &str, chunks: (u64, u64)) -> EpochRecord {
    let measured = Measured::failed(Status::Oom, "killed by signal 9 | no memory");
    EpochRecord { measured, ..epoch(method, chunks, 1.0) }
}

/// A grid of three methods, with two epochs for one point and one failed epoch.
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

/// An epoch of a loader at 64 × `chunks` with one form of batches; `speed` and `memory` are
/// multiples of those of the slowest and smallest loader.
pub(crate) fn epoch_of(
    (loader, label): (&str, &str),
    form: &str,
    chunks: u64,
    (speed, memory): (f64, f64),
) -> EpochRecord {
    let mut record = epoch(label, (64, chunks), 1.0 / speed);
    record.point.loader = Some(loader.to_owned());
    record.point.form = form.to_owned();
    record.point.reader = label.to_owned();
    record.measured.max_mem = Some((3e8 * memory) as u64);
    record
}

/// Eight loaders, ours on two copies of the data, with two forms of batches and two block sizes,
/// three epochs each.
pub(crate) fn loaders() -> Vec<EpochRecord> {
    const LOADERS: [(&str, &str, f64, f64); 8] = [
        ("somafeed", "native", 20.0, 1.0),
        ("somafeed", "native", 45.0, 0.9),
        ("annbatch", "annbatch", 12.0, 2.4),
        ("annbatch", "annbatch documented", 19.0, 1.1),
        ("tiledbsoma-ml", "tiledbsoma-ml", 2.4, 6.5),
        ("scdataset", "scdataset", 3.5, 2.2),
        ("bionemo-scdl", "bionemo-scdl", 5.0, 1.6),
        ("ExperimentDataPipe", "ExperimentDataPipe", 0.5, 9.0),
    ];
    let mut records = Vec::new();
    for (idx, (loader, label, speed, memory)) in LOADERS.into_iter().enumerate() {
        for (form, chunks) in [("dense", 1024), ("dense", 128), ("csr", 1024), ("csr", 128)] {
            for turn in 0..3 {
                let size: f64 = if chunks == 1024 { 2.5 } else { 1.0 };
                let times = if form == "csr" { 2.2 } else { 1.0 } * (1.0 + 0.06 * f64::from(turn));
                let figures = (speed * times * size.sqrt(), memory * size);
                let mut record = epoch_of((loader, label), form, chunks, figures);
                if idx == 1 {
                    record.data.uri = "/cache/experiment".to_owned();
                    record.data.layout = Some("relaid".to_owned());
                }
                records.push(record);
            }
        }
    }
    records
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
        layout: None,
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
        seed: u64::MAX,
        cache: "warm".to_owned(),
        settings: Settings::default()
            .with("measurement", "RNA")
            .with("layer", "raw")
            .with("prefetch_blocks", 1),
        ..GridPoint::default()
    }
}
