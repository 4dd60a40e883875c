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
  consumer: "consumer",
  world_size: "ranks",
  workload: "kind of samples",
  max_batches: "batches of an epoch",
  // A further setting is shown by its own name.
  ...Object.fromEntries(report.further_settings.map((name) => [name, name.replaceAll("_", " ")])),
  hostname: "machine",
  uri: "data",
  layout: "layout",
  total_rows: "samples",
  n_cols: "values of a sample",
};
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

// A number of bytes, or of bytes per second, has its unit.
const bytesOf = (value) => /^(\d+) B(\/s)?$/.exec(value);
const magnitudeOf = (value) => (typeof value === "number" ? value : Number(bytesOf(value)?.[1]));

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
  return values.sort((a, b) => rank(a) - rank(b) || (magnitudeOf(a) - magnitudeOf(b) || 0));
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
  const bytes = bytesOf(value);
  if (bytes) return `${decimal(bytes[1] / 1e6, 0)} MB${bytes[2] ?? ""}`;
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
