"""Prints the tables of README.md: tables.py [rows.jsonl]. Medians (least to most) of the rounds."""
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "rows.jsonl"
rows = [json.loads(line) for line in path.read_text().splitlines()]


def spread(values, digits=2):
    values = [round(value, digits) if digits else round(value) for value in values]
    low, high = min(values), max(values)
    return f"{median(values):,.{digits}f}" + (f" ({low:,.{digits}f} to {high:,.{digits}f})" if len(values) > 1 else "")


def table(names, lines):
    print("| " + " | ".join(names) + " |")
    print("|" + "|".join("---" if at == 0 else "---:" for at in range(len(names))) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


checked = [row for row in rows if row.get("equal")]
print(f"{len(checked)} deliveries were compared and are equal: ", end="")
kinds = sorted({f"{row.get('loader', row.get('model'))} {row.get('what', row.get('way'))} {row.get('format', '')}".strip() for row in checked})
print(", ".join(kinds) + ".\n")

# Loaders
groups = defaultdict(list)
for row in rows:
    if row["part"] == "modalities" and not row.get("equal"):
        groups[tuple(row[key] for key in ("format", "form", "batch", "io", "loader", "what"))].append(row)


def per_epoch(row, n_cells):
    """Seconds of an epoch, also of rows that read a part of one."""
    return row["secs"] * n_cells / row["cells"]


n_cells = max((row["cells"] for all_rows in groups.values() for row in all_rows), default=1)
if groups:
    print("## Loaders\n")
    lines = []
    for (format_, form, batch, io, loader, what), all_rows in groups.items():
        own = format_ if loader != "homeobox" else "its own"
        part = "" if all_rows[0]["cells"] == n_cells else f", from {all_rows[0]['cells']:,} cells"
        lines.append([
            f"{loader}, {what}{part}", f"{own}, {form}", f"{batch:,}, {io:,}" if loader in ("somafeed", "two") else f"{batch:,}",
            spread([per_epoch(row, n_cells) for row in all_rows]), spread([n_cells / per_epoch(row, n_cells) for row in all_rows], 0),
            spread([row["cpu_secs"] * n_cells / row["cells"] for row in all_rows], 1), spread([row["first_secs"] for row in all_rows]),
            spread([row["open_secs"] for row in all_rows], 1), spread([row["peak_mb"] for row in all_rows], 0),
        ])
    table(["loader, modalities", "file, form", "batch, block", "s an epoch", "cells/s", "CPU s", "first batch s", "open s", "peak MB"], lines)


def secs(**wanted):
    keys = ("format", "form", "batch", "io", "loader", "what")
    default = {"format": "h5mu", "form": "torch_csr", "batch": 1024, "io": 4096, "loader": "somafeed"}
    found = groups.get(tuple((default | wanted)[key] for key in keys), [])
    return [per_epoch(row, n_cells) for row in found]


def ratio_line(goal, name, above, *below):
    """Ratios of the rounds, which were measured in turn, and of the medians."""
    if not above or not all(below):
        return None
    sums = [sum(parts) for parts in zip(*below)]
    ratios = [one / other for one, other in zip(above, sums)]
    return [name, f"{median(above) / sum(median(part) for part in below):.2f}", spread(ratios), goal]


lines = []
for label, wanted in [("h5mu", {}), ("h5mu, batch 128", {"batch": 128}), ("h5mu, dense", {"form": "numpy"}), ("h5mu, block 65,536", {"io": 65536}),
                      ("zarr", {"format": "zarr"}), ("10x .h5", {"format": "10x"})]:
    lines.append(ratio_line("at most 1.3", f"RNA + proteins over RNA, {label}", secs(what="rna+prot", **wanted), secs(what="rna", **wanted)))
for label, wanted in [("h5mu", {}), ("zarr", {"format": "zarr"})]:
    apart = secs(what="rna", **wanted), secs(what="atac", **wanted)
    lines.append(ratio_line("at most 1.1", f"RNA + ATAC over both alone added, {label}", secs(what="rna+atac", **wanted), *apart))
ours = secs(what="rna+prot")
for loader, goal in [("two", ""), ("homeobox", "at least 3"), ("memory", ""), ("annloaders", ""), ("backed", "")]:
    lines.append(ratio_line(goal, f"{loader} over somafeed, RNA + proteins", secs(loader=loader, what="rna+prot"), ours))
lines = [line for line in lines if line]
if lines:
    table(["times", "of medians", "of rounds", "goal"], lines)

# Models
groups = defaultdict(list)
for row in rows:
    if row["part"] == "training" and not row.get("equal"):
        groups[(row["model"], row["file"], row["epochs"], row["way"])].append(row)
later = {key: [median(row["later_secs"]) for row in all_rows] for key, all_rows in groups.items()}
if groups:
    print("## Models\n")
    lines = []
    for (model, file, epochs, way), all_rows in groups.items():
        beside = later.get((model, file, epochs, "memory"), [])
        mine = later[model, file, epochs, way]
        peak, other = (median(row["peak_mb"] for row in groups.get((model, file, epochs, one), all_rows)) for one in (way, "memory"))
        lines.append([
            f"{model}, {file}, {epochs} epochs, {way}", spread([row["first_secs"] for row in all_rows], 1), spread(mine),
            f"{median(mine) / median(beside):.2f}" if beside else "-", spread([row["open_secs"] for row in all_rows], 1),
            spread([row["peak_mb"] for row in all_rows], 0), f"{peak / other:.2f}", f"{median(row['imports_mb'] for row in all_rows):,.0f}",
        ])
    table(["model, file, way", "first epoch s", "later epoch s", "over memory", "open s", "peak MB", "over memory", "MB after imports"], lines)
    lines = []
    for (model, file, epochs, way), all_rows in groups.items():
        if len({row["seed"] for row in all_rows}) > 1:
            for key in ("elbo_train", "elbo_validation"):
                beside = [row[key] for row in groups.get((model, file, epochs, "memory"), []) if key in row]
                mine = [row[key] for row in all_rows if key in row]
                if mine and beside:
                    inside = sum(min(beside) <= one <= max(beside) for one in mine)
                    lines.append([f"{model}, {key}, {way}", spread(mine), f"{inside} of {len(mine)}",
                                  f"{100 * (median(mine) / median(beside) - 1):+.2f} %"])
    if lines:
        table(["ELBO after the last epoch", "three seeds", "inside memory's range", "median over memory's"], lines)
