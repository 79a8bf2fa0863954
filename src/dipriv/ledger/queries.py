"""Queries within a transaction: accounts with their exact sums, names and fingerprints, and the rows of releases."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, RowMapping, func, insert, select

from dipriv.errors import BudgetError, InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, unreadable
from dipriv.ledger.request import DatasetState
from dipriv.ledger.tables import DATASETS, FINGERPRINTS, KEY_BYTES, LEDGER, RELEASES, now
from dipriv.ledger.values import Dataset, Record, as_name, check_name, exact, round_up


@dataclass(frozen=True)
class Account:
    """A data set as others see it, its number in the database, and what is spent, exactly."""

    dataset: Dataset
    id: int
    spent: Fraction


def accounts(connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
    """The accounts that meet the conditions: one statement, so that budgets and sums are of one moment."""
    facts = (DATASETS.c.id, DATASETS.c.name, DATASETS.c.budget, DATASETS.c.created)
    found = connection.execute(
        select(*facts, RELEASES.c.epsilon, func.count(RELEASES.c.number).label("times"))
        .join_from(DATASETS, RELEASES, isouter=True)
        .where(*conditions)
        .group_by(*facts, RELEASES.c.epsilon)
    )
    groups: dict[int, list[Any]] = {}
    for row in found:
        groups.setdefault(row.id, []).append(row)
    return [_account(rows) for rows in groups.values()]


def account(connection: Connection, name: str) -> Account:
    """The account of a name, which must be known."""
    name = check_name(name)
    for found in accounts(connection, DATASETS.c.name == name):
        return found
    known = connection.execute(select(func.count()).select_from(DATASETS)).scalar_one()
    raise LedgerError(
        f"the ledger has no data set {name!r} among its {known}.",
        "See their names with: dipriv ledger; or register it by setting its budget or releasing it.",
    )


def locked_account(connection: Connection, name: str) -> Account:
    """The account of a name, as it stays until the transaction ends: the others wait (SQLite locks the whole file)."""
    connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == check_name(name)).with_for_update()).all()
    return account(connection, name)


def lock_names(connection: Connection) -> None:
    """From here until the transaction ends, nobody else registers a name or a fingerprint."""
    connection.execute(select(LEDGER.c.id).with_for_update()).all()


def choose(connection: Connection, name: str | None, fingerprint: bytes, suggestion: str | None) -> str:
    """The name of the data set that a table belongs to, known or new; refuses what would evade a budget."""
    asked = None if name is None else check_name(name)
    found = owner(connection, fingerprint)
    if found is not None and asked not in (None, found):
        raise BudgetError(
            f"this table is already known as data set {found!r}; as {asked!r} it would have a second budget.",
            f"Use the name {found!r}, or none.",
        )
    if asked or found:
        return asked or str(found)
    if suggestion is None:
        raise InputError("the ledger does not know this table.", "Name its data set: dataset=...")
    chosen = as_name(suggestion)
    if chosen in names_with_content(connection):
        raise BudgetError(
            f"data set {chosen!r} is known with other rows than this table has.",
            f"Say which it is: dataset {chosen!r} if rows were added to it, another name if not "
            "(--dataset NAME, or dataset=...).",
        )
    return chosen


def register(connection: Connection, name: str, fingerprint: bytes, rows: int) -> int:
    """The number of the data set of this name, and the fingerprint in it; both new if need be; under `lock_names`."""
    dataset = find_or_register(connection, name)
    if owner(connection, fingerprint) is None:
        connection.execute(insert(FINGERPRINTS).values(fingerprint=fingerprint, dataset=dataset, rows=rows))
    return dataset


def preview(connection: Connection, name: str) -> DatasetState:
    """What is known of a data set."""
    row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).mappings().one_or_none()
    if row is None:
        return DatasetState(name)
    ours = select(FINGERPRINTS.c.rows, FINGERPRINTS.c.fingerprint).where(FINGERPRINTS.c.dataset == row["id"])
    return DatasetState(
        name=name,
        releases=account(connection, name).dataset.releases,
        holdout=row["holdout"],
        by=None if row["split_by"] is None else _as(str, json.loads(row["split_by"])),
        split_key=bytes(row["split_key"]),
        contents=tuple(sorted((found.rows, bytes(found.fingerprint)) for found in connection.execute(ours))),
    )


def find_or_register(connection: Connection, name: str) -> int:
    """The number of the data set of this name, a new one with a key of its own if there is none; under `lock_names`."""
    found = connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == name)).scalar()
    if found is None:
        entry = insert(DATASETS).values(name=name, split_key=os.urandom(KEY_BYTES), created=now())
        return add(connection, entry)
    return int(found)


def add(connection: Connection, entry: Insert) -> int:
    """The number of a new row."""
    key = connection.execute(entry).inserted_primary_key
    assert key is not None  # noqa: S101 (both databases tell it)
    return int(key[0])


def owner(connection: Connection, fingerprint: bytes) -> str | None:
    """The name of the data set that has this fingerprint."""
    found = select(DATASETS.c.name).join_from(DATASETS, FINGERPRINTS).where(FINGERPRINTS.c.fingerprint == fingerprint)
    name: str | None = connection.execute(found).scalar()
    return name


def names_with_content(connection: Connection) -> set[str]:
    """The names of the data sets that have a fingerprint."""
    return set(connection.execute(select(DATASETS.c.name).join_from(DATASETS, FINGERPRINTS).distinct()).scalars())


def record(name: str, row: RowMapping) -> Record:
    """A row of the table of releases."""
    finished = row["finished"]
    return Record(
        number=row["number"],
        dataset=name,
        epsilon=row["epsilon"],
        state=row["state"],
        started=datetime.fromisoformat(row["started"]),
        finished=None if finished is None else datetime.fromisoformat(finished),
        rows=row["rows"],
        guarantee=_guarantee(row["guarantee"]),
        output=row["output"],
    )


def _guarantee(text: str) -> Guarantee:
    """What a release guaranteed; a record that cannot be read guarantees nothing, and the others stay of use."""
    try:
        return Guarantee.from_dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return unreadable()


def _as(of: type, plain: Any) -> Any:
    """What JSON was written of; a null is one of anything."""
    if plain is not None and not isinstance(plain, of):
        raise TypeError(f"not a {of.__name__}")
    return plain


def _account(rows: list[Any]) -> Account:
    first = rows[0]
    spent = sum((exact(row.epsilon) * row.times for row in rows if row.times), Fraction())
    releases = sum(row.times for row in rows)
    dataset = Dataset(first.name, first.budget, round_up(spent), releases, datetime.fromisoformat(first.created))
    return Account(dataset, first.id, spent)
