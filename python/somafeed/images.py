"""`ImageDataset`: image cubes with their masks in shuffled batches, for PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, Unpack

import numpy as np

from somafeed import _somafeed as native
from somafeed.augmentation import Affine, Augmentation
from somafeed.batches import array_maker, required
from somafeed.engine import EngineSettings
from somafeed.labels import Column, LabelColumn, Labels, Table
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.settings import names_of, positive, shown
from somafeed.sources import parameters
from somafeed.stores import STORE, OfStore, named_stores

ImageForm: TypeAlias = Literal["numpy", "torch"]
"""The form of each array in a batch: `numpy.ndarray`, or `torch.Tensor` over the same memory."""

StoredForm: TypeAlias = Literal["dat", "raw32", "raw16", "zarr"]
"""A stored form of the cubes: the camera's files, blosc files of float32 or float16, Zarr arrays."""

Folders: TypeAlias = (
    str
    | os.PathLike[str]
    | Sequence[str | os.PathLike[str]]
    | Mapping[str, str | os.PathLike[str]]
)
"""A folder's path or address, a list of several, or several by their names."""

Role: TypeAlias = Literal["image", "mask", "plain"]
"""How augmentation treats an array: it interpolates images, takes the nearest pixel of masks, and
leaves plain ones."""

ImageBatch: TypeAlias = dict[str, Any]
"""An array or tensor of each key by its name, with the samples in the first dimension, and
`image_name`: a list of the samples' names."""

FORMS: tuple[ImageForm, ...] = ("numpy", "torch")
KEYS = ("features", "labels", "valid_pixels")
IMAGE_NAME, SAMPLE, SKIPPED = "image_name", "sample", "skipped"


@dataclass(frozen=True)
class Key:
    """An array of each image: where it is stored, and how augmentation treats it.

    >>> Key.cube(), Key.mask("labels")
    (Key(folder=None, array='', role='image'), Key(folder='segmentations', array='labels', role='mask'))
    """

    folder: str | None
    """The folder of its files, `NAME.blosc` for each image; None for the cube itself. In the form
    Zarr, where it does not count, a key is the array of its name."""
    array: str = ""
    """The array's name in each file; empty for files of one array."""
    role: Role = "plain"

    @classmethod
    def cube(cls) -> Key:
        """The cube."""
        return cls(None, role="image")

    @classmethod
    def mask(cls, array: str) -> Key:
        """A mask of the images' segmentations."""
        return cls("segmentations", array, "mask")


class Images(OpenedSamples[native.Images]):
    """Image cubes. Pickled as a description: each process opens its own."""

    def __init__(
        self, folders: Folders, keys: Mapping[str, Key], table: Table | None, options: dict[str, Any]
    ) -> None:
        """Opens the images, and joins the table of their labels.

        Raises:
            ValueError: The table has not exactly one row for an image.
        """
        names, listed = named_stores(folders, (str, os.PathLike))
        self._uris = [os.fspath(folder) for folder in listed]
        self.keys = dict(keys)
        self._options = options
        self.stores = OfStore.of(names, self.opened.sizes())
        self.labels = self._labels(table)

    def _labels(self, table: Table | None) -> Labels:
        listed = dict(zip((IMAGE_NAME, "domain", "subject"), zip(*self.opened.images())))
        # A list without domains or subjects has empty texts.
        columns: dict[str, LabelColumn] = {
            name: Column.of(of) for name, of in listed.items() if any(of)
        }
        names: dict[str, Sequence[Any]] = {IMAGE_NAME: listed[IMAGE_NAME]}
        labels = Labels(columns)
        if self.stores is not None:
            labels = labels.beside(Labels({STORE: self.stores}))
            names[STORE] = labels.values(STORE, np.arange(len(names[IMAGE_NAME])))
        return labels if table is None else labels.beside(Labels.of_table(table, names))

    def with_options(self, **options: Any) -> Self:
        """The same images, opened with other options."""
        other = self.copy()
        other._options = {**self._options, **options}
        other._opened = None
        return other

    def _open_all(self) -> native.Images:
        described = [
            {
                "name": name,
                "origin": None if key.folder is None else (key.folder, key.array),
                "role": key.role,
            }
            for name, key in self.keys.items()
        ]
        return native.Images(self._uris, described, **self._options)


