"""Tokens in place of X, beside oracles in numpy that follow the formulas of the models' papers."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
import torch
from somafeed import (
    BinTokens,
    Dataset,
    ExperimentDataset,
    Loader,
    RankTokens,
    Tokenizer,
    experiment_dataloader,
)

N_CELLS, N_GENES = 90, 240
GENES = [f"gene-{gene}" for gene in range(N_GENES)]
SPECIAL = {"<pad>": 0, "<cls>": 2, "<eos>": 3}
VOCABULARY = SPECIAL | {name: 1000 - at for at, name in enumerate(GENES) if at % 4 != 3}
MEDIANS = {name: 0.4 + (at * 37 % 101) / 17 for at, name in enumerate(GENES) if at % 5 != 4}


@pytest.fixture(scope="module")
def counts():
    """Counts, of which more than half are zero, and one cell without any."""
    random = np.random.default_rng(7)
    counts = random.negative_binomial(0.4, 0.08, (N_CELLS, N_GENES)).astype(np.float32)
    counts[11] = 0
    return counts


@pytest.fixture(scope="module")
def cells(counts):
    rows, columns = counts.nonzero()
    return Dataset.in_memory(
        np.searchsorted(rows, np.arange(N_CELLS + 1)), columns, counts[rows, columns],
        n_columns=N_GENES, obs=pa.table({"cell": np.arange(N_CELLS)}),
        var=pa.table({"feature_id": GENES, "name": pa.array(GENES).dictionary_encode()}),
    )


def dataset(cells, tokens, **options):
    options = {"batch_size": 16, "seed": 1, "obs_column_names": ["cell"], **options}
    return ExperimentDataset(dataset=cells, tokens=tokens, **options)


def sequences(ds, column="cell"):
    """Token ids and values of each cell, without padding, after checks of the padding."""
    found = {}
    for batch, obs in ds:
        batch = {name: np.asarray(array) for name, array in batch.items()}
        ids, length = batch["input_ids"], batch["length"]
        values = batch.get("values", np.zeros_like(ids))
        if "offsets" in batch:
            assert set(batch) - {"values"} == {"input_ids", "length", "offsets"}
            assert len(ids) == len(values) == batch["offsets"][-1]
            np.testing.assert_array_equal(np.diff(batch["offsets"]), length)
            parts = [slice(a, b) for a, b in zip(batch["offsets"], batch["offsets"][1:])]
            ids, values = [[of[part] for part in parts] for of in (ids, values)]
        else:
            assert set(batch) - {"values"} == {"input_ids", "attention_mask", "length"}
            mask = batch["attention_mask"]
            np.testing.assert_array_equal(mask.sum(1), length)
            assert (ids[~mask] == SPECIAL["<pad>"]).all()
            if "values" in batch:
                assert (values[~mask] == -2).all()
            ids, values = [[row[kept] for row, kept in zip(of, mask)] for of in (ids, values)]
        for cell, *of_cell in zip(obs[column], ids, values):
            assert cell not in found
            found[cell] = tuple(of_cell)
    return found


def ranked(row, max_length, cls=False, eos=False):
    """Genes by descending value / total * 10,000 / median; equal ones by column."""
    known = [at for at, name in enumerate(GENES) if name in VOCABULARY and name in MEDIANS]
    medians = np.array([MEDIANS[GENES[at]] for at in known])
    if row.sum() == 0:
        genes = np.zeros(0, int)
    else:
        results = row[known].astype(np.float64) / row.sum(dtype=np.float64) * 10_000 / medians
        order = np.argsort(-results, kind="stable")
        genes = [VOCABULARY[GENES[known[at]]] for at in order if results[at] != 0]
    genes = genes[: max_length - cls - eos]
    return [SPECIAL["<cls>"]] * cls + list(genes) + [SPECIAL["<eos>"]] * eos


@pytest.mark.parametrize("layout", ["padded", "longest", "ragged"])
@pytest.mark.parametrize("form", ["numpy", "torch"])
@pytest.mark.parametrize("integers", ["int64", "int32"])
def test_ranks_are_those_of_the_formula(cells, counts, layout, form, integers):
    for max_length, cls, eos in [(300, None, None), (40, "<cls>", "<eos>")]:
        tokens = RankTokens(
            VOCABULARY, MEDIANS, max_length, cls=cls, eos=eos, layout=layout, integers=integers
        )
        ds = dataset(cells, tokens, form=form)
        batch, _ = next(iter(ds))
        kind = torch.Tensor if form == "torch" else np.ndarray
        assert all(isinstance(array, kind) for array in batch.values())
        assert str(batch["input_ids"].dtype).removeprefix("torch.") == integers
        if layout == "padded":
            assert tuple(batch["input_ids"].shape) == (16, max_length)
        found = sequences(ds)
        assert len(found) == N_CELLS
        for cell, (ids, _) in found.items():
            assert ids.tolist() == ranked(counts[cell], max_length, cls is not None, eos is not None)


def binned(row, n_bins=51):
    """The lowest and the highest bin of each known gene with a value, by column."""
    known = [at for at, name in enumerate(GENES) if name in VOCABULARY and row[at] > 0]
    if not known:
        return [], [], []
    values = row[known]
    borders = np.quantile(values, np.linspace(0, 1, n_bins - 1))
    highest = np.digitize(values, borders)
    lowest = np.minimum(np.digitize(values, borders, right=True) + 1, highest)
    return [VOCABULARY[GENES[at]] for at in known], lowest, highest


@pytest.mark.parametrize("layout", ["padded", "longest", "ragged"])
def test_bins_are_those_of_the_formula(cells, counts, layout):
    for options in [{}, {"target_sum": 1e4, "log1p": True}]:
        tokens = BinTokens(
            VOCABULARY, 300, gene_column="name", ties="highest", layout=layout
        )
        found = sequences(dataset(cells, tokens, **options))
        assert len(found) == N_CELLS
        for cell, (ids, values) in found.items():
            row = counts[cell]
            if options and row.sum():
                row = np.log1p(row.astype(float) / row.sum(dtype=float) * 1e4).astype(np.float32)
            genes, _, highest = binned(row)
            assert ids.tolist() == [SPECIAL["<cls>"], *genes]
            assert values.tolist() == [0, *highest]


def test_random_bins_depend_on_seed_epoch_and_cell(cells, counts):
    tokens = BinTokens(VOCABULARY, 60, gene_column="feature_id", seed=3)
    ds = dataset(cells, tokens)
    ds.set_epoch(0)
    found = sequences(ds)
    for cell, (ids, values) in found.items():
        genes, lowest, highest = binned(counts[cell])
        of_gene = {gene: bins for gene, *bins in zip(genes, lowest, highest)}
        assert len(ids) == min(60, len(genes) + 1)
        assert len(set(ids)) == len(ids)
        for gene, bin_ in list(zip(ids, values))[1:]:
            assert of_gene[gene][0] <= bin_ <= of_gene[gene][1]

    def same(other):
        return all(
            np.array_equal(one, two)
            for cell in found for one, two in zip(found[cell], other[cell], strict=True)
        )

    other = dataset(cells, tokens, batch_size=7, seed=5, io_batch_size=64)
    other.set_epoch(0)
    assert same(sequences(other))
    other.set_epoch(1)
    assert not same(sequences(other))
    reseeded = dataset(cells, BinTokens(VOCABULARY, 60, gene_column="feature_id", seed=4))
    reseeded.set_epoch(0)
    assert not same(sequences(reseeded))


def test_zeros_and_highest_values(cells, counts):
    tokens = BinTokens(VOCABULARY, 50, gene_column="name", cut="highest", cls=None)
    for cell, (ids, _) in sequences(dataset(cells, tokens)).items():
        known = [at for at, name in enumerate(GENES) if name in VOCABULARY and counts[cell][at]]
        best = sorted(sorted(known, key=lambda at: (-counts[cell][at], at))[:50])
        assert ids.tolist() == [VOCABULARY[GENES[at]] for at in best]
    tokens = BinTokens(
        VOCABULARY, 500, gene_column="name", include_zeros=True, cls=None, layout="longest"
    )
    batch, _ = next(iter(dataset(cells, tokens)))
    known = [VOCABULARY[name] for name in GENES if name in VOCABULARY]
    assert (batch["input_ids"] == known).all() and batch["attention_mask"].all()


def test_a_batch_of_one_and_tokens_that_are_changed(cells, counts):
    tokens = RankTokens(VOCABULARY, MEDIANS, 30, integers="int32")
    ds = dataset(cells, tokens, batch_size=1, shuffle=False)
    kept = [batch for batch, _ in ds]
    for cell, batch in enumerate(kept):
        assert batch["input_ids"].shape == (1, 30)
        expected = ranked(counts[cell], 30)
        assert batch["input_ids"][0, : len(expected)].tolist() == expected
        batch["input_ids"][:] = -1


ENSEMBL = SPECIAL | {f"ENSG{gene:05}": 50 - gene for gene in range(5)}
OF_BOARD = RankTokens(ENSEMBL, {name: 1.0 + at for at, name in enumerate(ENSEMBL)}, 4, cls="<cls>")


def of_board(experiment, **options):
    options = {"batch_size": 7, "seed": 1, "tokens": OF_BOARD, **options}
    return ExperimentDataset(uri=experiment.uri, **options)


def test_parts_pickles_workers_and_states(experiment):
    ds = of_board(experiment)
    assert (ds.tokenizer().n_known, ds.tokenizer().n_unknown) == (5, 1)

    def plain(found):
        return {cell: ids.tolist() for cell, (ids, _) in found.items()}

    expected = plain(sequences(ds, "soma_joinid"))
    assert len(expected) == 100
    medians = np.array([OF_BOARD.medians[f"ENSG{gene:05}"] for gene in range(5)])
    for cell, row in zip(experiment.joinids, experiment.values(experiment.joinids)[:, :5]):
        best = np.argsort(-row / medians, kind="stable")[: np.count_nonzero(row)]
        assert expected[cell] == [2, *(50 - best)][:4]
    train, test = ds.random_split(0.5, 0.5, seed=1)
    assert plain(sequences([*train, *test], "soma_joinid")) == expected
    copied = pickle.loads(pickle.dumps(ds))
    assert plain(sequences(copied, "soma_joinid")) == expected
    loaded = experiment_dataloader(of_board(experiment), num_workers=2)
    assert plain(sequences(loaded, "soma_joinid")) == expected
    begun = of_board(experiment)
    iterator = iter(begun)
    first = [next(iterator) for _ in range(3)]
    again = of_board(experiment)
    again.load_state_dict(iterator.state_dict())
    assert plain(sequences([*first, *again], "soma_joinid")) == expected


def test_obsm_and_genes_by_name_come_with_tokens(experiment):
    ds = of_board(experiment, obsm=["places"], batch_size=100, shuffle=False)
    batch, _, beside = next(iter(ds))
    assert batch["input_ids"].shape == (100, 4) and list(beside) == ["places"]
    # A gene that the experiment lacks has no values, so it has no tokens.
    names = ["ENSG00003", "none", "ENSG00001"]
    ds = of_board(experiment, genes=("feature_id", names), batch_size=100, shuffle=False)
    assert ds.tokenizer().n_known == 2
    ids = next(iter(ds))[0]["input_ids"]
    assert set(np.unique(ids)) == {0, 2, 47, 49}


def test_ranks_divide_by_the_totals_of_obs(experiment):
    of_sums = sequences(of_board(experiment, obs_filter="soma_joinid > 0"), "soma_joinid")
    ds = of_board(experiment, obs_filter="soma_joinid > 0", totals="share")
    of_obs = sequences(ds, "soma_joinid")
    assert all(np.array_equal(of_obs[cell][0], of_sums[cell][0]) for cell in of_sums)
    with pytest.raises(ValueError, match="cell 0 of experiment 0 has values, but its total is 0"):
        list(of_board(experiment, totals="share"))


@pytest.mark.parametrize(("tokens", "message"), [
    (RankTokens({"A": 1}, {}), "no \"<pad>\""),
    (RankTokens(VOCABULARY, {}), "none of the 240 genes is known"),
    (RankTokens(VOCABULARY, MEDIANS, 2, cls="<cls>", eos="<eos>"), "maximal length of 2"),
    (RankTokens(VOCABULARY, MEDIANS | {"gene-0": 0.0}), "median of \"gene-0\" is 0"),
    (RankTokens(VOCABULARY, MEDIANS, gene_column="symbol"), "no var column \"symbol\""),
    (RankTokens(VOCABULARY, MEDIANS, layout="square"), "unknown layout 'square'"),
    (RankTokens(VOCABULARY, MEDIANS, integers="int8"), "unknown integers 'int8'"),
    (BinTokens(VOCABULARY, n_bins=1, gene_column="name"), "1 bins"),
    (BinTokens(VOCABULARY, ties="lowest", gene_column="name"), "ties is \"lowest\""),
    (BinTokens({**VOCABULARY, "gene-3": 1000}, gene_column="name"), "token id 1000"),
])
def test_settings_that_do_not_fit(cells, tokens, message):
    with pytest.raises(ValueError, match=message):
        dataset(cells, tokens)


def test_arguments_that_do_not_fit(cells):
    tokens = RankTokens(VOCABULARY, MEDIANS)
    for options, message in [
        ({"form": "torch_csr"}, "not in form 'torch_csr'"),
        ({"return_sparse_X": True}, "return_sparse_X= is about X"),
        ({"dtype": "stored"}, "dtype= is about X"),
    ]:
        with pytest.raises(ValueError, match=message):
            dataset(cells, tokens, **options)
    with pytest.raises(ValueError, match="values are transformed before"):
        list(dataset(cells, tokens, log1p=True))
    with pytest.raises(TypeError, match="RankTokens or BinTokens"):
        dataset(cells, "geneformer")


def test_the_native_loader(cells, counts):
    tokenizer = Tokenizer.ranks(cells, VOCABULARY, MEDIANS, max_length=20)
    assert "144 of 240 genes" in repr(tokenizer) and tokenizer.max_length == 20
    loader = Loader(cells, tokens=tokenizer, form="csr", shuffle=False, token_layout="ragged")
    for batch in loader.epoch(0):
        found = batch.tokens()
        assert found["input_ids"].dtype == np.int32 and sorted(found) == [
            "input_ids", "length", "offsets"
        ]
        for row, start, stop in zip(batch.joinids, found["offsets"], found["offsets"][1:]):
            assert found["input_ids"][start:stop].tolist() == ranked(counts[row], 20)
        # X is there, too.
        assert batch.csr()[0][-1] == np.count_nonzero(counts)
    batch = next(iter(Loader(cells).epoch(0)))
    with pytest.raises(ValueError, match="has no tokens"):
        batch.tokens()
    with pytest.raises(ValueError, match="not of form dense"):
        Loader(cells, tokens=tokenizer)
