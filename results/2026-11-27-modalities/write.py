"""Writes the files that are compared: write.py FOLDER [--cells N] [--train-cells N] [NAME ...]. 50,000 cells take about 3 GB and five
minutes; N makes smaller ones to try. Names: h5mu, zarr, 10x, homeobox (its environment), totalvi, elbo, multivi, peakvi, peakvi-annbatch,
peakvi-soma. Homeobox is written by its own ingestion from the .h5mu, the rest by mudata, anndata, annbatch, tiledbsoma.io and h5py."""
import argparse
import shutil
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from cells import ATAC, PROT, RNA, SEED, WIDTHS, names, numbers, proteins, sparse_counts

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path), parser.add_argument("names", nargs="*")
parser.add_argument("--cells", type=int, default=50_000), parser.add_argument("--train-cells", type=int, default=100_000)
args = parser.parse_intermixed_args()
GZIP = {"compression": "gzip"}


def mudata_of(parts, obs, has=None):
    """A MuData of matrices by modality, of all cells or those that `has` says."""
    import anndata
    import mudata
    made = {}
    for name, X in parts.items():
        rows = slice(None) if has is None or name not in has else has[name]
        index = obs.index[rows]
        made[name] = anndata.AnnData(X[rows], obs=pd.DataFrame(index=index), var=pd.DataFrame(index=names(name, X.shape[1])))
    mdata = mudata.MuData(made)
    mdata.obs = obs.loc[mdata.obs_names]
    return mdata


