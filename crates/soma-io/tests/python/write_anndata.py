"""Writes an AnnData as Zarr, versions 2 and 3, as a collection, and by tiledbsoma.io.

Usage: write_anndata.py folder n_cells n_genes
"""

import json
import sys
import warnings
from pathlib import Path

import anndata
import tiledbsoma.io
import zarr

sys.path.append(str(Path(__file__).parents[3] / "anndata" / "tests"))
from make_fixtures import made  # noqa: E402

warnings.simplefilter("ignore")
anndata.settings.allow_write_nullable_strings = True
folder, n_cells, n_genes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
data = made(n_cells, n_genes)
for version in (2, 3):
    anndata.settings.zarr_write_format = version
    data.write_zarr(folder / f"v{version}.zarr", convert_strings_to_categoricals=False)
# As annbatch writes a collection: data sets over the same genes, each with its own categories.
collection = zarr.open_group(folder / "collection.zarr", mode="w", zarr_format=3)
collection.attrs.update({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"})
cuts = [0, 2, 3, n_cells // 2, n_cells]
for n, (start, stop) in enumerate(zip(cuts, cuts[1:])):
    anndata.io.write_elem(collection, f"dataset_{n}", data[start:stop].copy())
tiledbsoma.io.from_anndata(
    str(folder / "experiment"), data, "RNA", X_layer_name="X", raw_X_layer_name="X"
)
print(json.dumps(None))
