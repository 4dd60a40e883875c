"""Draws figure 4: scVI trained end to end from a TileDB-SOMA experiment, dense against sparse.

First it compares the cells that each way of feeding delivers, and fails if they differ. Then it
trains each way several times, always in a fresh process, and writes to a folder:

- `rows.jsonl`: one line per training, as `training.py` prints it
- `table.md`: medians with their ranges, and the losses of the ways side by side
- `figure4.svg`, `figure4.png`: time of an epoch and peak memory of each way

The comparison has read all cells before, so reads come from the page cache if they fit in memory.

    python figure.py --uri experiment --repetitions 3 --out figure
    python figure.py --out figure --redraw
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from training import WAYS, add_options, positive

TRAINING = Path(__file__).resolve().parent / "training.py"
GIB = 2**30
# Entries of a comparison that must agree. `n_steps` is none of them: each worker has a last batch.
COMPARED = [
    "n_cells", "n_distinct_cells", "cells", "n_genes", "n_values", "x_sum", "n_batches", "batches",
    "n_labels", "labels",
]
# Relative difference between the losses of two ways that is reported as too large.
LOSS_TOLERANCE = 0.01
# Share of the processor time that other processes may use during the trainings.
MOST_OTHERS = 0.05

# Okabe and Ito's colours, which colour-blind people can tell apart.
COMPUTED, PREPARED, WAITED = "#0072B2", "#56B4E9", "#D55E00"
PROCESS, WORKERS = "#009E73", "#B3E2D5"

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--uri", help="the experiment")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument(
        "--ways", type=ways, default=list(WAYS), help=f"some of {','.join(WAYS)}; default: all"
    )
    parser.add_argument(
        "--repetitions", type=positive, default=3, help="trainings of each way; default: 3"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="measure nothing; draw the rows in --out again"
    )
    shared = add_options(parser)
    arguments = parser.parse_args()
    rows_file = arguments.out / "rows.jsonl"
    if not arguments.redraw:
        if arguments.uri is None:
            parser.error("--uri is missing")
        if rows_file.exists():
            parser.error(f"{rows_file} is there already: name another --out, or --redraw it")
        arguments.out.mkdir(parents=True, exist_ok=True)
        # Like Ctrl-C, so that the running training ends, too.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
        try:
            measure(arguments, options_of(arguments, shared), rows_file)
        except KeyboardInterrupt:
            say(f"interrupted; --redraw draws what {rows_file} has")
            sys.exit(130)
    elif not rows_file.is_file():
        parser.error(f"there is no {rows_file}")
    rows = [json.loads(line) for line in rows_file.read_text().splitlines()]
    failed = [row for row in rows if "error" in row]
    of_way = {}
    for way in WAYS:
        succeeded = [row for row in rows if row["way"] == way and "error" not in row]
        if succeeded:
            of_way[way] = succeeded
    if not of_way:
        sys.exit("no training succeeded")
    text = report(of_way, failed)
    (arguments.out / "table.md").write_text(text)
    draw(of_way, arguments.out)
    print(text)
    sys.exit(1 if failed else 0)


def ways(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in WAYS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown {unknown[0]!r}; there are {', '.join(WAYS)}")
    return names


def options_of(arguments: argparse.Namespace, shared: list[str]) -> list[str]:
    """The shared options as `training.py` takes them, except the seed."""
    options = []
    for option in shared:
        value = getattr(arguments, option.removeprefix("--").replace("-", "_"))
        if value is not None and option != "--seed":
            options.append(f"{option}={value}")
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# Measuring


def measure(arguments: argparse.Namespace, options: list[str], rows_file: Path) -> None:
    """Compares the cells of all ways, then trains, and appends a row after each training."""
    compare_cells(arguments, options)
    runs = [
        (repetition, way)
        for repetition in range(arguments.repetitions)
        # To and fro, so that a machine that gets slower does so for all ways alike.
        for way in arguments.ways[:: 1 if repetition % 2 == 0 else -1]
    ]
    with rows_file.open("x") as file:
        for idx, (repetition, way) in enumerate(runs):
            seed = arguments.seed + repetition
            say(f"{idx + 1} of {len(runs)}: {way}")
            before = processor_secs()
            row = run_training([arguments.uri, way, f"--seed={seed}", *options])
            busy, own = (now - then for now, then in zip(processor_secs(), before, strict=True))
            row = {"way": way, "repetition": repetition, "busy_secs": busy, "own_secs": own, **row}
            file.write(json.dumps(row) + "\n")
            file.flush()
            say(f"    {summary(row)}")


def compare_cells(arguments: argparse.Namespace, options: list[str]) -> None:
    """Fails unless all ways deliver the same cells, batches and labels."""
    first: Row | None = None
    # `memory` has the batches of somafeed-dense.
    for way in [way for way in arguments.ways if way != "memory"]:
        say(f"cells of {way}")
        found = run_training([arguments.uri, way, "--check", f"--seed={arguments.seed}", *options])
        if "error" in found:
            sys.exit(f"{way} cannot deliver its cells: {found['error']}")
        first = first or found
        for key in COMPARED:
            if found[key] != first[key]:
                sys.exit(
                    f"{way} delivers other cells than {first['way']}: {key} is {found[key]}, "
                    f"not {first[key]}"
                )
    if first is not None:
        say(
            f"all deliver the same {first['n_cells']} cells x {first['n_genes']} genes with "
            f"{first['n_values']} values of sum {first['x_sum']:.0f}, {first['n_batches']} batches "
            f"and {first['n_labels']} labels"
        )


def run_training(arguments: list[str]) -> Row:
    """Runs `training.py` and returns what it reports, or its `error`. It has a process group of its
    own, which is killed with its workers if this process is interrupted."""
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, "-B", str(TRAINING), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate()
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if child.returncode != 0:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            return {"error": lines[-1] if lines else f"exit code {child.returncode}"}
    return json.loads(output.splitlines()[-1])


def processor_secs() -> tuple[float, float]:
    """Seconds that all processors together were busy since the machine started, and those of the
    trainings. The former are the latter without `/proc`."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = used.ru_utime + used.ru_stime
    try:
        user, nice, system, _, _, *rest = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    except OSError:
        return own, own
    # Interrupts, soft interrupts and time that the host took; the time of guests is in `user`.
    ticks = sum(map(int, [user, nice, system, *rest[:3]]))
    return ticks / os.sysconf("SC_CLK_TCK"), own