def obs_of(n_cells):
    """Cells of two lanes, one after the other, as samples are put together."""
    lanes = np.where(np.arange(n_cells) < n_cells // 2, "a", "b")
    index = [f"cell{cell:07}" for cell in range(n_cells)]
    return pd.DataFrame({"lane": pd.Categorical(lanes), "number": np.arange(n_cells)}, index=index)


def measured():
    """The cells of the loaders: about 1,500 genes, 200 proteins and 5,000 peaks of each."""
    rng = np.random.default_rng(SEED)
    kinds = np.zeros(args.cells, np.int64)
    parts = {
        RNA: sparse_counts(rng, kinds, WIDTHS[RNA], 2_300, 1.8), PROT: proteins(rng, rng.integers(0, 12, args.cells), WIDTHS[PROT]),
        ATAC: sparse_counts(rng, kinds, WIDTHS[ATAC], 5_200, 1.0),
    }
    truth = {name: numbers(X) for name, X in parts.items()}
    np.savez(args.folder / "truth.npz", **truth)
    for name in (RNA, ATAC):
        print(f"{name}: {parts[name].nnz / args.cells:.0f} values a cell", flush=True)
    return parts


def write_h5mu():
    mdata = mudata_of(measured(), obs_of(args.cells))
    mdata.write_h5mu(args.folder / "cells.h5mu", **GZIP)


def read_h5mu():
    import mudata
    return mudata.read_h5mu(args.folder / "cells.h5mu")


def write_zarr():
    """As mudata and anndata write it by default."""
    import mudata
    mdata = read_h5mu()
    # One that was read has its axis as numpy's int64, which mudata 0.4.1 cannot write as JSON.
    anew = mudata.MuData(dict(mdata.mod))
    anew.obs = mdata.obs
    anew.write_zarr(args.folder / "cells.zarr")


def write_10x():
    """Genes and antibodies in one matrix, with the types, chunks and filters of Cell Ranger."""
    import h5py
    from scipy import sparse
    mdata = read_h5mu()
    X = sparse.hstack([mdata[RNA].X, sparse.csr_matrix(mdata[PROT].X)], format="csr")
    options = dict(chunks=(80_000,), compression="gzip", shuffle=True)
    n_genes, n_proteins = WIDTHS[RNA], WIDTHS[PROT]

    def texts(values):
        return np.array(values, "S")

    with h5py.File(args.folder / "cells.h5", "w") as file:
        matrix = file.create_group("matrix")
        matrix.create_dataset("data", data=X.data.astype("i4"), **options)
        matrix.create_dataset("indices", data=X.indices.astype("i8"), **options)
        matrix.create_dataset("indptr", data=X.indptr.astype("i8"), compression="gzip")
        matrix.create_dataset("shape", data=np.array([X.shape[1], X.shape[0]], "i4"))
        matrix.create_dataset("barcodes", data=texts([f"{name}-1" for name in mdata.obs_names]))
        features = matrix.create_group("features")
        ids = names(RNA, n_genes) + names(PROT, n_proteins)
        features.create_dataset("id", data=texts(ids))
        features.create_dataset("name", data=texts(ids))
        features.create_dataset("feature_type", data=texts(["Gene Expression"] * n_genes + ["Antibody Capture"] * n_proteins))
        features.create_dataset("genome", data=texts(["GRCh38"] * n_genes + [""] * n_proteins))
        features.create_dataset("_all_tag_keys", data=texts(["genome"]))


def write_homeobox():
    """Genes and proteins by Homeobox's own `ingest_multimodal`, its defaults; it has no matrix of peaks, only fragments."""
    import anndata
    import homeobox as hox
    import polars as pl
    from homeobox.ingestion import ingest_multimodal

    class Gene(hox.FeatureBaseSchema):
        pass

    class Protein(hox.FeatureBaseSchema):
        pass

    class Cell(hox.HoxBaseSchema):
        number: int
        gene_expression: hox.SparseZarrPointer | None = hox.PointerField.declare(feature_space="gene_expression")
        protein_abundance: hox.DenseZarrPointer | None = hox.PointerField.declare(feature_space="protein_abundance")

    path = args.folder / "homeobox"
    shutil.rmtree(path, ignore_errors=True)
    fields = {"gene_expression": RNA, "protein_abundance": PROT}
    atlas = hox.create_or_open_atlas(
        atlas_path=str(path), obs_schemas={"cells": Cell}, dataset_table_name="datasets", dataset_schema=hox.DatasetSchema,
        registry_schemas={"gene_expression": Gene, "protein_abundance": Protein})
    mdata = read_h5mu()
    obs = pd.DataFrame({"number": mdata.obs["number"].to_numpy()}, index=mdata.obs_names)
    modalities, records, uid = {}, {}, None
    for field, name in fields.items():
        # Homeobox orders features by this text.
        var = pd.DataFrame({"uid": [f"{name}{idx:06}" for idx in range(mdata[name].n_vars)]}, index=mdata[name].var_names)
        atlas.register_features(field, pl.from_pandas(var))
        modalities[field] = anndata.AnnData(mdata[name].X.astype(np.uint32), obs=obs, var=var)
        options = {} if uid is None else {"dataset_uid": uid}
        records[field] = hox.DatasetSchema(zarr_group=f"cells/{name}", feature_space=field, n_rows=mdata.n_obs, **options)
        uid = records[field].dataset_uid
    ingest_multimodal(atlas, modalities, obs_df=obs, zarr_layer="counts", dataset_records=records)
    atlas.optimize()
    atlas.snapshot()


# For models

KINDS = 12


def trained(n_cells, n_genes, n_draws, n_proteins=None, n_peaks=None, peak_draws=0):
    rng = np.random.default_rng(SEED)
    kinds = rng.integers(0, KINDS, n_cells)
    parts = {RNA: sparse_counts(rng, kinds, n_genes, n_draws, 1.0)}
    if n_proteins:
        parts[PROT] = proteins(rng, kinds, n_proteins)
    if n_peaks:
        parts[ATAC] = sparse_counts(rng, kinds, n_peaks, peak_draws, 0.5)
    return parts


def write_totalvi():
    parts = trained(args.train_cells, 2_000, 900, n_proteins=100)
    print(f"totalvi: {parts[RNA].nnz / args.train_cells:.0f} values a cell", flush=True)
    mudata_of(parts, obs_of(args.train_cells)).write_h5mu(args.folder / "totalvi.h5mu", **GZIP)


def write_elbo():
    n_cells = args.train_cells // 10
    mudata_of(trained(n_cells, 2_000, 900, n_proteins=100), obs_of(n_cells)).write_h5mu(args.folder / "elbo.h5mu", **GZIP)


def write_multivi():
    """A third of the cells has no peaks."""
    n_cells = args.train_cells // 20
    parts = trained(n_cells, 2_000, 900, n_peaks=5_000, peak_draws=400)
    has = {ATAC: np.arange(n_cells) % 3 != 2}
    mudata_of(parts, obs_of(n_cells), has).write_h5mu(args.folder / "multivi.h5mu", **GZIP)


def write_peakvi():
    import anndata
    n_cells = args.train_cells // 10
    X = trained(n_cells, 10, 10, n_peaks=20_000, peak_draws=1_200)[ATAC]
    adata = anndata.AnnData(X, obs=obs_of(n_cells), var=pd.DataFrame(index=names(ATAC, X.shape[1])))
    adata.write_h5ad(args.folder / "peakvi.h5ad", **GZIP)


def write_peakvi_annbatch():
    from annbatch import DatasetCollection
    path = args.folder / "peakvi-annbatch.zarr"
    shutil.rmtree(path, ignore_errors=True)
    collection = DatasetCollection(path, mode="a")
    collection.add_adatas([args.folder / "peakvi.h5ad"], shuffle=True, rng=np.random.default_rng(0))


def write_peakvi_soma():
    """By hand, since `tiledbsoma.io` 2.3 fails at the layers of anndata 0.13."""
    import anndata
    import pyarrow as pa
    import tiledbsoma
    uri = str(args.folder / "peakvi-soma")
    shutil.rmtree(uri, ignore_errors=True)
    adata = anndata.read_h5ad(args.folder / "peakvi.h5ad")

    def frame(parent, name, columns):
        rows = pa.table(columns)
        with parent.add_new_dataframe(name, schema=rows.schema, domain=[(0, rows.num_rows - 1)]) as made:
            made.write(rows)

    with tiledbsoma.Experiment.create(uri) as experiment:
        n_cells, n_peaks = adata.shape
        frame(experiment, "obs", {"soma_joinid": np.arange(n_cells), "lane": adata.obs["lane"].astype(str).to_numpy().astype(object)})
        measurement = experiment.add_new_collection("ms").add_new_collection(ATAC, tiledbsoma.Measurement)
        frame(measurement, "var", {"soma_joinid": np.arange(n_peaks), "feature_id": adata.var_names.astype(str).to_numpy().astype(object)})
        layers = measurement.add_new_collection("X", tiledbsoma.Collection)
        with layers.add_new_sparse_ndarray("data", type=pa.float32(), shape=adata.shape) as array:
            coo = adata.X.tocoo()
            array.write(pa.table({"soma_dim_0": coo.row.astype("i8"), "soma_dim_1": coo.col.astype("i8"), "soma_data": coo.data}))


NAMES = {
    "h5mu": write_h5mu, "zarr": write_zarr, "10x": write_10x, "homeobox": write_homeobox, "totalvi": write_totalvi, "elbo": write_elbo,
    "multivi": write_multivi, "peakvi": write_peakvi, "peakvi-annbatch": write_peakvi_annbatch, "peakvi-soma": write_peakvi_soma,
}
if __name__ == "__main__":
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or [name for name in NAMES if name != "homeobox"]:
        start = time.perf_counter()
        NAMES[name]()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
