"""What is public about each column: its line or its levels, by its type and the schema, and labels taken as public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._columns import NAN, NULL, ColumnValues, cast
from dipriv._jit import jit
from dipriv._tables.fitted_columns import declared_labels
from dipriv._tables.frames import Column, Table
from dipriv._tables.identifiers import refuse_free_text_labels
from dipriv.codecs.fit import check_family, stored_levels
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, GridCodes, OrderedCodes
from dipriv.codecs.temporal import ticks_in
from dipriv.errors import SchemaError
from dipriv.schema import RESOLUTIONS, Categorical, Continuous, Datetime, Discrete, Kind, Mixed, Schema, lattice
from dipriv.sources.protocol import CountableRows

MOST_DECIMALS = 4
NANOSECONDS_IN_YEAR = 31_557_600 * 10**9
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, in days since 1970: what calendars of most programs hold."""

Step = tuple[int, int, Any]
"""A candidate (whole, per_unit, what to call it) for the step that a column's values are multiples of."""


@dataclass(frozen=True, eq=False)
class Domain:
    """One column: listed `levels`, or a line of numbers with one of `steps` or, where there is none, of bits."""

    facts: Column
    declared: Kind | None
    labels: pa.Array | None = field(repr=False, default=None)
    levels: NDArray[Any] | None = field(repr=False, default=None)
    ordered: bool = True
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def missing(self) -> tuple[int, ...]:
        """The kinds of missing cells that the type allows."""
        null = (NULL,) if self.facts.nullable else ()
        return (*null, NAN) if self.facts.storage.family == "real" else null

    @property
    def bounded(self) -> frozenset[int]:
        """The sides of zero, -1 and 1, that end at a declared bound."""
        if not isinstance(self.declared, Continuous | Mixed):
            return frozenset()
        declared = {-1: self.declared.lower, 1: self.declared.upper}
        return frozenset(side for side, bound in declared.items() if bound is not None)

    @property
    def has_read_labels(self) -> bool:
        """Whether the labels were read from the rows, for lack of a declaration."""
        return self.labels is not None and declared_labels(self.facts, self.declared) is None

    @property
    def open_step(self) -> bool:
        """Whether the step is one of several, to be found from the rows."""
        several = len(self.steps) > (0 if self.facts.storage.family == "real" else 1)
        return several and not (isinstance(self.declared, Discrete) and self.declared.step is not None)

    def cells(self, table: Table) -> ColumnValues:
        """The column as numbers of its own width."""
        found = table.cells(self.name, self.labels)
        return ColumnValues(cast(found.values, self.facts.storage.dtype), found.missing)

    def line(self, step: int) -> OrderedCodes:
        """The line, if values are taken as multiples of the step with this number."""
        lower, upper = _range(self.facts.arrow_type)
        if isinstance(self.declared, Continuous | Mixed):
            lower = max((x for x in (lower, self.declared.lower) if x is not None), default=None)
            upper = min((x for x in (upper, self.declared.upper) if x is not None), default=None)
        if step < len(self.steps):
            whole, per_unit, _ = self.steps[step]
            return GridCodes.of(self.facts.storage.dtype, whole, per_unit, lower, upper)
        return FloatBitCodes.of(self.facts.storage.dtype, lower, upper)

    def kind(self, step: int) -> Kind:
        """What the column is taken as, then."""
        storage = self.facts.storage
        if self.labels is not None or storage.family == "boolean":
            return self.declared or Categorical(_plain(self.labels))
        if self.declared is not None and not isinstance(self.declared, Datetime):
            return self.declared
        if step < len(self.steps):
            name = self.steps[step][2]
            return Datetime(name) if storage.family == "temporal" else Discrete(step=name)
        return Continuous()

    def usual(self, line: OrderedCodes) -> float:
        """The exponent of a usual magnitude: about 2^4, and for times the years around 2000."""
        if self.facts.storage.family != "temporal" or not isinstance(line, GridCodes):
            return 4.0
        return math.log2(max(1.0, 30 * NANOSECONDS_IN_YEAR / (line.whole * self.facts.storage.tick_ns)))

    def cuts(self, line: OrderedCodes) -> Codes:
        """Codes at which cells start whatever the tree finds, beside octaves: counts of more cells cost no more ε.

        Up to 16 steps stand alone, octaves up to 128 steps, and for times those of one to a hundred years, are cut into
        several parts, so that ratings, ages and dates are told apart even where there is little ε. Atoms that a schema
        declares stand alone, too.
        """
        octaves = line.octaves
        ends = [*octaves.starts[1:].tolist(), line.last + 1]
        parts = np.ones(len(ends), dtype=np.int64)
        if isinstance(line, GridCodes) and self.facts.storage.family == "temporal":
            years = np.exp2(octaves.exponents) * line.whole * self.facts.storage.tick_ns / NANOSECONDS_IN_YEAR
            parts[(octaves.signs != 0) & (years >= 1) & (years < 128)] = 8
        elif isinstance(line, GridCodes):
            parts[(octaves.signs != 0) & (octaves.exponents < 7)] = 4
            parts[(octaves.signs != 0) & (octaves.exponents < 4)] = 8
        cuts = {
            int(octaves.starts[octave]) + (ends[octave] - int(octaves.starts[octave])) * part // int(parts[octave])
            for octave in np.flatnonzero(parts > 1)
            for part in range(1, int(parts[octave]))
        }
        if isinstance(self.declared, Mixed) and self.declared.atoms is not None:
            atoms = line.to_codes(np.array(self.declared.atoms, dtype=np.float64)).tolist()
            cuts |= {*atoms, *(atom + 1 for atom in atoms if atom < line.last)}
        return np.array(sorted(cuts), dtype=np.int64)

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


