"""Memory of batches that is pinned for a GPU, by a stand-in for CUDA's runtime: it must not be loaded
into the tests' own process, so each test is a script. It has a name that is looked for before that of
the runtime which torch may have brought along."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

BEGIN = """
import ctypes, gc, sys
import numpy as np, torch
sys.path.insert(0, {here!r})
cuda = ctypes.CDLL({library!r})
cuda.is_registered.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
from pathlib import Path
from somafeed import loaders
import test_device
loaders.gpu_of = lambda device: 2
folder = Path({folder!r})

def tensors_of(batch):
    parts = batch if isinstance(batch, tuple) else (batch,)
    for part in parts:
        if isinstance(part, dict):
            yield from tensors_of(tuple(part.values()))
        elif isinstance(part, torch.Tensor):
            if part.layout == torch.sparse_csr:
                yield from (part.col_indices(), part.values())
            else:
                yield part

def is_pinned(tensor):
    n_bytes = tensor.numel() * tensor.element_size()
    return bool(cuda.is_registered(tensor.data_ptr(), n_bytes))

def cells(form, **options):
    random = np.random.default_rng(5)
    dense = random.poisson(0.6, (700, 9)).astype(np.float32)
    rows, columns = np.nonzero(dense)
    made = test_device.Dataset.in_memory(
        np.r_[0, np.cumsum((dense > 0).sum(axis=1))], columns, dense[rows, columns], n_columns=9,
        obs=test_device.pa.table({{"cell_type": ["B cell"] * 700}}),
    )
    return test_device.dataset((made, dense), form=form, shuffle=True, seed=1, io_batch_size=64,
                               shuffle_chunk_size=8, **options)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("cuda") / "libcudart.so.11.0"
    compiler = shutil.which("cc") or shutil.which("gcc")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.11.0", "-o", made,
         HERE / "cuda_stand_in.c"],
        check=True,
    )
    return made


def run(library, folder, script):
    text = BEGIN.format(here=str(HERE), library=str(library), folder=str(folder)) + script
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="CUDA is looked for on Linux alone")
@pytest.mark.parametrize(
    ("made", "pinned"),
    [
        ("cells('torch')", 1),
        ("cells('torch_csr')", 2),
        ("test_device.fields(folder, form='torch', shuffle=True, seed=1, io_batch_size=16)", 2),
        ("test_device.images(folder, form='torch')", 1),
        ("test_device.own(folder, form='torch')", 2),
    ],
)
def test_batches_are_pinned_once(library, tmp_path, made, pinned):
    """Each large part of each batch lies in pinned memory, which goes round: later epochs pin hardly
    more, and all of it is let go of before it is freed."""
    run(library, tmp_path, f"""
dataset = {made}
for epoch in range(4):
    for batch in dataset:
        found = [is_pinned(tensor) for tensor in tensors_of(batch)]
        assert sum(found) >= {pinned}, found
        assert cuda.device_of_last_call() == 2 and cuda.current_device() == 5
    if epoch == 0:
        of_first = cuda.calls()
assert 0 < cuda.registered() <= cuda.calls() <= 2 * of_first + 4, (of_first, cuda.calls())
del batch, dataset
gc.collect()
assert cuda.registered() == 0, cuda.registered()
assert cuda.error_left() == 0
""")


@pytest.mark.skipif(sys.platform != "linux", reason="CUDA is looked for on Linux alone")
def test_memory_that_cuda_refuses(library, tmp_path):
    """Batches are the same, and torch does not find CUDA's error."""
    run(library, tmp_path, """
expected = [x.clone() for x, _ in cells('torch')]
assert cuda.calls() > 0
gc.collect()
cuda.refuse(1)
calls = cuda.calls()
found = [x.clone() for x, _ in cells('torch')]
assert cuda.calls() > calls and cuda.error_left() == 0
assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
""")


def test_nothing_is_pinned_without_a_gpu(library, tmp_path):
    run(library, tmp_path, """
loaders.gpu_of = lambda device: None
for batch in cells('torch'):
    assert not any(map(is_pinned, tensors_of(batch)))
assert cuda.calls() == 0
""")
