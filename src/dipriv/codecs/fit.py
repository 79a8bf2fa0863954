"""From a column's kind and its reference rows to its codec. Nothing here ever sees a row that is released."""

from __future__ import annotations

import numpy as np

from dipriv.codecs.categorical import OneHotCodec
from dipriv.codecs.discrete import LatticeCodec, LevelsCodec, nearest_index
from dipriv.codecs.mixed import MixedLine, RealCodec
from dipriv.codecs.nulls import NullsCodec
from dipriv.codecs.protocol import Cells, Codec
from dipriv.codecs.temporal import coarsest_resolution, ticks_in
from dipriv.errors import ReferenceRowsError, SchemaError
from dipriv.randomness import FloatArray
from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Kind, Mixed, Storage, lattice

MOST_LEVELS = 256
ROWS_PER_LEVEL = 5
MOST_DECIMALS = 4
ATOM_SHARE = 1e-3


def infer_kind(storage: Storage, cells: Cells) -> Kind:
    """The kind of an undeclared column, judged by its type and by these (reference) rows.

    One value, or few values that are each met often: Discrete on these levels. Else whole numbers, or numbers
    with up to four decimals: Discrete with that step. Else, if some values make up 0.1% or more of the rows: Mixed.
    """
    if storage.family in ("label", "boolean"):
        return Categorical()
    z = cells.present
    if storage.family == "temporal":
        return Datetime(resolution=coarsest_resolution(z, storage.tick_ns))
    values, counts = np.unique(z, return_counts=True)
    if len(values) == 1 < len(z):
        return Discrete(levels=tuple(values.tolist()))
    if len(values) <= MOST_LEVELS and len(values) * ROWS_PER_LEVEL <= len(z):
        return Discrete(levels=tuple(values.tolist()))
    if storage.family == "integer":
        return Discrete(step=1)
    for digits in range(MOST_DECIMALS + 1):
        reals = values.astype(np.float64)
        if np.max(np.abs(reals)) * 10**digits < 2**50 and np.all(np.round(reals, digits) == reals):
            return Discrete(step=1 if digits == 0 else 1 / 10**digits)
    atoms = values[counts >= max(3.0, ATOM_SHARE * len(z))]
    return Mixed(atoms=tuple(atoms.tolist())) if len(atoms) else Continuous()


def fit_codec(name: str, kind: Kind, storage: Storage, levels: int | None, reference: Cells | None) -> Codec:
    """The codec of column `name`: what `kind` leaves open comes from the reference cells.

    `levels` is the number of labels where the cells are codes of labels; `reference` is None where a law is
    given and no rows are read.
    """
    _check_family(name, kind, storage)
    if isinstance(kind, Categorical) and kind.encoding == "onehot":
        return OneHotCodec(_levels(name, kind, storage, levels, reference), _kinds_missing(reference))
    codec = _fit_present(name, kind, storage, levels, reference)
    missing = _kinds_missing(reference)
    if reference is None or not missing:
        return codec
    low = codec.lower[0]
    scale = _scale(reference.present) if isinstance(codec, RealCodec) else 1.0
    return NullsCodec(codec, missing, low, _power_of_two(max(scale, abs(low) * 2.0**-20)))


def _fit_present(name: str, kind: Kind, storage: Storage, levels: int | None, reference: Cells | None) -> Codec:
    z = None if reference is None else reference.present
    if isinstance(kind, Categorical) or (isinstance(kind, Discrete) and kind.step is None):
        return LevelsCodec(_levels(name, kind, storage, levels, reference))
    if isinstance(kind, Discrete):
        whole, per_unit = lattice(kind.step or 1) or (1, 1)
        return LatticeCodec(whole, per_unit, storage.dtype, _lattice_low(z, whole, per_unit))
    if isinstance(kind, Datetime):
        if z is None:
            raise SchemaError(f"column {name!r} is declared Datetime, but its law is given.", "Leave the kind out.")
        whole = ticks_in(kind.resolution or coarsest_resolution(z, storage.tick_ns), storage.tick_ns)
        return LatticeCodec(whole, 1, storage.dtype, _lattice_low(z, whole, 1))
    return _fit_real(name, kind, storage, z)


