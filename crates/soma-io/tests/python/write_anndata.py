"""Writes an AnnData as Zarr, versions 2 and 3, and as an experiment by tiledbsoma.io.

Usage: write_anndata.py folder n_cells n_genes
"""

import json
import sys
import warnings
from pathlib import Path

import anndata
import tiledbsoma.io

sys.path.append(str(Path(__file__).parents[3] / "anndata" / "tests"))
from make_fixtures import made  # noqa: E402

warnings.simplefilter("ignore")
anndata.settings.allow_write_nullable_strings = True
folder, n_cells, n_genes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
data = made(n_cells, n_genes)
for version in (2, 3):
    anndata.settings.zarr_write_format = version
    data.write_zarr(folder / f"v{version}.zarr", convert_strings_to_categoricals=False)
tiledbsoma.io.from_anndata(
    str(folder / "experiment"), data, "RNA", X_layer_name="X", raw_X_layer_name="X"
)
print(json.dumps(None))
