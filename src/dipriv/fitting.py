"""From recipes and reference rows to a mechanism that is ready to release tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv.codecs import Cells, Codec
from dipriv.columns import FittedColumn, fit_columns, refuse_nulls
from dipriv.errors import InputError, ReferenceRowsError
from dipriv.kernels import Kernel, KernelRecipe
from dipriv.mechanism import Mechanism, encode
from dipriv.randomness import Bits
from dipriv.references import Grouped, Order, Recipe, ReferenceRows, draw_order
from dipriv.schema import Schema
from dipriv.tables import Column, Table, check_names, distinct_labels, group_codes

CHUNK_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that is needed to release rows. `order` lists the columns of V in the order of the chain rule."""

    columns: tuple[FittedColumn, ...]
    reference: Any = field(repr=False)
    kernel: Kernel = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    nulls_have_mass: bool = True
    by: str | None = None
    groups: pa.Array | None = field(repr=False, default=None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> Schema:
        """What each column was taken as."""
        return Schema({column.name: column.kind for column in self.columns})

    def release(self, table: Table, keep: Sequence[str], bits: Bits, progress: bool = False) -> Any:
        """Release every row of the table, in its own library and dtypes."""
        self.check(table)
        cells = [column.cells(table) for column in self.columns]
        if not self.nulls_have_mass:
            refuse_nulls(list(zip(self.names, cells, strict=True)))
        groups = self._groups_of(table)
        codecs = tuple(column.codec for column in self.columns)
        parts: list[list[Cells]] = []
        with _bar(table.rows, progress) as advance:
            for start in range(0, table.rows, CHUNK_ROWS):
                rows = slice(start, start + CHUNK_ROWS)
                reference = self.reference if groups is None else self.reference.at(groups[rows])
                mechanism = Mechanism(codecs, reference, self.kernel, self.order)
                parts.append(mechanism.privatize([column.take(rows) for column in cells], bits))
                advance(min(CHUNK_ROWS, table.rows - start))
        released = {
            column.name: (_concatenate(chunks), column.labels)
            for column, chunks in zip(self.columns, zip(*parts, strict=True), strict=True)
        }
        return table.rebuild(released, keep)

    def check(self, table: Table) -> None:
        """The table must have the columns that the reference has, with the same types."""
        for column in self.columns:
            column.check(table)

    def _groups_of(self, table: Table) -> NDArray[np.intp] | None:
        if self.by is None:
            return None
        check_names([self.by], table.names, "by")
        codes = group_codes(table.array(self.by), self.groups)
        if np.any(codes < 0):
            raise ReferenceRowsError(
                f"column {self.by!r}: some rows belong to groups that have no reference rows.",
                "Fit on the first rows of every group, or leave these rows out.",
            )
        return codes


def fit(
    recipe: Recipe,
    kernel: KernelRecipe,
    epsilon: float,
    facts: Sequence[Column],
    schema: Schema,
    reference: Table | None,
    bits: Bits,
) -> Fitted:
    """Fit codecs and reference on the reference rows (None where the recipe reads none), and build the kernel."""
    names = [column.name for column in facts]
    lawful = recipe.kinds(names)
    columns = fit_columns(facts, schema, lawful, reference)
    codecs = [column.codec for column in columns]
    order = _order_of_v(codecs, draw_order(_checked(recipe.order, names), names, bits.child("order")))
    of_v = [column.name for column in columns for _ in range(column.codec.dims)]
    chained = tuple(of_v[position] for position in order)
    lower = np.array([low for codec in codecs for low in codec.lower])[list(order)]
    v, by, groups, codes = np.empty((0, len(order))), None, None, None
    if reference is not None:
        v = encode(codecs, [column.cells(reference) for column in columns], bits.child("reference"))[:, order]
    if isinstance(recipe, Grouped) and reference is not None:
        by, groups = recipe.by, distinct_labels(reference.array(recipe.by))
        codes = group_codes(reference.array(by), groups)
    fitted = recipe.fit(ReferenceRows(v, lower, chained, codes))
    return Fitted(tuple(columns), fitted, kernel.build(epsilon, chained), order, not lawful, by, groups)


def _checked(order: Order, names: Sequence[str]) -> Order:
    if order is not None and order != "random":
        if isinstance(order, str):
            raise InputError(f"order={order!r} is unknown.", 'Use "random" or a list of column names.')
        check_names(order, names, "order")
    return order


def _order_of_v(codecs: Sequence[Codec], positions: Sequence[int]) -> tuple[int, ...]:
    ends = np.cumsum([codec.dims for codec in codecs])
    starts = ends - [codec.dims for codec in codecs]
    return tuple(int(v) for position in positions for v in range(starts[position], ends[position]))


def _concatenate(chunks: Sequence[Cells]) -> Cells:
    if len(chunks) == 1:
        return chunks[0]
    missing = [np.zeros(len(part), np.uint8) if part.missing is None else part.missing for part in chunks]
    some = any(part.missing is not None for part in chunks)
    return Cells(np.concatenate([part.values for part in chunks]), np.concatenate(missing) if some else None)


@contextmanager
def _bar(rows: int, progress: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, or nothing."""
    if not progress:
        yield lambda done: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as bars:
        task = bars.add_task("privatizing rows", total=rows)
        yield lambda done: bars.advance(task, done)
