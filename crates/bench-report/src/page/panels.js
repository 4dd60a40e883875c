// The panels around the plot: views, axes, the filtering legend, details of the chosen point, runs.

const swatch = (...drawn) => shape("svg", { viewBox: "-9 -9 18 18", "aria-hidden": "true" }, ...drawn);

function drawViews() {
  const links = VIEWS.map(({ id, title }) => {
    const link = element("a", { href: addressOf({ view: id }) }, title);
    if (id === currentView().id) link.setAttribute("aria-current", "page");
    return link;
  });
  const views = document.getElementById("views");
  views.replaceChildren(...links);
  // A phone has no room for all of them.
  const current = views.querySelector("[aria-current]");
  views.scrollLeft = current.offsetLeft - views.offsetLeft - 40;
}

const Y_FIGURES = ["samples_per_sec", "samples_per_sec_after_first", "nnz_per_sec"];
const X_FIGURES = ["max_mem", "pss_bytes"];
const EITHER = [
  "time_to_first_batch_secs",
  "wait_p50_secs",
  "wait_p99_secs",
  "wait_max_secs",
  "wait_slowest_tenth_share",
  "stall_share",
  "busy_share",
  "accelerator_utilization",
  "cpu_secs",
  "bytes_read",
  "amplification",
  "bytes_amplification",
  "entropy",
  "open_secs",
];

function choices(name) {
  const there = (names) => names.filter((one) => report.figures.includes(one)).map((one) => [one, label(one)]);
  const first = [...(report.series ? ["series"] : []), "chunk_method", "reader", "chunks_per_block"];
  const settings = [...new Set([...first, ...varying])].map((key) => [key, SETTINGS[key]]);
  const sizes = [
    ["block_size", "rows per block"],
    ["other", currentView().id === "chunks" ? "rows per chunk" : "chunks per block"],
  ];
  return {
    y: () => there([...Y_FIGURES, ...EITHER, ...X_FIGURES]),
    x: () => there([...X_FIGURES, ...EITHER, ...Y_FIGURES]),
    shape: () => settings,
    color: () => settings,
    lines: () => sizes,
    scale: () => [
      ["linear", "from zero"],
      ["log", "logarithmic"],
    ],
    clock: () => [
      ["wall", "thread seconds"],
      ["cpu", "CPU seconds"],
    ],
    behind: () =>
      report.published ? [["", "nothing"], ...report.published.slices.map(({ name }, idx) => [String(idx), name])] : [],
  }[name]();
}

const CONTROLS = {
  y: "up",
  x: "across",
  shape: "shape",
  color: "color",
  lines: "one line per",
  clock: "in",
  scale: "axes",
  behind: "behind, published in 2024",
};

function drawControls() {
  const made = currentView().controls.map((name) => {
    const options = choices(name);
    if (!options.length) return null;
    const select = element(
      "select",
      { id: `choose-${name}` },
      ...options.map(([value, words]) => element("option", { value }, words)),
    );
    select.value = state[name];
    select.addEventListener("change", () => {
      state[name] = select.value;
      drawAll();
      document.getElementById(`choose-${name}`)?.focus();
    });
    return element("label", {}, element("span", {}, CONTROLS[name === "shape" && isLines() ? "color" : name]), select);
  });
  document.getElementById("controls").replaceChildren(...made.filter(Boolean));
}

const isLines = () => ["chunk-size", "chunks", "growth"].includes(currentView().id);

function drawLegend() {
  const view = currentView().id;
  const encoded = isLines()
    ? [lineKey(), "block_size"]
    : view === "busy"
      ? []
      : view === "stages"
        ? []
        : [state.shape, state.color, "block_size"];
  // A single value cannot be filtered, but shape, size and color still need a legend.
  const keys = [...new Set([...encoded, ...varying.filter((key) => !ofSeries.includes(key))])];
  const row = (title, key, values) => [
    element("span", {}, title),
    element("div", {}, ...values.map((value) => chip(key, value, encoded))),
  ];
  // Settings with more values are axes, not legends.
  const rows = keys.filter((key) => valuesOf(key).length <= 40).flatMap((key) => row(SETTINGS[key], key, valuesOf(key)));
  document.getElementById("legend").replaceChildren(...rows);
  document.getElementById("stages").replaceChildren(...(view === "stages" ? row("stage", "stage", STAGES) : []));
}

