"""Compares tokens with the functions of Geneformer and scGPT, on real counts.

Not among the tests of `cargo xtask test`, because it needs both repositories and an experiment with
human or mouse genes. docs/python-package.md has the command.

Usage: compare_tokens.py EXPERIMENT GENEFORMER SCGPT

EXPERIMENT has the var columns feature_id and feature_name, and the obs column raw_sum. GENEFORMER
and SCGPT are the packages' folders. Only single functions of their files are run, so what else the
packages need is not. Genes are found in Geneformer's dictionaries by their symbol in capitals, so
that mouse genes get the medians and tokens of human ones.
"""

import ast
import pickle
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from scipy import sparse
from somafeed import BinTokens, ExperimentDataset, RankTokens


def functions(path, names, **known):
    """Functions of a file by name, without what the file imports."""
    tree = ast.parse(Path(path).read_text())
    chosen = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    assert {node.name for node in chosen} == set(names), path
    for node in chosen:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    space = {"np": np, "torch": torch, **known}
    exec(compile(ast.Module(chosen, []), str(path), "exec"), space)
    return space


def read(uri):
    """X as stored, with totals, gene ids and symbols."""
    ds = ExperimentDataset(
        uri=uri, obs_column_names=["raw_sum"], shuffle=False, return_sparse_X=True, batch_size=1024
    )
    parts, totals = zip(*((X, obs["raw_sum"].to_numpy()) for X, obs in ds))
    var = pa.table(ds._cells.source.experiment().var("RNA"))
    names = [var[name].to_pylist() for name in ("feature_id", "feature_name")]
    return sparse.vstack(parts).tocsr(), np.concatenate(totals), *names


def made_by(uri, tokens, **options):
    """Ids and values of each cell in order, and the seconds that they took."""
    ds = ExperimentDataset(
        uri=uri, tokens=tokens, shuffle=False, batch_size=512, obs_column_names=["raw_sum"], **options
    )
    start = time.perf_counter()
    batches = [batch for batch, _ in ds]
    seconds = time.perf_counter() - start
    rows = []
    for batch in batches:
        values = batch.get("values", batch["input_ids"])
        parts = list(zip(batch["offsets"], batch["offsets"][1:]))
        rows += [(batch["input_ids"][a:b], values[a:b]) for a, b in parts]
    return rows, seconds


def compare_ranks(uri, folder, counts, totals, ids, symbols):
    """Cells whose tokens are those of Geneformer."""
    reference = functions(folder / "tokenizer.py", ["rank_genes", "tokenize_cell"])
    dictionaries = [
        pickle.loads((folder / f"{name}.pkl").read_bytes())
        for name in ("gene_median_dictionary", "token_dictionary", "gene_name_id_dict")
    ]
    medians_of, tokens_of, id_of_symbol = dictionaries
    medians, vocabulary, taken = {}, {"<pad>": tokens_of["<pad>"]}, set()
    for name, symbol in zip(ids, symbols):
        human = id_of_symbol.get(symbol.upper())
        if human in medians_of and human in tokens_of and human not in taken:
            taken.add(human)
            medians[name], vocabulary[name] = medians_of[human], tokens_of[human]
    known = np.array([at for at, name in enumerate(ids) if name in medians])
    of_known = np.array([medians[ids[at]] for at in known])
    tokens = np.array([vocabulary[ids[at]] for at in known])
    ours, seconds = made_by(
        uri, RankTokens(vocabulary, medians, layout="ragged"), totals="raw_sum"
    )
    print(f"ranks: {len(known)} of {len(ids)} genes are known; {len(ours) / seconds:,.0f} cells/s")
    dense = counts[:, known].toarray().astype(np.float64)
    normed = dense / totals[:, None] * 10_000 / of_known
    equal = stable = 0
    start = time.perf_counter()
    theirs = [reference["tokenize_cell"](row, tokens)[:2048] for row in normed]
    seconds = time.perf_counter() - start
    for row, (found, _), expected in zip(normed, ours, theirs):
        detected = row.nonzero()[0]
        in_order = tokens[detected[np.argsort(-row[detected], kind="stable")]][:2048]
        equal += np.array_equal(found, expected)
        stable += np.array_equal(found, in_order)
    print(f"ranks: {equal} of {len(ours)} cells equal Geneformer's, {stable} with a stable sort; "
          f"Geneformer's sort alone makes {len(ours) / seconds:,.0f} cells/s")
    n_ties = sum(len(np.unique(row[row > 0])) < np.count_nonzero(row) for row in normed)
    print(f"ranks: {n_ties} cells have genes with equal values")
    return stable == len(ours)


def compare_bins(uri, folder, counts, ids):
    """Cells whose tokens and bins are those of scGPT."""
    preprocess = folder / "preprocess.py"
    reference = functions(preprocess, ["_digitize", "binning"])
    digitize = reference["_digitize"]
    tokenizer = functions(
        folder / "tokenizer/gene_tokenizer.py", ["tokenize_batch", "pad_batch"]
    )
    vocabulary = {name: at for at, name in enumerate(ids)} | {"<pad>": 60_694, "<cls>": 60_695}
    gene_ids = np.arange(len(ids))
    n_equal = {}
    for log1p in (False, True):
        options = {"target_sum": 1e4, "log1p": True} if log1p else {}
        rows = next(iter(ExperimentDataset(
            uri=uri, shuffle=False, batch_size=len(counts.indptr), return_sparse_X=True, **options
        )))[0].astype(np.float32).tocsr()
        for ties in ("highest", "spread"):
            side = "one" if ties == "highest" else "both"
            reference["_digitize"] = partial(digitize, side=side)
            tokens = BinTokens(
                vocabulary, 20_000, gene_column="feature_id", ties=ties, layout="ragged"
            )
            ours, seconds = made_by(uri, tokens, **options)
            equal, differences = 0, []
            for at, (found, bins) in enumerate(ours):
                row = rows[at].toarray()[0]
                binned = reference["binning"](row, 51)
                [(genes, _, _)] = tokenizer["tokenize_batch"](
                    row[None], gene_ids, return_pt=False, cls_id=vocabulary["<cls>"]
                )
                expected = np.insert(binned[row.nonzero()[0]], 0, 0)
                same = np.array_equal(found, genes)
                if ties == "highest":
                    equal += same and np.array_equal(bins, expected)
                else:
                    equal += same
                    differences.append((bins - expected).mean())
            how = f"log1p={log1p}, ties={ties}"
            print(f"bins, {how}: {equal} of {len(ours)} cells equal; {len(ours) / seconds:,.0f} cells/s")
            if differences:
                spread = np.std(differences) / np.sqrt(len(differences))
                print(f"bins, {how}: mean bin differs by {np.mean(differences):+.4f} ± {spread:.4f}")
            n_equal[how] = equal == len(ours)
    return all(n_equal.values())


def main():
    uri, geneformer, scgpt = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    counts, totals, ids, symbols = read(uri)
    all_equal = compare_ranks(uri, geneformer, counts, totals, ids, symbols)
    all_equal &= compare_bins(uri, scgpt, counts, ids)
    sys.exit(0 if all_equal else 1)


if __name__ == "__main__":
    main()
