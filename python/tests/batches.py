"""What tests ask of batches."""

import numpy as np


def joinids_of(batches):
    """The joinids of all cells, in the order of delivery."""
    return [int(joinid) for _, obs in batches for joinid in obs["soma_joinid"]]


def dense(X):
    """X as an array of rank 2, whatever its form."""
    if hasattr(X, "toarray"):
        return X.toarray()
    if hasattr(X, "to_dense"):
        X = X.to_dense().numpy()
    return np.atleast_2d(X)


def assert_board(board, batches):
    """Each row of X is that of the cell beside it in obs."""
    for X, obs in batches:
        np.testing.assert_array_equal(dense(X), board.values(obs["soma_joinid"]))
