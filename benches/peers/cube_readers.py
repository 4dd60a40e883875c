"""Python's own ways to feed cubes: torch's DataLoader, and a ring of slots in shared memory.

Both are rebuilt from the description of imsy-htc's benchmark (PyTorch Conference 2023): worker
processes, a prefetch factor of 2, workers that stay from epoch to epoch, no pinned memory.
"""

from collections.abc import Iterator
from typing import Any

import blosc
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from cube_files import CubeFiles
from feeding import SomafeedEpochs

PREFETCH_FACTOR = 2

Batch = dict[str, torch.Tensor]
"""The arrays of a batch, and `image_index`, the numbers of its samples."""
Task = dict[str, Any]


class Order:
    """The samples of the current epoch, as a sampler."""

    def __init__(self, task: Task) -> None:
        self.samples: list[int] = task["epochs"][0]

    def __iter__(self) -> Iterator[int]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


def set_codec_threads(task: Task) -> None:
    """Sets blosc's threads in this process; without a number it keeps its own, all cores up to 8."""
    if task["codec_threads"] is not None:
        blosc.set_nthreads(task["codec_threads"])


def worker_settings(task: Task) -> dict[str, Any]:
    """The settings of a DataLoader that both ways have."""
    return {
        "num_workers": task["workers"],
        "prefetch_factor": PREFETCH_FACTOR,
        "persistent_workers": True,
        "worker_init_fn": lambda _: set_codec_threads(task),
    }


class Cubes(Dataset):
    """Samples by their number, augmented if the task says so."""

    def __init__(self, task: Task) -> None:
        self.files = CubeFiles.open(task["data"], task["format"])
        self.augmentation = augmentation() if task["augment"] else None

    def __len__(self) -> int:
        return len(self.files.names)

    def __getitem__(self, sample: int) -> Batch:
        values = {key: torch.from_numpy(values) for key, values in self.files.read(sample).items()}
        if self.augmentation is not None:
            values = augmented(values, self.augmentation)
        return values | {"image_index": torch.tensor(sample)}


def augmentation() -> Any:
    """The transforms of the benchmark's configuration."""
    import kornia.augmentation as kornia

    affine = {"degrees": 45, "translate": (0.0625, 0.0625), "scale": (0.9, 1.1), "padding_mode": "reflection"}
    return kornia.AugmentationSequential(
        kornia.RandomAffine(**affine, p=0.5), kornia.RandomHorizontalFlip(p=0.5), kornia.RandomVerticalFlip(p=0.5)
    )


def augmented(values: Batch, transforms: Any) -> Batch:
    """Transforms a sample. Kornia takes f32 on the CPU, with the channels first, so that f16 is converted twice."""
    images = [values["features"].permute(2, 0, 1)] + [values[key].unsqueeze(0) for key in ("labels", "valid_pixels")]
    images = [image.unsqueeze(0).to(torch.float32) for image in images]
    features, *masks = transforms(*images, data_keys=["input", "mask", "mask"])
    labels, valid_pixels = (mask[0, 0] for mask in masks)
    done = {"features": features[0].permute(1, 2, 0), "labels": labels, "valid_pixels": valid_pixels}
    return {key: value.to(values[key].dtype) for key, value in done.items()}


class Workers:
    """Each worker process reads single samples and collates a batch, which crosses over in new shared memory."""

    def __init__(self, task: Task) -> None:
        self.order = Order(task)
        self.loader = DataLoader(Cubes(task), batch_size=task["batch"], sampler=self.order, **worker_settings(task))

    def epoch(self, samples: list[int]) -> Iterator[Batch]:
        self.order.samples = samples
        return iter(self.loader)


class Somafeed(SomafeedEpochs):
    """somafeed's own package, whose threads decode a batch into the memory of its tensors."""

    def __init__(self, task: Task) -> None:
        from somafeed import Augmentation, ImageDataset

        dataset = ImageDataset(
            task["data"],
            batch_size=task["batch"],
            shuffle=task["shuffled"],
            seed=task["seed"],
            stored=task["format"],
            form="torch",
            augment=Augmentation(seed=task["seed"], valid_pixels="valid_pixels") if task["augment"] else None,
            number_samples=True,
            threads=task["workers"],
        )
        super().__init__(dataset, "image_index")


class Slots:
    """A ring in shared memory: for each key a tensor [slots, batch, ...]."""

    def __init__(self, task: Task, n_slots: int) -> None:
        self.files = CubeFiles.open(task["data"], task["format"])
        self.batch = task["batch"]
        kinds = self.files.keys | {"image_index": ((), np.int64)}
        self.tensors = {key: shared((n_slots, self.batch, *shape), kind) for key, (shape, kind) in kinds.items()}
        # The order of an epoch, rewritten in place for workers that stay.
        self.order = shared((len(task["epochs"][0]),), np.int64)

    def fill(self, slot: int, place: int, sample: int) -> None:
        """Reads a sample into its place in a slot."""
        into = {key: tensor[slot, place].numpy() for key, tensor in self.tensors.items() if key != "image_index"}
        self.files.read_into(sample, into)
        self.tensors["image_index"][slot, place] = sample


def shared(shape: tuple[int, ...], kind: type) -> torch.Tensor:
    return torch.from_numpy(np.empty(shape, kind)).share_memory_()


