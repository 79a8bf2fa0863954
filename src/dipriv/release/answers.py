"""Questions answered by the private reference itself, without rows: probabilities, means and crosstabs.

The reference is a network of columns. Its answers are sums over the network, so they lack the sampling noise of
released rows, which are as if drawn from it. Standard errors come from references that are learned from replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT
from dipriv._base.progress import Progress, no_progress
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import check_names
from dipriv.codecs.binned import BinnedCodec
from dipriv.errors import InputError, InternalError
from dipriv.references._models.independent import Independent
from dipriv.references._models.network import Network
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.intervals import REPLICATES, Replicates, rests_on, unmeasured_pairs

Condition: TypeAlias = Any
"""What a cell must be: a value, None for a missing cell, or (lowest, highest) for numbers."""
Factor: TypeAlias = tuple[tuple[int, ...], FloatArray]
MAX_TABLE = 1 << 24
"""The most cells of a table that an answer is summed from."""


@dataclass(frozen=True)
class Answer:
    """A number of the reference and its standard error, from noise and sampling together.

    Attributes
    ----------
    value : the answer.
    error : its standard error; NaN where no replicates were asked for.
    caution : which pairs of columns it rests on that were not measured; empty where there is none.
    """

    value: float
    error: float
    caution: str = ""

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" ± {self.error:.2g}"
        return f"{self.value:.4g}{error}" + (f" ({self.caution})" if self.caution else "")


@dataclass(frozen=True, eq=False)
class Crosstab:
    """The probabilities of all pairs of values, or of ranges (lowest, highest), of two columns.

    Attributes
    ----------
    rows, columns : the values of the first and of the second column; None stands for missing cells.
    probabilities, errors : arrays (rows, columns), with the standard errors.
    caution : as in `Answer`.
    """

    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    probabilities: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    caution: str = ""


@dataclass(eq=False)
class ReferenceAnswers:
    """What the private reference of a release says, without rows: `release.reference`, `load_sheet(path).reference`."""

    _replicates: Replicates = field(repr=False)
    _progress: Progress = field(repr=False, default=no_progress)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the reference that are released as they are; others follow from them by rules."""
        model = self._replicates.model
        return tuple(name for name in model.names if model.rewriting is None or name not in model.rewriting.computed)

    def probability(self, where: Mapping[str, Condition], *, replicates: int = REPLICATES) -> Answer:
        """The share of rows that meet all conditions.

        Parameters
        ----------
        where : {column: value, None for missing cells, or (lowest, highest) for a range of numbers}.
        replicates : from how many replicates the standard error is computed; 0 for none, which is quick.

        Returns
        -------
        Answer : the probability and its standard error.

        Raises
        ------
        InputError : there is no such column, or it follows from others by a rule of the schema.
        """
        self._check(where)
        return self._answer(lambda view: view.total(where), tuple(where), replicates)

    def mean(
        self, column: str, where: Mapping[str, Condition] | None = None, *, replicates: int = REPLICATES
    ) -> Answer:
        """The mean of a column of numbers, over the rows that meet all conditions.

        Parameters
        ----------
        column : whose mean.
        where, replicates : as in `probability`.

        Returns
        -------
        Answer : the mean and its standard error; NaN where no row meets the conditions.

        Raises
        ------
        InputError : there is no such column, or it does not have numbers.
        """
        conditions = {} if where is None else where
        self._check({column: None, **conditions})
        return self._answer(lambda view: view.mean(column, conditions), tuple({column, *conditions}), replicates)

    def crosstab(self, one: str, two: str, *, replicates: int = REPLICATES) -> Crosstab:
        """The probabilities of all pairs of values of two columns.

        Parameters
        ----------
        one, two : two columns. Columns of many numbers are divided into the ranges that tables were measured in.
        replicates : as in `probability`.

        Returns
        -------
        Crosstab : the values, the probabilities and their standard errors.

        Raises
        ------
        InputError : there is no such column, or both are the same.
        """
        self._check({one: None, two: None})
        if one == two:
            raise InputError(f"{one!r} is given twice.", "Give two columns.")
        model = self._replicates.model
        view = _View.of_model(model)
        sides = view.values_of(one), view.values_of(two)

        def table(view: _View) -> FloatArray:
            return np.array([[view.total({one: row, two: column}) for column in sides[1]] for row in sides[0]])

        found = table(view)
        return Crosstab(*sides, found, self._errors(table, found, replicates), self._caution((one, two)))

    def _answer(self, ask: Callable[[_View], float], columns: tuple[str, ...], replicates: int) -> Answer:
        value = ask(_View.of_model(self._replicates.model))
        error = self._errors(lambda view: np.array(ask(view)), np.array(value), replicates)
        return Answer(float(value), float(error), self._caution(columns))

    def _errors(self, ask: Callable[[_View], FloatArray], value: FloatArray, replicates: int) -> FloatArray:
        """The root mean square of the errors that references of replicates make: bias and noise."""
        if not replicates:
            return np.full(np.shape(value), np.nan)
        known = self._replicates.learned(replicates, self._progress)
        squares = np.array([(ask(_View(of.columns, of.reference, of.order)) - value) ** 2 for of in known])
        return np.asarray(np.sqrt(np.nanmean(squares, axis=0)))

    def _caution(self, columns: Sequence[str]) -> str:
        pairs = unmeasured_pairs(columns, self._replicates.model)
        return rests_on(pairs).rstrip(".") if pairs else ""

    def _check(self, where: Mapping[str, Condition]) -> None:
        followed = [name for name in where if name in self._replicates.model.released_names]
        if by_rule := [name for name in followed if name not in self.columns]:
            raise InputError(
                f"column {by_rule[0]!r} follows from others by a rule of the schema: the reference does not have it.",
                "Use interval(...), which computes it in every replicate, or ask about the columns it follows from.",
            )
        check_names(tuple(where), self.columns, "the question")

    def __repr__(self) -> str:
        return f"ReferenceAnswers({len(self.columns)} columns, {len(self._replicates.model.pairs)} pairs measured)"


