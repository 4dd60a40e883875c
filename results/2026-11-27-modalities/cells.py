"""The cells that all loaders deliver: how they are made, and a number for each row by which deliveries are compared."""
import numpy as np

SEED = 1
RNA, PROT, ATAC = "rna", "prot", "atac"
# Of the loaders: genes, proteins, peaks.
WIDTHS = {RNA: 20_000, PROT: 200, ATAC: 100_000}


def names(modality, n_features):
    return [f"{modality}{idx}" for idx in range(n_features)]


def sparse_counts(rng, kinds, n_features, n_draws, spread):
    """Counts of cells as CSR with f4 values: each cell draws about `n_draws` molecules, and its kind says how often each feature comes."""
    from scipy import sparse
    n_kinds = int(kinds.max()) + 1
    base = rng.lognormal(0, spread, n_features)
    tables = []
    for _ in range(n_kinds):
        weights = base * (rng.lognormal(0, 1, n_features) if n_kinds > 1 else 1)
        tables.append(rng.choice(n_features, 2**19, p=weights / weights.sum()).astype(np.int32))
    tables = np.stack(tables)
    depths = np.maximum(rng.poisson(n_draws * rng.lognormal(0, 0.3, len(kinds))), 1)
    indices, data, counts = [], [], []
    for start in range(0, len(kinds), 1000):
        depth = depths[start:start + 1000]
        rows = np.repeat(np.arange(len(depth)), depth)
        drawn = tables[kinds[start:start + 1000][rows], rng.integers(0, tables.shape[1], len(rows))]
        keys = np.sort(rows * n_features + drawn)
        firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        data.append(np.diff(np.append(firsts, len(keys))).astype(np.float32))
        indices.append((keys[firsts] % n_features).astype(np.int32))
        counts.append(np.bincount(keys[firsts] // n_features, minlength=len(depth)))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    indptr = indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=(len(kinds), n_features))


def proteins(rng, kinds, n_proteins):
    """Dense counts of proteins, f4: background everywhere, foreground in a quarter of the kinds."""
    foreground = rng.random((int(kinds.max()) + 1, n_proteins)) < 0.25
    means = rng.gamma(2, 3, n_proteins) * (1 + 20 * foreground)
    return rng.poisson(means[kinds] * rng.gamma(3, 1 / 3, (len(kinds), 1))).astype(np.float32)


def weights(n_features):
    """64 random bits for each feature."""
    return np.random.default_rng(n_features).integers(0, 2**63, n_features, dtype=np.uint64)


def csr_numbers(indptr, indices, data, n_features):
    """For each row: the sum over its values, each times the bits of its feature, modulo 2^64."""
    products = weights(n_features)[indices] * np.asarray(data).astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])
    return sums[indptr[1:]] - sums[indptr[:-1]]


def dense_numbers(rows):
    """The same of dense rows."""
    rows = np.asarray(rows)
    return (rows.astype(np.uint64) * weights(rows.shape[1])).sum(1, dtype=np.uint64)


def numbers(rows):
    """The same of rows in any form that a loader delivers: torch's or scipy's CSR, or dense."""
    if hasattr(rows, "crow_indices"):
        if str(rows.layout) == "torch.sparse_csr":
            parts = (rows.crow_indices().numpy(), rows.col_indices().numpy(), rows.values().numpy())
            return csr_numbers(*parts, rows.shape[1])
        rows = rows.numpy()
    if hasattr(rows, "indptr"):
        return csr_numbers(rows.indptr, rows.indices, rows.data, rows.shape[1])
    return dense_numbers(rows)


def peak_mb():
    """VmHWM of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))
