"""Columns that are computed from other released columns: formulas, and functions by a public map.

Computing them is post-processing: it reads nothing but released cells. A cell is missing where a part of it is, and
where a formula divides by zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Mask
from dipriv._base.columns import cast
from dipriv._rules import Constant, Expression, Formula, Function, Name, Number, columns_of
from dipriv._tables.frames import Column, contains_text
from dipriv.release.rules.cells import (
    Part,
    Parts,
    Say,
    check_list,
    decimals_of,
    label_array,
    may_be_missing,
    stored,
    with_missing,
)
from dipriv.schema import Categorical, Discrete, Kind, lattice

MAX_DECIMALS = 9
EXACT = 2.0**62
"""Whole numbers below this are computed exactly."""
NUMBERS = ("integer", "real", "boolean")


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """A formula, with the column that it gives."""

    rule: Formula
    column: Column
    kind: Kind | None

    def check(self, columns: dict[str, Column], say: Say) -> None:
        """Numbers in, a number out, and room for what is missing."""
        parts = columns_of(self.rule.expression)
        for name in (self.rule.column, *parts):
            family = columns[name].storage.family
            if family not in NUMBERS or (name == self.rule.column and family == "boolean"):
                say(f"column {name!r} holds {columns[name].storage.label}, not numbers", "Use columns of numbers")
        absent = [name for name in parts if may_be_missing(columns[name])]
        if not may_be_missing(self.column) and (absent or _divides(self.rule.expression)):
            why = f"column {absent[0]!r} may be missing" if absent else "a ratio is missing where it divides by zero"
            say(
                f"{why}, but the type {self.column.storage.label} of column {self.column.name!r} has no missing cells",
                "Convert the column to a type that has, such as Int64 of pandas or float",
            )

    def after(self, parts: Parts) -> Part:
        names = columns_of(self.rule.expression)
        missing = np.logical_or.reduce([parts[name].missing for name in names])
        decimals = _decimals(self.rule.expression, parts)
        values, exact, undefined = _numbers(self.rule.expression, parts)
        stored_values = cast(_on_lattice(values, self.kind, decimals), self.column.storage.dtype)
        if exact is not None and _step(self.kind) in (None, (1, 1)):
            stored_values = np.where(np.abs(values) < EXACT, cast(exact, self.column.storage.dtype), stored_values)
        own = decimals if not isinstance(self.kind, Discrete) else decimals_of(self.column, self.kind)
        return Part(with_missing(stored_values, missing | undefined, self.column), None, own)

    def broken(self, parts: Parts) -> Mask:
        return ~_same(self.after(parts), parts[self.column.name], self.kind)


@dataclass(frozen=True, eq=False)
class MappedColumn:
    """A function by a public map, with the columns on both sides."""

    rule: Function
    column: Column
    of: Column

    def check(self, columns: dict[str, Column], say: Say) -> None:
        outputs = [value for _, value in self.rule.map] + ([] if self.rule.other is None else [self.rule.other])
        found = _outputs(self.column, outputs)
        if found is None:
            say(f"some values of its map are not {self.column.storage.label}", "Use values of the column's type")
        elif found[1] is not None:
            check_list(self.column, found[1], say)
        if self.of.storage.family != "label":
            try:
                self._ranges()
            except ValueError as error:
                say(str(error), 'Write keys as values of the column, or as ranges such as "0..14" or "15.."')
        if not may_be_missing(self.column) and (self.rule.other is None or may_be_missing(self.of)):
            say(
                f"column {self.column.name!r} has no missing cells, but the map may give some",
                "Give `other`, for values that the map does not list, and columns without missing cells; or convert "
                "the column to a type that has missing cells",
            )

    def listed(self) -> Kind | None:
        """All values of the column `of`, where the map lists them: without ranges, and none is left for `other`."""
        keys = [key for key, _ in self.rule.map]
        if self.rule.other is not None:
            return None
        if contains_text(self.of):
            return Categorical(levels=tuple(keys))
        if self.of.storage.family not in ("integer", "real"):
            return None
        lows, highs, _ = self._ranges()
        whole = self.of.storage.family == "integer"
        return Discrete(levels=tuple(int(x) if whole else x for x in lows.tolist())) if np.all(lows == highs) else None

    def after(self, parts: Parts) -> Part:
        part = parts[self.of.name]
        missing = part.missing
        values = [value for _, value in self.rule.map]
        outputs = values + ([] if self.rule.other is None else [self.rule.other])
        found = self._of_labels(part) if part.labels is not None else self._of_numbers(part.cells.values)
        unlisted = found < 0
        if self.rule.other is not None:
            found = np.where(unlisted, len(values), found)
            unlisted = np.zeros(len(found), dtype=bool)
        gone = missing | unlisted
        numbers, labels = _outputs(self.column, outputs) or (np.zeros(1), None)
        taken = numbers[np.where(gone, 0, found)]
        return Part(with_missing(cast(taken, self.column.storage.dtype), gone, self.column), labels)

    def broken(self, parts: Parts) -> Mask:
        return ~_same(self.after(parts), parts[self.column.name], None)

    def _of_labels(self, part: Part) -> NDArray[np.int64]:
        place = {key: number for number, (key, _) in enumerate(self.rule.map)}
        assert part.labels is not None  # noqa: S101
        of_label = np.array(
            [-1 if label is None else place.get(_written(label), -1) for label in (*part.labels.to_pylist(), None)],
            np.int64,
        )
        return of_label[np.where(part.missing, -1, part.cells.values)]

    def _of_numbers(self, values: NDArray[Any]) -> NDArray[np.int64]:
        lows, highs, places = self._ranges()
        at = np.searchsorted(lows, values, side="right") - 1
        inside = (at >= 0) & (values <= highs[np.maximum(at, 0)])
        return np.where(inside, places[np.maximum(at, 0)], -1)

    def _ranges(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """The ends of the keys, in order; refuses keys that overlap."""
        ranges = sorted((*_range(key, self.of), number) for number, (key, _) in enumerate(self.rule.map))
        lows = np.array([low for low, _, _ in ranges], dtype=np.float64)
        highs = np.array([high for _, high, _ in ranges], dtype=np.float64)
        if np.any(lows[1:] <= highs[:-1]) or np.any(highs < lows):
            raise ValueError("some keys of its map overlap, or end before they begin")
        return lows, highs, np.array([number for _, _, number in ranges], dtype=np.int64)


def _written(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _range(key: str, column: Column) -> tuple[float, float]:
    """The ends of a key: a value, or a range."""
    low, dots, high = key.partition("..")
    if dots:
        return (
            -np.inf if not low.strip() else _value(low.strip(), column),
            np.inf if not high.strip() else _value(high.strip(), column),
        )
    value = _value(key.strip(), column)
    return value, value


def _value(text: str, column: Column) -> float:
    constant: Constant = text
    if column.storage.family == "boolean":
        constant = {"true": True, "false": False}.get(text.lower(), text)
    elif column.storage.family in ("integer", "real"):
        try:
            constant = int(text)
        except ValueError:
            try:
                constant = float(text)
            except ValueError:
                constant = text
    found = stored(column, constant)
    if found is None or not np.isfinite(found):
        raise ValueError(f"some keys of its map are no values of column {column.name!r} ({column.storage.label})")
    return float(found)


def _outputs(column: Column, values: list[Constant]) -> tuple[NDArray[Any], pa.Array | None] | None:
    """Values of a column as numbers, and the labels that these stand for; None where some cannot be stored."""
    if column.storage.family == "label":
        labels = label_array(column, list(dict.fromkeys(values)))
        place = {value: number for number, value in enumerate(dict.fromkeys(values))}
        return None if labels is None else (np.array([place[value] for value in values]), labels)
    numbers = [stored(column, value) for value in values]
    return None if None in numbers else (np.array(numbers), None)


def _numbers(expression: Expression, parts: Parts) -> tuple[FloatArray, NDArray[np.int64] | None, Mask]:
    """The values of an expression, which stay finite, exact ones if all parts are whole, and where it has none."""
    values, exact, undefined = _evaluate(expression, parts)
    most = np.finfo(np.float64).max
    undefined = undefined | np.isnan(values)
    return np.clip(np.where(undefined, 0.0, values), -most, most), exact, undefined


def _evaluate(expression: Expression, parts: Parts) -> tuple[FloatArray, NDArray[np.int64] | None, Mask]:
    """In floating point; modulo 2^64 as well, where all parts are whole; and where there is a division by zero."""
    if isinstance(expression, Name):
        cells = parts[expression.column].cells.values
        exact = cells.astype(np.int64) if cells.dtype.kind in "iub" else None
        return cells.astype(np.float64), exact, np.zeros(len(cells), dtype=bool)
    if isinstance(expression, Number):
        size = len(next(iter(parts.values())))
        number = expression.value
        whole = np.full(size, number, dtype=np.int64) if isinstance(number, int) else None
        return np.full(size, float(number)), whole, np.zeros(size, dtype=bool)
    left, left_exact, left_undefined = _evaluate(expression.left, parts)
    right, right_exact, right_undefined = _evaluate(expression.right, parts)
    undefined = left_undefined | right_undefined
    exact = None
    with np.errstate(all="ignore"):
        if expression.symbol == "/":
            undefined = undefined | (right == 0)
            return left / np.where(right == 0, 1.0, right), None, undefined
        combine = {"+": np.add, "-": np.subtract, "*": np.multiply}[expression.symbol]
        if left_exact is not None and right_exact is not None:
            exact = combine(left_exact, right_exact)
        return combine(left, right), exact, undefined


def _divides(expression: Expression) -> bool:
    if isinstance(expression, Name | Number):
        return False
    return expression.symbol == "/" or _divides(expression.left) or _divides(expression.right)


def _decimals(expression: Expression, parts: Parts) -> int | None:
    """How many decimals the values of an expression have; None where that is not known, or too many."""
    if isinstance(expression, Name):
        return parts[expression.column].decimals
    if isinstance(expression, Number):
        unit = lattice(abs(expression.value)) if expression.value else (0, 1)
        return None if unit is None else len(str(unit[1])) - 1
    left, right = _decimals(expression.left, parts), _decimals(expression.right, parts)
    if left is None or right is None or expression.symbol == "/":
        return None
    found = left + right if expression.symbol == "*" else max(left, right)
    return found if found <= MAX_DECIMALS else None


def _step(kind: Kind | None) -> tuple[int, int] | None:
    """The declared step, as a ratio."""
    return lattice(kind.step) if isinstance(kind, Discrete) and kind.step is not None else None


def _on_lattice(values: FloatArray, kind: Kind | None, decimals: int | None) -> FloatArray:
    """Rounded to the declared step, or to the decimals of the parts: 0.1 + 0.2 is 0.3."""
    unit = _step(kind)
    if unit is not None:
        return on_steps(values, *unit)
    return values if decimals is None else on_steps(values, 1, 10**decimals)


def on_steps(values: NDArray[Any], whole: int, per_unit: int) -> NDArray[Any]:
    """The nearest multiples of whole / per_unit; numbers that are too large for that stay as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(values.astype(np.float64) * per_unit / whole)
        near = steps * whole / per_unit
    return np.where(np.abs(steps) < 2.0**53, near, values)


def _same(one: Part, other: Part, kind: Kind | None) -> Mask:
    """Where two columns agree, but for rounding."""
    both = one.missing & other.missing
    neither = ~one.missing & ~other.missing
    if one.labels is not None:
        left, right = (np.array([*part.texts().to_pylist(), None], dtype=object)[:-1] for part in (one, other))
        equal: Mask = both | (neither & (left == right))
        return equal
    left, right = one.cells.values.astype(np.float64), other.cells.values.astype(np.float64)
    step = float(kind.step) if isinstance(kind, Discrete) and kind.step is not None else 0.0
    with np.errstate(over="ignore"):
        near = np.abs(left - right) <= np.maximum(0.51 * step, 1e-6 * np.maximum(1e-3, np.abs(left)))
    agree: Mask = both | (neither & near)
    return agree
