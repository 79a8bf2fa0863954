"""Privacy where the data is (appendix S3): a public reference is exported, and each owner privatizes its own record.

The same mechanism, row by row, with noise drawn where the record is: ε-local differential privacy (Definition S1). A
file may come from anybody: every mechanism that is loaded keeps the ε that it states; any other file is refused.

The guarantee is about any two records, and "no answer" would be an output, too. So every record has an answer: a value
that the column's type does not have is rounded or saturated (`any_values`), what cannot be converted is a missing cell,
and a missing cell that the reference has no atom for is a draw from the reference (`mechanism.fill_missing`). Which
columns there are is public: records with others are refused; of tables, others are not read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv import _serialization as state
from dipriv._base.atomic_write import write_atomic
from dipriv._base.registry import implementations
from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.any_values import array_of_any
from dipriv._tables.fitted_columns import FittedColumn
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.guarantee import (
    AssumptionKind,
    Guarantee,
    Model,
    Neighbouring,
    PrivacyUnit,
    UnitKind,
)
from dipriv.kernels import Kernel
from dipriv.references._models.independent import Independent
from dipriv.references.protocol import PortableReference
from dipriv.release.fitting import FittedMechanism
from dipriv.release.rules import Rewriting

FORMAT, FORMAT_WITH_RULES = 4, 5
_READ_FORMATS = (2, 3, 4, 5)
_FORMER_FIELDS = ("nulls_have_mass", "holds_infinities", "clips_infinities")
"""In formats 2 and 3: which cells were refused. None is."""
_TYPES: dict[str, type] = {
    "columns": tuple,
    "reference": PortableReference,
    "kernel": Kernel,
    "order": tuple,
    "declared": tuple,
    "guarantee": Guarantee,
}


@dataclass(frozen=True, eq=False)
class LocalReference:
    """A loaded public reference, ready to privatize records; `load_local` reads one.

    Attributes
    ----------
    guarantee : ε-local differential privacy of each record.
    seed : None for secure randomness; a seed is for experiments and voids the guarantee.
    """

    fitted: FittedMechanism = field(repr=False)
    guarantee: Guarantee
    seed: Seed = None

    def privatize(self, record: Any) -> Any:
        """Release one record or a table of records.

        Parameters
        ----------
        record : {column: value} for columns of the reference; or a table as `dipriv.privatize` takes it. Every value
            has an answer: numbers and times beyond the column's type are its ends, text is read as in a file, what is
            no number, time, truth value or text, as the column asks for, is a missing value, and so is a column that is
            left out. Missing values are released as draws from the reference where it has no missing values itself.

        Returns
        -------
        The released record or records, in the form that was given. A table has the types of the reference: its own, if
        it has one row, follow from the values.

        Raises
        ------
        InputError, ReferenceDataError : a record has a column that the reference has not, or a table lacks one. No
            value and no type is refused; further columns of a table are not read.
        """
        bits = source(self.seed)
        types = self.fitted.types
        if isinstance(record, np.ndarray):
            found = self.fitted.release(tables.read(self._of_array(record)), (), bits)
            return np.column_stack([found.column(name).to_numpy() for name in found.column_names])
        if not isinstance(record, dict):
            table = tables.read(record)
            found = self.fitted.release(tables.read(self.fitted.converted(table)), (), bits)
            return tables.like_table(found, types, table)
        found = self.fitted.release(tables.read(self._table(record)), (), bits)
        released: dict[str, Any] = found.to_pylist()[0]
        return released

    def _of_array(self, array: NDArray[Any]) -> pa.Table:
        """The columns of an array, of any type: that of one record follows from its values."""
        names = tuple(f"x{number}" for number in range(array.shape[1])) if array.ndim == 2 else ()
        if not names or names != self.fitted.names:
            raise InputError(
                f"the array has the shape {array.shape}, and the reference the columns {', '.join(self.fitted.names)}.",
                "Pass records x columns as `fit` had them, or a dataframe that names them.",
            )
        types = self.fitted.types
        return self.fitted.as_learned({name: array_of_any([*array[:, i]], types[name]) for i, name in enumerate(names)})

    def _table(self, record: dict[str, Any]) -> pa.Table:
        names = self.fitted.names
        if others := set(record) - set(names):
            raise InputError(
                f"the record has {len(others)} columns that the reference does not have.",
                f"Give none but these: {', '.join(map(repr, names))}.",
            )
        columns = self.fitted.facts
        return self.fitted.as_learned(
            {column.name: array_of_any([record.get(column.name)], column.arrow_type) for column in columns}
        )


def save(path: str | Path, fitted: FittedMechanism, guarantee: Guarantee) -> None:
    """Write a public reference. The caller has made sure that it is public."""
    content = {
        "format": FORMAT,
        "columns": fitted.columns,
        "reference": fitted.reference,
        "kernel": fitted.kernel,
        "order": fitted.order,
        "declared": fitted.declared,
        "guarantee": guarantee,
    }
    if fitted.rewriting is not None:
        content |= {"format": FORMAT_WITH_RULES, "rewriting": fitted.rewriting}
    write_atomic(Path(path), state.dump(content))


def load_local(path: str | Path, seed: Seed = None, *, largest: int = state.MAX_BYTES) -> LocalReference:
    """Read a reference that `DIP.export_local` wrote.

    The file is data, never code, and is checked in full before it is used. The guarantee follows from the kernel in the
    file; whether the reference suits the records does not, so take files from those whom you trust to know the
    distribution.

    Parameters
    ----------
    path : of the file.
    seed : leave out for secure randomness; a seed is for experiments and voids the guarantee.
    largest : how many bytes the file may unpack to.

    Returns
    -------
    LocalReference : ready to privatize records.

    Raises
    ------
    InputError : there is no such file, it is too large, or not one that dipriv exported.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file.", "Check the path.")
    if path.stat().st_size > largest:
        raise InputError(f"{path.name} has more than {largest:,} bytes.", "Load it with a larger limit, largest=...")
    return read(path.read_bytes(), seed, largest=largest)


