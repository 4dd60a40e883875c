"""Several stores as one data set: samples, labels, mixtures, ranks, states, errors."""

import os
import pickle
import random
import re
import shutil

import numpy as np
import pytest
from naive_sequences import NaiveVocabulary
from somafeed import (
    ClassBalanced,
    ImageDataset,
    Kmers,
    Mixture,
    SequenceDataset,
    SequenceServers,
    SomafeedError,
    SourceDataset,
    Vocabulary,
    Weighted,
    Windows,
    experiment_dataloader,
)
from test_images import Stored
from test_sequences import drawn, written

pytestmark = pytest.mark.filterwarnings("ignore:num_workers is above 0")
SIZES = {"batch_size": 4, "io_batch_size": 16, "shuffle_chunk_size": 2, "seed": 3}


class SequenceStores:
    """Stores of sequences, each named `name-0` and so on."""

    def __init__(self, folder, sizes=(9, 1, 20), seed=0):
        self.texts = [drawn(seed + at, n) for at, n in enumerate(sizes)]
        self.stores = [
            written(folder / f"store-{at}", texts) for at, texts in enumerate(self.texts)
        ]

    def dataset(self, stores=None, **options):
        stores = self.stores if stores is None else stores
        return SequenceDataset(stores, number_samples=True, names=True, **{**SIZES, **options})

    def check(self, batch, store, place, at):
        """Whether the sample at a place of a batch is that of a store."""
        ends = batch["letter_offsets"]
        letters = bytes(np.asarray(batch["letters"])[ends[at] : ends[at + 1]]).decode()
        assert (letters, batch["name"][at]) == (self.texts[store][place], f"name-{place}")

    @property
    def sizes(self):
        return list(map(len, self.texts))


class ImageStores:
    """Folders of images, each named `P000` and so on."""

    def __init__(self, folder, sizes=(5, 3, 8)):
        self.folders = [Stored(folder / str(at), n, seed=at) for at, n in enumerate(sizes)]
        self.stores = [one.folder for one in self.folders]
        self.sizes = list(sizes)

    def dataset(self, stores=None, **options):
        settings = {"stored": "raw16", "number_samples": True, **SIZES, **options}
        return ImageDataset(self.stores if stores is None else stores, **settings)

    def check(self, batch, store, place, at):
        """Whether the sample at a place of a batch is that of a folder."""
        assert batch["image_name"][at] == f"P{place:03}"
        for name in ("features", "labels", "valid_pixels"):
            assert np.array_equal(batch[name][at], self.folders[store].truth[name][place])


class Rows:
    """A source whose samples know their number and that of the source."""

    def __init__(self, number, n_rows, dtype=np.float32):
        self.number, self.n_rows, self.dtype = number, n_rows, dtype

    def read(self, rows):
        assert (rows >= 0).all() and (rows < self.n_rows).all() and (np.diff(rows) > 0).all()
        return {"of": np.full(len(rows), self.number), "x": rows.astype(self.dtype)[:, None]}


class OwnStores:
    """Sources in Python."""

    def __init__(self, folder, sizes=(9, 1, 20)):
        self.stores = [Rows(number, n) for number, n in enumerate(sizes)]
        self.sizes = list(sizes)

    def dataset(self, stores=None, **options):
        stores = self.stores if stores is None else stores
        return SourceDataset(stores, number_samples=True, **{**SIZES, **options})

    def check(self, batch, store, place, at):
        assert (int(batch["of"][at]), batch["x"][at].tolist()) == (store, [place])


@pytest.fixture(scope="module", params=[SequenceStores, ImageStores, OwnStores])
def several(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("stores"))


def numbers_of(several, batches):
    """The samples' numbers, which are those of the right sample of the right store."""
    found, ends = [], np.cumsum(several.sizes)
    for batch in batches:
        assert str(batch["store"].dtype).endswith("int64")
        for at, (sample, store) in enumerate(zip(batch["sample"].tolist(), batch["store"].tolist())):
            assert store == np.searchsorted(ends, sample, side="right")
            several.check(batch, store, sample - (ends[store] - several.sizes[store]), at)
        found += batch["sample"].tolist()
    return found


def test_samples_are_those_of_all_stores(several):
    n = sum(several.sizes)
    for stores, names in (
        (several.stores, [0, 1, 2]), (dict(zip("abc", several.stores)), ["a", "b", "c"])
    ):
        ds = several.dataset(stores)
        assert (ds.n_samples, ds.stores, ds.label_columns[-1]) == (n, names, "store")
        assert ds.labels_of("store") == list(np.repeat(names, several.sizes))
        first, second = numbers_of(several, ds), numbers_of(several, ds)
        assert sorted(first) == sorted(second) == list(range(n)) and first != second
        assert numbers_of(several, several.dataset(stores, shuffle=False)) == list(range(n))
        in_order = [
            number
            for rank in range(3)
            for number in numbers_of(several, ds.in_order(world=(rank, 3)))
        ]
        assert in_order == list(range(n))