def summary(row: Row) -> str:
    if "error" in row:
        return f"failed: {row['error']}"
    epochs = ", ".join(f"{epoch['secs']:.1f}" for epoch in row["epochs"])
    waited = share(later(row), "wait_secs")
    peak = (row["memory_bytes"] + row["workers_memory_bytes"]) / GIB
    return f"epochs of {epochs} s, {waited:.1%} waited, {peak:.2f} GiB"


# Numbers


def later(row: Row) -> list[Row]:
    """The epochs after the first one, which compiles and starts workers; it alone if there is no
    other."""
    return row["epochs"][1:] or row["epochs"]


def share(epochs: list[Row], what: str) -> float:
    """The part of the epochs' time."""
    return sum(epoch[what] for epoch in epochs) / sum(epoch["secs"] for epoch in epochs)


def each_later(rows: list[Row], of: Callable[[Row], float]) -> list[float]:
    return [of(epoch) for row in rows for epoch in later(row)]


def spread(values: Iterable[float], digits: int = 1, unit: str = "") -> str:
    """Median and range, like `1.5 (1.4 to 1.6)`; thousands have commas."""
    values = list(values)
    middle, low, high = (f"{of(values):,.{digits}f}{unit}" for of in (median, min, max))
    return middle if low == high else f"{middle} ({low} to {high})"


def last_losses(rows: list[Row]) -> list[float]:
    return [row["epochs"][-1]["loss"] for row in rows]


def has_all_batches(row: Row) -> bool:
    """Whether the way trains on all cells: `memory` may keep fewer batches than an epoch has."""
    kept = row["settings"]["memory_batches"]
    return row["way"] != "memory" or row["epochs"][0]["n_batches"] <= kept


# Tables


def report(of_way: dict[str, list[Row]], failed: list[Row]) -> str:
    """The tables, and what to know of them, in Markdown."""
    parts = [setting(of_way), times_table(of_way), losses_table(of_way), notes(of_way)]
    if failed:
        lines = [f"- {row['way']}: {row['error']}" for row in failed]
        parts.append("\n".join(["Trainings that failed:", "", *lines]))
    return "\n\n".join(parts) + "\n"


def setting(of_way: dict[str, list[Row]]) -> str:
    row = next(iter(of_way.values()))[0]
    used = row["settings"]
    versions = {name: one for rows in of_way.values() for name, one in rows[0]["versions"].items()}
    n_runs = sorted({len(rows) for rows in of_way.values()})
    cuda = "" if row["device"] == "CPU" else f", {row['device']}"
    return (
        f"scVI (hidden layers {used['n_layers']} x {used['n_hidden']}, {used['n_latent']} latent "
        f"dimensions, {used['gene_likelihood']}) trained on "
        f"{row['n_obs']:,} cells x {row['n_vars']:,} genes in batches of {used['batch_size']:,}; "
        f"shuffled in chunks of {used['shuffle_chunk_size']:,} and blocks of "
        f"{used['io_batch_size']:,} cells. {row['n_cpus']} CPU cores, "
        f"torch.get_num_threads() = {row['torch_threads']}{cuda}. "
        f"{' or '.join(map(str, n_runs))} trainings of {len(row['epochs'])} epochs for each way: "
        "median (lowest to highest). "
        + ", ".join(f"{name} {one}" for name, one in versions.items())
        + "."
    )


