// Views with lines and bars: by chunk size, by chunks per block, waits, stages, busy share, growth with size.

// Largest number of lines: only the fastest points are drawn, with a note.
const MAX_LINES = 60;
const MAX_BARS = 24;
const MAX_BANDS = 7;

function fastest(candidates, most) {
  const bySpeed = [...candidates].sort((a, b) => (median(b, "samples_per_sec") ?? 0) - (median(a, "samples_per_sec") ?? 0));
  const chosen = bySpeed.slice(0, most);
  if (state.isPinned && bySpeed.includes(state.chosen) && !chosen.includes(state.chosen)) chosen[most - 1] = state.chosen;
  return chosen;
}

const cutNote = (all, most, what) =>
  (all > most ? `The ${most} fastest of ${all} points are drawn; filter for others. ` : "") + what;

// Groups of points that differ only in the setting on the axis, in its order.
function series(marks, tied) {
  const keys = varying.filter((key) => !tied.includes(key));
  const lines = d3.groups(marks, ({ point }) => keys.map((key) => settingOf(point, key)).join("\n"));
  return lines.map(([, line]) => line.sort((a, b) => a.at - b.at));
}

// The setting that color and shape encode. Along a line of growth the data changes, so they cannot encode it there.
const lineKey = () =>
  currentView().id === "growth" && state.shape === "series" && report.series?.heading === "data" ? "chunk_method" : state.shape;

function drawLines(width, { at, axis, yName, y, lines: lineSetting, tied }) {
  const marks = points
    .filter(isShown)
    .map((point) => ({ point, at: at(point), y: y ? y(point) : spread(point, yName) }))
    .filter((mark) => mark.y && typeof mark.at === "number" && mark.at > 0);
  if (!marks.length) return [];
  const all = series(
    marks,
    tied.filter((key) => key !== lineSetting),
  );
  const lineValues = lineSetting ? [...new Set(marks.map(({ point }) => settingOf(point, lineSetting)))].sort((a, b) => a - b) : [];
  const colorFor = ({ point }) => lineColorOf(lineKey(), settingOf(point, lineKey()));
  const dash = (line) => DASHES[Math.max(0, lineValues.indexOf(settingOf(line[0].point, lineSetting))) % DASHES.length];
  const ticks = [...new Set(marks.map((mark) => mark.at))].sort((a, b) => a - b);
  const room = Math.max(2, Math.floor(width / 90));
  const every = Math.ceil(ticks.length / room);
  const labels = lineValues.length > 1 && all.length <= 8;
  const plot = framed(width, {
    marginRight: labels ? 76 : 20,
    x: {
      type: "log",
      base: axis.base,
      domain: [ticks[0] / 1.2, ticks.at(-1) * 1.2],
      ticks: ticks.filter((_, idx) => idx % every === 0),
      tickFormat: tickText,
      label: axis.label,
      grid: true,
    },
    y: zeroBased(axis.yLabel ?? label(yName)),
    marks: [
      ...all.map((line) =>
        Plot.line(line, {
          x: "at",
          y: (d) => d.y.median,
          stroke: colorFor(line[0]),
          strokeWidth: isColoredAgain(lineKey(), settingOf(line[0].point, lineKey())) ? 3.4 : 1.8,
          strokeDasharray: dash(line),
          strokeOpacity: all.length > 30 ? 0.4 : 0.9,
        }),
      ),
      Plot.link(
        marks.filter((mark) => mark.y.n > 1),
        { x: "at", y1: (d) => d.y.min, y2: (d) => d.y.max, stroke: colorFor, strokeOpacity: 0.8 },
      ),
      Plot.dot(marks, {
        x: "at",
        y: (d) => d.y.median,
        r: all.length > 30 ? 3 : 4.5,
        fill: colorFor,
        stroke: OUTLINE,
        strokeWidth: 0.8,
        symbol: (d) => markOf(lineKey(), settingOf(d.point, lineKey())),
      }),
    ],
  });
  const placeOf = (mark) => [plot.scale("x").apply(mark.at), plot.scale("y").apply(mark.y.median)];
  if (labels) {
    const ends = all.map((line) => line.at(-1));
    labelEnds(
      plot,
      ends.map((end) => ({ at: placeOf(end), words: shownValue(lineSetting, settingOf(end.point, lineSetting)), color: colorFor(end) })),
    );
  }
  const anchors = marks.map((mark) => ({ point: mark.point, at: placeOf(mark), r: 5 }));
  return [{ plot, anchors }];
}

