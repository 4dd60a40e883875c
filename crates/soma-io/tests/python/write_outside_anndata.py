"""Writes cells that no one here wrote, 700 of 10x's PBMC that come with scanpy, as Zarr and as h5ad,
and by tiledbsoma.io. The file itself is copied: anndata 0.6 wrote it, with tables of compound values.

Usage: write_outside_anndata.py folder
"""

import json
import shutil
import sys
import warnings
from pathlib import Path

import anndata
import scanpy
import tiledbsoma.io

warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
source = Path(scanpy.__file__).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
shutil.copy(source, folder / "old.h5ad")
data = anndata.read_h5ad(source)
for version in (2, 3):
    anndata.settings.zarr_write_format = version
    data.write_zarr(folder / f"v{version}.zarr")
data.write_h5ad(folder / "new.h5ad", compression="gzip")
tiledbsoma.io.from_anndata(str(folder / "experiment"), data, "RNA", X_layer_name="X", raw_X_layer_name="X")
print(json.dumps(list(data.obsm)))
