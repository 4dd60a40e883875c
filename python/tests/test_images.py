"""Image cubes: batches, parts, ranks, states, workers, damaged files, errors."""

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiledbsoma_python
from programs import bucket, hidden, started
from somafeed import (
    Affine,
    AtMostPerClass,
    Augmentation,
    ClassBalanced,
    Hierarchical,
    ImageDataset,
    Key,
    SomafeedError,
    Weighted,
    WithReplacement,
    experiment_dataloader,
)
from torchdata.stateful_dataloader import StatefulDataLoader

FORMS = ["dat", "raw32", "raw16", "zarr"]
N = 23
SPECTRUM = Key("spectra")
ALL = {"features": Key.cube(), "labels": "labels", "valid_pixels": "valid_pixels", "spectrum": SPECTRUM}


class Stored:
    """A folder of images, and the arrays that are stored in it."""

    def __init__(self, folder, n=N, shape=(6, 5, 4), seed=0):
        self.folder = str(folder)
        script = Path(__file__).with_name("write_images.py")
        words = [self.folder, n, *shape, seed]
        subprocess.run([tiledbsoma_python(), script, *map(str, words)], check=True)
        self.truth = dict(np.load(Path(folder) / "truth.npz"))
        self.names = [f"P{i:03}" for i in range(n)]

    def dataset(self, **options):
        settings = {"stored": "raw16", "keys": ALL, "batch_size": 4, "seed": 3, **options}
        return ImageDataset(self.folder, **settings)

    def places(self, batches):
        """The places of the images, whose arrays are right."""
        found = []
        for batch in batches:
            at = [self.names.index(name) for name in batch["image_name"]]
            for name in set(batch) & set(self.truth):
                assert np.array_equal(batch[name], self.truth[name][at]), name
            found += at
        return found


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return Stored(tmp_path_factory.mktemp("images") / "data")


