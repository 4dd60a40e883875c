"""Reads an experiment whole with tiledbsoma, and prints what it holds.

Usage: check_experiment.py URI [--frames]

With --frames the layers of X are left out.
"""

import json
import sys

import pyarrow.compute as pc
import tiledbsoma

import described


def read_frame(frame):
    assert isinstance(frame, tiledbsoma.DataFrame)
    assert frame.index_column_names == ("soma_joinid",)
    table = frame.read().concat()
    # What the schema promises is what comes.
    assert table.schema.names == frame.schema.names == list(frame.keys())
    described_frame = described.frame(table)
    for column, field in zip(described_frame, frame.schema):
        assert column["type"] == described.type_name(field.type), column["name"]
        column["nullable"] = field.nullable
    return described_frame


def read_layer(x):
    assert isinstance(x, tiledbsoma.SparseNDArray)
    table = x.read().tables().concat()
    columns = [table[name].to_pylist() for name in ("soma_dim_0", "soma_dim_1", "soma_data")]
    assert x.nnz == len(table), (x.nnz, len(table))
    return described.layer(x.shape, table["soma_data"].type, zip(*columns))


def check_query(experiment):
    """Asks for some cells by the value of a categorical column, where there is one with the name `category`."""
    table = experiment.obs.read().concat()
    if "category" not in table.schema.names:
        return
    texts = table["category"].combine_chunks().dictionary_decode()
    wanted = texts[0].as_py()
    rows = table["soma_joinid"].filter(pc.equal(texts, wanted)).to_pylist()
    cells = tiledbsoma.AxisQuery(value_filter=f"category == '{wanted}'")
    with experiment.axis_query("RNA", obs_query=cells) as query:
        assert query.obs_joinids().to_pylist() == rows
        found = query.X("raw").tables().concat()
        expected = experiment.ms["RNA"].X["raw"].read((rows,)).tables().concat()
        assert len(found) == len(expected)
        found = query.to_anndata("raw")
        assert found.shape == (len(rows), experiment.ms["RNA"].var.count), found.shape


def read_experiment(uri, options=(), timestamp=None):
    with tiledbsoma.open(uri, tiledb_timestamp=timestamp) as experiment:
        assert isinstance(experiment, tiledbsoma.Experiment)
        assert isinstance(experiment.ms, tiledbsoma.Collection)
        assert set(experiment) == {"obs", "ms"}, set(experiment)
        measurement = experiment.ms["RNA"]
        assert isinstance(measurement, tiledbsoma.Measurement)
        assert isinstance(measurement.X, tiledbsoma.Collection)
        check_query(experiment)
        return {
            "obs": read_frame(experiment.obs),
            "var": read_frame(measurement.var),
            "X": {} if options else {name: read_layer(x) for name, x in measurement.X.items()},
        }


def main(uri, *options):
    assert options in ((), ("--frames",)), options
    json.dump(read_experiment(uri, options), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
