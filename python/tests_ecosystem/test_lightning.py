"""Lightning's Trainer over a `DataModule`: parts, epochs, ranks, checkpoints and predictions."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from programs import N_CELLS, dataset, recorded, run
from somafeed import ClassBalanced
from somafeed.lightning import DataModule


def lightning(uri, folder, fails=False, **options):
    return run("lightning_ranks.py", uri, folder, json.dumps(options), fails=fails)


def steps(folder, stage="train"):
    """For each rank (epoch, joinids) of each step."""
    lines = recorded(folder, stage)
    return [[(one["epoch"], one["joinids"]) for one in of_rank] for of_rank in lines]


def joinids_of(loader):
    return [joinid for _, obs in loader for joinid in obs["soma_joinid"].tolist()]


def parts_of(module):
    """Joinids of the three parts."""
    parts = (module.train_dataset, module.validation_dataset, module.test_dataset)
    return [part.dataset.joinids().tolist() for part in parts]


def weights(folder):
    return torch.load(folder / "weights.pt")


def assert_equal_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


@pytest.fixture(scope="module")
def whole(uri, tmp_path_factory):
    """Three epochs of two ranks without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    lightning(uri, folder, devices=2, every_n_steps=7)
    return folder


def test_parts_by_fraction_donor_and_label(uri):
    for options in ({}, {"group": "donor_id"}, {"label": "cell_type"}):
        module = DataModule(dataset(uri), fractions=(0.6, 0.2, 0.2), **options)
        parts = parts_of(module)
        assert sorted(sum(parts, [])) == list(range(N_CELLS))
        assert parts_of(DataModule(dataset(uri), fractions=(0.6, 0.2, 0.2), **options)) == parts
        assert sorted(joinids_of(module.train_dataloader())) == parts[0]
        assert joinids_of(module.val_dataloader()) == parts[1]
        assert joinids_of(module.test_dataloader()) == parts[2]
        assert joinids_of(module.predict_dataloader()) == list(range(N_CELLS))


def test_donors_stay_together_and_labels_are_shared(uri):
    names = ["donor_id", "cell_type"]
    table = dataset(uri, obs_column_names=names, encoders=names)
    codes = table.dataset.codes()
    donors, types = codes.column("donor_id"), codes.column("cell_type")
    by_donor = parts_of(DataModule(dataset(uri), fractions=(0.5, 0.3, 0.2), group=["donor_id"]))
    found = [set(donors[part].tolist()) for part in by_donor]
    assert sum(map(len, found)) == len(set(donors.tolist())) == len(set.union(*found))
    by_label = parts_of(DataModule(dataset(uri), fractions=(0.5, 0.3, 0.2), label="cell_type"))
    for kind, n in Counter(types.tolist()).items():
        shares = [int((types[part] == kind).sum()) for part in by_label]
        assert np.allclose(shares, [n * 0.5, n * 0.3, n * 0.2], atol=1), (kind, shares)


def test_parts_that_are_missing(uri):
    module = DataModule(dataset(uri), fractions=(1.0,), sampling=ClassBalanced("cell_type", 100))
    assert module.val_dataloader() == [] and module.test_dataloader() == []
    assert len(joinids_of(module.train_dataloader())) == 100
    assert joinids_of(module.predict_dataloader()) == list(range(N_CELLS))
    with pytest.raises(ValueError, match="train, validation and test"):
        DataModule(dataset(uri), fractions=(0.4, 0.2, 0.2, 0.2))
    with pytest.raises(ValueError, match="sum to 1"):
        DataModule(dataset(uri), fractions=(0.4, 0.2))
    with pytest.raises(TypeError, match="a data set of somafeed"):
        DataModule(uri)


def test_ranks_train_on_each_cell_once_in_each_epoch(uri, whole):
    by_rank = steps(whole)
    n_train = len(DataModule(dataset(uri)).train_dataset.dataset.joinids())
    n_batches = n_train // 40
    assert [len(of_rank) for of_rank in by_rank] == [n_batches * 3] * 2
    orders = []
    for epoch in range(3):
        joinids = [[j for e, step in of_rank if e == epoch for j in step] for of_rank in by_rank]
        together = sum(joinids, [])
        assert len(set(together)) == len(together) == n_batches * 40
        orders.append(joinids)
    assert orders[0] != orders[1] != orders[2]
    # The data set by itself has the same batches.
    for rank, of_rank in enumerate(by_rank):
        alone = DataModule(dataset(uri, world=(rank, 2))).train_dataset
        alone.set_epoch(1)
        expected = [obs["soma_joinid"].tolist() for _, obs in alone]
        assert [step for epoch, step in of_rank if epoch == 1] == expected


