// The settings of a grid point: their labels, which of them differ, and names that distinguish points.

const report = JSON.parse(document.getElementById("report-data").textContent);

const SETTINGS = {
  // Set if points differ by more than method or folder, for instance by loader and data.
  series: report.series?.heading ?? "series",
  folder: "results",
  loader: "loader",
  chunk_method: "method",
  form: "batches",
  block_size: "rows per block",
  chunk_size: "rows per chunk",
  chunks_per_block: "chunks per block",
  batch_size: "rows per batch",
  reader: "reader",
  cache: "page cache",
  order: "order",
  transform: "values",
  consumer: "consumer",
  world_size: "ranks",
  prefetch_blocks: "blocks read ahead",
  ramp_blocks: "growing blocks at the start",
  prefetch_batches: "batches made ahead",
  n_threads: "threads",
  read_threads: "blocks read at once",
  workload: "kind of samples",
  part: "part of the samples",
  strategy: "strategy",
  stored_form: "files",
  augmentation: "augmentation",
  batch_memory: "memory of batches",
  slot_release: "release of a batch",
  gapless: "next epoch read ahead",
  sharing: "threads of a batch",
  slots: "slots",
  memory_limit: "memory limit",
  keep_decoded: "limit of values kept decoded",
  point_memory_limit: "memory limit of the process",
  point_memory_limit_by: "enforcement of that limit",
  io_limit: "rate limit of reads",
  io_limit_by: "enforcement of the rate limit",
  link: "link to the data",
  link_faults: "faults of the link",
  link_cores: "cores of the link's server alone",
  storage_cache: "cache on disk",
  row_cache: "cache of rows on disk",
  max_batches: "batches of an epoch",
  drop_last: "short batch left out",
  soma_buffer_size: "read buffer",
  hostname: "machine",
  uri: "data",
  layout: "layout",
  measurement: "measurement",
  layer: "layer",
  obs_filter: "cells",
  var_filter: "genes",
  total_rows: "number of cells",
  n_cols: "number of genes",
};
const BYTES = ["memory_limit", "keep_decoded", "point_memory_limit", "io_limit", "storage_cache", "row_cache", "soma_buffer_size"];
// Labels of settings that only the details of a point show.
const DETAILS = { seed: "seed", total_nnz: "non-zeros of X", entropy_of: "label of the entropy" };
const NONE = "none";

const points = report.points.map((point, id) => ({
  ...point,
  id,
  settings: { loader: "somafeed", ...report.shared, ...point.settings },
  figures: Object.fromEntries(report.figures.map((name, idx) => [name, point.figures[idx]])),
}));

const settingOf = (point, key) => point.settings[key] ?? NONE;

// All values of a setting: numbers ascending, others in order of appearance, "none" last.
const knownValues = new Map();

function valuesOf(key) {
  if (!knownValues.has(key)) knownValues.set(key, findValues(key));
  return knownValues.get(key);
}

function findValues(key) {
  const values = [...new Set(points.map((point) => settingOf(point, key)))];
  if (key === "series" && report.series) return report.series.names;
  const rank = (value) => (value === NONE ? 1 : 0);
  return values.sort((a, b) => rank(a) - rank(b) || (typeof a === "number" && typeof b === "number" ? a - b : 0));
}

const varying = Object.keys(SETTINGS).filter((key) => valuesOf(key).length > 1);

// Settings that are constant within each series, so that its name implies them.
const ofSeries = report.series
  ? varying.filter((key) => {
      const values = d3.rollup(
        points,
        (group) => new Set(group.map((point) => settingOf(point, key))).size,
        (point) => settingOf(point, "series"),
      );
      return key !== "series" && [...values.values()].every((n) => n === 1);
    })
  : [];

function shownValue(key, value) {
  if (value === NONE) return NONE;
  if (BYTES.includes(key)) return `${decimal(value / 1e6, 0)} MB${key === "io_limit" ? "/s" : ""}`;
  if (key === "uri") return String(value).replace(/\/+$/, "").split("/").pop();
  return grouped(value);
}

const chunksOf = ({ settings }) => `${grouped(settings.chunks_per_block)} × ${grouped(settings.chunk_size)}`;

// The series or method, the chunks, and all other settings that differ in this report.
function nameOf(point) {
  const genes = report.series ? [] : ["n_cols"];
  const named = ["series", "loader", "chunk_method", "chunks_per_block", "chunk_size", "block_size", "layer", ...genes, ...ofSeries];
  const others = varying.filter((key) => !named.includes(key) && settingOf(point, key) !== NONE);
  const rest = others.map((key) => {
    const value = shownValue(key, settingOf(point, key));
    return typeof settingOf(point, key) === "number" ? `${value} ${SETTINGS[key]}` : value;
  });
  return [`${point.settings.series ?? point.settings.chunk_method} ${chunksOf(point)}`, ...rest].join(", ");
}