def times_table(of_way: dict[str, list[Row]]) -> str:
    has_gpu = any(row["gpu_memory_bytes"] for rows in of_way.values() for row in rows)
    heads = [
        "way", "first epoch, s", "later epochs, s", "cells/s", "waited for batches",
        "prepared batches", "peak memory, GiB", *(["GPU memory, GiB"] if has_gpu else []),
    ]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for way, rows in of_way.items():
        memory = spread([row["memory_bytes"] / GIB for row in rows], 2)
        if any(row["n_workers"] for row in rows):
            memory += " + " + spread([row["workers_memory_bytes"] / GIB for row in rows], 2)
        lines.append([
            WAYS[way],
            spread(row["epochs"][0]["secs"] for row in rows),
            spread(each_later(rows, lambda epoch: epoch["secs"])),
            spread(each_later(rows, lambda epoch: epoch["n_cells"] / epoch["secs"]), 0),
            spread(each_later(rows, lambda epoch: 100 * share([epoch], "wait_secs")), 1, " %"),
            spread(each_later(rows, lambda epoch: 100 * share([epoch], "prepare_secs")), 1, " %"),
            memory,
            *([spread([row["gpu_memory_bytes"] / GIB for row in rows], 2)] if has_gpu else []),
        ])
    return markdown(lines)


def losses_table(of_way: dict[str, list[Row]]) -> str:
    n_epochs = min(len(row["epochs"]) for rows in of_way.values() for row in rows)
    lines = [["loss of epoch", *(WAYS[way] for way in of_way)], ["---", *["---:"] * len(of_way)]]
    for idx in range(n_epochs):
        losses = [[row["epochs"][idx]["loss"] for row in rows] for rows in of_way.values()]
        lines.append([str(idx + 1), *(spread(of_one, 2) for of_one in losses)])
    return markdown(lines)