class OwnBatches(Dataset):
    """A worker reads a whole batch into the next of its own slots."""

    def __init__(self, task: Task) -> None:
        self.n_own = PREFETCH_FACTOR + 1
        self.slots = Slots(task, self.n_own * task["workers"])
        self.turn = 0

    def __len__(self) -> int:
        return (len(self.slots.order) + self.slots.batch - 1) // self.slots.batch

    def __getitem__(self, batch: int) -> tuple[int, int]:
        slot = get_worker_info().id * self.n_own + self.turn
        self.turn = (self.turn + 1) % self.n_own
        size = self.slots.batch
        samples = self.slots.order[batch * size : (batch + 1) * size].tolist()
        for place, sample in enumerate(samples):
            self.slots.fill(slot, place, sample)
        return slot, len(samples)


class SharedBatches(IterableDataset):
    """All workers fill parts of the same slot."""

    def __init__(self, task: Task) -> None:
        if task["batch"] % task["workers"]:
            raise ValueError(f"{task['workers']} workers cannot share a batch of {task['batch']}")
        self.n_slots = PREFETCH_FACTOR + 1
        self.slots = Slots(task, self.n_slots)
        self.part = task["batch"] // task["workers"]

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        worker = get_worker_info()
        samples = self.slots.order[worker.id :: worker.num_workers].tolist()
        for idx, start in enumerate(range(0, len(samples), self.part)):
            slot, first = idx % self.n_slots, worker.id * self.part
            part = samples[start : start + self.part]
            for place, sample in enumerate(part, first):
                self.slots.fill(slot, place, sample)
            yield slot, first, first + len(part)


class Ring:
    """Only the number of a filled slot crosses over; a batch is a view of the slot, valid until the next is asked for.

    A worker is given PREFETCH_FACTOR further batches when one of its own is taken, so that it cannot
    come back to the slot that the consumer has.
    """

    def __init__(self, task: Task, together: bool) -> None:
        self.together = together
        self.dataset = SharedBatches(task) if together else OwnBatches(task)
        self.n_workers = task["workers"]
        self.loader = DataLoader(self.dataset, batch_size=None, **worker_settings(task))

    def epoch(self, samples: list[int]) -> Iterator[Batch]:
        self.dataset.slots.order[:] = torch.tensor(samples)
        filled = iter(self.loader)
        return self.joined(filled) if self.together else map(self.whole, filled)

    def whole(self, filled: tuple[int, int]) -> Batch:
        slot, size = filled
        return {key: tensor[slot, :size] for key, tensor in self.dataset.slots.tensors.items()}

    def joined(self, filled: Iterator[tuple[int, int, int]]) -> Iterator[Batch]:
        """Waits for the parts of all workers."""
        while parts := [part for _ in range(self.n_workers) if (part := next(filled, None))]:
            (slot,) = {slot for slot, _, _ in parts}
            n_samples = sum(stop - start for _, start, stop in parts)
            if n_samples == self.dataset.slots.batch:
                yield self.whole((slot, n_samples))
            else:
                places = torch.cat([torch.arange(start, stop) for _, start, stop in parts])
                yield {key: tensor[slot][places] for key, tensor in self.dataset.slots.tensors.items()}


class Threads:
    """SPDL's pipeline of threads, each of which decompresses samples straight into their place in a batch."""

    def __init__(self, task: Task) -> None:
        self.files = CubeFiles.open(task["data"], task["format"])
        self.batch, self.workers = task["batch"], task["workers"]
        self.failure: Exception | None = None
        # Otherwise one thread at a time would decompress.
        blosc.set_releasegil(True)
        blosc.set_nthreads(task["codec_threads"] or 1)
        torch.set_num_threads(1)

    def epoch(self, samples: list[int]) -> Iterator[Batch]:
        from spdl.pipeline import PipelineBuilder, PipelineFailure

        builder = PipelineBuilder().add_source(self.places(samples))
        builder = builder.pipe(self.load, concurrency=self.workers, output_order="input").aggregate(self.batch)
        pipeline = builder.add_sink(PREFETCH_FACTOR).build(num_threads=self.workers, max_failures=0)
        try:
            with pipeline.auto_stop():
                # All samples of a batch come with the same arrays.
                for same in pipeline.get_iterator():
                    batch = same[0]
                    del same
                    yield {key: torch.from_numpy(values) for key, values in batch.items()}
                    del batch
        except PipelineFailure as error:
            # SPDL's error says which stage failed, not why.
            raise self.failure or error from error

    def places(self, samples: list[int]) -> Iterator[tuple[dict[str, np.ndarray], int]]:
        for start in range(0, len(samples), self.batch):
            part = np.array(samples[start : start + self.batch])
            into = {key: np.empty((len(part), *shape), kind) for key, (shape, kind) in self.files.keys.items()}
            into["image_index"] = part
            for place in range(len(part)):
                yield into, place

    def load(self, at: tuple[dict[str, np.ndarray], int]) -> dict[str, np.ndarray]:
        into, place = at
        values = {key: values[place] for key, values in into.items() if key != "image_index"}
        try:
            self.files.read_into(int(into["image_index"][place]), values)
        except Exception as error:
            self.failure = error
            raise
        return into
