"""Which data sets a table resembles: by its content, its columns and their values and counts, and its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, func, insert, or_, select, update

from dipriv._base.table_fingerprint import (
    TELLING,
    ColumnFingerprint,
    TableFingerprint,
    coincidence,
    needed,
    overlap,
    shared,
)
from dipriv.ledger.tables import COLUMNS, CONTENTS, DATASETS, FINGERPRINTS, SAMPLES, now

_AT_ONCE = 500
"""How many values a query compares with at once."""
_SIZE_CHANGE = 0.05
"""By which share of the larger table's rows two tables may differ whose counts are compared."""
_RARE = 0.01
"""How probable a resemblance of counts may be between unrelated tables of the same questionnaire."""
RARE_ROWS = 0.001
"""How probable it may be that unrelated tables of the same distribution have as many rows or values in common."""


@dataclass(frozen=True)
class Resemblance:
    """A data set that a table resembles, and how, as a sentence about "this table"; or whose content it is.

    `is_own` is false if only streams that also had rows of other data sets resemble it.
    """

    dataset: str
    how: str
    is_same: bool = False
    is_own: bool = True


def resemblances(connection: Connection, table: TableFingerprint, *, unasked: bool = False) -> list[Resemblance]:
    """The data sets that a table resembles, each once, the strongest resemblance first.

    `unasked` is for rows that nobody is asked about, such as those of a stream: what chance may make the same, as a few
    yes/no answers, does not count.
    """
    if unasked and not table.is_telling:
        return [*_same_order(connection, table)] if table.has_telling_order else []
    found: dict[str, Resemblance] = {}
    ways = (_same_rows, _same_columns, _common_rows, _equal_rows, _common_values, _same_beginning, _same_counts)
    for which in (*ways, _old_tables):
        for one in which(connection, table):
            if one.dataset not in found or (one.is_own and not found[one.dataset].is_own):
                found[one.dataset] = one
    return sorted(found.values(), key=lambda one: (not one.is_same, not one.is_own))


