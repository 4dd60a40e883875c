// The table of grid points: sorted by a click on a column, copied as tab-separated text, Markdown or CSV.

const COLUMNS = [
  ...(report.series ? [{ id: "series", title: SETTINGS.series, of: (point) => settingOf(point, "series") }] : []),
  ...(varying.includes("folder") ? [{ id: "folder", title: "results", of: (point) => settingOf(point, "folder") }] : []),
  ...(varying.includes("hostname") ? [{ id: "hostname", title: "machine", of: (point) => settingOf(point, "hostname") }] : []),
  { id: "chunk_method", title: "method", of: ({ settings }) => settings.chunk_method },
  { id: "form", title: "form", of: ({ settings }) => settings.form },
  { id: "reader", title: "reader", of: ({ settings }) => settings.reader },
  ...varying
    .filter(
      (key) =>
        ![
          "series",
          "folder",
          "hostname",
          "loader",
          "chunk_method",
          "form",
          "reader",
          "chunk_size",
          "chunks_per_block",
          "block_size",
          "batch_size",
        ].includes(key),
    )
    .map((key) => ({
      id: key,
      title: SETTINGS[key],
      of: (point) => settingOf(point, key),
      shown: (value) => shownValue(key, value),
    })),
  { id: "chunk_size", title: "chunk", of: ({ settings }) => settings.chunk_size },
  { id: "chunks_per_block", title: "chunks", of: ({ settings }) => settings.chunks_per_block },
  { id: "block_size", title: "block", of: ({ settings }) => settings.block_size },
  { id: "batch_size", title: "batch", of: ({ settings }) => settings.batch_size },
  { id: "epochs", title: "epochs", of: (point) => point.epochs.length },
  { id: "samples_per_sec", title: "samples/s", figure: "samples_per_sec", ranged: true },
  { id: "samples_per_sec_after_first", title: "without first", figure: "samples_per_sec_after_first" },
  { id: "max_mem", title: "peak GB", figure: "max_mem", ranged: true },
  { id: "time_to_first_batch_secs", title: "first batch s", figure: "time_to_first_batch_secs" },
  { id: "wait_p99_secs", title: "wait p99 ms", figure: "wait_p99_secs" },
  { id: "wait_slowest_tenth_share", title: "slowest 10 % %", figure: "wait_slowest_tenth_share" },
  { id: "stall_share", title: "stalled %", figure: "stall_share" },
  { id: "accelerator_utilization", title: "AU %", figure: "accelerator_utilization" },
  { id: "ready_blocks_mean", title: "blocks ready", figure: "ready_blocks_mean" },
  { id: "cpu_secs", title: "CPU s", figure: "cpu_secs" },
  { id: "amplification", title: "amplification", figure: "amplification" },
  { id: "bytes_amplification", title: "decoded / needed bytes", figure: "bytes_amplification" },
  { id: "entropy", title: "entropy bits", figure: "entropy" },
  { id: "entropy_expected", title: "expected", figure: "entropy_expected" },
].filter((column) => !column.figure || report.figures.includes(column.figure));

const valueOf = (column, point) => (column.of ? column.of(point) : median(point, column.figure));

function sortedPoints() {
  const descending = state.sort.startsWith("-");
  const column = COLUMNS.find(({ id }) => id === state.sort.replace("-", ""));
  const shown = points.filter(isShown);
  if (!column) return shown;
  const values = new Map(shown.map((point) => [point, valueOf(column, point)]));
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  return shown.sort((a, b) => {
    const [one, other] = [values.get(a), values.get(b)];
    // Rows without a value come last in either direction.
    if (one === null || other === null) return (one === null) - (other === null);
    return compare(one, other) * (descending ? -1 : 1);
  });
}

// Number of rows shown until the reader asks for all: layout of thousands takes a second per filter change.
const MAX_ROWS = 300;
let allRows = false;
let drawnRows = "";

const rowOf = new Map();

