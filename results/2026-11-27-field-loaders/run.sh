# Rounds in turn, each loader a fresh process: run.sh FOLDER ROUNDS [NAMES]
D=$1; N=$2   # the folder that write.py filled
P="${P:-python3.12}"            # with somafeed, insitubatch, xarray, zarr and tensorstore; without torch, which takes 200 MB
TORCH="${TORCH:-python3.12}"    # with torch, xarray and xbatcher
ANEMOI="${ANEMOI:-python3.12}"  # with torch and anemoi-datasets, which wants zarr 2
SERVER="${SERVER:-somafeed fields}"
LINK="30ms,90MB/s,1GB/s"
wanted=${3:-all}

# This virtual machine's host takes back memory that is free: who touches it first waits for the host, 5 us a page. So before each
# process another one touches 3 GB and ends.
warm() { $P -c 'import numpy; numpy.ones(3 << 30, "u1")'; }
row() { # NAME ROW LOADER ARGS
  [ $wanted = all ] || [[ ,$wanted, == *,$1,* ]] || return
  name=$2; l=$3; shift 3; py="$P"; [ $l = xbatcher ] && py="$TORCH"; [ $l = anemoi ] && py="$ANEMOI"
  warm; timeout 60 $py read.py "$1" $l "${@:2}" 2>/dev/null | sed "s/^/$name: /"
}
floor() { # NAME ROW ARGS
  [ $wanted = all ] || [[ ,$wanted, == *,$1,* ]] || return
  warm; timeout 60 $P floor.py "${@:3}" 2>/dev/null | sed "s/^/$2: /"
}
S=$D/surface.zarr
for r in $(seq $N); do
 for l in somafeed insitubatch xarray tensorstore xbatcher; do row one "1 step a chunk, 721x1440" $l $S 0 8 3; done
 floor one "1 step a chunk, 721x1440" $S 0 8 3
 for w in 2 4; do row workers "1 step a chunk, $w workers" xbatcher $S 0 8 2 --workers $w; done
 for l in somafeed insitubatch tensorstore xbatcher; do row windows "window -1 0 1, 1 GiB" $l $S " -1,0,1" 8 3 --memory 1; done
 floor windows "window -1 0 1, 1 GiB" $S " -1,0,1" 8 3 keep
 for l in somafeed insitubatch; do row kept "second epoch, 1 GiB" $l $S 0 8 2 --memory 1; done
 floor kept "second epoch, 1 GiB" $S 0 8 2 keep
 rm -rf $D/pool; row pool "persistent pool, first run" insitubatch $S 0 8 1 --memory 1 --cache $D/pool
 row pool "persistent pool, next run" insitubatch $S 0 8 1 --memory 1 --cache $D/pool; rm -rf $D/pool
 for l in somafeed insitubatch; do row eight "8 steps a chunk, 361x720" $l $D/published-8.zarr 0 32 2; done
 floor eight "8 steps a chunk, 361x720" $D/published-8.zarr 0 32 2
 for l in somafeed insitubatch tensorstore; do row hundred "100 steps a chunk, 64x32" $l $D/wb2-64x32.zarr 0 32 1; done
 for l in somafeed insitubatch; do row box "box 50x50 of a shard of 921 MB" $l $D/shards.zarr 0 16 1 --box 175:225,175:225; done
 for l in somafeed insitubatch tensorstore xarray; do row cold "cold, 1 step a chunk" $l $S 0 8 1 --cold; done
 floor cold "cold, 1 step a chunk" $S 0 8 1 --cold
 for l in somafeed insitubatch tensorstore xarray; do row link "over a link, 1 step a chunk" $l $S 0 8 1 --link $LINK --server "$SERVER"; done
 floor link "over a link, 1 step a chunk" $S 0 8 1 --link $LINK --server "$SERVER"
 row link "over a link, 2 workers" xbatcher $S 0 8 2 --workers 2 --link $LINK --server "$SERVER"
 for l in somafeed tensorstore xarray; do row levels "13 levels in a chunk, all read" $l $D/levels-13.zarr 0 4 3; done
 floor levels "13 levels in a chunk, all read" $D/levels-13.zarr 0 4 3
 for l in somafeed xarray; do row packed "packed i16, 361x720" $l $D/packed.zarr 0 16 1; done
 for l in somafeed anemoi; do row anemoi "anemoi-datasets, 1x60x1x40320" $l $D/anemoi.zarr 0 8 1 --array data; done
 floor anemoi "anemoi-datasets, 1x60x1x40320" $D/anemoi.zarr 0 8 1 data
 row anemoi "anemoi-datasets, 2 workers" anemoi $D/anemoi.zarr 0 8 2 --array data --workers 2
done
