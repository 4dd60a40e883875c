"""AnnData as plain Zarr 3, as anndata would write it: zstd, CSR, chunks of 2^17 numbers.

Neither anndata nor zarr need be installed. Texts have the data type `string` and the codec
`vlen-utf8`.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK = 1 << 17
"""Numbers of a chunk."""
ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}
TEXTS = {"encoding-type": "string-array", "encoding-version": "0.2.0"}


def write(uri: str, folder: str, n_cells: str) -> None:
    """Writes the first cells of an experiment."""
    import numpy as np
    import scipy.sparse
    from somafeed import ExperimentDataset

    cells = ExperimentDataset(
        uri=uri, obs_joinids=np.arange(int(n_cells)), obs_column_names=["cell_type"],
        obs_form="codes", shuffle=False, return_sparse_X=True, batch_size=8192,
    )
    parts, codes = zip(*((x, obs["cell_type"]) for x, obs in cells))
    write_anndata(folder, scipy.sparse.vstack(parts, format="csr"), code=np.concatenate(codes))


def write_anndata(folder, x, layers=None, obsm=None, **obs) -> None:
    """Writes an AnnData: X and layers in CSR, arrays of obsm and columns of obs by their names."""
    import numpy as np

    root = Path(folder)
    of_names = {"encoding-type": "dict", "encoding-version": "0.1.0"}
    frame = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
    write_group(root, {"encoding-type": "anndata", "encoding-version": "0.1.0"})
    write_csr(root / "X", x)
    write_group(root / "layers", of_names)
    for name, layer in (layers or {}).items():
        write_csr(root / "layers" / name, layer)
    write_group(root / "obsm", of_names)
    for name, rows in (obsm or {}).items():
        write_numbers(root / "obsm" / name, rows)
    write_group(root / "obs", {**frame, "column-order": list(obs)})
    write_texts(root / "obs/_index", [f"cell{idx}" for idx in range(x.shape[0])])
    for name, values in obs.items():
        write_numbers(root / "obs" / name, values.astype(np.int64))
    write_group(root / "var", {**frame, "column-order": []})
    write_texts(root / "var/_index", [f"gene{idx}" for idx in range(x.shape[1])])


def write_csr(folder: Path, x) -> None:
    import numpy as np

    write_group(folder, {
        "encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(x.shape),
    })
    write_numbers(folder / "data", x.data.astype(np.float32))
    write_numbers(folder / "indices", x.indices.astype(np.int32))
    write_numbers(folder / "indptr", x.indptr.astype(np.int64))


def write_group(folder: Path, attributes: dict) -> None:
    folder.mkdir(parents=True)
    metadata = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    (folder / "zarr.json").write_text(json.dumps(metadata))


def write_numbers(folder: Path, values) -> None:
    """Writes an array, compressed by zstd: of rank 1 in chunks, of another rank as one chunk."""
    import numpy as np
    import pyarrow

    is_list = values.ndim == 1
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": list(values.shape), "fill_value": 0,
        "data_type": str(values.dtype), "attributes": ARRAY,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [CHUNK] if is_list else list(values.shape)},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
        ],
    }
    first = folder / "c" / "/".join("0" * values.ndim)
    first.parent.mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata))

    def zstd(chunk: bytes) -> bytes:
        return pyarrow.Codec("zstd", compression_level=1).compress(chunk, asbytes=True)

    if not is_list:
        first.write_bytes(zstd(values.tobytes()))
        return
    padded = np.zeros(-(-len(values) // CHUNK) * CHUNK, values.dtype)
    padded[: len(values)] = values

    def write_chunk(idx: int) -> None:
        chunk = padded[idx * CHUNK : (idx + 1) * CHUNK].tobytes()
        (folder / "c" / str(idx)).write_bytes(zstd(chunk))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write_chunk, range(len(padded) // CHUNK)))


def read_numbers(folder: Path, dtype: str, begin: int, end: int):
    """Reads a range of an array of rank 1 that `write_numbers` wrote: its chunks, decoded whole."""
    import numpy as np
    import pyarrow

    first, parts = begin // CHUNK, []
    n_bytes = CHUNK * np.dtype(dtype).itemsize
    for idx in range(first, max(first, -(-end // CHUNK))):
        encoded = (folder / "c" / str(idx)).read_bytes()
        decoded = pyarrow.decompress(encoded, n_bytes, codec="zstd", asbytes=True)
        parts.append(np.frombuffer(decoded, dtype))
    values = np.concatenate(parts) if parts else np.empty(0, dtype)
    return values[begin - first * CHUNK : end - first * CHUNK]


def write_texts(folder: Path, texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    chunk = b"".join([
        len(texts).to_bytes(4, "little"),
        *(len(text).to_bytes(4, "little") + text for text in encoded),
    ])
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": [len(texts)], "data_type": "string",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(texts)]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "", "codecs": [{"name": "vlen-utf8"}], "attributes": TEXTS,
    }
    (folder / "c").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata))
    (folder / "c/0").write_bytes(chunk)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