// Names at the ends of lines, moved apart if lines end close to each other.
function labelEnds(plot, ends) {
  const LINE = 14;
  for (const [, column] of d3.groups(ends, ({ at }) => Math.round(at[0] / 40))) {
    column.sort((a, b) => a.at[1] - b.at[1]);
    const places = column.map(({ at }) => at[1]);
    for (let idx = 1; idx < places.length; idx += 1) places[idx] = Math.max(places[idx], places[idx - 1] + LINE);
    column.forEach(({ at, words, color }, idx) => {
      plot.append(shape("text", { x: at[0] + 9, y: places[idx], dy: "0.32em", fill: color, "text-anchor": "start" }, words));
    });
  }
}

const CHUNKS = ["chunk_size", "chunks_per_block", "block_size"];

const drawChunkSize = (width) =>
  drawLines(width, {
    at: (point) => point.settings.chunk_size,
    axis: { base: 2, label: "rows per chunk" },
    yName: state.y,
    lines: state.lines === "block_size" ? "block_size" : "chunks_per_block",
    tied: CHUNKS,
  });

const drawChunks = (width) =>
  drawLines(width, {
    at: (point) => point.settings.chunks_per_block,
    axis: { base: 2, label: "chunks per block" },
    yName: state.y,
    lines: state.lines === "block_size" ? "block_size" : "chunk_size",
    tied: CHUNKS,
  });

// Each size may have its own results folder.
function drawGrowth(width) {
  const each = width > 760 ? (width - 24) / 2 : width;
  const sizes = d3.rollups(
    points,
    (group) => new Set(group.map((point) => point.settings.total_rows)).size,
    (point) => settingOf(point, "folder"),
  );
  const tied = ["total_rows", "uri", "layout", "series", ...(sizes.every(([, n]) => n === 1) ? ["folder"] : [])];
  const at = (point) => point.settings.total_rows;
  const perCell = (point) => {
    const speed = spread(point, "samples_per_sec");
    return speed && { median: 1e6 / speed.median, min: 1e6 / speed.max, max: 1e6 / speed.min, n: speed.n };
  };
  const axis = { base: 10, label: "cells" };
  return [
    ...drawLines(each, { at, axis: { ...axis, yLabel: "µs per cell" }, y: perCell, lines: null, tied }),
    ...drawLines(each, { at, axis, yName: "max_mem", lines: null, tied }),
  ];
}

function drawWaits(width) {
  const each = width > 760 ? (width - 24) / 2 : width;
  const shown = fastest(
    points.filter(isShown).filter((point) => point.waits),
    MAX_LINES,
  );
  const least = 1e-3;
  const steps = shown.map((point) => ({
    point,
    steps: point.waits.map((secs, idx) => ({ ms: Math.max(least, secs * 1e3), percent: report.wait_percents[idx] })),
  }));
  const plot = framed(each, {
    x: { type: "log", label: "wait for a batch, ms", grid: true, ticks: Math.max(3, each / 110), tickFormat: tickText },
    y: { label: "% of batches that took no longer", domain: [0, 100], grid: true },
    marks: steps.map(({ point, steps }) =>
      Plot.line(steps, {
        x: "ms",
        y: "percent",
        stroke: fillOf(state.color, settingOf(point, state.color)),
        strokeWidth: shown.length > 20 ? 1.2 : 2,
        strokeOpacity: shown.length > 20 ? 0.6 : 0.95,
      }),
    ),
  });
  const anchors = steps.flatMap(({ point, steps }) =>
    steps.map(({ ms, percent }) => ({ point, at: [plot.scale("x").apply(ms), plot.scale("y").apply(percent)], r: 3 })),
  );
  return [{ plot, anchors }, scatter(each, state.y, "wait_slowest_tenth_share")];
}

