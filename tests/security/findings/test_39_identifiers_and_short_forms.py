"""What a fresh reading found: identifiers told Spark's order, audits left rows on disks, short forms of a promise."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv._random.bits import Bits, source
from dipriv.auditing import recognition
from dipriv.schema import Identifier
from dipriv.sources.spark import even_parts
from dipriv.sources.spark.even_parts import Places
from tests import spark_support

RNG = np.random.default_rng(39)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install dipriv[spark]")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("seed", [None, 1], ids=["random", "control"])
def test_new_identifiers_do_not_tell_the_order_of_spark(
    session: Any, seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows were numbered in the order that Spark, by private cells, dealt them out in, and then shuffled."""
    monkeypatch.setattr(even_parts, "PART_ROWS", 500)
    rows = 3000
    table = pd.DataFrame(
        {
            "row.id": RNG.permutation(rows),
            "Key": [f"p{number}" for number in RNG.permutation(rows)],
            "secret": np.sort(RNG.normal(size=rows)),
            "place": range(rows),
        }
    )
    frame = session.createDataFrame(table).coalesce(1).sortWithinPartitions("secret")
    schema = {"row.id": Identifier(anew=True), "Key": Identifier(anew=True)}
    released = dipriv.privatize(frame, 1.0, keep=["place"], schema=schema, seed=seed).data
    found = released.toArrow()
    identifiers, places = found["row.id"].to_numpy(), found["place"].to_numpy()
    assert identifiers.tolist() == list(range(1, rows + 1))  # in the order of the released rows
    assert found["Key"].to_pylist() == [str(number) for number in identifiers]
    assert found.schema.field("row.id").type == pa.int64()
    for used in (released.orderBy("place"), released.sortWithinPartitions("secret")):  # the same ones, however used
        again = used.select("`row.id`", "place").toPandas().set_index("place")["row.id"]
        assert again.loc[places].tolist() == identifiers.tolist()
    order = np.corrcoef(identifiers, places)[0, 1]
    if seed is None:  # correlations of random orders are normal with variance 1 / (rows - 1)
        assert abs(order) < 6 / np.sqrt(rows)
    else:
        assert order > 0.999  # the order of the private rows


def test_parts_have_the_numbers_of_their_first_rows() -> None:
    for bits in (source(1), Bits(bytes(32), secure=True)):
        places, rows = Places(7, 100_000), 650_001
        part, _ = places(0, rows, bits)
        assert places.firsts(rows, bits) == [int(np.count_nonzero(part < which)) for which in range(7)]


def test_an_audit_writes_no_rows_to_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It offered the private table to a ledger as a CSV and a Parquet file, in the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mark = b"zq7-marker-xv"
    table = pa.table({"job": [f"{mark.decode()} {row % 9}" for row in range(300)], "age": range(300)})
    seen: list[Path] = []
    privatize = recognition.privatize

    def looking(*given: Any, **options: Any) -> Any:
        seen.extend(path for path in tmp_path.rglob("*") if path.is_file())
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and mark in path.read_bytes()]
        return privatize(*given, **options)

    monkeypatch.setattr(recognition, "privatize", looking)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = recognition.audit_recognition(table)
    assert all(check.passed for check in found)
    assert {path.name.partition(".")[0] for path in seen} == {"ledger", "copy"}  # control
    assert {check.what for check in found} >= {f"a ledger recognizes a {kind} file" for kind in ("CSV", "Parquet")}
