"""The tables of a ledger's database, and how a new ledger is set up."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
)

from dipriv.ledger.entries import LedgerError

VERSION = 1
KEY_BYTES = 32

_ALL = MetaData()

LEDGER = Table(  # one row
    "dipriv_ledger",
    _ALL,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint_key", LargeBinary, nullable=False),
    Column("created", Text, nullable=False),
)
DATASETS = Table(
    "dipriv_datasets",
    _ALL,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("budget", Double),
    Column("split_key", LargeBinary, nullable=False),
    Column("holdout", Double),
    Column("split_by", Text),  # as JSON: names of columns may have characters that no database takes
    Column("created", Text, nullable=False),
    sqlite_autoincrement=True,
)
FINGERPRINTS = Table(
    "dipriv_fingerprints",
    _ALL,
    Column("fingerprint", LargeBinary, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False),
    Column("rows", BigInteger, nullable=False),
)
RELEASES = Table(
    "dipriv_releases",
    _ALL,
    Column("number", Integer, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False, index=True),
    Column("epsilon", Double, CheckConstraint("epsilon > 0"), nullable=False),
    Column("state", Text, CheckConstraint("state IN ('reserved', 'done', 'failed')"), nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text),
    Column("rows", BigInteger),
    Column("guarantee", Text, nullable=False),
    Column("output", Text),
    sqlite_autoincrement=True,
)


def is_set_up(connection: Connection, place: str) -> bool:
    """True for a ledger of this version, False for an empty database; anything else is refused."""
    tables = inspect(connection)
    if tables.has_table(LEDGER.name):
        _check_version(connection.execute(select(LEDGER.c.version)).scalar(), place)
        return True
    if connection.dialect.name == "sqlite" and tables.get_table_names():
        raise LedgerError(
            f"{place} is a database, but not a dipriv ledger.", "Give the ledger's own file, or the name of a new file."
        )
    return False


def set_up(connection: Connection) -> None:
    """Make the tables and the ledger's secret key."""
    _ALL.create_all(connection)
    connection.execute(
        insert(LEDGER).values(id=1, version=VERSION, fingerprint_key=os.urandom(KEY_BYTES), created=now())
    )


def now() -> str:
    """The time in UTC, as it is stored."""
    return datetime.now(UTC).isoformat()


def _check_version(version: object, place: str) -> None:
    if version != VERSION:
        raise LedgerError(
            f"the ledger {place} has version {version}, and this dipriv knows version {VERSION}.",
            "Use the version of dipriv that wrote it, or a newer one.",
        )