function chip(key, value, encoded) {
  const words = key === "stage" ? value : shownValue(key, value);
  const made = element("button", {
    type: "button",
    class: "chip",
    "aria-pressed": String(!isHidden(key, value)),
    "data-key": key,
    "data-value": value,
  });
  made.title = "click: show or hide; double click: only this one, then click: all";
  const drawn = sample(key, value, encoded);
  if (drawn) made.append(drawn);
  made.append(words);
  const again = (change) => {
    change(key, value);
    drawAll();
    document.querySelector(`.chip[data-key="${CSS.escape(key)}"][data-value="${CSS.escape(String(value))}"]`)?.focus();
  };
  made.addEventListener("click", (event) => again(event.shiftKey || event.detail > 1 ? only : toggle));
  return made;
}

function sample(key, value, encoded) {
  if (key === "stage") return swatch(shape("rect", { x: -7, y: -6, width: 14, height: 12, fill: STAGE_COLORS[value] }));
  if (!encoded.includes(key)) return null;
  if (isLines() && key === lineKey()) {
    const color = lineColorOf(key, value);
    return swatch(
      shape("path", { d: "M-9,0H9", stroke: color, "stroke-width": isColoredAgain(key, value) ? 4 : 2 }),
      shape("path", { d: symbolPath(markOf(key, value), 4), fill: color }),
    );
  }
  if (key === state.shape || key === state.color) {
    const symbol = key === state.shape ? markOf(key, value) : SYMBOLS[0];
    const fill = key === state.color ? fillOf(key, value) : "var(--paper)";
    return swatch(shape("path", { class: "sample", d: symbolPath(symbol, 6), fill }));
  }
  if (key === "block_size" && typeof value === "number" && !isLines()) {
    const radius = radiusOf(value);
    const made = shape("svg", {
      viewBox: `${-radius - 1} ${-radius - 1} ${2 * radius + 2} ${2 * radius + 2}`,
      "aria-hidden": "true",
    });
    made.setAttribute("style", `width:${2 * radius + 2}px;height:${2 * radius + 2}px`);
    made.append(shape("circle", { class: "sample", r: radius, fill: "var(--paper)" }));
    return made;
  }
  return null;
}

function choose(point) {
  if (state.chosen === point) return;
  markRow(state.chosen, false);
  state.chosen = point;
  markRow(point, true);
  ring();
  drawDetail();
}

// Pins a point and puts it into the address; null unpins.
function pin(point) {
  state.isPinned = point !== null;
  if (point) choose(point);
  document.getElementById("pinned").hidden = !state.isPinned;
  writeAddress();
  drawViews();
}

const tableOf = (lines, kind = "") =>
  element("table", { class: kind }, ...lines.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))));

function drawDetail() {
  const detail = document.getElementById("detail-body");
  const point = state.chosen;
  if (!point) return detail.replaceChildren();
  const names = [...Object.keys(FIGURES), ...report.figures.filter((name) => !FIGURES[name])];
  const figures = names
    .filter((name) => spread(point, name))
    .map((name) => {
      const found = spread(point, name);
      return [label(name), number(found.median, name), element("span", { class: "range" }, range(found, name))];
    });
  const epochs = point.epochs.map(([epoch, repeat, status, speed]) => [
    `epoch ${epoch ?? "–"}${repeat == null ? "" : `, process ${repeat}`}`,
    status === "ok" && speed != null ? `${decimal(speed, 0)}/s` : status,
  ]);
  detail.replaceChildren(element("h2", {}, nameOf(point)));
  if (point.failure) detail.append(element("p", { class: "failure" }, point.failure));
  const heading = point.epochs.length > 1 ? "median of the epochs, range" : "the epoch";
  if (figures.length) detail.append(element("h3", {}, heading), tableOf(figures, "figures"));
  const settings = Object.entries(point.settings).map(([name, value]) => [
    SETTINGS[name] ?? DETAILS[name] ?? name,
    shownValue(name, value),
  ]);
  detail.append(
    element("h3", {}, "epochs, first batch counted"),
    tableOf(epochs),
    element("h3", {}, "settings"),
    tableOf(settings),
  );
}

function drawRuns() {
  const lists = report.runs.map(({ folder, facts }) => {
    const list = element("dl");
    for (const [name, value] of [...(folder ? [["results", folder]] : []), ...facts])
      list.append(element("dt", {}, name), element("dd", {}, value));
    return list;
  });
  document.getElementById("runs").replaceChildren(...lists);
}
