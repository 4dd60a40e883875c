"""Packs wheel and programs for `run.py`: `python3 pack.py bundle.tar.xz WHEEL PROGRAM[=NAME] ...`.

Programs are stripped of symbols. The wheel is packed without its own compression, which is weaker.
"""

import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FILTERS = [
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 128 << 20},
]


def main(archive: str, wheel: str, *programs: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with lzma.open(archive, "wb", filters=FILTERS) as compressed:
            with tarfile.open(fileobj=compressed, mode="w") as tar:
                tar.add(stored(Path(wheel), Path(folder)), f"wheels/{Path(wheel).name}")
                for program in programs:
                    path, _, name = program.partition("=")
                    stripped = Path(folder) / (name or Path(path).name)
                    shutil.copy(path, stripped)
                    subprocess.run(["strip", stripped], check=True)
                    tar.add(stripped, f"programs/{stripped.name}")


def stored(wheel: Path, folder: Path) -> Path:
    """A copy of a wheel whose files are not compressed."""
    copy = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as target:
        for file in source.infolist():
            target.writestr(file.filename, source.read(file))
    return copy


if __name__ == "__main__":
    main(*sys.argv[1:])
