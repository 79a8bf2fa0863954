"""An audit reads the table as a release does: canaries are planted in cells of the settled types."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv.auditing.run import _sample_rows, _typed
from dipriv.errors import SchemaError

RNG = np.random.default_rng(0)
N = 900
PAY = RNG.integers(1, 90, N)
PEOPLE = pd.DataFrame({"who": RNG.integers(0, 300, N).astype(str), "pay": PAY, "sex": RNG.choice(["f", "m"], N)})
UNIT: dict[str, Any] = {"unit": "who", "rows_per_unit": 3}
READ: dict[str, tuple[Any, dict[str, Any]]] = {
    "objects": (PAY.astype(object), {}),
    "objects, an odd one": ([*PAY[:-1].tolist(), "odd"], {}),
    "text": (PAY.astype(str), {"types": {"pay": "number"}}),
    "text of a kind": (PAY.astype(str), {"schema": {"pay": dipriv.Discrete(step=1)}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("cells", READ)
def test_columns_without_a_type_are_audited_as_they_are_released(cells: str) -> None:
    """Columns of objects were left out without a word, and canaries of text columns were texts."""
    values, options = READ[cells]
    frame = PEOPLE.assign(pay=pd.Series(values, dtype=object if "objects" in cells else None))
    typed, left = _typed(frame, 1.0, UNIT | options)
    table = _sample_rows(typed, RNG)[0]
    assert table.column_names == ["who", "pay", "sex"]
    assert str(table.schema.field("pay").type) == "int64"
    assert not left["types"]
    assert dipriv.audit(frame, 1.0, draws=20_000, seed=1, **UNIT, **options).passed


def test_an_answer_stays_and_other_objects_are_refused() -> None:
    frame = PEOPLE.assign(pay=PAY.astype(str))
    assert _typed(frame, 1.0, UNIT | {"types": {"pay": "text"}})[1]["types"] == {"pay": "text"}
    marks = {"missing": ("-9",), "types": {"pay": "number"}}
    typed, left = _typed(frame.replace({"pay": {"7": "-9"}}), 1.0, UNIT | marks)
    assert left["missing"] == ("-9",)  # for public tables, and rows that are read later
    assert typed.array("pay").null_count == int((PAY == 7).sum()) > 0
    with pytest.raises(SchemaError, match="number or text"):
        _typed(frame, 1.0, dict(UNIT))
    with pytest.raises(SchemaError, match="objects"):
        _typed(PEOPLE.assign(pay=pd.Series([uuid.UUID(int=7)] * N, dtype=object)), 1.0, dict(UNIT))
