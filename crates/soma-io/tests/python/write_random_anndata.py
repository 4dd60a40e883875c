"""Writes random AnnData as h5ad and as Zarr, some changed by hand, and prints what anndata reads of each.

Usage: write_random_anndata.py folder seed n
"""

import json
import math
import random
import shutil
import sys
import warnings
import zipfile
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr

warnings.simplefilter("ignore")
anndata.settings.allow_write_nullable_strings = True

DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?"]
NESTED = ["layers/nested/x", "layers/nested/more/x", "obsm/nested/x"]
NAMES = ["counts", ".hidden", "a b", "zählt", "..x", "raw"]


def column(rng, n):
    """A column of a random kind."""
    kind = rng.choice(["number", "text", "categorical", "nullable", "string"])
    if kind == "number":
        return np.array([rng.randrange(100) for _ in range(n)]).astype(rng.choice(DTYPES))
    if kind == "text":
        return np.array([rng.choice(["", "T cell", "ä"]) for _ in range(n)], dtype=object)
    if kind == "categorical":
        values = rng.choice([["a", "", "ä"], [3, 1, 2], [0.5, -0.0, 7.0], [True, False], ["x"]])
        codes = [rng.randrange(-1, len(values)) for _ in range(n)]
        return pd.Categorical.from_codes(codes, values, ordered=rng.random() < 0.3)
    if kind == "nullable":
        values = [rng.choice([None, 0, 1]) for _ in range(n)]
        return pd.array(values, dtype=rng.choice(["Int8", "Int64", "UInt16", "boolean"]))
    return pd.array([rng.choice([None, "", "s"]) for _ in range(n)], dtype="string")


def index(rng, n, prefix):
    names = [f"{prefix}{i}" for i in range(n)]
    name = rng.choice([None, None, "index", f"{prefix}_name"])
    return rng.choice([pd.Index, pd.CategoricalIndex])(names, name=name)


def frame(rng, n, prefix):
    names = rng.sample(["kind", ".kind", "score", "a b", "größe", "codes"], rng.randrange(5))
    return pd.DataFrame({name: column(rng, n) for name in names}, index=index(rng, n, prefix))


def matrix(rng, n, m):
    dense = np.array([[rng.choice([0, 0, 1, 3]) for _ in range(m)] for _ in range(n)])
    dense = dense.reshape(n, m).astype(rng.choice(["f4", "f8", "i4", "u2"]))
    made = rng.choice([sp.csr_matrix, np.asarray])(dense)
    # Zarr leaves out a chunk of zeros, which is refused in the arrays of a CSR matrix.
    is_left_out = sp.issparse(made) and not made.indices.any()
    return made.toarray() if is_left_out else made


def uns(rng, depth=0):
    kinds = ["text", "number", "texts", "array", "dict"]
    made = {}
    for name in rng.sample(["one", ".two", "three four"], rng.randrange(3)):
        kind = rng.choice(kinds[: 4 if depth > 2 else 5])
        made[name] = {
            "text": lambda: "text",
            "number": lambda: rng.choice([3, 0.5, True]),
            "texts": lambda: np.array(["red", "blue"], dtype=object),
            "array": lambda: np.arange(3.0),
            "dict": lambda: uns(rng, depth + 1),
        }[kind]()
    return made


def made(rng):
    n, m = rng.randrange(1, 9), rng.randrange(1, 6)
    data = anndata.AnnData(obs=frame(rng, n, "cell"), var=frame(rng, m, "gene"), X=matrix(rng, n, m))
    for name in rng.sample(NAMES, rng.randrange(3)):
        data.layers[name] = matrix(rng, n, m)
    for name in rng.sample(["X_pca", ".umap"], rng.randrange(3)):
        data.obsm[name] = rng.random() * np.ones((n, 2), dtype="f4")
    if rng.random() < 0.3:
        data.obsp["distances"] = sp.csr_matrix(np.eye(n))
        data.varm["PCs"] = np.ones((m, 2))
    data.uns = uns(rng)
    return data


def categories(root):
    """The lists of categories in obs that have at least two."""
    return [group["categories"] for group in root["obs"].values()
            if dict(group.attrs).get("encoding-type") == "categorical" and group["categories"].shape[0] > 1]


def nest(root):
    """Copies X to elements whose names have slashes."""
    for name in NESTED:
        parent = root
        *groups, last = name.split("/")
        for group in groups:
            parent = parent.require_group(group)
        copy(root["X"], parent, last)


def copy(source, parent, name):
    """Copies a group or an array of h5py or zarr."""
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        to = parent.create_array(name, data=source[...]) if hasattr(parent, "create_array") else parent.create_dataset(name, data=source[...])
    else:
        to = parent.create_group(name)
        for member in source:
            copy(source[member], to, member)
    to.attrs.update(dict(source.attrs))


def fix_lengths(rng, root):
    """Stores texts of obs and var with a fixed length, as other programs do."""
    for frame in (root["obs"], root["var"]):
        for name in list(frame):
            stored = frame[name]
            if dict(stored.attrs).get("encoding-type") != "string-array" or rng.random() < 0.3:
                continue
            attributes = dict(stored.attrs)
            if isinstance(root, h5py.Group):
                values = np.char.encode(stored.asstr()[...].astype(str))
                dtype = h5py.string_dtype("utf-8", max(1, values.dtype.itemsize))
            else:
                values = np.array(list(map(str, stored[...])))
                values = rng.choice([values, np.char.encode(values)])
            del frame[name]
            if isinstance(root, h5py.Group):
                frame.create_dataset(name, data=values.astype(dtype), dtype=dtype)
            else:
                frame.create_array(name, data=values)
            frame[name].attrs.update(attributes)


