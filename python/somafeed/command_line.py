"""The command line: `somafeed sweep` and other commands, with the arguments of `cargo xtask`."""

import signal
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any


def main() -> int:
    """Runs the command of `sys.argv` and returns its exit code."""
    from somafeed import _somafeed

    return _run(_somafeed)


def _run(native: Any) -> int:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The commands keep what they have measured; Python's handler would wait for their end.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Measured processes start without site-packages.
    start = [sys.executable, "-I", "-S", __file__]
    code: int = native.run_program(sys.argv[1:], start, native.__file__)
    return code


def _native_alone() -> Any:
    """The native module without the package, whose numpy would be measured with the loader."""
    spec = PathFinder.find_spec("_somafeed", [str(Path(__file__).parent)])
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no native module beside {__file__}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(_run(_native_alone()))
