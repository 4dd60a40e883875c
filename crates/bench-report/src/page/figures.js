// The figures of a grid point: their labels, units and number formats.

const FIGURES = {
  samples_per_sec: { label: "samples/s, first batch counted", digits: 0 },
  samples_per_sec_after_first: { label: "samples/s, first batch left out", digits: 0 },
  nnz_per_sec: { label: "million non-zeros/s", factor: 1e-6, digits: 2 },
  max_mem: { label: "peak memory, GB", factor: 1e-9, digits: 2 },
  epoch_max_mem: { label: "peak memory since the epoch began, GB", factor: 1e-9, digits: 2 },
  start_mem_bytes: { label: "memory at the start, GB", factor: 1e-9, digits: 2 },
  pss_bytes: { label: "PSS at the end, GB", factor: 1e-9, digits: 2 },
  max_mem_processes: { label: "processes of that peak", digits: 0 },
  open_secs: { label: "opening, s", digits: 3 },
  time_to_first_batch_secs: { label: "time to first batch, s", digits: 3 },
  wait_p50_secs: { label: "wait p50, ms", factor: 1e3, digits: 2 },
  wait_p95_secs: { label: "wait p95, ms", factor: 1e3, digits: 2 },
  wait_p99_secs: { label: "wait p99, ms", factor: 1e3, digits: 2 },
  wait_p50_after_first_secs: { label: "wait p50 after the first batch, ms", factor: 1e3, digits: 2 },
  wait_p99_after_first_secs: { label: "wait p99 after the first batch, ms", factor: 1e3, digits: 2 },
  wait_max_secs: { label: "wait max, ms", factor: 1e3, digits: 2 },
  wait_slowest_tenth_share: { label: "share of all waiting in the slowest 10 % of batches, %", factor: 100, digits: 1 },
  wait_mean_secs: { label: "wait mean, ms", factor: 1e3, digits: 2 },
  stall_share: { label: "stalled, %", factor: 100, digits: 1 },
  busy_share: { label: "consumer busy, %", factor: 100, digits: 1 },
  accelerator_utilization: { label: "accelerator utilisation (AU), %", factor: 100, digits: 1 },
  device_busy_share: { label: "device busy, %", factor: 100, digits: 1 },
  pinned_bytes: { label: "pinned memory, GB", factor: 1e-9, digits: 2 },
  sample_interval_secs: { label: "interval of samples, s", digits: 2 },
  ready_batches_mean: { label: "batches ready when asked, mean", digits: 2 },
  ready_blocks_mean: { label: "blocks ready when asked, mean", digits: 2 },
  elapsed: { label: "elapsed, s", digits: 3 },
  elapsed_after_first: { label: "elapsed after first batch, s", digits: 3 },
  read_secs: { label: "read, s", digits: 3 },
  densify_secs: { label: "densify, s", digits: 3 },
  wait_secs: { label: "wait, s", digits: 3 },
  consume_secs: { label: "consume, s", digits: 3 },
  read_wall_secs: { label: "stage read, thread s", digits: 3 },
  read_cpu_secs: { label: "stage read, CPU s", digits: 3 },
  decode_wall_secs: { label: "stage decode, thread s", digits: 3 },
  decode_cpu_secs: { label: "stage decode, CPU s", digits: 3 },
  shuffle_wall_secs: { label: "stage shuffle, thread s", digits: 3 },
  shuffle_cpu_secs: { label: "stage shuffle, CPU s", digits: 3 },
  densify_wall_secs: { label: "stage densify, thread s", digits: 3 },
  densify_cpu_secs: { label: "stage densify, CPU s", digits: 3 },
  wait_wall_secs: { label: "stage wait, thread s", digits: 3 },
  wait_cpu_secs: { label: "stage wait, CPU s", digits: 3 },
  consume_wall_secs: { label: "stage consume, thread s", digits: 3 },
  consume_cpu_secs: { label: "stage consume, CPU s", digits: 3 },
  cpu_secs: { label: "CPU, s", digits: 2 },
  cpu_user_secs: { label: "CPU user, s", digits: 2 },
  cpu_system_secs: { label: "CPU system, s", digits: 2 },
  bytes_read: { label: "read from storage, MB", factor: 1e-6, digits: 1 },
  io_bytes: { label: "read under the rate limit, MB", factor: 1e-6, digits: 1 },
  io_secs: { label: "time of reads under the rate limit, s", digits: 3 },
  io_bytes_per_sec: { label: "rate of reads under the rate limit, MB/s", factor: 1e-6, digits: 1 },
  requests: { label: "requests to the object store", digits: 0 },
  link_requests: { label: "requests over the link", digits: 0 },
  link_open_requests: { label: "requests over the link before the epoch", digits: 0 },
  link_bytes: { label: "sent over the link, MB", factor: 1e-6, digits: 1 },
  link_connections: { label: "connections over the link", digits: 0 },
  link_most_under_way: { label: "most requests under way over the link", digits: 0 },
  link_faults_met: { label: "faults of the link", digits: 0 },
  link_needed_bytes: { label: "stored bytes needed over the link, MB", factor: 1e-6, digits: 1 },
  link_bytes_floor_secs: { label: "needed bytes at the link's rate, s", digits: 3 },
  link_latency_floor_secs: { label: "latency of the requests over the link, s", digits: 3 },
  link_server_cpu_share: { label: "cores used by the link's server", digits: 2 },
  cache_hits: { label: "storage cache, blocks hit", digits: 0 },
  cache_misses: { label: "storage cache, blocks missed", digits: 0 },
  row_cache_hits: { label: "cache of rows, pages hit", digits: 0 },
  row_cache_misses: { label: "cache of rows, pages missed", digits: 0 },
  row_cache_bytes: { label: "cache of rows on disk, MB", factor: 1e-6, digits: 1 },
  cells_decoded: { label: "cells decoded, million", factor: 1e-6, digits: 2 },
  kept_decoded_bytes: { label: "values kept decoded at the end, MB", factor: 1e-6, digits: 1 },
  joinid_bytes: { label: "memory of joinids, MB", factor: 1e-6, digits: 1 },
  obs_bytes: { label: "memory of obs columns, MB", factor: 1e-6, digits: 1 },
  code_bytes: { label: "memory of codes, MB", factor: 1e-6, digits: 1 },
  total_bytes: { label: "memory of totals, MB", factor: 1e-6, digits: 1 },
  order_bytes: { label: "memory of the order, MB", factor: 1e-6, digits: 1 },
  index_bytes: { label: "memory of row indices, MB", factor: 1e-6, digits: 1 },
  bytes_decoded: { label: "decoded, MB", factor: 1e-6, digits: 1 },
  bytes_needed: { label: "needed, MB", factor: 1e-6, digits: 1 },
  bytes_amplification: { label: "decoded / needed bytes", digits: 2 },
  amplification: { label: "amplification", digits: 2 },
  entropy: { label: "label entropy in batches, bits", digits: 3 },
  entropy_expected: { label: "label entropy expected, bits", digits: 3 },
  entropy_of_first_batches: { label: "label entropy of the first block, bits", digits: 3 },
  entropy_of_first_batches_expected: { label: "label entropy of the first block expected, bits", digits: 3 },
  entropy_perfect: { label: "label entropy of a perfect shuffle, bits", digits: 3 },
  entropy_data: { label: "label entropy of the data, bits", digits: 3 },
  entropy_sd: { label: "label entropy, sd between batches, bits", digits: 3 },
  n_rows: { label: "rows", digits: 0 },
  n_rows_after_first: { label: "rows after first batch", digits: 0 },
  n_batches: { label: "batches", digits: 0 },
  nnz: { label: "non-zeros", digits: 0 },
};

const decimal = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const grouped = (value) => (typeof value === "number" ? value.toLocaleString("en-US") : String(value));

const label = (name) => FIGURES[name]?.label ?? name;

// A spread in the figure's display unit, or null.
function spread(point, name) {
  const value = point.figures[name];
  if (value == null) return null;
  const factor = FIGURES[name]?.factor ?? 1;
  const [median, min, max, n] = typeof value === "number" ? [value, value, value, 1] : value;
  return { median: median * factor, min: min * factor, max: max * factor, n };
}

const median = (point, name) => spread(point, name)?.median ?? null;

const number = (value, name) => decimal(value, FIGURES[name]?.digits ?? 3);

function range(spread, name) {
  const [min, max] = [number(spread.min, name), number(spread.max, name)];
  return min === max ? "" : `${min}–${max}`;
}

// Sets text as text only, so that no data is interpreted as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
