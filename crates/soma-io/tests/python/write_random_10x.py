"""Writes random feature-barcode matrices as Cell Ranger does, and prints what scanpy would read of each.

Usage: write_random_10x.py folder seed n
"""

import json
import random
import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import scanpy
import scipy.sparse as sp

from write_random_anndata import rows, table

warnings.simplefilter("ignore")

KINDS = ["new", "new", "probes", "old", "old", "genomes", "shape", "features", "index", "molecules"]


def texts(rng, values):
    """As strings of fixed or of variable length."""
    if rng.random() < 0.5:
        return np.array([value.encode() for value in values], dtype="S")
    return np.array(values, dtype=h5py.string_dtype())


def write(rng, group, name, values):
    values = np.asarray(values)
    filters = rng.choice([{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}])
    if filters or rng.random() < 0.5:
        filters["chunks"] = (rng.randrange(1, len(values) + 2),)
        filters["maxshape"] = (None,)
    group.create_dataset(name, data=values, dtype=values.dtype, **filters)


def write_matrix(rng, group, n_genes, n_cells):
    dense = np.array([[rng.choice([0, 0, 1, 3, 70_000]) for _ in range(n_cells)] for _ in range(n_genes)])
    made = sp.csc_matrix(dense.reshape(n_genes, n_cells))
    write(rng, group, "data", made.data.astype(rng.choice(["i4", "i4", "i8", "f4"])))
    write(rng, group, "indices", made.indices.astype("i8"))
    write(rng, group, "indptr", made.indptr.astype("i8"))
    group["shape"] = np.array([n_genes, n_cells], dtype="i4")
    write(rng, group, "barcodes", texts(rng, [f"ACGT{i}-1" for i in range(n_cells)]))


def write_genome(rng, group):
    n_genes, n_cells = rng.randrange(1, 9), rng.randrange(1, 9)
    write_matrix(rng, group, n_genes, n_cells)
    # Names of genes may be there twice.
    write(rng, group, "gene_names", texts(rng, [rng.choice(["A", "B", "C.1"]) for _ in range(n_genes)]))
    write(rng, group, "genes", texts(rng, [f"ENSG{i}" for i in range(n_genes)]))


def write_features(rng, root, kind):
    n_genes, n_cells = rng.randrange(1, 9), rng.randrange(1, 9)
    group = root.create_group("matrix")
    write_matrix(rng, group, n_genes, n_cells)
    features = group.create_group("features")
    features["_all_tag_keys"] = np.array([b"genome", b"pattern"])
    columns = {
        "id": [f"ENSG{i}" for i in range(n_genes)],
        "name": [rng.choice(["A", "B", "C.1"]) for _ in range(n_genes)],
        "feature_type": [rng.choice(["Gene Expression", "Antibody Capture"]) for _ in range(n_genes)],
        "genome": [rng.choice(["GRCh38", ""]) for _ in range(n_genes)],
    }
    for name in rng.sample(["pattern", "read", "sequence"], rng.randrange(4)):
        columns[name] = [rng.choice(["", "R2", "^(BC)"]) for _ in range(n_genes)]
    if kind == "probes":
        columns["gene_id"] = [f"ENSG{i // 2}" for i in range(n_genes)]
        write(rng, features, "filtered_probes", np.array([rng.random() < 0.5 for _ in range(n_genes)]))
        write(rng, group, "filtered_barcodes", np.array([rng.random() < 0.5 for _ in range(n_cells)]))
    if kind == "index":
        del columns["name"]
    if kind == "shape":
        group["shape"][rng.randrange(2)] += 1
    for name, values in columns.items():
        write(rng, features, name, texts(rng, values))
    if kind == "features":
        del group["features"]


def make(rng, path, kind):
    with h5py.File(path, "w", libver=rng.choice(["earliest", "latest"])) as root:
        if kind == "old":
            write_genome(rng, root.create_group("mm10"))
        elif kind == "genomes":
            for name in ["mm10", "hg19"]:
                write_genome(rng, root.create_group(name))
        elif kind == "molecules":
            root["barcode_idx"] = np.arange(3)
            root["barcodes"] = np.array([b"ACGT"])
            root.create_group("features")["id"] = np.array([b"ENSG1"])
        else:
            write_features(rng, root, kind)


def read(path, genome=None):
    try:
        data = scanpy.read_10x_h5(path, genome=genome, gex_only=False)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    layers = {"X": rows(data.X)}
    return {"obs": table(data.obs), "var": by_position(data.var), "layers": layers, "obsm": {}, "uns": [], "unread": []}


def by_position(of):
    """A table in whose index a name may come twice."""
    return table(of.reset_index(drop=True)) | {"index": list(map(str, of.index))}


def main():
    folder, seed, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    found = []
    for number in range(seed, seed + n):
        rng = random.Random(number)
        kind = rng.choice(KINDS)
        path = folder / f"{number}.h5"
        make(rng, path, kind)
        found.append({"name": path.name, "changed": kind, "read": read(path)})
        if kind == "genomes":
            found.append({"name": path.name, "changed": kind, "genome": "hg19", "read": read(path, "hg19")})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
