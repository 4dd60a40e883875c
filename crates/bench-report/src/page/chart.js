// The views: drawing them, pointing at marks, and moving from mark to mark by key.

const VIEWS = [
  {
    id: "memory",
    title: "Speed and memory",
    controls: ["y", "x", "scale", "shape", "color", "behind"],
    draw: drawMemory,
    note: () => behindNote(),
    empty: "No point has both figures.",
  },
  {
    id: "chunk-size",
    title: "By chunk size",
    controls: ["y", "shape", "lines"],
    draw: drawChunkSize,
    note: () => linesNote("chunks_per_block"),
    empty: "No point has this figure.",
  },
  {
    id: "chunks",
    title: "By chunks per block",
    controls: ["y", "shape", "lines"],
    draw: drawChunks,
    note: () => linesNote("chunk_size"),
    empty: "No point has this figure.",
  },
  {
    id: "entropy",
    title: "Randomness",
    controls: ["y", "shape", "color"],
    draw: drawEntropy,
    note: () => "Entropy of a label within full batches: the farther to the right, the more random the order.",
    empty: "No point has a label's entropy: the sweep ran with --entropy-of none, or the data has no such column.",
  },
  {
    id: "waits",
    title: "Waits",
    controls: ["y", "color", "shape"],
    draw: drawWaits,
    note: () =>
      cutNote(
        points.filter(isShown).filter((point) => point.waits).length,
        MAX_LINES,
        "All batches, including the first, which absorbs the read of the first block.",
      ),
    empty: "No point has the waits of its batches.",
  },
  {
    id: "stages",
    title: "Stages",
    controls: ["clock"],
    draw: drawStages,
    note: () =>
      cutNote(
        points.filter(isShown).length,
        MAX_BARS,
        "Each stage is summed over its threads; stages overlap, so they add up to more than the epoch.",
      ),
    empty: "No point has the time of its stages.",
  },
  {
    id: "busy",
    title: "Busy share",
    controls: [],
    draw: drawBusy,
    note: () =>
      cutNote(
        points.filter(isShown).filter((point) => point.busy).length,
        MAX_BANDS,
        "Mean and range over epochs and repeats. With --consumer none a consumer is hardly ever busy.",
      ),
    empty: "No point has the time of each of its batches: older results lack it.",
  },
  {
    id: "growth",
    title: "Growth",
    controls: ["shape"],
    draw: drawGrowth,
    note: () =>
      valuesOf("total_rows").length > 1
        ? "Time per cell, and memory, by the number of cells."
        : "These results have a single size of data: cargo xtask growth measures several, and a report of several folders shows them together.",
    empty: "No point has these figures.",
  },
];

const currentView = () => VIEWS.find(({ id }) => id === state.view) ?? VIEWS[0];

const linesNote = (other) =>
  state.lines === "block_size"
    ? "One line per number of rows per block: along it, chunk size and chunks per block change together."
    : `One line per ${SETTINGS[other]}.`;

function behindNote() {
  const slice = report.published?.slices[state.behind];
  if (!slice) return "";
  return publishedPoints().length
    ? `Hollow marks behind: ${report.published.note}. ${slice.name}.`
    : "The published results lack these figures.";
}

// Plot's defaults with the page's fonts and colors.
function framed(width, options) {
  const narrow = width < 500;
  const height = Math.round(Math.min(560, Math.max(330, width * 0.6)));
  return Plot.plot({
    width,
    height,
    marginTop: 30,
    marginLeft: narrow ? 52 : 62,
    marginRight: 20,
    marginBottom: 44,
    r: { type: "identity" },
    ...options,
    style: { background: "none", fontFamily: "inherit", fontSize: narrow ? "11.5px" : "13px", overflow: "visible" },
  });
}

let drawnNow = [];

function drawChart() {
  const chart = document.getElementById("chart");
  const view = currentView();
  hideTip();
  drawnNow = view.draw(Math.max(280, chart.clientWidth));
  const isEmpty = !drawnNow.some(({ anchors }) => anchors.some(({ point }) => point));
  const figures = drawnNow.map((drawn) => {
    const { plot, key } = drawn;
    plot.setAttribute("role", "img");
    plot.setAttribute("tabindex", "0");
    plot.setAttribute("aria-label", `${view.title}. Arrow keys go from mark to mark.`);
    drawn.ring = shape("g", { class: "ring" });
    plot.append(drawn.ring);
    watch(drawn);
    const box = element("div", { class: "plot" }, plot);
    if (key) {
      const lines = key.map(({ color, words }) =>
        element("li", {}, swatch(shape("path", { d: "M-9,0H9", stroke: color, "stroke-width": 3 })), words),
      );
      box.append(element("ul", { class: "key" }, ...lines));
    }
    return box;
  });
  const content =
    isEmpty && !publishedPoints().length
      ? [element("p", { class: "empty" }, points.some(isShown) ? view.empty : "The filters hide every point: remove one.")]
      : figures;
  chart.replaceChildren(...content);
  document.getElementById("note").textContent = view.note();
  ring();
}

