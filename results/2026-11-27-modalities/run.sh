# Measures: run.sh modalities|training FOLDER [ROUNDS], where FOLDER is what write.py filled; rows go to rows.jsonl. Each row is a process of
# its own; rounds go through all rows in turn. The equality of each delivery comes first, and a delivery that differs ends the run.
set -eo pipefail
PART=$1 D=$2 ROUNDS=${3:-5}
HERE=$(cd "$(dirname "$0")" && pwd); OUT=${OUT:-$HERE/rows.jsonl}
P=${P:-python3.12}     # with somafeed (PYTHONPATH), xtask/requirements/ecosystem.txt and, for annbatch's rows, annbatch 0.2 and zarrs
HOX=${HOX:-$P}         # with homeobox, or empty to leave it out
ANNBATCH=${ANNBATCH-1} # empty leaves annbatch out

note() { echo "$(date +%T) $*" >&2; }
one() { # INTERPRETER SCRIPT ARGS...
  local row; note "$@"
  if row=$("$1" "$HERE/$2" "$D" "${@:3}" 2>"$D/stderr.txt"); then echo "$row" | tail -1 >> "$OUT"; else tail -3 "$D/stderr.txt" >&2; return 1; fi
}
read_one() { one "$P" read.py "$@"; }
train_one() { one "$P" train.py "$@"; }

modalities() {
  for format in h5mu zarr; do for what in rna+prot rna+atac; do read_one somafeed $what --format $format --epochs 1 --check; done; done
  read_one somafeed rna+prot --format 10x --epochs 1 --check
  read_one somafeed rna+prot --form numpy --epochs 1 --check
  read_one two rna+prot --epochs 1 --check
  for loader in memory annloaders backed; do read_one $loader rna+prot --epochs 1 --batches 2 --check; done
  [ -z "$HOX" ] || one "$HOX" read.py homeobox rna+prot --epochs 1 --batches 4 --check
  # Once, since they take long: rows of a backed file at random read most of it for each batch.
  read_one backed rna+prot --epochs 1 --batches 1
  for r in $(seq $ROUNDS); do
    for what in rna rna+prot atac rna+atac; do read_one somafeed $what; done
    for what in rna rna+prot; do read_one somafeed $what --batch 128; done
    for what in rna rna+prot; do read_one somafeed $what --form numpy; done
    for what in rna rna+prot; do read_one somafeed $what --format 10x; done
    read_one two rna+prot
    read_one memory rna+prot
    [ -z "$HOX" ] || one "$HOX" read.py homeobox rna+prot --batches 8
    if [ $r -le 3 ]; then
      for what in rna rna+prot atac rna+atac; do read_one somafeed $what --format zarr; done
      for what in rna rna+prot; do read_one somafeed $what --io 65536; done
      read_one annloaders rna+prot --batches 8
    fi
  done
}

training() {
  train_one totalvi somafeed --file elbo --check
  train_one multivi somafeed --check
  for way in somafeed tiledbsoma ${ANNBATCH:+annbatch}; do train_one peakvi $way --check; done
  for r in $(seq ${ROUNDS_TIMES:-3}); do
    for way in memory somafeed; do train_one totalvi $way --epochs 2; done
    for way in memory somafeed; do train_one multivi $way --epochs 3; done
    for way in memory somafeed tiledbsoma ${ANNBATCH:+annbatch}; do train_one peakvi $way --epochs 2; done
  done
  for seed in 1 2 3; do
    for way in memory somafeed; do train_one totalvi $way --file elbo --epochs 20 --seed $seed; train_one multivi $way --epochs 20 --seed $seed; done
  done
}

case $PART in modalities|training) $PART ;; *) sed -n 1,2p "$0"; exit 2 ;; esac
note done
