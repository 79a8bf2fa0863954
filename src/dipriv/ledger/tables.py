"""The tables of a ledger's database, their initialisation, and the validation of an existing file.

SQLite stores any value in any column, and executes triggers and views of the file. A ledger file is therefore untrusted
input: when it is opened, its tables must be plain tables, and every value one that dipriv could have written.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

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

from dipriv._base.table_fingerprint import SAMPLE_SIZE, SKETCH_SIZE
from dipriv.errors import LedgerError

VERSION = 7
"""Version 1 had no δ; versions 1 and 2 had one fingerprint a table, which depended on options of the release. Version 3
had small samples of rows, without counts, and what a keeper affirmed of a table held for its data set. Version 4
did not tell the releases of a data set from those of others with rows of it. Version 5 held out persons by their keys
as they are written. Version 6 did not keep who is held out."""
KEY_BYTES = 32
MAX_VALUE_BYTES = 1 << 24
"""The longest text or blob that SQLite may read from a ledger."""

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
    Column("delta_budget", Double),
    Column("split_key", LargeBinary, nullable=False),
    Column("holdout", Double),
    Column("split_by", Text),  # as JSON: column names may have characters that no database can store
    Column(  # before version 6, "007" and 7 were different keys of a split
        "splits_by_cells", Integer, CheckConstraint("splits_by_cells IN (0, 1)"), nullable=False, server_default="0"
    ),
    Column("created", Text, nullable=False),
    sqlite_autoincrement=True,
)
FINGERPRINTS = Table(  # of versions 1 and 2: no table can be compared with them any more, but for its number of rows
    "dipriv_fingerprints",
    _ALL,
    Column("fingerprint", LargeBinary, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False),
    Column("rows", BigInteger, nullable=False),
)
CONTENTS = Table(  # see dipriv._base.table_fingerprint
    "dipriv_contents",
    _ALL,
    Column("id", Integer, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False, index=True),
    Column("rows", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False, index=True),
    Column("row_order", LargeBinary, nullable=False),
    Column("named_order", LargeBinary),
    Column("is_ordered", Integer, CheckConstraint("is_ordered IN (0, 1)"), nullable=False),
    Column("row_sketch", LargeBinary, nullable=False),
    Column("repeats", BigInteger, nullable=False, server_default="1"),
    Column(
        "is_own", Integer, CheckConstraint("is_own IN (0, 1)"), nullable=False, server_default="1"
    ),  # as of releases
    Column("created", Text, nullable=False),
    sqlite_autoincrement=True,
)
COLUMNS = Table(
    "dipriv_columns",
    _ALL,
    Column("id", Integer, primary_key=True),
    Column("content", ForeignKey(CONTENTS.c.id), nullable=False, index=True),
    Column("digest", LargeBinary, nullable=False, index=True),
    Column("n_distinct", BigInteger, nullable=False),
    Column("sketch", LargeBinary, nullable=False),
    Column("tags", LargeBinary, nullable=False),
    Column("label", LargeBinary),
    sqlite_autoincrement=True,
)
SAMPLES = Table(  # of the rows of a table, hashed in several ways
    "dipriv_samples",
    _ALL,
    Column("id", Integer, primary_key=True),
    Column("content", ForeignKey(CONTENTS.c.id), nullable=False, index=True),
    Column("way", Integer, nullable=False),
    Column("sample", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)
DISTINCT = Table(  # the keeper affirmed that a table of `dataset` describes other people than those of `other`
    "dipriv_distinct",
    _ALL,
    Column("id", Integer, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False),
    Column("other", ForeignKey(DATASETS.c.id), nullable=False),
    Column("content", LargeBinary),
    Column("created", Text, nullable=False),
    sqlite_autoincrement=True,
)
RELEASES = Table(
    "dipriv_releases",
    _ALL,
    Column("number", Integer, primary_key=True),
    Column("dataset", ForeignKey(DATASETS.c.id), nullable=False, index=True),
    Column("epsilon", Double, CheckConstraint("epsilon > 0"), nullable=False),
    Column("delta", Double, CheckConstraint("delta >= 0"), nullable=False, server_default="0"),
    Column("state", Text, CheckConstraint("state IN ('reserved', 'done', 'failed')"), nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text),
    Column("rows", BigInteger),
    Column("guarantee", Text, nullable=False),
    Column("output", Text),
    Column("unit_digest", LargeBinary),  # of the cells of the column of the privacy unit or of the split
    Column("keys_digest", LargeBinary),  # of the keys that persons were held out by, as they were read
    # 0: made for another data set, by a stream that had rows of this one
    Column("is_own", Integer, CheckConstraint("is_own IN (0, 1)"), nullable=False, server_default="1"),
    sqlite_autoincrement=True,
)
ADDED: dict[int, tuple[Column[Any], ...]] = {
    2: (DATASETS.c.delta_budget, RELEASES.c.delta),
    3: (RELEASES.c.unit_digest,),
    4: (CONTENTS.c.repeats, COLUMNS.c.label, DISTINCT.c.content),
    5: (CONTENTS.c.is_own, RELEASES.c.is_own),
    6: (DATASETS.c.splits_by_cells,),
    7: (RELEASES.c.keys_digest, CONTENTS.c.named_order),
}
"""The columns that each version after the first added."""
ADDED_TABLES: dict[int, tuple[Table, ...]] = {3: (CONTENTS, COLUMNS, DISTINCT), 4: (SAMPLES,)}
"""The tables that each version after the first added."""


_NUMBER = "typeof({0}) = 'real' AND {0} > 0 AND {0} <= 1.7976931348623157e308"
_DELTA = "typeof({0}) = 'real' AND {0} BETWEEN 0 AND 1"
_KEY = f"typeof({{0}}) = 'blob' AND length({{0}}) = {KEY_BYTES}"
_COUNT = "typeof({0}) = 'integer' AND {0} >= 0"
_FLAG = f"{_COUNT} AND {{0}} <= 1"
_TEXT = "typeof({0}) = 'text'"
_BLOB = "typeof({0}) = 'blob'"
_DIGEST = f"{_BLOB} AND length({{0}}) = 16"
_SKETCH = f"{_BLOB} AND length({{0}}) <= {8 * SKETCH_SIZE} AND length({{0}}) % 8 = 0"
_SAMPLE = f"{_BLOB} AND length({{0}}) <= {8 * (SAMPLE_SIZE + 1)} AND length({{0}}) % 8 = 0"
_KNOWN = f"{_COUNT} AND {{0}} IN (SELECT id FROM {DATASETS.name})"  # noqa: S608
_KNOWN_CONTENT = f"{_COUNT} AND {{0}} IN (SELECT id FROM {CONTENTS.name})"  # noqa: S608
_RULES = {  # a SQL condition for each column; a null is allowed where the column is nullable
    LEDGER: {"id": _COUNT, "fingerprint_key": _KEY, "created": _TEXT},
    DATASETS: {
        "id": _COUNT,
        "name": f"{_TEXT} AND length({{0}}) BETWEEN 1 AND 100",
        "budget": _NUMBER,
        "delta_budget": _DELTA,
        "split_key": _KEY,
        "holdout": f"{_NUMBER} AND {{0}} < 1",
        "split_by": _TEXT,
        "splits_by_cells": _FLAG,
        "created": _TEXT,
    },
    FINGERPRINTS: {"fingerprint": _BLOB, "dataset": _KNOWN, "rows": _COUNT},
    CONTENTS: {
        "id": _COUNT,
        "dataset": _KNOWN,
        "rows": _COUNT,
        "content": _DIGEST,
        "row_order": _DIGEST,
        "named_order": _DIGEST,
        "is_ordered": _FLAG,
        "row_sketch": _SKETCH,
        "repeats": f"{_COUNT} AND {{0}} > 0",
        "is_own": _FLAG,
        "created": _TEXT,
    },
    COLUMNS: {
        "id": _COUNT,
        "content": _KNOWN_CONTENT,
        "digest": _DIGEST,
        "n_distinct": _COUNT,
        "sketch": _SAMPLE,
        "tags": _SKETCH,
        "label": _DIGEST,
    },
    SAMPLES: {"id": _COUNT, "content": _KNOWN_CONTENT, "way": _COUNT, "sample": _SAMPLE},
    DISTINCT: {"id": _COUNT, "dataset": _KNOWN, "other": _KNOWN, "content": _DIGEST, "created": _TEXT},
    RELEASES: {
        "number": _COUNT,
        "dataset": _KNOWN,
        "epsilon": _NUMBER,
        "delta": _DELTA,
        "state": "{0} IN ('reserved', 'done', 'failed')",
        "started": _TEXT,
        "finished": _TEXT,
        "rows": _COUNT,
        "guarantee": _TEXT,
        "output": _TEXT,
        "unit_digest": _DIGEST,
        "keys_digest": _DIGEST,
        "is_own": _FLAG,
    },
}


def stored_version(connection: Connection, place: str) -> int | None:
    """The version of a ledger that is in order, None for an empty database; raises LedgerError for anything else."""
    tables = inspect(connection)
    is_file = connection.dialect.name == "sqlite"
    if tables.has_table(LEDGER.name):
        if is_file:
            _check_tables(connection, place, {LEDGER})
        version = _checked_version(connection.execute(select(LEDGER.c.version)).scalar(), place)
        if is_file:
            _check_tables(connection, place, {*_RULES} - _later(ADDED_TABLES, version))
            _check_values(connection, place, version)
        return version
    if is_file and tables.get_table_names():
        raise LedgerError(f"{place} is a database, but not a dipriv ledger.", "Give the ledger's own file.")
    return None


def _later(added: dict[int, tuple[Any, ...]], version: int) -> set[Any]:
    return {one for since, several in added.items() if since > version for one in several}


def _check_tables(connection: Connection, place: str, needed: set[Table]) -> None:
    """The file has these tables, no triggers and no views, and its tables have no generated columns."""
    found = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").all()
    plain = {row.name for row in found if row.type == "table" and str(row.sql).startswith("CREATE TABLE")}
    names = {table.name for table in _RULES}
    computed = any(
        row.hidden for name in names & plain for row in connection.exec_driver_sql(f'PRAGMA table_xinfo("{name}")')
    )
    missing = {table.name for table in needed} - plain
    if computed or missing or any(row.type in ("trigger", "view") for row in found):
        raise LedgerError(
            f"{place} has tables, views or triggers that are not those of a dipriv ledger.",
            "Restore it from a backup, and release nothing before.",
        )


def _check_values(connection: Connection, place: str, version: int) -> None:
    later, later_tables = _later(ADDED, version), _later(ADDED_TABLES, version)
    for table, rules in _RULES.items():
        for name, rule in rules.items():
            if table in later_tables or table.c[name] in later:
                continue
            column = f'"{name}"'
            valid = rule.format(column) + (f" OR {column} IS NULL" if table.c[name].nullable else "")
            query = f'SELECT EXISTS (SELECT 1 FROM "{table.name}" WHERE ({valid}) IS NOT 1)'  # noqa: S608 (our own)
            if connection.exec_driver_sql(query).scalar():
                raise damaged(place, f"{table.name}.{name}")


def damaged(place: str, what: str = "an entry") -> LedgerError:
    """The error for a ledger with a value that dipriv does not write."""
    return LedgerError(
        f"the ledger {place} is damaged: {what} has a value that dipriv does not write.",
        "Restore it from a backup, and release nothing before.",
    )


def initialise(connection: Connection) -> None:
    """Create the tables and the ledger's secret key."""
    _ALL.create_all(connection)
    connection.execute(
        insert(LEDGER).values(id=1, version=VERSION, fingerprint_key=os.urandom(KEY_BYTES), created=now())
    )


def now() -> str:
    """The current time in UTC, in the stored format."""
    return datetime.now(UTC).isoformat()


def _checked_version(version: object, place: str) -> int:
    if type(version) is not int or not 1 <= version <= VERSION:
        raise LedgerError(
            f"the ledger {place} has version {version}; this dipriv reads versions 1 to {VERSION}.",
            "Use the version of dipriv that wrote it, or a newer one.",
        )
    return version
