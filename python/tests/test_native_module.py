"""The module itself: its stubs describe it, and its objects refuse what they cannot do."""

import ast
import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from native_examples import dataset, experiment_uri, in_memory, matrix
from somafeed import _somafeed as native

STUBS = ast.parse((Path(native.__file__).parent / "_somafeed.pyi").read_text())


def stubbed(body) -> set[str]:
    """Public names that a stub declares."""
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    return {name for name in names if not name.startswith("_")}


def public(thing) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def test_stubs_declare_every_name_of_the_module():
    aliases = {"IntegerArray", "Rows", "Form", "Reader", "CellJoin", "EngineSettings", "NamedVectors"}
    assert stubbed(STUBS.body) - aliases == public(native)


CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}
SETTINGS = [node.target.id for node in CLASSES["EngineSettings"].body if isinstance(node, ast.AnnAssign)]


def test_loaders_take_the_settings_of_the_engine_and_no_others():
    usual = {
        "batch_size": 2, "shuffle": False, "order": "in order", "seed": 1, "chunk_rows": 2,
        "chunks_per_block": 2, "ramp_blocks": 1, "rank": 0, "world_size": 1, "lanes": None,
        "remainder": "keep", "sampling": None, "on_error": "skip", "keep_decoded": None,
        "prefetch_blocks": 0, "prefetch_batches": 0, "read_threads": 1,
    }
    assert list(usual) == SETTINGS
    rows = in_memory(matrix(4, 3))
    for name, value in usual.items():
        native.Loader(rows, **{name: value})
        with pytest.raises((TypeError, ValueError), match=name):
            native.Loader(rows, **{name: object()})
    with pytest.raises(TypeError, match="'batch_sizes'.*no such argument"):
        native.Loader(rows, batch_sizes=2)


@pytest.mark.parametrize("node", [n for n in CLASSES.values() if n.name != "EngineSettings"],
                         ids=lambda node: node.name)
def test_stubs_declare_every_method(node):
    assert stubbed(node.body) == public(getattr(native, node.name))


def arguments(node: ast.FunctionDef) -> list[str]:
    named = node.args.args + node.args.kwonlyargs
    return [argument.arg for argument in [*named, node.args.kwarg] if argument is not None]


def test_stubs_have_the_arguments_of_every_function():
    import inspect

    for node in STUBS.body:
        functions = [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])
        owner = native if isinstance(node, ast.FunctionDef) else getattr(native, getattr(node, "name", ""), None)
        for function in functions:
            if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
                continue
            real = getattr(owner, function.name)
            if not callable(real):
                continue
            found = list(inspect.signature(real).parameters)
            wanted = arguments(function)
            if wanted and wanted[0] == "self" and found[:1] != ["self"]:
                wanted = wanted[1:]
            assert found == wanted, (node.name, function.name)


def test_the_stub_of_the_loader_has_its_settings_and_their_usual_values():
    import inspect

    [stub] = [node for node in STUBS.body if isinstance(node, ast.ClassDef) and node.name == "Loader"]
    init = next(node for node in stub.body if getattr(node, "name", None) == "__init__")
    wanted = {
        argument.arg: ast.literal_eval(default)
        for argument, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
        if default is not None
    }
    parameters = inspect.signature(native.Loader).parameters.values()
    assert {one.name: one.default for one in parameters if one.kind == one.KEYWORD_ONLY} == wanted


def test_the_version_is_a_release():
    assert [part.isdigit() for part in native.version.split(".")] == [True] * 3


@pytest.mark.parametrize("make", [
    lambda: native.Experiment(experiment_uri()),
    dataset,
    lambda: native.Loader(in_memory(matrix(4, 3))),
    lambda: native.Loader(in_memory(matrix(4, 3))).epoch(0),
    lambda: next(native.Loader(in_memory(matrix(4, 3))).epoch(0)),
], ids=["Experiment", "Dataset", "Loader", "Epoch", "Batch"])
def test_pickling_is_a_type_error_that_says_what_to_do(make):
    thing = make()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=f"cannot pickle a somafeed {type(thing).__name__}: pickle"):
            copied(thing)


def test_libtiledb_is_loaded_when_it_is_asked_for():
    native.Experiment(experiment_uri(), reader="libtiledb")
    version, file = native.libtiledb()
    assert version.startswith("2.") and Path(file).is_file()
    assert dataset(reader="libtiledb").reader == "libtiledb"
    assert dataset().why_not_native is None


def test_libtiledb_is_found_in_a_package_that_is_not_imported(tmp_path):
    native.Experiment(experiment_uri(), reader="libtiledb")
    _, file = native.libtiledb()
    for package in ("tiledb", "tiledbsoma"):
        (tmp_path / package / package).mkdir(parents=True)
        (tmp_path / package / package / "__init__.py").write_text("raise ImportError")
        libraries = tmp_path / package / f"{package}.libs"
        libraries.mkdir()
        (libraries / "libtiledbsoma-1.so").write_text("not this one")
        (libraries / "libtiledb-0123abcd.so.2.30").symlink_to(file)
        script = f"""
import sys, somafeed._somafeed as native
assert native.libtiledb() is None
native.Experiment({experiment_uri()!r}).obs_columns()
native.Experiment({experiment_uri()!r}, reader="libtiledb")
print(native.libtiledb()[1])
assert {package!r} not in sys.modules
"""
        path = os.pathsep.join([str(tmp_path / package), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path)}
        del environment["SOMAFEED_LIBTILEDB"]
        ran = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert ran.stdout.strip() == str(libraries / "libtiledb-0123abcd.so.2.30"), ran.stderr


def test_without_libtiledb_the_error_says_where_it_is_looked_for(tmp_path):
    script = f"import somafeed._somafeed as native; native.Experiment({experiment_uri()!r}, reader='libtiledb')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path)}
    del environment["SOMAFEED_LIBTILEDB"]
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert "SomafeedError: libtiledb was not found" in ran.stderr and "pip install tiledb" in ran.stderr


def test_every_class_has_a_text():
    for thing in (dataset(), native.Loader(in_memory(matrix(4, 3))), native.Budget(5)):
        assert repr(thing).startswith(type(thing).__name__ + "(")
