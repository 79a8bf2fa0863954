"""The columns of a table as a release sees them: their types, and what the schema says that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.types as pt

from dipriv._tables.arrow import is_text
from dipriv._tables.codes import as_code
from dipriv._tables.frames import Backend, Column
from dipriv.errors import SchemaError, refuse_all, unusable
from dipriv.schema import Discrete, Kind, Schema
from dipriv.sources.protocol import Rows


def settled_columns(columns: Sequence[Column], backend: Backend, declared: Schema) -> tuple[list[Column], Schema]:
    """The public facts of the privatized columns, and the kinds that they are learned as.

    Raises
    ------
    SchemaError : with every column whose type does not suit what is declared.
    """
    meanings, column_of = declared.meanings, {column.name: column for column in columns}

    def settled(name: str) -> Column:
        return as_code(column_of[name], meanings.get(name), backend)

    refuse_all(unusable(column_of, settled))
    kinds = {name: _suited(of, column_of[name]) if name in meanings else of for name, of in declared.items()}
    return [settled(name) for name in column_of], Schema(kinds)


def columns_of(rows: Rows[Any], names: Sequence[str], declared: Schema) -> tuple[list[Column], Schema]:
    """The same for the columns of some rows."""
    backend = rows.empty.backend if declared.meanings else "pyarrow"  # it matters for codes alone
    return settled_columns(rows.columns(names), backend, declared)


def _suited(kind: Kind, column: Column) -> Kind:
    """Amounts and percentages in a column of whole numbers are whole."""
    is_whole = column.storage.family == "integer"
    if is_whole and isinstance(kind, Discrete) and kind.levels is None and (kind.step is None or kind.step < 1):
        return replace(kind, step=1)
    return kind


def check_anew(rows: Rows[Any], names: Sequence[str]) -> None:
    """Refuse new identifiers in columns whose type cannot hold a number for each row: public facts."""
    problems = []
    for name in names:
        arrow_type = rows.empty.identifier_type(name)
        room = np.iinfo(arrow_type.to_pandas_dtype()).max if pt.is_integer(arrow_type) else None
        if not (is_text(arrow_type) or room is not None):
            problems.append(
                SchemaError(
                    f"column {name!r} is declared an identifier to be made anew, but holds {arrow_type}, neither whole "
                    "numbers nor text.",
                    "Leave anew out, or convert the column.",
                )
            )
        elif room is not None and rows.n_rows > room:
            problems.append(
                SchemaError(
                    f"column {name!r} of type {arrow_type} has no room for {rows.n_rows:,} identifiers.",
                    "Leave anew out, or convert the column to a wider type.",
                )
            )
    refuse_all(problems)
