"""Bounds on ε by drawing: tight where the truth is known, never above it but by chance, and valid for every type."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from itertools import cycle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random.bits import source
from dipriv.auditing.events import Shape, best_event, cuts_of, dependence, fitted_hits, learn, learn_shared
from dipriv.auditing.exact import exact_epsilon
from dipriv.auditing.intervals import epsilon_of_draws
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.neighbours import BLOCKS, NeighbouringDatasets, SmallDataset, draw_pair, records_of
from dipriv.errors import InputError
from dipriv.kernels import Laplace
from research.audit_standard import KERNELS, measure, most_by_chance, one_column, repeated, several_columns
from tests.support import ALARM

SURE = 1 - ALARM
"""At this confidence a right bound exceeds the truth once in a million audits."""
COLUMNS = one_column()
DRAWS = 200_000


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind != "continuous, uniform"])
def test_one_column_is_bounded_tightly(kind: str, kernel: str) -> None:
    # a chance of 1/12 or more in 100,000 draws is known to 5% at this confidence, and the event is learned from others
    fitted = COLUMNS[kind](KERNELS[kernel], 1.0)
    bound = audit_rows(fitted, 1.0, draws=DRAWS, confidence=SURE, seed=1)
    truth = min([1.0, *(one.epsilon for one in exact_epsilon(fitted))])
    assert 0.85 * truth <= bound.lower <= truth
    assert not bound.exceeded
    assert bound.draws >= DRAWS


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_follows_epsilon(epsilon: float, kernel: str) -> None:
    fitted = COLUMNS["continuous, normal"](KERNELS[kernel], epsilon)
    bound = audit_rows(fitted, epsilon, draws=DRAWS, confidence=SURE, seed=2)
    assert 0.85 * epsilon <= bound.lower <= epsilon
    assert audit_rows(
        fitted, 0.8 * epsilon, draws=DRAWS, confidence=SURE, seed=2
    ).exceeded  # control: a claim too small


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        pytest.param("3 columns, independent", "optimal", marks=pytest.mark.slow),
        pytest.param("3 columns, normal copula", "laplace", marks=pytest.mark.slow),
        pytest.param("3 columns, private network", "laplace", marks=pytest.mark.slow),
        pytest.param("3 columns, private network", "optimal", marks=pytest.mark.slow),
        ("3 columns, boxes of a hold-out", "laplace"),
    ],
)
def test_rows_of_several_columns_are_bounded_as_a_whole(kind: str, kernel: str) -> None:
    fitted = several_columns(3)[kind](KERNELS[kernel], 1.0)
    bound = audit_rows(fitted, 1.0, draws=100_000, confidence=SURE, seed=3)
    # an event of three columns, with chances of 1/8 and 1/8e, is known to 0.17 by so many draws; a column has ε/3 alone
    assert 0.65 <= bound.lower <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "epsilon", "draws"), [(4, 1.0, 100_000), (10, 0.5, 300_000)])
def test_many_columns_are_bounded_as_well_as_by_counting_their_ranks(width: int, epsilon: float, draws: int) -> None:
    fitted = several_columns(width)[f"{width} columns, independent"](Laplace(), epsilon)
    bound = audit_rows(fitted, epsilon, draws=draws, confidence=SURE, seed=3)
    # noise of scale p/ε leaves a rank on the side of its corner but for e^(-ε/2p)/2, so counts are binomial
    far, tries = np.exp(-epsilon / (2 * width)) / 2, draws // 2
    chances = [[stats.binom.sf(k - 1, width, chance) for chance in (1 - far, far)] for k in range(1, width + 1)]
    unlucky = [
        epsilon_of_draws(
            int(stats.binom.ppf(ALARM, tries, one)), tries, int(stats.binom.isf(ALARM, tries, other)), tries, SURE
        )
        for one, other in chances
    ]
    assert max(unlucky) <= bound.lower <= epsilon
    assert max(unlucky) > epsilon / width  # control: a column has no more by itself


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_repeated_audits_exceed_the_truth_no_more_often_than_chance_allows(kernel: str) -> None:
    fitted = COLUMNS["continuous, uniform"](KERNELS[kernel], 1.0)
    times, confidence = 200, 0.95
    most = most_by_chance(times, confidence)
    bounds = repeated(fitted, 1.0, times=times, pilots=5, draws=10_000, confidence=confidence, seed=4)
    assert len(bounds) == times
    assert sum(bound.exceeded for bound in bounds) <= most
    assert sum(bound.lower > 0.85 for bound in bounds) > times / 2  # tight enough for that to be news
    wrong = repeated(fitted, 0.85, times=50, pilots=1, draws=10_000, confidence=confidence, seed=4)
    assert sum(bound.exceeded for bound in wrong) > most_by_chance(50, confidence)  # control


def test_chance_allows_what_the_binomial_law_says() -> None:
    most = most_by_chance(200, 0.95)
    assert stats.binom.sf(most, 200, 0.05) <= 1e-3 < stats.binom.sf(most - 1, 200, 0.05)


def test_measurements_come_with_what_they_are_of() -> None:
    kinds = {kind: COLUMNS[kind] for kind in ("continuous, normal", "12 categories")}
    found = list(measure(kinds, (1.0,), draws=10_000, seed=5))
    assert [(one.kernel, one.kind, one.epsilon) for one in found] == [
        (kernel, kind, 1.0) for kind in kinds for kernel in ("laplace", "optimal")
    ]
    assert [one.exact is None for one in found] == [True, False, False, False]
    assert all(one.seconds > 0 for one in found)


N = 400
RNG = np.random.default_rng(0)
EVERY_TYPE = pa.table(
    {
        "half": pa.array(RNG.normal(size=N).astype(np.float16)),
        "short": pa.array(RNG.normal(size=N).astype(np.float32), mask=RNG.random(N) < 0.1),
        "byte": RNG.integers(-5, 5, N).astype(np.int8),
        "large": RNG.integers(0, 2**63, N).astype(np.uint64),
        "flag": RNG.random(N) < 0.3,
        "text": pa.array(RNG.choice(["SECRET-a", "SECRET-b", "SECRET-c"], N), mask=RNG.random(N) < 0.1),
        "label": pa.array(RNG.choice(["SECRET-x", "SECRET-y"], N)).dictionary_encode(),
        "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 900, N)]),
        "when": pa.array(RNG.integers(0, 10**9, N), pa.timestamp("s", tz="UTC")),
        "hour": pa.array(RNG.integers(0, 86400, N).astype(np.int32), pa.time32("s")),
        "span": pa.array(RNG.integers(0, 10**6, N), pa.duration("ms")),
        "price": pa.array([Decimal(int(cents)).scaleb(-2) for cents in RNG.integers(0, 9999, N)], pa.decimal128(9, 2)),
        "odd": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "reference"), list(zip(EVERY_TYPE.column_names, cycle(["private", "holdout"]), strict=False))
)
def test_every_type_can_be_audited(column: str, reference: str) -> None:
    share = 0.5 if reference == "private" else None
    release = dipriv.privatize(EVERY_TYPE.select([column]), 2.0, reference=reference, reference_share=share, seed=6)
    assert release.secrets.mechanism is not None
    claimed = release.secrets.mechanism.kernel.epsilon
    bound = audit_rows(release.secrets.mechanism, claimed, draws=10_000, confidence=SURE, seed=6)
    assert 0.4 * claimed < bound.lower <= claimed  # 10,000 draws at this confidence tell about half
    assert "SECRET" not in bound.event


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_groups_and_dummies_can_be_audited(kernel: str) -> None:
    grouped = pa.table({"who": np.repeat(np.arange(40), 10), "x": RNG.normal(size=N)})
    reference = dipriv.references.Grouped("who", 5)
    dummies = {"text": dipriv.Categorical(encoding="onehot")}
    for table, options in (
        (grouped, {"reference": reference}),
        (EVERY_TYPE.select(["text"]), {"reference": "holdout", "schema": dummies}),
    ):
        fitted = dipriv.privatize(table, 2.0, kernel=kernel, seed=7, **options).secrets.mechanism
        assert fitted is not None
        assert not audit_rows(fitted, 2.0, draws=10_000, confidence=SURE, seed=7).exceeded


def test_blocks_have_their_rows_where_their_layout_says() -> None:
    fitted = replace(COLUMNS["continuous, uniform"](Laplace(), 1.0), kernel=Laplace().build(1e9, ["x"]))
    records = records_of(fitted, source(1))
    low, high = records.words.index("below all"), records.words.index("above all")
    for layout in BLOCKS:
        d, d_prime = SmallDataset((low, high), layout), SmallDataset((high, high), layout)
        drawn = draw_pair(fitted, records, NeighbouringDatasets(d, d_prime), 3000, source(2))
        for dataset, rows in zip((d, d_prime), drawn, strict=True):
            first, second, difference = rows.reshape(-1, rows.shape[2]).T
            assert len(first) >= 3000
            assert np.allclose(first, dataset.rows[0] == high, atol=0.1)  # there is hardly any noise
            assert np.allclose(second, 1.0, atol=0.1)
            assert np.allclose(difference, second - first)


@pytest.mark.parametrize("width", [2, 4, 10])
def test_opposite_corners_differ_in_every_rank(width: int) -> None:
    records = records_of(several_columns(width)[f"{width} columns, independent"](Laplace(), 1.0), source(1))
    couples = records.opposites()
    assert len(couples) >= 2
    assert [records.words[number] for number in couples[0]] == ["a low rank", "a high rank"]
    for one, other in couples:
        assert np.array_equal(records.corners[one], ~records.corners[other])


def test_rows_of_a_call_that_are_one_draw_are_told_from_independent_ones() -> None:
    calls = np.random.default_rng(10).normal(size=(8, 1000))
    assert dependence(calls) < 6  # chi-square with 7 degrees of freedom, over 7, at 1 - 1e-6: 6.1
    assert dependence(np.repeat(calls[:, :1], 1000, axis=1)) > 100  # control
    assert dependence(np.zeros((8, 1000))) == 1


def test_progress_is_reported_from_0_to_1() -> None:
    shares: list[float] = []
    fitted = COLUMNS["continuous, uniform"](Laplace(), 1.0)
    audit_rows(fitted, 1.0, draws=10_000, seed=8, progress=lambda what, done, total: shares.append(done / (total or 1)))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("wrong", [{"draws": 100}, {"confidence": 1.0}, {"confidence": 0.0}])
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        audit_rows(COLUMNS["continuous, uniform"](Laplace(), 1.0), 1.0, **wrong)


def test_cuts_give_frequent_values_cells_of_their_own() -> None:
    values = np.concatenate([np.zeros(500), np.linspace(1, 2, 500), [-np.inf, np.inf]])
    cells = np.searchsorted(cuts_of(values, 8), [-np.inf, 0.0, 1e-9, 1.0, np.inf], side="right")
    assert cells[1] not in (cells[0], cells[2])
    assert cells[-1] == cells.max()
    few = np.array([3.0, 1.0, 2.0])
    assert np.searchsorted(cuts_of(few, 8), few, side="right").tolist() == [2, 0, 1]


@pytest.mark.parametrize("shape", [((0,),), ((0, 1),), ((0,), (1,))])
def test_an_event_finds_the_more_likely_dataset(shape: Shape) -> None:
    rng = np.random.default_rng(9)
    one, other = (rng.normal(mean, size=(20_000, 2)) for mean in (1.0, -1.0))
    fresh, fresh_other = (rng.normal(mean, size=(20_000, 2)) for mean in (1.0, -1.0))
    promise, event = best_event(learn(one, other, shape), fresh, fresh_other)
    assert promise > 3  # P(x > 1) is 0.5 under D and 0.02 under D'
    assert event.hits(one) > 10 * event.hits(other)
    negated = event.score.negated().of(one)
    assert np.allclose(negated, -event.score.of(one))


def test_ranks_that_are_alike_are_counted_on_the_near_side() -> None:
    rng = np.random.default_rng(11)
    high = (False, True, False)
    near = [rng.beta(1, 1.2, size=(20_000, 3)) for _ in range(2)]
    one, other = (np.where(np.array(high) ^ bool(side), 1 - rows, rows) for side, rows in enumerate(near))
    score = learn_shared(one, other, range(3), high, 2)
    sides = ((one < 0.5) ^ np.array(high)).sum(axis=1)
    assert len(np.unique(score.of(one))) == 4
    assert np.all(np.diff(score.of(one)[np.argsort(sides, kind="stable")]) >= 0)
    back = learn_shared(other, one, range(3), high, 2)
    assert np.array_equal(back.of(one), -score.of(one))


def test_a_line_of_log_odds_foresees_the_counts_of_normal_scores() -> None:
    # log odds of two normal laws of one variance are a line
    rng, n = np.random.default_rng(12), 100_000
    ones, others = (np.sort(rng.normal(mean, size=n)) for mean in (0.25, -0.25))
    thresholds = np.array([-20.0, 0.0, 1.0, 2.0])
    for hits, mean in zip(fitted_hits(ones, others, thresholds), (0.25, -0.25), strict=True):
        chances = stats.norm.sf(thresholds, loc=mean)
        allowed = stats.norm.isf(ALARM / 2) * np.sqrt(n * chances * (1 - chances)) + 1  # not more noise than counts
        assert np.all(np.abs(hits - n * chances) <= allowed)
