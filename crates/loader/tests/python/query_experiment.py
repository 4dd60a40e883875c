"""Runs selections on an experiment with tiledbsoma's ExperimentAxisQuery, and writes the results.

Prints a list with the cells, obs and var of each selection. Its values go to the file VALUES/<index>: rows and columns (int32),
values (float32), the same as float16, and then as each transform makes them (float32); by ascending row and column. Transforms are
scanpy's normalize_total, log1p and a clipping, computed in float64.

Usage: query_experiment.py URI SELECTIONS VALUES, with SELECTIONS a JSON file. Where there is no experiment one is made.
"""

import json
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import tiledbsoma

sys.path.append(str(Path(__file__).parents[3] / "soma-io/tests/python"))

import default_experiment  # noqa: E402
import described  # noqa: E402

MOST_CRASHES = 5


def axis_query(selection):
    """The AxisQuery of a selection. A range excludes its end, a slice includes it."""
    options = {}
    if selection.get("filter") is not None:
        options["value_filter"] = selection["filter"]
    if selection.get("range") is not None:
        start, end = selection["range"]
        options["coords"] = (slice(start, end - 1),)
    elif selection.get("list") is not None:
        options["coords"] = (selection["list"],)
    return tiledbsoma.AxisQuery(**options)


def ascending(table):
    return table.sort_by("soma_joinid")


def genes_in_order(var, selection):
    """The var row of each column; None if there is no such gene."""
    if selection.get("names") is not None:
        row_of = {name: row for row, name in enumerate(var[selection["column"]].to_pylist())}
        return [row_of.get(name) for name in selection["names"]]
    joinids = var["soma_joinid"].to_pylist()
    if selection.get("list") is not None:
        return [joinids.index(joinid) for joinid in selection["list"] if joinid in set(joinids)]
    return list(range(len(joinids)))


def taken(table, rows):
    """Rows of a table; None becomes a row of nulls."""
    columns = [column.take(pa.array(rows, pa.int64())) for column in table.columns]
    lacking = None in rows
    fields = [field.with_nullable(field.nullable or lacking) for field in table.schema]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def transformed(transform, rows, values, totals_of_obs):
    """The values after scanpy's transforms and clipping, in float64."""
    values = values.astype(np.float64)
    if transform["target_sum"] is not None:
        totals = totals_of_obs
        if transform["totals"] == "genes":
            totals = np.bincount(rows, values, minlength=1)
        values = values / totals[rows] * transform["target_sum"]
    if transform["log1p"]:
        values = np.log1p(values)
    if transform["clip"] is not None:
        values = np.clip(values, *transform["clip"])
    return values.astype(np.float32)


def cells(read):
    """The values of a read of X or obsm: joinids of cells, joinids of genes or columns, values."""
    pieces = list(read.tables())
    columns = ("soma_dim_0", "soma_dim_1", "soma_data")
    return [np.concatenate([piece[name].to_numpy() for piece in pieces] or [np.zeros(0)]) for name in columns]


def dense(read, joinids, column_of, n_columns):
    """The values of a read, as a dense list of each cell."""
    rows, columns, values = cells(read)
    found = np.zeros((len(joinids), n_columns), np.float32)
    found[np.searchsorted(joinids, rows.astype(np.int64)), [column_of[column] for column in columns.tolist()]] = values
    return found.tolist()


def beside(query, selection, joinids, column_of, n_columns):
    """The layers and the arrays of obsm of a selection, by name."""
    layers = {name: dense(query.X(name), joinids, column_of, n_columns) for name in selection["layers"]}
    of_cells = query.experiment.ms[query.measurement_name]
    widths = {name: of_cells.obsm[name].shape[1] for name in selection["obsm"]}
    obsm = {name: dense(query.obsm(name), joinids, range(width), width) for name, width in widths.items()}
    return {"layers": layers, "obsm": obsm}


def answer(experiment, selection, path):
    cell_selection, gene_selection = selection["cells"], selection["genes"]
    names = gene_selection.get("names")
    if names is not None:
        genes_query = axis_query({"filter": f"{gene_selection['column']} in {names}"})
    else:
        genes_query = axis_query(gene_selection)
    with experiment.axis_query("RNA", obs_query=axis_query(cell_selection), var_query=genes_query) as query:
        obs, var = ascending(query.obs().concat()), ascending(query.var().concat())
        row_joinids, column_joinids, values = cells(query.X(selection["layer"]))
        genes = genes_in_order(var, gene_selection)
        joinids = obs["soma_joinid"].to_numpy()
        column_of = {var["soma_joinid"][row].as_py(): column for column, row in enumerate(genes) if row is not None}
        matrices_beside = beside(query, selection, joinids, column_of, len(genes))
    rows = np.searchsorted(joinids, row_joinids).astype(np.int32)
    columns = np.array([column_of[joinid] for joinid in column_joinids.tolist()], np.int32)
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order].astype(np.float32)
    totals = obs[selection["totals"]].to_numpy()
    with np.errstate(over="ignore"), open(path, "wb") as file:
        for part in (rows, columns, values, values.astype(np.float16)):
            file.write(part.tobytes())
        for transform in selection["transforms"]:
            file.write(transformed(transform, rows, values, totals).tobytes())
    return {
        "joinids": joinids.tolist(),
        "nnz": len(values),
        **matrices_beside,
        "obs": described.frame(obs.select(selection["obs_columns"])),
        "var": described.frame(taken(var.select(selection["var_columns"]), genes)),
    }


def in_child(work):
    """Runs `work` in a fork, so that this process has no TileDB threads, which a fork would lose. Returns the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    assert os.WEXITSTATUS(status) == 0, "a child ended early"
    return 0


def survived(work):
    """Runs `work` in a child, and again if a signal ended it: under load, 1 process in 100 dies within libtiledbsoma."""
    for _ in range(MOST_CRASHES):
        signal = in_child(work)
        if signal == 0:
            return
        print(f"tiledbsoma was ended by signal {signal}, and is asked again", file=sys.stderr)
    raise SystemExit(f"tiledbsoma was ended by a signal {MOST_CRASHES} times")


def make(uri):
    shutil.rmtree(uri, ignore_errors=True)
    default_experiment.write(uri)


def answer_all(uri, selections, folder):
    """Writes each missing answer atomically."""
    with tiledbsoma.open(uri) as experiment:
        for idx, selection in enumerate(selections):
            path = f"{folder}/{idx}.json"
            if not os.path.exists(path):
                found = answer(experiment, selection, f"{folder}/{idx}")
                with open(f"{path}.partial", "w", encoding="utf-8") as file:
                    json.dump(found, file)
                os.rename(f"{path}.partial", path)


def main(uri, selections_path, folder):
    warnings.simplefilter("ignore")
    if not os.path.exists(uri):
        survived(lambda: make(uri))
    with open(selections_path, encoding="utf-8") as file:
        selections = json.load(file)
    survived(lambda: answer_all(uri, selections, folder))
    answers = []
    for idx in range(len(selections)):
        with open(f"{folder}/{idx}.json", encoding="utf-8") as file:
            answers.append(json.load(file))
    json.dump(answers, sys.stdout)


main(*sys.argv[1:])
