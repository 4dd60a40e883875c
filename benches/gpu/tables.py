"""Prints the output of `run.py` as tables in Markdown: `python3 tables.py FOLDER`."""

import json
import sys
from pathlib import Path
from statistics import median


def main(folder: str) -> None:
    rows, checks = (lines(Path(folder) / name) for name in ("rows.jsonl", "checks.jsonl"))
    outcomes = [check["outcome"] for check in checks]
    counted = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in dict.fromkeys(outcomes))
    print(f"Checks: {counted}.\n")
    for check in checks:
        if check["outcome"] != "passed":
            print(f"- {check['section']}: {check['check']}: {check['outcome']}")
    tables = {
        "Seconds": seconds, "Right": right, "Feed": feed, "Threads": threads, "Training": training,
        "U-Net": u_net,
    }
    for title, table in tables.items():
        print(f"\n## {title}\n\n" + "\n".join(table(rows)))
    for row in rows:
        if row.get("output"):
            print(f"\n{row['what']}:\n\n{row['output']}")


def seconds(rows: list[dict]) -> list[str]:
    """How long sections took, and each of the data."""
    return ["| section | what | s |", "| --- | --- | ---: |"] + [
        f"| {row['section']} | {row['what']} | {row['seconds']:.1f} |" for row in rows
        if row.get("what") == "section" or row["section"] == "data"
    ]


def right(rows: list[dict]) -> list[str]:
    """Batches of the Python package that were compared with those of the CPU."""
    return ["| kind | batches compared | s |", "| --- | ---: | ---: |"] + [
        f"| {row['what']} | {row['batches']:,} | {row['seconds']:.1f} |" for row in rows
        if row["section"] == "right" and "batches" in row
    ]


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def feed(rows: list[dict]) -> list[str]:
    """Cells per second on the device, and bytes per second of X beside those of plain copies."""
    table = [
        "| genes | way | step ms | cells/s | GB/s of X | waits % | AU % | without first % "
        "| first batch s |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row["section"] != "feed" or "way" not in row:
            continue
        if row["way"] == "copies":
            table.append(f"| | plain copies | | | {row['gigabytes_per_second']:.1f} | | | | |")
            continue
        wait, au, after = (row.get(name) for name in ("wait_share", "au", "au_after_first"))
        cells = [
            row["genes"], row["way"], row["step_ms"], f"{row['cells_per_second']:,.0f}",
            f"{row['gigabytes_per_second']:.2f}" if "gigabytes_per_second" in row else "",
            "" if wait is None else f"{100 * wait:.0f}",
            f"{100 * au:.1f}" if au else "", f"{100 * after:.1f}" if after else "",
            f"{row['first_batch_seconds']:.2f}",
        ]
        table.append(f"| {' | '.join(map(str, cells))} |")
    return table


def threads(rows: list[dict]) -> list[str]:
    """Samples per second by cores; the gain over one core, as a share of what zstd alone gains."""
    speeds: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["section"] == "threads" and row.get("epochs"):
            speeds.setdefault(row["what"], {})[row["cores"]] = best(row["epochs"])
    counts = sorted({cores for of_work in speeds.values() for cores in of_work})
    table = [f"| work | {' | '.join(f'{cores} cores' for cores in counts)} | gain | of zstd's |",
             f"| --- |{' ---: |' * (len(counts) + 2)}"]
    gains = {work: gain(of_work) for work, of_work in speeds.items()}
    for work, of_work in speeds.items():
        cells = [f"{of_work[cores]:,.1f}" if cores in of_work else "" for cores in counts]
        share = gains[work] / gains["zstd alone"] if gains.get("zstd alone") else 0
        table.append(f"| {work} | {' | '.join(cells)} | {gains[work]:.1f} | {share:.2f} |")
    return table


def best(epochs: list[dict]) -> float:
    """The median over the epochs after the first, or the first if there is no other."""
    return median(epoch["samples_per_sec"] for epoch in epochs[1:] or epochs)


def gain(of_work: dict[int, float]) -> float:
    return of_work[max(of_work)] / of_work[min(of_work)]


def training(rows: list[dict]) -> list[str]:
    table = ["| model | way | epoch | steps | ms per step | waits % | GPU memory GB | loss |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if row["section"] == "training" and "seconds_per_step" in row:
            table.append(
                f"| {row['what']} | {row['way']} | {row['epoch']} | {row['batches']} "
                f"| {1e3 * row['seconds_per_step']:.2f} | {100 * row['waited_share']:.1f} "
                f"| {row['gpu_memory_bytes'] / 1e9:.1f} | {row['loss']:.4f} |"
            )
    return table


def u_net(rows: list[dict]) -> list[str]:
    """Epochs, and the GPU's use along each of them, in tenths of its time."""
    table = ["| strategy | epoch | s | cubes/s | busy % | busy % along the epoch |",
             "| --- | ---: | ---: | ---: | ---: | --- |"]
    for row in rows:
        for epoch in row.get("epochs", ()) if row.get("what") == "U-Net" else ():
            share, along = epoch["device_busy_share"], epoch["device_busy"] or []
            tenths = [along[at * len(along) // 10 : (at + 1) * len(along) // 10]
                      for at in range(10)]
            table.append(
                f"| {epoch['chunk_method']} | {epoch['epoch']} | {epoch['elapsed']:.2f} "
                f"| {epoch['samples_per_sec']:.1f} "
                f"| {'' if share is None else f'{100 * share:.0f}'} "
                f"| {' '.join(f'{100 * sum(t) / len(t):.0f}' for t in tenths if t)} |"
            )
    return table


if __name__ == "__main__":
    main(*sys.argv[1:])
