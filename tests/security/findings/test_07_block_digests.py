"""Finding 7: blocks of other cells had the same digest, so that Spark released other values under the same noise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._tables import frames
from dipriv.errors import SourceChangedError
from dipriv.references import Known
from dipriv.sources._blocks import block_digest
from dipriv.sources.spark import frame as spark_frame
from tests import spark_support

KEY = bytes(range(32))
HUGE = 4609434218613702656.0
"""Has the digits of the bits of 1.5."""


def digest(column: Any, kind: pa.DataType | None = None) -> bytes:
    array = column if isinstance(column, pa.Array) else pa.array(column, kind, from_pandas=False)
    return block_digest(frames.read(pa.table({"x": array})), ["x"], KEY)


DIFFERENT = {
    "numbers": [
        ([1.5], pa.float64()),
        ([HUGE], pa.float64()),
        ([int(HUGE)], pa.int64()),
        ([None], pa.float64()),
        ([float("nan")], pa.float64()),
        ([0.0], pa.float64()),
        ([-0.0], pa.float64()),
        ([0], pa.int64()),
        ([False], pa.bool_()),
        ([0], pa.timestamp("us")),
        ([0], pa.timestamp("ns")),
        ([float("inf")], pa.float64()),
        ([9218868437227405312.0], pa.float64()),
        ([0.0, 0.0], pa.float64()),
    ],
    "texts": [
        (["ab", ""], pa.string()),
        (["a", "b"], pa.string()),
        (["", "ab"], pa.string()),
        (["ab", None], pa.string()),
        ([None, "ab"], pa.string()),
        (["ab"], pa.string()),
        (["None", "ab"], pa.string()),
        (["ab", "\0"], pa.string()),
    ],
    "labels": [
        (["a", "b", "a"], pa.dictionary(pa.int32(), pa.string())),
        (["b", "a", "b"], pa.dictionary(pa.int32(), pa.string())),
        (["a", "b", None], pa.dictionary(pa.int32(), pa.string())),
        (["a", "b", "null"], pa.dictionary(pa.int32(), pa.string())),
        (["a\0b", "", "a\0b"], pa.dictionary(pa.int32(), pa.string())),
        ([1, 2, 1], pa.dictionary(pa.int32(), pa.int64())),
    ],
}


@pytest.mark.parametrize("cells", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_other_cells_have_another_digest(cells: list[tuple[list[Any], pa.DataType]]) -> None:
    found = [digest(*one) for one in cells]
    for (one, first), (other, second) in combinations(zip(cells, found, strict=True), 2):
        assert first != second, (one, other)


def test_rows_and_missing_cells_are_told_apart() -> None:
    """Eight bytes a number and one for how it is missing: 8 rows of both are as long as 9 numbers."""
    missing = np.array([1, 0, 0, 0, 0, 0, 0, 0], dtype=np.uint8)
    eight = pa.array(np.arange(8.0), mask=missing.astype(bool))
    nine = pa.array(np.append(np.where(missing, 0.0, np.arange(8.0)), missing.view("<f8")))
    assert digest(eight) != digest(nine)


def test_positions_of_nulls_are_not_lengths() -> None:
    """Two blocks that are the same bytes if positions of nulls, lengths and texts stand together without marks."""
    n = 100
    nulls = np.arange(0, n, 2)
    lengths = np.zeros(n, dtype="<i4")
    lengths[-1] = nulls.sum() - 4 * n
    one: list[str | None] = [None, ""] * (n // 2)
    one[-1] = "x" * lengths[-1]
    text = lengths.tobytes().decode("ascii") + "x" * lengths[-1]
    ends = np.append(0, np.cumsum(nulls.astype("<i8").view("<i4")))
    other: list[str | None] = [text[start:end] for start, end in pairwise(ends)]
    assert _without_marks(one) == _without_marks(other)  # control
    assert digest(one, pa.string()) != digest(other, pa.string())


def _without_marks(texts: list[str | None]) -> bytes:
    nulls = np.flatnonzero([text is None for text in texts]).astype("<i8")
    lengths = np.array([len(text or "") for text in texts], dtype="<i4")
    return nulls.tobytes() + lengths.tobytes() + "".join(text or "" for text in texts).encode()


def test_the_same_cells_have_the_same_digest() -> None:
    """Slices, what lies under a null, and the order of a dictionary do not count."""
    plain = pa.array([1.5, None, 2.0])
    under = pa.Array.from_buffers(
        pa.float64(), 3, [plain.buffers()[0], pa.py_buffer(np.array([1.5, 77.0, 2.0]).tobytes())]
    )
    assert digest(plain) == digest(under) == digest(pa.array([9.0, 1.5, None, 2.0]).slice(1))
    texts = pa.array(["ü", None, "b"])
    assert digest(texts) == digest(pa.array(["x", "ü", None, "b"]).slice(1))
    assert digest(texts) == digest(texts.cast(pa.large_string())) == digest(texts.cast(pa.string_view()))
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", "b"]))
    other = pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 2]), pa.array(["unused", "b", "a"]))
    assert digest(one) == digest(other)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_refuses_a_source_whose_numbers_become_others(tmp_path: Path) -> None:
    """The review's run: 1.5 at the first reading, the number with the digits of its bits at the second."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; make test installs it")
    n = 400
    flag = str(tmp_path / "changed")
    (tmp_path / "events").mkdir()

    def turns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            x = batch.column("x").to_numpy()
            yield pa.record_batch({"x": np.where(x == 1.5, HUGE, x) if Path(flag).exists() else x})

    for session in spark_support.session(tmp_path / "events"):
        x = np.where(np.arange(n) % 2, 1.5, np.arange(n) / n)
        rows = session.createDataFrame(pa.table({"x": x})).coalesce(1)
        release = dipriv.privatize(rows.mapInArrow(turns, rows.schema), 1.0, reference=Known({"x": stats.norm()}))
        assert release.data.count() == n
        Path(flag).touch()
        with pytest.raises(SourceChangedError, match="not those of the first reading"), spark_frame.worker_errors():
            release.data.toArrow()
