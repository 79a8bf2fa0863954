"""Bounds on ε from one run with canaries: honest publishers, publishers whose ε is known, and ones that leak all."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dipriv
from dipriv._random.bits import Seed
from dipriv._tables import frames
from dipriv.auditing.canaries import Canaries, distinct, extremes, record_pairs
from dipriv.auditing.intervals import chance_of_guesses, epsilon_of_guesses
from dipriv.auditing.one_run import audit_release, best_threshold, count_right
from dipriv.auditing.procedure import Privatize, ReleasedTable
from dipriv.errors import InputError
from dipriv.references import Known
from tests.support import ALARM

SURE = 1 - ALARM
RNG = np.random.default_rng(0)
N = 3000
NORMAL = pa.table({"x": RNG.normal(size=N)})
MIXED = pa.table(
    {
        "id": np.arange(N),
        "pay": np.where(RNG.random(N) < 0.3, 0.0, RNG.lognormal(9, 1, N)),
        "cents": np.round(RNG.lognormal(3, 1, N), 2),
        "age": RNG.integers(18, 90, N),
        "level": 10 * RNG.integers(1, 9, N),
        "text": pa.array(RNG.choice(["a", "b", "c"], N), mask=RNG.random(N) < 0.1),
        "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=3 * int(d)) for d in RNG.integers(0, 900, N)]),
        "part": pa.array(RNG.normal(size=N).astype(np.float32), mask=RNG.random(N) < 0.1),
    }
)
PRIVATIZED = [name for name in MIXED.column_names if name != "id"]


def test_a_known_law_is_bounded_tightly_when_all_rows_are_canaries() -> None:
    publish = Privatize(1.0, {"reference": Known(stats.norm()), "kernel": "laplace"})
    extreme, distinctive = audit_release(publish, NORMAL, 1.0, canaries=N, confidence=SURE, seed=1)
    # two thirds of 3000 coins are guessed, 73% rightly: known to 5%, a fifth of ε, at this confidence
    assert 0.7 < extreme.lower <= 1.0
    assert distinctive.lower <= 1.0


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"reference": "holdout"},
        {"public": MIXED.slice(0, 800), "kernel": "laplace"},
    ],
)
def test_an_honest_release_passes(options: dict[str, object]) -> None:
    found = audit_release(Privatize(1.0, {"keep": ["id"], **options}), MIXED, 1.0, confidence=SURE, seed=2)
    assert [bound.what for bound in found] == ["release, extreme canaries", "release, distinct canaries"]
    assert not any(bound.exceeded for bound in found)
    assert all(0 < bound.draws <= N for bound in found)


def randomized_response(epsilon: float, share: float = 1.0) -> object:
    """Each cell is its own with the chance e^ε/(e^ε + 1), else the other; a share of the rows is released."""

    def publish(table: pa.Table, seed: Seed) -> ReleasedTable:
        noise = np.random.default_rng(seed)
        rows = np.flatnonzero(noise.random(table.num_rows) < share)
        flips = noise.random(len(rows)) > 1 / (1 + np.exp(-epsilon))
        return ReleasedTable(pa.table({"yes": table.column("yes").to_numpy()[rows] ^ flips}), rows)

    return publish


def test_randomized_response_is_bounded_by_its_own_epsilon() -> None:
    table = pa.table({"yes": RNG.random(20_000) < 0.5})
    (found,) = audit_release(randomized_response(1.0), table, 1.0, canaries=20_000, confidence=SURE, seed=3)  # type: ignore[arg-type]
    assert 0.85 < found.lower <= 1.0  # 20,000 guesses: ε is known to 4.9 sqrt(1/(p (1 - p) 20,000)) = 0.08
    (wrong,) = audit_release(randomized_response(1.3), table, 1.0, canaries=20_000, confidence=SURE, seed=3)  # type: ignore[arg-type]
    assert wrong.exceeded  # control


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "printed"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],
    ids=["Appendix D", "Section 7"],
)
def test_the_bound_at_a_delta_is_that_of_the_paper(
    canaries: int, guesses: int, right: int, delta: float, printed: float
) -> None:
    """Steinke, Nasr, Jagielski (2023, arXiv 2305.08846v1) print three decimals, of which one example is cut off."""
    found = epsilon_of_guesses(right, guesses, canaries, 0.95, delta)
    assert found == pytest.approx(printed, abs=1e-3)
    for wrong in ((guesses, delta), (canaries, 0.0)):  # controls: guesses in place of canaries, and no δ
        assert epsilon_of_guesses(right, guesses, wrong[0], 0.95, wrong[1]) > printed + 0.01
    assert chance_of_guesses(right, guesses, canaries, found, delta) == pytest.approx(0.05)


@pytest.mark.slow
@given(st.integers(1, 300), st.integers(0, 300), st.integers(0, 1000), st.floats(1e-12, 0.01))
def test_what_refutes_an_epsilon_refutes_every_smaller_one(right: int, wrong: int, silent: int, delta: float) -> None:
    """The p-value grows with ε up to the bound for δ = 0, so that halving finds its only crossing."""
    guesses, canaries = right + wrong, right + wrong + silent
    grid = np.linspace(0, epsilon_of_guesses(right, guesses, canaries, 0.95), 12)
    chances = [chance_of_guesses(right, guesses, canaries, epsilon, delta) for epsilon in grid]
    assert np.all(np.diff(chances) >= -1e-12)
    assert epsilon_of_guesses(right, guesses, canaries, 0.95, delta) <= grid[-1]


@pytest.mark.slow
def test_a_coin_that_is_revealed_with_probability_delta_is_covered_by_delta() -> None:
    def publish(table: pa.Table, seed: Seed) -> ReleasedTable:
        noise = np.random.default_rng(seed)
        response: ReleasedTable = randomized_response(1.0)(table, noise)  # type: ignore[operator]
        true, said = (each.column("yes").to_numpy() for each in (table, response.data))
        revealed = noise.random(len(true)) < 0.1
        return ReleasedTable(pa.table({"yes": np.where(revealed, true, said)}), response.row_positions)

    table = pa.table({"yes": RNG.random(20_000) < 0.5})
    (pure,) = audit_release(publish, table, 1.0, delta=0.0, canaries=20_000, confidence=SURE, seed=3)
    assert pure.exceeded
    (found,) = audit_release(publish, table, 1.0, delta=0.1, canaries=20_000, confidence=SURE, seed=3)
    assert (found.delta, found.exceeded) == (0.1, False)
    (small,) = audit_release(publish, table, 1.0, delta=1e-9, canaries=20_000, confidence=SURE, seed=3)
    assert small.exceeded  # control: a δ that does not cover it
    assert small.lower <= pure.lower


def test_only_canaries_that_are_released_count() -> None:
    table = pa.table({"yes": RNG.random(2000) < 0.5})
    (found,) = audit_release(randomized_response(1.0, share=0.5), table, 1.0, canaries=2000, seed=4)  # type: ignore[arg-type]
    assert 500 < found.draws < 1200


def test_a_release_of_the_rows_themselves_is_found_out_by_both_families() -> None:
    def verbatim(table: pa.Table, seed: Seed) -> ReleasedTable:
        order = np.random.default_rng(seed).permutation(table.num_rows)
        return ReleasedTable(table.take(order), order)

    extreme, distinctive = audit_release(verbatim, MIXED, 1.0, confidence=SURE, seed=5)
    assert extreme.lower > 3
    assert distinctive.lower > 2


def test_a_release_that_does_not_look_at_the_table_tells_nothing() -> None:
    def unrelated(table: pa.Table, seed: Seed) -> ReleasedTable:
        return ReleasedTable(pa.table({"x": np.random.default_rng(seed).normal(size=N)}), np.arange(N))

    for bound in audit_release(unrelated, NORMAL, 1.0, confidence=SURE, seed=6):
        assert bound.lower == 0


def test_declared_levels_and_bounds_leave_room_for_fewer_canaries_only() -> None:
    table = MIXED.select(["pay", "level"])
    schema = {"level": dipriv.Discrete(levels=tuple(range(10, 90, 10))), "pay": dipriv.Mixed(lower=0.0, upper=1e7)}
    found = audit_release(
        Privatize(1.0, {"reference": "holdout", "schema": schema}), table, 1.0, confidence=SURE, seed=7
    )
    assert len(found) == 2
    only_levels = audit_release(
        Privatize(1.0, {"reference": "holdout", "schema": {"level": schema["level"]}}),
        table.select(["level"]),
        1.0,
        seed=7,
    )
    assert [bound.what for bound in only_levels] == ["release, extreme canaries"]


def planted(canaries: Canaries, coin: bool) -> pa.Table:
    return canaries.plant(MIXED, np.full(len(canaries), coin))


def test_distinct_canaries_have_numbers_that_occur_nowhere_else() -> None:
    found = distinct(MIXED, PRIVATIZED, 100, np.random.default_rng(1))
    assert found is not None
    assert len(np.unique([*found.positions, *found.fixed])) == len(found.positions) + len(found.fixed)
    for name, numbers in found.numbers.items():
        mine = numbers[~np.isnan(numbers)]
        assert len(np.unique(mine)) == len(mine) > 0
        cells = frames.read(MIXED).cells(name).present.astype(np.float64)
        assert not np.isin(mine, cells).any()
    assert set(found.numbers) == {"pay", "cents", "age", "level", "day", "part"}
    assert np.allclose(np.round(found.numbers["cents"], 2), found.numbers["cents"], equal_nan=True)  # still cents
    assert (found.numbers["pay"] < MIXED["pay"].to_numpy().max()).all()


def test_planting_touches_canaries_and_privatized_columns_only() -> None:
    found = distinct(MIXED, PRIVATIZED, 100, np.random.default_rng(2))
    assert found is not None
    tables = [planted(found, coin) for coin in (False, True)]
    same = np.setdiff1d(np.arange(N), found.positions)
    for table in tables:
        assert table.schema.equals(MIXED.schema)
        assert table.column("id").equals(MIXED.column("id"))
        untouched = np.setdiff1d(same, found.fixed)
        assert table.take(untouched).equals(MIXED.take(untouched))
    assert tables[0].take(same).equals(tables[1].take(same))  # neighbours: they differ in the canaries' rows alone
    assert (tables[0]["pay"].to_numpy() != tables[1]["pay"].to_numpy())[found.positions].all()


def test_extreme_canaries_are_the_ends_of_their_columns() -> None:
    rng = np.random.default_rng(3)
    pairs = record_pairs(MIXED, PRIVATIZED, rng)
    assert len(pairs) >= 5
    canaries = extremes(np.arange(10), pairs[:1])
    low, high = planted(canaries, False), planted(canaries, True)
    assert set(low["age"].to_pylist()[:10]) == {18}
    assert set(high["age"].to_pylist()[:10]) == {89}
    assert {low["text"][0].as_py(), high["text"][0].as_py()} == {"a", "c"}
    assert low["id"].equals(MIXED["id"])


def test_guesses_are_made_where_the_evidence_is_large_enough() -> None:
    rng = np.random.default_rng(4)
    coins = rng.random(1000) < 0.5
    evidence = np.where(coins, 1.0, -1.0) * rng.random(1000) + rng.normal(0, 0.1, 1000)
    evidence[:500] = rng.normal(0, 0.01, 500)
    expected, threshold = best_threshold(evidence, coins)
    right, made = count_right(evidence, coins, threshold)
    assert expected > 2
    assert right > 0.98 * made > 0.98 * 200
    assert best_threshold(np.zeros(50), coins[:50]) == (0.0, 0.0)
    assert count_right(np.zeros(50), coins[:50], 0.0) == (0, 0)


@pytest.mark.parametrize(("rows", "canaries"), [(50, None), (500, 5), (500, 501)])
def test_small_tables_and_few_canaries_are_refused(rows: int, canaries: int | None) -> None:
    with pytest.raises(InputError, match="canaries"):
        audit_release(Privatize(1.0), NORMAL.slice(0, rows), 1.0, canaries=canaries)


def test_progress_is_reported_and_a_seed_repeats_the_audit() -> None:
    shares: list[float] = []
    publish = Privatize(1.0, {"reference": Known(stats.norm())})

    def report(what: str, done: float, total: float | None) -> None:
        shares.append(done / (total or 1))

    first = audit_release(publish, NORMAL, 1.0, seed=8, progress=report)
    assert first == audit_release(publish, NORMAL, 1.0, seed=8)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
