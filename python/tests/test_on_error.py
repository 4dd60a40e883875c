"""Samples that cannot be read: an error, or left out, counted and named, whatever their kind."""

import itertools
import logging
import re
import subprocess
import warnings

import pytest
from conftest import TESTS, tiledbsoma_python
from somafeed import (
    ExperimentDataset,
    FieldDataset,
    Kmers,
    SequenceDataset,
    SomafeedError,
    SourceDataset,
    Variable,
    Vocabulary,
    experiment_dataloader,
    import_sequences,
)
from somafeed import _somafeed as native

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* was skipped:RuntimeWarning", "ignore:num_workers is above 0"
)


def damage(path, start, n_bytes):
    """Overwrites bytes in the middle of a file."""
    content = bytearray(path.read_bytes())
    assert start + n_bytes < len(content)
    content[start : start + n_bytes] = b"\xff" * n_bytes
    path.write_bytes(content)


WRITE_FIELDS = """
import sys
import numpy as np, zarr
root = zarr.open_group(sys.argv[1], mode="w", zarr_format=3)
a = root.create_array("a", shape=(40, 30), chunks=(3, 30), dtype="f4")
a[:] = np.arange(40)[:, None]
"""


def write_fields(path):
    """An array `a` of 40 steps, each of the number of the step."""
    subprocess.run([tiledbsoma_python(), "-c", WRITE_FIELDS, path], check=True)


def fields(tmp_path, **options):
    path = tmp_path / "fields.zarr"
    write_fields(path)
    # A frame of zstd that is broken: steps 12, 13 and 14.
    damage(path / "a/c/4/0", 0, 8)
    variables = {"now": "a", "before": Variable("a", steps=-1)}
    made = FieldDataset(path, variables, number_samples=True, **options)
    return made, lambda batch: batch["sample"].tolist(), {11, 12, 13, 14}, "step 1[2-5]$"


