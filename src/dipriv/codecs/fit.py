"""From a column's kind and its reference rows to its codec. Nothing here ever sees a row that is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, first_not_below
from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import ColumnValues, Storage
from dipriv._base.jit import jit
from dipriv.codecs.levels import LatticeCodec, LevelsCodec, nearest_index
from dipriv.codecs.missing import MissingCodec
from dipriv.codecs.one_hot import OneHotCodec
from dipriv.codecs.protocol import Codec
from dipriv.codecs.real import RealCodec
from dipriv.codecs.temporal import coarsest_resolution, ticks_in
from dipriv.errors import ReferenceDataError, SchemaError
from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Kind, Level, Mixed, lattice

MAX_LEVELS = 256
"""The most distinct values of a column that is taken as one of levels without being declared so."""
ROWS_PER_LEVEL = 5
"""Such a column has at least this many rows for each of its levels."""
MAX_DECIMALS = 4
"""The most decimals of a step that is inferred."""
ATOM_SHARE = 1e-3
"""A value is an atom if it has at least this share of the rows."""
SAMPLE = 1 << 16
"""Larger columns are judged by about this many rows first."""
MAX_SHARE = 0.05
"""The largest share of one value in a column that is declared continuous."""


def kind_of_type(storage: Storage) -> Kind | None:
    """What the type of a column alone says; nothing of real numbers, which may have any step, atoms or neither.

    >>> kind_of_type(Storage("integer", np.dtype(np.int64), "int64"))
    Discrete(step=1)
    """
    if storage.family in ("label", "boolean"):
        return Categorical()
    if storage.family == "temporal":
        return Datetime("day" if ticks_in("day", storage.tick_ns) == 1 else None)
    return Discrete(step=1) if storage.family == "integer" else None


def infer_kind(storage: Storage, cells: ColumnValues) -> Kind:
    """The kind of an undeclared column, judged by its type and by these (reference) rows.

    One value, or few values that are each met often: Discrete on these levels. Else whole numbers, or numbers
    with up to four decimals: Discrete with that step. Else, if some values make up 0.1% or more of the rows: Mixed.
    """
    if storage.family in ("label", "boolean"):
        return Categorical()
    z = cells.present
    levels = few_levels(z)
    if storage.family == "temporal":
        return Datetime() if levels is not None else Datetime(coarsest_resolution(z, storage.tick_ns))
    if levels is not None:
        return Discrete(levels=tuple(levels.tolist()))
    step = common_step(z)
    if step is not None:
        return Discrete(step=step)
    atoms = _atoms(z)
    return Mixed(atoms=tuple(atoms.tolist())) if len(atoms) else Continuous()


def _atoms(z: NDArray[Any]) -> NDArray[Any]:
    """The values that make up 0.1% or more of the rows, and are met three times; none if no sample meets one twice."""
    sample = z[:: 1 + len(z) // SAMPLE]
    if len(np.unique(sample)) == len(sample):
        return z[:0]
    values, counts = np.unique(z, return_counts=True)
    return values[counts >= max(3.0, ATOM_SHARE * len(z))]


def few_levels(z: NDArray[Any]) -> NDArray[Any] | None:
    """The distinct values where there is one, or where they are few and each is met often; else None."""
    found = np.empty(MAX_LEVELS, dtype=z.dtype)
    count = gather_levels(z[:: 1 + len(z) // SAMPLE], found, 0)  # nearly all of them, from a sample
    count = gather_levels(z, found, count) if count else 0
    few = count == 1 < len(z) or 0 < count * ROWS_PER_LEVEL <= len(z)
    return found[:count].copy() if few else None


@jit
def gather_levels(z: NDArray[Any], levels: NDArray[Any], count: int) -> int:
    """Add to `count` sorted levels the other values, and say how many there are; 0 where they are more than fit."""
    for i in range(len(z)):
        low = first_not_below(z[i], levels, count)
        if low < count and levels[low] == z[i]:
            continue
        if count == len(levels):
            return 0
        for place in range(count, low, -1):
            levels[place] = levels[place - 1]
        levels[low] = z[i]
        count += 1
    return count


def common_step(z: NDArray[Any]) -> int | float | None:
    """The largest step that all values are multiples of: of whole numbers, or of numbers with up to four decimals."""
    if z.dtype.kind in "iu":
        return max(1, min(int(np.gcd.reduce(z)), 2**53 - 1)) if z.min() > np.iinfo(z.dtype).min else 1
    some = z[:1000].astype(np.float64)
    for digits in range(MAX_DECIMALS + 1):
        if np.max(np.abs(some)) >= 2**50 / 10**digits or np.any(np.round(some, digits) != some):
            continue  # a look at the first values spares the others
        reals = z.astype(np.float64)
        if np.max(np.abs(reals)) < 2**50 / 10**digits and np.all(np.round(reals, digits) == reals):
            whole = max(1, int(np.gcd.reduce(np.rint(reals * 10**digits).astype(np.int64))))
            return whole if digits == 0 else whole / 10**digits
    return None


def fit_codec(name: str, kind: Kind, storage: Storage, levels: int | None, reference: ColumnValues | None) -> Codec:
    """The codec of column `name`: what `kind` leaves open comes from the reference cells.

    `levels` is the number of labels where the cells are codes of labels; `reference` is None where a distribution is
    given and no rows are read.
    """
    check_family(name, kind, storage, given=reference is None)
    if isinstance(kind, Categorical) and kind.encoding == "onehot":
        return OneHotCodec(_levels(name, kind, storage, levels, reference), _kinds_missing(reference))
    codec = _fit_present(name, kind, storage, levels, reference)
    missing = _kinds_missing(reference)
    if reference is None or not missing:
        return codec
    if isinstance(codec, LevelsCodec):
        return replace(codec, missing=missing)
    low = codec.lower[0]
    seen = reference.present.astype(np.float64) * codec.scale if isinstance(codec, RealCodec) else np.ones(1)
    # a narrow interval: the box between the nulls and the lowest value belongs to that value
    return MissingCodec(codec, missing, low, _power_of_two(max(_typical(seen) * 2.0**-10, abs(low) * 2.0**-30)))


def _fit_present(name: str, kind: Kind, storage: Storage, levels: int | None, reference: ColumnValues | None) -> Codec:
    z = None if reference is None else reference.present
    if isinstance(kind, Discrete) and z is not None:
        _check_within(name, z, *_ends(kind))
    if isinstance(kind, Categorical) or (isinstance(kind, Discrete) and kind.step is None):
        support = _levels(name, kind, storage, levels, reference)
        # a level between the boxes of two reference rows would be released although no reference row has it
        return LevelsCodec(support if z is None else support[_met(support, z)])
    if isinstance(kind, Discrete):
        whole, per_unit = lattice(kind.step or 1) or (1, 1)
        return _fit_lattice(name, kind, z, whole, per_unit, storage.dtype)
    if isinstance(kind, Datetime):
        if z is None:
            raise SchemaError(
                f"column {name!r} is declared Datetime, but its distribution is given.", "Leave the kind out."
            )
        values = few_levels(z)
        if kind.resolution is None and values is not None:
            return LevelsCodec(values)
        whole = ticks_in(kind.resolution or coarsest_resolution(z, storage.tick_ns), storage.tick_ns)
        return _fit_lattice(name, kind, z, whole, 1, storage.dtype)
    return _fit_real(name, kind, storage, z)


def _ends(kind: Continuous | Mixed | Discrete) -> tuple[float, float]:
    return -np.inf if kind.lower is None else float(kind.lower), np.inf if kind.upper is None else float(kind.upper)


def _check_within(name: str, z: NDArray[Any], low: float, high: float) -> None:
    if z.min() < low or z.max() > high:
        raise SchemaError(
            f"column {name!r}: reference rows lie outside the declared bounds [{low:g}, {high:g}].",
            "Widen the bounds, or correct the rows.",
        )


def _fit_real(name: str, kind: Continuous | Mixed, storage: Storage, z: FloatArray | None) -> RealCodec:
    low, high = _ends(kind)
    atoms = np.array(kind.atoms or (), dtype=np.float64) if isinstance(kind, Mixed) else np.empty(0)
    if z is None:
        unit = kind.unit if isinstance(kind, Mixed) else None
        return RealCodec(AtomsLine.around(atoms, unit or 1.0), storage.dtype, low, high)
    z = z.astype(np.float64)
    _check_within(name, z, low, high)
    if isinstance(kind, Mixed) and kind.atoms is None:
        values, counts = np.unique(z, return_counts=True)
        atoms = values[counts >= max(2.0, ATOM_SHARE * len(z))]
    if not len(atoms) and z.min() == z.max():
        raise ReferenceDataError(
            f"column {name!r} is declared {kind!r}, but the {len(z)} reference rows hold one distinct value.",
            "Hold out more rows, or declare the column Discrete.",
        )
    if isinstance(kind, Continuous) and _largest_share(z) > MAX_SHARE:
        raise SchemaError(
            f"column {name!r} is declared {kind!r}, but one value makes up over {MAX_SHARE:.0%} of the "
            f"{len(z)} reference rows.",
            "Declare it Mixed, with that value as an atom, or Discrete.",
        )
    scale = 2.0**-64 if max(np.max(np.abs(z)), np.max(np.abs(atoms), initial=0.0)) > 2.0**960 else 1.0
    unit = _power_of_two(_typical((z if not len(atoms) else z[~np.isin(z, atoms)]) * scale))
    return RealCodec(AtomsLine.around(atoms * scale, unit), storage.dtype, low, high, _floor(z, atoms), scale)


def _floor(z: FloatArray, atoms: FloatArray) -> float:
    """A unit-free low end: a lowest atom, else one mean gap below the minimum and not across zero."""
    smallest = float(z.min())
    if len(atoms) and atoms.min() <= smallest:
        return float(atoms.min())
    gap = (float(z.max()) / len(z) - smallest / len(z)) or abs(smallest) * 2.0**-10 or 1.0
    return max(0.0 if smallest >= 0 else float(np.finfo(np.float64).min), smallest - gap)


def _typical(z: FloatArray) -> float:
    """The median size, of a sample where there are very many."""
    return float(np.median(np.abs(z[:: 1 + len(z) // SAMPLE]))) if len(z) else 1.0


def _levels(
    name: str, kind: Categorical | Discrete, storage: Storage, levels: int | None, reference: ColumnValues | None
) -> np.ndarray:
    if levels is not None:
        return np.arange(levels, dtype=storage.dtype)
    z = None if reference is None else reference.present
    if storage.family == "boolean" and kind.levels is None:
        return np.array([0, 1], dtype=storage.dtype)
    if kind.levels is None:
        if z is None:
            raise SchemaError(
                f"column {name!r}: no levels are declared and no rows may be read.", "Declare its levels."
            )
        distinct = few_levels(z)
        return np.unique(z) if distinct is None else distinct
    stored = stored_levels(name, kind.levels, storage)
    if z is not None and not _all_among(z, np.unique(stored)):
        raise SchemaError(
            f"column {name!r}: reference rows hold values outside its {len(stored)} declared levels.",
            "Complete the levels, or correct the rows.",
        )
    return np.unique(stored)


def stored_levels(name: str, levels: Sequence[Level], storage: Storage) -> NDArray[Any]:
    """Declared levels as the column stores them."""
    stored = _stored(levels, storage.dtype)
    if stored is None:
        raise SchemaError(
            f"column {name!r}: some declared levels cannot be stored as {storage.label}.", "Correct the levels."
        )
    return stored


def _stored(levels: Sequence[Level], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Levels as `dtype`; None where one of them is a text or does not fit."""
    numbers = [level for level in levels if not isinstance(level, str)]
    if len(numbers) < len(levels):
        return None
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        fits = all(info.min <= n <= info.max and n == int(n) for n in numbers)
        return np.array([int(n) for n in numbers], dtype) if fits else None
    most = float(np.finfo(dtype).max)
    if not all(-most <= n <= most for n in numbers):
        return None
    reals = np.array(numbers, dtype=np.float64)
    stored = reals.astype(dtype)
    return stored if np.allclose(stored, reals, rtol=1e-6, atol=0) else None


