"""Which data sets a table resembles: by its content, its columns, its rows, and the values of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from dipriv._base.table_fingerprint import TELLING, TableFingerprint, overlap
from dipriv.ledger.tables import COLUMNS, CONTENTS, DATASETS, FINGERPRINTS, now

_AT_ONCE = 500
"""How many values a query compares with at once."""


@dataclass(frozen=True)
class Resemblance:
    """A data set that a table resembles, and how, as a sentence about "this table"; or whose content it is."""

    dataset: str
    how: str
    is_same: bool = False


def resemblances(connection: Connection, table: TableFingerprint) -> list[Resemblance]:
    """The data sets that a table resembles, each once, the strongest resemblance first."""
    found: dict[str, Resemblance] = {}
    for which in (_same_rows, _same_columns, _common_rows, _common_values, _old_tables):
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
        {"content": content[0], "digest": column.digest, "n_distinct": column.n_distinct, "sketch": column.sketch}
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
    """Data sets that have a column of the same cells, in any order, of at least `TELLING` distinct values."""
    own = Counter(column.digest for column in table.columns)
    telling = {column.digest for column in table.columns if column.n_distinct >= TELLING}
    met: dict[int, Counter[bytes]] = {}
    for start in range(0, len(own), _AT_ONCE):
        some = [*own][start : start + _AT_ONCE]
        facts = select(COLUMNS.c.content, COLUMNS.c.digest).where(COLUMNS.c.digest.in_(some))
        for row in connection.execute(facts):
            met.setdefault(row.content, Counter())[bytes(row.digest)] += 1
    common = {content: (digests & own).total() for content, digests in met.items() if telling & {*digests}}
    for content, count in sorted(common.items(), key=lambda item: -item[1]):
        name = connection.execute(_name_of(content)).scalar_one()
        width = connection.execute(select(func.count()).where(COLUMNS.c.content == content)).scalar_one()
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


def _old_tables(connection: Connection, table: TableFingerprint) -> Iterable[Resemblance]:
    """Data sets whose tables were fingerprinted by versions 1 and 2, if one had as many rows."""
    newer = select(CONTENTS.c.dataset)
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
