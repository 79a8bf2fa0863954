"""What is public about each column: its line or its levels, by its type and the schema, and declared labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NAN, NULL, ColumnValues, NumericColumn, ValuesOf, cast
from dipriv._base.coordinates import UniformCoordinate
from dipriv._base.jit import jit
from dipriv.codecs.calendar import Calendar, bounds_in_ticks, has_multiple
from dipriv.codecs.fit import check_family, stored_levels
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, GridCodes, OrderedCodes
from dipriv.codecs.temporal import ticks_in
from dipriv.errors import SchemaError
from dipriv.schema import RESOLUTIONS, Categorical, Continuous, Datetime, Discrete, Kind, Mixed, lattice

MAX_DECIMALS = 4
MAX_LEVELS_ALONE = 24
"""More ordered levels than these are counted in groups, too."""
MAX_ALONE = 16
"""Whole numbers of steps up to 16 have a bin each."""
POWERS_OF_TEN = (-5, 13)
"""Magnitudes from 10^-5 to 10^13 are ordinary."""
SIGNIFICANDS = (
    (4, (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)),
    (8, (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 25, 28, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90)),
    (32, tuple(range(10, 100))),
    (64, tuple(range(100, 1000, 5))),
)
"""The digits of round numbers, for resolutions up to the first number."""

_BOUNDED = Continuous | Mixed | Discrete | Datetime
"""Kinds whose bounds may be declared."""
Step = tuple[int, int, Any]
"""A candidate (whole, per_unit, what to call it) for the step that a column's values are multiples of."""


