"""Finding 19: any change of one row of a text file leaves types, kinds and the guarantee as they are, or asks."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dipriv.errors import SchemaError
from dipriv.schema import MISSING_MARKS
from tests.security.findings.test_01_odd_cell import CELLS, COLUMNS, promised

ROWS = 120
EXACT: Any = {
    "age": "whole",
    "height": "decimal",
    "born": "date",
    "seen": "text",
    "smokes": "boolean",
    "zip": "text",
    "city": "text",
    "income": "whole",
    "notes": "time",
}
ODD = st.one_of(
    st.sampled_from(CELLS),
    st.sampled_from(MISSING_MARKS),
    st.text(max_size=20),
    st.text(alphabet="0123456789+-.eE:/T Zinfatrue\t\"',;\\", max_size=14),
    st.integers().map(str),
    st.floats().map(repr),
    st.datetimes().map(str),
    st.times().map(str),
    st.sampled_from([*COLUMNS]),
)
CHANGE = st.tuples(st.integers(0, ROWS - 1), st.dictionaries(st.sampled_from([*COLUMNS]), ODD, min_size=1))


def write(file: Path, rows: list[dict[str, str]]) -> Path:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(COLUMNS), *(",".join(map(cell, row.values())) for row in rows)]
    file.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    return file


def people(seed: int) -> list[dict[str, str]]:
    rng = np.random.default_rng(seed)
    return [{name: make(rng) for name, make in COLUMNS.items()} for _ in range(ROWS)]


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False], ids=["exact types", "settled types"])
def test_300_changes_of_one_row_change_no_type_and_no_promise(exact: bool, tmp_path: Path) -> None:
    """With exact types nothing is asked, however many cells fit; else only a question may come, before spending."""
    rows = people(1)
    options: dict[str, Any] = {"types": EXACT} if exact else {"drop": ["notes"]}
    before = promised(write(tmp_path / "t.csv", rows), **options)

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(CHANGE)
    def changed(change: tuple[int, dict[str, str]]) -> None:
        place, cells = change
        file = write(tmp_path / "t.csv", [*rows[:place], rows[place] | cells, *rows[place + 1 :]])
        assert exact is False or promised(file, **options) == before
        with suppress(SchemaError):  # a question
            assert promised(file, **options) == before

    changed()


def test_a_change_of_every_row_is_seen(tmp_path: Path) -> None:
    """A control: what the test compares does show the types."""
    rows = people(1)
    before = promised(write(tmp_path / "t.csv", rows), drop=["notes"])
    assert promised(write(tmp_path / "t.csv", [row | {"age": "old"} for row in rows]), drop=["notes"]) != before


@pytest.mark.parametrize("share", [0.03, 0.05, 0.06, 0.5])
def test_changes_near_the_limits_change_no_type(share: float, tmp_path: Path) -> None:
    """Where a share of the cells is odd already, one more or less may ask, and turns no type into another."""
    rows = people(2)
    for row in rows[: round(share * ROWS)]:
        row.update(age="old", height="1 m", born="31/12/1999", smokes="maybe")

    def outcome(rows: list[dict[str, str]]) -> Any:
        try:
            return promised(write(tmp_path / "t.csv", rows), drop=["notes", "income", "seen"])
        except SchemaError:
            return None

    before = outcome(rows)
    for place in (0, ROWS - 1):
        for cell in ("old", "1", "1.5", "", "2020-01-01", "2020-01-01 12:00", "true", "9:30"):
            now = outcome([*rows[:place], dict.fromkeys(rows[0], cell), *rows[place + 1 :]])
            assert None in (now, before) or now == before
