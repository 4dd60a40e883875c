"""Patches of fields: their values, boxes at random places, ranks, labels, errors."""

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiledbsoma_python
from somafeed import FieldDataset, Patches, Sampling, Variable

N_STEPS, N_LAT, N_LON = 6, 20, 30
WRITE = """
import sys
import numpy as np, zarr
root = zarr.open_group(sys.argv[1], mode="w", zarr_format=3)
names = ["time", "lat", "lon"]
a = root.create_array("a", shape=(6, 20, 30), chunks=(1, 7, 9), dtype="f8", dimension_names=names)
a[:] = np.arange(6 * 20 * 30).reshape(6, 20, 30)
mask = root.create_array("mask", shape=(20, 30), chunks=(20, 30), dtype="i1", dimension_names=names[1:])
mask[:] = np.logical_and.outer(np.arange(20) < 5, np.arange(30) < 5)
lon = root.create_array("lon", shape=(30,), chunks=(30,), dtype="i4", dimension_names=["lon"])
lon[:] = np.arange(30) * 12
"""
WHOLE = np.arange(N_STEPS * N_LAT * N_LON, dtype=np.float64).reshape(N_STEPS, N_LAT, N_LON)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("patches") / "maps.zarr")
    subprocess.run([tiledbsoma_python(), "-c", WRITE, path], check=True)
    return path


def opened(store, patches, **options):
    options = {"batch_size": 4, "seed": 3, "number_samples": True, **options}
    return FieldDataset(store, ["a"], patches=patches, **options)


def boxes_of(batches, n):
    """The boxes by their samples, whose values are right."""
    found = {}
    for batch in batches:
        for sample, starts, values in zip(batch["sample"], batch["patch"], batch["a"]):
            lat, lon = (int(at) for at in starts)
            right = WHOLE[int(sample) // n, lat : lat + 8, lon : lon + 8]
            assert np.array_equal(values, right)
            assert found.setdefault(int(sample), (lat, lon)) == (lat, lon)
    return found


def test_patches_are_those_of_numpy(tmp_path):
    n = os.environ.get("SOMAFEED_RANDOM_FIELDS", "12")
    seed = os.environ.get("SOMAFEED_RANDOM_SEED", "0")
    script = Path(__file__).with_name("fields_in_patches.py")
    command = [tiledbsoma_python(), script, str(tmp_path), n, seed]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"{n} stores are cut as numpy cuts them\n"), (
        ended.stderr
    )


def test_a_rest_is_counted(store):
    ds = opened(store, Patches({"lat": 8, "lon": 8}, stride=6, padding={"lon": "reflect"}))
    assert {one: cut._asdict() for one, cut in ds.patches.items()} == {
        "lat": {"length": 20, "size": 8, "n": 3, "left_out": 0},
        "lon": {"length": 30, "size": 8, "n": 5, "left_out": 0},
    }
    ds = opened(store, Patches({"lat": 7, "lon": 9}))
    assert [(cut.n, cut.left_out) for cut in ds.patches.values()] == [(2, 6), (3, 3)]
    assert (ds.n_samples, ds.shapes, len(ds)) == (36, {"a": (7, 9)}, 9)
    assert opened(store, None).patches == {}


def test_boxes_depend_on_seed_epoch_and_sample_alone(store):
    patches = Patches({"lat": 8, "lon": 8}, random=6, seed=7)
    ds = opened(store, patches)
    first = boxes_of(ds, 6)
    assert len(first) == ds.n_samples == 36
    assert [first[sample] for sample in range(36)] == [tuple(at) for at in ds.patch_starts(0).tolist()]
    second = boxes_of(ds, 6)
    assert second != first
    ds.set_epoch(0)
    assert boxes_of(ds, 6) == first
    for size in (2, 3):
        found = {}
        for rank in range(size):
            found |= boxes_of(opened(store, patches, batch_size=2, world=(rank, size)), 6)
        assert found == first
    assert boxes_of(pickle.loads(pickle.dumps(opened(store, patches))), 6) == first
    other = boxes_of(opened(store, Patches({"lat": 8, "lon": 8}, random=6, seed=8)), 6)
    assert other != first

    # The state of two ranks, in the middle of an epoch, is gone on with by one.
    options = {"batch_size": 3, "io_batch_size": 6, "remainder": "drop"}
    found, state = {}, None
    for rank in range(2):
        iterator = iter(opened(store, patches, world=(rank, 2), **options))
        found |= boxes_of([next(iterator), next(iterator)], 6)
        state = iterator.state_dict()
    rest = opened(store, patches, **{**options, "batch_size": 6})
    rest.load_state_dict(state)
    found |= boxes_of(rest, 6)
    assert found == first


def test_all_places_occur(store):
    ds = opened(store, Patches({"lat": 8, "lon": 8}, padding={"lon": "periodic"}, random=2000))
    lat, lon = ds.patch_starts(3).T
    assert set(lat.tolist()) == set(range(N_LAT - 8 + 1)) and set(lon.tolist()) == set(range(N_LON))
    wanted = ds.patch_starts(3)
    batch = next(iter(ds.in_order()))
    for (lat, lon), values in zip(ds.patch_starts(0)[:4], batch["a"]):
        assert np.array_equal(values, np.roll(WHOLE[0], -lon, 1)[lat : lat + 8, :8])
    assert wanted.shape == (12_000, 2)


