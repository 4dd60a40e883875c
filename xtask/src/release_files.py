"""Puts what a release consists of into one folder: `python3 release_files.py FOLDER FILE ...`.

Beside the files there are the notices and the list of parts of the wheel, and `SHA256SUMS`, which
`sha256sum --check` reads. conda-forge's recipe gets the checksum of the sdist.
"""

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path, PurePosixPath

NO_CHECKSUM = "0" * 64
FROM_THE_WHEEL = ("LICENSE-THIRD-PARTY", ".cyclonedx.json", ".cdx.json")


def main(folder: str, *files: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True)
    paths = [Path(file) for file in files]
    [sdist] = [path for path in paths if path.name.endswith(".tar.gz")]
    for path in paths:
        if path.suffix == ".yaml":
            text = path.read_text().replace(NO_CHECKSUM, checksum(sdist))
            (target / path.name).write_text(text)
        else:
            shutil.copy(path, target / path.name)
        if path.suffix == ".whl":
            unpack(path, target)
    written = sorted(target.iterdir())
    sums = "".join(f"{checksum(path)}  {path.name}\n" for path in written)
    (target / "SHA256SUMS").write_text(sums)


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpack(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if any(part in member for part in FROM_THE_WHEEL):
                (target / PurePosixPath(member).name).write_bytes(archive.read(member))


if __name__ == "__main__":
    main(*sys.argv[1:])