def bits(labels):
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return -(shares * np.log2(shares)).sum()


def test_the_entropy_of_labels_is_that_of_each_full_batch(several):
    ds = several.dataset()
    columns = {column: np.array(ds.labels_of(column)) for column in ds.label_columns}
    columns.pop("image_name", None)
    iterator = iter(ds)
    batches = [batch["sample"] for batch in iterator]
    found = iterator.stats()["entropy"]
    assert set(found) >= {"store"} and set(found) - {"image_name"} == set(columns)
    for column, labels in columns.items():
        full = [bits(labels[samples]) for samples in batches if len(samples) == 4]
        assert abs(found[column]["batch"] - np.mean(full)) < 1e-9
        assert abs(found[column]["spread"] - np.std(full, ddof=1)) < 1e-9
        assert abs(found[column]["cells"] - bits(labels)) < 1e-9
    # Padding does not count, and one store has no such column.
    padded = several.dataset(world=(0, 3), remainder="pad", batch_size=5)
    iterator = iter(padded)
    assert sum(len(batch["sample"]) for batch in iterator) > 0
    assert 0 <= iterator.stats()["entropy"]["store"]["cells"] <= np.log2(3)
    iterator = iter(several.dataset(several.stores[0]))
    list(iterator)
    assert "store" not in iterator.stats().get("entropy", {})


def test_one_store_has_no_number(several):
    ds = several.dataset(several.stores[0])
    assert ds.stores == [] and all("store" not in batch for batch in ds)
    with pytest.raises(ValueError, match="no column 'store'"):
        len(ds.with_sampling(ClassBalanced("store")))
    ds = several.dataset(several.stores[:1])
    assert ds.stores == [0] and all((batch["store"] == 0).all() for batch in ds)


def test_stores_are_mixed_by_weights(several):
    weights = {"a": 2, "b": 0, "c": 0.5}
    ds = several.dataset(
        dict(zip("abc", several.stores)), sampling=Mixture("store", weights, 4_000)
    )
    drawn = numbers_of(several, ds)
    stores = np.searchsorted(np.cumsum(several.sizes), drawn, side="right")
    counts = np.bincount(stores, minlength=3)
    assert counts[1] == 0 and len(drawn) == 4_000
    # Six standard deviations.
    assert abs(counts[0] / 4_000 - 0.8) < 6 * np.sqrt(0.8 * 0.2 / 4_000)
    # Samples of one store equally often.
    of_first = np.bincount(np.array(drawn)[stores == 0], minlength=several.sizes[0])
    expected = counts[0] / several.sizes[0]
    assert (np.abs(of_first - expected) < 6 * np.sqrt(expected)).all()
    # A part, sent to another process, draws from its own samples by the same weights.
    train, _ = ds.split_by_label("store", 0.5, 0.5, seed=1)
    train = train.with_sampling(Mixture("store", {"a": 1, "b": 0, "c": 1}, 60))
    again = pickle.loads(pickle.dumps(train))
    assert numbers_of(several, again) == numbers_of(several, train)
    assert set(numbers_of(several, train)) <= set(train.sample_numbers.tolist())
    # Each store equally often.
    balanced = several.dataset(sampling=ClassBalanced("store", 3_000))
    stores = np.searchsorted(np.cumsum(several.sizes), numbers_of(several, balanced), side="right")
    assert (np.abs(np.bincount(stores) - 1_000) < 6 * np.sqrt(1_000)).all()


def test_parts_keep_stores_apart(several):
    ds = several.dataset(dict(zip("abc", several.stores)))
    parts = ds.split_by_group("store", 0.5, 0.5, seed=2)
    found = [set(part.labels_of("store")) for part in parts]
    assert found[0] | found[1] == set("abc") and not found[0] & found[1]
    for part in parts:
        assert sorted(numbers_of(several, part)) == part.sample_numbers.tolist()
    again = pickle.loads(pickle.dumps(parts[0]))
    assert numbers_of(several, again) == numbers_of(several, parts[0])


def test_ranks_and_states(several):
    n = sum(several.sizes)
    of_ranks = [several.dataset(world=(rank, 2), remainder="pad") for rank in range(2)]
    found = [numbers_of(several, ds) for ds in of_ranks]
    assert len(found[0]) == len(found[1]) <= n / 2 + 4
    assert set(found[0] + found[1]) == set(range(n))
    whole = numbers_of(several, several.dataset())
    for n_batches in range(1, 4):
        ds = several.dataset()
        iterator = iter(ds)
        first = numbers_of(several, [next(iterator) for _ in range(n_batches)])
        other = several.dataset()
        other.load_state_dict(iterator.state_dict())
        assert first + numbers_of(several, other) == whole
    if isinstance(several, OwnStores):
        return
    # A state of the same stores in another order is refused.
    other = several.dataset(several.stores[::-1])
    other.load_state_dict(iterator.state_dict())
    with pytest.raises(ValueError, match="samples|sources|other"):
        next(iter(other))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(several, start):
    ds = several.dataset(form="torch")
    loader = experiment_dataloader(ds, num_workers=2, multiprocessing_context=start)
    assert numbers_of(several, loader) == numbers_of(several, several.dataset())


