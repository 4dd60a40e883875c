"""Random maps of images and their masks, on the loader's threads or on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from somafeed import _somafeed as native
from somafeed.batches import required
from somafeed.settings import at_least_0, checked_seed, shown

if TYPE_CHECKING:
    import torch

    from somafeed.images import Key


@dataclass(frozen=True)
class Affine:
    """Ranges of a random rotation, scaling and shift: those of htc's benchmark."""

    degrees: float = 45.0
    """Largest angle to either side."""
    translate: tuple[float, float] = (0.0625, 0.0625)
    """Largest shift to either side, as a fraction of the width and of the height."""
    scale: tuple[float, float] = (0.9, 1.1)
    """Smallest and largest factor by which an image is enlarged."""
    probability: float = 0.5
    """Probability that an image is rotated, scaled and shifted."""


@dataclass(frozen=True)
class Augmentation:
    """Random affine maps and flips, the same for an image and its masks.

    A sample's map depends on `seed`, the epoch and the sample alone. Images are interpolated
    linearly and masks take the nearest pixel, both reflected at their edges, as Kornia 0.9 does.

    >>> Augmentation(Affine(degrees=10), vertical_flip=0)
    Augmentation(affine=Affine(degrees=10, translate=(0.0625, 0.0625), scale=(0.9, 1.1), probability=0.5), horizontal_flip=0.5, vertical_flip=0, seed=0, valid_pixels=None)
    """

    affine: Affine | None = Affine()
    horizontal_flip: float = 0.5
    """Probability that left and right are exchanged."""
    vertical_flip: float = 0.5
    """Probability that top and bottom are exchanged."""
    seed: int = 0
    valid_pixels: str | None = None
    """A mask of which at least one pixel must stay in the image; otherwise the image comes as it
    is. None allows any map."""

    def __post_init__(self) -> None:
        if not isinstance(self.affine, Affine | None):
            raise TypeError(f"affine is an Affine or None, not {shown(self.affine)}")
        checked_seed(self.seed)
        # Fails for ranges and probabilities that cannot be.
        native.draw_maps(self.described(), 0, [], 1, 1)

    def described(self) -> dict[str, Any]:
        """The augmentation as the native module takes it."""
        affine = self.affine
        ranges = affine and (
            affine.degrees, list(affine.translate), list(affine.scale), affine.probability
        )
        return {
            "affine": ranges,
            "horizontal_flip": self.horizontal_flip,
            "vertical_flip": self.vertical_flip,
            "seed": self.seed,
            "valid_pixels": self.valid_pixels,
        }

    def on_batch(
        self, batch: Mapping[str, Any], *, epoch: int, keys: Mapping[str, Key]
    ) -> dict[str, Any]:
        """Maps a batch of tensors where they are, for example on a GPU: as the loader's threads do
        for this epoch.

        >>> for batch in ds:  # doctest: +SKIP
        ...     batch["features"] = batch["features"].cuda()
        ...     batch["labels"] = batch["labels"].cuda()
        ...     batch = augmentation.on_batch(batch, epoch=ds.epoch, keys=ds.keys)

        Args:
            batch: A batch of an `ImageDataset` with `form="torch"`, `number_samples=True` and no
                `augment=`.
            epoch: The number of the batch's epoch.
            keys: The data set's `keys`. Images and masks of the batch are mapped, other entries
                stay as they are.

        Raises:
            ValueError: The batch has no numbers of samples, or not the mask `valid_pixels`.
        """
        torch = required("torch", "Augmentation.on_batch")
        mapped = {name: keys[name].role for name in batch if name in keys}
        mapped = {name: role for name, role in mapped.items() if role != "plain"}
        made = dict(batch)
        if not mapped:
            return made
        if "sample" not in batch:
            raise ValueError("the batch has no numbers of samples: give number_samples=True")
        height, width = batch[next(iter(mapped))].shape[1:3]
        samples = np.asarray(batch["sample"].cpu(), np.uint64)
        matrices, is_affine = native.draw_maps(
            self.described(), at_least_0("epoch", epoch), samples, height, width
        )
        maps = torch.from_numpy(matrices.reshape(-1, 2, 3)), torch.tensor(is_affine, dtype=bool)
        if self.valid_pixels is not None:
            if self.valid_pixels not in batch:
                raise ValueError(f"the batch has no mask {shown(self.valid_pixels)}")
            maps = _with_valid_pixels(*maps, batch[self.valid_pixels])
        for name, role in mapped.items():
            warp = _warped_image if role == "image" else _warped_mask
            made[name] = warp(batch[name], *(of.to(batch[name].device) for of in maps))
        return made