@dataclass(frozen=True, eq=False)
class _View:
    """A learned reference, with what its states mean."""

    columns: Sequence[FittedColumn]
    reference: Any
    order: Sequence[int]

    @classmethod
    def of_model(cls, model: BootstrapModel) -> _View:
        return cls(model.columns, model.reference, model.order)

    def total(self, where: Mapping[str, Condition]) -> float:
        """The probability that all conditions are met."""
        return self._sum({name: self._meets(name, condition) for name, condition in where.items()})

    def mean(self, name: str, where: Mapping[str, Condition]) -> float:
        values, present = self._states(name)
        meets = {other: self._meets(other, condition) for other, condition in where.items()}
        own = meets.get(name, np.ones(len(values))) * present
        below = self._sum(meets | {name: own})
        return self._sum(meets | {name: own * np.where(present, values, 0.0)}) / below if below > 0 else math.nan

    def values_of(self, name: str) -> tuple[Any, ...]:
        """The values of a column, or its ranges where groups of states have several, in the order of states."""
        column = self._column(name)
        codec: Any = column.codec
        missing: tuple[Any, ...] = (None,) if codec.missing else ()
        if not isinstance(codec, BinnedCodec):
            cells = codec.from_states(np.arange(codec.states))
            present = cells.values if cells.missing is None else cells.values[cells.missing == PRESENT]
            listed = None if column.labels is None else column.labels.to_pylist()
            return missing + tuple(value if listed is None else listed[value] for value in present.tolist())
        group = self._shares(name)[1][len(codec.missing) :]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        last = np.append(first[1:], len(group)) - 1
        ends = codec.starts[last] + (codec.sizes[last] - np.uint64(1)).astype(np.int64)
        low, high = (codec.line.to_values(codes).tolist() for codes in (codec.starts[first], ends))
        return missing + tuple(one if one == two else (one, two) for one, two in zip(low, high, strict=True))

    def _column(self, name: str) -> FittedColumn:
        return next(column for column in self.columns if column.name == name)

    def _states(self, name: str) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The number that each state stands for, and whether it is one."""
        column = self._column(name)
        if column.labels is not None:
            raise InputError(f"column {name!r} holds labels, not numbers.", "Ask for probabilities.")
        codec: Any = column.codec
        present = np.ones(codec.states, dtype=bool)
        if isinstance(codec, BinnedCodec):
            present[: len(codec.missing)] = False
            last = codec.starts + (codec.sizes - np.uint64(1)).astype(np.int64)
            low, high = (codec.line.to_values(codes).astype(np.float64) for codes in (codec.starts, last))
            return np.concatenate([np.zeros(len(codec.missing)), low / 2 + high / 2]), present
        cells = codec.from_states(np.arange(codec.states))
        there = present if cells.missing is None else cells.missing == PRESENT
        return cells.values.astype(np.float64), there

    def _meets(self, name: str, condition: Condition) -> FloatArray:
        """The part of each state that meets a condition."""
        column = self._column(name)
        codec: Any = column.codec
        if isinstance(codec, BinnedCodec):
            met = _part_of_bins(codec, condition)
            return np.concatenate([np.full(len(codec.missing), float(condition is None)), met])
        cells = codec.from_states(np.arange(codec.states))
        absent = np.zeros(codec.states, dtype=bool) if cells.missing is None else cells.missing != PRESENT
        if column.labels is not None:
            listed = column.labels.to_pylist()
            same = np.array([listed[number] == condition for number in cells.values.tolist()])
        elif isinstance(condition, tuple):
            same = (cells.values >= condition[0]) & (cells.values <= condition[1])
        else:
            same = cells.values == condition if condition is not None else np.zeros(codec.states, dtype=bool)
        return np.where(absent, float(condition is None), same.astype(np.float64))

    def _shares(self, name: str) -> tuple[FloatArray, NDArray[np.int64]]:
        """The share of its group that each state has, and its group."""
        if isinstance(self.reference, Network):
            node = self.reference.nodes[self.order.index(self.columns.index(self._column(name)))]
            return node.ends - node.inner, node.group_of
        states = len(self._marginal_alone())
        return np.ones(states), np.arange(states)

    def _marginal_alone(self) -> FloatArray:
        if not isinstance(self.reference, Independent):
            raise InternalError("a private reference is a network or one column.", "Report this fault in dipriv.")
        marginal: Any = self.reference.laws[0]
        return np.asarray(marginal.probabilities)

    def _sum(self, weights: Mapping[str, FloatArray]) -> float:
        """Σ over the joint states of these columns of their probability times their weights."""
        if not isinstance(self.reference, Network):
            return float(self._marginal_alone() @ next(iter(weights.values()), np.ones(1)))
        collapsed: dict[int, FloatArray] = {}
        for name, weight in weights.items():
            shares, group = self._shares(name)
            place = self.order.index(self.columns.index(self._column(name)))
            collapsed[place] = np.bincount(group, shares * weight).astype(np.float64)
        return _contract(self.reference, collapsed)


def _part_of_bins(codec: BinnedCodec, condition: Condition) -> FloatArray:
    """The part of each bin's numbers that meets a condition."""
    if condition is None:
        return np.zeros(len(codec.starts))
    low, high = condition if isinstance(condition, tuple) else (condition, condition)
    least, most = (int(code) for code in codec.line.to_codes(np.array([low, high]).astype(codec.dtype)))
    met = []
    for start, size in zip(codec.starts.tolist(), codec.sizes.tolist(), strict=True):  # exact: codes have 64 bits
        covered = min(start + size - 1, most) - max(start, least) + 1
        met.append(max(covered, 0) / size)
    return np.array(met)


