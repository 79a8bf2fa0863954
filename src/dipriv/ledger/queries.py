"""Queries within a transaction: data sets with exact sums of ε and δ, names, fingerprints, records of releases."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Insert, RowMapping, func, insert, select

from dipriv._base.decimals import exact, round_up
from dipriv._base.near_names import near_names
from dipriv._base.table_fingerprint import TELLING, ColumnFingerprint, TableFingerprint, is_part, shared
from dipriv.errors import BudgetError, DisclosureError, InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, UnitKind, unreadable
from dipriv.guarantee.wording import unchanged_columns
from dipriv.ledger.recognition import RARE_ROWS, Resemblance, listed, resemblances
from dipriv.ledger.request import DatasetState
from dipriv.ledger.tables import COLUMNS, CONTENTS, DATASETS, DISTINCT, FINGERPRINTS, KEY_BYTES, LEDGER, RELEASES, now
from dipriv.ledger.values import (
    DEFAULT_BUDGET,
    DEFAULT_DELTA_BUDGET,
    Dataset,
    Record,
    as_name,
    check_name,
    why_unbounded,
)

SAME_PERSONS = 0.25
"""The least share of keys, of the table that has fewer, that two tables of the same persons have in common."""


@dataclass(frozen=True)
class StoredDataset:
    """A data set, its primary key in the database, and the exact sums of ε and δ spent."""

    dataset: Dataset
    id: int
    spent: Fraction
    delta_spent: Fraction
    guarantees: tuple[Guarantee, ...]
    """Those of its own releases, each once."""
    n_own: int
    """The number of its own releases: the others were made for another data set, and had rows of this one."""


def stored_datasets(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredDataset]:
    """The data sets that meet the conditions; a single statement, so that budgets and sums are consistent."""
    names = ("id", "name", "budget", "delta_budget", "holdout", "created")
    facts = [DATASETS.c[name] for name in names]
    loss = (RELEASES.c.epsilon, RELEASES.c.delta, RELEASES.c.guarantee, RELEASES.c.is_own)
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
    known = {*connection.execute(select(DATASETS.c.name)).scalars()}
    similar = f"; did you mean {_either(meant)}?" if (meant := _similar(name, known)) else "."
    raise LedgerError(
        f"the ledger has no data set {name!r} among its {len(known)}{similar}",
        f"See their names with: dipriv ledger{option}; or register it by setting its budget or releasing it.",
    )


def check_spelling(connection: Connection, name: str, override: str, option: str) -> None:
    """Raise LedgerError if the name is unknown but similar to a known one.

    `override` is how to say in Python that it is new, `option` how to say it on the command line.
    """
    if similar := _mistyped(connection, name):
        raise LedgerError(
            f"the ledger has no data set {name!r}; did you mean {_either(similar)}?",
            f"Correct the name, or say that it is a new one: {override}.",
            command=f"Correct the name, or say that it is a new one: {option}.",
        )


def _mistyped(connection: Connection, name: str) -> list[str]:
    """The data sets that an unknown name may be a mistyped form of, the nearest first."""
    known = {*connection.execute(select(DATASETS.c.name)).scalars()}
    return [] if name in known else _similar(name, known)


def _similar(name: str, known: set[str]) -> list[str]:
    others = [other for other in known if not _differ_in_digits(name, other)]
    return near_names(name, others, cutoff=0.75)


def _either(names: list[str]) -> str:
    return " or ".join(map(repr, names))


def _differ_in_digits(one: str, other: str) -> bool:
    """Whether names have different numbers, and nothing else, such as years."""
    words = [re.sub(r"\d+", "0", name.casefold()) for name in (one, other)]
    return one.casefold() != other.casefold() and words[0] == words[1]


def locked_dataset(connection: Connection, name: str, option: str) -> StoredDataset:
    """The data set of a name, locked until the transaction ends (SQLite locks the whole file)."""
    connection.execute(select(DATASETS.c.id).where(DATASETS.c.name == check_name(name)).with_for_update()).all()
    return stored_dataset(connection, name, option)


def lock_names(connection: Connection) -> None:
    """Until the transaction ends, no other transaction can register a name or a fingerprint."""
    connection.execute(select(LEDGER.c.id).with_for_update()).all()


class Names(NamedTuple):
    """The data set of a table, and the others that count its releases, because it has rows of theirs."""

    name: str
    also: tuple[str, ...] = ()


def resolve_names(
    connection: Connection,
    names: Sequence[str],
    is_new: bool,
    table: TableFingerprint,
    suggestion: str | None,
    option: str,
    fitted: TableFingerprint | None = None,
) -> Names:
    """The data sets that a table belongs to, known or new; raises BudgetError if a budget may be evaded.

    The first of the names is that of its own data set; the others count it, too. A table that resembles a data set that
    is not named is a question for the keeper. `option` is what a command needs behind it to use this ledger. `fitted`
    is the table that the keeper affirmed something of, if this table may be a part of it.
    """
    given = tuple(dict.fromkeys(map(check_name, names)))
    found = resemblances(connection, table, unasked=fitted is not None)
    affirmed = _affirmed(connection, given[0], table, fitted, found) if given else set()
    same = [one.dataset for one in found if one.is_same and one.dataset not in affirmed]
    if same and not (given and is_new and table.has_few_rows):
        if given and not {*given} & {*same}:
            raise BudgetError(
                f"this table is already known as data set {same[0]!r}; as {given[0]!r} it would have a second budget.",
                f"Count it there: dataset={same[0]!r}, or no name.",
                command=f"Count it there: --dataset {quote(same[0])}, or no name.",
            )
        own, *also = dict.fromkeys((*given, *same))
        return Names(own, tuple(also))
    if given and is_new:
        return Names(given[0], given[1:])
    if others := _without_streams(found, {*given, *affirmed}):
        raise _asked(others, [one.dataset for one in found if one.dataset in given])
    if given:
        for name in given:
            check_spelling(connection, name, f"new_dataset={name!r}", f"--new-dataset {quote(name)}")
        return Names(given[0], given[1:])
    if suggestion is None:
        raise InputError(
            "the ledger does not know this table.",
            "Name its data set: dataset=...",
            command="Name its data set: --dataset NAME.",
        )
    return Names(_suggested(connection, as_name(suggestion), option))


def _suggested(connection: Connection, name: str, option: str) -> str:
    """The name of a table's file as that of a new data set, or of one that has had no table yet.

    A known or similar name may be that of the same people in another table, so only the keeper knows what it is.
    """
    remedy = (
        "If it describes the same people, count it there: {}. If it describes other people, say so with a name of its "
        "own: {}. See all names: dipriv ledger{}."
    )
    if name in names_with_content(connection):
        raise BudgetError(
            f"data set {name!r} is known with other rows and columns than this table has.",
            remedy.format(f"dataset={name!r}", "new_dataset=...", option),
            command=remedy.format(f"--dataset {quote(name)}", "--new-dataset NAME", option),
        )
    if similar := _mistyped(connection, name):
        raise LedgerError(
            f"no data set is named, and {name!r}, the name of the table's file, is similar to {_either(similar)}.",
            remedy.format(f"dataset={similar[0]!r}", f"new_dataset={name!r}", option),
            command=remedy.format(f"--dataset {quote(similar[0])}", f"--new-dataset {quote(name)}", option),
        )
    return name


def _asked(others: list[Resemblance], named: list[str]) -> BudgetError:
    """The question about a table that resembles others than the data sets that are named."""
    every = [*named, *(one.dataset for one in others)]
    options = " ".join(f"--dataset {quote(name)}" for name in every)
    argument = repr(every[0] if len(every) == 1 else every)
    own, value = (quote(named[0]), repr(named[0])) if named else ("NAME", "...")
    whose = "its own data set" if named else "its own data set, new or known"
    remedy = (
        f"If it describes the same people, count it {'there' if len(every) == 1 else 'in all of them'}: {{}}. If it "
        f"describes other people, say so of this table, with the name of {whose}: {{}}."
    )
    return BudgetError(
        f"this table {listed(others)}.",
        remedy.format(f"dataset={argument}", f"new_dataset={value}"),
        command=remedy.format(options, f"--new-dataset {own}"),
    )


def others_of(
    connection: Connection, names: Sequence[str], table: TableFingerprint, fitted: TableFingerprint | None
) -> list[Resemblance]:
    """Other data sets than those named whose rows a table has, unless the keeper affirmed that they are others'."""
    found = resemblances(connection, table, unasked=True)
    return _without_streams(found, {*names, *_affirmed(connection, names[0], table, fitted, found)})


