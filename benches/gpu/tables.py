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
    for title, table in [("Feed", feed(rows)), ("Threads", threads(rows)), ("VAE", vae(rows))]:
        print(f"\n## {title}\n\n" + "\n".join(table))


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def feed(rows: list[dict]) -> list[str]:
    """Cells per second on the device, and bytes per second of X beside those of plain copies."""
    table = ["| genes | way | step ms | cells/s | GB/s of X | waits % | AU % | first batch s |",
             "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if row["section"] != "feed" or "way" not in row:
            continue
        if row["way"] == "copies":
            table.append(f"| | plain copies | | | {row['gigabytes_per_second']:.1f} | | | |")
            continue
        wait, au = row.get("wait_share"), row.get("au")
        cells = [
            row["genes"], row["way"], row["step_ms"], f"{row['cells_per_second']:,.0f}",
            f"{row['gigabytes_per_second']:.2f}" if "gigabytes_per_second" in row else "",
            "" if wait is None else f"{100 * wait:.0f}",
            f"{100 * au:.1f}" if au else "", f"{row['first_batch_seconds']:.2f}",
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


def vae(rows: list[dict]) -> list[str]:
    table = ["| way | epoch | seconds | ms per step | waits % | loss |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if row.get("what") == "VAE":
            table.append(
                f"| {row['way']} | {row['epoch']} | {row['seconds']:.2f} "
                f"| {1e3 * row['seconds_per_step']:.2f} | {100 * row['waited_share']:.1f} "
                f"| {row['loss']:.4f} |"
            )
    return table


if __name__ == "__main__":
    main(*sys.argv[1:])