def test_ranks_validate_each_cell_once(uri, whole):
    part = parts_of(DataModule(dataset(uri)))[1]
    by_rank = steps(whole, "validate")
    assert len(by_rank[0]) == len(by_rank[1])
    for epoch in range(3):
        joinids = [j for of_rank in by_rank for e, step in of_rank if e == epoch for j in step]
        assert joinids == part


@pytest.mark.parametrize("step", [7, 14, 21, 35])
def test_a_checkpoint_in_the_middle_of_an_epoch(uri, whole, tmp_path, step):
    """Ranks go on with the batches, and end with the weights, of the uninterrupted run."""
    lightning(uri, tmp_path, devices=2, resume=str(whole / f"step={step}.ckpt"))
    assert steps(tmp_path) == [of_rank[step:] for of_rank in steps(whole)]
    assert_equal_weights(weights(tmp_path), weights(whole))


def test_a_killed_rank(uri, whole, tmp_path):
    """Both ranks resume from the last checkpoint before one of them was killed."""
    killed, resumed = tmp_path / "killed", tmp_path / "resumed"
    lightning(uri, killed, fails=True, devices=2, every_n_steps=7, killed_at=26)
    assert max(int(file.stem.split("=")[1]) for file in killed.glob("*.ckpt")) == 21
    lightning(uri, resumed, devices=2, resume=str(killed / "step=21.ckpt"))
    assert steps(resumed) == [of_rank[21:] for of_rank in steps(whole)]
    assert_equal_weights(weights(resumed), weights(whole))


def test_a_failed_step_is_taken_again(uri, tmp_path):
    """A batch that was taken, but not trained on, comes again."""
    whole, failed, resumed = tmp_path / "whole", tmp_path / "failed", tmp_path / "resumed"
    lightning(uri, whole)
    output = lightning(uri, failed, fails=True, fails_at=25)
    assert "failed in the middle of a step" in output
    assert steps(failed)[0] == steps(whole)[0][:25]
    lightning(uri, resumed, resume=str(failed / "failed.ckpt"))
    assert steps(resumed)[0] == steps(whole)[0][25:]


def test_another_number_of_ranks_resumes(uri, whole, tmp_path):
    """Global batches are the same if batch size times ranks is."""
    cells = {"batch_size": 40, "remainder": "drop"}
    lightning(uri, tmp_path, cells=cells, resume=str(whole / "step=21.ckpt"))
    expected = [(a[0], set(a[1] + b[1])) for a, b in zip(*steps(whole))][21:]
    assert [(epoch, set(joinids)) for epoch, joinids in steps(tmp_path)[0]] == expected


@pytest.mark.parametrize("resumed_at", [9, 18])
def test_validation_and_limits_within_an_epoch(uri, tmp_path, resumed_at):
    """The next epoch begins after a limited one, and after a checkpoint at its end."""
    options = {"limit_train_batches": 18, "val_check_interval": 6, "epochs": 2}
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    lightning(uri, whole, every_n_steps=9, **options)
    lightning(uri, resumed, resume=str(whole / f"step={resumed_at}.ckpt"), **options)
    assert steps(resumed)[0] == steps(whole)[0][resumed_at:]
    part = DataModule(dataset(uri)).train_dataset
    expected = []
    for epoch in range(2):
        part.set_epoch(epoch)
        expected += [(epoch, obs["soma_joinid"].tolist()) for _, obs in part][:18]
        part.set_epoch(epoch + 1)
    assert steps(whole)[0] == expected


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_predictions_of_ranks_in_the_order_of_cells(uri, counts, tmp_path, devices):
    lightning(uri, tmp_path, devices=devices, stage="predict")
    by_rank = steps(tmp_path, "predict")
    joinids = [j for of_rank in by_rank for _, step in of_rank for j in step]
    assert len(by_rank) == devices and joinids == list(range(N_CELLS))
    folder = tmp_path / "predictions"
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["pair.npy", "soma_joinid.npy", "sum.npy"]
    assert np.load(folder / "soma_joinid.npy").tolist() == list(range(N_CELLS))
    np.testing.assert_array_equal(np.load(folder / "pair.npy"), counts[:, :2])
    np.testing.assert_allclose(np.load(folder / "sum.npy"), counts.sum(1), rtol=1e-5)


def test_fewer_cells_to_predict_than_ranks(uri, counts, tmp_path):
    lightning(uri, tmp_path, devices=2, stage="predict", predict_fewer=[5])
    folder = tmp_path / "predictions"
    assert np.load(folder / "soma_joinid.npy").tolist() == [5]
    np.testing.assert_array_equal(np.load(folder / "pair.npy"), counts[5:6, :2])


def test_ranks_test_each_cell_once(uri, tmp_path):
    lightning(uri, tmp_path, devices=2, stage="test", module={"group": "donor_id"})
    part = parts_of(DataModule(dataset(uri), group="donor_id"))[2]
    assert [j for of_rank in steps(tmp_path, "test") for _, step in of_rank for j in step] == part
