"""Cells, fields, images and sequences in shuffled batches, for PyTorch.

`ExperimentDataset` takes the place of tiledbsoma_ml's class of that name; `experiment_dataloader`
wraps it in a DataLoader. Below them are `Experiment`, `Dataset` and `Loader`, which need numpy
alone. `FieldDataset` delivers fields of Zarr stores in the same way, `ImageDataset` image cubes,
`SequenceDataset` DNA, RNA and other sequences, `SourceDataset` what your own code reads.

>>> import somafeed
>>> somafeed.__version__ == somafeed.version
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from somafeed._somafeed import (
    ArrowTable,
    Batch,
    BatchKeyEncoder,
    Budget,
    Dataset,
    Epoch,
    Experiment,
    FieldBatch,
    Fields,
    ImageBatch,
    Images,
    LabelEncoder,
    Loader,
    OwnSamples,
    SampleBatch,
    SampleLoader,
    Samples,
    Sampling,
    SomafeedError,
    Tokenizer,
    generate_example,
    libtiledb,
    split_by_fraction,
    split_by_group,
    split_by_label,
    version,
)
from somafeed.modalities import Modality
from somafeed.neighbours import Neighbours
from somafeed.samplings import (
    AtMostPerClass,
    ClassBalanced,
    GroupBatches,
    Hierarchical,
    Mixture,
    Stratified,
    Weighted,
    WithReplacement,
)
from somafeed.sources import QueryIDs, XLocator
from somafeed.splits import SamplingMethod
from somafeed.tokens import BinTokens, RankTokens

if TYPE_CHECKING:
    from somafeed.augmentation import Affine, Augmentation
    from somafeed.batches import DType, Form, ObsForm
    from somafeed.dataloader import experiment_dataloader
    from somafeed.dataset import ExperimentDataset
    from somafeed.doc2vec import Doc2Vec
    from somafeed.engine import EngineSettings
    from somafeed.fields import FieldDataset
    from somafeed.forcings import Forcing, latitude_weights
    from somafeed.images import ImageDataset, Key
    from somafeed.iteration import ExperimentIterator
    from somafeed.own_source import Source, SourceDataset
    from somafeed.patches import Patches
    from somafeed.kmers import Kmers, OneHot, Vocabulary, Windows
    from somafeed.sequence_stores import SequenceServers, import_sequences
    from somafeed.sequences import SequenceDataset
    from somafeed.variables import Stack, Variable

__version__ = version

__all__ = [
    "Affine",
    "ArrowTable",
    "AtMostPerClass",
    "Augmentation",
    "Batch",
    "BatchKeyEncoder",
    "BinTokens",
    "Budget",
    "ClassBalanced",
    "DType",
    "Dataset",
    "Doc2Vec",
    "EngineSettings",
    "Epoch",
    "Experiment",
    "ExperimentDataset",
    "ExperimentIterator",
    "FieldBatch",
    "FieldDataset",
    "Fields",
    "Forcing",
    "Form",
    "GroupBatches",
    "Hierarchical",
    "ImageBatch",
    "ImageDataset",
    "Images",
    "Key",
    "Kmers",
    "LabelEncoder",
    "Loader",
    "Mixture",
    "Modality",
    "Neighbours",
    "ObsForm",
    "OneHot",
    "OwnSamples",
    "Patches",
    "QueryIDs",
    "RankTokens",
    "SampleBatch",
    "SampleLoader",
    "Samples",
    "Sampling",
    "SamplingMethod",
    "SequenceDataset",
    "SequenceServers",
    "SomafeedError",
    "Source",
    "SourceDataset",
    "Stack",
    "Stratified",
    "Tokenizer",
    "Variable",
    "Vocabulary",
    "Weighted",
    "Windows",
    "WithReplacement",
    "XLocator",
    "experiment_dataloader",
    "generate_example",
    "import_sequences",
    "latitude_weights",
    "libtiledb",
    "split_by_fraction",
    "split_by_group",
    "split_by_label",
    "version",
]

# Imported when they are first used, because they import torch if it is installed.
_LATER = {
    "Affine": "somafeed.augmentation",
    "Augmentation": "somafeed.augmentation",
    "DType": "somafeed.batches",
    "Doc2Vec": "somafeed.doc2vec",
    "EngineSettings": "somafeed.engine",
    "ExperimentDataset": "somafeed.dataset",
    "ExperimentIterator": "somafeed.iteration",
    "FieldDataset": "somafeed.fields",
    "Forcing": "somafeed.forcings",
    "Form": "somafeed.batches",
    "ImageDataset": "somafeed.images",
    "Key": "somafeed.images",
    "Kmers": "somafeed.kmers",
    "ObsForm": "somafeed.batches",
    "OneHot": "somafeed.kmers",
    "Patches": "somafeed.patches",
    "SequenceDataset": "somafeed.sequences",
    "SequenceServers": "somafeed.sequence_stores",
    "Source": "somafeed.own_source",
    "SourceDataset": "somafeed.own_source",
    "Stack": "somafeed.variables",
    "Variable": "somafeed.variables",
    "Vocabulary": "somafeed.kmers",
    "Windows": "somafeed.kmers",
    "experiment_dataloader": "somafeed.dataloader",
    "import_sequences": "somafeed.sequence_stores",
    "latitude_weights": "somafeed.forcings",
}


# Modules that import a framework.
_FRAMEWORKS = ("lightning", "scvi")


def __getattr__(name: str) -> Any:
    if name in _FRAMEWORKS:
        return import_module(f"somafeed.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
