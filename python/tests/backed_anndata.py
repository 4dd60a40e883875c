"""Every way of deriving a part of an AnnData that is backed by a file, or of changing it: what the
loader reads of it is what anndata has, or an error. Run by Python with anndata and somafeed.

Usage: backed_anndata.py FOLDER
"""

import sys
import tracemalloc
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse
import somafeed
import somafeed.backed

# Matrices are compared in pieces of a few rows.
somafeed.backed._PIECE_BYTES = 150
N_CELLS, N_GENES = 40, 12
warnings.filterwarnings("ignore", module="anndata")
folder = Path(sys.argv[1])


def written(name, X, raw=True):
    """The path of an AnnData with names that are there twice."""
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical(rng.choice(list("ABC"), N_CELLS)),
            "batch": [f"b{i % 3}" for i in range(N_CELLS)],
            "total": rng.random(N_CELLS),
            "n": np.arange(N_CELLS),
            "maybe": pd.array([None, 1] * (N_CELLS // 2), "Int64"),
        },
        index=[f"cell {i // 2}" for i in range(N_CELLS)],
    )
    var = pd.DataFrame({"id": [f"G{i}" for i in range(N_GENES)]}, index=list("abcdefabcdef"))
    made = anndata.AnnData(X, obs=obs, var=var)
    if raw:
        made.raw = made
    made.layers["squared"] = X.multiply(X).tocsr() if scipy.sparse.issparse(X) else X**2
    made.obsm["places"] = rng.random((N_CELLS, 3)).astype(np.float32)
    path = folder / name
    made.write_h5ad(path)
    return path


values = np.random.default_rng(1).integers(0, 4, (N_CELLS, N_GENES)).astype(np.float32)
PATHS = [written("sparse.h5ad", scipy.sparse.csr_matrix(values)), written("dense.h5ad", values)]
OPTIONS = {
    "obs_columns": ["cell_type", "batch", "n", "maybe"], "var_columns": ["id"],
    "layers": ["squared"], "obsm": ["places"],
}


def read(data, **options):
    """All rows of a data set: X, layer, obsm and the position of each cell."""
    dataset = somafeed.Dataset.from_anndata(data, **{**OPTIONS, **options})
    rows = []
    for batch in somafeed.Loader(dataset, batch_size=7, shuffle=False).epoch(0):
        beside = [batch.dense(), batch.joinids]
        if not options.get("raw"):
            beside += [batch.layer("squared").dense(), batch.obsm("places")]
        rows.append(beside)
    columns = [np.concatenate(column) for column in zip(*rows)] if rows else None
    return dataset, columns


def dense(matrix):
    return matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)


def check(data, expected, places=None):
    """The data set of `data` has what is expected; cells come by ascending position, which is `n`."""
    dataset, columns = read(data)
    assert dataset.shape == data.shape == expected.shape, (dataset.shape, data.shape)
    numbers = expected.obs["n"].to_numpy()
    places = numbers if places is None else np.asarray(places)
    order = np.argsort(places)
    obs = dataset.obs()
    assert obs.column("n").tolist() == numbers[order].tolist()
    if columns is None:
        assert data.n_obs == 0
        return
    X, joinids, squared, near = columns
    assert joinids.tolist() == places[order].tolist()
    np.testing.assert_array_equal(X, dense(expected.X)[order])
    np.testing.assert_array_equal(squared, dense(expected.layers["squared"])[order])
    np.testing.assert_array_equal(near, expected.obsm["places"][order])
    import pyarrow

    ids = pyarrow.table(dataset.var())["id"].to_pylist()
    assert ids == expected.var["id"].tolist()


def refused(what, match, make):
    """An error whose message says what to do."""
    try:
        made = make()
    except (ValueError, TypeError) as error:
        assert match in str(error), (what, str(error))
        return
    raise AssertionError(f"{what} was not refused: {made}")


def opened(mode="r"):
    return anndata.read_h5ad(path, backed=mode)


