"""Baselines: what they take and refuse, what they promise, and that randomness is an argument."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv import Guarantee, InputError, SchemaError
from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Draws, Seed, source
from dipriv.guarantee import AssumptionKind, Model, Neighbouring, ReferenceSource, UnitKind
from dipriv.kernels.laplace import lattice_of
from research.baselines import (
    Ball,
    BoundedMoment,
    Exponential,
    FrequencyResampling,
    Laplace,
    PrivateLogistic,
    checks,
    naive,
)
from research.baselines.naive import sample_range
from tests.unit.refusal import NUMBER, SECRET, refused

LEVELS = tuple(range(10))
VALUES = np.random.default_rng(0).integers(0, 10, 200).astype(float)


class Mechanism(Protocol):
    def privatize(self, values: object, seed: Seed = None) -> FloatArray: ...

    def guarantee(self, seed: Seed = None) -> Guarantee: ...


MECHANISMS: dict[str, Mechanism] = {
    "Laplace": Laplace(1.0, 0, 9),
    "BoundedMoment": BoundedMoment(1.0, radius=6.0, k=3),
    "Ball": Ball(1.0, radius=100.0),
    "Exponential": Exponential(1.0, LEVELS),
    "FrequencyResampling": FrequencyResampling(LEVELS),
}
OF_EPSILON: dict[str, Callable[[Any], Any]] = {
    "Laplace": lambda epsilon: Laplace(epsilon, 0, 1),
    "BoundedMoment": lambda epsilon: BoundedMoment(epsilon, 1.0),
    "Ball": lambda epsilon: Ball(epsilon, 1.0),
    "Exponential": lambda epsilon: Exponential(epsilon, LEVELS),
    "PrivateLogistic": lambda epsilon: PrivateLogistic(epsilon, 1.0),
    "naive": lambda epsilon: naive(np.full((3, 2), NUMBER), epsilon, bounds="sample"),
}
EACH = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
PROMISING = {name: mechanism for name, mechanism in MECHANISMS.items() if name != "FrequencyResampling"}
IN_FLOATING_POINT = ("Ball", "Exponential", "PrivateLogistic")
EACH_EPSILON = pytest.mark.parametrize("build", OF_EPSILON.values(), ids=OF_EPSILON.keys())


@EACH
def test_arrays_go_in_and_out_and_a_seed_repeats_them(mechanism: Mechanism) -> None:
    once = mechanism.privatize(VALUES, seed=3)
    assert once.dtype == np.float64
    assert once.shape == VALUES.shape
    assert np.array_equal(once, mechanism.privatize(VALUES.tolist(), seed=3))
    assert np.array_equal(once, mechanism.privatize(pd.Series(VALUES, dtype="Int64"), seed=3))
    assert np.array_equal(once, mechanism.privatize(VALUES, seed=np.random.SeedSequence(3)))
    assert not np.array_equal(once, mechanism.privatize(VALUES, seed=4))


@EACH
def test_without_a_seed_no_two_calls_agree(mechanism: Mechanism) -> None:
    assert not np.array_equal(mechanism.privatize(VALUES), mechanism.privatize(VALUES))


@EACH
def test_the_values_stay_as_they_are(mechanism: Mechanism) -> None:
    values = VALUES.copy()
    values.flags.writeable = False
    mechanism.privatize(values)
    assert np.array_equal(values, VALUES)


@EACH
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(NUMBER, id="scalar"),
        pytest.param([], id="empty"),
        pytest.param(np.full((3, 2), NUMBER), id="table"),
        pytest.param(np.empty((0, 2)), id="no rows"),
    ],
)
def test_values_are_one_number_a_row(mechanism: Mechanism, values: Any) -> None:
    shape = f"values has shape {np.shape(values)}"
    refused(InputError, shape, "one number a row", call=lambda: mechanism.privatize(values))


@EACH
@pytest.mark.parametrize("hole", [math.nan, math.inf, -math.inf])
def test_nulls_and_infinities_are_refused(mechanism: Mechanism, hole: Any) -> None:
    refused(InputError, "nulls or infinite", "Leave these rows out", call=lambda: mechanism.privatize([NUMBER, hole]))


@EACH
@pytest.mark.parametrize(
    "values",
    [[SECRET, 1], [NUMBER, None], [NUMBER * 10**400], [[NUMBER], [NUMBER, 1]], np.array([NUMBER * 1j])],
    ids=["text", "null", "huge", "ragged", "complex"],
)
def test_what_is_no_number_is_refused_without_being_shown(mechanism: Mechanism, values: Any) -> None:
    words = "values does not hold plain numbers", "array of numbers"
    refused(InputError, *words, call=lambda: mechanism.privatize(values))


@EACH
@pytest.mark.parametrize("rng", [-1, True, "7", 1.5])
def test_a_seed_is_a_whole_number(mechanism: Mechanism, rng: Any) -> None:
    refused(InputError, "seed must be None or a whole number", call=lambda: mechanism.privatize(VALUES, seed=rng))


@EACH_EPSILON
@pytest.mark.parametrize("epsilon", [0, -1.5, math.nan, math.inf, 1e-10, 1e13])
def test_epsilon_must_be_a_usable_number(build: Callable[[Any], Any], epsilon: float) -> None:
    refused(InputError, f"epsilon={float(epsilon)!r}", "above 0", call=lambda: build(epsilon))


@EACH_EPSILON
@pytest.mark.parametrize("epsilon", ["1", True, None, [1.0]], ids=repr)
def test_epsilon_must_be_a_number(build: Callable[[Any], Any], epsilon: Any) -> None:
    refused(InputError, f"expected epsilon as a number, got {type(epsilon).__name__}", call=lambda: build(epsilon))


@EACH_EPSILON
def test_whole_numbers_are_taken_for_epsilon(build: Callable[[Any], Any]) -> None:
    build(1)


@pytest.mark.parametrize("name", OF_EPSILON.keys())
@pytest.mark.parametrize("epsilon", [30, math.nextafter(30, 31), 1e12])
def test_only_exact_noise_takes_an_epsilon_beyond_double_precision(name: str, epsilon: float) -> None:
    if epsilon <= 30 or name not in IN_FLOATING_POINT:
        OF_EPSILON[name](epsilon)
    else:
        words = f"epsilon={epsilon!r} is above 30", "double precision", "smaller epsilon"
        refused(InputError, *words, call=lambda: OF_EPSILON[name](epsilon))


def test_the_columns_of_a_table_share_the_largest_epsilon() -> None:
    naive(np.full((3, 2), NUMBER), 60, method="opm", bounds="sample")
    one = np.full((3, 1), NUMBER)
    refused(InputError, "is above 30", call=lambda: naive(one, 31, method="opm", bounds="sample"))


@pytest.mark.parametrize("build", [OF_EPSILON[name] for name in OF_EPSILON if name != "naive"])
def test_epsilon_is_kept_as_a_float(build: Callable[[Any], Any]) -> None:
    assert json.loads(build(np.float32(0.5)).guarantee().to_json())["epsilon"] == 0.5


BOUNDS_REFUSED: list[tuple[Any, Any, str]] = [
    (1, 1, "not a finite interval"),
    (NUMBER, 1, "not a finite interval"),
    (0, math.inf, "not a finite interval"),
    (-math.inf, 0, "not a finite interval"),
    (0, math.nan, "not a finite interval"),
    (-1e308, 1e308, "not a finite interval"),
    (SECRET, 1, "not two numbers"),
    (None, 1, "not two numbers"),
    (0, NUMBER * 10**400, "not two numbers"),
]


@pytest.mark.parametrize(("lower", "upper", "fault"), BOUNDS_REFUSED)
def test_bounds_are_a_finite_interval_and_not_told(lower: Any, upper: Any, fault: str) -> None:
    words = fault, "finite numbers, the lower one first"
    refused(InputError, "the bounds are", *words, call=lambda: Laplace(1.0, lower, upper))
    table, bounds = np.full((3, 1), NUMBER), {"x0": (lower, upper)}
    refused(InputError, "the bounds of column 'x0' are", *words, call=lambda: naive(table, 1.0, bounds=bounds))


def test_noise_beyond_floating_point_is_refused() -> None:
    refused(InputError, "bounds", call=lambda: Laplace(1e-9, 0, 1e300).privatize(np.full(9, 1e300)))


@pytest.mark.parametrize("radius", [0, -NUMBER, math.inf, math.nan, SECRET, None, NUMBER * 10**400])
@pytest.mark.parametrize("build", [BoundedMoment, Ball, PrivateLogistic])
def test_a_radius_is_finite_above_zero_and_not_told(build: Callable[[float, Any], Any], radius: Any) -> None:
    words = "radius is not a finite number above 0", "positive radius"
    refused(InputError, *words, call=lambda: build(1.0, radius))


def test_bounds_are_kept_as_floats_and_not_shown() -> None:
    """They may have been read from private rows, and a mechanism ends up in logs."""
    laplace = Laplace(1, -NUMBER, NUMBER)
    assert [type(laplace.lower), type(laplace.upper)] == [float, float]
    for mechanism in (laplace, BoundedMoment(1, NUMBER), Ball(1, NUMBER), PrivateLogistic(1, NUMBER)):
        assert "epsilon=1.0" in repr(mechanism)
        assert str(NUMBER) not in repr(mechanism)
    for built in (BoundedMoment(1, NUMBER), Ball(1, NUMBER), PrivateLogistic(1, NUMBER)):
        assert type(built.radius) is float


@pytest.mark.parametrize("k", [1, 0, -2, math.nan])
def test_moments_have_an_order_above_one(k: float) -> None:
    refused(InputError, f"k={k!r}", "above 1", call=lambda: BoundedMoment(1.0, 1.0, k=k))


LEVELS_REFUSED: dict[str, tuple[Any, str, str]] = {
    "none": ([], "ascending order", "a_1 < a_2"),
    "descending": ([NUMBER, 1], "ascending order", "a_1 < a_2"),
    "repeated": ([1, 1], "ascending order", "a_1 < a_2"),
    "two dimensions": ([[1, 2]], "ascending order", "a_1 < a_2"),
    "nan": ([1, math.nan], "levels has nulls or infinite numbers", ""),
    "infinity": ([1, math.inf], "levels has nulls or infinite numbers", ""),
    "text": (["a", SECRET], "levels does not hold plain numbers", "array of numbers"),
    "null": ([NUMBER, None], "levels does not hold plain numbers", "array of numbers"),
}


@pytest.mark.parametrize(
    ("levels", "fault", "remedy"),
    [
        *(pytest.param(*case, id=name) for name, case in LEVELS_REFUSED.items()),
        pytest.param(5, "levels", "", id="scalar"),
    ],
)
def test_levels_are_finite_and_ascend(levels: Any, fault: str, remedy: str) -> None:
    words = fault, remedy
    refused(InputError, *words, call=lambda: Exponential(1.0, levels))
    refused(InputError, *words, call=lambda: FrequencyResampling(levels))


def test_values_between_the_levels_go_up_and_those_beyond_to_the_last() -> None:
    mechanism = Exponential(1.0, (0, 1, 2))
    assert np.array_equal(mechanism.probabilities([-5, 0.5, 9, 2]), mechanism.probabilities([0, 1, 2, 2]))
    assert set(FrequencyResampling((0, 1, 2)).privatize([0.5, 9.0] * 20)) == {1.0, 2.0}


# guarantees


def test_what_each_mechanism_promises() -> None:
    said = {name: mechanism.guarantee() for name, mechanism in MECHANISMS.items()}
    said["PrivateLogistic"] = PrivateLogistic(1.0, 1.0).guarantee()
    assert {name: (one.epsilon, one.unit.kind, one.model) for name, one in said.items()} == {
        "Laplace": (1.0, UnitKind.VALUE, Model.CENTRAL),
        "BoundedMoment": (1.0, UnitKind.VALUE, Model.CENTRAL),
        "Ball": (1.0, UnitKind.VECTOR, Model.LOCAL),
        "Exponential": (1.0, UnitKind.ROW, Model.CENTRAL),
        "FrequencyResampling": (math.inf, UnitKind.ROW, Model.NONE),
        "PrivateLogistic": (1.0, UnitKind.ROW, Model.LOCAL),
    }
    assert all(one.reference.source is ReferenceSource.NONE and one.delta == 0 for one in said.values())
    assert said["Ball"].neighbouring is Neighbouring.ANY_TWO
    floating = [name for name, one in said.items() if one.assumes(AssumptionKind.FLOATING_POINT_NOISE)]
    assert tuple(floating) == IN_FLOATING_POINT


@pytest.mark.parametrize("mechanism", PROMISING.values(), ids=PROMISING.keys())
def test_a_seed_takes_the_guarantee_away(mechanism: Mechanism) -> None:
    assert mechanism.guarantee().secure_randomness
    assert "SEEDED" not in str(mechanism.guarantee())
    assert not mechanism.guarantee(seed=0).secure_randomness
    assert "NOT PRIVATE: SEEDED" in str(mechanism.guarantee(seed=0))


def test_private_bounds_are_admitted() -> None:
    pairs: list[tuple[Mechanism, Mechanism]] = [
        (Laplace(1.0, 0, NUMBER), Laplace(1.0, 0, NUMBER, read_from_rows=True)),
        (BoundedMoment(1.0, NUMBER), BoundedMoment(1.0, NUMBER, read_from_rows=True)),
        (Ball(1.0, NUMBER), Ball(1.0, NUMBER, read_from_rows=True)),
    ]
    for public, private in pairs:
        assert public.guarantee().assumes(AssumptionKind.PARAMETER_PUBLIC)
        assert not public.guarantee().assumes(AssumptionKind.PARAMETER_READ_FROM_ROWS)
        assert private.guarantee().assumes(AssumptionKind.PARAMETER_READ_FROM_ROWS)
        assert not private.guarantee().assumes(AssumptionKind.PARAMETER_PUBLIC)
        assert str(NUMBER) not in str(private.guarantee())
        assert np.array_equal(public.privatize(VALUES, seed=1), private.privatize(VALUES, seed=1))


def test_no_privacy_is_said_in_full() -> None:
    for rng in (None, 0):
        said = FrequencyResampling(LEVELS).guarantee(rng)
        assert str(said).startswith("No guarantee: ")
        assert "is not differentially private. It protects nobody." in str(said)
        assert "ε" not in str(said)
        assert json.loads(said.to_json())["epsilon"] == "inf"
        assert said.secure_randomness is (rng is None)
        assert said.power() == 1.0


# ranges and lengths


def test_the_limit_grows_with_the_rows_as_the_moment_allows() -> None:
    for n, epsilon, k in ((1, 1.0, 2.0), (500, 0.3, 3.0), (10**6, 4.0, 20.0)):
        limit = BoundedMoment(epsilon, radius=2.5, k=k).limit(n)
        assert (limit / 2.5) ** (2 * k) == pytest.approx(n * epsilon**2)
    assert BoundedMoment(0.3, radius=2.5).limit(500) == 2.5


def test_with_every_moment_bounded_it_is_the_laplace_mechanism() -> None:
    values = np.linspace(-9, 9, 50)
    bounded, half = BoundedMoment(0.7, 3.0), BoundedMoment(0.7, 3.0, nonnegative=True)
    assert np.array_equal(bounded.privatize(values, seed=1), Laplace(0.7, -3, 3).privatize(values, seed=1))
    assert np.array_equal(half.privatize(values, seed=1), Laplace(0.7, 0, 3).privatize(values, seed=1))


def test_values_are_held_to_their_range() -> None:
    """With the same noise, a value beyond an end is released as the end is."""
    for mechanism, ends in (
        (Laplace(1.0, -1, 4), (-1.0, 4.0)),
        (BoundedMoment(2.0, 1.0, k=4), (-(40 ** (1 / 8)), 40 ** (1 / 8))),
        (BoundedMoment(2.0, 1.0, k=4, nonnegative=True), (0.0, 40 ** (1 / 8))),
    ):
        for beyond, end in zip((-1e300, 1e300), ends, strict=True):
            far, near = (mechanism.privatize(np.full(10, value), seed=1) for value in (beyond, end))
            assert far == pytest.approx(near, abs=1e-9)


def test_the_length_follows_the_recurrence_of_the_sphere() -> None:
    """E|s_1| is 1 in one dimension, and that of d times that of d + 1 is 2/(π d): no gamma function needed."""
    ball, mean_size = Ball(1.3, radius=2.0), 1.0
    for d in range(1, 1200):
        assert ball.length(d) == pytest.approx(2.0 / math.tanh(0.65) / mean_size, rel=1e-11)
        mean_size = 2 / (math.pi * d * mean_size)
    for d in (1000, 10**6, 10**9):
        assert ball.length(d) == pytest.approx(2.0 / math.tanh(0.65) * math.sqrt(math.pi * d / 2), rel=1 / d + 1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 1000])
@pytest.mark.parametrize("size", [0.0, 1e-200, 0.3, 1.0, 50.0, 1e100])
def test_released_vectors_have_one_length(dimension: int, size: float) -> None:
    ball = Ball(0.5, radius=1.0)
    vector = np.full(dimension, size / math.sqrt(dimension))
    for seed in range(10):
        assert np.linalg.norm(ball.privatize(vector, seed=seed)) == pytest.approx(ball.length(dimension), rel=1e-12)


@pytest.mark.parametrize("factor", [1.0, 7.0, 1e100])
def test_long_vectors_are_shortened(factor: float) -> None:
    ball, vector = Ball(1.0, radius=5.0), np.array([3.0, 4.0])
    for seed in range(50):
        assert ball.privatize(factor * vector, seed=seed) == pytest.approx(ball.privatize(vector, seed=seed))


def test_the_longest_vectors_are_shortened_too() -> None:
    ball = Ball(30.0, radius=1.0)
    assert all(ball.privatize([1e200], seed=seed)[0] > 0 for seed in range(20))


@pytest.mark.parametrize("word", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_uniforms_lie_inside_the_interval_and_off_its_middle(monkeypatch: pytest.MonkeyPatch, word: int) -> None:
    """Odd multiples of 2^-53: the normal quantile is finite, and never 0, which would have no direction."""
    monkeypatch.setattr(Draws, "words", lambda *_: np.array([word], dtype=np.uint64))
    u = float(checks.uniforms(source(1), 1)[0])
    assert 0 < u < 1
    assert u != 0.5
    assert Fraction(u) * 2**53 == 2 * (word >> 12) + 1


# logistic regression

X = np.random.default_rng(1).normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(float)
LOGISTIC = PrivateLogistic(1.0, radius=2.0)


def test_coefficients_repeat_with_a_seed_only() -> None:
    fitted = LOGISTIC.fit(X, Y, seed=1)
    assert fitted.shape == (3,)
    assert np.array_equal(fitted, LOGISTIC.fit(X, Y.astype(bool), seed=1))
    assert not np.array_equal(fitted, LOGISTIC.fit(X, Y, seed=2))
    assert not np.array_equal(LOGISTIC.fit(X, Y), LOGISTIC.fit(X, Y))
    assert "NOT PRIVATE: SEEDED" in str(LOGISTIC.guarantee(seed=1))


@pytest.mark.parametrize(
    ("x", "y"),
    [(X[:-1], Y), (X[:, 0], Y), (X[:, :0], Y), (X[..., None], Y)],
    ids=["fewer rows", "one dimension", "no columns", "three dimensions"],
)
def test_every_row_has_its_response(x: Any, y: Any) -> None:
    shapes = f"x has shape {x.shape}, y {y.shape}"
    refused(InputError, shapes, "one response for each row", call=lambda: LOGISTIC.fit(x, y))


@pytest.mark.parametrize("y", [Y * NUMBER, Y - 0.5], ids=["large", "halves"])
def test_responses_are_zero_or_one(y: Any) -> None:
    words = "y holds numbers other than 0 and 1", "one 0 or 1 for each row"
    refused(InputError, *words, call=lambda: LOGISTIC.fit(X, y))


def test_responses_have_no_nulls() -> None:
    refused(InputError, "y has nulls", call=lambda: LOGISTIC.fit(X, np.where(Y > 0, np.nan, Y)))
    refused(InputError, "y has shape (0,)", call=lambda: LOGISTIC.fit(X[:0], Y[:0]))


@pytest.mark.parametrize(
    "scale",
    [
        1e9,
        1e200,
    ],
)
def test_long_rows_are_shortened(scale: float) -> None:
    """At scale 1e3 and beyond every row has length 2, whatever the scale."""
    assert LOGISTIC.fit(1e3 * X, Y, seed=1) == pytest.approx(LOGISTIC.fit(scale * X, Y, seed=1), rel=1e-9)


@pytest.mark.parametrize("hole", [math.nan, math.inf])
def test_rows_have_no_nulls(hole: float) -> None:
    words = "x has nulls or infinite numbers", "Leave these rows out"
    refused(InputError, *words, call=lambda: LOGISTIC.fit(np.where(X > 1, hole, X), Y))


def test_rows_and_responses_are_numbers() -> None:
    refused(InputError, "x does not hold plain numbers", call=lambda: LOGISTIC.fit([[SECRET], [NUMBER]], [0, 1]))
    refused(InputError, "y does not hold plain numbers", call=lambda: LOGISTIC.fit([[NUMBER], [NUMBER]], [SECRET, 1]))


@pytest.mark.parametrize(
    "x",
    [np.asfortranarray(X), X.astype(np.float32), X.tolist(), pd.DataFrame(X)],
    ids=["by columns", "float32", "lists", "pandas"],
)
def test_rows_come_in_any_form(x: Any) -> None:
    plain = np.array(x, dtype=np.float64, order="C")
    assert np.array_equal(LOGISTIC.fit(x, Y, seed=1), LOGISTIC.fit(plain, Y, seed=1))


def test_a_row_of_zeros_is_a_row() -> None:
    assert np.isfinite(PrivateLogistic(1.0, radius=1e9).fit(np.zeros((4, 2)), np.ones(4), seed=1)).all()


# tables

FRAME = pd.DataFrame(
    {
        "whole": np.arange(-3, 5),
        "flag": [True, False] * 4,
        "real": np.linspace(0, 1, 8),
        "short": np.arange(8, dtype=np.float32),
        "tiny": np.arange(8, dtype=np.uint8),
    },
    index=pd.Index(list("hgfedcba"), name="who"),
)
ARRAY = FRAME.to_numpy(dtype=np.float64)
BOUNDS = {"whole": (-3, 4), "flag": (0, 1), "real": (0.0, 1.0), "short": (0, 7), "tiny": (0, 7)}
METHODS = pytest.mark.parametrize("method", ["lrm", "opm"])


@METHODS
def test_every_library_gets_the_same_numbers_back(method: Any) -> None:
    table = pa.Table.from_pandas(FRAME, preserve_index=False).replace_schema_metadata(None)
    polars = pl.from_arrow(table)
    in_pandas = naive(FRAME, 2.0, method=method, bounds=BOUNDS, seed=1).data
    in_polars = naive(polars, 2.0, method=method, bounds=BOUNDS, seed=1).data
    in_arrow = naive(table, 2.0, method=method, bounds=BOUNDS, seed=1).data
    in_numpy = naive(ARRAY, 2.0, method=method, bounds=dict(zip(_x(5), BOUNDS.values(), strict=True)), seed=1).data
    assert type(in_pandas) is pd.DataFrame
    assert type(in_polars) is pl.DataFrame
    assert type(in_arrow) is pa.Table
    assert type(in_numpy) is np.ndarray
    assert (in_pandas.dtypes == "float64").all()
    assert set(in_polars.dtypes) == {pl.Float64}
    assert set(in_arrow.schema.types) == {pa.float64()}
    assert in_numpy.dtype == np.float64
    assert list(in_pandas.columns) == in_polars.columns == in_arrow.column_names == list(FRAME.columns)
    for other in (in_polars.to_numpy(), in_arrow.to_pandas().to_numpy(), in_numpy):
        assert np.array_equal(other, in_pandas.to_numpy())
    assert not np.isclose(in_numpy, ARRAY).any()


def _x(columns: int) -> list[str]:
    return [f"x{number}" for number in range(columns)]


@pytest.mark.parametrize(
    "index",
    [
        FRAME.index,
        pd.Index(list("aaaabbbb")),
        pd.RangeIndex(100, 84, -2),
        pd.MultiIndex.from_product([["a", "b"], range(4)]),
    ],
    ids=["letters", "repeated", "backwards", "two levels"],
)
def test_pandas_keeps_its_index_and_rows_stay_in_place(index: pd.Index) -> None:
    released = naive(FRAME.set_axis(index), 2.0, bounds=BOUNDS, seed=1).data
    pd.testing.assert_index_equal(released.index, index)
    assert np.array_equal(released.to_numpy(), naive(FRAME, 2.0, bounds=BOUNDS, seed=1).data.to_numpy())


def test_the_table_stays_as_it_is() -> None:
    frame, polars = FRAME.copy(), pl.from_pandas(FRAME)
    array = ARRAY.copy()
    array.flags.writeable = False
    for table in (frame, polars, array):
        naive(table, 1.0, bounds="sample")
    pd.testing.assert_frame_equal(frame, FRAME)
    assert polars.equals(pl.from_pandas(FRAME))


@pytest.mark.parametrize(
    "columns",
    [
        pd.RangeIndex(2),
        pd.Index(["a", 3], dtype=object),
        pd.Index([1.5, math.nan]),
        pd.to_datetime(["2020-01-01", "2020-02-01"]),
        pd.CategoricalIndex(["u", "v"], name="which"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["p", "q"]),
    ],
    ids=["numbers", "mixed", "nan", "dates", "categories", "two levels"],
)
@METHODS
def test_no_private_column_stays_beside_the_released_one(columns: pd.Index, method: Any) -> None:
    frame = pd.DataFrame(np.arange(20.0).reshape(10, 2), columns=columns)
    released = naive(frame, 1.0, method=method, bounds="sample", seed=1).data
    assert released.shape == frame.shape
    pd.testing.assert_index_equal(released.columns, columns)
    assert not np.isclose(released.to_numpy(), frame.to_numpy()).any()
    named = frame.set_axis(["x0", "x1"], axis=1)
    same = naive(named, 1.0, method=method, bounds="sample", seed=1).data
    assert np.array_equal(released.to_numpy(), same.to_numpy())


def test_names_that_read_alike_are_refused() -> None:
    frame = pd.DataFrame(np.full((3, 2), NUMBER), columns=pd.Index([0, "0"], dtype=object))
    refused(InputError, "column name '0' occurs 2 times", call=lambda: naive(frame, 1.0, bounds="sample"))


def test_a_record_batch_is_a_table() -> None:
    batch = pa.RecordBatch.from_pandas(FRAME, preserve_index=False)
    assert naive(batch, 1.0, bounds=BOUNDS, seed=1).data.column_names == list(FRAME.columns)


@METHODS
def test_notes_on_the_private_table_are_not_released(method: Any) -> None:
    notes = {"note": SECRET}
    schema = pa.schema([pa.field("a", pa.float32(), nullable=False, metadata=notes)], metadata=notes)
    table = pa.table({"a": [1.0, 2.0]}, schema=schema)
    for arrow in (table, table.to_batches()[0]):
        released = naive(arrow, 1.0, method=method, bounds="sample").data.schema
        assert released.equals(pa.schema([pa.field("a", pa.float64())]), check_metadata=True)
    frame = table.to_pandas()
    frame.attrs = notes
    assert naive(frame, 1.0, method=method, bounds="sample").data.attrs == {}


@METHODS
def test_tables_repeat_with_a_seed_only(method: Any) -> None:
    def released(seed: Seed) -> FloatArray:
        return np.asarray(naive(ARRAY, 1.0, method=method, bounds="sample", seed=seed).data)

    assert np.array_equal(released(7), released(7))
    assert np.array_equal(released(7), released(np.random.SeedSequence(7)))
    assert not np.isclose(released(7), released(8)).any()
    assert not np.isclose(released(None), released(None)).any()


@METHODS
def test_columns_do_not_share_their_noise(method: Any) -> None:
    same = np.zeros((50, 4))
    for rng in (3, None):
        released = naive(same, 1.0, method=method, bounds=dict.fromkeys(_x(4), (-1, 1)), seed=rng).data
        assert len(np.unique(released)) == 200


@settings(max_examples=60)
@given(
    epsilon=st.floats(1e-6, 1e6) | st.integers(1, 100).map(float) | st.integers(1, 19).map(lambda whole: 2.0**-whole),
    columns=st.integers(1, 40),
    method=st.sampled_from(["lrm", "opm"]),
)
def test_the_shares_never_add_up_to_more_than_epsilon(epsilon: float, columns: int, method: Any) -> None:
    module = importlib.import_module("research.baselines.naive")
    shares: list[Fraction] = []
    lattices: list[Fraction] = []
    if method == "opm":
        epsilon = min(epsilon, checks.MAX_FLOATING_EPSILON * columns)

    def laplace(share: float, lower: float, upper: float) -> Laplace:
        shares.append(Fraction(share))
        bits, scale = lattice_of(Fraction(share))
        lattices.append(Fraction(1 << bits, scale))
        return Laplace(share, lower, upper)

    def ball(share: float, radius: float) -> Ball:
        shares.append(Fraction(share))
        return Ball(share, radius)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Laplace", laplace)
        patch.setattr(module, "Ball", ball)
        naive(np.ones((1, columns)), epsilon, method=method, bounds="sample", seed=1)
    assert len(shares) == columns
    assert len(set(shares)) == 1
    assert sum(shares) <= Fraction(epsilon)
    assert sum(lattices) <= Fraction(epsilon)
    assert sum(shares) >= Fraction(epsilon) * (1 - Fraction(1, 2**50))


def test_control_plain_division_would_overspend() -> None:
    assert any(columns * Fraction(1.0 / columns) > 1 for columns in range(2, 40))


@METHODS
def test_what_a_table_is_promised(method: Any) -> None:
    release = naive(ARRAY, 2.0, method=method, bounds=dict(zip(_x(5), BOUNDS.values(), strict=True)))
    said = release.guarantee
    assert said.epsilon == 2.0
    assert said.secure_randomness
    assert "ε/5 each" in said.kernel
    assert checks.about("bounds") in said.assumptions
    whole = method == "opm"
    assert said.unit.kind is (UnitKind.TABLE if whole else UnitKind.ROW)
    assert said.neighbouring is (Neighbouring.ANY_TWO if whole else Neighbouring.SUBSTITUTE_ONE)
    assert release.n_rows == len(ARRAY)
    seen = naive(ARRAY, 2.0, method=method, bounds="sample", seed=1).guarantee
    assert seen.assumes(AssumptionKind.PARAMETER_READ_FROM_ROWS)
    assert not seen.assumes(AssumptionKind.PARAMETER_PUBLIC)
    assert "NOT PRIVATE: SEEDED" in str(seen)


@METHODS
def test_a_table_of_balls_admits_floating_point(method: Any) -> None:
    said = naive(ARRAY, 2.0, method=method, bounds="sample").guarantee
    assert (checks.FLOATING in said.assumptions) is (method == "opm")


def test_ranges_of_the_sample_are_those_of_the_paper() -> None:
    assert sample_range(np.array([0.0, 2.0, 7.0])) == (0.0, 7.0)
    assert sample_range(np.array([3.0, -9.0, 7.0])) == (-9.0, 9.0)
    assert sample_range(np.zeros(3)) == (0.0, 1.0)
    frame = pd.DataFrame({"a": [0.0, 2.0], "b": [-5.0, 2.0]})
    public = naive(frame, 1.0, bounds={"a": (0, 2), "b": (-5, 5)}, seed=1).data
    pd.testing.assert_frame_equal(naive(frame, 1.0, bounds="sample", seed=1).data, public)


NOT_NUMBERS: dict[str, tuple[Any, type[InputError], str]] = {
    "text": (pd.Series([SECRET, "b"]), InputError, "column 'odd' does not hold numbers"),
    "categories": (pd.Series([SECRET, "b"], dtype="category"), InputError, "column 'odd' does not hold numbers"),
    "numbers as categories": (pd.Series([NUMBER, 1], dtype="category"), InputError, "does not hold numbers"),
    "times": (pd.Series([pd.Timestamp(NUMBER)] * 2), InputError, "column 'odd' does not hold numbers"),
    "nulls": (pd.Series([NUMBER, None], dtype="Int64"), InputError, "column 'odd' has nulls"),
    "nan": (pd.Series([NUMBER, math.nan]), InputError, "column 'odd' has nulls"),
    "infinity": (pd.Series([NUMBER, math.inf]), InputError, "column 'odd' holds infinite"),
    "mixed": (pd.Series([SECRET, NUMBER], dtype=object), SchemaError, "column 'odd'"),
}


@pytest.mark.parametrize(("column", "error", "words"), NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
@METHODS
def test_columns_must_hold_numbers(column: Any, error: type[InputError], words: str, method: Any) -> None:
    frame = pd.DataFrame({"fine": [NUMBER, 2], "odd": column})
    refused(error, words, call=lambda: naive(frame, 1.0, method=method, bounds="sample"))


@pytest.mark.parametrize("hole", [None, math.nan])
def test_nan_and_null_are_both_refused_where_they_differ(hole: float | None) -> None:
    table = pa.table({"odd": pa.array([float(NUMBER), hole], from_pandas=False)})
    refused(InputError, "column 'odd' has nulls", call=lambda: naive(table, 1.0, bounds="sample"))


def test_every_column_needs_bounds_and_no_other() -> None:
    frame = pd.DataFrame({"a": [NUMBER, 1], "b": [NUMBER, 2]})
    some = {"a": (0, 1)}
    refused(InputError, "column 'b' has no bounds", call=lambda: naive(frame, 1.0, bounds=some))
    more = some | {"b": (0, 1), "c": (0, 1)}
    refused(InputError, "bounds names 'c'", call=lambda: naive(frame, 1.0, bounds=more))


BOUNDS_OF_ONE_COLUMN: list[tuple[Any, str]] = [
    ("auto", "expected bounds as a mapping of columns, got str"),
    (None, "expected bounds as a mapping of columns, got NoneType"),
    (5, "expected bounds as a mapping of columns, got int"),
    ({"x0": NUMBER}, "the bounds of column 'x0' are not a pair"),
    ({"x0": (0, 1, NUMBER)}, "the bounds of column 'x0' are not a pair"),
    ({"x0": "no"}, "the bounds of column 'x0' are not two numbers"),
]


@pytest.mark.parametrize(("bounds", "fault"), BOUNDS_OF_ONE_COLUMN)
def test_bounds_are_pairs(bounds: Any, fault: str) -> None:
    refused(InputError, fault, call=lambda: naive(np.full((3, 1), NUMBER), 1.0, bounds=bounds))


def test_only_two_methods_are_known() -> None:
    odd: Any = "exm"
    words = "method='exm'", '"lrm" or "opm"'
    refused(InputError, *words, call=lambda: naive(np.full((3, 1), NUMBER), 1.0, method=odd, bounds="sample"))


@pytest.mark.parametrize("table", [np.empty((0, 2)), pd.DataFrame({"x": []}), pl.DataFrame(), np.empty((3, 0)), [[1]]])
def test_a_table_has_rows_and_columns(table: Any) -> None:
    refused(InputError, call=lambda: naive(table, 1.0, bounds="sample"))