def change(rng, path):
    """Changes a store in a way that anndata does not write. Returns what was changed."""
    kind = rng.choice(["", "", "doubled", "link", "circle", "missing", "slash", "fixed", "broken"])
    is_h5 = path.suffix == ".h5ad"
    if kind == "circle" and not is_h5:
        kind = ""
    if is_h5:
        with h5py.File(path, "r+") as root:
            if kind == "doubled":
                for found in categories(root):
                    found[1] = found[0]
            elif kind == "link":
                root["layers/linked"] = h5py.SoftLink("/X")
                root["layers/same"] = root["X"]
            elif kind == "circle":
                for number in range(rng.choice([1, 9])):
                    root["uns"][f"loop{number}"] = root["uns"]
            elif kind == "missing":
                del root["var"][root["var"].attrs["_index"]]
            elif kind == "slash":
                nest(root)
            elif kind == "fixed":
                fix_lengths(rng, root)
            elif kind == "broken":
                root[rng.choice(["layers", "obsm", "uns"])]["broken"] = h5py.SoftLink("/absent")
        return kind
    forget_consolidated(path)
    root = zarr.open_group(path, mode="r+", use_consolidated=False)
    if kind == "doubled":
        for found in categories(dict(obs=dict(root["obs"].members()))):
            found[1] = found[0]
    elif kind == "link":
        (path / "layers" / "linked").symlink_to("../X")
    elif kind == "missing":
        del root["var"][root["var"].attrs["_index"]]
    elif kind == "slash":
        nest(root)
    elif kind == "fixed":
        fix_lengths(rng, root)
    elif kind == "broken":
        (path / rng.choice(["layers", "obsm", "uns"]) / "broken").symlink_to("absent")
    if rng.random() < 0.5:
        zarr.consolidate_metadata(str(path))
    return kind


def forget_consolidated(path):
    (path / ".zmetadata").unlink(missing_ok=True)
    root = path / "zarr.json"
    if root.exists():
        metadata = json.loads(root.read_text())
        metadata.pop("consolidated_metadata", None)
        root.write_text(json.dumps(metadata))


def zipped(rng, path, changed):
    """The same store in a Zip archive: as Zarr adds files to it, or packed by another program."""
    archive = path.with_suffix(".zarr.zip")
    # What anndata cannot read it cannot write anew.
    kind = rng.choice(["stored", "deflated", "mixed"] + ["zarr"] * (changed == ""))
    if kind == "zarr":
        data = anndata.read_zarr(path)
        with zarr.storage.ZipStore(archive, mode="w") as store:
            data.write_zarr(store, convert_strings_to_categoricals=False)
    else:
        kinds = {"stored": [zipfile.ZIP_STORED], "deflated": [zipfile.ZIP_DEFLATED]}
        with zipfile.ZipFile(archive, "w") as to:
            for file in sorted(path.rglob("*")):
                entry = zipfile.ZipInfo.from_file(file, file.relative_to(path))
                entry.compress_type = rng.choice(kinds.get(kind, [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
                if file.is_file():
                    with to.open(entry, "w", force_zip64=rng.random() < 0.2) as member:
                        member.write(file.read_bytes())
                elif rng.random() < 0.5:
                    to.mkdir(entry.filename)
    shutil.rmtree(path)
    return archive


def read_archive(path):
    """What Zarr's own store of archives gives."""
    with zarr.storage.ZipStore(path, mode="r") as store:
        return anndata.read_zarr(store)


def plain(value):
    """As JSON: missing values are null."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def table(of):
    columns = {name: [plain(value) for value in of[name].astype(object)] for name in of.columns}
    return {"index": [str(plain(value)) for value in of.index], "columns": columns}


def rows(of):
    return np.asarray(of.todense() if sp.issparse(of) else of).astype("f8").tolist()


def read(path):
    try:
        readers = {".h5ad": anndata.read_h5ad, ".zip": read_archive}
        data = readers.get(path.suffix, anndata.read_zarr)(path)
    except (Exception, RecursionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "obs": table(data.obs),
        "var": table(data.var),
        "layers": {"X": rows(data.X)} | {name: rows(data.layers[name]) for name in data.layers},
        "obsm": {name: rows(data.obsm[name]) for name in data.obsm},
        "uns": sorted(data.uns),
        "unread": sorted([f"obsp/{name}" for name in data.obsp] + [f"varm/{name}" for name in data.varm]),
    }


def with_nested(before):
    """What a store has once X was copied by `nest`."""
    if "error" not in before:
        for name in NESTED:
            kind, of = name.split("/", 1)
            before[kind][of] = before["layers"]["X"]
    return before


def main():
    folder, seed, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    found = []
    for number in range(seed, seed + n):
        rng = random.Random(number)
        data = made(rng)
        form = rng.choice(["h5ad", "2", "3"])
        path = folder / f"{number}.{'h5ad' if form == 'h5ad' else 'zarr'}"
        if form == "h5ad":
            data.write_h5ad(path, convert_strings_to_categoricals=False)
        else:
            anndata.settings.zarr_write_format = int(form)
            data.write_zarr(path, convert_strings_to_categoricals=False)
        before = read(path)
        changed = change(rng, path)
        if form != "h5ad" and changed not in ["link", "broken"] and rng.random() < 0.4:
            path = zipped(rng, path, changed)
        # anndata cannot open a layer whose name has a slash, although it writes one to HDF5.
        after = with_nested(before) if changed == "slash" else read(path)
        found.append({"name": path.name, "changed": changed, "read": after})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
