"""Which data sets a table resembles: by its content, its columns and their values and counts, and its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, insert, select

from dipriv._base.table_fingerprint import TELLING, TableFingerprint, coincidence, needed, overlap
from dipriv.ledger.tables import COLUMNS, CONTENTS, DATASETS, FINGERPRINTS, now

_AT_ONCE = 500
"""How many values a query compares with at once."""
_SIZE_CHANGE = 0.05
"""By which share of the larger table's rows two tables may differ whose counts are compared."""
_RARE = 0.01
"""How probable a resemblance of counts may be between unrelated tables of the same questionnaire."""


@dataclass(frozen=True)
class Resemblance:
    """A data set that a table resembles, and how, as a sentence about "this table"; or whose content it is."""

    dataset: str
    how: str
    is_same: bool = False


def resemblances(connection: Connection, table: TableFingerprint) -> list[Resemblance]:
    """The data sets that a table resembles, each once, the strongest resemblance first."""
    found: dict[str, Resemblance] = {}
    for which in (_same_rows, _same_columns, _common_rows, _common_values, _same_beginning, _same_counts, _old_tables):
        for one in which(connection, table):
            found.setdefault(one.dataset, one)
    return sorted(found.values(), key=lambda one: not one.is_same)


def add_content(connection: Connection, dataset: int, table: TableFingerprint) -> None:
    """Store the fingerprint of a table of a data set, unless it is stored. Needs `lock_names`."""
    same = (CONTENTS.c.content == table.content, CONTENTS.c.row_order == table.order, CONTENTS.c.dataset == dataset)
    if connection.execute(select(CONTENTS.c.id).where(*same)).first() is not None:
        return
    content = connection.execute(
        insert(CONTENTS).values(
            dataset=dataset,
            rows=table.rows,
            content=table.content,
            row_order=table.order,
            is_ordered=int(table.is_ordered),
            row_sketch=table.row_sketch,
            created=now(),
        )
    ).inserted_primary_key
    assert content is not None  # noqa: S101 (both databases return it)
    columns = [
        {"content": content[0]} | {name: getattr(column, name) for name in ("digest", "n_distinct", "sketch", "tags")}
        for column in table.columns
    ]
    if columns:
        connection.execute(insert(COLUMNS), columns)


