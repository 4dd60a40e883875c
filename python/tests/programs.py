"""Programs that tests run in processes of their own."""

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