@pytest.mark.parametrize("seed", range(4))
def test_random_data_sets_are_read_as_numpy_has_them(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n, shape = int(rng.integers(1, 12)), rng.integers(1, 9, 3).tolist()
    data = Stored(tmp_path / "data", n, shape, seed)
    for form in FORMS:
        batch_size = int(rng.integers(1, 5))
        options = {
            "batch_size": batch_size, "io_batch_size": batch_size * int(rng.integers(1, 4)),
            "threads": int(rng.integers(1, 4)), "shuffle": bool(rng.integers(2)),
            "form": ["numpy", "torch"][rng.integers(2)],
        }
        dtype = [None, "float32", "float16"][rng.integers(3)]
        ds = data.dataset(stored=form, dtype=dtype, **options)
        batches = list(ds)
        assert sorted(data.places(batches)) == list(range(n)), (form, options)
        wide = form in ("dat", "raw32") if dtype is None else dtype == "float32"
        is_wide = {np.asarray(batch["features"]).dtype == np.float32 for batch in batches}
        assert is_wide == {wide}, (form, dtype)


def test_normalised_spectra_are_those_of_numpy(stored):
    for form in ("dat", "raw32"):
        for norm, order in (("l1", 1), ("l2", 2)):
            ds = stored.dataset(stored=form, normalization=norm, keys=["features"], batch_size=N,
                                shuffle=False)
            cubes = stored.truth["features"]
            right = cubes / np.linalg.norm(cubes, ord=order, axis=3, keepdims=True)
            assert np.array_equal(next(iter(ds))["features"], right)


def test_each_image_comes_once_an_epoch_in_another_order(stored):
    ds = stored.dataset()
    assert (len(ds), ds.n_samples) == (6, N)
    assert ds.shapes == {
        "features": (6, 5, 4), "labels": (6, 5), "valid_pixels": (6, 5), "spectrum": (7,)
    }
    assert (ds.names, ds.classes) == (stored.names, ["skin", "liver"])
    first, second = stored.places(ds), stored.places(ds)
    assert sorted(first) == sorted(second) == list(range(N))
    assert first != second and first != sorted(first)
    assert stored.places(stored.dataset()) == first
    assert stored.places(stored.dataset(shuffle=False)) == sorted(first)
    assert repr(ds) == (
        "ImageDataset(23 images with features, labels, valid_pixels, spectrum in batches of 4)"
    )


def test_images_are_selected_by_name(stored):
    wanted = ["P007", "P002", "P011"]
    for form in FORMS:
        ds = stored.dataset(stored=form, images=wanted, shuffle=False, number_samples=True)
        [batch] = ds
        assert ds.names == batch["image_name"] == wanted
        assert batch["sample"].tolist() == [0, 1, 2]
        assert stored.places([batch]) == [7, 2, 11]


def test_batches_belong_to_the_user(stored):
    for options in ({}, {"io_batch_size": 8}, {"form": "torch"}):
        kept = []
        for batch in stored.dataset(**options):
            stored.places([batch])
            batch["labels"] += 10
            kept.append(batch["labels"])
        assert all(((one >= 10) & (one < 15)).all() for one in kept)


def test_a_bucket_delivers_what_a_folder_does(stored):
    with bucket(stored.folder) as (uri, config):
        ds = ImageDataset(uri, stored="raw16", keys=ALL, batch_size=4, seed=3, config=config)
        assert stored.places(ds) == stored.places(stored.dataset())
        assert next(running := iter(ds)) and running.stats()["prefetch_blocks"] == 3


def test_tensors_share_the_memory_of_the_block(stored):
    ds = stored.dataset(form="torch", number_samples=True)
    batches = list(ds)
    assert {type(batch[key]) for batch in batches for key in (*ALL, "sample")} == {torch.Tensor}
    assert len({batch["features"].data_ptr() for batch in batches}) == len(batches)
    # Nothing was copied: a batch has the memory that its block was decoded into.
    stats = ds.__iter__()
    next(stats)
    assert stats.stats()["kept_bytes"] >= 4 * (6 * 5 * 4 * 2 + 60 + 56)


def test_parts(stored):
    ds = stored.dataset()
    train, test = ds.random_split(0.75, 0.25, seed=1)
    assert sorted(stored.places(train) + stored.places(test)) == list(range(N))
    assert sorted(stored.places(test)) == [stored.names.index(name) for name in test.names]
    test = ds.random_split(0.75, 0.25, seed=1)[1]
    copied = pickle.loads(pickle.dumps(test))
    assert len(pickle.dumps(test)) < 10_000
    assert stored.places(copied) == stored.places(test)
    shares = [ds.in_order(world=(rank, 3)) for rank in range(3)]
    batches = [batch for share in shares for batch in share]
    assert stored.places(batches) == np.concatenate([b["sample"] for b in batches]).tolist()
    assert stored.places(batches) == list(range(N))
    sampled = ds.with_sampling(WithReplacement(100))
    drawn = stored.places(sampled)
    assert len(drawn) == 100 and len(set(drawn)) <= N


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_and_states(stored, size):
    found, state = [], None
    options = {"io_batch_size": 12, "remainder": "pad"}
    for rank in range(size):
        iterator = iter(stored.dataset(batch_size=12 // size, world=(rank, size), **options))
        found += stored.places([next(iterator)])
        state = iterator.state_dict()
    # Two ranks go on.
    for rank in range(2):
        ds = stored.dataset(batch_size=6, world=(rank, 2), **options)
        ds.load_state_dict(state)
        found += stored.places(ds)
    assert set(found) == set(range(N)) and len(found) == 24


@pytest.mark.parametrize("n_workers", [0, 2])
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(stored, n_workers, start):
    options = {"multiprocessing_context": start} if n_workers else {}
    alone = stored.places(stored.dataset())
    assert stored.places(experiment_dataloader(stored.dataset(), num_workers=n_workers, **options)) == alone
    if start == "spawn":
        return
    stateful = StatefulDataLoader(stored.dataset(), batch_size=None, num_workers=n_workers)
    found = []
    for at, batch in enumerate(stateful):
        found += stored.places([batch])
        if at == 2:
            state = stateful.state_dict()
            break
    again = StatefulDataLoader(stored.dataset(), batch_size=None, num_workers=n_workers)
    again.load_state_dict(state)
    assert found + stored.places(again) == alone


def test_threads_share_an_iterator(stored):
    iterator, found = iter(stored.dataset(batch_size=1)), []
    threads = [threading.Thread(target=lambda: found.extend(stored.places(iterator))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(N))


def test_a_forked_process_goes_on(stored):
    ds = stored.dataset()
    next(iter(ds))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(sorted(stored.places(ds)) != list(range(N)))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_stats_and_memory(stored):
    iterator = iter(stored.dataset(memory="128MiB"))
    next(iterator)
    stats = iterator.stats()
    assert stats["n_batches"] == 1 and stats["bytes_read"] > 0 and stats["skipped"] == {}
    assert "waiting" in iterator.waited_for() or "first batch" in iterator.waited_for()
    with pytest.raises(MemoryError, match="memory"):
        next(iter(stored.dataset(memory="1KiB")))


# Files that stop being readable: a pipe without a writer, on which reading waits for ever.
WAITING = """
import os, sys
from somafeed import ImageDataset
ds = ImageDataset(sys.argv[1], ["features"], stored="raw16", shuffle=False)
os.remove(sys.argv[2])
os.mkfifo(sys.argv[2])
{work}
"""


@pytest.fixture
def copied(stored, tmp_path):
    """A folder of images that a test may damage."""
    folder = tmp_path / "copied"
    shutil.copytree(stored.folder, folder)
    return folder


def test_other_threads_run_while_a_batch_is_waited_for(copied):
    work = (
        "import threading\n"
        "waiting = threading.Thread(target=lambda: list(ds), daemon=True)\n"
        "waiting.start()\n"
        "n = sum(range(3_000_000))\n"
        "print('ran', waiting.is_alive())"
    )
    path = copied / "raw16/P000.blosc"
    command = [sys.executable, "-c", WAITING.format(work=work), copied, path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("ran True\n", "", 0)


def test_ctrl_c_ends_the_wait_for_a_batch(copied):
    work = "print('waits', flush=True)\nnext(iter(ds))"
    command = [sys.executable, "-c", WAITING.format(work=work), copied, copied / "raw16/P000.blosc"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "waits\n"
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, written = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in written and time.monotonic() - began < 5


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def other_shape(path):
    path.write_bytes((path.parent / "../spectra" / path.name).read_bytes())


DAMAGES = {
    "a truncated cube": ("raw16", "raw16/P005.blosc", cut, SomafeedError),
    "a truncated camera's file": ("dat", "dat/P005_SpecCube.dat", cut, SomafeedError),
    "truncated masks": ("raw32", "segmentations/P005.blosc", cut, SomafeedError),
    "an empty file": ("raw16", "raw16/P005.blosc", lambda path: path.write_bytes(b""), SomafeedError),
    "a file that is gone": ("raw16", "raw16/P005.blosc", Path.unlink, FileNotFoundError),
    "another shape": ("raw16", "raw16/P005.blosc", other_shape, SomafeedError),
    "a truncated chunk": ("zarr", "cubes.zarr/features/c/5/0/0/0", cut, SomafeedError),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_image_is_named_or_skipped(stored, copied, what):
    form, path, damage, kind = DAMAGES[what]
    for io_batch_size in (4, 8):
        options = {"stored": form, "io_batch_size": io_batch_size}
        whole = ImageDataset(copied, ALL, 4, seed=3, **options)
        skipping = ImageDataset(copied, ALL, 4, seed=3, on_error="skip", **options)
        saved = (copied / path).read_bytes()
        damage(copied / path)
        # A chunk is named by its arrays.
        named = path.partition("/features")[0]
        with pytest.raises(kind, match=f"{named} of image P005"):
            list(whole)
        iterator = iter(skipping)
        batches = list(iterator)
        found = stored.places(batches)
        assert sorted(found) == [place for place in range(N) if place != 5]
        assert sum((batch["skipped"] for batch in batches), []) == ["P005"]
        [(name, reason)] = iterator.stats()["skipped"].items()
        assert name == "P005" and named in reason
        (copied / path).write_bytes(saved)


def test_a_missing_file_is_found_before_the_first_read(copied):
    (copied / "raw16/P003.blosc").unlink()
    with pytest.raises(FileNotFoundError, match=re.escape("1 of 23 images have no file")):
        ImageDataset(copied, stored="raw16")
    ImageDataset(copied, stored="raw16", images=["P001"])


BAD = {
    "a folder that is not there": (FileNotFoundError, "images.json", {"folder": "no-images"}),
    "several forms": (ValueError, "dat, raw32, raw16, zarr: give stored=", {"stored": None}),
    "an unknown form of cubes": (ValueError, "expected one of dat", {"stored": "raw64"}),
    "a form of an earlier version": (ValueError, "packed16", {"stored": "packed16"}),
    "a mask that is not there": (SomafeedError, "no array \"depth\"", {"keys": ["depth"]}),
    "an array that is not there": (FileNotFoundError, "depth", {"keys": ["depth"], "stored": "zarr"}),
    "a folder of keys that is not there": (FileNotFoundError, "spectres", {"keys": {"s": Key("spectres")}}),
    "a folder elsewhere": (ValueError, "not a folder of the data set", {"keys": {"s": Key("../x")}}),
    "no keys": (ValueError, "at least one key", {"keys": []}),
    "a text": (TypeError, "keys", {"keys": "features"}),
    "a number as key": (TypeError, "Key", {"keys": {"a": 1}}),
    "a reserved name": (ValueError, "image_name", {"keys": {"image_name": "labels"}}),
    "an unknown role": (ValueError, "role", {"keys": {"a": Key("spectra", role="vector")}}),
    "a vector as a mask": (ValueError, "a mask has 6 x 5 pixels", {"keys": {"a": Key("spectra", role="mask")}}),
    "a mask as an image": (ValueError, "an image has", {"keys": {"a": Key("segmentations", "labels", "image")}}),
    "an unknown form": (ValueError, "jax", {"form": "jax"}),
    "an unknown type": (ValueError, "float64", {"dtype": "float64"}),
    "an unknown norm": (ValueError, "l3", {"normalization": "l3"}),
    "the norm of float16": (ValueError, "only float32 is normalised", {"normalization": "l1"}),
    "an image that is not there": (ValueError, "no image \"P099\"", {"images": ["P001", "P099"]}),
    "an image twice": (ValueError, "P001 twice", {"images": ["P001", "P001"]}),
    "no image": (ValueError, "no images", {"images": []}),
    "one name": (TypeError, "images must be several names", {"images": "P001"}),
    "no chunks": (ValueError, "multiple", {"io_batch_size": 5, "shuffle_chunk_size": 2}),
    "no folder": (ValueError, "name at least one", {"folder": {}}),
    "a number as address": (TypeError, "neither a store nor several", {"folder": 5}),
    "another way with errors": (ValueError, "on_error", {"on_error": "ignore"}),
    "a label": (ValueError, "no column 'x'; there are image_name, domain, subject", {"sampling": ClassBalanced("x")}),
    "a text as augmentation": (TypeError, "augment", {"augment": "flip"}),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(stored, name):
    kind, words, options = BAD[name]
    settings = {"folder": stored.folder, "stored": "raw16", **options}
    with pytest.raises(kind) as raised:
        len(ImageDataset(**settings))
    assert words in str(raised.value)


def test_the_list_that_has_another_shape_is_named(copied):
    text = (copied / "images.json").read_text()
    (copied / "images.json").write_text(text.replace("[6, 5, 4]", "[5, 6, 4]"))
    with pytest.raises(SomafeedError, match="has shape"):
        next(iter(ImageDataset(copied, ["features"], stored="raw16")))
    (copied / "images.json").write_text("{")
    with pytest.raises(SomafeedError, match="images.json"):
        ImageDataset(copied, ["features"], stored="raw16")


def test_numpy_is_enough(stored):
    program = hidden("torch", "pandas", "scipy", "pyarrow", "xarray") + (
        f"ds = somafeed.ImageDataset({stored.folder!r}, stored='zarr', shuffle=False)\n"
        "print(next(iter(ds))['image_name'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "['P000']\n"


def split_names(parts, ds, column):
    """The labels in each part."""
    labels = dict(zip(ds.names, ds.labels_of(column), strict=True))
    return [[labels[name] for batch in part for name in batch["image_name"]] for part in parts]


def tables(stored, tmp_path):
    """One table in each form, its rows in another order than the images, with one more."""
    import pandas
    import pyarrow

    names = [*reversed(stored.names), "P999"]
    columns = {
        "image_name": names,
        "organ": ["liver" if int(name[1:]) % 3 else "skin" for name in names],
        "weight": [float(int(name[1:]) == 7) for name in names],
    }
    frame = pandas.DataFrame(columns)
    frame.to_csv(tmp_path / "labels.csv", index=False)
    return [columns, frame, pyarrow.table(columns), str(tmp_path / "labels.csv"), tmp_path / "labels.csv"]


def test_labels_are_joined_by_the_images_names(stored, tmp_path):
    organs = ["liver" if i % 3 else "skin" for i in range(N)]
    for table in tables(stored, tmp_path):
        ds = stored.dataset(labels=table, keys=["labels"])
        assert ds.label_columns == ["image_name", "domain", "subject", "organ", "weight"]
        assert ds.labels_of("organ") == organs
        part = ds.random_split(0.5, 0.5, seed=4)[1]
        assert part.labels_of("image_name") == part.names
        halves = ds.split_by_label("organ", 0.5, 0.5, seed=1)
        counts = [sorted(map(labels.count, ("skin", "liver"))) for labels in split_names(halves, ds, "organ")]
        assert np.abs(np.diff(counts, axis=0)).max() <= 1
        subjects = split_names(ds.split_by_group("subject", 0.6, 0.4, seed=2, label="organ"), ds, "subject")
        assert not set(subjects[0]) & set(subjects[1]) and len(sum(subjects, [])) == N
        seven = stored.places(ds.with_sampling(Weighted("weight", 5)))
        assert seven == [7] * 5
        balanced = ds.with_sampling(ClassBalanced("organ", 3000))
        share = np.mean([organs[place] == "skin" for place in stored.places(balanced)])
        assert 0.45 < share < 0.55
        few = stored.places(ds.with_sampling(AtMostPerClass(["organ", "domain"], 2)))
        assert len(few) == len(set(few)) == 8
        # A part of a part, sent to another process, has the labels of its own images.
        part = halves[0].split_by_group("subject", 0.5, 0.5, seed=3)[0].with_sampling(
            ClassBalanced("organ")
        )
        copied = pickle.loads(pickle.dumps(part))
        assert len(pickle.dumps(part)) < 10_000
        assert stored.places(copied) == stored.places(part)


def test_hierarchical_batches_have_every_domain(stored):
    sampling = Hierarchical("domain", "subject", 4, n_batches=6)
    ds = stored.dataset(sampling=sampling, keys=["labels"])
    batches = list(ds)
    assert len(ds) == len(batches) == 6
    for batch in batches:
        places = stored.places([batch])
        assert sorted(place % 2 for place in places) == [0, 0, 1, 1]
    organs = {"image_name": stored.names, "organ": [i % 4 // 2 for i in range(N)]}
    sampling = Hierarchical("domain", "subject", 2, label="organ", class_draw="least_drawn")
    for batch in stored.dataset(sampling=sampling, labels=organs, batch_size=2, keys=["labels"]):
        first, second = stored.places([batch])
        assert first % 4 // 2 == second % 4 // 2 and first % 2 != second % 2
    with pytest.raises(ValueError, match="class_draw"):
        len(stored.dataset(sampling=Hierarchical("domain", "subject", 4, class_draw="some")))
    with pytest.raises(ValueError, match="batch"):
        len(stored.dataset(sampling=Hierarchical("domain", "subject", 1)))


BAD_LABELS = {
    "no names": (ValueError, "no column 'image_name'", {"organ": ["a"]}),
    "missing rows": (ValueError, "no row for 22 of 23 samples, 'P001'", {"image_name": ["P000"]}),
    "two rows": (ValueError, "'P000' twice", {"image_name": ["P000", "P000"]}),
    "other lengths": (ValueError, "differ in length", {"image_name": ["P000"], "a": []}),
    "a number": (TypeError, "labels= is a table", 5),
    "no file": (FileNotFoundError, "no-labels.csv", "no-labels.csv"),
    "numbers as names": (TypeError, "names that are no texts", {1: ["P000"]}),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels(stored, name):
    kind, words, table = BAD_LABELS[name]
    with pytest.raises(kind, match=re.escape(words)):
        stored.dataset(labels=table)


def test_labels_that_cannot_be_used_are_named(stored):
    lists = {"image_name": stored.names, "a": [[1]] * N}
    with pytest.raises(TypeError, match="'a' that are no labels"):
        stored.dataset(labels=lists)
    texts = {"image_name": stored.names, "a": ["x"] * N, "b": [None, *range(1, N)]}
    for column in ("a", "b"):
        with pytest.raises(ValueError, match=f"'{column}' has labels that are not numbers"):
            len(stored.dataset(labels=texts, sampling=Weighted(column)))


AUGMENTATIONS = [
    Augmentation(),
    Augmentation(Affine(degrees=180, translate=(0.9, 0.4), scale=(0.3, 3), probability=1), seed=5),
    Augmentation(Affine(translate=(1, 1), probability=1), 0.5, 0.5, seed=2, valid_pixels="valid_pixels"),
    Augmentation(None, 1, 0.5, seed=9),
    Augmentation(Affine(0, (0, 0), (1, 1), 1), 0, 0),
]


@pytest.mark.parametrize("augmentation", AUGMENTATIONS)
@pytest.mark.parametrize("form", ["raw16", "raw32"])
def test_a_batch_is_mapped_on_a_device_as_by_the_threads(stored, augmentation, form):
    options = {"stored": form, "form": "torch", "number_samples": True}
    threads = stored.dataset(augment=augmentation, **options)
    plain = stored.dataset(**options)
    n_changed = 0
    for epoch in range(2):
        for mapped, batch in zip(threads, plain, strict=True):
            assert plain.epoch == epoch
            found = augmentation.on_batch(batch, epoch=epoch, keys=plain.keys)
            assert list(found) == list(mapped) and found["image_name"] == mapped["image_name"]
            for name in ("labels", "valid_pixels", "spectrum"):
                assert torch.equal(found[name], mapped[name]), name
            assert found["features"].dtype == mapped["features"].dtype
            torch.testing.assert_close(found["features"], mapped["features"], rtol=1e-5, atol=1e-5)
            n_changed += not torch.equal(mapped["features"], batch["features"])
            if augmentation.valid_pixels:
                assert mapped["valid_pixels"].flatten(1).any(1).all()
    assert n_changed or augmentation.affine == Affine(0, (0, 0), (1, 1), 1)


def test_the_map_of_an_image_depends_on_seed_epoch_and_image_alone(stored):
    def mapped(**options):
        ds = stored.dataset(keys=["features"], **{"augment": Augmentation(seed=4), **options})
        ds.set_epoch(1)
        return {
            name: cube.tobytes() for batch in ds
            for name, cube in zip(batch["image_name"], batch["features"], strict=True)
        }

    first = mapped()
    assert mapped(batch_size=3, threads=3, seed=8) == mapped(shuffle=False) == first
    assert mapped(augment=Augmentation(seed=5)) != first
    ds = stored.dataset(keys=["features"]).with_augmentation(Augmentation(seed=4))
    part = pickle.loads(pickle.dumps(ds.random_split(0.5, 0.5, seed=1)[0]))
    part.set_epoch(1)
    n = 0
    for batch in part:
        for name, cube in zip(batch["image_name"], batch["features"], strict=True):
            assert first[name] == cube.tobytes()
            n += 1
    assert n == part.n_samples
    plain = part.with_augmentation(None)
    assert sorted(stored.places(plain)) == [stored.names.index(name) for name in part.names]


BAD_MAPS = {
    "degrees": (ValueError, {"affine": Affine(degrees=400)}),
    "scale": (ValueError, {"affine": Affine(scale=(2, 1))}),
    "probability of a horizontal flip": (ValueError, {"horizontal_flip": 1.5}),
    "affine": (TypeError, {"affine": {"degrees": 5}}),
    "seed": (ValueError, {"seed": -1}),
}


@pytest.mark.parametrize("words", BAD_MAPS)
def test_bad_maps(stored, words):
    kind, options = BAD_MAPS[words]
    with pytest.raises(kind, match=words):
        Augmentation(**options)


def test_maps_that_do_not_fit_the_batch_are_refused(stored):
    keeping = Augmentation(valid_pixels="valid_pixels")
    with pytest.raises(ValueError, match="valid_pixels, which is not a mask"):
        stored.dataset(keys=["features"], augment=keeping)
    ds = stored.dataset(keys=["features"], form="torch")
    batch = next(iter(ds))
    with pytest.raises(ValueError, match="number_samples=True"):
        keeping.on_batch(batch, epoch=0, keys=ds.keys)
    batch["sample"] = torch.arange(4)
    with pytest.raises(ValueError, match="no mask 'valid_pixels'"):
        keeping.on_batch(batch, epoch=0, keys=ds.keys)


def test_the_program_of_the_page(tmp_path):
    page = (Path(__file__).parents[2] / "docs/cubes.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [words] = re.findall(r"`somafeed (cubes generate pigs[^`]*)`", page)
    command = [sys.executable, "-m", "somafeed", *words.split()]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("5 batches of [4, 24, 32, 4], True\n", "")