@dataclass(frozen=True, eq=False)
class Domain:
    """One column: listed `levels`, or a line of numbers with one of `steps` or, where there is none, of bits."""

    column: NumericColumn
    declared: Kind | None
    levels: NDArray[Any] | None = field(repr=False, default=None)
    ordered: bool = True
    steps: tuple[Step, ...] = ()
    finds_labels: bool = False
    """Whether this is a column of labels that are to be found from the rows."""
    finds_values: bool = False
    """Whether this is a line of numbers on which frequent exact values are to be found."""
    boundaries: tuple[float, ...] = ()
    """Numbers that rules compare the column with: bins begin and end there."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def missing(self) -> tuple[int, ...]:
        """The kinds of missing cells that the type allows."""
        null = (NULL,) if self.column.nullable else ()
        return (*null, NAN) if self.column.storage.family == "real" else null

    @property
    def has_no_label(self) -> bool:
        """Whether this is a column of labels for which there is no label: all its cells are missing."""
        return self.column.n_labels == 0

    @property
    def atoms(self) -> FloatArray:
        """The values that are declared to have a mass of their own."""
        declared = self.declared.atoms if isinstance(self.declared, Mixed) else None
        return np.array(declared or (), dtype=np.float64)

    @property
    def calendar(self) -> Calendar | None:
        """The calendar of dates and times, unless they are declared as numbers; durations have none."""
        times = self.column.times
        if times is None or not (self.declared is None or isinstance(self.declared, Datetime)):
            return None
        return Calendar(self.column.storage.tick_ns, self.column.zone, times == "dates")

    @property
    def bounded(self) -> bool:
        """Whether bounds are declared."""
        declared = self.declared
        return isinstance(declared, _BOUNDED) and None not in (declared.lower, declared.upper)

    @property
    def lists_levels(self) -> bool:
        """Whether its levels or labels are listed one by one, rather than implied by a step and bounds."""
        return self.levels is not None and not (isinstance(self.declared, Discrete) and self.declared.levels is None)

    @property
    def is_line(self) -> bool:
        """Whether nothing lists its values; groups of them are counted beside single ones."""
        return self.levels is None and self.ordered

    @property
    def many_in_order(self) -> bool:
        """Whether its histogram may be smooth: many levels in order."""
        return self.ordered and self.levels is not None and len(self.levels) > MAX_LEVELS_ALONE

    @property
    def has_thresholds(self) -> bool:
        """Whether labels or values are published that some row has: this costs δ."""
        return self.finds_labels or self.finds_values

    @property
    def open_step(self) -> bool:
        """Whether the step is one of several, to be found from the rows."""
        several = len(self.steps) > (0 if self.column.storage.family == "real" else 1)
        return several and not (isinstance(self.declared, Discrete) and self.declared.step is not None)

    def values(self, values_of: ValuesOf) -> ColumnValues:
        """The column as numbers of its own width."""
        found = values_of(self.name)
        return ColumnValues(cast(found.values, self.column.storage.dtype), found.missing)

    def coordinate(self, *, alone: bool) -> UniformCoordinate:
        """What is public about the column of U: its number of levels, if the column is released by itself."""
        if self.levels is None or not alone:
            return UniformCoordinate(self.name)
        states = len(self.levels) + len(self.missing)
        return UniformCoordinate(self.name, np.full(states, 1 / states), missing=len(self.missing))

    def line(self, step: int) -> OrderedCodes:
        """The line, if values are taken as multiples of the step with this number."""
        lower, upper = self.column.value_range
        least, most = self._declared_ends
        lower = max((x for x in (lower, least) if x is not None), default=None)
        upper = min((x for x in (upper, most) if x is not None), default=None)
        if step < len(self.steps):
            whole, per_unit, _ = self.steps[step]
            return GridCodes.of(self.column.storage.dtype, whole, per_unit, lower, upper)
        return FloatBitCodes.of(self.column.storage.dtype, lower, upper)

    @property
    def _declared_ends(self) -> tuple[float | None, float | None]:
        """The smallest and the largest value that is declared, in ticks for times."""
        declared = self.declared
        if isinstance(declared, Datetime):
            return bounds_in_ticks(
                self.name, declared, self.column.storage.tick_ns, self.column.times, self.column.zone
            )
        return (declared.lower, declared.upper) if isinstance(declared, _BOUNDED) else (None, None)

    def kind(self, step: int) -> Kind:
        """What the column is taken as, then; the caller knows the labels."""
        storage = self.column.storage
        if storage.family in ("label", "boolean"):
            return self.declared or Categorical()
        if self.declared is not None and not isinstance(self.declared, Datetime):
            return self.declared
        if step < len(self.steps):
            name = self.steps[step][2]
            if isinstance(self.declared, Datetime):
                return replace(self.declared, resolution=name)
            return Datetime(name) if storage.family == "temporal" else Discrete(step=name)
        return Continuous()

    def cuts(self, line: OrderedCodes, resolution: int) -> Codes:
        """Codes at which bins start in any case, beside octaves: a histogram of more bins costs no more.

        Bins start at round numbers, at which people round as well: the more, the higher the resolution. Up to 16 steps
        stand alone, and so do declared atoms. Durations are cut at round numbers of steps.
        """
        unit = line.whole if isinstance(line, GridCodes) and self.column.storage.family == "temporal" else 1
        cuts: list[Codes] = [line.octaves.starts, around_zero(line, round_numbers(resolution) * unit)]
        if isinstance(line, GridCodes):
            cuts.append(np.arange(max(line.first, -MAX_ALONE), min(line.last, MAX_ALONE) + 1))
        cuts.append(around(line, self.atoms))
        if self.boundaries:
            cuts.append(around(line, cast(np.array(self.boundaries), line.dtype)))
        return np.unique(np.concatenate(cuts))

    def step_classes(self, cells: ColumnValues) -> NDArray[np.int64]:
        """How many values are multiples of each step but of no coarser one; the last number counts all others."""
        counts = np.zeros(len(self.steps) + 1, dtype=np.int64)
        wholes = np.array([whole for whole, _, _ in self.steps], dtype=np.int64)
        per_units = np.array([per_unit for _, per_unit, _ in self.steps], dtype=np.int64)
        if cells.values.dtype.kind == "f":
            count_real_steps(cells.present.astype(np.float64), wholes, per_units, counts)
        else:
            count_whole_steps(cells.present.astype(np.int64), wholes, counts)
        return counts


def around(line: OrderedCodes, values: NDArray[Any]) -> Codes:
    """Codes that give each of these values a bin of its own."""
    codes = np.unique(line.to_codes(values))
    return np.union1d(codes, codes[codes < line.last] + 1)


def around_zero(line: OrderedCodes, magnitudes: FloatArray) -> Codes:
    """Codes at which bins start that end at these magnitudes on both sides of zero: [a, b) above it, (-b, -a] below."""
    inside = magnitudes[
        magnitudes <= float(np.finfo(line.dtype).max if line.dtype.kind == "f" else np.iinfo(line.dtype).max)
    ]
    above, below = line.to_codes(cast(inside, line.dtype)), line.to_codes(cast(-inside, line.dtype))
    codes = np.union1d(above, below[below < line.last] + 1)
    return codes[(codes > line.first) & (codes <= line.last)]


def round_numbers(resolution: int) -> FloatArray:
    """Numbers of few digits and ordinary magnitude; about three times `resolution` in a decade."""
    digits = next((digits for most, digits in SIGNIFICANDS if resolution <= most), SIGNIFICANDS[-1][1])
    return np.array([float(f"{digit}e{power}") for power in range(*POWERS_OF_TEN) for digit in digits])


def check_column(column: NumericColumn, declared: Kind | None) -> None:
    """Refuse a declared kind that does not suit the column's type, or that cannot be learned."""
    if declared is not None:
        check_family(column.name, declared, column.storage, given=False)
    if isinstance(declared, Datetime):
        bounds_in_ticks(column.name, declared, column.storage.tick_ns, column.times, column.zone)
    if isinstance(declared, Categorical) and declared.encoding == "onehot":
        raise SchemaError(
            f"column {column.name!r} is declared with dummy variables, which the private reference does not use.",
            'Leave encoding="onehot" out, or use another reference.',
            command="Leave encoding out of its section of the schema, or use another --reference.",
        )


