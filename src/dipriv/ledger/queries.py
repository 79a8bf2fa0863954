"""Queries within a transaction: data sets with exact sums of ε and δ, names, fingerprints, records of releases."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, RowMapping, func, insert, select

from dipriv._base.decimals import exact, round_up
from dipriv.errors import BudgetError, InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, unreadable
from dipriv.ledger.request import DatasetState
from dipriv.ledger.tables import DATASETS, FINGERPRINTS, KEY_BYTES, LEDGER, RELEASES, now
from dipriv.ledger.values import Dataset, Record, as_name, check_name


@dataclass(frozen=True)
class StoredDataset:
    """A data set, its primary key in the database, and the exact sums of ε and δ spent."""

    dataset: Dataset
    id: int
    spent: Fraction
    delta_spent: Fraction


def stored_datasets(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredDataset]:
    """The data sets that meet the conditions; a single statement, so that budgets and sums are consistent."""
    facts = (DATASETS.c.id, DATASETS.c.name, DATASETS.c.budget, DATASETS.c.delta_budget, DATASETS.c.created)
    loss = (RELEASES.c.epsilon, RELEASES.c.delta)
    found = connection.execute(
        select(*facts, *loss, func.count(RELEASES.c.number).label("times"))
        .join_from(DATASETS, RELEASES, isouter=True)
        .where(*conditions)
        .group_by(*facts, *loss)
    )
    groups: dict[int, list[Any]] = {}
    for row in found:
        groups.setdefault(row.id, []).append(row)
    return [_stored(rows) for rows in groups.values()]


def stored_dataset(connection: Connection, name: str) -> StoredDataset:
    """The data set of a name; raises LedgerError if it is unknown."""
    name = check_name(name)
    for found in stored_datasets(connection, DATASETS.c.name == name):
        return found
    known = connection.execute(select(func.count()).select_from(DATASETS)).scalar_one()
    raise LedgerError(
        f"the ledger has no data set {name!r} among its {known}.",
        "See their names with: dipriv ledger; or register it by setting its budget or releasing it.",
    )


def locked_dataset(connection: Connection, name: str) -> StoredDataset:
    """The data set of a name, locked until the transaction ends (SQLite locks the whole file)."""
    connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == check_name(name)).with_for_update()).all()
    return stored_dataset(connection, name)


def lock_names(connection: Connection) -> None:
    """Until the transaction ends, no other transaction can register a name or a fingerprint."""
    connection.execute(select(LEDGER.c.id).with_for_update()).all()


def resolve_name(connection: Connection, name: str | None, fingerprint: bytes, suggestion: str | None) -> str:
    """The name of the data set that a table belongs to, known or new; raises BudgetError if a budget is evaded."""
    given = None if name is None else check_name(name)
    found = owner(connection, fingerprint)
    if found is not None and given not in (None, found):
        raise BudgetError(
            f"this table is already known as data set {found!r}; as {given!r} it would have a second budget.",
            f"Use the name {found!r}, or none.",
        )
    if given or found:
        return given or str(found)
    if suggestion is None:
        raise InputError("the ledger does not know this table.", "Name its data set: dataset=...")
    suggested = as_name(suggestion)
    if suggested in names_with_content(connection):
        raise BudgetError(
            f"data set {suggested!r} is known with other rows than this table has.",
            f"Say which it is: dataset {suggested!r} if rows were added to it, another name if not "
            "(--dataset NAME, or dataset=...).",
        )
    return suggested


def register(connection: Connection, name: str, fingerprint: bytes, rows: int) -> int:
    """The primary key of the data set of this name; registers name and fingerprint if new. Needs `lock_names`."""
    dataset = find_or_register(connection, name)
    if owner(connection, fingerprint) is None:
        connection.execute(insert(FINGERPRINTS).values(fingerprint=fingerprint, dataset=dataset, rows=rows))
    return dataset


def dataset_state(connection: Connection, name: str) -> DatasetState:
    """The stored state of a data set; empty except for the name if it is new."""
    row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).mappings().one_or_none()
    if row is None:
        return DatasetState(name)
    contents = select(FINGERPRINTS.c.rows, FINGERPRINTS.c.fingerprint).where(FINGERPRINTS.c.dataset == row["id"])
    return DatasetState(
        name=name,
        releases=stored_dataset(connection, name).dataset.releases,
        holdout=row["holdout"],
        by=None if row["split_by"] is None else _checked(str, json.loads(row["split_by"])),
        split_key=bytes(row["split_key"]),
        contents=tuple(sorted((found.rows, bytes(found.fingerprint)) for found in connection.execute(contents))),
    )


def find_or_register(connection: Connection, name: str) -> int:
    """The primary key of the data set of this name; a new one gets its own split key. Needs `lock_names`."""
    found = connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == name)).scalar()
    if found is None:
        dataset = insert(DATASETS).values(name=name, split_key=os.urandom(KEY_BYTES), created=now())
        return add(connection, dataset)
    return int(found)


def add(connection: Connection, row: Insert) -> int:
    """Insert a row; returns its primary key."""
    key = connection.execute(row).inserted_primary_key
    assert key is not None  # noqa: S101 (both databases return it)
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
        delta=row["delta"],
        state=row["state"],
        started=datetime.fromisoformat(row["started"]),
        finished=None if finished is None else datetime.fromisoformat(finished),
        rows=row["rows"],
        guarantee=stored_guarantee(row["guarantee"]),
        output=row["output"],
    )


def stored_guarantee(text: str) -> Guarantee:
    """What a release guaranteed; a record that cannot be read guarantees nothing, and the others stay of use."""
    try:
        return Guarantee.from_dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return unreadable()


def _checked(of: type, plain: Any) -> Any:
    """A value read from JSON, if it has this type or is null."""
    if plain is not None and not isinstance(plain, of):
        raise TypeError(f"not a {of.__name__}")
    return plain


def _stored(rows: list[Any]) -> StoredDataset:
    first = rows[0]
    spent = sum((exact(row.epsilon) * row.times for row in rows if row.times), Fraction())
    delta_spent = sum((exact(row.delta) * row.times for row in rows if row.times), Fraction())
    dataset = Dataset(
        first.name,
        first.budget,
        round_up(spent),
        sum(row.times for row in rows),
        datetime.fromisoformat(first.created),
        first.delta_budget,
        round_up(delta_spent),
    )
    return StoredDataset(dataset, first.id, spent, delta_spent)
