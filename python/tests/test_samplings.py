"""Samples of cells, and the number of each cell's experiment."""

import pickle
from collections import Counter

import numpy as np
import pytest
import somafeed
from batches import assert_board, joinids_of
from somafeed import (
    AtMostPerClass,
    ClassBalanced,
    ExperimentDataset,
    GroupBatches,
    Mixture,
    Stratified,
    Weighted,
    WithReplacement,
    experiment_dataloader,
)

SAMPLES = [
    WithReplacement(), WithReplacement(250), Weighted("share", 40, replacement=False),
    Weighted("share", 400), ClassBalanced("kind", 300), ClassBalanced(["kind", "donor"]),
    Stratified("kind", 30), AtMostPerClass("kind", 10),
]


def dataset(board, **options):
    options = {"batch_size": 7, "seed": 3, "shuffle_chunk_size": 1, "io_batch_size": 32, **options}
    return ExperimentDataset(uri=board.uri, **options)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_has_as_many_cells_as_are_drawn(experiment, sample, shuffle):
    ds = dataset(experiment, sampling=sample, shuffle=shuffle)
    n_samples = getattr(sample, "n_samples", 30) or 100
    assert ds.n_samples == n_samples and len(ds) == -(-n_samples // 7)
    batches = list(ds)
    assert_board(experiment, batches)
    found = joinids_of(batches)
    assert len(found) == n_samples and len(batches) == len(ds)
    again = dataset(experiment, sampling=sample, shuffle=shuffle)
    assert joinids_of(again) == found
    assert joinids_of(again) != found or not getattr(sample, "replacement", True)


def test_what_is_drawn(experiment):
    def kinds(sample):
        return Counter(joinid % 3 for joinid in joinids_of(dataset(experiment, sampling=sample)))

    assert Counter(joinids_of(dataset(experiment, sampling=WithReplacement(1000)))).most_common(1)[0][1] > 1
    without = joinids_of(dataset(experiment, sampling=Weighted("share", 99, replacement=False)))
    # The first cell has weight 0.
    assert sorted(without) == list(range(1, 100))
    assert sorted(kinds(Stratified("kind", 50)).values()) == [16, 17, 17]
    assert kinds(AtMostPerClass("kind", 4)) == {0: 4, 1: 4, 2: 4}
    few = dataset(experiment, obs_filter="kind == 'T cell' or soma_joinid == 0", sampling=ClassBalanced("kind", 1000))
    found = Counter(joinid % 3 for joinid in joinids_of(few))
    assert 400 < found[0] < 600 and found[0] + found[2] == 1000


def test_labels_are_mixed_by_weights(experiment):
    weights = {"B cell": 0.5, "T cell": 0, "Müller glia": 1.5, "never seen": 0}
    found = joinids_of(dataset(experiment, sampling=Mixture("kind", weights, 2_000)))
    of_kind = Counter(joinid % 3 for joinid in found)
    assert of_kind[2] == 0 and sum(of_kind.values()) == 2_000
    assert abs(of_kind[0] - 500) < 120
    # Numbers, too: of each cell's data set.
    parts = dataset(experiment).random_split(0.9, 0.1, seed=1)
    both = ExperimentDataset.concat(parts, experiment_column="from")
    mixed = both.with_sampling(Mixture("from", {0: 1, 1: 3}, 2_000))
    small = set(parts[1].query_ids.obs_joinids.tolist())
    share = np.mean([joinid in small for joinid in joinids_of(mixed)])
    assert abs(share - 0.75) < 0.06
    balanced = both.with_sampling(ClassBalanced("from", 2_000))
    share = np.mean([joinid in small for joinid in joinids_of(pickle.loads(pickle.dumps(balanced)))])
    assert abs(share - 0.5) < 0.07
    for part in both.split_by_group("from", 0.5, 0.5, seed=1):
        found = joinids_of(pickle.loads(pickle.dumps(part)))
        assert len({joinid in small for joinid in found}) == 1 and found == joinids_of(part)
    halves = both.split_by_label("from", 0.5, 0.5, seed=1)
    assert [sum(joinid in small for joinid in joinids_of(half)) for half in halves] == [5, 5]
    assert set(joinids_of(halves[0].split_by_group("from", 1.0, seed=1)[0])) == set(joinids_of(halves[0]))
    few = both.with_sampling(AtMostPerClass(["from", "kind"], 2))
    assert len(joinids_of(few)) == 12
    for column, weights, words in (
        ("kind", {"B cell": 1}, "without a weight"), ("from", {0: 1, 1: 1, 2: 1}, "no cell has 2"),
        ("kind", {"glia": 1}, "no cell has 'glia'"), ("nothing", {"a": 1}, "nothing"),
    ):
        with pytest.raises(ValueError, match=words):
            len(both.with_sampling(Mixture(column, weights)))


def test_every_epoch_draws_anew_and_resumes(experiment):
    ds = dataset(experiment, sampling=WithReplacement(60))
    whole = [joinids_of(ds) for _ in range(2)]
    assert whole[0] != whole[1] and ds.epoch == 2
    ds.set_epoch(1)
    iterator = iter(ds)
    first = [next(iterator) for _ in range(4)]
    resumed = dataset(experiment, sampling=WithReplacement(60))
    resumed.load_state_dict(iterator.state_dict())
    assert joinids_of(first) + joinids_of(resumed) == whole[1]
    other = dataset(experiment, sampling=WithReplacement(61))
    other.load_state_dict(iterator.state_dict())
    with pytest.raises(ValueError, match="sampling"):
        next(iter(other))


def test_parts_and_copies_draw_from_their_own_cells(experiment):
    ds = dataset(experiment, sampling=ClassBalanced("kind"))
    train, test = ds.random_split(0.8, 0.2, seed=1)
    for part, n in ((train, 80), (test, 20)):
        assert part.n_samples == n
        assert set(joinids_of(part)) <= set(part.query_ids.obs_joinids.tolist())
    every = test.with_sampling(None)
    assert sorted(joinids_of(every)) == test.query_ids.obs_joinids.tolist()
    assert test.sampling is not None
    train.set_epoch(0)
    again = pickle.loads(pickle.dumps(train))
    assert len(pickle.dumps(train)) < 10_000
    assert joinids_of(again) == joinids_of(train.with_sampling(ClassBalanced("kind")))


def test_ranks_share_one_sample(experiment):
    def of(rank, size):
        return dataset(experiment, sampling=WithReplacement(96), batch_size=8, world=(rank, size))

    alone = Counter(joinids_of(of(0, 1)))
    assert Counter(joinids_of(of(0, 3)) + joinids_of(of(1, 3)) + joinids_of(of(2, 3))) == alone
    with pytest.raises(ValueError, match="seed"):
        next(iter(dataset(experiment, sampling=WithReplacement(96), seed=None, shuffle=False, world=(0, 2))))


@pytest.mark.filterwarnings("ignore:num_workers is above 0", "ignore:This DataLoader")
def test_workers_draw_the_same_sample(experiment):
    ds = dataset(experiment, sampling=ClassBalanced("kind", 50))
    expected = joinids_of(dataset(experiment, sampling=ClassBalanced("kind", 50)))
    assert joinids_of(experiment_dataloader(ds, num_workers=2)) == expected


def test_batches_of_one_kind_with_controls_of_the_same_donor(experiment):
    kind, donor = lambda joinid: joinid % 3, lambda joinid: joinid // 7 % 5
    sample = GroupBatches("kind", 5, control="T cell", n_controls=2, match="donor")
    ds = dataset(experiment, sampling=sample, batch_size=5)
    batches = [joinids_of([batch]) for batch in ds]
    assert len(batches) == len(ds) == ds.n_samples // 5
    expected = Counter()
    for joinid in range(100):
        if kind(joinid) != 2:
            expected[kind(joinid), donor(joinid)] += 1
    found, cells = Counter(), Counter()
    for batch in batches:
        own = [joinid for joinid in batch if kind(joinid) != 2]
        assert len(own) == 3 and len({(kind(joinid), donor(joinid)) for joinid in batch}) == 2
        assert len(set(map(donor, batch))) == 1
        found[kind(own[0]), donor(own[0])] += 1
        cells.update(own)
    assert found == {group: n // 3 for group, n in expected.items() if n >= 3}
    assert set(cells.values()) == {1}

    # All ranks together have the same batches, each rank whole ones; a state resumes among them.
    ranks = [dataset(experiment, sampling=sample, batch_size=5, world=(rank, 2)) for rank in (0, 1)]
    of_ranks = [[joinids_of([batch]) for batch in rank] for rank in ranks]
    together = [batch for pair in zip(*of_ranks, strict=True) for batch in pair]
    assert together == batches[: len(together)] and len(batches) - len(together) < 2
    iterator = iter(dataset(experiment, sampling=sample, batch_size=5))
    first = [next(iterator) for _ in range(3)]
    resumed = pickle.loads(pickle.dumps(dataset(experiment, sampling=sample, batch_size=5)))
    resumed.load_state_dict(iterator.state_dict())
    assert joinids_of(first) + joinids_of(resumed) == sum(batches, [])
    assert [joinids_of([batch]) for batch in ds] != batches

    with pytest.raises(ValueError, match="batches of 5 rows of one group, and batches have 10 rows"):
        next(iter(dataset(experiment, sampling=sample, batch_size=10)))
    some = dataset(experiment, obs_filter="kind != 'T cell' or donor != 1", sampling=sample, batch_size=5)
    with pytest.raises(ValueError, match="cells have no control that agrees with them in donor"):
        next(iter(some))

    whole = dataset(experiment, sampling=GroupBatches("donor", 8, fill=True), batch_size=8)
    donors = [{donor(joinid) for joinid in joinids_of([batch])} for batch in whole]
    assert all(len(of) == 1 for of in donors)
    whole.set_epoch(0)
    assert set(joinids_of(whole)) == set(range(100))
    for problem, wrong in [
        ("no cell has 'glia'", GroupBatches("kind", 5, control="glia", n_controls=1)),
        ("both control and n_controls", GroupBatches("kind", 5, control="T cell")),
        ("no room for other rows", GroupBatches("kind", 2, control="T cell", n_controls=2)),
        ("batches of 4 rows of one group", GroupBatches("kind", 4)),
    ]:
        with pytest.raises(ValueError, match=problem):
            next(iter(dataset(experiment, sampling=wrong, batch_size=5)))


def test_a_native_sampling(experiment):
    drawn = somafeed.Sampling.with_replacement(100, 30)
    assert len(joinids_of(dataset(experiment, sampling=drawn))) == 30
    with pytest.raises(ValueError, match="100 rows"):
        next(iter(dataset(experiment, obs_joinids=range(50), sampling=drawn)))


@pytest.mark.parametrize("sample, message", [
    (ClassBalanced("no_such_column"), "no_such_column"),
    (ClassBalanced("soma_joinid"), "different in every row"),
    (Weighted("label"), "label"),
    (Weighted("share", 100, replacement=False), "100"),
    (Stratified("kind", 101), "101"),
])
def test_samples_that_cannot_be_drawn(experiment, sample, message):
    with pytest.raises(ValueError, match=message):
        len(dataset(experiment, sampling=sample))


GENES = ("feature_id", ["ENSG00004", "ENSG00002"])


@pytest.mark.parametrize("obs_form", ["pandas", "arrow", "codes"])
def test_the_number_of_the_experiment_is_a_column(experiment, gaps, obs_form):
    columns = ["kind", "soma_joinid"]
    parts = [
        dataset(board, genes=GENES, obs_column_names=columns, obs_form=obs_form)
        for board in (experiment, gaps)
    ]
    both = ExperimentDataset.concat(parts, experiment_column="from")
    n_cells = 0
    for ds in (both, *pickle.loads(pickle.dumps(both)).random_split(0.5, 0.5, seed=1)):
        for _, obs in ds:
            found = np.asarray(obs["from"])
            assert found.dtype == np.int64
            names = obs.column_names if obs_form == "arrow" else list(obs)
            assert names == both.column_names and sorted(names) == ["from", *columns]
            np.testing.assert_array_equal(found, np.asarray(obs["soma_joinid"]) >= 1000)
            n_cells += len(found)
    assert n_cells == 2 * 180
    with pytest.raises(ValueError, match="'kind'"):
        ExperimentDataset.concat(parts, experiment_column="kind")


def test_the_number_of_the_experiment_when_concatenated_twice(experiment, gaps, make_board):
    third = make_board(200, 260)
    a, b, c = (dataset(board, genes=GENES) for board in (experiment, gaps, third))
    numbers = {**dict.fromkeys(range(100), 0), **dict.fromkeys(range(1000, 1240, 3), 1)}
    numbers |= dict.fromkeys(range(200, 260), 2)
    inner = ExperimentDataset.concat([a, b], experiment_column="from")
    for both in (
        ExperimentDataset.concat([inner, c]),
        ExperimentDataset.concat([inner, c], experiment_column="from"),
        ExperimentDataset.concat([a, ExperimentDataset.concat([b, c])], experiment_column="from"),
    ):
        found = {}
        for _, obs in both:
            assert list(obs) == ["soma_joinid", "from"] == both.column_names
            found |= dict(zip(obs["soma_joinid"], obs["from"], strict=True))
        assert found == numbers
    renamed = ExperimentDataset.concat([inner, c], experiment_column="study")
    assert renamed.column_names == ["soma_joinid", "study"]
    with pytest.raises(ValueError, match="'soma_joinid' is already a column"):
        ExperimentDataset.concat([inner, c], experiment_column="soma_joinid")


def test_columns_of_different_genes_are_not_mixed(experiment, gaps, make_board):
    same = make_board(200, 260)
    for others, message in (
        ([dataset(experiment), dataset(same)], "genes="),
        ([dataset(experiment, genes=GENES), dataset(gaps, genes=(GENES[0], GENES[1][::-1]))], "genes="),
        ([dataset(experiment, genes=GENES), dataset(experiment, var_joinids=[4, 2])], "genes="),
        ([dataset(experiment, var_joinids=[1, 2]), dataset(experiment, var_joinids=[2, 1])], "other genes"),
    ):
        with pytest.raises(ValueError, match=message):
            ExperimentDataset.concat(others)
    halves = dataset(experiment, var_joinids=[1, 2]).random_split(0.5, 0.5, seed=1)
    filtered = dataset(experiment, var_filter="soma_joinid > 0 and soma_joinid < 3")
    assert ExperimentDataset.concat([*halves, filtered]).dataset.shape == (200, 2)


def test_encoders_by_name_are_fitted_to_all(experiment):
    some, others = (
        dataset(experiment, obs_filter=f"kind {sign} 'T cell'", obs_form="codes", encoders=["kind"])
        for sign in ("==", "!=")
    )
    both = ExperimentDataset.concat([some, others])
    [encoder] = both.encoders
    assert encoder.n_classes == 3
    for _, obs in both:
        assert obs["kind"].tolist() == (obs["soma_joinid"] % 3).tolist()
    given = dataset(experiment, obs_filter="kind == 'T cell'", obs_form="codes", encoders=some.encoders)
    with pytest.raises(ValueError, match="B cell|glia"):
        ExperimentDataset.concat([given, others])


def test_the_parts_of_concatenated_splits_have_the_same_codes(experiment):
    whole = [
        dataset(experiment, obs_filter=f"kind {sign} 'T cell'", obs_form="codes", encoders=["label"])
        for sign in ("==", "!=")
    ]
    splits = [ds.random_split(0.5, 0.5, seed=1) for ds in whole]
    train, test = (ExperimentDataset.concat(parts) for parts in zip(*splits, strict=True))
    [of_train], [of_test] = train.encoders, test.encoders
    # No label is in both parts, and the encoders know them all.
    assert of_train.n_classes == 100 and of_train.to_json() == of_test.to_json()
    found = sorted(code for ds in (train, test) for _, obs in ds for code in obs["label"].tolist())
    assert found == list(range(100))


def test_a_split_of_an_experiment_that_has_changed_is_an_error(experiment, make_board, tmp_path):
    import shutil

    uri = tmp_path / "growing"
    shutil.copytree(experiment.uri, uri)
    ds = ExperimentDataset(uri=uri, seed=1)
    sent = [
        pickle.dumps(part)
        for part in (ds.random_split(0.5, 0.5, seed=1)[0], ds.split_by_label("kind", 0.5, 0.5, seed=1)[1])
    ]
    assert [pickle.loads(one).dataset.shape[0] for one in sent] == [50, 50]
    shutil.rmtree(uri)
    shutil.copytree(make_board(0, 110).uri, uri)
    for one in sent:
        with pytest.raises(ValueError, match="has changed: 110 cells.*100.*timestamp="):
            pickle.loads(one).dataset
    # What was opened before does not notice; what reads columns again, does.
    with pytest.raises(ValueError, match="has changed"):
        ds.split_by_label("kind", 0.5, 0.5, seed=1)
