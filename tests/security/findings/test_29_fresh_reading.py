"""What a reading of all that is new since rules, readers and kinds of columns were added found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._tables.value_counts import ValueCounts, frequent
from dipriv.errors import SchemaError
from tests import spark_support
from tests.security.findings.test_01_odd_cell import promised
from tests.unit.refusal import refused


def text_file(at: Path, cells: list[str]) -> Path:
    at.write_text("id;value\n" + "".join(f"{number};{cell}\n" for number, cell in enumerate(cells)), encoding="utf-8")
    return at


@pytest.mark.parametrize(
    ("cells", "odd"),
    [(["$5"] * 73 + ["1.234"] * 27, "0,5"), (["01/02/2024"] * 60, "12/31/2024")],
    ids=["decimal mark", "order of dates"],
)
def test_one_row_does_not_choose_how_cells_are_read_where_labels_are_declared(
    cells: list[str], odd: str, tmp_path: Path
) -> None:
    """With labels="declared" the reading that most cells allow was taken, which one row decided."""

    def outcome(cells: list[str]) -> Any:
        try:
            return promised(text_file(tmp_path / "t.csv", cells), labels="declared")
        except SchemaError as error:
            return str(error)

    before, after = outcome(cells), outcome([*cells[1:], odd])
    assert before == after
    assert "its cells do not tell" in before


@pytest.mark.parametrize("first", [[0.0, -0.0, 2.0], [-0.0, 2.0, 0.0]])
def test_the_order_of_labels_does_not_tell_which_row_came_first(first: list[float]) -> None:
    """0.0 and -0.0 are equal, and were published in the order in which rows had them."""
    found = frequent({"a": ValueCounts(pa.array(first), np.array([7, 8, 9]))}, 1)["a"]
    assert repr(found.values.to_pylist()) == "[-0.0, 0.0, 2.0]"


def test_labels_that_cannot_be_looked_up_are_refused_before_anything_is_spent() -> None:
    """Arrow has no function to look up numbers of 16 bits: the release failed after it was spent."""
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50, pa.int8()), pa.array(np.array([1, 2], np.float16)))
    refused(SchemaError, "column 'a' has type", call=lambda: dipriv.privatize(pa.table({"a": labels}), 1.0))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_files_of_spark_do_not_tell_how_long_private_rows_are(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark cuts a table at a number of bytes, and each of its partitions became a file of the release."""
    from dipriv.sources.spark import even_parts

    monkeypatch.setattr(even_parts, "PART_ROWS", 70)
    table = pa.table({"row": range(300), "x": [float(row % 7) for row in range(300)]})
    for number, sizes in enumerate(([100, 200], [1, 298, 1])):
        rows = spark_support.in_partitions(session, table, sizes)
        release = dipriv.privatize(rows, 1.0, keep=["row"], seed=1)
        release.write(tmp_path / f"{number}.parquet")
        paths = sorted((tmp_path / f"{number}.parquet").glob("*.parquet"))
        files = [pq.read_table(path)["row"].to_pylist() for path in paths]
        assert [len(rows) for rows in files] == [70, 70, 70, 70, 20]
        assert [row for rows in files for row in rows] == list(range(300))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install dipriv[spark]")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))