class ImageDataset(OpenedDataset[ImageBatch, Images]):
    """Images of a folder in shuffled batches: a dictionary with an array of each key.

    Native threads read, decode and make batches ahead, so a DataLoader needs no workers. A batch
    belongs to the user: it may be changed and kept, nothing overwrites it.
    """

    _noun = "images"
    _gives_blocks = True

    def __init__(
        self,
        folder: Folders,
        keys: Sequence[str] | Mapping[str, Key | str] = KEYS,
        batch_size: int = 1,
        io_batch_size: int | None = None,
        shuffle: bool = True,
        shuffle_chunk_size: int = 1,
        seed: int | None = None,
        use_eager_fetch: bool = True,
        *,
        stored: StoredForm | None = None,
        images: Sequence[str] | None = None,
        labels: Table | None = None,
        form: ImageForm = "numpy",
        dtype: Literal["float16", "float32"] | None = None,
        normalization: Literal["l1", "l2"] | None = None,
        augment: Augmentation | None = None,
        number_samples: bool = False,
        threads: int = 2,
        config: Mapping[str, Any] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Opens the images: reads their list, and looks whether each has its files.

        Args:
            folder: A path or an address in an object store, of a folder with `images.json`, which
                `somafeed cubes preprocess` writes for a camera's files. A list of several, or a
                dictionary of them by names, gives the images of the first, then those of the
                second and so on; their cubes have one shape and one stored form. A batch then has
                the entry `"store"`, the number of each image's folder, and the column `store` of
                labels has its name.
            keys: The arrays of an image by their names in a batch: a `Key`, or a name: `"features"`
                for the cube, otherwise a mask in `segmentations`.
            batch_size: Images of a batch; the last may have fewer.
            io_batch_size: Images that are read, and shuffled, together. None means `batch_size`:
                then no batch is copied.
            shuffle: Whether images come in an order drawn from `seed` and the epoch's number;
                otherwise they come in that of the list.
            shuffle_chunk_size: Neighbouring images that are read together.
            seed: From 0 to 2^64 - 1. None draws one, which several ranks may not do.
            use_eager_fetch: Whether blocks and batches are made ahead, in threads: one block, from an
                object store three, with four read at a time. With `memory`, as many as it allows.
            stored: The stored form of cubes: see `StoredForm`. None means the only one there is.
            images: Names of the images, in this order in each folder. None means all.
            labels: A table with a row for each image, named in its column `image_name`: a
                `pandas.DataFrame`, a `pyarrow.Table`, a dictionary of columns, or the path of a CSV
                file. With several folders whose images share names, its column `store` says which
                folder is meant. Its columns, and `domain` and `subject` of `images.json`, are for
                `split_by_group`, `split_by_label` and `sampling`.
            form: The form of arrays in a batch: see `ImageForm`.
            dtype: The type of images in a batch. None means that in which they are stored.
            normalization: The norm by which each pixel's spectrum is divided, of cubes that are
                stored as float32.
            augment: Random maps, applied by the loader's threads.
            number_samples: Whether a batch has the entry `"sample"`: the numbers of its images
                among those that were opened.
            threads: Threads that read and decode one block.
            config: Settings of an object store, by TileDB's names.
            **engine: The engine's settings: see `EngineSettings`.

        Raises:
            ValueError: Arguments that do not fit together; an image is not there; an array has
                another shape than the list says.
            TypeError: An argument of another type.
            ModuleNotFoundError: A package that batches of this form need is not installed.
            OSError: The storage cannot be read, or files are missing.
        """
        super().__init__(
            batch_size=batch_size,
            io_batch_size=batch_size if io_batch_size is None else io_batch_size,
            shuffle=shuffle,
            shuffle_chunk_size=shuffle_chunk_size,
            seed=seed,
            use_eager_fetch=use_eager_fetch,
            form=form,
            **engine,
        )
        if form not in FORMS:
            raise ValueError(f"unknown form {shown(form)}; there are {', '.join(FORMS)}")
        if form != "numpy":
            required(form, f"form={form!r}")
        self.form: ImageForm = form
        self.number_samples = bool(number_samples)
        self.augment = augment
        self._opened_samples = Images(
            folder,
            checked_keys(keys),
            labels,
            {
                "config": parameters(config or {}),
                "images": None if images is None else list(names_of("images", images)),
                "stored": stored,
                "dtype": dtype,
                "normalization": normalization,
                "augmentation": _described(augment),
                "threads": positive("threads", threads),
                "checks_files": self.on_error == "raise",
            },
        )
        # Now, so that settings that do not fit are an error here.
        self._loaders.batch_maker(self)

    @property
    def keys(self) -> dict[str, Key]:
        """The keys by their names."""
        return dict(self._samples.keys)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one image's array of each key."""
        return {name: tuple(shape) for name, _, shape in self._samples.opened.keys()}

    @property
    def names(self) -> list[str]:
        """The names of the images, in their order."""
        return self.labels_of(IMAGE_NAME)

    @property
    def classes(self) -> list[str]:
        """The names of the labels' classes, in the order of their numbers; empty if they have
        none."""
        return self._samples.opened.classes()

    def with_augmentation(self, augment: Augmentation | None) -> Self:
        """The same images with other random maps, or with none: for example for the training part
        of a split alone."""
        described = _described(augment)
        other = self._with(self._samples.with_options(augmentation=described))
        other.augment = augment
        return other

    def __repr__(self) -> str:
        keys, n = ", ".join(self.keys), self._samples.n_rows
        return f"ImageDataset({n} images with {keys} in batches of {self.batch_size})"

    # What it says of its kind of samples

    def _batch_key(self) -> tuple[Any, ...]:
        return (*super()._batch_key(), self.on_error)

    def _batch_maker(self) -> Callable[[native.ImageBatch], ImageBatch]:
        as_form = array_maker(self.form)
        number_samples, lists_skipped = self.number_samples, self.on_error == "skip"
        stores = self._samples.stores

        def make(batch: native.ImageBatch) -> ImageBatch:
            made: ImageBatch = {name: as_form(batch.values(name)) for name in batch.keys}
            made[IMAGE_NAME] = batch.names
            if number_samples:
                made[SAMPLE] = as_form(batch.samples)
            if stores is not None:
                made[STORE] = as_form(stores.codes_of(batch.samples))
            if lists_skipped:
                made[SKIPPED] = batch.skipped
            return made

        return make


def _described(augment: Augmentation | None) -> dict[str, Any] | None:
    if not isinstance(augment, Augmentation | None):
        raise TypeError(f"augment is an Augmentation or None, not {shown(augment)}")
    return None if augment is None else augment.described()


def checked_keys(keys: Any) -> dict[str, Key]:
    """The keys by their names.

    Raises:
        TypeError: They are something else.
        ValueError: There is none, or one has the name of another entry.
    """
    if isinstance(keys, str) or not isinstance(keys, Mapping | Sequence):
        raise TypeError(f"keys are a dictionary or a list of names, not {shown(keys)}")
    if not keys:
        raise ValueError("name at least one key")
    named: dict[str, Key] = {}
    for name, one in keys.items() if isinstance(keys, Mapping) else zip(keys, keys, strict=True):
        if isinstance(one, str):
            one = Key.cube() if one == KEYS[0] else Key.mask(one)
        if not isinstance(name, str) or not isinstance(one, Key):
            raise TypeError(f"a key is a name or a Key, not {shown(one)}")
        if name in (IMAGE_NAME, SAMPLE, SKIPPED, STORE):
            raise ValueError(f"{name!r} is the name of another entry of a batch: take another")
        named[name] = one
    return named


__all__ = ["Affine", "Augmentation", "ImageBatch", "ImageDataset", "ImageForm", "Key", "StoredForm"]
