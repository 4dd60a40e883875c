// The scatter plot: linear axes from 0, a mark for each grid point that is not filtered out.

function axisOf(largest, from, to, mostSteps) {
  const top = largest > 0 ? largest * 1.04 : 1;
  const rough = top / mostSteps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.max(1, Math.ceil(top / step));
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return {
    ticks: Array.from({ length: count + 1 }, (_, idx) => idx * step),
    text: (tick) => decimal(tick, digits),
    at: (value) => from + ((to - from) * value) / (step * count),
  };
}

function drawChart(state) {
  const svg = document.querySelector("#chart > svg");
  const width = svg.parentElement.clientWidth;
  const height = Math.round(Math.min(580, Math.max(320, width * 0.62)));
  const frame = { left: 66, top: 14, right: width - 12, bottom: height - 50 };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren();

  const shown = state.points
    .filter((point) => isShown(state, point))
    .map((point) => ({ point, x: spread(point, state.x), y: spread(point, state.y) }))
    .filter(({ x, y }) => x && y);
  const most = (name) => shown.reduce((top, one) => Math.max(top, one[name].max), 0);
  const x = axisOf(most("x"), frame.left, frame.right, Math.max(3, Math.round(width / 110)));
  const y = axisOf(most("y"), frame.bottom, frame.top, 6);
  drawAxes(svg, frame, x, y, state);

  const marks = shown
    .map((one) => ({ ...one, at: [x.at(one.x.median), y.at(one.y.median)], radius: one.point.radius }))
    .sort((a, b) => b.radius - a.radius);
  for (const { x: across, y: up, at } of marks) {
    const bar = (x1, y1, x2, y2) => svg.append(shape("line", { class: "bar", x1, y1, x2, y2 }));
    if (up.n > 1) bar(at[0], y.at(up.min), at[0], y.at(up.max));
    if (across.n > 1) bar(x.at(across.min), at[1], x.at(across.max), at[1]);
  }
  for (const mark of marks) drawMark(svg, mark, state);
  const marked = marks.find(({ point }) => point.id === state.markedId);
  if (marked) drawArrow(svg, marked, marks, frame, state.markedLabel);
  if (!marks.length) {
    const middle = { x: (frame.left + frame.right) / 2, y: height / 2, "text-anchor": "middle" };
    svg.append(shape("text", middle, "nothing to draw: see the table, or take a filter off"));
  }
}

function drawAxes(svg, frame, x, y, state) {
  const { left, top, right, bottom } = frame;
  for (const tick of x.ticks) {
    const at = x.at(tick);
    svg.append(shape("line", { class: "grid", x1: at, x2: at, y1: top, y2: bottom }));
    svg.append(shape("text", { x: at, y: bottom + 18, "text-anchor": "middle" }, x.text(tick)));
  }
  for (const tick of y.ticks) {
    const at = y.at(tick);
    svg.append(shape("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }));
    svg.append(shape("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, y.text(tick)));
  }
  svg.append(shape("path", { class: "axis", d: `M${left},${top}V${bottom}H${right}` }));
  const across = { class: "title", x: (left + right) / 2, y: bottom + 41, "text-anchor": "middle" };
  svg.append(shape("text", across, label(state.x)));
  const middle = (top + bottom) / 2;
  const up = { class: "title", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` };
  svg.append(shape("text", up, label(state.y)));
}

function drawMark(svg, mark, state) {
  const { point, at, radius } = mark;
  const name = `${nameOf(point)}: ${number(mark.y.median, state.y)} ${label(state.y)}`;
  const attributes = {
    class: point === state.chosen ? "mark chosen" : "mark",
    fill: point.color,
    tabindex: 0,
    role: "img",
    "aria-label": name,
  };
  const drawn = markOf(point.settings.chunk_method, at[0], at[1], radius, attributes);
  const show = () => {
    choose(state, point);
    showTip(mark, state);
  };
  drawn.addEventListener("pointerenter", show);
  drawn.addEventListener("focus", show);
  drawn.addEventListener("click", show);
  for (const away of ["pointerleave", "blur"]) drawn.addEventListener(away, hideTip);
  drawn.pointId = point.id;
  svg.append(drawn);
  if (state.bothForms && point.settings.form === "csr") {
    svg.append(shape("circle", { class: "hole", cx: at[0], cy: at[1], r: radius * 0.4 }));
  }
}

function showTip(mark, state) {
  const tip = document.getElementById("tip");
  const line = (found, name) => element("div", {}, `${number(found.median, name)} ${label(name)}`);
  tip.replaceChildren(element("b", {}, nameOf(mark.point)), line(mark.y, state.y), line(mark.x, state.x));
  tip.hidden = false;
  const [x, y] = mark.at;
  const wide = tip.parentElement.clientWidth;
  const left = x + mark.radius + 12 + tip.offsetWidth > wide ? x - mark.radius - 12 - tip.offsetWidth : x + mark.radius + 12;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${Math.max(0, y - tip.offsetHeight / 2)}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

// An arrow with its words where they cover the fewest marks.
function drawArrow(svg, marked, marks, frame, words) {
  const [width, height] = [words.length * 6.8 + 14, 22];
  const places = [];
  for (let idx = 0; idx < 16; idx += 1) {
    const angle = (2 * Math.PI * idx) / 16;
    for (const reach of [50, 80, 120]) {
      const x = marked.at[0] + Math.cos(angle) * (reach + width / 2);
      const y = marked.at[1] + Math.sin(angle) * reach;
      const inside =
        x - width / 2 > frame.left && x + width / 2 < frame.right && y - height / 2 > frame.top && y + height / 2 < frame.bottom;
      if (inside) places.push({ x, y, reach });
    }
  }
  if (!places.length) return;
  const gap = ({ at, radius }, { x, y }) =>
    Math.hypot(Math.max(0, Math.abs(at[0] - x) - width / 2), Math.max(0, Math.abs(at[1] - y) - height / 2)) - radius;
  const room = (place) => Math.min(14, ...marks.map((mark) => gap(mark, place))) - place.reach * 0.03;
  const best = places.reduce((a, b) => (room(b) > room(a) ? b : a));
  const clamp = (value, middle, half) => Math.min(middle + half, Math.max(middle - half, value));
  const start = [clamp(marked.at[0], best.x, width / 2), clamp(marked.at[1], best.y, height / 2)];
  const length = Math.hypot(marked.at[0] - start[0], marked.at[1] - start[1]) || 1;
  const [run, rise] = [(marked.at[0] - start[0]) / length, (marked.at[1] - start[1]) / length];
  const back = (far) => [marked.at[0] - run * (marked.radius * 1.3 + 3 + far), marked.at[1] - rise * (marked.radius * 1.3 + 3 + far)];
  const [tip, neck] = [back(0), back(8)];
  svg.append(shape("path", { class: "arrow", d: `M${start}L${neck}` }));
  const head = [tip, [neck[0] - rise * 4, neck[1] + run * 4], [neck[0] + rise * 4, neck[1] - run * 4]];
  svg.append(shape("polygon", { class: "arrow-head", points: head.join(" ") }));
  const box = { class: "arrow-box", x: best.x - width / 2, y: best.y - height / 2, width, height, rx: 3 };
  svg.append(shape("rect", box), shape("text", { class: "arrow-text", x: best.x, y: best.y + 4 }, words));
}
