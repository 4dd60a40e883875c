"""Runs selections on an experiment with tiledbsoma's ExperimentAxisQuery, and says what each gives.

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


def axis_query(wanted):
    """An AxisQuery; a range is given without its end, a slice has it."""
    options = {}
    if wanted.get("filter") is not None:
        options["value_filter"] = wanted["filter"]
    if wanted.get("range") is not None:
        start, end = wanted["range"]
        options["coords"] = (slice(start, end - 1),)
    elif wanted.get("list") is not None:
        options["coords"] = (wanted["list"],)
    return tiledbsoma.AxisQuery(**options)


def ascending(table):
    return table.sort_by("soma_joinid")


def genes_in_order(var, wanted):
    """The rows of var, one for each column, None where there is no such gene."""
    if wanted.get("names") is not None:
        row_of = {name: row for row, name in enumerate(var[wanted["column"]].to_pylist())}
        return [row_of.get(name) for name in wanted["names"]]
    joinids = var["soma_joinid"].to_pylist()
    if wanted.get("list") is not None:
        return [joinids.index(joinid) for joinid in wanted["list"] if joinid in set(joinids)]
    return list(range(len(joinids)))


def taken(table, rows):
    """Rows of a table; a column has nulls where a row is None."""
    columns = [column.take(pa.array(rows, pa.int64())) for column in table.columns]
    lacking = None in rows
    fields = [field.with_nullable(field.nullable or lacking) for field in table.schema]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def transformed(transform, rows, values, totals_of_obs):
    """What scanpy would make of the values, in float64; and clipping."""
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


def cells(query, layer):
    """The values of a query: joinids of cells and genes, values."""
    pieces = list(query.X(layer).tables())
    columns = ("soma_dim_0", "soma_dim_1", "soma_data")
    return [np.concatenate([piece[name].to_numpy() for piece in pieces] or [np.zeros(0)]) for name in columns]


def answer(experiment, wanted, path):
    cells_wanted, genes_wanted = wanted["cells"], wanted["genes"]
    names = genes_wanted.get("names")
    if names is not None:
        genes_query = axis_query({"filter": f"{genes_wanted['column']} in {names}"})
    else:
        genes_query = axis_query(genes_wanted)
    with experiment.axis_query("RNA", obs_query=axis_query(cells_wanted), var_query=genes_query) as query:
        obs, var = ascending(query.obs().concat()), ascending(query.var().concat())
        row_joinids, column_joinids, values = cells(query, wanted["layer"])
    genes = genes_in_order(var, genes_wanted)
    joinids = obs["soma_joinid"].to_numpy()
    rows = np.searchsorted(joinids, row_joinids).astype(np.int32)
    column_of = {var["soma_joinid"][row].as_py(): column for column, row in enumerate(genes) if row is not None}
    columns = np.array([column_of[joinid] for joinid in column_joinids.tolist()], np.int32)
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order].astype(np.float32)
    totals = obs[wanted["totals"]].to_numpy()
    with np.errstate(over="ignore"), open(path, "wb") as file:
        for part in (rows, columns, values, values.astype(np.float16)):
            file.write(part.tobytes())
        for transform in wanted["transforms"]:
            file.write(transformed(transform, rows, values, totals).tobytes())
    return {
        "joinids": joinids.tolist(),
        "nnz": len(values),
        "obs": described.frame(obs.select(wanted["obs_columns"])),
        "var": described.frame(taken(var.select(wanted["var_columns"]), genes)),
    }


def in_child(work):
    """Runs `work` in a child process: TileDB keeps threads, which would not live on in one. Gives the signal that ended it, or 0."""
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
    """Runs `work` in a child, again where a signal ended it: under load, one process in a hundred dies within libtiledbsoma."""
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
    """Writes each answer that is not there yet, whole or not at all."""
    with tiledbsoma.open(uri) as experiment:
        for idx, wanted in enumerate(selections):
            path = f"{folder}/{idx}.json"
            if not os.path.exists(path):
                found = answer(experiment, wanted, f"{folder}/{idx}")
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