def _contract(network: Network, weights: Mapping[int, FloatArray]) -> float:
    """Σ over all columns of Π p(column | parents) Π weights, by variable elimination over the ancestors."""
    needed: set[int] = set()
    waiting = list(weights)
    while waiting:
        place = waiting.pop()
        if place not in needed:
            needed.add(place)
            waiting += network.nodes[place].parents
    factors: list[Factor] = []
    for place in needed:
        node = network.nodes[place]
        shape = [network.nodes[parent].groups for parent in node.parents]
        factors.append(((*node.parents, place), np.diff(node.tables, axis=1).reshape(*shape, node.groups)))
    factors += [((place,), weight) for place, weight in weights.items()]
    left = set(needed)
    while left:
        place = min(left, key=lambda one: (_size_without(one, factors), -one))
        left.remove(place)
        inside = [factor for factor in factors if place in factor[0]]
        axes = tuple(sorted({axis for of, _ in inside for axis in of} - {place}))
        if math.prod(network.nodes[axis].groups for axis in (*axes, place)) > MAX_TABLE:
            raise InputError(
                f"an answer needs a table of more than {MAX_TABLE:,} cells.", "Ask about fewer columns at a time."
            )
        number = {axis: position for position, axis in enumerate((*axes, place))}
        operands: list[Any] = []
        for of, table in inside:
            operands += [table, [number[axis] for axis in of]]
        summed = np.einsum(*operands, [number[axis] for axis in axes], optimize=True)
        factors = [factor for factor in factors if place not in factor[0]]
        factors.append((axes, np.asarray(summed, dtype=np.float64)))
    return float(math.prod(float(table) for _, table in factors))


def _size_without(place: int, factors: Sequence[Factor]) -> int:
    """How many cells the table has that is left when a column is summed out."""
    sizes = {axis: table.shape[n] for of, table in factors if place in of for n, axis in enumerate(of)}
    return math.prod(size for axis, size in sizes.items() if axis != place)
