//! Settings for rows: read back from the loader after a run, or as requested if the point failed.

use bench_report::{GridPoint, Versions};
use bench_run::{changed, engine_point};
use loader::{EpochStats, LoaderSpec, Transform};
use soma_io::NdArray;

use crate::data::Data;
use crate::feed;
use crate::point::Point;

/// The limit of the cache of decoded rows.
pub(crate) const ROW_CACHE: &str = "row_cache";

/// The loader's settings that rows have in columns of their own, or in other words.
const SHOWN_ELSEWHERE: [&str; 6] =
    ["pipeline", "block_form", "batch_form", "transform", "totals", "tokens"];

/// Returns the settings that ran, read back from the loader.
pub(crate) fn as_it_ran(stats: &EpochStats, point: &Point, data: &Data, cache: &str) -> GridPoint {
    recorded(&stats.spec, point, data, &stats.reader, cache)
}

/// Returns the settings as requested, for a point that failed.
pub fn as_asked(point: &Point, data: &Data, cache: &str) -> GridPoint {
    recorded(&point.spec, point, data, &data.reader, cache)
}

fn recorded(spec: &LoaderSpec, point: &Point, data: &Data, reader: &str, cache: &str) -> GridPoint {
    let engine = engine_point(&spec.pipeline);
    let mut settings = changed(spec, &LoaderSpec::default(), &SHOWN_ELSEWHERE)
        .with_some("transform", transform(spec.transform, data))
        .with_bytes("soma_buffer_size", buffer_bytes(data))
        .with_bytes("memory_limit", point.memory_limit)
        .with_bytes("keep_decoded", point.spec.pipeline.keep_bytes)
        .with_bytes(ROW_CACHE, data.row_cache_limit());
    settings.set_all(engine.settings);
    settings.set_all(data.conditions());
    let mut recorded = GridPoint {
        workload: Some("cells".to_owned()),
        chunk_method: spec.block_form.name().to_owned(),
        world_size: point.rank().map(|world| world.size),
        form: spec.batch_form.name().to_owned(),
        reader: reader.to_owned(),
        max_batches: point.max_batches,
        consumer: point.consumer.noted(),
        cache: cache.to_owned(),
        settings,
        ..engine
    };
    if let Some(link) = &data.link {
        link.enter(&mut recorded);
    }
    recorded
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
