"""Joinids, and how small they pickle."""

import pickle

import numpy as np
import pytest
from somafeed.joinids import Joinids


def pickled(joinids):
    return pickle.dumps(Joinids(joinids))


CASES = {
    "none": [],
    "one": [7],
    "range": range(5, 1000),
    "from zero": range(100),
    "runs": [*range(10, 500), *range(1000, 1003), *range(5000, 9000)],
    "gaps": range(1000, 5000, 3),
    "unordered": [5, 3, 9, 0],
    "descending": range(100, 0, -1),
    "largest": [0, 2**63 - 1],
    "drawn": sorted(np.random.default_rng(1).choice(100_000, 5000, replace=False).tolist()),
    "half": np.flatnonzero(np.random.default_rng(2).random(20_000) < 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_pickled_joinids_are_the_same(name):
    joinids = Joinids(CASES[name])
    again = pickle.loads(pickle.dumps(joinids))
    assert again == joinids and hash(again) == hash(joinids)
    assert again.array().dtype == np.int64
    assert again.array().tolist() == list(CASES[name])


def test_sizes():
    assert len(pickled(np.arange(5_000_000) + 7)) < 300
    thousand_runs = np.concatenate([np.arange(start, start + 900) for start in range(0, 1_000_000, 1000)])
    assert len(pickled(thousand_runs)) < 1000
    half = np.flatnonzero(np.random.default_rng(3).random(1_000_000) < 0.5)
    assert len(pickled(half)) < 250_000


def test_ranges_are_found():
    assert Joinids([4, 5, 6]).selection() == (4, 7)
    assert Joinids([]).selection().tolist() == []
    assert Joinids([6, 5]).selection().tolist() == [6, 5]


def test_order():
    assert Joinids([5, 3, 9]).ascending().array().tolist() == [3, 5, 9]
    with pytest.raises(ValueError, match="joinid 3 is selected twice"):
        Joinids([5, 3, 3]).ascending()


@pytest.mark.parametrize(
    "joinids", [[-1], [1.5], ["a"], [[1, 2]], np.array([2**63], np.uint64), 7]
)
def test_what_is_not_a_list_of_joinids(joinids):
    with pytest.raises(ValueError, match="joinids"):
        Joinids(joinids)


def test_joinids_cannot_be_changed():
    given = np.arange(3)
    joinids = Joinids(given)
    given[0] = 9
    assert joinids.array().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        joinids.array()[0] = 1
