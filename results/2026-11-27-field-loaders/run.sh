# Five rounds in turn: run.sh FOLDER ROUNDS
D=$1  # the folder that write.py filled
P12="python3.12"  # with somafeed, insitubatch, xarray, zarr and tensorstore
P11="python3.11"  # with torch, xarray and xbatcher

one() { # ROW LOADER ARGS
  row=$1; l=$2; shift 2; py="$P12"; [ $l = xbatcher ] && py="$P11"
  timeout 45 $py read.py "$@" 2>/dev/null | sed "s/^/$row: /"
}
for r in $(seq $2); do
 for l in somafeed insitubatch xarray tensorstore xbatcher; do one "1 step a chunk, 721x1440" $l $D/surface.zarr $l 0 8 1; done
 for l in somafeed insitubatch tensorstore xbatcher; do one "window -1 0 1, 1 GiB" $l $D/surface.zarr $l " -1,0,1" 8 1 --memory 1; done
 for l in somafeed insitubatch; do one "second epoch, 1 GiB" $l $D/surface.zarr $l 0 8 2 --memory 1; done
 for l in somafeed insitubatch; do one "8 steps a chunk, 361x720" $l $D/published-8.zarr $l 0 32 1; done
 for l in somafeed insitubatch tensorstore; do one "100 steps a chunk, 64x32" $l $D/wb2-64x32.zarr $l 0 32 1; done
 for l in somafeed insitubatch; do one "box 50x50 of a shard of 921 MB" $l $D/shards.zarr $l 0 16 1 --box 175:225,175:225; done
done
