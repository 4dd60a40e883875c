"""Programs that tests run in processes of their own."""

import ctypes
import signal
import subprocess
import sys
from contextlib import contextmanager

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import somafeed
"""


def hidden(*names):
    """The beginning of a program for which these packages are not installed."""
    return HIDDEN.format(names=names)


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def bucket(folder):
    """Serves a folder in the way of S3: its address, and the settings with which it is read."""
    command = [sys.executable, "-m", "somafeed", "serve-link", "--link", "1ms", "--name", "store",
               "--", str(folder)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield "s3://link/store", {
            "vfs.s3.endpoint_override": process.stdout.readline().strip(), "vfs.s3.scheme": "http",
            "vfs.s3.region": "us-east-1", "vfs.s3.use_virtual_addressing": "false",
            "vfs.s3.no_sign_request": "true",
        }


@contextmanager
def started(command, **options):
    """A process that ends with the block, and with this process, however that ends."""
    with subprocess.Popen(command, preexec_fn=_die_with_parent, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
