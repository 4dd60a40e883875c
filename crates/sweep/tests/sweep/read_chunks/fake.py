"""tiledbsoma's ways for tests, of the standard library alone: lets the `sweep` program (variable SWEEP) read, and tells what it read as
tiledbsoma's script would. FAULT says what is wrong, and FAULT_WAY in which way; every run is noted in LOG."""

import argparse
import json
import os
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    for flag in ["--measurement", "--layer", "--joinids"]:
        parser.add_argument(flag)
    for flag in ["--chunk-rows", "--genes"]:
        parser.add_argument(flag, type=int)
    job = parser.parse_args()
    given = json.load(sys.stdin)
    job.uri, job.config = given["uri"], given["config"]
    with open(os.environ["LOG"], "a") as log:
        settings = " ".join(f"{key}={value}" for key, value in job.config.items())
        log.write(f"{job.way} {settings}\n")
    fault = os.environ.get("FAULT", "") if os.environ.get("FAULT_WAY", job.way) == job.way else ""
    if fault == "crash":
        sys.exit("Traceback\nValueError: no such thing")
    if fault == "slow":
        time.sleep(600)
    if fault == "short":
        with open(job.joinids, "r+b") as order:
            order.truncate(os.path.getsize(job.joinids) - 8)
    read = answer(job)
    if fault == "lost value":
        read["tally"]["n_values"] -= 1
    if fault == "other values":
        read["tally"]["sums"][127] += 1
    if fault == "other places":
        read["tally"]["checksum"] ^= 1
    if fault == "no time":
        read["read_secs"] = -1
    print("a line that a library printed", flush=True)
    print(json.dumps({"Answer": read}), flush=True)
    print(json.dumps("Done"), flush=True)


def answer(job):
    data = {
        "uri": job.uri,
        "config": {},
        "measurement": job.measurement,
        "layer": job.layer,
        "reader": "native",
        "obs_columns": [],
    }
    chunks = {"joinids": job.joinids, "chunk_rows": job.chunk_rows, "n_genes": job.genes}
    text = json.dumps({"cache": "", "task": {"data": data, "chunks": chunks}})
    ran = subprocess.run([os.environ["SWEEP"], "read-chunks-task"], input=text, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return next(event["Answer"] for event in events if "Answer" in event)


main()