@pytest.mark.parametrize("seed", range(int(os.environ.get("SOMAFEED_RANDOM_SEQUENCES", "12"))))
def test_words_are_those_of_all_stores(tmp_path, seed):
    generator = random.Random(seed)
    sizes = [generator.randint(1, 20) for _ in range(generator.randint(1, 4))]
    stores = SequenceStores(tmp_path, sizes, seed=100 * seed)
    texts = sum(stores.texts, [])
    kmers = Kmers(3, padding=generator.randint(0, 2), alphabet="ACGT")
    naive = NaiveVocabulary(texts, 3, 3, 3, kmers.padding, "fail", "ACGT")
    ds = stores.dataset(
        kmers=kmers, letters=True, integers="int64", batch_size=generator.randint(1, 9),
        threads=generator.randint(1, 3), shuffle=generator.random() < 0.5,
    )
    assert ds.vocabulary.words == Vocabulary.count(stores.stores, kmers).words == naive.words
    assert ds.vocabulary.counts.tolist() == naive.counts
    assert ds.names == [f"name-{at}" for of_store in stores.texts for at in range(len(of_store))]
    assert ds.summary["n_letters"] == sum(map(len, texts))
    seen = []
    for batch in ds:
        frames = np.split(batch["input_ids"], batch["offsets"][1:-1])
        expected = [frame for row in batch["sample"] for frame in naive.encode(texts[row])]
        assert [frame.tolist() for frame in frames] == expected
        seen += numbers_of(stores, [batch])
    assert sorted(seen) == list(range(len(texts)))
    windows = stores.dataset(kmers=kmers, windows=Windows(1))
    assert {row for batch in windows for row in batch["sequences"].tolist()} <= set(seen)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return ImageStores(tmp_path_factory.mktemp("images"))


def test_images_are_selected_in_each_folder(images):
    ds = images.dataset(images=["P004", "P001"], shuffle=False)
    assert ds.names == ["P004", "P001", "P001", "P004", "P001"]
    assert ds.labels_of("store") == [0, 0, 1, 2, 2]
    [batch] = images.dataset(images=["P004", "P001"], shuffle=False, batch_size=5)
    assert batch["store"].tolist() == [0, 0, 1, 2, 2]
    for at, (store, place) in enumerate([(0, 4), (0, 1), (1, 1), (2, 4), (2, 1)]):
        images.check(batch, store, place, at)
    # A folder of which no image is selected keeps its number.
    ds = images.dataset(dict(zip("abc", images.stores)), images=["P004"])
    assert ds.labels_of("store") == ["a", "c"] and ds.stores == ["a", "b", "c"]


def test_labels_of_images_with_one_name(images):
    n = sum(images.sizes)
    names = images.dataset().names
    stores = list(np.repeat([*"abc"], images.sizes))
    order = list(reversed(range(n)))
    table = {
        "image_name": [names[at] for at in order], "store": [stores[at] for at in order],
        "weight": [float(at == 6) for at in order],
    }
    ds = images.dataset(dict(zip("abc", images.stores)), labels=table)
    assert ds.labels_of("weight") == [float(at == 6) for at in range(n)]
    assert numbers_of(images, ds.with_sampling(Weighted("weight", 3))) == [6] * 3
    del table["store"]
    with pytest.raises(ValueError, match="give labels= the column 'store', too"):
        images.dataset(labels=table)
    # One folder's images have names of their own, so its label may be called like the column.
    one = {"image_name": names[:5], "store": ["x"] * 5}
    assert images.dataset(images.stores[0], labels=one).labels_of("store") == ["x"] * 5
    with pytest.raises(ValueError, match="no row for 5 of 16 samples, 'P000' of 'a'"):
        images.dataset(
            dict(zip("abc", images.stores)),
            labels={"image_name": names[5:], "store": stores[5:]},
        )