const STAGES = Object.keys(STAGE_COLORS);

// Horizontal bars, the fastest point on top.
function drawStages(width) {
  const suffix = state.clock === "cpu" ? "_cpu_secs" : "_wall_secs";
  const stages = STAGES.filter((stage) => !isHidden("stage", stage));
  const shown = fastest(
    points.filter(isShown).filter((point) => STAGES.some((stage) => median(point, stage + suffix) !== null)),
    MAX_BARS,
  );
  if (!shown.length) return [];
  const names = new Map(shown.map((point) => [point.id, nameOf(point)]));
  const bars = shown.flatMap((point) =>
    stages
      .map((stage) => ({ point, id: point.id, stage, secs: median(point, stage + suffix) }))
      .filter(({ secs }) => secs !== null),
  );
  const narrow = width < 600;
  const plot = framed(width, {
    height: shown.length * (narrow ? 42 : 30) + 70,
    marginLeft: narrow ? 12 : 250,
    x: { ...zeroBased(`${state.clock === "cpu" ? "processor" : "thread"} seconds of an epoch`), axis: "both" },
    y: { domain: shown.map(({ id }) => id), axis: null, padding: narrow ? 0.55 : 0.25 },
    marks: [
      Plot.barX(
        bars,
        Plot.stackX({
          x: "secs",
          y: "id",
          fill: (d) => STAGE_COLORS[d.stage],
          z: "stage",
          order: STAGES,
          stroke: "var(--paper)",
          strokeWidth: 0.5,
        }),
      ),
      Plot.text(shown, {
        y: "id",
        frameAnchor: "left",
        text: (d) => names.get(d.id),
        dx: narrow ? 0 : -8,
        dy: narrow ? -18 : 0,
        textAnchor: narrow ? "start" : "end",
        textOverflow: "ellipsis",
        lineWidth: narrow ? 27 : 19,
        fill: "currentColor",
      }),
    ],
  });
  const [left, right] = plot.scale("x").range;
  const anchors = shown.map((point) => {
    const y = plot.scale("y").apply(point.id) + plot.scale("y").bandwidth / 2;
    return { point, at: [left, y], r: 0, bar: { from: left, to: right, half: plot.scale("y").bandwidth / 2 + 3 } };
  });
  return [{ plot, anchors }];
}

function drawBusy(width) {
  const shown = fastest(
    points.filter(isShown).filter((point) => point.busy),
    MAX_BANDS,
  );
  if (!shown.length) return [];
  const colors = new Map(shown.map((point, idx) => [point.id, CATEGORIES[idx % CATEGORIES.length]]));
  const curves = shown.map((point) => {
    const { mean, least, most } = point.busy;
    const at = (idx) => (100 * (idx + 0.5)) / mean.length;
    return {
      point,
      parts: mean.map((share, idx) => ({
        at: at(idx),
        mean: 100 * share,
        least: 100 * (least[idx] ?? share),
        most: 100 * (most[idx] ?? share),
      })),
    };
  });
  const plot = framed(width, {
    x: { label: "progress of the epoch, % of its batches", domain: [0, 100], grid: true },
    y: { label: "consumer busy, % of the time", domain: [0, 100], grid: true },
    marks: [
      ...curves.map(({ point, parts }) =>
        Plot.areaY(parts, { x: "at", y1: "least", y2: "most", fill: colors.get(point.id), fillOpacity: 0.18 }),
      ),
      ...curves.map(({ point, parts }) => Plot.line(parts, { x: "at", y: "mean", stroke: colors.get(point.id), strokeWidth: 2 })),
    ],
  });
  const anchors = curves.flatMap(({ point, parts }) =>
    parts.map(({ at, mean }) => ({ point, at: [plot.scale("x").apply(at), plot.scale("y").apply(mean)], r: 3 })),
  );
  return [{ plot, anchors, key: shown.map((point) => ({ color: colors.get(point.id), words: nameOf(point) })) }];
}
