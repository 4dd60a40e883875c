"""Checks the hashes of wheels and unpacks files from them. Reads a plan as JSON from stdin; runs on any Python 3.

{"need_bytes": n, "folder": path}                          fails if the folder's disk has less free space
{"file": path, "sha256": hex}                              fails unless the file has that hash
{"into": path, "members": [{"wheel": path, "from": name or "prefix/", "to": name or "prefix/"}]}
"""
import errno
import hashlib
import json
import os
import shutil
import sys
import zipfile

MISMATCH = 10
FULL = 28


def fail(message, code=1):
    sys.stderr.write(message.replace("\n", " ") + "\n")
    sys.exit(code)


def check_space(plan):
    free = shutil.disk_usage(plan["folder"]).free
    if free < plan["need_bytes"]:
        fail("%d" % free, FULL)


def check_hash(plan):
    found = hashlib.sha256()
    with open(plan["file"], "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
    if found.hexdigest() != plan["sha256"]:
        fail(found.hexdigest(), MISMATCH)


def names_of(archive, member):
    """Pairs of a name in the archive and the name that it gets."""
    start = member["from"]
    if not start.endswith("/"):
        return [(start, member["to"])]
    inside = [n for n in archive.namelist() if n.startswith(start) and not n.endswith("/")]
    if not inside:
        fail("%s has nothing in %s" % (member["wheel"], start))
    return [(n, member["to"] + n[len(start):]) for n in inside]


def extract(plan):
    for member in plan["members"]:
        with zipfile.ZipFile(member["wheel"]) as archive:
            for name, to in names_of(archive, member):
                if ".." in to.split("/") or to.startswith("/"):
                    fail("%s has a file outside of its folder: %s" % (member["wheel"], name))
                target = os.path.join(plan["into"], *to.split("/"))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                try:
                    source = archive.open(name)
                except KeyError:
                    fail("%s has no file %s" % (member["wheel"], name))
                with source, open(target, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    # The folder is renamed into place afterwards, so its files must be on disk by then.
    if hasattr(os, "sync"):
        os.sync()


def main():
    plan = json.load(sys.stdin)
    try:
        if "need_bytes" in plan:
            check_space(plan)
        elif "sha256" in plan:
            check_hash(plan)
        else:
            extract(plan)
    except OSError as error:
        fail(str(error), FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else 1)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError) as error:
        fail("not a whole wheel: %s" % error)


main()