def soma(tmp_path, **options):
    uri = tmp_path / "experiment"
    native.generate_example(str(uri), n_cells=2000, n_genes=400)
    [values] = uri.glob("ms/RNA/X/raw/__fragments/*/a0.tdb")
    damage(values, values.stat().st_size // 2, 400)
    made = ExperimentDataset(uri=uri, obs_column_names=["soma_joinid"], **options)
    return made, lambda batch: batch[1]["soma_joinid"].tolist(), None, "cell [0-9]+$"


def anndata(tmp_path, **options):
    path = tmp_path / "cells.zarr"
    script = [tiledbsoma_python(), TESTS / "write_anndata.py", path, "30000", "20"]
    subprocess.run(script, check=True, capture_output=True)
    chunks = sorted(file for file in (path / "X/data").rglob("*") if file.name.isdigit())
    assert len(chunks) > 1
    damage(chunks[1], 0, 30)
    made = ExperimentDataset(uri=path, obs_column_names=["soma_joinid"], **options)
    return made, lambda batch: batch[1]["soma_joinid"].tolist(), None, "cell [0-9]+$"


def sequences(tmp_path, **options):
    letters = ["ACGT" * (at % 7 + 1) for at in range(50)]
    fasta = tmp_path / "letters.fasta"
    fasta.write_text("".join(f">name-{at}\n{one}\n" for at, one in enumerate(letters)))
    import_sequences(fasta, tmp_path / "store")
    words = Vocabulary.count(tmp_path / "store", Kmers(2))
    # Bytes of sequences 43 and 44 that are not letters.
    damage(tmp_path / "store/letters", sum(map(len, letters[:44])) - 2, 4)
    made = SequenceDataset(tmp_path / "store", words, number_samples=True, **options)
    return made, lambda batch: batch["sample"].tolist(), {43, 44}, "name-4[34]$"


class Failing:
    n_rows = 60

    def read(self, rows):
        if {17, 18, 40} & set(rows.tolist()):
            raise KeyError("this row is damaged")
        return {"row": rows}


def own(_tmp_path, **options):
    made = SourceDataset(Failing(), **options)
    return made, lambda batch: batch["row"].tolist(), {17, 18, 40}, "sample (17|18|40)$"


KINDS = pytest.mark.parametrize("kind", [fields, soma, anndata, sequences, own])
SIZES = {"batch_size": 4, "io_batch_size": 32, "shuffle_chunk_size": 2, "seed": 3}


def order(dataset):
    """The samples of each batch of the dataset's next epoch, without reading."""
    numbers, n = dataset.sample_numbers, dataset.n_samples

    class Numbers:
        n_rows = n

        def read(self, rows):
            return {"row": numbers[rows]}

    options = {name: getattr(dataset, name) for name in (*SIZES, "shuffle", "remainder")}
    same = SourceDataset(Numbers(), world=dataset.world, **options)
    return [batch["row"].tolist() for batch in same]


@KINDS
def test_epochs_are_logged_and_nothing_is_printed(kind, tmp_path, caplog, capfd):
    ds, numbers_of, _, _ = kind(tmp_path, on_error="skip", **SIZES)
    capfd.readouterr()
    with caplog.at_level(logging.INFO, "somafeed"):
        n_delivered = [sum(len(numbers_of(batch)) for batch in ds) for _ in range(2)]
    n_skipped = ds.n_samples - n_delivered[0]
    lines = [one.getMessage() for one in caplog.records if one.name == "somafeed.epochs"]
    name, noun = type(ds).__name__, ds._noun
    for epoch, (line, n) in enumerate(zip(lines, n_delivered, strict=True)):
        begin = f"{name}: epoch {epoch}: {len(ds)} batches of {n} {noun}, {n_skipped} skipped in "
        assert line.startswith(begin), line
        assert line.endswith("of the time")
    assert capfd.readouterr() == ("", "")


@KINDS
def test_what_cannot_be_read_is_an_error_or_left_out(kind, tmp_path):
    ds, numbers_of, damaged, names = kind(tmp_path, on_error="skip", **SIZES)
    iterator = iter(ds)
    found = [numbers_of(batch) for batch in iterator]
    planned = order(ds)
    if damaged is None:
        damaged = set(itertools.chain(*planned)) - set(itertools.chain(*found))
        assert 0 < len(damaged) < ds.n_samples / 2
    assert found == [[one for one in batch if one not in damaged] for batch in planned]
    stats = iterator.stats()
    assert stats["n_skipped"] == len(damaged)
    assert stats["n_rows"] == ds.n_samples - len(damaged)
    assert len(stats["skipped"]) == min(100, len(damaged))
    assert all(re.match(names, name) and reason for name, reason in stats["skipped"].items())

    # From the middle of the epoch.
    ds.set_epoch(0)
    half = iter(ds)
    taken = [numbers_of(next(half)) for _ in range(7)]
    state = half.state_dict()
    resumed = iter(ds)
    resumed.load_state_dict(state)
    assert taken + [numbers_of(batch) for batch in resumed] == found

    ds.on_error = "raise"
    ds.set_epoch(0)
    with pytest.raises((SomafeedError, OSError, KeyError, ValueError)):
        list(ds)


@pytest.mark.parametrize("kind", [fields, own])
def test_each_rank_has_as_many_batches_as_without_damage(kind, tmp_path):
    all_found, n_skipped = [], 0
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
        ds, numbers_of, damaged, _ = kind(
            tmp_path / str(rank), on_error="skip", world=(rank, 3), remainder="pad", **SIZES
        )
        iterator = iter(ds)
        found = [numbers_of(batch) for batch in iterator]
        assert found == [[one for one in batch if one not in damaged] for batch in order(ds)]
        n_skipped += iterator.stats()["n_skipped"]
        all_found.append(found)
    assert len({len(found) for found in all_found}) == 1
    assert n_skipped >= len(damaged)
    delivered = set(itertools.chain(*itertools.chain(*all_found)))
    assert delivered == set(ds.sample_numbers.tolist()) - damaged


def test_a_batch_without_samples_is_empty(tmp_path):
    ds, numbers_of, damaged, _ = fields(tmp_path, on_error="skip", batch_size=1, shuffle=False)
    found = [numbers_of(batch) for batch in ds]
    assert found == [[] if one in damaged else [one] for one in range(39)]
    assert [len(batch["now"]) for batch in ds] == [len(one) for one in found]
    cells, numbers_of, *_ = soma(
        tmp_path, on_error="skip", batch_size=1, io_batch_size=32, shuffle=False
    )
    shapes = {(len(numbers_of(batch)), batch[0].shape) for batch in cells}
    assert shapes == {(1, (400,)), (0, (0, 400))}


def test_the_first_one_warns(tmp_path):
    ds, *_ = own(tmp_path, on_error="skip", **SIZES)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert len(list(ds)) == len(ds)
    [one] = [warning for warning in warned if warning.category is RuntimeWarning]
    assert "sample " in str(one.message) and "this row is damaged" in str(one.message)
    # As an error it ends the epoch before the batch that lacks a sample.
    ds.set_epoch(0)
    iterator, delivered = iter(ds), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="was skipped"):
            delivered.extend(iterator)
    ds.load_state_dict(iterator.state_dict())
    rest = list(ds)
    assert len(rest) == len(ds) - len(delivered)


class Gone:
    """A source whose reads fail after the first."""

    n_rows = 2000

    def __init__(self, error):
        self.error, self.n_reads = error, 0

    def read(self, rows):
        self.n_reads += 1
        if self.n_reads > 1:
            raise self.error
        return {"row": rows}


@pytest.mark.parametrize("error", [ConnectionError("no server"), MemoryError(), TimeoutError()])
def test_errors_of_the_system_are_never_skipped(error):
    source = Gone(error)
    ds = SourceDataset(source, on_error="skip", **SIZES)
    with pytest.raises(type(error)):
        list(ds)
    assert source.n_reads <= 4


def test_a_source_that_is_gone_is_an_error():
    source = Gone(OSError("it is gone"))
    ds = SourceDataset(source, on_error="skip", **SIZES)
    with pytest.raises(SomafeedError, match="one after another cannot be read.*it is gone"):
        list(ds)
    # Some rows of each block are tried.
    assert source.n_reads < 10 * 20


def test_workers_skip_and_warn(tmp_path):
    ds, numbers_of, damaged, _ = fields(tmp_path, on_error="skip", **SIZES)
    found = [numbers_of(batch) for batch in experiment_dataloader(ds, num_workers=2)]
    assert sorted(itertools.chain(*found)) == [one for one in range(39) if one not in damaged]


def test_another_choice_is_refused():
    with pytest.raises(ValueError, match="on_error is 'raise' or 'skip', not 'ignore'"):
        SourceDataset(Failing(), on_error="ignore")
