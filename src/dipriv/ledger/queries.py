"""Queries within a transaction: data sets with exact sums of ε and δ, names, fingerprints, records of releases."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from shlex import quote
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, RowMapping, func, insert, select

from dipriv._base.decimals import exact, round_up
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv.errors import BudgetError, InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, unreadable
from dipriv.ledger.recognition import Resemblance, add_content, listed, resemblances
from dipriv.ledger.request import DatasetState
from dipriv.ledger.tables import CONTENTS, DATASETS, DISTINCT, FINGERPRINTS, KEY_BYTES, LEDGER, RELEASES, now
from dipriv.ledger.values import (
    DEFAULT_BUDGET,
    DEFAULT_DELTA_BUDGET,
    Dataset,
    Record,
    as_name,
    check_name,
    why_unbounded,
)


@dataclass(frozen=True)
class StoredDataset:
    """A data set, its primary key in the database, and the exact sums of ε and δ spent."""

    dataset: Dataset
    id: int
    spent: Fraction
    delta_spent: Fraction
    guarantees: tuple[Guarantee, ...]
    """Those of its releases, each once."""


def stored_datasets(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredDataset]:
    """The data sets that meet the conditions; a single statement, so that budgets and sums are consistent."""
    names = ("id", "name", "budget", "delta_budget", "holdout", "created")
    facts = [DATASETS.c[name] for name in names]
    loss = (RELEASES.c.epsilon, RELEASES.c.delta, RELEASES.c.guarantee)
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


def stored_dataset(connection: Connection, name: str, option: str = "") -> StoredDataset:
    """The data set of a name; raises LedgerError if it is unknown. `option` names the ledger in a command."""
    name = check_name(name)
    for found in stored_datasets(connection, DATASETS.c.name == name):
        return found
    known = connection.execute(select(func.count()).select_from(DATASETS)).scalar_one()
    raise LedgerError(
        f"the ledger has no data set {name!r} among its {known}.",
        f"See their names with: dipriv ledger{option}; or register it by setting its budget or releasing it.",
    )


def locked_dataset(connection: Connection, name: str, option: str) -> StoredDataset:
    """The data set of a name, locked until the transaction ends (SQLite locks the whole file)."""
    connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == check_name(name)).with_for_update()).all()
    return stored_dataset(connection, name, option)


def lock_names(connection: Connection) -> None:
    """Until the transaction ends, no other transaction can register a name or a fingerprint."""
    connection.execute(select(LEDGER.c.id).with_for_update()).all()


def resolve_name(
    connection: Connection, name: str | None, is_new: bool, table: TableFingerprint, suggestion: str | None, option: str
) -> str:
    """The name of the data set that a table belongs to, known or new; raises BudgetError if a budget may be evaded.

    `option` is what a command needs behind it to use this ledger.
    """
    given = None if name is None else check_name(name)
    found = resemblances(connection, table)
    if same := [one.dataset for one in found if one.is_same]:
        if given is not None and given not in same:
            raise BudgetError(
                f"this table is already known as data set {same[0]!r}; as {given!r} it would have a second budget.",
                f"Count it there: --dataset {quote(same[0])} (dataset={same[0]!r}), or no name.",
            )
        return given or same[0]
    if given is not None and is_new:
        return given
    others = [one for one in found if one.dataset not in {given, *_affirmed(connection, given)}]
    if others:
        raise _asked(others)
    if given is not None:
        return given
    if suggestion is None:
        raise InputError("the ledger does not know this table.", "Name its data set: dataset=...")
    suggested = as_name(suggestion)
    if suggested in names_with_content(connection):
        raise BudgetError(
            f"data set {suggested!r} is known with other rows and columns than this table has.",
            f"If it describes the same people, count it there: --dataset {quote(suggested)} (dataset={suggested!r}). "
            f"If it describes other people, say so with a name of its own: --new-dataset NAME (new_dataset=...). "
            f"See all names: dipriv ledger{option}.",
        )
    return suggested


def _asked(found: list[Resemblance]) -> BudgetError:
    first = found[0].dataset
    return BudgetError(
        f"this table {listed(found)}.",
        f"If it describes the same people, count it there: --dataset {quote(first)} (dataset={first!r}). If it "
        "describes other people, say so with a name of its own: --new-dataset NAME (new_dataset=...).",
    )


def _affirmed(connection: Connection, name: str | None) -> set[str]:
    """The data sets of other people than those of this one, as the keeper affirmed."""
    if name is None:
        return set()
    one, other = DATASETS.alias("one"), DATASETS.alias("other")
    pairs = select(one.c.name, other.c.name).select_from(DISTINCT)
    pairs = pairs.join(one, one.c.id == DISTINCT.c.dataset).join(other, other.c.id == DISTINCT.c.other)
    return {either for pair in connection.execute(pairs).all() if name in pair for either in pair}


def register(connection: Connection, name: str, table: TableFingerprint, is_new: bool) -> int:
    """The primary key of the data set of this name; registers name and content if new. Needs `lock_names`.

    With `is_new` it records that the data set has other people than those that the table resembles.
    """
    others = [one.dataset for one in resemblances(connection, table) if one.dataset != name] if is_new else []
    dataset = find_or_register(connection, name)
    for other in {*others} - _affirmed(connection, name):
        pair = {"dataset": dataset, "other": find_or_register(connection, other), "created": now()}
        connection.execute(insert(DISTINCT).values(**pair))
    add_content(connection, dataset, table)
    return dataset


def check_unit_column(
    connection: Connection, dataset: int, name: str, table: TableFingerprint, digest: bytes | None
) -> None:
    """Raise BudgetError if the table has the unit column of an earlier release, and another one has its name now."""
    earlier = select(RELEASES.c.unit_digest).where(RELEASES.c.dataset == dataset, RELEASES.c.unit_digest.is_not(None))
    met = {bytes(found) for found in connection.execute(earlier.distinct()).scalars()}
    if digest is not None and digest not in met and met & {column.digest for column in table.columns}:
        raise BudgetError(
            f"earlier releases of data set {name!r} took the unit from a column that has another name in this table: "
            "the persons of this release would be others, and their ε do not add up.",
            "Give the columns the names that they had in the earlier releases.",
        )


def dataset_state(connection: Connection, name: str) -> DatasetState:
    """The stored state of a data set; empty except for the name if it is new."""
    row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).mappings().one_or_none()
    if row is None:
        return DatasetState(name)
    contents = select(CONTENTS.c.rows, CONTENTS.c.row_order).where(CONTENTS.c.dataset == row["id"])
    old = select(FINGERPRINTS.c.rows).where(FINGERPRINTS.c.dataset == row["id"])
    return DatasetState(
        name=name,
        releases=stored_dataset(connection, name).dataset.releases,
        holdout=row["holdout"],
        by=None if row["split_by"] is None else _checked(str, json.loads(row["split_by"])),
        split_key=bytes(row["split_key"]),
        contents=tuple(sorted((found.rows, bytes(found.row_order)) for found in connection.execute(contents))),
        old_sizes=tuple(sorted(connection.execute(old).scalars())),
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


def names_with_content(connection: Connection) -> set[str]:
    """The names of the data sets that have had a table."""
    found = [select(DATASETS.c.name).join_from(DATASETS, table).distinct() for table in (CONTENTS, FINGERPRINTS)]
    return {name for query in found for name in connection.execute(query).scalars()}


def record(name: str, number: int, row: RowMapping) -> Record:
    """A row of the table of releases, the one of this number within the data set."""
    finished = row["finished"]
    return Record(
        id=row["number"],
        number=number,
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
    releases = [row for row in rows if row.times]
    spent = sum((exact(row.epsilon) * row.times for row in releases), Fraction())
    delta_spent = sum((exact(row.delta) * row.times for row in releases), Fraction())
    guarantees = tuple(map(stored_guarantee, dict.fromkeys(row.guarantee for row in releases)))
    dataset = Dataset(
        first.name,
        DEFAULT_BUDGET if first.budget is None else first.budget,
        round_up(spent),
        sum(row.times for row in releases),
        datetime.fromisoformat(first.created),
        DEFAULT_DELTA_BUDGET if first.delta_budget is None else first.delta_budget,
        round_up(delta_spent),
        budget_is_default=first.budget is None,
        unbounded=why_unbounded(guarantees, first.holdout is not None),
    )
    return StoredDataset(dataset, first.id, spent, delta_spent, guarantees)