def test_folders_that_differ(images, tmp_path):
    other = Stored(tmp_path / "other", 3, (6, 5, 3))
    with pytest.raises(ValueError, match=r"\[6, 5, 4\].*\[6, 5, 3\]") as raised:
        images.dataset([images.stores[0], other.folder])
    assert images.stores[0] in str(raised.value) and other.folder in str(raised.value)
    copied = tmp_path / "copied"
    shutil.copytree(images.stores[1], copied)
    shutil.rmtree(copied / "raw16")
    with pytest.raises((SomafeedError, OSError), match="raw16"):
        images.dataset([images.stores[0], str(copied)])
    for form in ("raw32", "dat", "zarr"):
        ds = images.dataset([images.stores[0], str(copied)], stored=form)
        assert len(set(ds.sample_numbers.tolist())) == 8
        assert sorted(number for batch in ds for number in batch["sample"].tolist()) == [*range(8)]


def test_a_damaged_file_is_named_with_its_folder(images, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(images.stores[1], copied)
    (copied / "raw16/P001.blosc").write_bytes(b"x")
    with pytest.raises(SomafeedError, match=re.escape(str(copied))):
        list(images.dataset([images.stores[0], str(copied)]))
    ds = images.dataset([images.stores[0], str(copied)], on_error="skip")
    with pytest.warns(RuntimeWarning, match="P001 was skipped"):
        found = [number for batch in ds for number in batch["sample"].tolist()]
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 7]


BAD = {
    "no store": (ValueError, "name at least one", lambda several: []),
    "a number": (TypeError, "neither a store nor several|a source has", lambda several: 5),
    "a number among them": (TypeError, "5, which is none", lambda several: [*several.stores, 5]),
    "a list in a list": (TypeError, "type list", lambda several: [several.stores]),
    "settings": (TypeError, "config=", lambda several: {"vfs.s3.region": "eu-1"}),
    "a name that is none": (TypeError, "names", lambda several: {(1,): several.stores[0]}),
    "one that is not there": ((OSError, SomafeedError, TypeError), "nowhere", lambda several: [*several.stores, "nowhere"]),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(several, name):
    kind, words, stores = BAD[name]
    with pytest.raises(kind, match=words):
        several.dataset(stores(several))


BAD_MIXTURES = {
    "a store without a weight": (ValueError, "without a weight", {0: 1, 1: 1}),
    "a store that is not there": (ValueError, "no sample has 5", {0: 1, 1: 1, 2: 1, 5: 1}),
    "a negative weight": (ValueError, "share", {0: 1, 1: 1, 2: -1}),
    "no number": (TypeError, "a weight must be a number", {0: 1, 1: 1, 2: "1"}),
    "a list": (TypeError, "dictionary", [1, 1, 1]),
    "zeros": (ValueError, "weight", {0: 0, 1: 0, 2: 0}),
}


@pytest.mark.parametrize("name", BAD_MIXTURES)
def test_bad_mixtures(several, name):
    kind, words, weights = BAD_MIXTURES[name]
    with pytest.raises(kind, match=words):
        len(several.dataset(sampling=Mixture("store", weights)))


def test_sources_that_differ():
    for other in (Rows(1, 5, np.float64), SourceOf({"x": np.zeros((5, 2))})):
        with pytest.raises(ValueError, match="'a' have of of int64.*those of 'b'"):
            SourceDataset({"a": Rows(0, 3), "b": other})
    with pytest.raises(ValueError, match="'store' is the name"):
        SourceDataset([SourceOf({"store": np.zeros(3)})] * 2)
    SourceDataset(SourceOf({"store": np.zeros(3)}))
    # One without samples has none to compare.
    ds = SourceDataset([Rows(0, 0), Rows(1, 3)], shuffle=False, batch_size=3)
    assert [batch["store"].tolist() for batch in ds] == [[1, 1, 1]]


class SourceOf:
    """Samples of arrays in memory."""

    def __init__(self, arrays):
        self.arrays, self.n_rows = arrays, len(next(iter(arrays.values())))

    def read(self, rows):
        return {name: array[rows] for name, array in self.arrays.items()}


def test_no_message_has_a_secret(several):
    if isinstance(several, OwnStores):
        return
    secret = "SECRETKEY123"
    stores = [several.stores[0], f"s3://user:{secret}@bucket/x"]
    config = {
        "vfs.s3.endpoint_override": "127.0.0.1:1", "vfs.s3.scheme": "http",
        "vfs.s3.connect_max_tries": "1", "soma.retry_limit_ms": "1", "vfs.s3.aws_secret_access_key": secret,
        "vfs.s3.aws_access_key_id": f"{secret}ID",
    }
    with pytest.raises(Exception) as raised:  # noqa: PT011
        several.dataset(stores, config=config)
    assert secret not in str(raised.value) + repr(raised.value)
    with pytest.raises(TypeError) as raised:
        several.dataset([several.stores[0], {"key": secret}])
    assert secret not in str(raised.value)


def test_servers_and_files_are_joined_in_messages(several):
    if isinstance(several, SequenceStores):
        servers = SequenceServers("redis://127.0.0.1:1", retry_for=0.1)
        with pytest.raises(ConnectionError):
            several.dataset([several.stores[0], servers])