def _fit_real(name: str, kind: Continuous | Mixed, storage: Storage, z: FloatArray | None) -> RealCodec:
    low = -np.inf if kind.lower is None else float(kind.lower)
    high = np.inf if kind.upper is None else float(kind.upper)
    atoms = np.array(kind.atoms or (), dtype=np.float64) if isinstance(kind, Mixed) else np.empty(0)
    if z is None:
        return RealCodec(MixedLine.around(atoms), storage.dtype, low, high)
    z = z.astype(np.float64)
    if z.min() < low or z.max() > high:
        raise SchemaError(
            f"column {name!r}: reference rows lie outside the declared bounds [{low:g}, {high:g}].",
            "Widen the bounds, or correct the rows.",
        )
    if isinstance(kind, Mixed) and kind.atoms is None:
        values, counts = np.unique(z, return_counts=True)
        atoms = values[counts >= max(2.0, ATOM_SHARE * len(z))]
    if not len(atoms) and z.min() == z.max():
        raise ReferenceRowsError(
            f"column {name!r} is declared {kind!r}, but the {len(z)} reference rows hold one distinct value.",
            "Hold out more rows, or declare the column Discrete.",
        )
    unit = _power_of_two(_scale(z[~np.isin(z, atoms)]))
    return RealCodec(MixedLine.around(atoms, unit), storage.dtype, low, high, _floor(z, atoms))


def _floor(z: FloatArray, atoms: FloatArray) -> float:
    """A unit-free low end: a lowest atom, else one mean gap below the minimum and not across zero."""
    smallest = float(z.min())
    if len(atoms) and atoms.min() <= smallest:
        return float(atoms.min())
    gap = (float(z.max()) / len(z) - smallest / len(z)) or abs(smallest) * 2.0**-10 or 1.0
    return max(0.0, smallest - gap) if smallest >= 0 else smallest - gap


def _scale(z: FloatArray) -> float:
    return float(np.median(np.abs(z))) if len(z) else 1.0


def _levels(
    name: str, kind: Categorical | Discrete, storage: Storage, levels: int | None, reference: Cells | None
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
        return np.unique(z)
    declared = np.array(kind.levels)
    stored = declared.astype(storage.dtype) if declared.dtype.kind in "biuf" else np.empty(0)
    if stored.shape != declared.shape or not np.allclose(
        stored.astype(np.float64), declared.astype(np.float64), rtol=1e-6, atol=0
    ):
        raise SchemaError(
            f"column {name!r}: some declared levels cannot be stored as {storage.label}.", "Correct the levels."
        )
    if z is not None and not np.all(np.isin(z, stored)):
        raise SchemaError(
            f"column {name!r}: reference rows hold values outside its {len(stored)} declared levels.",
            "Complete the levels, or correct the rows.",
        )
    return np.sort(stored)


def _lattice_low(z: np.ndarray | None, whole: int, per_unit: int) -> float:
    if z is None:
        return -np.inf
    if z.dtype.kind in "iu":
        return float(z.min() // whole) - 1.0
    return float(nearest_index(z.min(keepdims=True).astype(np.float64), whole, per_unit)[0][0]) - 1.0


def _kinds_missing(reference: Cells | None) -> tuple[int, ...]:
    return () if reference is None else reference.kinds_missing


def _power_of_two(x: float) -> float:
    return float(np.exp2(np.ceil(np.log2(x)))) if np.isfinite(x) and x > 0 else 1.0


def _check_family(name: str, kind: Kind, storage: Storage) -> None:
    numeric = storage.family in ("integer", "real")
    if isinstance(kind, (Continuous, Discrete, Mixed)) and not numeric and storage.family != "temporal":
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
    if isinstance(kind, Discrete) and kind.step is not None and storage.family == "integer" and kind.step < 1:
        raise SchemaError(
            f"column {name!r} is declared {kind!r} but holds {storage.label}.", "Use a whole step for whole numbers."
        )