def _without_streams(found: Sequence[Resemblance], known: set[str]) -> list[Resemblance]:
    """The data sets that are not known, without those that the table resembles as a stream of several data sets did.

    Such a stream has rows of this table and of others. Where it is known whose rows these are, it says nothing more.
    """
    is_known = any(one.is_own or one.dataset in known for one in found)
    return [one for one in found if one.dataset not in known and (one.is_own or not is_known)]


def _affirmed(
    connection: Connection,
    name: str,
    table: TableFingerprint,
    whole: TableFingerprint | None,
    found: Sequence[Resemblance],
) -> set[str]:
    """The data sets of other people than those of this table, as the keeper affirmed of it, or of a whole that it is a
    part of, under this name.

    But none whose own table this is, unless it has few rows: what was affirmed is stored without the order of rows and
    the columns of cells, so that it could be about a table with the same cells in other columns (rankings).
    """
    own, other = DATASETS.alias("own"), DATASETS.alias("other")
    pairs = select(other.c.name).select_from(DISTINCT)
    pairs = pairs.join(own, own.c.id == DISTINCT.c.dataset).join(other, other.c.id == DISTINCT.c.other)
    contents = [table.content, *([whole.content] if whole is not None and is_part(table, whole) else [])]
    said = {*connection.execute(pairs.where(own.c.name == name, DISTINCT.c.content.in_(contents))).scalars()}
    if table.has_few_rows:  # the same table, of other people
        reverse = pairs.with_only_columns(own.c.name).where(other.c.name == name, DISTINCT.c.content == table.content)
        said |= {*connection.execute(reverse).scalars()}
    return said if table.has_few_rows else said - {one.dataset for one in found if one.is_same}