def markdown(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def notes(of_way: dict[str, list[Row]]) -> str:
    """Explains the columns, and compares losses."""
    found = [
        "Waited: time between asking the loader's iterator for a batch and having it. Prepared: "
        "time in the data module's hooks, which encode batches and labels and make X dense. Both "
        "are shares of the later epochs. Peak memory: that of the process since its start"
        + (
            " + the workers' together, in which shared memory counts for each."
            if any(row["n_workers"] for rows in of_way.values() for row in rows)
            else "."
        )
    ]
    if not all(map(has_all_batches, of_way.get("memory", []))):
        kept = of_way["memory"][0]["settings"]["memory_batches"]
        found.append(
            f"`{WAYS['memory']}` trains on {kept} batches again and again, so its losses are of "
            "other cells."
        )
    for way, rows in of_way.items():
        n_cells = sorted({epoch["n_cells"] for row in rows for epoch in row["epochs"]})
        if way != "memory" and n_cells != [rows[0]["n_obs"]]:
            found.append(
                f"`{WAYS[way]}` trains on {', '.join(f'{n:,}' for n in n_cells)} of "
                f"{rows[0]['n_obs']:,} cells in an epoch: Lightning takes as many batches as the "
                "loader announces, and the workers have more, since each has a short last batch."
            )
    compared = {way: last_losses(rows) for way, rows in of_way.items() if has_all_batches(rows[0])}
    middles = {way: median(losses) for way, losses in compared.items()}
    if 1 < len(middles):
        between = max(middles.values()) / min(middles.values()) - 1
        within = max(max(losses) / min(losses) - 1 for losses in compared.values())
        found.append(
            f"The losses of the last epoch differ by {between:.3%} between ways (medians), and by "
            f"up to {within:.3%} between trainings of one way with other seeds."
        )
        if LOSS_TOLERANCE < between:
            found.append("**The losses of the ways do not agree.**")
    rows = [row for of_one in of_way.values() for row in of_one]
    others = 1 - sum(row["own_secs"] for row in rows) / sum(row["busy_secs"] for row in rows)
    if MOST_OTHERS < others:
        found.append(
            f"**Other processes used {others:.0%} of the processor time meanwhile.** Threads of "
            "torch wait for each other, so that a training may take many times as long: measure "
            "again when the machine has nothing else to do."
        )
    return "\n\n".join(found)


# Figure


def draw(of_way: dict[str, list[Row]], out: Path) -> None:
    """Draws time of an epoch and peak memory of each way side by side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    # The same rows give the same file. In a figure 6 inches wide, letters of 9 points are legible
    # 400 pixels wide.
    plt.rcParams.update({"svg.hashsalt": "figure4", "font.size": 9.5, "axes.titlesize": 10})
    height = 2.0 + 0.62 * len(of_way)
    figure, (times, memory) = plt.subplots(
        2, 1, figsize=(6, height), sharey=True, layout="constrained"
    )
    figure.suptitle(textwrap.fill(title(of_way), 58), fontsize=11.5, fontweight="bold")
    draw_times(times, of_way)
    draw_memory(memory, of_way)
    times.set_yticks(range(len(of_way)), [WAYS[way] for way in of_way])
    times.invert_yaxis()
    for axes in (times, memory):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    figure.savefig(out / "figure4.svg", metadata={"Date": None})
    figure.savefig(out / "figure4.png", dpi=240)
    plt.close(figure)


def title(of_way: dict[str, list[Row]]) -> str:
    """Names the fastest of our ways, beside the fastest of the others."""

    def secs(way: str) -> float:
        return median(each_later(of_way[way], lambda epoch: epoch["secs"]))

    def peak(way: str) -> float:
        return median(row["memory_bytes"] + row["workers_memory_bytes"] for row in of_way[way])

    ours, others = (
        [way for way in of_way if way != "memory" and way.startswith("somafeed") == is_ours]
        for is_ours in (True, False)
    )
    if not ours or not others:
        return "Time of an epoch of training and peak memory"
    fastest, other = min(ours, key=secs), min(others, key=secs)
    return (
        f"{WAYS[fastest]} is {secs(other) / secs(fastest):.2f} times as fast as {WAYS[other]}, "
        f"in {peak(fastest) / peak(other):.2f} of its memory"
    )


def draw_times(axes: Any, of_way: dict[str, list[Row]]) -> None:
    """Draws the later epochs: computed, prepared and waited; whiskers from lowest to highest."""
    for y, rows in enumerate(of_way.values()):
        secs = each_later(rows, lambda epoch: epoch["secs"])
        epochs = [epoch for row in rows for epoch in later(row)]
        total = median(secs)
        waited, prepared = (total * share(epochs, key) for key in ("wait_secs", "prepare_secs"))
        left = 0.0
        for what, width, color in [
            ("training", total - waited - prepared, COMPUTED),
            ("preparing batches", prepared, PREPARED),
            ("waiting", waited, WAITED),
        ]:
            axes.barh(y, width, left=left, height=0.62, color=color, label=None if y else what)
            left += width
        ends = [[total - min(secs)], [max(secs) - total]]
        axes.errorbar(total, y, xerr=ends, color="black", linewidth=0.9, capsize=2.5)
        axes.annotate(
            f"{total:.1f}", (max(secs), y), (4, 0), textcoords="offset points", va="center"
        )
    if "memory" in of_way:
        floor = median(each_later(of_way["memory"], lambda epoch: epoch["secs"]))
        axes.axvline(floor, color="black", linestyle=":", linewidth=0.9)
    axes.set_xlim(0, axes.get_xlim()[1] * 1.06)
    axes.set_xlabel("time of an epoch after the first (s)")
    legend_above(axes, 3)


def draw_memory(axes: Any, of_way: dict[str, list[Row]]) -> None:
    """Draws the peak memory of the process, and of its workers beside it."""
    for y, rows in enumerate(of_way.values()):
        own = median(row["memory_bytes"] / GIB for row in rows)
        workers = median(row["workers_memory_bytes"] / GIB for row in rows)
        axes.barh(y, own, height=0.62, color=PROCESS, label=None if y else "process")
        if workers:
            axes.barh(
                y, workers, left=own, height=0.62, color=WORKERS, hatch="///",
                edgecolor=PROCESS, linewidth=0, label="its workers",
            )
        axes.annotate(
            f"{own + workers:.2f}", (own + workers, y), (4, 0), textcoords="offset points",
            va="center",
        )
    axes.set_xlim(0, axes.get_xlim()[1] * 1.15)
    axes.set_xlabel("peak memory (GiB)")
    legend_above(axes, 2)


def legend_above(axes: Any, n_columns: int) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=n_columns, frameon=False, borderpad=0.2,
        handlelength=1.2, columnspacing=1.4,
    )


if __name__ == "__main__":
    main()
