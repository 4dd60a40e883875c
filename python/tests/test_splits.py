"""`random_split` and the splits by group and by label."""

from collections import Counter

import numpy as np
import pytest
from batches import assert_board, joinids_of
from somafeed import ExperimentDataset
from somafeed.splits import SAMPLING_METHODS, RandomSplit


def random_parts(n, fractions, seed, method):
    return [part.tolist() for part in RandomSplit(fractions, seed, method).parts(n, None)]


# What tiledbsoma_ml 0.1.0 gives for `numpy.arange(15)`, so that a split survives the change to
# somafeed.
OF_TILEDBSOMA_ML = [
    ("deterministic", 111, [10, 5], [2, 3, 6, 7, 12]),
    ("deterministic", 444, [10, 5], [3, 6, 8, 9, 10]),
    ("stochastic_rounding", 111, [11, 4], [2, 3, 7, 12]),
    ("stochastic_rounding", 222, [11, 4], [2, 6, 9, 11]),
    ("stochastic_rounding", 444, [10, 5], [3, 6, 8, 9, 10]),
]


@pytest.mark.parametrize("method, seed, sizes, second", OF_TILEDBSOMA_ML)
def test_the_parts_are_those_of_tiledbsoma_ml(method, seed, sizes, second):
    parts = random_parts(15, (0.7, 0.3), seed, method)
    assert [len(part) for part in parts] == sizes
    assert parts[1] == second


def test_multinomial_parts_are_those_of_tiledbsoma_ml():
    assert random_parts(10, (0.7, 0.3), 111, "multinomial")[0] == [0, 1, 8, 9]
    assert random_parts(10, (0.7, 0.3), 666, "multinomial")[1] == [5, 7]


@pytest.mark.parametrize("method", SAMPLING_METHODS)
@pytest.mark.parametrize("fractions", [(1.0,), (0.5, 0.5), (0.7, 0.2, 0.1), (0.0, 1.0), (1 / 3,) * 3])
@pytest.mark.parametrize("n", [0, 1, 2, 9, 1000])
def test_every_row_is_in_one_part(method, fractions, n):
    for seed in range(5):
        parts = random_parts(n, fractions, seed, method)
        assert len(parts) == len(fractions)
        assert sorted(row for part in parts for row in part) == list(range(n))
        assert all(part == sorted(part) for part in parts)
        if method != "multinomial":
            for part, fraction in zip(parts, fractions):
                assert abs(len(part) - fraction * n) <= 1


def test_sizes_are_as_expected_on_average():
    fractions = (0.4, 0.3, 0.2, 0.1)
    n, n_seeds = 4, 4000
    for method in ("multinomial", "stochastic_rounding"):
        sums = np.zeros(4)
        for seed in range(n_seeds):
            sums += [len(part) for part in random_parts(n, fractions, seed, method)]
        assert np.abs(sums / n_seeds / n - fractions).max() < 0.02


@pytest.fixture
def whole(experiment):
    return ExperimentDataset(
        uri=experiment.uri, obs_column_names=["soma_joinid", "donor"], batch_size=7, seed=1
    )


def joinids_by_part(parts):
    return [sorted(joinids_of(part)) for part in parts]


def test_random_parts_have_each_cell_once(experiment, whole):
    parts = whole.random_split(0.7, 0.2, 0.1, seed=5)
    assert [len(part.query_ids.obs_joinids) for part in parts] == [70, 20, 10]
    by_part = joinids_by_part(parts)
    assert sorted(sum(by_part, [])) == experiment.joinids.tolist()
    for part, joinids in zip(parts, by_part):
        assert_board(experiment, part)
        assert part.query_ids.obs_joinids.tolist() == joinids
        assert len(part) == -(-len(joinids) // 7)
    assert joinids_by_part(whole.random_split(0.7, 0.2, 0.1, seed=5)) == by_part
    assert joinids_by_part(whole.random_split(0.7, 0.2, 0.1, seed=6)) != by_part


def test_parts_keep_their_cells_in_every_epoch_and_their_settings(whole):
    part, _ = whole.random_split(0.5, 0.5)
    first, second = joinids_of(part), joinids_of(part)
    assert sorted(first) == sorted(second) and first != second
    assert (part.batch_size, part.obs_column_names) == (7, ["soma_joinid", "donor"])
    assert whole.epoch == 0 and part.epoch == 2


def test_parts_of_parts(whole):
    train, test = whole.random_split(0.5, 0.5, seed=1)
    parts = [*train.random_split(0.5, 0.5, seed=2), *test.split_by_group("donor", 0.5, 0.5, seed=3)]
    assert sorted(sum(joinids_by_part(parts), [])) == list(range(100))


def test_parts_by_group_keep_groups_together(whole):
    parts = whole.split_by_group("donor", 0.6, 0.4, seed=9)
    donors = [{joinid // 7 % 5 for joinid in joinids} for joinids in joinids_by_part(parts)]
    assert donors[0] | donors[1] == set(range(5)) and not donors[0] & donors[1]
    pairs = whole.split_by_group(["donor", "kind"], 0.5, 0.5, seed=9)
    found = [{(j // 7 % 5, j % 3) for j in joinids} for joinids in joinids_by_part(pairs)]
    assert len(found[0] | found[1]) == 15 and not found[0] & found[1]
    with_labels = whole.split_by_group("donor", 0.6, 0.4, seed=9, label="kind")
    assert sorted(sum(joinids_by_part(with_labels), [])) == list(range(100))


def test_parts_by_label_have_their_share_of_each(whole):
    train, test = joinids_by_part(whole.split_by_label("kind", 0.8, 0.2, seed=9))
    assert sorted(train + test) == list(range(100))
    for kind, n in Counter(joinid % 3 for joinid in range(100)).items():
        assert abs(sum(joinid % 3 == kind for joinid in test) - n * 0.2) <= 1


def test_parts_of_several_experiments(experiment, gaps):
    genes = ("feature_id", ["ENSG00001"])
    boards = [
        ExperimentDataset(uri=board.uri, genes=genes, batch_size=9) for board in (experiment, gaps)
    ]
    both = ExperimentDataset.concat(boards)
    parts = both.split_by_group("donor", 0.5, 0.5, seed=2)
    found = [{joinid // 7 % 5 for joinid in joinids} for joinids in joinids_by_part(parts)]
    assert not found[0] & found[1]
    assert sum(len(joinids) for joinids in joinids_by_part(parts)) == 180


@pytest.mark.parametrize("fractions", [(), (0.7,), (0.999,), (0.5, 0.4), (1.5, -0.5), (float("nan"),)])
def test_fractions_that_are_none(whole, fractions):
    for split in (whole.random_split, lambda *f: whole.split_by_label("kind", *f)):
        with pytest.raises(ValueError, match="ractions"):
            split(*fractions)


def test_wrong_splits(whole):
    with pytest.raises(ValueError, match="by hand"):
        whole.random_split(0.5, 0.5, method="by hand")
    with pytest.raises(ValueError, match="no_such_column"):
        whole.split_by_group("no_such_column", 0.5, 0.5)
    with pytest.raises(ValueError, match="soma_joinid"):
        whole.split_by_group("soma_joinid", 0.5, 0.5)
    with pytest.raises(ValueError, match="seed"):
        whole.random_split(0.5, 0.5, seed=-1)