def add_content(connection: Connection, dataset: int, table: TableFingerprint, *, is_own: bool = True) -> None:
    """Store the fingerprint of a table of a data set, unless it is stored, with samples. Needs `lock_names`.

    `is_own` is false for a stream that has rows of several data sets.
    """
    named = or_(CONTENTS.c.named_order == table.named_order, CONTENTS.c.named_order.is_(None))
    same = and_(
        CONTENTS.c.content == table.content, CONTENTS.c.row_order == table.order, named, CONTENTS.c.dataset == dataset
    )
    stored = select(SAMPLES.c.id).join_from(SAMPLES, CONTENTS) if table.samples else select(CONTENTS.c.id)
    if connection.execute(stored.where(same)).first() is not None:
        if is_own:
            connection.execute(update(CONTENTS).where(same).values(is_own=1, named_order=table.named_order or None))
        return
    for order, named_order in table.prefixes:  # of tables that an earlier version stored without it
        first = and_(CONTENTS.c.row_order == order, CONTENTS.c.named_order.is_(None), CONTENTS.c.dataset == dataset)
        connection.execute(update(CONTENTS).where(first).values(named_order=named_order or None))
    key = connection.execute(
        insert(CONTENTS).values(
            dataset=dataset,
            rows=table.rows,
            content=table.content,
            row_order=table.order,
            named_order=table.named_order or None,
            is_ordered=int(table.is_ordered),
            row_sketch=table.row_sketch,
            repeats=table.repeats,
            is_own=int(is_own),
            created=now(),
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 (both databases return it)
    stored_names = ("digest", "n_distinct", "sketch", "tags", "label")
    columns = [{"content": key[0]} | {name: getattr(column, name) for name in stored_names} for column in table.columns]
    samples = [{"content": key[0], "way": way, "sample": sample} for way, sample in enumerate(table.samples)]
    for rows, several in ((COLUMNS, columns), (SAMPLES, samples)):
        if several:
            connection.execute(insert(rows), several)


def _same_order(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    same = (CONTENTS.c.content == table.content, CONTENTS.c.row_order == table.order, CONTENTS.c.is_ordered == 1)
    found = select(DATASETS.c.name).join_from(CONTENTS, DATASETS).where(*same, CONTENTS.c.is_own == 1).distinct()
    return [Resemblance(name, "has the content", is_same=True) for name in connection.execute(found).scalars()]


def _same_rows(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    facts = select(CONTENTS.c.id, DATASETS.c.name, CONTENTS.c.row_order, CONTENTS.c.is_ordered, CONTENTS.c.is_own)
    stored = connection.execute(facts.join_from(CONTENTS, DATASETS).where(CONTENTS.c.content == table.content)).all()
    digests = Counter(column.digest for column in table.columns)
    for row in stored:
        same_order = bytes(row.row_order) == table.order or not (row.is_ordered and table.is_ordered)
        columns = connection.execute(select(COLUMNS.c.digest).where(COLUMNS.c.content == row.id)).scalars()
        same_columns = Counter(map(bytes, columns)) == digests  # else the same cells in other columns, as in rankings
        if row.is_own and same_order and same_columns:
            yield Resemblance(row.name, "has the content", is_same=True)
    for row in stored:
        how = f"has the rows of data set {row.name!r}, in another order or with cells in other columns"
        yield Resemblance(row.name, how, is_own=bool(row.is_own))


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
            name, is_own = connection.execute(_whose(content)).one()
            yield Resemblance(name, f"has {count} of the {width} columns of data set {name!r}", is_own=bool(is_own))


def _common_rows(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with rows of the table, repeated or not, more than chance explains: see `shared`."""
    facts = select(DATASETS.c.name, CONTENTS.c.rows, CONTENTS.c.is_own, SAMPLES.c.way, SAMPLES.c.sample)
    for row in connection.execute(facts.select_from(SAMPLES).join(CONTENTS).join(DATASETS)):
        own = table.samples[row.way] if row.way < len(table.samples) else b""
        found = shared(bytes(row.sample), own, (row.rows, table.rows))
        if found.is_telling(RARE_ROWS / max(1, len(table.samples))):  # as many samples are compared
            how = f"has rows of data set {row.name!r}, about {found.share:.0%} of the smaller of the two"
            yield Resemblance(row.name, how, is_own=bool(row.is_own))


def _equal_rows(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with half of the table's distinct rows, each as often as the table."""
    facts = select(DATASETS.c.name, CONTENTS.c.row_sketch, CONTENTS.c.is_own).join_from(CONTENTS, DATASETS)
    for row in connection.execute(facts):
        if (share := overlap(bytes(row.row_sketch), table.row_sketch)) >= 0.5:
            how = f"has rows of data set {row.name!r}, equally often, about {share:.0%} of the smaller of the two"
            yield Resemblance(row.name, how, is_own=bool(row.is_own))


def _common_values(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with a column that has more values of one of the table's, such as ids, than chance explains."""
    own = [column.sketch for column in table.columns if column.sketch]
    width = select(func.count()).where(COLUMNS.c.content == CONTENTS.c.id).correlate(CONTENTS).scalar_subquery()
    facts = select(DATASETS.c.name, CONTENTS.c.rows, CONTENTS.c.is_own, COLUMNS.c.sketch, width.label("width"))
    facts = facts.select_from(COLUMNS).join(CONTENTS).join(DATASETS)
    for row in connection.execute(facts.where(func.length(COLUMNS.c.sketch) > 0)) if own else ():
        rare = RARE_ROWS / (len(own) * row.width)  # as many pairs of columns are compared
        pairs = (shared(bytes(row.sketch), sketch, (row.rows, table.rows)) for sketch in own)
        if any(found.is_telling(rare) for found in pairs):
            how = f"has a column with many values of one of data set {row.name!r}"
            yield Resemblance(row.name, how, is_own=bool(row.is_own))


def _same_beginning(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets that have a table whose rows are the first ones of this table, in their order."""
    orders = sorted(order for order, _ in table.prefixes)
    facts = select(DATASETS.c.name, CONTENTS.c.is_own).join_from(CONTENTS, DATASETS).where(CONTENTS.c.rows >= TELLING)
    for start in range(0, len(orders), _AT_ONCE):
        some = facts.where(CONTENTS.c.row_order.in_(orders[start : start + _AT_ONCE]))
        for name, is_own in connection.execute(some).all():
            yield Resemblance(name, f"begins with the rows of data set {name!r}", is_own=bool(is_own))


def _same_counts(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets with about as many rows, where half of the columns have mostly the same values equally often.

    A column matches another if they share half of their tags. Half of the columns of the narrower table, and two, must
    match (all, if a table has one), and an unrelated table of the same distribution must do so with a probability below
    `_RARE`: see `coincidence`. Columns are compared with those of the same name, and then, by as much, with all.
    """
    size, most = table.rows // table.repeats, 1 - _SIZE_CHANGE
    near = CONTENTS.c.rows.between(CONTENTS.c.repeats * (size * most), CONTENTS.c.repeats * (size / most))
    if not table.columns:
        return
    own = _Tags(table.columns)
    for content in connection.execute(select(CONTENTS.c.id).where(near)).scalars().all():
        facts = select(COLUMNS.c.tags, COLUMNS.c.label).where(COLUMNS.c.content == content)
        stored = connection.execute(facts).all()
        for way, found in enumerate(own.equal(stored)):
            n_matches, least = (found > 0).sum(), min(len(own.sizes), len(stored))
            is_enough = n_matches >= max(min(2, least), -(-least // 2), 1)
            if is_enough and coincidence(own.expected[:, way], own.sizes, found) < _RARE:
                name, is_own = connection.execute(_whose(content)).one()
                how = f"has {n_matches} columns with mostly the values and counts of columns of data set {name!r}"
                yield Resemblance(name, how, is_own=bool(is_own))
                break


class _Tags:
    """The tags of a table's columns, in one sorted array, to be compared with those of other tables."""

    def __init__(self, columns: Sequence[ColumnFingerprint]) -> None:
        tags = [np.frombuffer(column.tags, dtype="<u8") for column in columns]
        self.sizes, every = np.array([len(each) for each in tags]), np.concatenate(tags)
        order = np.argsort(every, kind="stable")
        self._every, self._owner = every[order], np.repeat(np.arange(len(tags)), self.sizes)[order]
        self.expected = np.array([column.equal_tags for column in columns])
        self._labels = {column.label: place for place, column in enumerate(columns)}

    def equal(self, others: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many tags each column shares with the one of its name, and with any; 0 if it does not match it."""
        named, best = (np.zeros(len(self.sizes), np.int64) for _ in range(2))
        for other in others:
            tags = np.frombuffer(bytes(other.tags), dtype="<u8")
            ends = np.searchsorted(self._every, tags, "left"), np.searchsorted(self._every, tags, "right")
            places = [self._owner[start:stop] for start, stop in zip(*ends, strict=True) if start < stop]
            if not places:
                continue
            found = np.bincount(np.concatenate(places), minlength=len(self.sizes))
            found[found < needed(np.maximum(self.sizes, len(tags)))] = 0
            best = np.maximum(best, found)
            place = None if other.label is None else self._labels.get(bytes(other.label))
            if place is not None:
                named[place] = found[place]
        return named, best


def _old_tables(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets whose tables were fingerprinted by versions 1 and 2, if one had as many rows and none has since."""
    newer = select(CONTENTS.c.dataset).where(CONTENTS.c.rows == table.rows)
    facts = select(DATASETS.c.name).join_from(FINGERPRINTS, DATASETS)
    old = facts.where(FINGERPRINTS.c.rows == table.rows, FINGERPRINTS.c.dataset.not_in(newer))
    for name in connection.execute(old).scalars():
        how = f"has as many rows as data set {name!r}, which an older version of dipriv fingerprinted"
        yield Resemblance(name, how)


def _whose(content: int) -> Any:
    """The data set of a content, and whether it is its own."""
    return select(DATASETS.c.name, CONTENTS.c.is_own).join_from(CONTENTS, DATASETS).where(CONTENTS.c.id == content)


def listed(found: Sequence[Resemblance]) -> str:
    """How a table resembles data sets, in words; the first three of many."""
    shown = "; it ".join(one.how for one in found[:3])
    return shown + (f"; and it resembles {len(found) - 3} more" if len(found) > 3 else "")
