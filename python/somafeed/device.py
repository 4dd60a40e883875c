"""Batches on a device: copied from pinned memory, beside the model's work."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from somafeed.batches import PackedRows, required
from somafeed.neighbours import NEIGHBOURS
from somafeed.world import current_worker

if TYPE_CHECKING:
    import torch

BESIDE = 2
"""The place of what is beside X in a batch of cells."""

Device: TypeAlias = "str | int | torch.device"


def checked_device(device: Device, form: str) -> torch.device:
    """The device on which batches of this form are wanted.

    Raises:
        ValueError: Batches of this form are no tensors.
        RuntimeError: torch knows no such device.
        ModuleNotFoundError: torch is not installed.
    """
    if not form.startswith("torch"):
        raise ValueError(f"device= needs tensors, but form is {form!r}: take form='torch'")
    checked: torch.device = required("torch", "device=").device(device)
    return checked


def gpu_of(device: torch.device | None) -> int | None:
    """The index of the GPU for which the memory of batches is pinned; None if they go to none."""
    if device is None or device.type != "cuda" or current_worker() is not None:
        return None
    if device.index is not None:
        return int(device.index)
    current: int = required("torch", "device=").cuda.current_device()
    return current


class DeviceCopies:
    """Copies the tensors of batches to a device, on a stream of its own.

    The stream that is current where the batch is asked for waits for the copies, the processor does
    not: while a model works on one batch, the next is copied. The native loader pins the memory of
    batches, which lives here until it was copied; what else a batch has is copied by torch's own
    pinned memory.
    """

    def __init__(self, device: torch.device, densifies: bool) -> None:
        """Copies to `device`; with `densifies`, matrices in CSR become dense there.

        Raises:
            ValueError: This is a DataLoader's worker, whose batches go through shared memory.
        """
        # An event after the last batch's copies, the batch, and its process.
        self._under_way: tuple[torch.cuda.Event, Any, int] | None = None
        if device.type != "cpu" and current_worker() is not None:
            raise ValueError(
                f"device='{device}' in a DataLoader's worker, whose batches go through the "
                "processor's memory: take num_workers=0, which is as fast"
            )
        self._torch = required("torch", "device=")
        self._device, self._densifies = device, densifies
        self._stream = self._torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: Any) -> Any:
        """The batch with its tensors on the device."""
        if self._stream is None:
            return self._copied_batch(batch, lambda tensor: tensor.to(self._device))
        cuda = self._torch.cuda
        self._end_copies()
        with cuda.stream(self._stream):
            try:
                copied = self._copied_batch(batch, self._from_pinned)
            finally:
                # Also what began before an error reads the batch's memory.
                self._under_way = (self._stream.record_event(), batch, os.getpid())
        current = cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        # Its memory is the copying stream's, which may not use it again before this one has.
        _each_part(copied, lambda tensor: tensor.record_stream(current))
        return copied

    def _end_copies(self) -> None:
        """Waits for the copies of the batch before, and lets go of its memory."""
        under_way, self._under_way = self._under_way, None
        # A fork has neither the GPU nor the loader that would use the memory again.
        if under_way is not None and under_way[2] == os.getpid():
            under_way[0].synchronize()

    def __del__(self) -> None:
        self._end_copies()

    def _from_pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        pinned = tensor if tensor.is_pinned() else tensor.pin_memory()
        return pinned.to(self._device, non_blocking=True)

    def _copied_batch(self, batch: Any, copy: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        """The batch with its tensors copied. With neighbours, X stays a view of their table, so that
        its rows are copied once."""
        beside = batch[-1] if isinstance(batch, tuple) and len(batch) > BESIDE else None
        if not isinstance(beside, dict) or NEIGHBOURS not in beside:
            return self._mapped(batch, copy)
        others = self._mapped(batch[1:], copy)
        return (self._first_rows(others[-1][NEIGHBOURS], batch[0]), *others)

    def _first_rows(self, table: torch.Tensor, like: torch.Tensor | PackedRows) -> torch.Tensor:
        """The first rows of a table, as many as a matrix on the host has, over its memory."""
        package, n_rows = self._torch, like.shape[0]
        made: torch.Tensor
        if table.layout == package.strided:
            return table[0] if len(like.shape) == 1 else table[:n_rows]
        nnz = _parts(like)[-1].shape[0]
        if table.layout == package.sparse_csr:
            offsets, columns, values = _parts(table)
            made = package.sparse_csr_tensor(
                offsets[: n_rows + 1], columns[:nnz], values[:nnz], like.shape,
                check_invariants=False,
            )
        else:
            places, values = _parts(table)
            made = package.sparse_coo_tensor(
                places[:, :nnz], values[:nnz], like.shape, check_invariants=False
            )
        return made

    def _mapped(self, batch: Any, copy: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        if isinstance(batch, (self._torch.Tensor, PackedRows)):
            return self._copied(batch, copy)
        if isinstance(batch, dict):
            return {name: self._mapped(part, copy) for name, part in batch.items()}
        if isinstance(batch, tuple):
            return tuple(self._mapped(part, copy) for part in batch)
        return batch

    def _copied(
        self,
        tensor: torch.Tensor | PackedRows,
        copy: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        package, shape = self._torch, tensor.shape
        parts = tuple(copy(part) for part in _parts(tensor))
        made: torch.Tensor
        if isinstance(tensor, PackedRows):
            offsets, columns, values = parts
            parts = (offsets, _widened(columns).int(), _widened(values).float())
        if isinstance(tensor, PackedRows) or tensor.layout == package.sparse_csr:
            made = package.sparse_csr_tensor(*parts, shape, check_invariants=False)
            return made.to_dense() if self._densifies else made
        if tensor.layout == package.sparse_coo:
            made = package.sparse_coo_tensor(*parts, shape, check_invariants=False)
            return made
        return parts[0]


def _widened(numbers: torch.Tensor) -> torch.Tensor:
    """Packed numbers; those of 16 bits without the sign that int16 gives them."""
    return numbers.int().bitwise_and_(0xFFFF) if str(numbers.dtype) == "torch.int16" else numbers


def _parts(tensor: torch.Tensor | PackedRows) -> tuple[torch.Tensor, ...]:
    """The dense tensors that a tensor, or what becomes one, consists of."""
    if isinstance(tensor, PackedRows):
        return tensor.parts
    layout = str(tensor.layout)
    if layout == "torch.sparse_csr":
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if layout == "torch.sparse_coo":
        return tensor._indices(), tensor._values()
    return (tensor,)


def _each_part(batch: Any, use: Callable[[torch.Tensor], Any]) -> None:
    """Calls a function with each dense tensor that a batch consists of."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, tuple):
        for part in batch:
            _each_part(part, use)
    elif hasattr(batch, "layout"):
        for part in _parts(batch):
            use(part)