def _same_rows(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    facts = select(DATASETS.c.name, CONTENTS.c.row_order, CONTENTS.c.is_ordered).join_from(CONTENTS, DATASETS)
    stored = connection.execute(facts.where(CONTENTS.c.content == table.content)).all()
    for row in stored:
        if bytes(row.row_order) == table.order or not (row.is_ordered and table.is_ordered):
            yield Resemblance(row.name, "has the content", is_same=True)
    for row in stored:
        yield Resemblance(row.name, f"has the rows of data set {row.name!r} in another order")


def _same_columns(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets that have columns of the same cells, in any order.

    One column of at least `TELLING` distinct values is enough. Columns of fewer values can be equal by chance: all
    columns of the smaller table must be; `_same_counts` judges whether fewer are improbable by chance.
    """
    own = Counter(column.digest for column in table.columns)
    telling = {column.digest for column in table.columns if column.n_distinct >= TELLING}
    met: dict[int, Counter[bytes]] = {}
    for start in range(0, len(own), _AT_ONCE):
        some = [*own][start : start + _AT_ONCE]
        facts = select(COLUMNS.c.content, COLUMNS.c.digest).where(COLUMNS.c.digest.in_(some))
        for row in connection.execute(facts):
            met.setdefault(row.content, Counter())[bytes(row.digest)] += 1
    common = {content: (digests & own).total() for content, digests in met.items()}
    for content, count in sorted(common.items(), key=lambda item: -item[1]):
        width = connection.execute(select(func.count()).where(COLUMNS.c.content == content)).scalar_one()
        if telling & {*met[content]} or count == min(width, len(table.columns)):
            name = connection.execute(_name_of(content)).scalar_one()
            yield Resemblance(name, f"has {count} of the {width} columns of data set {name!r}")


def _common_rows(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    facts = select(DATASETS.c.name, CONTENTS.c.row_sketch).join_from(CONTENTS, DATASETS)
    for row in connection.execute(facts):
        if (found := overlap(bytes(row.row_sketch), table.row_sketch)).is_telling:
            how = f"has rows of data set {row.name!r}, about {found.share:.0%} of the smaller of the two"
            yield Resemblance(row.name, how)


def _common_values(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with a column of mostly distinct values, such as an id, that share many with one of the table's."""
    own = [column.sketch for column in table.columns if column.sketch]
    facts = select(DATASETS.c.name, COLUMNS.c.sketch).select_from(COLUMNS).join(CONTENTS).join(DATASETS)
    for row in connection.execute(facts.where(func.length(COLUMNS.c.sketch) > 0)) if own else ():
        if any(overlap(bytes(row.sketch), sketch).is_telling for sketch in own):
            yield Resemblance(row.name, f"has a column with most of the values of one of data set {row.name!r}")


def _same_beginning(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets that have a table whose rows are the first ones of this table, in their order."""
    orders = sorted(table.prefixes)
    facts = select(DATASETS.c.name).join_from(CONTENTS, DATASETS).where(CONTENTS.c.rows >= TELLING)
    for start in range(0, len(orders), _AT_ONCE):
        some = facts.where(CONTENTS.c.row_order.in_(orders[start : start + _AT_ONCE]))
        for name in connection.execute(some).scalars().all():
            yield Resemblance(name, f"begins with the rows of data set {name!r}")


def _same_counts(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with about as many rows, of whose columns two or more have mostly the same values equally often.

    A column matches another if they share half of their tags. Two columns must match (all, if a table has one), and an
    unrelated table of the same distribution must do so with a probability below `_RARE`: see `coincidence`.
    """
    own = [np.frombuffer(column.tags, dtype="<u8") for column in table.columns]
    if not own:
        return
    sizes, every = np.array([len(tags) for tags in own]), np.concatenate(own)
    order = np.argsort(every, kind="stable")
    every, owner = every[order], np.repeat(np.arange(len(own)), sizes)[order]
    gap = _SIZE_CHANGE * CONTENTS.c.rows
    near = (CONTENTS.c.rows >= table.rows * (1 - _SIZE_CHANGE), CONTENTS.c.rows - gap <= table.rows)
    for content in connection.execute(select(CONTENTS.c.id).where(*near)).scalars().all():
        stored = connection.execute(select(COLUMNS.c.tags).where(COLUMNS.c.content == content)).scalars().all()
        matches = np.zeros(len(own), bool)
        for tags in (np.frombuffer(bytes(each), dtype="<u8") for each in stored):
            ends = np.searchsorted(every, tags, "left"), np.searchsorted(every, tags, "right")
            places = [owner[start:stop] for start, stop in zip(*ends, strict=True) if start < stop]
            shared = np.bincount(np.concatenate(places), minlength=len(own)) if places else np.zeros(len(own), int)
            matches |= shared >= needed(np.maximum(sizes, len(tags)))
        chances = np.array([column.chance for column in table.columns])
        is_enough = matches.sum() >= min(2, len(own), len(stored))
        if stored and is_enough and coincidence(chances[matches], chances) < _RARE:
            name = connection.execute(_name_of(content)).scalar_one()
            how = f"has {matches.sum()} columns with mostly the values and counts of columns of data set {name!r}"
            yield Resemblance(name, how)


def _old_tables(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets whose tables were fingerprinted by versions 1 and 2, if one had as many rows and none has since."""
    newer = select(CONTENTS.c.dataset).where(CONTENTS.c.rows == table.rows)
    facts = select(DATASETS.c.name).join_from(FINGERPRINTS, DATASETS)
    old = facts.where(FINGERPRINTS.c.rows == table.rows, FINGERPRINTS.c.dataset.not_in(newer))
    for name in connection.execute(old).scalars():
        how = f"has as many rows as data set {name!r}, which an older version of dipriv fingerprinted"
        yield Resemblance(name, how)


def _name_of(content: int) -> Any:
    return select(DATASETS.c.name).join_from(CONTENTS, DATASETS).where(CONTENTS.c.id == content)


def listed(found: Sequence[Resemblance]) -> str:
    """How a table resembles data sets, in words; the first three of many."""
    shown = "; it ".join(one.how for one in found[:3])
    return shown + (f"; and it resembles {len(found) - 3} more" if len(found) > 3 else "")
