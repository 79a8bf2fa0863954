"""Statistics of a table, as values: what `Release.interval` takes, and what any dataframe can be asked for.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 30, 40], "sex": ["F", "M", "F"]})
    >>> Mean("age").of(table), Share("sex", "F").of(table), GroupMean("age", "sex", "F").of(table)
    (30.0, 0.6666666666666666, 30.0)

A term of a regression is a column of numbers, or (column, value), which is 1 where the column has this value and 0
elsewhere. Missing cells: means and quantiles are those of the cells that are present, shares are those of all rows, and
a regression is that of the rows in which none of its cells is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from dipriv._base.arrays import FloatArray, Mask
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._tables import frames
from dipriv._tables.arrow import distinct_labels
from dipriv.errors import InputError

Term: TypeAlias = str | tuple[str, Any]
"""A column of numbers, or (column, value): whether the column has this value."""
_NO_LABEL = -2
"""No cell has this number; a cell whose label is not listed has -1."""
NEWTON_STEPS, NEWTON_LIMIT = 25, 1e-8
"""A logistic regression ends when no coefficient moves by more than the limit."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The columns of a table as numbers, with the labels of those that have labels: what statistics are computed on."""

    columns: Mapping[str, tuple[ColumnValues, pa.Array | None]] = field(repr=False)
    n_rows: int
    _numbers: dict[str, FloatArray] = field(repr=False, default_factory=dict)
    """Columns that were converted before."""

    @classmethod
    def of(cls, table: Any, names: Iterable[str]) -> Cells:
        """Some columns of a dataframe.

        Raises
        ------
        InputError, SchemaError : there is no such column, or dipriv does not take its type.
        """
        if isinstance(table, Cells):
            return table
        read = frames.read(table)
        frames.check_names(list(names), read.names, "the statistic")
        found = {}
        for name in names:
            is_label = read.column(name).storage.family == "label"
            labels = distinct_labels(read.array(name)) if is_label else None
            found[name] = read.cells(name, labels), labels
        return cls(found, read.rows)

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers, NaN where it is missing; yes is 1 and no is 0."""
        cells, labels = self.columns[name]
        if labels is not None:
            raise InputError(
                f"column {name!r} holds labels, not numbers.", f"Use its shares, or a term ({name!r}, value)."
            )
        if name not in self._numbers:
            values = cells.values.astype(np.float64)
            self._numbers[name] = (
                values if cells.missing is None else np.where(cells.missing == PRESENT, values, np.nan)
            )
        return self._numbers[name]

    def has(self, name: str, value: Any) -> Mask:
        """Which rows have this value in a column; None stands for a missing cell."""
        cells, labels = self.columns[name]
        absent = np.zeros(len(cells), dtype=bool) if cells.missing is None else cells.missing != PRESENT
        if labels is None and value is None:
            return absent
        if labels is None:
            equal: Mask = np.equal(cells.values, value)
            return ~absent & equal
        listed = labels.to_pylist()
        same: Mask = np.equal(cells.values, listed.index(value) if value in listed else _NO_LABEL)
        return absent | same if value is None else ~absent & same

    def term(self, term: Term) -> FloatArray:
        """A column of numbers, or an indicator; NaN where it is missing."""
        if isinstance(term, str):
            return self.numbers(term)
        name, value = term
        return np.where(self.has(name, None), np.nan, self.has(name, value).astype(np.float64))


class Statistic(Protocol):
    """A statistic of a table: a number, or several with names."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """What each of its numbers is called."""
        ...

    def values(self, cells: Cells) -> FloatArray:
        """Its numbers, NaN where the table does not determine them."""
        ...


Given_co = TypeVar("Given_co", covariant=True)


class _OfTable(Statistic, Protocol[Given_co]):
    """A statistic that any dataframe can be asked for."""

    def of(self, table: Any) -> Given_co:
        """The statistic of a dataframe, NaN where its rows do not determine it.

        Parameters
        ----------
        table : pandas, polars or pyarrow table.

        Returns
        -------
        float or dict : the number; of a regression {name: coefficient}, the intercept first.

        Raises
        ------
        InputError : a column is not there or does not have numbers.
        """
        return self._given(self.values(Cells.of(table, self.columns)).tolist())

    def _given(self, values: list[float]) -> Given_co: ...


class _OneNumber(_OfTable[float]):
    @property
    def names(self) -> tuple[str, ...]:
        return (str(self),)

    def _given(self, values: list[float]) -> float:
        return values[0]


@dataclass(frozen=True)
class _OfColumn(_OneNumber):
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Mean(_OfColumn):
    """The mean of a column of numbers; of a column of yes and no the share of yes."""

    def values(self, cells: Cells) -> FloatArray:
        return np.array([_mean(cells.numbers(self.column))])

    def __str__(self) -> str:
        return f"mean of {self.column}"


@dataclass(frozen=True)
class Share(_OfColumn):
    """The share of rows that have a value; None for missing cells."""

    value: Any

    def values(self, cells: Cells) -> FloatArray:
        return np.array([_mean(cells.has(self.column, self.value))])

    def __str__(self) -> str:
        return f"share of {self.column} = {self.value}"


@dataclass(frozen=True)
class Quantile(_OfColumn):
    """The smallest number that is not exceeded in this share of the rows; 0.5 is the median.

    Raises
    ------
    InputError : the level is not between 0 and 1.
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"the level {self.level!r} of a quantile is not between 0 and 1.", "Use 0.5 for a median.")

    def values(self, cells: Cells) -> FloatArray:
        return np.array([self.at(cells, self.level)])

    def at(self, cells: Cells, level: float) -> float:
        """The quantile of another level, which is clipped to [0, 1]."""
        present = _present(cells.numbers(self.column))
        if not len(present):
            return math.nan
        return float(np.quantile(present, min(max(level, 0.0), 1.0), method="inverted_cdf"))

    def __str__(self) -> str:
        return f"median of {self.column}" if self.level == 0.5 else f"quantile {self.level:g} of {self.column}"


