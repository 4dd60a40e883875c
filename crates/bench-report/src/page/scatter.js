// Views with one mark per grid point: speed against memory, any other figure, or randomness.

const OUTLINE = "var(--outline)";

// The points that have both figures, large marks first so that small ones stay visible.
function placed(xName, yName) {
  return points
    .filter(isShown)
    .map((point) => ({ point, x: spread(point, xName), y: spread(point, yName), r: radiusOf(point.settings.block_size) }))
    .filter(({ x, y }) => x && y && (state.scale !== "log" || (x.min > 0 && y.min > 0)))
    .sort((a, b) => b.r - a.r);
}

const zeroBased = (label) => ({ label, zero: true, nice: true, grid: true, tickFormat: tickText });

// The scale that the reader chose; a logarithmic one shows positive values only.
const chosenScale = (label, width) =>
  state.scale === "log"
    ? { label, type: "log", nice: true, grid: true, ticks: Math.max(3, width / 120), tickFormat: tickText }
    : zeroBased(label);

const tickText = (tick) => tick.toLocaleString("en-US", { maximumFractionDigits: 6 });

function markRanges(marks, of) {
  return [
    Plot.link(
      marks.filter(({ y }) => y.n > 1),
      { x: of.x, y1: (d) => d.y.min, y2: (d) => d.y.max, stroke: "currentColor", strokeOpacity: 0.55 },
    ),
    Plot.link(
      marks.filter(({ x }) => x.n > 1),
      { x1: (d) => d.x.min, x2: (d) => d.x.max, y: of.y, stroke: "currentColor", strokeOpacity: 0.55 },
    ),
  ];
}

function dots(marks, of) {
  return Plot.dot(marks, {
    ...of,
    r: (d) => d.r,
    symbol: (d) => markOf(state.shape, settingOf(d.point, state.shape)),
    fill: (d) => fillOf(state.color, settingOf(d.point, state.color)),
    fillOpacity: 0.88,
    stroke: OUTLINE,
    strokeWidth: (d) => (isHollow(d.point) ? 2.5 : 1),
    sort: null,
    ariaLabel: "grid points",
  });
}

// Marks of sparse batches have a thick outline if both forms occur.
const isHollow = (point) => varying.includes("form") && ["csr", "coo"].includes(point.settings.form);

function scatter(width, xName, yName, { further = () => [], behind = [], x = chosenScale(label(xName), width) } = {}) {
  const marks = placed(xName, yName);
  const of = { x: (d) => d.x.median, y: (d) => d.y.median };
  const plot = framed(width, {
    x,
    y: chosenScale(label(yName), 500),
    marks: [
      Plot.dot(behind, {
        x: "x",
        y: "y",
        r: "r",
        symbol: "symbol",
        stroke: "currentColor",
        strokeOpacity: 0.45,
        ariaLabel: "published points",
      }),
      ...further(marks),
      ...markRanges(marks, of),
      dots(marks, of),
    ],
  });
  const anchors = marks.map(({ point, x, y, r }) => ({
    point,
    at: [plot.scale("x").apply(x.median), plot.scale("y").apply(y.median)],
    r,
  }));
  for (const one of behind)
    anchors.push({ published: one, at: [plot.scale("x").apply(one.x), plot.scale("y").apply(one.y)], r: one.r });
  return { plot, anchors };
}

// The published points, in the units of the axes; none if a figure was not published.
function publishedPoints() {
  const slice = report.published?.slices[state.behind];
  const speeds = ["samples_per_sec", "samples_per_sec_after_first"];
  if (!slice || state.x !== "max_mem" || !speeds.includes(state.y)) return [];
  const most = Math.max(...slice.points.map((point) => point.block_size));
  return slice.points.map((point) => ({
    ...point,
    slice: slice.name,
    x: point.max_mem / 1e9,
    y: point.samples_per_sec,
    r: Math.max(3, LARGEST_RADIUS * Math.sqrt(point.block_size / most)),
    symbol: SYMBOLS[SYMBOL_OF[point.chunk_method] ?? 0],
  }));
}

function drawMemory(width) {
  const drawn = scatter(width, state.x, state.y, { behind: publishedPoints() });
  if (state.shape === "series" && drawn.anchors.length <= MAX_NAMED) labelMarks(drawn);
  const marked = drawn.anchors.find(({ point }) => point && point.id === report.marked?.id);
  if (marked) drawArrow(drawn.plot, marked, drawn.anchors, report.marked.label);
  return [drawn];
}

// With more marks than this, none has a name beside it.
const MAX_NAMED = 20;