function drawTable() {
  const wanted = JSON.stringify([state.sort, state.hidden, allRows]);
  if (wanted === drawnRows) return;
  drawnRows = wanted;
  const heads = COLUMNS.map((column) => {
    const isSorted = state.sort.replace("-", "") === column.id;
    const descending = state.sort.startsWith("-");
    const button = element(
      "button",
      { type: "button", "data-column": column.id },
      column.title + (isSorted ? (descending ? " ▾" : " ▴") : ""),
    );
    button.addEventListener("click", () => {
      const first = points.map((point) => valueOf(column, point)).find((value) => value !== null);
      const down = isSorted ? !descending : typeof first === "number";
      state.sort = (down ? "-" : "") + column.id;
      writeAddress();
      drawViews();
      drawTable();
      document.querySelector(`#table button[data-column="${CSS.escape(column.id)}"]`)?.focus();
    });
    const sort = isSorted ? (descending ? "descending" : "ascending") : "none";
    return element("th", { scope: "col", class: isText(column) ? "text" : "", "aria-sort": sort }, button);
  });
  const sorted = sortedPoints();
  const body = element("tbody");
  body.append(...sorted.slice(0, allRows ? sorted.length : MAX_ROWS).map(rowFor));
  const caption = element("caption", {}, `${grouped(sorted.length)} of ${grouped(points.length)} grid points`);
  document
    .getElementById("table")
    .replaceChildren(element("table", {}, caption, element("thead", {}, element("tr", {}, ...heads)), body));
  const more = document.getElementById("more");
  more.hidden = allRows || sorted.length <= MAX_ROWS;
  more.textContent = `show all ${grouped(sorted.length)} rows`;
}

const isText = (column) => points.length > 0 && typeof valueOf(column, points[0]) === "string";

// Rows are created once, because that is slow for thousands of points.
function rowFor(point) {
  if (!rowOf.has(point.id)) {
    const row = element("tr", { "data-point": point.id, class: point === state.chosen ? "chosen" : "" }, ...cells(point));
    row.addEventListener("pointerenter", () => state.isPinned || choose(point));
    row.addEventListener("click", () => pin(point));
    rowOf.set(point.id, row);
  }
  return rowOf.get(point.id);
}

function markRow(point, isChosen) {
  if (point) rowOf.get(point.id)?.classList.toggle("chosen", isChosen);
}

function textOf(column, point) {
  if (column.of) {
    const value = column.of(point);
    return column.shown ? column.shown(value) : grouped(value);
  }
  const found = spread(point, column.figure);
  return found ? number(found.median, column.figure) : "–";
}

function cells(point) {
  const made = [];
  for (const [idx, column] of COLUMNS.entries()) {
    const found = column.figure ? spread(point, column.figure) : null;
    if (column.figure === "samples_per_sec" && !found && point.failure) {
      made.push(element("td", { class: "failure", colspan: COLUMNS.length - idx }, point.failure));
      break;
    }
    const cell = element("td", { class: isText(column) ? "text" : "" }, textOf(column, point));
    const spanned = found && column.ranged ? range(found, column.figure) : "";
    if (spanned) cell.append(" ", element("span", { class: "range" }, `(${spanned})`));
    made.push(cell);
  }
  return made;
}

// The visible rows, in their order. Numbers are unformatted, for other programs.
function tableText(kind) {
  const plain = (column, point) => {
    if (column.figure) {
      const found = median(point, column.figure);
      return found === null ? "" : String(Number(found.toPrecision(6)));
    }
    return String(column.of(point));
  };
  const rows = [
    COLUMNS.map(({ title }) => title),
    ...sortedPoints().map((point) => COLUMNS.map((column) => plain(column, point))),
  ];
  if (kind === "markdown") {
    const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    const rule = `|${COLUMNS.map((column) => (isText(column) ? " --- " : " ---: ")).join("|")}|`;
    return [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
  }
  if (kind === "csv") {
    const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
    return rows.map((cells) => cells.map(quoted).join(",")).join("\n");
  }
  return rows.map((cells) => cells.map((cell) => cell.replace(/[\t\n]/g, " ")).join("\t")).join("\n");
}

async function copyTable(kind) {
  const text = tableText(kind);
  const status = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page opened from disk may lack access to the clipboard; the old API does not need it.
    const area = element("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return (status.textContent = "the browser denied access to the clipboard");
  }
  status.textContent = `${grouped(text.split("\n").length - (kind === "markdown" ? 2 : 1))} rows copied`;
}
