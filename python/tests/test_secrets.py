"""No message and no repr has a secret: of a config, of user info, or of a signed address."""

import inspect
import pickle
from dataclasses import is_dataclass

import numpy as np
import pyarrow as pa
import pytest
import somafeed
from native_examples import dataset, experiment_uri, in_memory, matrix
from somafeed import EngineSettings, ExperimentDataset, QueryIDs, XLocator
from somafeed import _somafeed as native
from somafeed.settings import shown
from somafeed.sources import Selection
from test_native_module import SETTINGS

SECRET = "SECRETKEY123"
CONFIG = {
    "vfs.s3.aws_access_key_id": f"{SECRET}ID",
    "vfs.s3.aws_secret_access_key": SECRET,
    "vfs.s3.proxy_host": "127.0.0.1",
    "vfs.s3.proxy_port": "1",
    "vfs.s3.proxy_username": "u",
    "vfs.s3.proxy_password": SECRET,
    "vfs.s3.endpoint_override": "127.0.0.1:1",
    "vfs.s3.scheme": "http",
    "vfs.s3.connect_max_tries": "1",
    "vfs.azure.storage_account_name": "a",
    "vfs.azure.storage_sas_token": f"sig={SECRET}",
    "vfs.azure.blob_endpoint": "http://127.0.0.1:1",
    "vfs.azure.max_retries": "0",
    "vfs.gcs.request_timeout_ms": "1",
    "vfs.gcs.endpoint": f"http://u:{SECRET}@127.0.0.1:1",
    "soma.retry_limit_ms": "1",
    "soma.request_limit_ms": "1000",
}
LOCATOR = XLocator(
    uri=f"s3://u:{SECRET}@b/x?X-Amz-Signature={SECRET}", measurement_name="RNA", layer_name="raw",
    tiledb_config=CONFIG,
)


class Shows:
    """An object whose text is a secret."""

    def __repr__(self):
        return SECRET

    __str__ = __repr__