order_of_cells, order_of_genes = (np.random.default_rng(2).permutation(n) for n in (N_CELLS, N_GENES))
VIEWS = {
    "slice": lambda a: a[5:30:3],
    "backwards": lambda a: a[::-1],
    "mask": lambda a: a[a.obs["cell_type"] == "B"],
    "list": lambda a: a[[9, 3, 7]],
    "negative": lambda a: a[[-1, 0]],
    "one": lambda a: a[3],
    "nothing": lambda a: a[a.obs["n"] < 0],
    "all": lambda a: a[:],
    "all by a list": lambda a: a[list(range(N_CELLS))],
    "genes": lambda a: a[:, 2:9],
    "genes by a list": lambda a: a[:, [7, 2, 11]],
    "genes by a mask": lambda a: a[:, a.var["id"].isin(["G1", "G10"])],
    "cells and genes": lambda a: a[a.obs["n"] % 2 == 0, [5, 1]],
    "random": lambda a: a[order_of_cells[:17], order_of_genes[:5]],
}
for path in PATHS:
    whole = anndata.read_h5ad(path)
    for name, view in VIEWS.items():
        a = opened()
        seen = view(a)
        assert seen.is_view and seen.isbacked
        try:
            check(seen, view(whole))
        except Exception as error:
            raise AssertionError(f"{path.name}, {name}: {error}") from error
    check(opened(), whole)
    # Options beside a view.
    a = opened()
    view = a[a.obs["n"] >= 20]
    dataset, _ = read(view, obs_filter="cell_type == 'A'")
    assert dataset.shape[0] == int((view.obs["cell_type"] == "A").sum())
    assert read(view, gene_column="id", gene_names=["G3", "G0"])[0].shape == (20, 2)
    refused("joinids", "obs_joinids= cannot be combined", lambda: read(view, obs_joinids=[25]))
    genes = a[:, [3, 1]]
    refused("names", "gene_names= cannot be combined",
            lambda: read(genes, gene_column="id", gene_names=["G3"]))
    refused("twice", "joinid 4 is selected twice", lambda: read(a[[4, 4]]))
    refused("genes twice", "twice", lambda: read(a[:, [4, 4]]))
    # raw has all genes, also of a view of some.
    for data, places in [(a, range(N_CELLS)), (a[[9, 3, 4], [1, 2]], [3, 4, 9])]:
        dataset, (X, joinids) = read(data, raw=True, layers=[], obsm=[])
        np.testing.assert_array_equal(X, values[list(places)])
        assert joinids.tolist() == list(places)

    # Changes in memory.
    def changed(change, mode="r"):
        a = opened(mode)
        change(a)
        return a

    def replaced(a):
        a.obs = a.obs.sort_values("total")

    def reordered(a):
        a.obs["cell_type"] = a.obs["cell_type"].cat.reorder_categories(list("CBA"))

    CHANGES = {
        "a value": lambda a: a.obs.__setitem__("n", a.obs["n"] + 1),
        "one value": lambda a: a.obs.iloc.__setitem__((3, a.obs.columns.get_loc("n")), 7),
        "a null": lambda a: a.obs.iloc.__setitem__((1, a.obs.columns.get_loc("maybe")), pd.NA),
        "text": lambda a: a.obs.__setitem__("batch", "b0"),
        "categories": lambda a: a.rename_categories("cell_type", ["X", "Y", "Z"]),
        "order of categories": reordered,
        "another obs": replaced,
        "a column that is gone": lambda a: a.obs.__delitem__("n"),
        "var": lambda a: a.var.__setitem__("id", a.var["id"].str.lower()),
        "a layer": lambda a: a.layers.__setitem__("squared", a.layers["squared"] * 2),
        "a layer that is gone": lambda a: a.layers.__delitem__("squared"),
        "obsm": lambda a: a.obsm.__setitem__("places", a.obsm["places"] + 1),
        "obsm in place": lambda a: a.obsm["places"].__setitem__((0, 0), 9),
    }
    for name, change in CHANGES.items():
        refused(name, "was changed in memory", lambda: read(changed(change)))
    refused("a view", "was changed in memory", lambda: read(changed(CHANGES["a value"])[:5]))
    refused("a filter", "was changed in memory",
            lambda: read(changed(CHANGES["text"]), obs_columns=["n"], obs_filter="batch == 'b0'"))
    refused("totals", "was changed in memory",
            lambda: read(changed(lambda a: a.obs.__setitem__("total", 1.0)), totals="total"))
    added = changed(lambda a: a.obs.__setitem__("new", 1))
    refused("a new column", "'new' of obs was changed", lambda: read(added, obs_columns=["new"]))
    added = changed(lambda a: a.layers.__setitem__("new", a.layers["squared"]))
    refused("a new layer", "layers['new'] was changed", lambda: read(added, layer="new"))
    # What is not needed may be changed, and so may what has the same values in another form.
    fine = {
        "another column": lambda a: a.obs.__setitem__("new", 1),
        "names": lambda a: (a.obs_names_make_unique(), a.var_names_make_unique()),
        "categories of texts": lambda a: a.strings_to_categoricals(),
        "type": lambda a: a.obs.__setitem__("n", a.obs["n"].astype("float64")),
        "uns": lambda a: a.uns.__setitem__("x", 1),
    }
    for change in fine.values():
        check(changed(change), whole)
    names = {"obs_columns": ["obs_id", "n"]}
    refused("names that are needed", "was changed in memory",
            lambda: read(changed(lambda a: a.obs_names_make_unique()), **names))
    assert read(opened(), **names)[0].shape == (N_CELLS, N_GENES)

    # Files and memory.
    closed = opened()
    closed.file.close()
    check(closed, whole)
    refused("memory", "is in memory", lambda: read(opened().to_memory()))
    refused("a copy", "is in memory", lambda: read(opened()[:3].to_memory()))
    refused("raw", "raw=True", lambda: read(opened().raw))
    refused("another object", "a path, or an AnnData", lambda: read(5))
    copied = opened()[[8, 2]].copy(folder / f"copy-{path.name}")
    check(copied, whole[[8, 2]], [0, 1])