def domain_of(column: NumericColumn, declared: Kind | None, finds_values: bool = False) -> Domain:
    """The domain of a column, by public facts alone.

    Parameters
    ----------
    finds_values
        Whether frequent exact values of numbers are to be found; labels are, where none are given.
    """
    check_column(column, declared)
    storage = column.storage
    if storage.family == "label" and column.n_labels is None:
        return Domain(column, declared, ordered=False, finds_labels=True)
    if storage.family == "label":
        levels = np.arange(max(1, column.n_labels or 0), dtype=storage.dtype)
        return Domain(column, declared, levels, ordered=False)
    if storage.family == "boolean":
        return Domain(column, declared, np.array([0, 1], dtype=storage.dtype), ordered=False)
    if isinstance(declared, Categorical | Discrete) and declared.levels is not None:
        levels = np.unique(stored_levels(column.name, declared.levels, storage))
        return Domain(column, declared, levels, ordered=isinstance(declared, Discrete))
    if isinstance(declared, Discrete) and (multiples := declared.multiples()) is not None:
        return Domain(column, declared, np.unique(stored_levels(column.name, multiples, storage)))
    domain = Domain(column, declared, steps=_steps(column, declared))
    return replace(domain, finds_values=finds_values and not len(domain.atoms) and domain.calendar is None)


def _steps(column: NumericColumn, declared: Kind | None) -> tuple[Step, ...]:
    """The steps to choose from: one where it is declared or follows from the type, several where it does not."""
    storage = column.storage
    if isinstance(declared, Discrete) and declared.step is not None:
        return ((*(lattice(declared.step) or (1, 1)), declared.step),)
    if storage.family == "temporal":
        resolution = declared.resolution if isinstance(declared, Datetime) else None
        names = [resolution] if resolution is not None else list(RESOLUTIONS)
        coarser = [(ticks_in(name, storage.tick_ns), 1, name) for name in names]
        last = next((place for place, step in enumerate(coarser) if step[0] == 1), len(coarser) - 1)
        ends: tuple[int | None, int | None] = (None, None)
        if isinstance(declared, Datetime):
            ends = bounds_in_ticks(column.name, declared, storage.tick_ns, column.times, column.zone)
        return tuple(step for step in coarser[: last + 1] if has_multiple(*ends, step[0]))
    if storage.family == "integer":
        return ((1, 1, 1),)
    if isinstance(declared, Continuous | Mixed):
        return ()
    return tuple((1, 10**digits, 1 if digits == 0 else 1 / 10**digits) for digits in range(MAX_DECIMALS + 1))


@jit
def count_real_steps(
    values: FloatArray, wholes: NDArray[np.int64], per_units: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """counts[k] grows by the values whose first step is number k: that are equal to a whole number of these steps."""
    for i in range(len(values)):
        k = 0
        while k < len(wholes):
            multiple = np.rint(values[i] * per_units[k] / wholes[k])
            if abs(multiple) < 2.0**50 and multiple * wholes[k] / per_units[k] == values[i]:
                break
            k += 1
        counts[k] += 1


@jit
def count_whole_steps(values: NDArray[np.int64], wholes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """The same for whole numbers."""
    for i in range(len(values)):
        k = 0
        while k < len(wholes) and values[i] % wholes[k] != 0:
            k += 1
        counts[k] += 1
