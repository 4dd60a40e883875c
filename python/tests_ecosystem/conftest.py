"""An experiment for the tests of the frameworks, written once per run."""

import numpy as np
import pytest
import somafeed
from kinds import KINDS
from programs import N_CELLS, N_GENES, dataset


@pytest.fixture(scope="session")
def uri(tmp_path_factory):
    """A generated experiment of N_CELLS x N_GENES."""
    uri = str(tmp_path_factory.mktemp("experiments") / "experiment")
    somafeed.generate_example(uri, n_cells=N_CELLS, n_genes=N_GENES, seed=5)
    return uri


@pytest.fixture(scope="session", params=KINDS)
def kind(request, tmp_path_factory):
    """The name of a kind, and where samples of it are."""
    path = str(tmp_path_factory.mktemp("kinds") / request.param)
    KINDS[request.param].write(path)
    return request.param, path


@pytest.fixture(scope="session")
def counts(uri):
    """X of all cells by ascending joinid: a dense array."""
    whole = dataset(uri, shuffle=False, batch_size=N_CELLS)
    (X, obs), = whole
    assert obs["soma_joinid"].tolist() == list(range(N_CELLS))
    return np.asarray(X)