def texts_of(error):
    """The messages of an error and of those that it came from."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        yield repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def check(what, call):
    """Whether the call fails; its messages and what it returns have no secret."""
    try:
        made = call()
    except Exception as error:  # noqa: BLE001
        for text in texts_of(error):
            assert SECRET not in text, (what, text)
        return True
    # A recipe or a dataclass shows its arguments.
    assert is_dataclass(made) or SECRET not in repr(made), (what, repr(made))
    return False


def with_config():
    return ExperimentDataset(uri=experiment_uri(), config=CONFIG)


# Refused at once.
ADDRESS = f"nothing://u:{SECRET}@h/x.h5ad?sig={SECRET}"
WRONG = {
    "config": CONFIG, "locator": LOCATOR, "list of configs": [CONFIG], "shows": Shows(),
    "list": [Shows(), LOCATOR], "pair": (Shows(), [Shows()]), "mapping": {Shows(): Shows()},
    "address": ADDRESS, "addresses": [ADDRESS], "array": np.array([Shows()], object),
}


def public_callables():
    """Every public function, class and method of the package, with something to call it on."""
    loader = native.Loader(in_memory(matrix(4, 3), label=list("abab")), batch_size=2)
    encoder = native.LabelEncoder.fit("label", in_memory(matrix(4, 3), label=list("abab")))
    keys = native.BatchKeyEncoder.fit("k", ["label"], in_memory(matrix(4, 3), label=list("abab")))
    objects = [
        with_config(), native.Experiment(experiment_uri(), config=CONFIG), dataset(), loader,
        next(iter(loader.epoch(0))), encoder, keys, in_memory(matrix(4, 3)).obs(),
        native.Budget(5),
    ]
    for name in somafeed.__all__:
        thing = getattr(somafeed, name)
        # An exception shows what it is given.
        is_error = isinstance(thing, type) and issubclass(thing, BaseException)
        if not name.startswith("_") and callable(thing) and not is_error:
            yield name, thing
            if isinstance(thing, type):
                for member in vars(thing):
                    static = inspect.getattr_static(thing, member)
                    if not member.startswith("_") and isinstance(static, staticmethod | classmethod):
                        yield f"{name}.{member}", getattr(thing, member)
    for thing in objects:
        for name in dir(type(thing)):
            if not name.startswith("_") and inspect.isroutine(getattr(type(thing), name)):
                yield f"{type(thing).__name__}().{name}", getattr(thing, name)


# Their arguments are for torch's class, or shown as given.
ELSEWHERE = {"XLocator", "QueryIDs", "XLocator.create", "Experiment().names", "EngineSettings"}


def required_arguments(call):
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return [], []
    fitting = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    needed = [one for one in fitting if one.default is one.empty]
    return fitting, needed


def test_every_public_callable_with_wrong_arguments():
    n_failed = 0
    for name, call in public_callables():
        if name in ELSEWHERE:
            continue
        fitting, needed = required_arguments(call)
        for kind, wrong in WRONG.items():
            for one in fitting:
                # All that it needs is wrong, and then one more argument.
                arguments = {other.name: wrong for other in needed}
                arguments[one.name] = wrong
                by_place = [arguments.pop(p.name) for p in needed if p.kind is p.POSITIONAL_ONLY]
                n_failed += check(f"{name}({one.name}={kind})", lambda: call(*by_place, **arguments))
            n_failed += check(f"{name}({kind})", lambda: call(wrong))
    assert n_failed > 500


def test_each_argument_of_a_data_set_alone():
    names = set(inspect.signature(ExperimentDataset).parameters) - {"engine"}
    for name in [*sorted(names), *EngineSettings.__annotations__]:
        for kind, wrong in WRONG.items():
            check(f"{name}={kind}", lambda: ExperimentDataset(**{"uri": experiment_uri(), name: wrong}))
            check(f"only {name}={kind}", lambda: ExperimentDataset(**{name: wrong}))
    for name in [*list(inspect.signature(native.Loader).parameters)[1:-1], *SETTINGS]:
        for kind, wrong in WRONG.items():
            check(f"Loader {name}={kind}",
                  lambda: native.Loader(in_memory(matrix(4, 3)), **{name: wrong}))
    query_ids = QueryIDs(obs_joinids=[1], var_joinids=[1])
    check("a locator", lambda: ExperimentDataset(x_locator=LOCATOR, query_ids=query_ids))
    assert check("a query", lambda: ExperimentDataset(query=LOCATOR, layer_name="raw"))


def test_every_repr():
    ds = with_config()
    things = [
        ds, ds.x_locator, ds._cells.source, ds._cells, ds.dataset, LOCATOR, iter(ds), ds.query_ids,
        native.Experiment(experiment_uri(), config=CONFIG), *ds.random_split(0.5, 0.5, seed=1),
        ds.random_split(0.5, 0.5, seed=1)[0]._cells.source,
    ]
    for thing in things:
        for text in (repr(thing), str(thing), f"{thing}", f"{[thing]}"):
            assert SECRET not in text, text
    assert "aws_secret_access_key" in repr(LOCATOR) and "'s3://b/x'" in repr(LOCATOR)
    assert pickle.loads(pickle.dumps(LOCATOR)) == LOCATOR
    assert ds.x_locator.tiledb_config == CONFIG


PASSWORDS = [
    f"{SECRET} {SECRET}", f"a {SECRET}", f"1@{SECRET}", f"1#{SECRET}", f"{SECRET}%", f"%2F{SECRET}",
    f"1:{SECRET}", f"é {SECRET}ü", f"'{SECRET}\" {SECRET}", f"1 2@3#{SECRET}%:é",
]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("user", ["u", "", "u v", "é"])
def test_every_repr_of_an_address_with_any_password(user, password):
    address = f"s3://{user}:{password}@bucket/x"
    locator = XLocator(uri=address, measurement_name="RNA", layer_name="raw")
    assert repr(locator) == "XLocator(uri='s3://bucket/x', measurement_name='RNA', layer_name='raw')"
    selection = Selection(uri=address, obs_filter="a == 'b c'")
    assert "uri='s3://bucket/x'" in repr(selection) and "a == 'b c'" in repr(selection)
    assert SECRET not in repr(selection) + repr([selection])
    assert shown(address) == "'s3://bucket/x'"
    for wrong in ("memory", "obs_column_names", "genes", "form", "remainder", "world", "seed"):
        assert check(wrong, lambda: ExperimentDataset(uri=experiment_uri(), **{wrong: address}))
    check(address, lambda: ExperimentDataset(uri=f"nothing://{user}:{password}@bucket/x"))
    check(address, lambda: native.Experiment(f"http://{user}:{password}@127.0.0.1:1/a.h5ad", config=CONFIG))


@pytest.mark.parametrize("address", [
    f"http://user:{SECRET}@127.0.0.1:1/a.zarr",
    f"http://user:{SECRET}%2F@127.0.0.1:1/a.h5ad",
    f"http://user:a {SECRET}@127.0.0.1:1/a.h5ad",
    f"http://127.0.0.1:1/a.zarr?X-Amz-Signature={SECRET}",
    f"http://127.0.0.1:1/a.h5ad?sig={SECRET}&x=1#{SECRET}",
    f"s3://user:{SECRET}@b/x",
    "s3://b/x", "gs://b/x", "azure://b/x",
    f"file:///nowhere/x?sig={SECRET}",
    f"nothing://user:{SECRET}@b/x",
    f"census://user:{SECRET}@b/x",
    f"tiledb://user:{SECRET}@b/x",
])
@pytest.mark.parametrize("reader", ["auto", "libtiledb"])
def test_every_failing_address(address, reader):
    check(address, lambda: native.Experiment(address, config=CONFIG, reader=reader))
    check(address, lambda: ExperimentDataset(uri=address, config=CONFIG))
    check(address, lambda: native.Dataset.from_anndata(address, config=CONFIG))
    if reader == "auto":
        assert check(address, lambda: somafeed.ImageDataset(address, config=CONFIG))


def test_an_object_is_named_by_its_type():
    with pytest.raises(TypeError, match="not an object of type Shows"):
        ExperimentDataset(dataset=Shows())
    with pytest.raises(TypeError, match="not an object of type dict"):
        ExperimentDataset(uri=experiment_uri(), tokens=CONFIG)
    with pytest.raises(ValueError, match="there is no column"):
        pa.table(in_memory(matrix(4, 3)).obs().column("nothing"))
