"""Stores of sequences: in files, on servers, and written from files of records."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from somafeed import _somafeed as native
from somafeed.settings import names_of, number, positive
from somafeed.sources import parameters


@dataclass(frozen=True)
class SequenceServers:
    """Redis or Valkey servers with a store of sequences."""

    addresses: Sequence[str] = field(repr=False)
    """Addresses like `redis://host:7000`, or `rediss://user:password@host` with TLS. One node of a
    cluster is enough. Characters of a password that mean something in an address are written as `%`
    and two digits (`%40` for `@`)."""
    namespace: str = "sequences"
    """The name of the data set among the keys of the servers."""
    retry_for: float = 60.0
    """Seconds for which a key may fail, for example while a replica takes over."""
    root_certificates: bytes | None = field(default=None, repr=False)
    """Certificates that sign those of the servers, in PEM; None means those of the system."""

    def __post_init__(self) -> None:
        addresses = [self.addresses] if isinstance(self.addresses, str) else self.addresses
        object.__setattr__(self, "addresses", names_of("addresses", addresses))
        object.__setattr__(self, "retry_for", number("retry_for", self.retry_for))

    def fill(
        self,
        store: str | os.PathLike[str],
        *,
        sequences_per_key: int = 1,
        config: Mapping[str, Any] | None = None,
    ) -> int:
        """Copies a store to the servers, as far as they do not have it, and returns its number of
        sequences. Each value of the servers has `sequences_per_key` of them.

        Raises:
            FileExistsError: The namespace has another data set.
            ConnectionError: The servers cannot be reached.
        """
        per_key = positive("sequences_per_key", sequences_per_key)
        return native.fill_sequence_servers(
            os.fspath(store), self._plain(), config=parameters(config or {}),
            sequences_per_key=per_key,
        )

    def _plain(self) -> dict[str, Any]:
        return {
            "addresses": list(self.addresses),
            "namespace": self.namespace,
            "retry_secs": self.retry_for,
            "root_certificates": self.root_certificates,
        }


Store: TypeAlias = "str | os.PathLike[str] | SequenceServers"
"""A folder or an address of a store, the address of a server (`redis://`), or servers."""


Stores: TypeAlias = "Store | Sequence[Store] | Mapping[str, Store]"
"""A store, a list of several, or several by their names."""

STORE_TYPES = (str, os.PathLike, SequenceServers)


def import_sequences(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    *,
    skip_empty: bool = False,
    skip_doubled: bool = False,
) -> dict[str, Any]:
    """Writes the sequences of files to a new store, a folder that appears when it is complete.

    Args:
        files: FASTA, FASTQ, or lines of letters, a comma and a name; plain, or compressed by gzip,
            bgzip, bzip2 or zstd.
        store: The folder, which must not exist.
        skip_empty: Whether records without letters are left out.
        skip_doubled: Whether all but the first of several records with one name are left out.

    Returns:
        `n_sequences`, `n_letters`, `n_bytes` of the store, `n_empty` and `n_doubled` that were left
        out, and the `formats` of the files.

    Raises:
        ValueError: A record cannot be used; the message names the line.
        FileExistsError: The folder exists.
        OSError: A file cannot be read or written.
    """
    listed = [files] if isinstance(files, str | os.PathLike) else list(files)
    return native.import_sequences(
        [os.fspath(one) for one in listed], os.fspath(store), skip_empty=bool(skip_empty),
        skip_doubled=bool(skip_doubled),
    )


def open_stores(stores: list[Store], config: Mapping[str, Any] | None) -> native.Sequences:
    return native.Sequences([_described(one) for one in stores], config=parameters(config or {}))


def _described(store: Store) -> str | dict[str, Any]:
    if isinstance(store, str) and store.startswith(("redis://", "rediss://", "valkey://")):
        store = SequenceServers([store])
    return store._plain() if isinstance(store, SequenceServers) else os.fspath(store)
