"""A ledger of an older version is brought up to date when it is opened; nothing that it holds is lost."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, select, update
from sqlalchemy.schema import CreateColumn

from dipriv.ledger.queries import stored_guarantee
from dipriv.ledger.tables import ADDED, ADDED_TABLES, LEDGER, RELEASES, VERSION


def migrate(connection: Connection, version: int) -> None:
    """Add what versions after this one have. Needs the lock of an initialisation."""
    if version < 2:
        _add_delta(connection)
    if version < 3:  # contents of tables; those of older versions stay as they are
        for table in ADDED_TABLES[3]:
            table.create(connection, checkfirst=True)
        for column in ADDED[3]:
            _add_column(connection, column)
    connection.execute(update(LEDGER).values(version=VERSION))


def _add_delta(connection: Connection) -> None:
    """Version 2 counts δ beside ε: that of a release is the δ of its guarantee."""
    for column in ADDED[2]:
        _add_column(connection, column)
    for release in connection.execute(select(RELEASES.c.number, RELEASES.c.guarantee)).all():
        if delta := stored_guarantee(release.guarantee).delta:
            this = RELEASES.c.number == release.number
            connection.execute(update(RELEASES).where(this).values(delta=delta))


def _add_column(connection: Connection, column: Column[Any]) -> None:
    declared = CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f'ALTER TABLE "{column.table.name}" ADD COLUMN {declared}')