# X of a file that is open for writing.
path = written("writable.h5ad", values, raw=False)
a = opened("r+")
a.X[3, :] = 77
check(a, a.to_memory())
assert (read(a)[1][0][3] == 77).all()
a.obs["n"] = a.obs["n"] + 100
refused("before it is written", "was changed in memory", lambda: read(a))
a.write()
a.file.close()
assert read(anndata.read_h5ad(path, backed="r"))[0].obs().column("n").tolist()[0] == 100

# Comparing takes the memory of a piece, not of the layer, whose rows are of very different lengths.
somafeed.backed._PIECE_BYTES = 1 << 20
n_cells, n_genes = 20_000, 100
lengths = np.minimum(n_genes, np.random.default_rng(3).geometric(0.05, n_cells))
indptr = np.concatenate([[0], np.cumsum(lengths)])
columns = np.concatenate([np.arange(n) for n in lengths])
sparse = scipy.sparse.csr_matrix((np.ones(len(columns)), columns, indptr), (n_cells, n_genes))
large = anndata.AnnData(sparse, layers={"sparse": sparse, "dense": np.ones((n_cells, n_genes))})
large.write_h5ad(folder / "large.h5ad")
a = anndata.read_h5ad(folder / "large.h5ad", backed="r")
view = a[::-2, 20:]
for data in [a, view]:
    for layer in ["sparse", "dense"]:
        tracemalloc.start()
        somafeed.Dataset.from_anndata(data, layer=layer)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20, (layer, peak)
        whole = a.layers[layer]
        value = whole.data if layer == "sparse" else whole.reshape(-1)
        value[-1] += 1
        refused("the last value", f"layers['{layer}'] was", lambda: somafeed.Dataset.from_anndata(a, layer=layer))
        value[-1] -= 1
print("as anndata has them")
