// Around the plot: the legend that filters, the whole row of the chosen point, the table, the runs.

const FILTERS = [
  { key: "chunk_method", title: "method" },
  { key: "form", title: "batches" },
  { key: "block_size", title: "rows per block" },
  { key: "chunks_per_block", title: "chunks per block" },
  { key: "batch_size", title: "rows per batch" },
  { key: "reader", title: "reader" },
  { key: "cache", title: "page cache" },
  { key: "hostname", title: "machine" },
  { key: "uri", title: "data" },
];

const nameOf = ({ settings }) =>
  `${settings.chunk_method} ${grouped(settings.chunk_size)} × ${grouped(settings.chunks_per_block)}`;

const isShown = (state, point) => !state.hidden.some(({ key, value }) => point.settings[key] === value);

function drawLegend(state) {
  const legend = document.getElementById("legend");
  legend.replaceChildren();
  for (const { key, title } of FILTERS) {
    const values = [...new Set(state.points.map((point) => point.settings[key]))];
    // One value leaves nothing to filter; shape, size and color are explained all the same.
    if (values.length < 2 && !["chunk_method", "block_size", "chunks_per_block"].includes(key)) continue;
    if (values.every((value) => typeof value === "number")) values.sort((a, b) => a - b);
    const chips = values.map((value) => chip(state, key, value));
    legend.append(element("span", {}, title), element("div", {}, ...chips));
  }
}

function chip(state, key, value) {
  const isHidden = state.hidden.some((entry) => entry.key === key && entry.value === value);
  const made = element("button", { type: "button", class: "chip", "aria-pressed": String(!isHidden) });
  const example = state.points.find((point) => point.settings[key] === value);
  const swatch = shape("svg", { viewBox: "-9 -9 18 18" });
  if (key === "chunk_method") swatch.append(markOf(value, 0, 0, 6, { class: "sample" }));
  if (key === "block_size") {
    const radius = example.radius;
    swatch.setAttribute("style", `width:${2 * radius + 2}px;height:${2 * radius + 2}px`);
    swatch.setAttribute("viewBox", `${-radius - 1} ${-radius - 1} ${2 * radius + 2} ${2 * radius + 2}`);
    swatch.append(markOf("np.array", 0, 0, radius, { class: "sample" }));
  }
  if (key === "chunks_per_block") swatch.append(markOf("np.array", 0, 0, 6, { fill: example.color, class: "mark" }));
  if (key === "form" && value === "csr") {
    swatch.append(markOf("np.array", 0, 0, 6, { class: "sample" }), shape("circle", { class: "hole", r: 2.4 }));
  }
  if (swatch.childElementCount) made.append(swatch);
  made.append(grouped(value));
  made.addEventListener("click", () => {
    state.hidden = isHidden
      ? state.hidden.filter((entry) => entry.key !== key || entry.value !== value)
      : [...state.hidden, { key, value }];
    drawAll(state);
  });
  return made;
}

function choose(state, point) {
  state.chosen = point;
  for (const mark of document.querySelectorAll("#chart .mark")) {
    mark.classList.toggle("chosen", mark.pointId === point.id);
  }
  for (const row of document.querySelectorAll("#table tbody tr")) {
    row.classList.toggle("chosen", row.pointId === point.id);
  }
  drawDetail(state);
}

const tableOf = (lines) =>
  element("table", {}, ...lines.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))));

function drawDetail(state) {
  const detail = document.getElementById("detail");
  const point = state.chosen;
  if (!point) return;
  const figures = [...Object.keys(FIGURES), ...Object.keys(point.figures).filter((name) => !FIGURES[name])]
    .filter((name) => point.figures[name])
    .map((name) => {
      const found = spread(point, name);
      const spanned = element("span", { class: "range" }, range(found, name));
      return [label(name), number(found.median, name), spanned];
    });
  const epochs = point.epochs.map((epoch) => [
    `epoch ${epoch.epoch ?? "–"}${epoch.repeat == null ? "" : `, process ${epoch.repeat}`}`,
    epoch.status === "ok" && epoch.samples_per_sec != null ? `${decimal(epoch.samples_per_sec, 0)}/s` : epoch.status,
  ]);
  detail.replaceChildren(element("h2", {}, nameOf(point)));
  if (point.failure) detail.append(element("p", { class: "failure" }, point.failure));
  const heading = point.epochs.length > 1 ? "median of the epochs, range" : "the epoch";
  if (figures.length) detail.append(element("h3", {}, heading), tableOf(figures));
  detail.append(element("h3", {}, "epochs, first batch counted"), tableOf(epochs));
  drawSettings(point);
}

