"""Random files against every reader: each ends in a result or in a `DiprivError`. The long run is `python -m fuzz`."""

from __future__ import annotations

import json
import math
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dipriv import Schema
from dipriv.errors import DiprivError
from dipriv.release import local
from fuzz import __main__ as runner
from fuzz import children, seeds, targets
from fuzz.mutate import VALUES, mutate_bytes, mutate_plain

EXAMPLES = {"ledger": 60, "privatize": 25, "excel": 60, "stata": 25, "spss": 25, "xport": 25, "orc": 25}
"""Of the slow ones; of the others 300."""
quick = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seeds of every sort."""
    place = tmp_path_factory.mktemp("seeds")
    seeds.write(place)
    return place


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    """Odd numbers may overflow: numpy's warnings are not what is looked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def outcome(target: targets.Target, case: Any) -> str:
    """Accepted or refused; anything else is raised."""
    try:
        target.run(case)
    except DiprivError:
        return "refused"
    return "accepted"


@pytest.mark.slow
@pytest.mark.parametrize("name", targets.NAMES)
def test_cases_made_of_random_numbers(name: str, folder: Path) -> None:
    target, examples = targets.make(name, folder), EXAMPLES.get(name, 300)
    seen: set[str] = set()

    @settings(quick, max_examples=examples)
    @given(st.randoms(use_true_random=False))
    def run(rng: Random) -> None:
        seen.add(outcome(target, target.case(rng)))

    run()  # random numbers that are often extreme, where few cases of some targets are good
    seen.update(outcome(target, target.case(Random(f"0/{name}/{number}"))) for number in range(examples))
    assert seen == ({"accepted"} if name == "note" else {"accepted", "refused"})  # an odd note counts as none


@pytest.mark.parametrize(
    "name",
    [
        *("csv", "parquet", "arrow", "excel", "jsonl", "exported reference", "note"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("stata", "spss", "xport")),
    ],
)
def test_any_bytes(name: str, folder: Path) -> None:
    target = targets.make(name, folder)

    @settings(quick, max_examples=min(200, EXAMPLES.get(name, 200)))
    @given(st.binary(max_size=200))
    def run(data: bytes) -> None:
        outcome(target, ("csv", data) if name == "csv" else data)

    run()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["kind", "levels", "step", "atoms", "lower", "upper", "unit", "encoding", "resolution"])
KINDS = st.sampled_from(["continuous", "discrete", "mixed", "categorical", "datetime"])


@pytest.mark.slow
@settings(quick, max_examples=400)
@given(
    st.dictionaries(st.text(max_size=5), st.dictionaries(FIELDS, JSON | KINDS, max_size=4) | JSON, max_size=3) | JSON
)
def test_any_plain_data_as_a_schema(plain: Any) -> None:
    try:
        found = Schema.from_dict(plain)
    except DiprivError:
        return
    assert Schema.from_json(found.to_json()) == found
    assert Schema.from_toml(found.to_toml()) == found


@settings(quick, max_examples=300)
@given(st.text(max_size=200))
def test_any_text_as_a_schema(text: str) -> None:
    for read in (Schema.from_json, Schema.from_toml):
        with suppress(DiprivError):
            read(text)


@pytest.mark.slow
@settings(quick, max_examples=300)
@given(JSON)
def test_any_plain_data_as_a_manifest(plain: Any) -> None:
    from fuzz.references import put_together

    with pytest.raises(DiprivError):
        local.read(put_together(json.dumps(plain).encode(), {}))


# ---- the fuzzer itself ----


def test_a_case_is_a_function_of_its_number(folder: Path) -> None:
    for name in targets.NAMES:
        target = targets.make(name, folder)  # once: archives that it writes have the time in them
        one, two = (target.case(Random(f"0/{name}/7")) for _ in range(2))
        assert repr(one) == repr(two)


def test_mutations_leave_the_original_alone() -> None:
    plain = {"a": [1, {"b": "text"}], "c": 2.5}
    before = json.dumps(plain)
    same = sum(mutate_plain(Random(seed), plain) == plain for seed in range(200))
    assert json.dumps(plain) == before
    assert same < 20
    assert len({mutate_bytes(Random(seed), b"abcdefgh") for seed in range(200)}) > 100


def test_what_nobody_foresaw_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with a check that forgets very long numbers, some cases end in another way."""
    monkeypatch.setattr("dipriv.schema._is_finite", math.isfinite)
    target = targets.make("schema in JSON", folder)
    faults = 0
    for number in range(1000):
        try:
            outcome(target, target.case(Random(f"0/schema in JSON/{number}")))
        except (OverflowError, TypeError):
            faults += 1
    assert faults > 0


def test_a_dead_child_costs_one_case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = iter([4, 9])

    def child(place: Path, name: str, seed: int, first: int, count: int) -> tuple[dict[str, Any] | None, int, str]:
        at = next(deaths, None)
        if at is not None:
            return None, at, "the process ended with exit code -11"
        part = {"cases": count, "accepted": count, "refused": 0, "uncaught": 0, "told": []}
        return part | {"slowest_ms": 0.5, "peak_mb": 1.0, "grown_mb": 0.5}, first + count - 1, ""

    monkeypatch.setattr(children, "child", child)
    found = children.fuzz(folder, "csv", 0, 20)
    assert (found["cases"], found["accepted"], found["crashes"]) == (20, 10, 2)
    assert [one["case"] for one in found["told"]] == [4, 9]


@pytest.mark.slow
def test_a_run_is_put_on_record(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "fuzz.json"
    monkeypatch.setattr(seeds, "write", lambda place: shutil.copytree(folder, place, dirs_exist_ok=True))
    monkeypatch.setattr(sys, "argv", ["fuzz", "--cases", "40", "--targets", "note", "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        runner.main()
    assert ended.value.code == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["cases"], found["uncaught"], found["targets"]["note"]["accepted"]) == (40, 0, 40)


def test_shares_are_of_the_whole() -> None:
    assert set(runner.SHARES) == set(targets.NAMES)
    assert sum(runner.SHARES.values()) == pytest.approx(1)
