"""Mean and deviation of the values of samples, in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

GRID_DIMENSIONS = 2


@dataclass(frozen=True)
class Statistics:
    """Mean, deviation and number of values: arrays with one for each channel, or of one."""

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    """The square root of the mean squared distance from the mean: of the population."""
    count: npt.NDArray[np.int64]
    """Values that are not NaN."""

    @property
    def pairs(self) -> npt.NDArray[np.float64]:
        """Two rows, as `Variable(normalize=)` takes them.

        Raises:
            ValueError: A deviation is 0, there is no value, or one is infinite.
        """
        bad = np.flatnonzero(~(self.deviation > 0))
        if len(bad):
            at = bad[0]
            why = ", since some are infinite" if self.count[at] and np.isnan(self.deviation[at]) else ""
            raise ValueError(
                f"channel {at} has {self.count[at]} values with the deviation "
                f"{self.deviation[at]}{why}: it cannot be normalised"
            )
        return np.stack([self.mean, self.deviation])


class _Sums:
    """Counts, means and squared distances, joined batch by batch: Chan, Golub and LeVeque (1983),
    "Algorithms for Computing the Sample Variance", equation 2.1."""

    def __init__(self) -> None:
        self.count: npt.NDArray[Any] = np.zeros(1)
        self.mean: npt.NDArray[Any] = np.zeros(1)
        self.squares: npt.NDArray[Any] = np.zeros(1)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Adds values, one row for each channel."""
        rows = values.astype(np.float64)
        is_there = ~np.isnan(rows)
        count = is_there.sum(axis=1)
        n = np.maximum(count, 1)
        mean = np.where(is_there, rows, 0).sum(axis=1) / n
        distances = np.where(is_there, rows - mean[:, None], 0)
        # What rounding left of the mean.
        left = distances.sum(axis=1) / n
        mean, distances = mean + left, distances - np.where(is_there, left[:, None], 0)
        between = mean - self.mean
        total = self.count + count
        share = count / np.maximum(total, 1)
        self.squares = self.squares + (distances**2).sum(axis=1) + between**2 * self.count * share
        self.mean = self.mean + between * share
        self.count = total

    def statistics(self) -> Statistics:
        """The statistics so far."""
        has_any = self.count > 0
        mean = np.where(has_any, self.mean, np.nan)
        deviation = np.sqrt(np.where(has_any, self.squares / np.maximum(self.count, 1), np.nan))
        return Statistics(mean, deviation, self.count.astype(np.int64))


def statistics_of(
    batches: Iterable[Mapping[str, Any]], n_leading: Mapping[str, int]
) -> dict[str, Statistics]:
    """The statistics of variables of batches. `n_leading` is the number of dimensions of each that
    are samples and steps."""
    sums = {name: _Sums() for name in n_leading}
    for batch in batches:
        for name, leading in n_leading.items():
            values = _array(batch[name])
            if values.ndim - leading > GRID_DIMENSIONS:
                values = np.moveaxis(values, leading, 0)
                rows = values.reshape(len(values), -1)
            else:
                rows = values.reshape(1, -1)
            # Infinite ones leave no deviation.
            with np.errstate(invalid="ignore"):
                sums[name].add(rows)
    found = {name: of.statistics() for name, of in sums.items()}
    for name, of in found.items():
        if (np.isnan(of.deviation) & (of.count > 0)).any():
            warnings.warn(f"{name} has channels with infinite values", RuntimeWarning, stacklevel=3)
        elif not (of.deviation > 0).all():
            warnings.warn(f"{name} has channels of one value only", RuntimeWarning, stacklevel=3)
    return found


def _array(values: Any) -> npt.NDArray[Any]:
    # numpy has no bfloat16.
    is_half = str(getattr(values, "dtype", "")) == "torch.bfloat16"
    return np.asarray(values.float() if is_half else values)


__all__ = ["Statistics"]