function drawSettings(point) {
  const list = element("dl");
  for (const [name, value] of Object.entries(point.settings)) {
    const text = grouped(value);
    const kind = text.length > 24 ? "wide" : "";
    list.append(element("div", { class: kind }, element("dt", {}, name), element("dd", {}, text)));
  }
  document.getElementById("settings").replaceChildren(list);
}

const COLUMNS = [
  { title: "method", of: ({ settings }) => settings.chunk_method },
  { title: "form", of: ({ settings }) => settings.form },
  { title: "chunk", of: ({ settings }) => settings.chunk_size },
  { title: "chunks", of: ({ settings }) => settings.chunks_per_block },
  { title: "block", of: ({ settings }) => settings.block_size },
  { title: "batch", of: ({ settings }) => settings.batch_size },
  { title: "epochs", of: ({ epochs }) => epochs.length },
  { title: "samples/s", figure: "samples_per_sec", ranged: true },
  { title: "without first batch", figure: "samples_per_sec_after_first" },
  { title: "peak GB", figure: "max_mem", ranged: true },
  { title: "first batch s", figure: "time_to_first_batch_secs" },
  { title: "wait p99 ms", figure: "wait_p99_secs" },
  { title: "stalled %", figure: "stall_share" },
  { title: "blocks ready", figure: "ready_blocks_mean" },
  { title: "CPU s", figure: "cpu_secs" },
  { title: "amplification", figure: "amplification" },
  { title: "decoded / needed bytes", figure: "bytes_amplification" },
  { title: "entropy bits", figure: "entropy" },
  { title: "expected", figure: "entropy_expected" },
];

const valueOf = (column, point) => (column.of ? column.of(point) : (spread(point, column.figure)?.median ?? null));

function sorted(state) {
  const column = COLUMNS[state.sortBy];
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  return state.points
    .filter((point) => isShown(state, point))
    .sort((a, b) => {
      const [one, other] = [valueOf(column, a), valueOf(column, b)];
      // What has no value comes last, whichever way the rest runs.
      if (one === null || other === null) return (one === null) - (other === null);
      return compare(one, other) * (state.descending ? -1 : 1);
    });
}

function drawTable(state) {
  const heads = COLUMNS.map((column, idx) => {
    const arrow = idx === state.sortBy ? (state.descending ? " ▾" : " ▴") : "";
    const button = element("button", { type: "button" }, column.title + arrow);
    button.addEventListener("click", () => {
      const isText = typeof valueOf(column, state.points[0]) === "string";
      state.descending = idx === state.sortBy ? !state.descending : !isText;
      state.sortBy = idx;
      drawTable(state);
    });
    const sort = idx === state.sortBy ? (state.descending ? "descending" : "ascending") : "none";
    return element("th", { class: idx < 2 ? "text" : "", "aria-sort": sort }, button);
  });
  const body = sorted(state).map((point) => {
    const row = element("tr", { class: point === state.chosen ? "chosen" : "" }, ...cells(point));
    row.pointId = point.id;
    row.addEventListener("pointerenter", () => choose(state, point));
    row.addEventListener("click", () => choose(state, point));
    return row;
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body));
  document.getElementById("table").replaceChildren(table);
}

function cells(point) {
  const made = [];
  for (const [idx, column] of COLUMNS.entries()) {
    const found = column.figure ? spread(point, column.figure) : null;
    if (column.figure === "samples_per_sec" && !found && point.failure) {
      made.push(element("td", { class: "failure", colspan: COLUMNS.length - idx }, point.failure));
      break;
    }
    const cell = element("td", { class: idx < 2 ? "text" : "" });
    if (column.of) cell.append(grouped(column.of(point)));
    else if (found) {
      cell.append(number(found.median, column.figure));
      const spanned = column.ranged ? range(found, column.figure) : "";
      if (spanned) cell.append(" ", element("span", { class: "range" }, `(${spanned})`));
    } else cell.append("–");
    made.push(cell);
  }
  return made;
}

function drawRuns(runs) {
  const lists = runs.map((run) => {
    const list = element("dl");
    for (const [name, value] of run) list.append(element("dt", {}, name), element("dd", {}, value));
    return list;
  });
  document.getElementById("runs").replaceChildren(...lists);
}
