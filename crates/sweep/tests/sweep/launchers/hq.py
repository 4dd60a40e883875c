"""Stands in for HyperQueue's program `hq`, which its wheel lacks: submits through the wheel's API.

Takes the flags of docs/scale-out/hyperqueue.sh, starts a server with two workers of one core in the
folder HQ_SERVER_DIR, and waits for the tasks. HyperQueue sets their variables.
"""

import argparse
import os
import sys
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi.protocol import ResourceRequest

N_WORKERS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["submit"])
    parser.add_argument("--name", required=True)
    parser.add_argument("--array", required=True)
    parser.add_argument("--cpus", required=True)
    flags, program = sys.argv[1:], []
    if "--" in flags:
        behind = flags.index("--")
        flags, program = flags[:behind], flags[behind + 1 :]
    job = parser.parse_args(flags)
    first, last = map(int, job.array.split("-"))
    # The API numbers the tasks of a job from 0.
    if first != 0:
        parser.error(f"--array {job.array}: it must begin at 0")
    submitted = Job(name=job.name, max_fails=None)
    for task in range(last + 1):
        submitted.program(
            program,
            cwd=Path.cwd(),
            stdout=f"task-{task}.out",
            stderr=f"task-{task}.out",
            resources=ResourceRequest(cpus=job.cpus),
        )
    with LocalCluster(os.environ["HQ_SERVER_DIR"]) as cluster:
        for _ in range(N_WORKERS):
            cluster.start_worker(WorkerConfig(cores=1))
        client = cluster.client()
        if not client.wait_for_jobs([client.submit(submitted)], raise_on_error=False):
            sys.exit("a task failed")


main()
