"""Builds the site: writes its pages for Sphinx, from docs and from what the package says of itself,
and runs Sphinx, for which warnings are errors. `cargo xtask site` calls it."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import commands
from pages import Site
from reference import CHAPTERS, Reference

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the site")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter that runs the package")
    parser.add_argument("--package", type=Path, required=True, help="folder with the built package")
    parser.add_argument("--version", required=True)
    parser.add_argument("--repository", default="", help="address of the repository")
    job = parser.parse_args()

    # Pages that are gone would stay.
    shutil.rmtree(job.out, ignore_errors=True)
    source = job.out / "source"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [one for one in listed.stdout.splitlines() if (ROOT / one).exists()]
    site = Site(ROOT, files, source, job.repository)

    first, found = commands.pages(commands.Program(job.python, job.package))
    for name, text in found.items():
        site.add_below(f"reference/commands/{name}", text)
    site.add("Reference", "Commands", "reference/commands", first, [f"reference/commands/{one}" for one in found])

    first, found = Reference(ROOT / "python").pages()
    for name, text in found.items():
        site.add_below(f"reference/python-reference/{name}", text)
    names = [f"reference/python-reference/{one}" for one in [*CHAPTERS, "types"]]
    site.add("Reference", "Python reference", "reference/python-reference", first, names)

    site.write()
    if site.waiting:
        print(f"{site.waiting} links to files of the repository are texts until Cargo.toml has its address")

    environment = {**os.environ, "SOMAFEED_VERSION": job.version, "SOMAFEED_REPOSITORY": job.repository}
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-b", "html"]
    sphinx += ["-c", Path(__file__).parent, "-d", job.out / "doctrees", source, job.out / "html"]
    return subprocess.run(sphinx, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