def domains(columns: Sequence[Column], schema: Schema, rows: CountableRows, *, strict: bool) -> list[Domain]:
    """The domains of all columns. Labels that nothing declares are read from the rows, and so taken as public."""
    found = [_domain(column, schema.get(column.name)) for column in columns]
    unlisted = [domain for domain in found if domain.facts.storage.family == "label" and domain.labels is None]
    if unlisted and strict:
        raise SchemaError(
            f"column {unlisted[0].name!r} has labels that are declared nowhere ({len(unlisted)} such columns), and "
            "strict refuses to read them from the rows.",
            "Declare them: Categorical(levels=...), or a categorical type; or drop the column.",
        )
    labels = rows.labels([domain.name for domain in unlisted]) if unlisted else {}
    for domain in unlisted:  # by the labels alone, which are taken as public
        refuse_free_text_labels(domain.facts, labels[domain.name], rows.n_rows)
    return [_labelled(domain, labels[domain.name]) if domain.name in labels else domain for domain in found]


def _domain(column: Column, declared: Kind | None) -> Domain:
    storage = column.storage
    if declared is not None:
        check_family(column.name, declared, storage, given=False)
    if isinstance(declared, Categorical) and declared.encoding == "onehot":
        raise SchemaError(
            f"column {column.name!r} is declared with dummies, which the private reference has no use for.",
            'Leave encoding="onehot" out, or use another reference.',
        )
    if storage.family == "label":
        labels = declared_labels(column, declared)
        return Domain(column, declared) if labels is None else _labelled(Domain(column, declared), labels)
    if storage.family == "boolean":
        return Domain(column, declared, levels=np.array([0, 1], dtype=storage.dtype), ordered=False)
    if isinstance(declared, Categorical | Discrete) and declared.levels is not None:
        levels = np.unique(stored_levels(column.name, declared.levels, storage))
        return Domain(column, declared, levels=levels, ordered=isinstance(declared, Discrete))
    return Domain(column, declared, steps=_steps(column, declared))


def _steps(column: Column, declared: Kind | None) -> tuple[Step, ...]:
    """The steps to choose from: one where it is declared or follows from the type, several where it does not."""
    storage = column.storage
    if isinstance(declared, Discrete) and declared.step is not None:
        return ((*(lattice(declared.step) or (1, 1)), declared.step),)
    if storage.family == "temporal":
        asked = declared.resolution if isinstance(declared, Datetime) else None
        names = [asked] if asked is not None else list(RESOLUTIONS)
        coarser = [(ticks_in(name, storage.tick_ns), 1, name) for name in names]
        last = next((place for place, step in enumerate(coarser) if step[0] == 1), len(coarser) - 1)
        return tuple(coarser[: last + 1])
    if storage.family == "integer":
        return ((1, 1, 1),)
    if isinstance(declared, Continuous | Mixed):
        return ()
    return tuple((1, 10**digits, 1 if digits == 0 else 1 / 10**digits) for digits in range(MOST_DECIMALS + 1))


def _range(arrow_type: pa.DataType) -> tuple[int | float | None, int | float | None]:
    """The smallest and largest value of a type, where that is less than its storage can hold: a public fact."""
    if pa.types.is_time(arrow_type):
        return 0, 86_400 * _PER_SECOND[arrow_type.unit] - 1
    if pa.types.is_date(arrow_type):
        return _FIRST_DAY, _LAST_DAY
    if pa.types.is_timestamp(arrow_type):
        ticks = 86_400 * _PER_SECOND[arrow_type.unit]
        return _FIRST_DAY * ticks, (_LAST_DAY + 1) * ticks - 1
    if pa.types.is_decimal(arrow_type):
        most = (10**arrow_type.precision - 1) / 10**arrow_type.scale
        return -most, most
    if pa.types.is_float16(arrow_type):
        return -65504.0, 65504.0
    return None, None


def _labelled(domain: Domain, labels: pa.Array) -> Domain:
    levels = np.arange(max(1, len(labels)), dtype=domain.facts.storage.dtype)
    return Domain(domain.facts, domain.declared, labels, levels, ordered=False)


def _plain(labels: pa.Array | None) -> tuple[Any, ...] | None:
    """The labels, where a schema can hold them."""
    listed = () if labels is None else tuple(labels.to_pylist())
    return listed if listed and all(isinstance(label, str | int | float) for label in listed) else None


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
