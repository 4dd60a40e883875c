"""What tests and the programs that they start have in common."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from somafeed import ExperimentDataset

N_CELLS, N_GENES = 907, 40
TESTS = Path(__file__).parent


def dataset(uri, **options):
    """The cells in batches of tensors and codes."""
    settings = {
        "obs_column_names": ["soma_joinid", "cell_type"], "batch_size": 20, "seed": 7,
        "shuffle_chunk_size": 4, "io_batch_size": 64, "form": "torch", "obs_form": "codes",
    }
    return ExperimentDataset(uri=uri, **{**settings, **options})


def run(program, *arguments, timeout=300, fails=False, launcher=()):
    """Runs a program with its children, of which none is left when it returns."""
    command = [sys.executable, *launcher, str(TESTS / program), *map(str, arguments)]
    cleared = {k: v for k, v in os.environ.items() if "RANK" not in k and "WORLD" not in k}
    variables = {**cleared, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    assert (process.returncode != 0) == fails, output
    return output


def recorded(folder, stage):
    """What each rank has recorded of a stage, in the order of ranks."""
    files = sorted(Path(folder).glob("rank-*.jsonl"))
    lines = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    return [[line for line in of_rank if line["stage"] == stage] for of_rank in lines]
