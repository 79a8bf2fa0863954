"""Seeded releases are, bit for bit, those that an earlier version made; see cases.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests import spark_support
from tests.golden.calls import Released, privatize
from tests.golden.canonical import digest
from tests.golden.cases import (
    DIGESTS,
    LAW,
    SCORED,
    Case,
    SparkCase,
    cases,
    made_with,
    record_of,
    spark_cases,
)

KEPT: dict[str, Any] = json.loads(DIGESTS.read_text(encoding="utf-8"))
CASES, SPARK_CASES = cases(), spark_cases()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_a_seeded_release_is_what_it_was(name: str, case: Case) -> None:
    _compare(name, case())


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed; pip install dipriv[spark]")
@pytest.mark.parametrize(("name", "case"), SPARK_CASES.items(), ids=SPARK_CASES)
def test_a_seeded_release_on_spark_is_what_it_was(name: str, case: SparkCase, session: Any) -> None:
    _compare(name, case(session))


def test_every_case_has_a_digest_and_every_digest_a_case() -> None:
    assert list(KEPT["cases"]) == [*CASES, *SPARK_CASES]
    digests = [kept["sha256"] for kept in KEPT["cases"].values()]
    assert len(set(digests)) == len(digests)  # control: no two cases are the same release


def test_another_seed_or_another_cell_gives_another_digest() -> None:
    def released(frame: pd.DataFrame, seed: int = 50) -> str:
        return digest(privatize(frame, 1.0, reference=LAW, keep=["key"], seed=seed).data)

    changed = SCORED.copy()
    changed.loc[changed.index[690:700], "score"] += 30.0  # the noise of a single row may drown it
    assert released(SCORED) == released(SCORED)
    assert len({released(SCORED), released(SCORED, seed=51), released(changed)}) == 3


def test_a_digest_is_of_names_types_and_cells() -> None:
    table = pa.table({"x": [1.0, None, 0.0], "t": ["a", None, "b"], "n": [1, 2, 3]})
    x, t, n = table.columns
    others = [
        pa.table({"y": x, "t": t, "n": n}),
        pa.table({"t": t, "x": x, "n": n}),
        pa.table({"x": x.cast(pa.float32()), "t": t, "n": n}),
        pa.table({"x": pa.array([1.0, None, -0.0]), "t": t, "n": n}),
        pa.table({"x": pa.array([1.0, 0.0, None]), "t": t, "n": n}),
        pa.table({"x": pa.array([1.0, np.nan, 0.0]), "t": t, "n": n}),
        pa.table({"x": pa.array([np.nextafter(1.0, 2.0), None, 0.0]), "t": t, "n": n}),
        pa.table({"x": x, "t": pa.array(["ab", None, ""]), "n": n}),
        pa.table({"x": x, "t": pa.array(["a", "", "b"]), "n": n}),
        table.slice(0, 2),
    ]
    assert len({digest(table), *map(digest, others)}) == 1 + len(others)


def test_a_digest_is_not_of_chunks_or_of_how_text_is_stored() -> None:
    table = pa.table({"x": [1.0, None, 0.0], "t": ["a", None, "ü"], "d": pa.array(["p", "q", "p"]).dictionary_encode()})
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    views = table.set_column(1, "t", table["t"].cast(pa.string_view()))
    assert {digest(chunked), digest(views)} == {digest(table)}
    frame = pd.DataFrame({"t": ["a", None, "ü"]}, dtype=object)
    assert digest(frame) == digest(frame.astype("string"))
    assert digest(frame) != digest(frame.set_index(pd.Index([5, 6, 7])))
    assert digest(pl.DataFrame({"t": ["a"]})) != digest(pl.DataFrame({"t": ["b"]}))


def _compare(name: str, released: Released) -> None:
    """The same bits; on another kind of machine, or with other versions of libraries, at least the same facts."""
    found, kept = record_of(released), KEPT["cases"][name]
    facts = ("epsilon", "released", "rows")
    assert [found[fact] for fact in facts] == [kept[fact] for fact in facts]
    others = {key: now for key, now in made_with().items() if KEPT["made with"].get(key) != now}
    if found != kept and others:
        pytest.skip(f"other bits than before, but the digests were not made here: {others}")
    assert found == kept