def affirm(connection: Connection, names: Names, table: TableFingerprint) -> None:
    """Record that a table has other people than the data sets that it resembles and that are not named.

    Needs `lock_names`.
    """
    found = resemblances(connection, table)
    others = {one.dataset for one in found} - {names.name, *names.also}
    others -= _affirmed(connection, names.name, table, None, found)
    dataset = find_or_register(connection, names.name)
    for other in sorted(others):
        pair = {"dataset": dataset, "other": find_or_register(connection, other), "content": table.content}
        connection.execute(insert(DISTINCT).values(**pair, created=now()))


def check_unit_column(
    connection: Connection, name: str, table: TableFingerprint, unit: ColumnFingerprint | None
) -> None:
    """Raise BudgetError if the persons of this release seem to be in another column than those of an earlier one.

    The unit column has changed if it has neither the cells nor many values of an earlier one, but another column of the
    table has, or if it has those of a column of an earlier table that had another name. Of a column of the same name,
    values that both have by chance count, too, such as numbers of persons who have many rows; but not where the cells
    are exactly those of another column.
    """
    earlier = select(RELEASES.c.unit_digest).join_from(RELEASES, DATASETS).where(DATASETS.c.name == name)
    digests = {bytes(found) for found in connection.execute(earlier.distinct()).scalars() if found is not None}
    if unit is None or not digests:
        return
    facts = select(COLUMNS.c.digest, COLUMNS.c.sketch, COLUMNS.c.label, CONTENTS.c.rows).select_from(COLUMNS)
    columns = connection.execute(facts.join(CONTENTS).join(DATASETS).where(DATASETS.c.name == name)).all()
    units = [column for column in columns if bytes(column.digest) in digests]
    others = [column for column in columns if bytes(column.digest) not in digests and column.label != unit.label]

    def is_one(one: ColumnFingerprint, stored: list[Any]) -> bool:
        return one.digest in {bytes(other.digest) for other in stored}

    def is_among(one: ColumnFingerprint, stored: list[Any]) -> bool:
        return is_one(one, stored) or any(
            shared(bytes(other.sketch), one.sketch, (other.rows, table.rows)).is_telling(RARE_ROWS) for other in stored
        )

    named = [column for column in units if column.label is not None and bytes(column.label) == unit.label]
    samples = [shared(bytes(column.sketch), unit.sketch, (column.rows, table.rows)) for column in named]
    has_its_name = any(found.compared >= TELLING and found.share >= SAME_PERSONS for found in samples)
    is_other = is_one if has_its_name else is_among
    if not is_among(unit, units) and (is_other(unit, others) or any(is_other(one, units) for one in table.columns)):
        raise BudgetError(
            f"earlier releases of data set {name!r} took the unit from a column that has another name in this table, "
            "or is not in it: the persons of this release would be others, and their ε do not add up.",
            "Give the columns the names that they had in the earlier releases, and leave the unit in the table.",
        )


