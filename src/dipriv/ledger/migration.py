"""A ledger of an older version is brought up to date when it is opened; nothing that it holds is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Column, Connection, func, select, update
from sqlalchemy.schema import CreateColumn

from dipriv._base.table_fingerprint import SKETCH_SIZE, packed_sample
from dipriv.guarantee.guarantee import Model
from dipriv.ledger.queries import stored_guarantee
from dipriv.ledger.tables import ADDED, ADDED_TABLES, COLUMNS, LEDGER, RELEASES, VERSION


def migrate(connection: Connection, version: int) -> None:
    """Add what versions after this one have. Needs the lock of an initialisation."""
    later = range(version + 1, VERSION + 1)
    tables = [table for added in later for table in ADDED_TABLES.get(added, ())]
    for table in tables:
        table.create(connection, checkfirst=True)
    for column in (column for added in later for column in ADDED[added] if column.table not in tables):
        _add_column(connection, column)
    if version < 2:
        _count_delta(connection)
    if version == 3:  # versions 1 and 2 knew no columns
        _resample(connection)
    connection.execute(update(LEDGER).values(version=VERSION))


def _count_delta(connection: Connection) -> None:
    """Version 2 counts δ beside ε: that of a release is the δ of its guarantee, or 1 if that cannot be read."""
    for release in connection.execute(select(RELEASES.c.number, RELEASES.c.guarantee)).all():
        guarantee = stored_guarantee(release.guarantee)
        if delta := 1.0 if guarantee.model is Model.NONE else guarantee.delta:
            this = RELEASES.c.number == release.number
            connection.execute(update(RELEASES).where(this).values(delta=delta))


def _resample(connection: Connection) -> None:
    """Version 4 samples more values of a column, with counts: those of version 3 are samples without counts."""
    sampled = select(COLUMNS.c.id, COLUMNS.c.sketch).where(func.length(COLUMNS.c.sketch) > 0)
    for column in connection.execute(sampled).all():
        hashes = np.frombuffer(bytes(column.sketch), dtype="<u8").astype(np.uint64)
        end = int(hashes[-1]) if len(hashes) == SKETCH_SIZE else 2**64 - 1
        sample = packed_sample(hashes, np.zeros_like(hashes), end)
        connection.execute(update(COLUMNS).where(COLUMNS.c.id == column.id).values(sketch=sample))


def _add_column(connection: Connection, column: Column[Any]) -> None:
    declared = CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f'ALTER TABLE "{column.table.name}" ADD COLUMN {declared}')