def _fit_lattice(
    name: str, kind: Kind, z: np.ndarray | None, whole: int, per_unit: int, dtype: np.dtype[Any]
) -> LatticeCodec:
    if z is None:
        return LatticeCodec(whole, per_unit, dtype)
    between = z % whole if z.dtype.kind in "iu" else nearest_index(z.astype(np.float64), whole, per_unit)[1]
    if np.any(between):
        raise SchemaError(
            f"column {name!r} is declared {kind!r}, but some reference rows lie between its steps.",
            "Use a finer step or resolution, or leave it out.",
        )
    if z.dtype.kind in "iu":
        first, last = int(z.min()) // whole, int(z.max()) // whole
        origin = first if max(abs(first), abs(last)) > 2**51 else 0
        return LatticeCodec(whole, per_unit, dtype, float(first - origin) - 1.0, origin)
    index, _ = nearest_index(z.min(keepdims=True).astype(np.float64), whole, per_unit)
    return LatticeCodec(whole, per_unit, dtype, float(index[0]) - 1.0)


def _largest_share(z: FloatArray) -> float:
    """The share that the most frequent value has of the rows, or of a sample of very many; 0 if met but a few times."""
    sample = z[:: 1 + len(z) // SAMPLE]
    most = int(np.unique(sample, return_counts=True)[1].max())
    return most / len(sample) if most >= ROWS_PER_LEVEL else 0.0


def _all_among(z: NDArray[Any], levels: NDArray[Any]) -> bool:
    """Whether every value is one of the sorted levels."""
    room = np.concatenate([levels, levels[:1]])
    return gather_levels(z, room, len(levels)) == len(levels)


def _met(support: NDArray[Any], z: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the sorted levels occur among the values."""
    seen = np.zeros(len(support), dtype=np.bool_)
    mark_levels(z, support, seen)
    return seen


@jit
def mark_levels(z: NDArray[Any], levels: NDArray[Any], seen: NDArray[np.bool_]) -> None:
    """Mark the sorted levels that occur, until all do."""
    left = len(levels)
    for i in range(len(z)):
        place = first_not_below(z[i], levels, len(levels))
        if place < len(levels) and levels[place] == z[i] and not seen[place]:
            seen[place] = True
            left -= 1
            if left == 0:
                return


def _kinds_missing(reference: ColumnValues | None) -> tuple[int, ...]:
    return () if reference is None else reference.kinds_missing


def _power_of_two(x: float) -> float:
    return float(np.exp2(np.ceil(np.log2(x)))) if np.isfinite(x) and x > 0 else 1.0


def check_family(name: str, kind: Kind, storage: Storage, given: bool) -> None:
    """A kind must suit the column's type; `given`: it follows from a given distribution."""
    numeric = storage.family in ("integer", "real", "temporal") or (storage.family == "boolean" and given)
    if isinstance(kind, (Continuous, Discrete, Mixed)) and not numeric:
        raise SchemaError(
            f"column {name!r} is declared {kind!r} but holds {storage.label}.",
            "Declare it Categorical, or leave it out.",
        )
    if isinstance(kind, Datetime) and storage.family != "temporal":
        raise SchemaError(
            f"column {name!r} is declared {kind!r} but holds {storage.label}.",
            "Convert it to a date or time type first, or declare another kind.",
        )
    if isinstance(kind, Categorical) and storage.family == "temporal":
        raise SchemaError(
            f"column {name!r} is declared {kind!r} but holds {storage.label}.", "Declare it Datetime, or leave it out."
        )
    if isinstance(kind, Discrete) and kind.step is not None and storage.dtype.kind in "iu":
        most = int(np.iinfo(storage.dtype).max)
        if not 1 <= kind.step <= most or kind.step != int(kind.step):
            raise SchemaError(
                f"column {name!r} is declared {kind!r} but holds {storage.label}.",
                f"Use a whole step from 1 to {most} for whole numbers.",
            )
