//! Settings for rows: read back from the loader after a run, or as requested if the point failed.

use bench_report::{GridPoint, OWN_LOADER, Versions};
use loader::{EpochStats, Transform};
use soma_io::NdArray;

use crate::data::Data;
use crate::feed;
use crate::point::Point;

/// Returns the settings that ran, read back from the loader.
pub(crate) fn as_it_ran(stats: &EpochStats, point: &Point, data: &Data, cache: &str) -> GridPoint {
    let spec = &stats.spec;
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        workload: Some("cells".to_owned()),
        part: None,
        strategy: None,
        chunk_method: spec.block_form.name().to_owned(),
        batch_size: spec.batch_rows,
        world_size: point.rank.map(|_| spec.world.size),
        chunk_size: spec.chunk_rows,
        chunks_per_block: spec.chunks_per_block,
        block_size: spec.chunk_rows * spec.chunks_per_block,
        order: match spec.order {
            loader::Order::Shuffled => "shuffled",
            loader::Order::InOrder => "in-order",
            loader::Order::Listed => "listed",
        }
        .to_owned(),
        form: spec.batch_form.name().to_owned(),
        // Settings of cubes.
        stored_form: None,
        augmentation: None,
        batch_memory: None,
        slot_release: None,
        gapless: None,
        sharing: None,
        slots: None,
        transform: transform(spec.transform, data),
        reader: stats.reader.clone(),
        prefetch_blocks: spec.prefetch_blocks as u64,
        ramp_blocks: (spec.ramp_blocks != 0).then_some(spec.ramp_blocks.into()),
        seed: spec.seed,
        max_batches: point.max_batches,
        drop_last: spec.remainder == loader::Remainder::Drop,
        soma_buffer_size: buffer_bytes(data),
        n_threads: None,
        read_threads: None,
        consumer: point.consumer.noted(),
        memory_limit: point.memory_limit,
        keep_decoded: point.keep_decoded,
        prefetch_batches: Some(spec.prefetch_batches as u64),
        // The sweep limits the process and records the limit.
        point_memory_limit: None,
        point_memory_limit_by: None,
        io_limit: io_limit(data),
        link: data.link.as_ref().map(|link| link.link.clone()),
        link_faults: data.link.as_ref().and_then(|link| link.faults.clone()),
        link_cores: data.link.as_ref().and_then(|link| link.cores),
        storage_cache: None,
        // The measurement reads it from the reader.
        row_cache: None,
        io_limit_by: io_limit_by(data),
        cache: cache.to_owned(),
    }
}

/// Returns the settings as requested, for a point that failed.
pub fn as_asked(point: &Point, data: &Data, cache: &str) -> GridPoint {
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        workload: Some("cells".to_owned()),
        part: None,
        strategy: None,
        chunk_method: point.method.clone(),
        batch_size: point.batch_rows,
        world_size: point.rank.map(|of| of.world_size),
        chunk_size: point.chunk_rows,
        chunks_per_block: point.chunks_per_block,
        block_size: point.chunk_rows * point.chunks_per_block,
        order: if point.shuffled { "shuffled" } else { "in-order" }.to_owned(),
        form: point.form.clone(),
        // Settings of cubes.
        stored_form: None,
        augmentation: None,
        batch_memory: None,
        slot_release: None,
        gapless: None,
        sharing: None,
        slots: None,
        transform: transform(point.transform.into(), data),
        reader: data.reader.clone(),
        prefetch_blocks: point.prefetch_blocks as u64,
        ramp_blocks: (point.ramp_blocks != 0).then_some(point.ramp_blocks.into()),
        seed: point.seed,
        max_batches: point.max_batches,
        drop_last: point.drop_last,
        soma_buffer_size: buffer_bytes(data),
        n_threads: None,
        read_threads: None,
        consumer: point.consumer.noted(),
        memory_limit: point.memory_limit,
        keep_decoded: point.keep_decoded,
        prefetch_batches: Some(point.prefetch_batches as u64),
        // The sweep limits the process and records the limit.
        point_memory_limit: None,
        point_memory_limit_by: None,
        io_limit: io_limit(data),
        link: data.link.as_ref().map(|link| link.link.clone()),
        link_faults: data.link.as_ref().and_then(|link| link.faults.clone()),
        link_cores: data.link.as_ref().and_then(|link| link.cores),
        storage_cache: None,
        row_cache: data.row_cache_limit(),
        io_limit_by: io_limit_by(data),
        cache: cache.to_owned(),
    }
}

/// Describes the transform of values and its totals; `None` if it changes nothing.
fn transform(transform: Transform, data: &Data) -> Option<String> {
    let text = match (transform.target_sum, &data.totals) {
        (Some(target), Some(column)) => transform.to_string().replacen(
            &format!("per {target}"),
            &format!("per {target} of {column}"),
            1,
        ),
        _ => transform.to_string(),
    };
    (!transform.is_identity()).then_some(text)
}

fn io_limit(data: &Data) -> Option<u64> {
    data.io_limit.as_ref().map(|limit| limit.bytes_per_second.get())
}

fn io_limit_by(data: &Data) -> Option<String> {
    data.io_limit.as_ref().map(|limit| limit.by.name().to_owned())
}

/// Returns the size of libtiledb's buffer for each column, in bytes.
fn buffer_bytes(data: &Data) -> Option<u64> {
    match data.config.get("soma.init_buffer_bytes") {
        Some(bytes) => bytes.parse().ok(),
        None => Some(NdArray::BUFFER_BYTES as u64),
    }
}

/// Returns the versions of the libraries that this process uses.
pub fn versions() -> Versions {
    let noted = |version: Option<&str>| version.map(str::to_owned);
    Versions {
        somafeed: Some(env!("CARGO_PKG_VERSION").to_owned()),
        rustc: noted(option_env!("GRID_POINT_RUSTC")),
        libtiledb: tiledb::library()
            .ok()
            .map(|((major, minor, patch), _)| format!("{major}.{minor}.{patch}")),
        libtorch: noted(feed::LIBTORCH_VERSION),
        tch: noted(feed::TCH_VERSION),
        peer: None,
    }
}
