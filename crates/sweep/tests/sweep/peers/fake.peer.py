"""A peer for tests, of the standard library alone: lets the `sweep` program (variable SWEEP) load the data, and tells what it delivered
as another loader would. FAULT says what is wrong with it, and FAULT_FORM for which form of batches; every run is noted in LOG. With CONVERTS
it reads a copy of its own, a file that names the experiment, and has settings of its own beside ours. With OVER_LINK it reads over a link."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["describe", "convert", "measure", "tally"])
    for flag in ["--measurement", "--layer", "--form", "--copy", "--variant"]:
        parser.add_argument(flag)
    for flag in ["--genes", "--batch-rows", "--chunk-rows", "--chunks-per-block", "--seed", "--epochs"]:
        parser.add_argument(flag, type=int)
    parser.add_argument("--obs-column", action="append", default=[])
    parser.add_argument("--consumer-millis", type=float)
    job = parser.parse_args()
    converts = "CONVERTS" in os.environ
    if job.task == "describe":
        tell({"Answer": {"Facts": facts(converts)}})
        return tell("Done")
    given = json.load(sys.stdin)
    job.uri, job.config, job.link = given["uri"], given["config"], given.get("link")
    counts = [link_counts(job)]
    with open(os.environ["LOG"], "a") as log:
        variant = f" {job.variant}" if converts and job.variant else ""
        log.write(f"{job.task} {job.form} {' '.join(job.obs_column)} {job.consumer_millis}{variant}\n")
    fault = os.environ.get("FAULT", "")
    if fault.startswith("tells") and job.task == "measure":
        words = f"cannot open {job.uri} with {job.config}"
        if fault == "tells":
            tell({"Failed": {"message": words}})
            sys.exit(1)
        sys.exit(f"Traceback\nValueError: {words}")
    if job.task == "convert":
        return convert(job, fault)
    if converts:
        with open(os.path.join(job.copy, "name")) as copy:
            job.uri = copy.read()
    if os.environ.get("FAULT_FORM", job.form) != job.form:
        fault = ""
    delivered = deliver(job)
    print("a line that a library printed", flush=True)
    if job.task == "tally":
        if fault == "lost cell":
            delivered["n_cells"] -= 1
        if fault == "other values":
            delivered["tally"]["checksum"] ^= 1
        tell({"Answer": {"Delivered": delivered}})
    else:
        for epoch in range(job.epochs):
            counts.append(link_counts(job))
            if job.link:
                # Its loader has run before; this stands for the reads of the epoch.
                deliver(job)
            epoch = measure(epoch, delivered["n_cells"], job, fault)
            if converts and job.variant == "ours":
                epoch["stored_bytes"] = 12_345_000
            if job.link:
                epoch["link"] = {"start": counts[0], "before": counts[-1], "after": link_counts(job)}
            tell({"Answer": {"Epoch": epoch}})
    tell("Done")


def facts(converts):
    forms = ["dense", "csr"]
    variants = [{"name": "ours", "summary": "as asked", "takes_blocks": True, "forms": forms}]
    if converts:
        variants.append({"name": "documented", "summary": "its own", "takes_blocks": False, "forms": ["csr"]})
    return {
        "versions": {"fake": "1.0", "Python": "3"},
        "gene_subsets": not converts,
        "over_link": "OVER_LINK" in os.environ,
        "conversion": "a file that names it" if converts else None,
        "variants": variants,
    }


def convert(job, fault):
    with open(os.path.join(job.copy, "name"), "w") as copy:
        copy.write(os.path.abspath(job.uri))
    if fault == "conversion":
        tell({"Failed": {"message": "OSError: no space left"}})
        sys.exit(1)
    if fault == "slow conversion":
        time.sleep(600)
    tell({"Answer": {"Conversion": {"secs": 1.5, "max_mem": 2_000_000_000}}})
    tell("Done")


def deliver(job):
    data = {
        "uri": job.uri,
        "config": job.config,
        "measurement": job.measurement,
        "layer": job.layer,
        "reader": "auto",
        "n_genes": job.genes,
        "obs_columns": job.obs_column,
    }
    pipeline = {
        "chunk_rows": job.chunk_rows,
        "chunks_per_block": job.chunks_per_block,
        "batch_rows": job.batch_rows,
        # Another order: what is delivered must be the same all the same.
        "seed": job.seed + 1,
        "prefetch_blocks": 0,
        "prefetch_batches": 0,
    }
    point = {"spec": {"pipeline": pipeline, "batch_form": job.form}}
    text = json.dumps({"cache": "warm", "task": {"data": data, "work": {"Tally": {"point": point, "joinid_column": None}}}})
    ran = subprocess.run([os.environ["SWEEP"], "peers-task"], input=text, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    answers = [event["Answer"] for event in events if "Answer" in event]
    return next(answer["Delivered"] for answer in answers if "Delivered" in answer)


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
        "chunk_rows": 16 if job.variant == "documented" else job.chunk_rows,
        "chunks_per_block": job.chunks_per_block,
        "batches": [[0.5, 0.0, n] for n in rows if n],
        "end_wait_secs": 0.0,
        "start_time": now,
        "end_time": now,
        "cpu_user_secs": 1.0,
        "cpu_system_secs": 0.5,
        "start_mem_bytes": 1000,
        "max_mem": 10_000_000_000,
    }


def link_counts(job):
    if not job.link:
        return None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(job.link["counts"], timeout=10) as counts:
        return json.load(counts)


def tell(event):
    print(json.dumps(event), flush=True)


main()
