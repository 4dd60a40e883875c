"""Fills Dragon's distributed dictionary on this machine with the first lines of a file, and prints how long it took.

    python3.11 -m venv dragon && dragon/bin/pip install dragonhpc==0.15.0
    PATH=dragon/bin:$PATH dragon -s benches/peers/dragon_fill.py dna.txt 4096

The dictionary is that of Dragon's Doc2Vec example: two managers a node, line numbers as keys, one
put for each line. The last line of output is JSON: the puts, the bytes of the lines, the seconds of
the puts, and the bytes that the managers have in use afterwards. Dragon's processes poll without a
pause, so a machine with as few cores as it has processes shows less than a larger one would.
"""

import json
import sys
import time

import dragon  # noqa: F401, first of all: it replaces parts of multiprocessing
import multiprocessing
from dragon.data.ddict import DDict

MANAGERS = 2
TOTAL_BYTES = 1 << 30
N_CHECKED = 50


def main() -> None:
    multiprocessing.set_start_method("dragon")
    path, n_lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        lines = [line.strip() for _, line in zip(range(n_lines), file)]
    store = DDict(managers_per_node=MANAGERS, n_nodes=1, total_mem=TOTAL_BYTES)
    started = time.perf_counter()
    for number, line in enumerate(lines):
        store[number] = line
    seconds = time.perf_counter() - started
    if any(store[number] != line for number, line in enumerate(lines[:N_CHECKED])):
        raise ValueError("the dictionary returns other lines than were put into it")
    stats = store.stats
    found = {
        "n_puts": sum(of.num_keys for of in stats),
        "line_bytes": sum(map(len, lines)),
        "seconds": seconds,
        "used_bytes": sum(of.total_used_bytes for of in stats),
    }
    store.destroy()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
