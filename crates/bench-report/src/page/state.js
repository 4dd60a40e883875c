// The state of the page, stored in the address, so that a link restores a view.

const STARTING = {
  view: "memory",
  x: "max_mem",
  y: "samples_per_sec",
  shape: report.series
    ? "series"
    : varying.includes("folder")
      ? "folder"
      : varying.includes("reader") && !varying.includes("chunk_method")
        ? "reader"
        : "chunk_method",
  // Color helps to distinguish several loaders.
  color: report.series?.heading === "loader" ? "series" : "chunks_per_block",
  // The published points are so far away that on a linear scale ours would overlap.
  scale: report.published ? "log" : "linear",
  lines: "block_size",
  clock: "wall",
  behind: report.published ? "0" : "",
  sort: "-samples_per_sec",
};

const state = { ...STARTING, hidden: [], chosen: null };

const isShown = (point) => !state.hidden.some(({ key, value }) => String(settingOf(point, key)) === value);
const isHidden = (key, value) => state.hidden.some((entry) => entry.key === key && entry.value === String(value));

// Hides or shows a value. Hiding the only visible one shows all values instead of none.
function toggle(key, value) {
  const values = key === "stage" ? STAGES : valuesOf(key);
  const others = values.filter((other) => other !== value);
  const isOnly = !isHidden(key, value) && others.every((other) => isHidden(key, other));
  if (isOnly) state.hidden = state.hidden.filter((entry) => entry.key !== key);
  else if (isHidden(key, value)) state.hidden = state.hidden.filter((entry) => entry.key !== key || entry.value !== String(value));
  else state.hidden = [...state.hidden, { key, value: String(value) }];
}

// Hides all other values of the setting.
function only(key, value) {
  const values = key === "stage" ? STAGES : valuesOf(key);
  const others = values.filter((other) => other !== value).map((other) => ({ key, value: String(other) }));
  state.hidden = [...state.hidden.filter((entry) => entry.key !== key), ...others];
}

// The fragment of the address; `changes` make a link to another state.
function addressOf(changes = {}) {
  const target = { ...state, ...changes };
  const parameters = new URLSearchParams();
  for (const [name, start] of Object.entries(STARTING)) {
    if (name === "view" || target[name] !== start) parameters.set(name, target[name]);
  }
  for (const { key, value } of target.hidden) parameters.append("without", `${key}:${value}`);
  if (target.chosen && target.isPinned) parameters.set("point", target.chosen.id);
  return `#${parameters}`;
}

function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  for (const [name, start] of Object.entries(STARTING)) state[name] = parameters.get(name) ?? start;
  const hasFigure = (name) => report.figures.includes(name);
  if (!hasFigure(state.x)) state.x = STARTING.x;
  if (!hasFigure(state.y)) state.y = STARTING.y;
  const isSetting = (key) => SETTINGS[key] && (key !== "series" || report.series);
  for (const name of ["shape", "color"]) if (!isSetting(state[name])) state[name] = STARTING[name];
  state.hidden = parameters.getAll("without").map((text) => {
    const [key, ...rest] = text.split(":");
    return { key, value: rest.join(":") };
  });
  const pinned = parameters.get("point");
  state.isPinned = pinned !== null && Boolean(points[pinned]);
  state.chosen = state.isPinned ? points[pinned] : null;
}

function writeAddress() {
  const address = addressOf();
  if (address !== location.hash) history.replaceState(null, "", address);
}