@dataclass(frozen=True)
class ShareBelow(_OfColumn):
    """The share of the numbers of a column that are not above a value."""

    value: float

    def values(self, cells: Cells) -> FloatArray:
        return np.array([_mean(_present(cells.numbers(self.column)) <= self.value)])

    def __str__(self) -> str:
        return f"share of {self.column} up to {self.value:g}"


@dataclass(frozen=True)
class GroupMean(_OneNumber):
    """The mean of a term among the rows in which the column `by` has the value `group`."""

    value: Term
    by: str
    group: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns((self.value, self.by))

    def values(self, cells: Cells) -> FloatArray:
        return np.array([_mean(cells.term(self.value)[cells.has(self.by, self.group)])])

    def __str__(self) -> str:
        return f"mean of {_name(self.value)} where {self.by} = {self.group}"


@dataclass(frozen=True)
class Difference(_OneNumber):
    """The first statistic less the second, such as the means of two groups."""

    first: Statistic
    second: Statistic

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns((*self.first.columns, *self.second.columns))

    def values(self, cells: Cells) -> FloatArray:
        return self.first.values(cells) - self.second.values(cells)

    def __str__(self) -> str:
        return f"{self.first} less {self.second}"


@dataclass(frozen=True)
class Slope(_OneNumber):
    """The slope of the least-squares line of one term on another."""

    y: Term
    x: Term

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns((self.y, self.x))

    def values(self, cells: Cells) -> FloatArray:
        return LinearRegression(self.y, (self.x,)).values(cells)[1:]

    def __str__(self) -> str:
        return f"slope of {_name(self.y)} on {_name(self.x)}"


@dataclass(frozen=True)
class _Regression(_OfTable[dict[str, float]]):
    y: Term
    x: Sequence[Term]
    _kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", (self.x,) if isinstance(self.x, str) else tuple(self.x))

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns((self.y, *self.x))

    @property
    def names(self) -> tuple[str, ...]:
        return (f"{self}, intercept", *(f"{self} on {_name(term)}" for term in self.x))

    def _given(self, values: list[float]) -> dict[str, float]:
        return dict(zip(self.names, values, strict=True))

    def _rows(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """The design matrix and the outcome, in rows without missing cells."""
        terms = np.stack([np.ones(cells.n_rows), *(cells.term(term) for term in (*self.x, self.y))], axis=1)
        lacking = np.isnan(terms).any(axis=1)
        complete = terms[~lacking] if lacking.any() else terms
        return complete[:, :-1], complete[:, -1]

    def __str__(self) -> str:
        return f"{self._kind} regression of {_name(self.y)}"


@dataclass(frozen=True)
class LinearRegression(_Regression):
    """The least-squares coefficients of a term on others: the intercept, then one for each.

    >>> LinearRegression("income", ("age", ("sex", "F"))).columns
    ('income', 'age', 'sex')
    """

    _kind = "linear"

    def values(self, cells: Cells) -> FloatArray:
        design, y = self._rows(cells)
        return _solve(design.T @ design, design.T @ y)


@dataclass(frozen=True)
class LogisticRegression(_Regression):
    """The maximum-likelihood coefficients of the log-odds that `y` is 1: the intercept, then one for each term."""

    _kind = "logistic"

    def values(self, cells: Cells) -> FloatArray:
        design, y = self._rows(cells)
        if np.any((y != 0) & (y != 1)):
            raise InputError(
                f"{_name(self.y)} is not 0 or 1 in every row.", "Use a column of yes and no, or a term (column, value)."
            )
        found = np.zeros(design.shape[1])
        for _ in range(NEWTON_STEPS):
            p = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -30.0, 30.0)))
            step = _solve(design.T @ (design * (p * (1 - p))[:, np.newaxis]), design.T @ (y - p))
            found = found + step
            if not np.any(np.abs(step) > NEWTON_LIMIT):
                return found
        return np.full(len(found), np.nan)


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solution of a system of equations, NaN where it has none."""
    if not len(matrix) or not np.all(np.isfinite(matrix)) or np.linalg.matrix_rank(matrix) < len(matrix):
        return np.full(len(right), np.nan)
    return np.asarray(np.linalg.solve(matrix, right))


def _mean(values: FloatArray | Mask) -> float:
    """The mean of the numbers that are not NaN."""
    found = float(values.mean()) if len(values) else math.nan
    return found if not math.isnan(found) or not len(present := _present(values)) else float(present.mean())


def _present(values: FloatArray | Mask) -> FloatArray | Mask:
    return values[~np.isnan(values)]


def _columns(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term if isinstance(term, str) else term[0] for term in terms))


def _name(term: Term) -> str:
    return term if isinstance(term, str) else f"[{term[0]} = {term[1]}]"
