"""Privacy where the data is (appendix S3): a public reference is exported, and each owner privatizes its own record.

The same mechanism, row by row, with noise drawn where the record is: ε-local differential privacy (Definition S1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dipriv import state, tables
from dipriv.columns import FittedColumn
from dipriv.errors import InputError
from dipriv.fitting import Fitted
from dipriv.guarantee import Guarantee
from dipriv.randomness import Rng, source


@dataclass(frozen=True, eq=False)
class Local:
    """A loaded public reference, ready to privatize records."""

    fitted: Fitted = field(repr=False)
    guarantee: Guarantee
    rng: Rng = None

    def privatize(self, record: Any) -> Any:
        """Release one record, {column: value}, or a table of records; the same form comes back."""
        bits = source(self.rng)
        if not isinstance(record, dict):
            return self.fitted.release(tables.read(record), (), bits)
        table = tables.read(self._table(record))
        released: dict[str, Any] = self.fitted.release(table, (), bits).to_pylist()[0]
        return released

    def _table(self, record: dict[str, Any]) -> pa.Table:
        names = self.fitted.names
        if set(record) != set(names):
            raise InputError(
                f"the record has {len(set(record) & set(names))} of the {len(names)} columns of the reference and "
                f"{len(set(record) - set(names))} others.",
                f"Give exactly these: {', '.join(names)}.",
            )
        arrays = []
        for column in self.fitted.columns:
            value_type = column.facts.arrow_type
            if pa.types.is_dictionary(value_type):
                value_type = value_type.value_type
            try:
                arrays.append(pa.array([record[column.name]], value_type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
                raise InputError(
                    f"the record's {column.name!r} cannot be taken as {column.facts.storage.label}.",
                    "Correct its type.",
                ) from None
        return pa.Table.from_arrays(arrays, names=list(names))


def save(path: str | Path, fitted: Fitted, promise: Guarantee) -> None:
    """Write a public reference. The caller has made sure that it is public."""
    content = {
        "format": 1,
        "columns": tuple(_without_categories(column) for column in fitted.columns),
        "reference": fitted.reference,
        "kernel": fitted.kernel,
        "order": fitted.order,
        "nulls_have_mass": fitted.nulls_have_mass,
        "declared": fitted.declared,
        "holds_infinities": fitted.holds_infinities,
        "guarantee": promise,
    }
    data = state.dump(content)
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(data)
    partial.replace(path)


def _without_categories(column: FittedColumn) -> FittedColumn:
    """The labels of the public reference stay; the categories of the table that was fitted with it do not."""
    return replace(column, facts=replace(column.facts, labels=None, label_values=None))


def load(path: str | Path, rng: Rng = None) -> Local:
    """Read a reference that `DIP.export_local` wrote. A seed is for experiments and voids the guarantee."""
    content = state.load(Path(path).read_bytes())
    try:
        if content.pop("format") != 1:
            raise InputError("the file has a newer format than this version of dipriv reads.", "Upgrade dipriv.")
        promise = replace(content.pop("guarantee"), secure_randomness=rng is None)
        fitted = Fitted(**content)
        if not 0 < fitted.kernel.epsilon <= promise.epsilon < math.inf:
            raise InputError("the file's kernel spends more than its guarantee says.", "Export it again.")
        return Local(fitted, promise, rng)
    except (KeyError, TypeError, AttributeError):
        raise InputError("this is not a file that dipriv exported.", "Export it again with export_local.") from None
