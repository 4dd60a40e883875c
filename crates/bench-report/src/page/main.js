// Builds the page from its embedded data.

function drawAll() {
  writeAddress();
  drawViews();
  drawControls();
  drawLegend();
  drawChart();
  drawTable();
  drawDetail();
  document.getElementById("pinned").hidden = !state.isPinned;
}

function showAddress() {
  readAddress();
  state.chosen ??= points[report.marked?.id] ?? sortedPoints()[0] ?? null;
  for (const row of rowOf.values()) row.classList.remove("chosen");
  markRow(state.chosen, true);
  drawAll();
}

document.getElementById("machine").textContent = report.subtitle[0];
document.getElementById("data-line").textContent = report.subtitle[1];
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = getComputedStyle(root).colorScheme === "dark" ? "light" : "dark";
});
document.getElementById("pinned").addEventListener("click", () => pin(null));
document.getElementById("more").addEventListener("click", () => {
  allRows = true;
  drawTable();
});
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copyTable(button.dataset.copy));
}
drawRuns();
window.addEventListener("hashchange", showAddress);
showAddress();

let drawnWidth = document.getElementById("chart").clientWidth;
new ResizeObserver(([{ contentRect }]) => {
  // Drawing changes only the height; redrawing for that would never end.
  if (Math.abs(contentRect.width - drawnWidth) < 1) return;
  drawnWidth = contentRect.width;
  drawChart();
}).observe(document.getElementById("chart"));
