"""A store by the name that people give it: a file, or the address of a PostgreSQL database."""

import os
from pathlib import Path

from discreet.collect._pool import read_seal
from discreet.collect._sqlite import SqliteStore
from discreet.collect._store import Store
from discreet.errors import DiscreetError

_POSTGRES = ("postgresql", "postgres")
_SQLITE = b"SQLite format 3\0"  # how such a file begins


def is_store(where: str) -> bool:
    """Whether a name is that of a store, among names of tables: an address of a database, or a file of SQLite."""
    scheme, found, _ = where.partition("://")
    if found:
        return scheme in _POSTGRES
    try:
        with open(where, "rb") as file:
            return os.path.isfile(where) and file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


def display_name(where: str) -> str:
    """A store's name for people to read: an address without its password."""
    if where.partition("://")[0] not in _POSTGRES:
        return where
    from discreet.collect._postgres import shown_address

    return shown_address(where)


def open_store(where: str | Path, *, create: bool = True, seal: str | Path | None = None) -> Store:
    """Open the store of a collection.

    Args:
        where: an SQLite file, or `postgresql://USER@HOST/DATABASE`.
        create: make a file that is not there, and tables in a database that has none.
        seal: the file with the key that the store is sealed under, or is to be from the next sample on; by default the one that the
            variable DISCREET_SEAL names, if any.

    Returns:
        The store.

    Raises:
        StoreError: for what cannot be opened, is no store or is one of a newer version; nothing is overwritten.
    """
    if not isinstance(where, str | os.PathLike) or not str(where):
        raise DiscreetError(f"where = {where!r} is not the name of a file or an address postgresql://...")
    scheme, found, _ = str(where).partition("://")
    if found and scheme in _POSTGRES:
        from discreet.collect._postgres import PostgresStore  # whose driver who has files does not need

        return PostgresStore(str(where), create=create, seal=read_seal(seal))
    if found:
        raise DiscreetError(f"a store is a file, or postgresql://...; {scheme}:// is neither")
    return SqliteStore(where, create=create, seal=read_seal(seal))