def test_boxes_are_chosen_by_their_label(store):
    """Patches with something of the mask come as often as those without."""
    patches = Patches({"lat": 5, "lon": 5})
    variables = {"a": "a", "mask": "mask"}
    ds = FieldDataset(store, variables, dim="time", patches=patches, batch_size=8, seed=1)
    assert ds.shapes == {"a": (5, 5), "mask": (5, 5)}
    has_label = np.concatenate([batch["mask"].any((1, 2)) for batch in ds.in_order()])
    assert has_label.tolist() == [number % 24 == 0 for number in range(ds.n_samples)]
    weights = np.where(has_label, 1 / has_label.sum(), 1 / (~has_label).sum())
    drawn = ds.with_sampling(Sampling.weighted(weights, 400))
    labels = np.concatenate([batch["mask"].any((1, 2)) for batch in drawn])
    assert len(labels) == 400 and 150 < labels.sum() < 250


def test_patches_are_labels(store):
    """Regions that are held out."""
    ds = opened(store, Patches({"lat": 10, "lon": 10}))
    assert ds.label_columns == ["patch"] and ds.labels_of("patch") == list(range(6)) * 6
    train, test = ds.split_by_group("patch", 0.5, 0.5, seed=1)
    regions = [set((part.sample_numbers % 6).tolist()) for part in (train, test)]
    assert not regions[0] & regions[1] and regions[0] | regions[1] == set(range(6))
    assert opened(store, Patches({"lat": 4}, random=2)).label_columns == []


def test_each_rank_reads_its_own_slice(store):
    """Slices of the grid that differ in length, with a halo across the date line."""
    whole = opened(store, None, batch_size=2)
    slices = [np.arange(-2, 18), np.arange(16, 32)]
    parts = [
        FieldDataset(
            store,
            {"a": Variable("a", isel={"lon": columns % N_LON})},
            batch_size=2, seed=3, world=(0, 1), number_samples=True,
        )
        for columns in slices
    ]
    n = 0
    for batch, west, east in zip(whole, *parts, strict=True):
        n += 1
        assert np.array_equal(batch["sample"], west["sample"])
        assert np.array_equal(batch["sample"], east["sample"])
        for part, columns in ((west, slices[0]), (east, slices[1])):
            assert np.array_equal(part["a"], batch["a"][:, :, columns % N_LON])
    assert n == 3


def test_forms(store):
    patches = Patches({"lon": 12}, padding={"lon": ("periodic", 2)})
    batch = next(iter(opened(store, patches, form="torch", shuffle=False)))
    assert batch["a"].shape == (4, N_LAT, 12) and isinstance(batch["patch"], torch.Tensor)
    assert batch["patch"].tolist() == [[-2], [10], [22], [-2]]


def test_statistics_are_those_of_the_patches(store):
    ds = opened(store, Patches({"lat": 20, "lon": 30}))
    assert np.allclose(ds.statistics()["a"].pairs, opened(store, None).statistics()["a"].pairs)


@pytest.mark.parametrize(
    ("patches", "problem"),
    [
        (Patches({"lat": 21}), "patches of lat: a patch has 21 indices and the dimension 20"),
        (Patches({"height": 2}), "patches of height: no variable has this dimension"),
        (Patches({"time": 2}), "beside that of the steps"),
        (Patches({"lat": 4}, padding={"lat": ("reflect", 20, 0)}), "padding of 20"),
        (Patches({"lat": 4}, padding={"lat": ("reflect", 0, 20)}), "reflection of 20"),
        (Patches({"lat": 4}, padding={"lat": ("periodic", 20)}), "padding of 20"),
    ],
)
def test_patches_that_cannot_be(store, patches, problem):
    with pytest.raises(ValueError, match=problem):
        opened(store, patches)


@pytest.mark.parametrize(
    ("error", "arguments", "problem"),
    [
        (TypeError, {"sizes": {}}, "sizes by dimensions"),
        (TypeError, {"sizes": 4}, "sizes by dimensions"),
        (ValueError, {"sizes": {"lat": 0}}, "size of 'lat' must be above 0"),
        (ValueError, {"sizes": {"lat": 4}, "stride": 0}, "stride of 'lat' must be above 0"),
        (ValueError, {"sizes": {"lat": 4}, "stride": {"lon": 4}}, "stride has 'lon'"),
        (ValueError, {"sizes": {"lat": 4}, "padding": {"lon": "reflect"}}, "padding has 'lon'"),
        (TypeError, {"sizes": {"lat": 4}, "padding": "reflect"}, "given by dimensions"),
        (ValueError, {"sizes": {"lat": 4}, "padding": {"lat": "wrap"}}, "'periodic'"),
        (ValueError, {"sizes": {"lat": 4}, "padding": {"lat": ("reflect", 1)}}, "before, after"),
        (ValueError, {"sizes": {"lat": 4}, "random": 0}, "random must be above 0"),
        (ValueError, {"sizes": {"lat": 4}, "random": 2, "stride": 2}, "no stride"),
        (ValueError, {"sizes": {"lat": 4}, "seed": -1}, "seed"),
    ],
)
def test_arguments_that_do_not_fit(error, arguments, problem):
    with pytest.raises(error, match=problem):
        Patches(**arguments)


def test_other_arguments_that_do_not_fit(store):
    with pytest.raises(TypeError, match=r"somafeed\.Patches"):
        FieldDataset(store, ["a"], patches={"lat": 4})
    with pytest.raises(ValueError, match="name of the patches' places"):
        FieldDataset(store, {"patch": "a"}, patches=Patches({"lat": 4}))