// The name of the series beside each mark or group of marks, if there is room.
function labelMarks({ plot, anchors }) {
  // The widths of DejaVu Sans, which is wide: other fonts leave some room.
  const [LETTER, HEIGHT, NEAR] = [7.7, 15, 60];
  const [left, right] = d3.extent(plot.scale("x").range);
  const [top, bottom] = d3.extent(plot.scale("y").range);
  const box = (x, y, halfWidth, halfHeight) => ({ left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight });
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  // Distance from a box to a mark's edge: a name nearer to another mark would be misread as its name.
  const gap = (one, { at: [x, y], r }) =>
    Math.hypot(Math.max(one.left - x, 0, x - one.right), Math.max(one.top - y, 0, y - one.bottom)) - r * 1.5;
  const own = anchors.filter(({ point }) => point);
  const occupied = own.map(({ at, r }) => box(at[0], at[1], r * 1.5, r * 1.5));
  const named = [];
  for (const { point, at, r } of own) {
    const words = settingOf(point, "series");
    if (named.some((other) => other.words === words && Math.hypot(other.at[0] - at[0], other.at[1] - at[1]) < NEAR)) continue;
    const [halfWidth, halfHeight] = [(words.length * LETTER) / 2 + 2, HEIGHT / 2];
    const reach = r * 1.5 + 3;
    const [across, down] = [reach + halfWidth, reach + halfHeight];
    const places = [[across, 0], [-across, 0], [0, -down], [0, down], [across, -down], [across, down], [-across, -down], [-across, down]];
    const found = places
      .map(([x, y]) => box(at[0] + x, at[1] + y, halfWidth, halfHeight))
      .find(
        (one) =>
          one.left > left &&
          one.right < right &&
          one.top > top &&
          one.bottom < bottom &&
          !occupied.some((other) => overlap(other, one)) &&
          !own.some((other) => settingOf(other.point, "series") !== words && gap(one, other) <= gap(one, { at, r })),
      );
    if (!found) continue;
    occupied.push(found);
    named.push({ words, at });
    const [x, y] = [(found.left + found.right) / 2, (found.top + found.bottom) / 2];
    plot.append(shape("text", { class: "mark-name", x, y, dy: "0.32em" }, words));
  }
}

function drawEntropy(width) {
  const bounds = (marks) =>
    ["entropy_perfect", "entropy_data"].flatMap((name) => {
      const bits = [...new Set(marks.map(({ point }) => median(point, name)).filter((found) => found !== null))];
      if (!bits.length) return [];
      const at = [{ x: d3.median(bits), words: name === "entropy_perfect" ? "perfect shuffle" : "all cells" }];
      return [
        Plot.ruleX(at, { x: "x", stroke: "currentColor", strokeOpacity: 0.5, strokeDasharray: "4 4" }),
        Plot.text(at, {
          x: "x",
          text: "words",
          frameAnchor: "top",
          textAnchor: "end",
          dx: -5,
          dy: name === "entropy_perfect" ? 26 : 6,
          fill: "currentColor",
          stroke: "var(--paper)",
          strokeWidth: 4,
        }),
      ];
    });
  // An axis of bits need not start at zero, which would leave half of the plot empty.
  const x = { ...zeroBased(label("entropy")), zero: false, insetLeft: 24, insetRight: 24 };
  return [scatter(width, "entropy", state.y, { further: bounds, x })];
}

// An arrow with its label, placed where it covers the fewest marks.
function drawArrow(plot, marked, marks, words) {
  const [width, height] = [words.length * 6.8 + 16, 24];
  const [left, right] = d3.extent(plot.scale("x").range);
  const [top, bottom] = d3.extent(plot.scale("y").range);
  const places = [];
  for (let idx = 0; idx < 16; idx += 1) {
    const angle = (2 * Math.PI * idx) / 16;
    for (const reach of [50, 80, 120]) {
      const [x, y] = [marked.at[0] + Math.cos(angle) * (reach + width / 2), marked.at[1] + Math.sin(angle) * reach];
      const inside = x - width / 2 > left && x + width / 2 < right && y - height / 2 > top && y + height / 2 < bottom;
      if (inside) places.push({ x, y, reach });
    }
  }
  if (!places.length) return;
  const gap = ({ at, r }, { x, y }) =>
    Math.hypot(Math.max(0, Math.abs(at[0] - x) - width / 2), Math.max(0, Math.abs(at[1] - y) - height / 2)) - r;
  const room = (place) =>
    Math.min(
      14,
      d3.min(marks, (mark) => gap(mark, place)),
    ) -
    place.reach * 0.03;
  const best = places.reduce((a, b) => (room(b) > room(a) ? b : a));
  const clamp = (value, middle, half) => Math.min(middle + half, Math.max(middle - half, value));
  const start = [clamp(marked.at[0], best.x, width / 2), clamp(marked.at[1], best.y, height / 2)];
  const length = Math.hypot(marked.at[0] - start[0], marked.at[1] - start[1]) || 1;
  const [run, rise] = [(marked.at[0] - start[0]) / length, (marked.at[1] - start[1]) / length];
  const away = marked.r * 1.3 + 3;
  const back = (far) => [marked.at[0] - run * (away + far), marked.at[1] - rise * (away + far)];
  const [tip, neck] = [back(0), back(8)];
  const head = [tip, [neck[0] - rise * 4, neck[1] + run * 4], [neck[0] + rise * 4, neck[1] - run * 4]];
  const box = { class: "arrow-box", x: best.x - width / 2, y: best.y - height / 2, width, height, rx: 4 };
  plot.append(
    shape("path", { class: "arrow", d: `M${start}L${neck}` }),
    shape("polygon", { class: "arrow-head", points: head.join(" ") }),
    shape("rect", box),
    shape("text", { class: "arrow-text", x: best.x, y: best.y + 4 }, words),
  );
}
