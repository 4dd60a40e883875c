// Puts the page together from the data that it carries.

const report = JSON.parse(document.getElementById("report-data").textContent);

const state = {
  points: report.points,
  markedId: report.marked_id,
  markedLabel: report.marked_label,
  bothForms: new Set(report.points.map((point) => point.settings.form)).size > 1,
  hidden: [],
  chosen: null,
  x: "max_mem",
  y: "samples_per_sec",
  sortBy: COLUMNS.findIndex((column) => column.figure === "samples_per_sec"),
  descending: true,
};
state.chosen = state.points.find((point) => point.id === state.markedId) ?? sorted(state)[0];

function drawAll(now) {
  hideTip();
  drawLegend(now);
  drawChart(now);
  drawTable(now);
  drawDetail(now);
}

function offer(id, axis, names) {
  const select = document.getElementById(id);
  for (const name of names.filter((name) => name === state[axis] || state.points.some((point) => point.figures[name]))) {
    select.append(element("option", { value: name }, label(name)));
  }
  select.value = state[axis];
  select.addEventListener("change", () => {
    state[axis] = select.value;
    drawAll(state);
  });
}

const others = ["time_to_first_batch_secs", "wait_p99_secs", "stall_share", "cpu_secs", "amplification", "entropy"];
offer("y-figure", "y", ["samples_per_sec", "samples_per_sec_after_first", "nnz_per_sec", ...others]);
offer("x-figure", "x", ["max_mem", "pss_bytes", ...others]);
document.getElementById("machine").textContent = report.subtitle[0];
document.getElementById("data-line").textContent = report.subtitle[1];
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = getComputedStyle(root).colorScheme === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
});
drawRuns(report.runs);
drawAll(state);
new ResizeObserver(() => drawChart(state)).observe(document.getElementById("chart"));
