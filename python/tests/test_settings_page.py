"""docs/settings.md names every setting of the data sets and of the specifications, with its default."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
import somafeed
from somafeed.samples import SampleDataset

REPOSITORY = Path(__file__).parents[2]
DATA_SETS = ["ExperimentDataset", "FieldDataset", "ImageDataset", "SequenceDataset", "SourceDataset"]
# Parts of samples, by the headings of their tables.
PARTS = {
    "Modality": ["Modality"],
    "Neighbours": ["Neighbours"],
    "Variable and Stack": ["Variable", "Stack"],
    "Forcing": ["Forcing"],
    "Patches": ["Patches"],
    "Key": ["Key"],
    "Augmentation": ["Augmentation", "Affine"],
    "Words of sequences": ["Kmers", "Windows", "OneHot"],
    "Tokens": ["RankTokens", "BinTokens"],
}
SPECS = {
    "PipelineSpec: the engine, for samples of all kinds": [("pipeline/src/spec.rs", "PipelineSpec")],
    "LoaderSpec: cells": [("loader/src/spec.rs", "LoaderSpec")],
    "Transform": [("densify/src/transform.rs", "Transform")],
    "DatasetSpec: which part of an experiment": [("loader/src/selection.rs", "DatasetSpec")],
    "ModalitySpec": [("loader/src/selection/modality.rs", "ModalitySpec")],
    "NeighbourSpec": [("loader/src/neighbours.rs", "NeighbourSpec")],
    "AxisQuery and OpenOptions": [
        ("soma-io/src/axis_query.rs", "AxisQuery"),
        ("soma-io/src/experiment.rs", "OpenOptions"),
    ],
    "SampleSpec and its Variable: fields": [
        ("arrays/src/spec.rs", "SampleSpec"),
        ("arrays/src/spec.rs", "Variable"),
    ],
    "ImageSpec: image cubes": [("images/src/spec.rs", "ImageSpec")],
    "SequenceSpec: sequences": [("sequences/src/samples.rs", "SequenceSpec")],
}


def read_tables():
    """By heading, the text of the default of each setting."""
    tables = {}
    for section in re.split(r"^#+ ", (REPOSITORY / "docs/settings.md").read_text(), flags=re.M):
        heading, _, text = section.partition("\n")
        rows = tables.setdefault(heading.replace("`", ""), {})
        for line in text.splitlines():
            if line.startswith("| `"):
                names, default = line.split(" | ")[:2]
                rows |= dict.fromkeys(re.findall(r"`([^`]+)`", names), default)
    return tables


TABLES = read_tables()


def check_default(name, default, text):
    if default is inspect.Parameter.empty or default is dataclasses.MISSING:
        assert text == "required", f"{name} has no default"
    else:
        usual = isinstance(default, somafeed.Affine)
        assert f"`{'Affine()' if usual else repr(default)}`" in text, name


@pytest.mark.parametrize("name", DATA_SETS)
def test_settings_of_data_sets(name):
    of_all, own = TABLES["All data sets"], TABLES[name]
    parameters = inspect.signature(getattr(somafeed, name)).parameters
    parameters = {key: one for key, one in parameters.items() if one.kind != one.VAR_KEYWORD}
    for key, parameter in parameters.items():
        assert (key in of_all) != (key in own), f"{key} must stand in one table"
        check_default(key, parameter.default, of_all.get(key) or own[key])
    assert set(own) <= set(parameters)


def test_settings_of_the_engine():
    of_all = TABLES["All data sets"]
    parameters = inspect.signature(SampleDataset.__init__).parameters
    for key in somafeed.EngineSettings.__annotations__:
        check_default(key, parameters[key].default, of_all[key])
    every = set(parameters) - {"unknown"} | {"number_samples"}
    assert set(of_all) <= every


@pytest.mark.parametrize("heading", PARTS)
def test_settings_of_parts(heading):
    found = set()
    for name in PARTS[heading]:
        for field in dataclasses.fields(getattr(somafeed, name)):
            if field.init:
                default = field.default
                if field.default_factory is not dataclasses.MISSING:
                    default = field.default_factory()
                check_default(field.name, default, TABLES[heading][field.name])
                found.add(field.name)
    assert set(TABLES[heading]) == found


@pytest.mark.parametrize("heading", SPECS)
def test_fields_of_specifications(heading):
    found = set()
    for file, name in SPECS[heading]:
        text = (REPOSITORY / "crates" / file).read_text()
        body = re.search(rf"^pub struct {name} {{\n(.*?)^}}", text, flags=re.M | re.S)
        found |= set(re.findall(r"^    pub (\w+):", body[1], flags=re.M))
    assert found and set(TABLES[heading]) == found


def test_parameters_of_storage():
    """Those of ours that the documentation of the crates lists."""
    found = set()
    for file in ("soma-io/src/experiment.rs", "storage/src/open.rs"):
        text = (REPOSITORY / "crates" / file).read_text()
        found |= set(re.findall(r"^ *///.*?`(soma\.[a-z_.]+)`", text, flags=re.M))
    assert len(found) > 8 and found <= set(TABLES["Storage"])
