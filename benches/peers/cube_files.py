"""The files of a data set of image cubes, as Python's readers decode them.

A data set is a folder with `images.json`, which lists shape and names, and

    dat/NAME_SpecCube.dat        Tivita: 3 big-endian i32 (width, height, channels), then big-endian f32
    raw32/NAME.blosc             a pickled (shape, dtype), then one blosc buffer
    raw16/NAME.blosc             the same with f16
    segmentations/NAME.blosc     a pickled {key: (shape, dtype, bytes)}, then a blosc buffer for each key

The blosc files are those of imsy-htc (`htc/utils/blosc_compression.py`). Pickle runs what a file
says: read only files that you trust.
"""

import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import blosc
import numpy as np

FEATURES = {"dat": np.float32, "raw32": np.float32, "raw16": np.float16}
"""Formats with the type of the values that they deliver."""

LABELS = {"labels": np.int64, "valid_pixels": np.bool_}
"""The arrays beside the cube with the type that they are delivered in."""


@dataclass
class CubeFiles:
    """The files of one format."""

    folder: Path
    format: str
    shape: tuple[int, int, int]
    """Height, width, channels."""
    names: list[str]

    @staticmethod
    def open(folder: str, form: str) -> "CubeFiles":
        if form not in FEATURES:
            raise ValueError(f"there is no format {form!r}, only {', '.join(FEATURES)}")
        path = Path(folder, "images.json")
        listed = json.loads(path.read_text(encoding="utf-8"))
        names = [image["name"] for image in listed["images"]]
        return CubeFiles(Path(folder), form, tuple(listed["shape"]), names)

    @property
    def keys(self) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shape and type of each array of a sample."""
        labels = {key: (self.shape[:2], kind) for key, kind in LABELS.items()}
        return {"features": (self.shape, FEATURES[self.format])} | labels

    def cube_path(self, sample: int) -> Path:
        name = self.names[sample]
        if self.format == "dat":
            return self.folder / "dat" / f"{name}_SpecCube.dat"
        return self.folder / self.format / f"{name}.blosc"

    def labels_path(self, sample: int) -> Path:
        return self.folder / "segmentations" / f"{self.names[sample]}.blosc"

    def read(self, sample: int) -> dict[str, np.ndarray]:
        """Reads a sample into new memory."""
        into = {key: np.empty(shape, kind) for key, (shape, kind) in self.keys.items()}
        self.read_into(sample, into)
        return into

    def read_into(self, sample: int, into: dict[str, np.ndarray]) -> None:
        """Reads a sample; blosc decompresses the cube straight into `into["features"]`."""
        path = self.cube_path(sample)
        try:
            if self.format == "dat":
                read_tivita(path, into["features"])
            else:
                read_array(path, into["features"])
            path = self.labels_path(sample)
            for key, values in read_arrays(path, list(LABELS)).items():
                expect(values.shape, into[key].shape, f"the shape of {key}")
                into[key][...] = values
        except (blosc.blosc_extension.error, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
            raise ValueError(f"{path}: {error}") from error

    def file_bytes(self, samples: list[int]) -> int:
        """Bytes of the files of samples."""
        return sum(path.stat().st_size for path in self.paths(samples))

    def paths(self, samples: list[int]) -> list[Path]:
        return [path(sample) for sample in sorted(set(samples)) for path in (self.cube_path, self.labels_path)]

    def evict(self, samples: list[int]) -> None:
        """Removes the files of samples from the page cache. Written pages are synced first, or they would stay."""
        for path in self.paths(samples):
            with path.open("rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_tivita(path: Path, into: np.ndarray) -> None:
    """Reads a cube of Tivita, whose rows are stored bottom up, as height x width x channels."""
    with path.open("rb") as file:
        width, height, channels = np.fromfile(file, dtype=">i4", count=3)
        expect((height, width, channels), into.shape, "the shape")
        values = np.fromfile(file, dtype=">f4")
    stored = values.reshape(width, height, channels)
    into[...] = np.swapaxes(np.flip(stored, axis=1), 0, 1)


def read_array(path: Path, into: np.ndarray) -> None:
    """Decompresses a file of one array into its place."""
    with path.open("rb") as file:
        shape, dtype = pickle.load(file)
        expect(shape, into.shape, "the shape")
        expect(np.dtype(dtype), into.dtype, "the type")
        decompress(file.read(), into)


def read_arrays(path: Path, keys: list[str]) -> dict[str, np.ndarray]:
    """Decompresses some arrays of a file; skips the others."""
    with path.open("rb") as file:
        return {key: values for key, values in stored_arrays(file, keys) if key in keys}


def stored_arrays(file: BinaryIO, keys: list[str]) -> Any:
    header = pickle.load(file)
    if absent := [key for key in keys if key not in header]:
        raise ValueError(f"it has no {' and no '.join(absent)}")
    for key, (shape, dtype, n_bytes) in header.items():
        if key not in keys:
            file.seek(n_bytes, os.SEEK_CUR)
            continue
        values = np.empty(shape, dtype)
        decompress(file.read(n_bytes), values)
        yield key, values


def decompress(compressed: bytes, into: np.ndarray) -> None:
    """Decompresses a blosc buffer into an array. Without the check, a wrong file would overwrite memory."""
    n_bytes, n_compressed, _ = blosc.get_cbuffer_sizes(compressed)
    expect(n_compressed, len(compressed), "the number of compressed bytes")
    expect(n_bytes, into.nbytes, "the number of bytes")
    blosc.decompress_ptr(compressed, into.__array_interface__["data"][0])


def expect(found: Any, expected: Any, what: str) -> None:
    if found != expected:
        raise ValueError(f"{what} is {found}, expected {expected}")