def _positions(matrices: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, ...]:
    """Column and row in the source of each pixel, reflected into it, as (samples, pixels)."""
    import torch

    rows = torch.arange(height, device=matrices.device, dtype=torch.float64)[:, None]
    columns = torch.arange(width, device=matrices.device, dtype=torch.float64)

    def position(axis: int, size: int) -> torch.Tensor:
        by_column, by_row, start = (matrices[:, axis, at, None, None] for at in range(3))
        found = (start + by_row * rows) + by_column * columns
        # At the outer edges of the outermost pixels, half a pixel beyond their centres.
        from_edge = (found + 0.5).abs().fmod(2.0 * size)
        from_edge = torch.where(from_edge < size, from_edge, 2.0 * size - from_edge)
        return (from_edge - 0.5).clamp(0, size - 1).flatten(1)

    return position(0, width), position(1, height)


def _taken(pixels: torch.Tensor, x: torch.Tensor, y: torch.Tensor, width: int) -> torch.Tensor:
    """The source's pixels at columns `x` and rows `y`."""
    import torch

    n_samples, n_pixels = pixels.shape[:2]
    first = torch.arange(n_samples, device=pixels.device)[:, None] * n_pixels
    at = (first + y * width + x).flatten()
    return pixels.flatten(0, 1).index_select(0, at).reshape(*x.shape, *pixels.shape[2:])


def _warped_mask(
    mask: torch.Tensor, matrices: torch.Tensor, is_affine: torch.Tensor
) -> torch.Tensor:
    _, height, width = mask.shape
    # Of two pixels as near as each other the even one, like torch.round.
    x, y = (position.round().long() for position in _positions(matrices, height, width))
    return _taken(mask.flatten(1), x, y, width).reshape(mask.shape)


def _warped_image(
    image: torch.Tensor, matrices: torch.Tensor, is_affine: torch.Tensor
) -> torch.Tensor:
    import torch

    height, width = image.shape[1:3]
    pixels = image.flatten(1, 2)
    neighbours = []
    for position, size in zip(_positions(matrices, height, width), (width, height), strict=True):
        first = position.long()
        is_last = first + 1 >= size
        # There is no second pixel. Halves of the first are exact, and make no NaN of an infinite
        # value.
        fraction = torch.where(is_last, 0.5, position - first)
        weights = [(1.0 - fraction).float(), fraction.float()]
        neighbours.append(([first, torch.where(is_last, first, first + 1)], weights))
    (columns, x_weights), (rows, y_weights) = neighbours
    blended = None
    for below in (0, 1):
        for right in (0, 1):
            tap = _taken(pixels, columns[right], rows[below], width).float()
            tap *= (x_weights[right] * y_weights[below])[..., None]
            blended = tap if blended is None else blended.add_(tap)
    assert blended is not None
    # Flips copy values.
    copied = _taken(pixels, columns[0], rows[0], width)
    warped = torch.where(is_affine[:, None, None], blended.to(image.dtype), copied)
    return warped.reshape(image.shape)


def _with_valid_pixels(
    matrices: torch.Tensor, is_affine: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The maps that leave a valid pixel in the image; for other samples the map of no change."""
    warped = _warped_mask(mask, matrices.to(mask.device), is_affine)
    keeps = (warped != 0).flatten(1).any(1).to(matrices.device)
    unchanged = matrices.new_tensor([[1, 0, 0], [0, 1, 0]])
    return matrices.where(keeps[:, None, None], unchanged), is_affine & keeps


__all__ = ["Affine", "Augmentation"]
