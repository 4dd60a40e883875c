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
for name, compression in {"plain": None, "gzip": "gzip"}.items():
    data.write_h5ad(folder / f"{name}.h5ad", compression=compression, convert_strings_to_categoricals=False)
# As annbatch writes a collection: data sets over the same genes, each with its own categories.
collection = zarr.open_group(folder / "collection.zarr", mode="w", zarr_format=3)
collection.attrs.update({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"})
cuts = [0, 2, 3, n_cells // 2, n_cells]
for n, (start, stop) in enumerate(zip(cuts, cuts[1:])):
    anndata.io.write_elem(collection, f"dataset_{n}", data[start:stop].copy())
# The same cells in all, but not in each data set.
slipped = zarr.open_group(folder / "slipped.zarr", mode="w", zarr_format=3)
slipped.attrs.update(collection.attrs)
for n, (of_obs, of_x) in enumerate([(slice(0, 3), slice(0, 2)), (slice(3, 6), slice(2, 6))]):
    anndata.io.write_elem(slipped, f"dataset_{n}", data[of_obs].copy())
    anndata.io.write_elem(slipped[f"dataset_{n}"], "X", data[of_x].X.copy())
# A data set was removed, and its neighbours were not.
gap = zarr.open_group(folder / "gap.zarr", mode="w", zarr_format=3)
gap.attrs.update(collection.attrs)
for n, rows in {0: slice(0, 2), 3: slice(2, 9), 10: slice(9, n_cells)}.items():
    anndata.io.write_elem(gap, f"dataset_{n}", data[rows].copy())
few_genes = data[:4, :5].copy()
few_genes.raw = None
few = zarr.open_group(folder / "few_genes.zarr", mode="w", zarr_format=3)
anndata.io.write_elem(few, "/", few_genes)
anndata.io.write_elem(few, "X", data[:4, :6].X.copy())
tiledbsoma.io.from_anndata(
    str(folder / "experiment"), data, "RNA", X_layer_name="X", raw_X_layer_name="X"
)
print(json.dumps(None))