def read(data: bytes, seed: Seed = None, *, largest: int = state.MAX_BYTES) -> LocalReference:
    """The same from the bytes of a file."""
    content = state.load(data, largest)
    try:
        if (written := content.pop("format")) not in _READ_FORMATS or type(written) is not int:
            raise InputError(
                f"the file has format {written!r:.20}, and this version of dipriv reads 2 to {FORMAT_WITH_RULES}.",
                "Export it again, with the same version of dipriv.",
            )
        if written < FORMAT:
            content = {name: part for name, part in content.items() if name not in _FORMER_FIELDS}
        types = _TYPES | ({"rewriting": Rewriting} if written == FORMAT_WITH_RULES else {})
        if content.keys() != types.keys() or not all(_is_a(content[name], of) for name, of in types.items()):
            raise _not_ours()
        guarantee = replace(content.pop("guarantee"), secure_randomness=seed is None)
        fitted = FittedMechanism(**content)
        _check_parts(fitted)
        _check_guarantee(guarantee, fitted.kernel.epsilon)
        return LocalReference(fitted, guarantee, seed)
    except DiprivError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _not_ours() from None


def _is_a(part: Any, of: type) -> bool:
    """Whether a part of the file is of a type, or of a class that registered as one."""
    return isinstance(part, implementations(of) or of)


def _check_parts(fitted: FittedMechanism) -> None:
    """Each part has checked itself; here, that they belong together."""
    columns, reference = fitted.columns, fitted.reference
    names = [column.name for column in columns if isinstance(column, FittedColumn)]
    width = len(fitted.order)
    of_v = [getattr(column.codec, "states", None) for column in columns for _ in range(column.codec.dims)]
    fits = reference.accepts([of_v[position] for position in fitted.order])
    if isinstance(reference, Independent):  # whose columns are released one by one, without an order
        fits = fits and width == len(columns) and fitted.order == tuple(range(width))
    if fitted.rewriting is not None and not fitted.rewriting.learns([column.facts for column in columns]):
        raise InputError("the rules of the file do not fit its columns.", "Export it again.")
    numbered = all(type(position) is int for position in fitted.order)  # True and False would select columns, too
    if not fits or not numbered or len(set(names)) < max(1, len(columns)) or not set(fitted.declared) <= set(names):
        raise InputError(
            "the columns, the reference and the kernel of the file do not fit together.", "Export it again."
        )


def _check_guarantee(guarantee: Guarantee, spent: float) -> None:
    """No less ε than the kernel spends, for any two records, and nothing that dipriv does not write."""
    if not spent <= guarantee.epsilon:
        raise InputError("the file's kernel spends more than its guarantee says.", "Export it again.")
    is_local = (
        guarantee.model is Model.LOCAL
        and guarantee.unit == PrivacyUnit(UnitKind.RECORD)
        and guarantee.neighbouring is Neighbouring.ANY_TWO
        and guarantee.delta == 0
        and guarantee.assumes(AssumptionKind.RECORD_RELEASED_ONCE)
    )
    if not is_local or guarantee.unprotected or guarantee.legacy:
        raise InputError(
            "the file's guarantee is not that of a record that is privatized by itself.", "Export it again."
        )


def _not_ours() -> InputError:
    return InputError("this is not a file that dipriv exported.", "Export it again with export_local.")
