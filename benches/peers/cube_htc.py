"""imsy-htc's own data sets and its StreamDataLoader, for the files of a data set of cubes.

Three things are adapted. It looks for cubes in registered data sets; ours is set as the only one, so
the paths of cubes are absolute. Its labels come from segmentations with one array for each annotator, from
which it computes valid_pixels; ours have valid_pixels beside the labels, so `read_labels` reads
both with htc's own function. Its StreamDataLoader needs CUDA: it pins its slots, copies each
batch to the GPU and waits for the GPU before it asks for the next. Without a GPU these calls do
nothing, so a batch is a view of its slot, and pinning and copies cost nothing.

Its DataLoader is not a class of its own: its training passes `dataloader_kwargs` to torch's, with
`persistent_workers`.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from htc.models.common.StreamDataLoader import StreamDataLoader
from htc.models.image.DatasetImage import DatasetImage
from htc.models.image.DatasetImageBatch import DatasetImageBatch
from htc.models.image.DatasetImageStream import DatasetImageStream
from htc.settings import settings
from htc.tivita.DataPath import DataPath
from htc.tivita.DatasetSettings import DatasetSettings
from htc.utils.blosc_compression import decompress_file
from htc.utils.Config import Config
from torch.utils.data import DataLoader

from cube_files import LABELS, CubeFiles
from cube_readers import Batch, Order, Task, worker_settings

AFFINE = {"translate": [0.0625, 0.0625], "scale": [0.9, 1.1], "degrees": 45, "padding_mode": "reflection", "p": 0.5}


class ImagePath(DataPath):
    """The place of an image."""

    def __init__(self, files: CubeFiles, sample: int, shape: DatasetSettings) -> None:
        super().__init__(None, dataset_settings=shape)
        self.files, self.sample = files, sample

    def __str__(self) -> str:
        return str(self.cube_path())

    def image_name(self) -> str:
        return self.files.names[self.sample]

    def image_name_annotations(self) -> str:
        return self.image_name()

    def cube_path(self) -> Path:
        return self.files.cube_path(self.sample)

    def segmentation_path(self) -> Path:
        return self.files.labels_path(self.sample)


class BothLabels:
    """Reads labels and valid_pixels as they are stored."""

    def read_labels(self, path: ImagePath) -> Batch:
        stored = decompress_file(path.segmentation_path(), load_keys=list(LABELS))
        return {
            "labels": torch.from_numpy(stored["labels"]).type(torch.int64),
            "valid_pixels": torch.from_numpy(stored["valid_pixels"]),
        }


class Images(BothLabels, DatasetImage):
    pass


class ImageBatches(BothLabels, DatasetImageBatch):
    pass


class ImageStream(BothLabels, DatasetImageStream):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, single_pass=True, **kwargs)


def image_paths(task: Task) -> list[ImagePath]:
    settings._intermediates_dir_all = Path(task["data"]).absolute()
    files = CubeFiles.open(task["data"], task["format"])
    shape = DatasetSettings({"shape": list(files.shape), "shape_names": ["height", "width", "channels"]})
    return [ImagePath(files, sample, shape) for sample in range(len(files.names))]


def configuration(task: Task) -> Config:
    """The benchmark's configuration with the data, batch and workers of the task."""
    transforms = [
        {"class": "KorniaTransform", "transformation_name": "RandomAffine"} | AFFINE,
        {"class": "KorniaTransform", "transformation_name": "RandomHorizontalFlip", "p": 0.5},
        {"class": "KorniaTransform", "transformation_name": "RandomVerticalFlip", "p": 0.5},
    ]
    preprocessed = str(Path(task["data"], task["format"]).absolute())
    files = CubeFiles.open(task["data"], task["format"])
    return Config(
        {
            "input/preprocessing": None if task["format"] == "dat" else preprocessed,
            "input/features_dtype": "float16" if task["format"] == "raw16" else "float32",
            "input/n_channels": files.shape[2],
            "input/transforms_cpu": transforms if task["augment"] else None,
            "dataloader_kwargs/batch_size": task["batch"],
            "dataloader_kwargs/num_workers": task["workers"],
        }
    )


class HtcWorkers:
    """Its single images in torch's DataLoader."""

    def __init__(self, task: Task) -> None:
        self.order = Order(task)
        images = Images(image_paths(task), train=True, config=configuration(task))
        self.loader = DataLoader(images, batch_size=task["batch"], sampler=self.order, **worker_settings(task))

    def epoch(self, samples: list[int]) -> Iterator[Batch]:
        self.order.samples = samples
        return iter(self.loader)


class HtcRing:
    """Its ring: a worker fills a batch, or all workers fill parts of one."""

    def __init__(self, task: Task, together: bool) -> None:
        if not torch.cuda.is_available():
            do_without_cuda()
        self.order = Order(task)
        kind = ImageStream if together else ImageBatches
        images = kind(image_paths(task), train=True, config=configuration(task), sampler=self.order)
        init = worker_settings(task)["worker_init_fn"]
        self.loader = StreamDataLoader(images, worker_init_fn=init)

    def epoch(self, samples: list[int]) -> Iterator[Batch]:
        self.order.samples = samples
        return iter(self.loader)


def do_without_cuda() -> None:
    """Makes the calls of CUDA that StreamDataLoader needs do nothing."""
    registered = set()
    ok = SimpleNamespace(value=0, name="success", success=0)

    def register(address: int, *_: int) -> SimpleNamespace:
        registered.add(address)
        return ok

    def unregister(address: int) -> SimpleNamespace:
        registered.discard(address)
        return ok

    runtime = SimpleNamespace(cudaHostRegister=register, cudaHostUnregister=unregister)
    torch.cuda.cudart = lambda: runtime
    torch.cuda.synchronize = lambda *_: None
    torch.Tensor.is_pinned = lambda tensor, *_: tensor.data_ptr() in registered
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
