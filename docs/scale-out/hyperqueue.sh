#!/bin/bash
# Submits a sweep to HyperQueue: hyperqueue.sh TASKS EXPERIMENT RESULTS [FLAG...]
# Run it in the folder of the project, where the program has been built.
set -eu
tasks=$1
experiment=$2
results=$3
shift 3
# HyperQueue's variables tell a task its number, but not how many there are.
exec hq submit --name somafeed-sweep --array "0-$((tasks - 1))" --cpus all -- \
    cargo xtask sweep --uri "$experiment" --results "$results" --resume --quiet --shard "auto/$tasks" "$@"
