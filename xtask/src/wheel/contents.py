"""Checks what a wheel and an sdist contain beside their code: licence texts, and the packages."""

import json
import sys
import tarfile
import zipfile

NOTICES = "LICENSE-THIRD-PARTY.txt"
LICENSES = {"LICENSE-APACHE", "LICENSE-MIT", NOTICES}

wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
found = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
if found != LICENSES:
    sys.exit(f"the licences in the wheel are {sorted(found)}, not {sorted(LICENSES)}")
(notices,) = (name for name in names if name.endswith(NOTICES))
notices = wheel.read(notices).decode()
lines = notices.partition("\n\n")[2].partition("\n\n")[0].splitlines()
listed = {tuple(line.partition(": ")[0].split(" ")) for line in lines}
boms = [name for name in names if ".dist-info/sboms/" in name and name.endswith(".cyclonedx.json")]
if len(boms) != 1:
    sys.exit(f"the wheel has {len(boms)} bills of materials")
components = json.loads(wheel.read(boms[0]))["components"]
absent = listed - {(one["name"], one["version"]) for one in components}
if absent or len(listed) < 200:
    sys.exit(f"of {len(listed)} packages in the notices, the bill of materials lacks {sorted(absent)}")

with tarfile.open(sys.argv[2]) as sdist:
    top = sdist.getnames()[0].partition("/")[0]
    absent = {f"{top}/{name}" for name in [*LICENSES, "Cargo.lock"]} - set(sdist.getnames())
    if absent:
        sys.exit(f"the sdist lacks {sorted(absent)}")
    if sdist.extractfile(f"{top}/{NOTICES}").read().decode() != notices:
        sys.exit("the notices of the sdist are not those of the wheel")
print(f"{len(listed)} packages with their licences, {len(components)} in the bill of materials")
