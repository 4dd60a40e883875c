"""A peer for tests, of the standard library alone: lets the `sweep` program (variable SWEEP) load the data, and tells what it delivered
as another loader would. FAULT says what is wrong with it, and FAULT_FORM for which form of batches; every run is noted in LOG."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["measure", "tally"])
    for flag in ["--uri", "--measurement", "--layer", "--form"]:
        parser.add_argument(flag)
    for flag in ["--genes", "--batch-rows", "--chunk-rows", "--chunks-per-block", "--seed", "--epochs"]:
        parser.add_argument(flag, type=int)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--obs-column", action="append", default=[])
    parser.add_argument("--consumer-millis", type=float)
    job = parser.parse_args()
    with open(os.environ["LOG"], "a") as log:
        log.write(f"{job.task} {job.form} {' '.join(job.obs_column)} {job.consumer_millis}\n")
    fault = os.environ.get("FAULT", "")
    if os.environ.get("FAULT_FORM", job.form) != job.form:
        fault = ""
    delivered = deliver(job)
    print("a line that a library printed", flush=True)
    if job.task == "tally":
        if fault == "lost cell":
            delivered["n_cells"] -= 1
        if fault == "other values":
            delivered["checksum"] ^= 1
        tell({"Delivered": delivered})
    else:
        for epoch in range(job.epochs):
            tell({"PeerEpoch": measure(epoch, delivered["n_cells"], job, fault)})
    tell("Done")


def deliver(job):
    data = {
        "uri": job.uri,
        "config": dict(setting.split("=", 1) for setting in job.config),
        "measurement": job.measurement,
        "layer": job.layer,
        "reader": "auto",
        "n_genes": job.genes,
        "obs_columns": job.obs_column,
    }
    point = {
        "chunk_rows": job.chunk_rows,
        "chunks_per_block": job.chunks_per_block,
        "batch_rows": job.batch_rows,
        "method": "native",
        "form": job.form,
        "transform": {"log1p": False},
        "shuffled": True,
        # Another order: what is delivered must be the same all the same.
        "seed": job.seed + 1,
        "drop_last": False,
        "prefetch_blocks": 0,
        "prefetch_batches": 0,
        "n_epochs": 1,
        "consumer": "None",
    }
    text = json.dumps({"data": data, "cache": "warm", "task": {"Tally": point}})
    ran = subprocess.run([os.environ["SWEEP"], "point"], input=text, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return next(event["Delivered"] for event in events if "Delivered" in event)


def measure(epoch, n_cells, job, fault):
    if fault == "crash":
        sys.exit("Traceback\nValueError: no such thing")
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "memory":
        tell({"Failed": {"message": "MemoryError: no more"}})
        sys.exit(1)
    if fault == "slow":
        time.sleep(600)
    rows = [job.batch_rows] * (n_cells // job.batch_rows) + [n_cells % job.batch_rows]
    if fault == "short":
        rows.pop(0)
    now = time.time()
    return {
        "epoch": epoch,
        "open_secs": 0.25,
        "versions": {"fake": "1.0", "Python": "3"},
        "batches": [[0.5, 0.0, n] for n in rows if n],
        "end_wait_secs": 0.0,
        "start_time": now,
        "end_time": now,
        "cpu_user_secs": 1.0,
        "cpu_system_secs": 0.5,
        "start_mem_bytes": 1000,
        "max_mem": 10_000_000_000,
    }


def tell(event):
    print(json.dumps(event), flush=True)


main()
