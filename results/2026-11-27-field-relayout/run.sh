# Rounds in turn, each copy a fresh process into a folder that is not there: run.sh FOLDER ROUNDS
D=$1; N=$2                      # write.py wrote FOLDER/t.zarr
P="${P:-python3.12}"            # with xarray, dask and zarr
DASK="${DASK-dask}"             # DASK= leaves it out: it takes minutes
FIELDS="${FIELDS:-somafeed fields}"
measured() { /usr/bin/time -f "%e s, peak %M kB" "$@" 2>&1 >/dev/null | tail -1; }
for r in $(seq $N); do
 for shard in 1 16; do
  shards=""; [ $shard = 16 ] && shards="--shards time=16"
  rm -rf $D/copy; sync
  echo "shards of $shard: somafeed: $(measured $FIELDS relayout $D/t.zarr $D/copy --chunks time=1,level=1 $shards --codec blosc:5)"
  for peer in zarr xarray $DASK; do
   [ $peer != zarr ] && [ $shard = 16 ] && continue  # the slower ones in one layout
   rm -rf $D/copy; sync
   echo "shards of $shard: $($P peers.py $D/t.zarr $D/copy $peer $shard)"
  done
 done
done
rm -rf $D/copy