def check_held_persons(
    connection: Connection, name: str, table: TableFingerprint, unit: ColumnFingerprint, keys_digest: bytes
) -> None:
    """Raise DisclosureError if persons whom an earlier release held out would be released, or the other way round.

    Of the same keys, this release must make the same of them: keys that are read in another way, such as dates as text,
    are other persons to a split. Other keys, as of a table that has grown, must have many values in common with earlier
    ones. That is not verified where fewer than `TELLING` values can be compared: where persons have many rows each, so
    that no values are sampled, or a table has few persons beside an earlier one.
    """
    facts = select(RELEASES.c.unit_digest, RELEASES.c.keys_digest).join_from(RELEASES, DATASETS)
    earlier = connection.execute(facts.where(DATASETS.c.name == name, RELEASES.c.unit_digest.is_not(None))).all()
    same = [release for release in earlier if bytes(release.unit_digest) == unit.digest]
    if any(release.keys_digest is not None and bytes(release.keys_digest) != keys_digest for release in same):
        raise DisclosureError(
            f"the keys of persons are read in another way than for an earlier release of data set {name!r}: other "
            "persons would be held out, and some of those who were held out would be released.",
            "Read their column as before: with the same type, decimal mark and order of dates.",
        )
    if same or not earlier or not unit.sketch:
        return
    stored = select(COLUMNS.c.digest, COLUMNS.c.sketch, CONTENTS.c.rows).select_from(COLUMNS).join(CONTENTS)
    columns = connection.execute(stored.join(DATASETS).where(DATASETS.c.name == name)).all()
    digests = {bytes(release.unit_digest) for release in earlier}
    sampled = [column for column in columns if bytes(column.digest) in digests and column.sketch]
    large = [column for column in sampled if column.rows >= SAME_PERSONS * table.rows]  # others hold too few of them
    samples = [shared(bytes(column.sketch), unit.sketch, (column.rows, table.rows)) for column in large or sampled]
    if samples and all(found.compared >= TELLING and found.share < SAME_PERSONS for found in samples):
        raise DisclosureError(
            f"few keys of persons are among those of earlier releases of data set {name!r}: if they are new keys of "
            "the same persons, others would be held out, and some of those who were held out would be released.",
            "Give persons the keys that they had. If these are other people, they are another data set.",
        )


def dataset_state(connection: Connection, name: str) -> DatasetState:
    """The stored state of a data set; empty except for the name if it is new."""
    row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).mappings().one_or_none()
    if row is None:
        return DatasetState(name)
    own = CONTENTS.c.dataset == row["id"], CONTENTS.c.is_own == 1
    order = func.coalesce(CONTENTS.c.named_order, CONTENTS.c.row_order).label("row_order")
    contents = select(CONTENTS.c.rows, order).where(*own)
    old = select(FINGERPRINTS.c.rows).where(FINGERPRINTS.c.dataset == row["id"])
    stored = stored_dataset(connection, name)
    return DatasetState(
        name=name,
        releases=stored.n_own,
        holdout=row["holdout"],
        by=None if row["split_by"] is None else _checked(str, json.loads(row["split_by"])),
        split_key=bytes(row["split_key"]),
        contents=tuple(sorted((found.rows, bytes(found.row_order)) for found in connection.execute(contents))),
        old_sizes=tuple(sorted(connection.execute(old).scalars())),
        protects_rows=any(guarantee.unit.kind is UnitKind.ROW for guarantee in stored.guarantees),
        splits_as_written=not row["splits_by_cells"],
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
    own = [row for row in releases if row.is_own]
    guarantees = {text: stored_guarantee(text) for text in dict.fromkeys(row.guarantee for row in releases)}
    dataset = Dataset(
        first.name,
        DEFAULT_BUDGET if first.budget is None else first.budget,
        round_up(spent),
        sum(row.times for row in releases),
        datetime.fromisoformat(first.created),
        DEFAULT_DELTA_BUDGET if first.delta_budget is None else first.delta_budget,
        round_up(delta_spent),
        budget_is_default=first.budget is None,
        unbounded=why_unbounded([*guarantees.values()], first.holdout is not None),
        unchanged=tuple(sorted({name for one in guarantees.values() for name in unchanged_columns(one)})),
    )
    of_own = tuple(guarantees[text] for text in dict.fromkeys(row.guarantee for row in own))
    return StoredDataset(dataset, first.id, spent, delta_spent, of_own, sum(row.times for row in own))
