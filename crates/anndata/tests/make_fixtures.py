"""Writes the stores and the file in `data/` with Python's anndata, and the values that readers must return.

    pip install anndata zarr
    python make_fixtures.py
"""

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr

FOLDER = Path(__file__).parent / "data"


def table(n, prefix):
    """A table with a column of each kind."""
    rng = np.random.default_rng(n)
    kinds = ["T cell", "B cell", "Zelle mit Umlaut: ä"]
    index = pd.Index([f"{prefix}{i}" for i in range(n)], name=f"{prefix}_id")
    codes = [i % 4 - 1 for i in range(n)]
    frame = pd.DataFrame(index=index)
    frame["cell_type"] = pd.Categorical.from_codes(codes, kinds)
    frame["stage"] = pd.Categorical.from_codes([i % 3 for i in range(n)], [1, 5, 9], ordered=True)
    frame["donor"] = np.array([f"donor {i % 3}" for i in range(n)], dtype=object)
    frame["n_counts"] = rng.integers(0, 10_000, n)
    frame["score"] = rng.random(n).astype(np.float32)
    frame["doublet"] = rng.random(n) < 0.5
    frame["age"] = pd.array([None if i % 3 == 0 else i for i in range(n)], dtype="Int16")
    frame["smoker"] = pd.array([None if i % 4 == 0 else i % 2 == 0 for i in range(n)], dtype="boolean")
    frame["note"] = pd.array([None if i % 5 == 0 else f"n{i}" for i in range(n)], dtype="string")
    frame["small"] = rng.integers(-100, 100, n).astype(np.int8)
    return frame


def made(n=7, m=4):
    rng = np.random.default_rng(0)
    x = sp.csr_matrix(np.where(rng.random((n, m)) < 0.5, rng.integers(1, 9, (n, m)), 0).astype(np.float32))
    full = sp.csr_matrix(rng.integers(0, 3, (n, m + 2)).astype(np.int64))
    data = anndata.AnnData(X=full, obs=table(n, "cell"), var=table(m + 2, "gene"))
    data.raw = data
    data = data[:, :m].copy()
    data.X = x
    data.layers["counts"] = sp.csr_matrix(x.astype(np.uint16))
    data.layers["dense"] = x.toarray().astype(np.float64)
    data.layers["by_columns"] = sp.csc_matrix(x)
    data.obsm["X_pca"] = rng.random((n, 3))
    data.uns = {
        "title": "Zellen mit Umlaut: ä",
        "empty": "",
        "n": -3,
        "large": np.uint64(2**63),
        "share": np.float32(0.25),
        "yes": True,
        "colors": np.array(["#ff0000", "#00ff00"], dtype=object),
        "pca": {"params": {"use": "X", "zero_center": False}, "variance": np.arange(3.0)},
        "table": data.var,
    }
    return data


def listed(values):
    return [None if value is pd.NA or value is None or value != value else value for value in values]


def expected(data):
    def matrix(of):
        return np.asarray(of.todense() if sp.issparse(of) else of).astype(np.float32).tolist()

    def columns(frame):
        return {name: listed(frame[name].astype(object).tolist()) for name in frame.columns}

    return {
        "X": matrix(data.X),
        "layers": {name: matrix(data.layers[name]) for name in data.layers},
        "obsm": {name: matrix(data.obsm[name]) for name in data.obsm},
        "raw": matrix(data.raw.X),
        "obs": columns(data.obs),
        "var": columns(data.var),
        "raw_var": columns(data.raw.var),
        "obs_names": data.obs_names.tolist(),
        "written_by": {name: version(name) for name in ["anndata", "zarr"]},
    }


def main():
    anndata.settings.allow_write_nullable_strings = True
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    data = made()
    (FOLDER / "expected.json").write_text(json.dumps(expected(data), indent=1, ensure_ascii=False))
    for name, zarr_format in [("v2", 2), ("v3", 3)]:
        anndata.settings.zarr_write_format = zarr_format
        data.write_zarr(FOLDER / name, convert_strings_to_categoricals=False)
        zarr.consolidate_metadata(str(FOLDER / name))
    data.write_h5ad(FOLDER / "x.h5ad", convert_strings_to_categoricals=False)


if __name__ == "__main__":
    main()
