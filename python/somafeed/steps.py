"""The steps of variables of fields: numbers of steps, or lengths of time."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from somafeed.settings import at_least_0, integer, no_text, positive, shown
from somafeed.times import TimeSpan, microseconds

Steps: TypeAlias = "int | TimeSpan | Sequence[int | TimeSpan]"

_ONE_STEP = int | str | np.integer | np.timedelta64 | datetime.timedelta


class OfSteps:
    """A variable that has steps."""

    steps: Steps
    """Steps relative to the sample's own."""
    rollout: Mapping[int, int]
    """How many of them a sample has, by the epoch from which on there are as many."""
    minus: Steps = ()
    """Steps that are subtracted."""
    spans: tuple[int, ...]
    """The steps as microseconds, if they are lengths of time."""
    minus_spans: tuple[int, ...] = ()
    """Those that are subtracted as microseconds, if they are lengths of time."""

    @property
    def offsets(self) -> tuple[int, ...]:
        """The steps as numbers: of steps, or of microseconds if there are `spans`."""
        return self.spans or _counted("a step", self.steps)

    @property
    def counted(self) -> tuple[int, ...]:
        """All steps that are numbers, those that are subtracted last."""
        if self.spans:
            return ()
        return (*_counted("a step", self.steps), *_counted("a step of minus", self.minus))

    def set_steps(self) -> None:
        """Checks the steps, and sets those that are lengths of time.

        Raises:
            TypeError: They are neither numbers nor lengths of time.
            ValueError: A length of time is not fixed; several are subtracted, and not one from each.
        """
        steps, minus = _listed("steps", self.steps), _listed("minus", self.minus)
        checked_rollout(self.rollout)
        if len(minus) > 1 and len(minus) != len(steps):
            raise ValueError(
                f"minus has {len(minus)} steps and there are {len(steps)}: give one for all, or one "
                "for each"
            )
        # The field is frozen.
        put = object.__setattr__
        if all(map(_is_counted, [*steps, *minus])):
            put(self, "steps", _counted("a step", steps))
            put(self, "minus", _counted("a step of minus", minus))
            return
        put(self, "spans", _spans("a step", steps))
        put(self, "minus_spans", _spans("a step of minus", minus))
        put(self, "steps", tuple(steps))
        put(self, "minus", tuple(minus))

    def described_steps(self) -> dict[str, Any]:
        """The steps as the native module takes them."""
        is_timed = bool(self.spans)
        return {
            "steps": [0] if is_timed else list(self.offsets),
            "spans": list(self.spans),
            "minus": [] if is_timed else list(_counted("a step of minus", self.minus)),
            "minus_spans": list(self.minus_spans),
            "rollout": checked_rollout(self.rollout),
        }


def _listed(name: str, steps: Any) -> list[Any]:
    if isinstance(steps, _ONE_STEP):
        return [steps]
    if not isinstance(steps, Iterable):
        raise TypeError(f"{name} are numbers of steps or lengths of time, not {shown(steps)}")
    return list(steps)


def _counted(name: str, steps: Any) -> tuple[int, ...]:
    counted = tuple(integer(name, step) for step in _listed(name, steps))
    far = [step for step in counted if not -(1 << 63) <= step < 1 << 63]
    if far:
        raise ValueError(f"{name} must be from -2^63 to 2^63 - 1, not {far[0]}")
    return counted


def _spans(name: str, steps: Sequence[Any]) -> tuple[int, ...]:
    # A number of steps is no time, except none of them.
    spans = ("0h" if _is_counted(step) and step == 0 else step for step in steps)
    return tuple(microseconds(name, span) for span in spans)


def _is_counted(step: object) -> bool:
    # A timedelta64 of numpy is one of its integers.
    return isinstance(step, int | np.integer) and not isinstance(step, np.timedelta64)


def checked_rollout(rollout: Any) -> list[tuple[int, int]]:
    """The numbers of steps by epoch, which ascend.

    Raises:
        TypeError: They are no dictionary of numbers.
        ValueError: A number is negative.
    """
    if not isinstance(rollout, Mapping):
        raise TypeError(f"rollout is a dictionary of numbers by epoch, not {shown(rollout)}")
    what = "a number of rollout"
    return sorted(
        (at_least_0("an epoch of rollout", epoch), positive(what, no_text(what, n)))
        for epoch, n in rollout.items()
    )