// The mark nearest to a position in the plot, within the width of a finger.
function nearest(anchors, x, y) {
  let best = null;
  for (const anchor of anchors) {
    const away = anchor.bar
      ? Math.abs(anchor.at[1] - y) <= anchor.bar.half && x >= 0
        ? 0
        : Infinity
      : Math.hypot(anchor.at[0] - x, anchor.at[1] - y) - (anchor.r ?? 0);
    if (away < 24 && (!best || away < best.away)) best = { away, anchor };
  }
  return best?.anchor ?? null;
}

function watch(drawn) {
  const { plot, anchors } = drawn;
  // Prefer our marks to the published ones, which lie behind.
  const front = anchors.filter(({ point }) => point);
  const behind = anchors.filter(({ published }) => published);
  const at = (event) => {
    const box = plot.getBoundingClientRect();
    const scale = Number(plot.getAttribute("width")) / box.width;
    const place = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    return nearest(front, ...place) ?? nearest(behind, ...place);
  };
  plot.addEventListener("pointermove", (event) => {
    const anchor = at(event);
    if (!anchor) return hideTip();
    if (anchor.point && !state.isPinned) choose(anchor.point);
    showTip(drawn, anchor);
  });
  plot.addEventListener("pointerleave", hideTip);
  plot.addEventListener("click", (event) => {
    const anchor = at(event);
    pin(anchor?.point ?? null);
    if (anchor) showTip(drawn, anchor);
  });
  const order = front
    .map((anchor, idx) => ({ anchor, idx }))
    .sort((a, b) => a.anchor.at[0] - b.anchor.at[0] || b.anchor.at[1] - a.anchor.at[1]);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") return pin(null);
    if (!step || !order.length) return;
    event.preventDefault();
    drawn.at = drawn.at === undefined ? 0 : (drawn.at + step + order.length) % order.length;
    const { anchor } = order[drawn.at];
    state.isPinned = false;
    choose(anchor.point);
    showTip(drawn, anchor);
    document.getElementById("said").textContent = tipLines(anchor.point).flat().join(" ");
  });
}

// Figures shown in the tip; those of the axes come first.
function tipLines(point) {
  const usual = ["samples_per_sec", "max_mem", "time_to_first_batch_secs", "wait_p99_secs", "stall_share", "cpu_secs", "entropy"];
  const names = [...new Set([state.y, state.x, ...usual])].filter((name) => spread(point, name));
  const lines = names.map((name) => {
    const found = spread(point, name);
    const spanned = range(found, name);
    return [label(name), `${number(found.median, name)}${spanned ? ` (${spanned})` : ""}`];
  });
  return [[nameOf(point), ""], ...lines];
}

function showTip(drawn, anchor) {
  const tip = document.getElementById("tip");
  const { published } = anchor;
  const lines = published
    ? [
        [`${published.chunk_method} ${grouped(published.chunks_per_block)} × ${grouped(published.chunk_size)}`, ""],
        ["published in 2024, another machine", ""],
        ["samples/s, first batch left out", decimal(published.y, 0)],
        ["memory as sampled, GB", decimal(published.x, 1)],
        ["epochs", grouped(published.n_epochs)],
      ]
    : tipLines(anchor.point);
  const [[heading], ...rest] = lines;
  const rows = rest.map(([name, value]) => element("tr", {}, element("td", {}, name), element("td", {}, value)));
  tip.replaceChildren(element("b", {}, heading), element("table", {}, ...rows));
  tip.hidden = false;
  const plot = drawn.plot.getBoundingClientRect();
  const page = document.documentElement.clientWidth;
  const scale = plot.width / Number(drawn.plot.getAttribute("width"));
  const reach = (anchor.bar ? 0 : (anchor.r ?? 0)) + 14;
  const x = plot.left + anchor.at[0] * scale;
  const fits = x + reach + tip.offsetWidth < page - 4;
  const left = fits ? x + reach : Math.max(4, x - reach - tip.offsetWidth);
  const y = plot.top + anchor.at[1] * scale - tip.offsetHeight / 2;
  // Under the mark if there is no room on either side, for instance on a phone.
  const covers = !fits && x - reach - tip.offsetWidth < 4;
  const top = covers ? plot.top + anchor.at[1] * scale + reach : Math.max(4, y);
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${top + scrollY}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

// Rings the marks of the chosen point in every plot.
function ring() {
  for (const { ring: group, anchors } of drawnNow) {
    const own = anchors.filter(({ point }) => point && point === state.chosen);
    const around = ({ at, r, bar }) =>
      bar
        ? shape("rect", { x: bar.from, width: bar.to - bar.from, y: at[1] - bar.half, height: 2 * bar.half })
        : shape("circle", { cx: at[0], cy: at[1], r: (r ?? 4) * 1.25 + 3 });
    // For a curve, highlight the curve itself.
    const drawn = own.length > 1 ? [shape("path", { d: `M${own.map(({ at }) => at.join()).join("L")}` })] : own.map(around);
    group.replaceChildren(...drawn);
  }
}
