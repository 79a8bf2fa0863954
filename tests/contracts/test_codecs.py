"""The contract that every codec passes: inverse in law (Lemma S1), continuous, total, dtype-keeping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from dipriv import _serialization
from dipriv._base.arrays import FloatArray
from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues, Storage
from dipriv.codecs import Codec
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.fit import fit_codec
from dipriv.codecs.levels import LatticeCodec, LevelsCodec
from dipriv.codecs.one_hot import OneHotCodec
from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, OrderedCodes
from dipriv.codecs.real import RealCodec
from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Mixed
from tests.contracts import contributions
from tests.contracts.codec_case import Case
from tests.support import dkw, draws, ks_uniform

INT = Storage("integer", np.dtype(np.int64), "int64")
INT8 = Storage("integer", np.dtype(np.int8), "int8")
REAL = Storage("real", np.dtype(np.float64), "double")
REAL32 = Storage("real", np.dtype(np.float32), "float")
BOOL = Storage("boolean", np.dtype(np.uint8), "bool")
TIME = Storage("temporal", np.dtype(np.int64), "timestamp[s]", 1_000_000_000)
TEXT = Storage("label", np.dtype(np.int32), "text")

_rng = np.random.default_rng(11)
_day = 86_400 * _rng.integers(-3000, 20000, 500)
_mixed = np.where(_rng.random(500) < 0.4, 0.0, _rng.exponential(size=500))


def octaves(line: OrderedCodes) -> Callable[[NDArray[Any], tuple[int, ...]], Codec]:
    """Bins as wide as the octaves that hold values: powers of two of codes."""

    def build(values: NDArray[Any], kinds: tuple[int, ...]) -> Codec:
        every = line.octaves.starts
        held = np.unique(np.searchsorted(every, line.to_codes(values), side="right") - 1)
        sizes = np.append(every[1:], line.last)[held] - every[held]
        return BinnedCodec(line, every[held], sizes.astype(np.uint64), kinds)

    return build


def single(line: OrderedCodes) -> Callable[[NDArray[Any], tuple[int, ...]], Codec]:
    """A bin for each value."""

    def build(values: NDArray[Any], kinds: tuple[int, ...]) -> Codec:
        codes = np.unique(line.to_codes(values))
        return BinnedCodec(line, codes, np.ones(len(codes), dtype=np.uint64), kinds)

    return build


def ranks(order: list[int], storage: Storage) -> Callable[[NDArray[Any], tuple[int, ...]], Codec]:
    levels = np.arange(len(order), dtype=storage.dtype)
    return lambda values, kinds: RankedLevelsCodec(levels, np.array(order), kinds)


CASES: dict[str, Case] = {
    "continuous": Case(Continuous(), REAL, None, _rng.normal(size=500)),
    "continuous float32": Case(Continuous(), REAL32, None, _rng.normal(size=500).astype(np.float32)),
    "continuous with bounds": Case(Continuous(0.0, 1.0), REAL, None, _rng.random(500)),
    "continuous, huge": Case(Continuous(), REAL, None, 1e300 * _rng.normal(size=500)),
    "continuous, tiny": Case(Continuous(), REAL, None, 1e-300 * _rng.normal(size=500)),
    "discrete levels, unequal": Case(Discrete(), REAL, None, _rng.choice([-1e9, 0.5, 0.75, 3.0, 1e17], 500)),
    "discrete levels, int8": Case(Discrete(), INT8, None, _rng.choice([-128, 0, 127], 500).astype(np.int8)),
    "discrete step 1": Case(Discrete(step=1), INT, None, _rng.integers(-50, 4000, 500)),
    "discrete step 5": Case(Discrete(step=5), INT, None, 5 * _rng.integers(-50, 4000, 500)),
    "discrete cents": Case(Discrete(step=0.01), REAL, None, np.round(_rng.lognormal(3, 1, 500), 2)),
    "discrete int64 beyond 2^53": Case(Discrete(), INT, None, _rng.choice([-(2**63), 2**53 + 1, 2**63 - 1], 500)),
    "mixed": Case(Mixed(), REAL, None, _mixed),
    "mixed, large atoms": Case(Mixed(atoms=(-1e17, 0.0, 1e17)), REAL, None, np.append(_mixed, [-1e17, 1e17])),
    "mixed, small scale": Case(Mixed(atoms=(0.0,)), REAL, None, 1e-9 * _mixed),
    "categorical": Case(Categorical(), TEXT, 4, _rng.integers(0, 4, 500).astype(np.int32)),
    "categorical onehot": Case(Categorical(encoding="onehot"), TEXT, 4, _rng.integers(0, 4, 500).astype(np.int32)),
    "boolean": Case(Categorical(), BOOL, None, (_rng.random(500) < 0.3).astype(np.uint8)),
    "datetime, days in seconds": Case(Datetime(), TIME, None, _day),
    "one level": Case(Discrete(), INT, None, np.full(500, 7)),
    "one level onehot": Case(Categorical(encoding="onehot"), TEXT, 1, np.zeros(500, dtype=np.int32)),
    "bins of reals": Case(Continuous(), REAL, None, _rng.normal(size=500), octaves(FloatBitCodes.of(REAL.dtype))),
    "bins of positive reals": Case(
        Continuous(0.0), REAL, None, _rng.exponential(size=500), octaves(FloatBitCodes.of(REAL.dtype, 0.0))
    ),
    "bins of float32": Case(
        Continuous(), REAL32, None, _rng.normal(size=500).astype(np.float32), octaves(FloatBitCodes.of(REAL32.dtype))
    ),
    "bins of whole numbers": Case(
        Discrete(step=1), INT, None, _rng.integers(-50, 4000, 500), octaves(GridCodes.of(INT.dtype))
    ),
    "bins of cents": Case(
        Discrete(step=0.01),
        REAL,
        None,
        np.round(_rng.lognormal(3, 1, 500), 2),
        octaves(GridCodes.of(REAL.dtype, 1, 100)),
    ),
    "bins of days in seconds": Case(Datetime(), TIME, None, _day, octaves(GridCodes.of(TIME.dtype, 86_400))),
    "bins of one value, int8": Case(
        Discrete(), INT8, None, _rng.choice([-128, 0, 127], 500).astype(np.int8), single(GridCodes.of(INT8.dtype))
    ),
    "bins of one value, int64": Case(
        Discrete(), INT, None, _rng.choice([-(2**63), 2**53 + 1, 2**63 - 1], 500), single(GridCodes.of(INT.dtype))
    ),
    "bins of one value, reals": Case(
        Discrete(), REAL, None, _rng.choice([-1e9, 0.5, 0.75, 3.0, 1e17], 500), single(FloatBitCodes.of(REAL.dtype))
    ),
    "ranks": Case(Categorical(), TEXT, 4, _rng.integers(0, 4, 500).astype(np.int32), ranks([2, 0, 3, 1], TEXT)),
    "ranks of a boolean": Case(
        Categorical(), BOOL, None, (_rng.random(500) < 0.3).astype(np.uint8), ranks([1, 0], BOOL)
    ),
}
for module in contributions():
    CASES |= getattr(module, "CODEC_CASES", {})
WITH_ATOMS = {name: case for name, case in CASES.items() if not isinstance(case.kind, Continuous)}
every_codec = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_missing = pytest.mark.parametrize(
    "kinds", [(), (NULL,), (NAN,), (NULL, NAN)], ids=["none", "null", "nan", "both"]
)


def cells_of(values: NDArray[Any], kinds: tuple[int, ...]) -> ColumnValues:
    if not kinds:
        return ColumnValues(values)
    states = np.array([PRESENT, PRESENT, *kinds], dtype=np.uint8)
    return ColumnValues(values, states[np.arange(len(values)) % len(states)])


def fit(case: Case, kinds: tuple[int, ...] = ()) -> tuple[Codec, ColumnValues]:
    cells = cells_of(case.values, kinds)
    if case.build is not None:
        return case.build(case.values, kinds), cells
    return fit_codec("column", case.kind, case.storage, case.levels, cells), cells


def encode(codec: Codec, cells: ColumnValues, seed: int) -> FloatArray:
    return codec.encode(cells, draws(seed, len(cells)))


def same(left: ColumnValues, right: ColumnValues) -> bool:
    """Equal where present, and missing in the same way."""
    states = [c.missing if c.missing is not None else np.zeros(len(c), np.uint8) for c in (left, right)]
    here = states[0] == PRESENT
    close = np.isclose(left.values[here], right.values[here], rtol=1e-12, atol=1e-15 * np.max(np.abs(left.values)))
    return bool(np.array_equal(states[0], states[1]) and np.all(close))


@every_codec
@every_missing
def test_decode_inverts_encode(case: Case, kinds: tuple[int, ...]) -> None:
    codec, cells = fit(case, kinds)
    v = encode(codec, cells, 1)
    assert v.shape == (len(cells), codec.dims)
    assert np.all(np.isfinite(v))
    assert np.all(v >= np.array(codec.lower))
    decoded = codec.decode(v)
    assert decoded.values.dtype == cells.values.dtype
    assert same(cells, decoded)


@every_codec
@every_missing
def test_any_real_decodes_into_the_support(case: Case, kinds: tuple[int, ...]) -> None:
    """Whatever a reference hands back, levels stay levels and whole numbers stay on their lattice."""
    kind, values = case.kind, case.values
    codec, _ = fit(case, kinds)
    v = np.linspace(-60, 60, 999).reshape(-1, 1).repeat(codec.dims, axis=1)
    decoded = codec.decode(v)
    assert len(decoded) == len(v)
    if isinstance(kind, Categorical) or (isinstance(kind, Discrete) and kind.step is None):
        assert set(decoded.present.tolist()) <= set(values.tolist()) | set(range(2 if case.storage is BOOL else 0))
    if isinstance(kind, Discrete) and kind.step == 5:
        assert not np.any(decoded.present % 5)
    assert set(decoded.kinds_missing) <= set(kinds)


@pytest.mark.parametrize("case", WITH_ATOMS.values(), ids=WITH_ATOMS.keys())
def test_atoms_are_spread_uniformly(case: Case) -> None:
    """Lemma S1: given Z = z the encoded V is uniform on an interval, so V has a continuous CDF."""
    kind, values = case.kind, case.values
    codec, _ = fit(case)
    n = 20_000
    atom = 0.0 if isinstance(kind, Mixed) else values[0]
    v = encode(codec, ColumnValues(np.full(n, atom, dtype=values.dtype)), 2)
    for column in range(codec.dims):
        low, high = v[:, column].min(), v[:, column].max()
        width = 2.0 ** np.ceil(np.log2(high - low))  # intervals are powers of two long
        spread = -np.log(1e-6) / n  # the largest of n uniforms is closer to the end than this, but once in a million
        assert ks_uniform((v[:, column] - (high - width)) / width) < dkw(n) + spread
        assert ks_uniform(((v[:, column] - (high - width)) / width) ** 1.1) > dkw(n)  # control


@every_codec
@every_missing
def test_a_codec_travels_in_a_file(case: Case, kinds: tuple[int, ...]) -> None:
    """Registered classes are rebuilt from plain data, and encode with the same bits to the same reals."""
    codec, cells = fit(case, kinds)
    again = _serialization.load(_serialization.dump(codec))
    assert type(again) is type(codec)
    assert again.dtype == codec.dtype == cells.values.dtype
    assert np.array_equal(encode(again, cells, 5), encode(codec, cells, 5))


@every_codec
def test_encode_is_total_and_keeps_the_order(case: Case) -> None:
    """Values never seen in the reference rows, nulls included, get a finite place or the line's low end.

    Among bins a null without a state of its own has a place anywhere, so that it adds to no bin more than to others.
    """
    codec, cells = fit(case)
    if isinstance(codec, OneHotCodec | RankedLevelsCodec) or cells.values.dtype.kind not in "if":
        strange = ColumnValues(np.array([100, 99], dtype=cells.values.dtype), np.array([PRESENT, NULL], dtype=np.uint8))
        assert np.all(np.isfinite(encode(codec, strange, 3)))
        return
    info: Any = np.iinfo(cells.values.dtype) if cells.values.dtype.kind == "i" else np.finfo(cells.values.dtype)
    extremes = np.array([info.min, 0, info.max], dtype=cells.values.dtype)
    v = encode(codec, ColumnValues(np.sort(np.append(extremes, cells.values))), 3)[:, 0]
    assert not np.any(np.isnan(v))
    z = np.sort(np.append(extremes, cells.values))
    assert np.all(np.diff(v)[np.diff(z.astype(np.float64)) > 0] >= 0)
    missing = ColumnValues(cells.values[:1], np.array([NULL], dtype=np.uint8))
    place = encode(codec, missing, 4)[0, 0]
    assert 0 < place <= codec.states if isinstance(codec, BinnedCodec) else place == codec.lower[0]


@settings(max_examples=200)
@given(
    hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e200, 1e200)),
    st.lists(st.floats(-1e200, 1e200), max_size=5, unique=True),
)
def test_mixed_lines_round_trip(z: NDArray[np.float64], atoms: list[float]) -> None:
    scale = max(float(np.median(np.abs(z))), 1e-200)
    line = AtomsLine.around(np.array(atoms), unit=2.0 ** np.ceil(np.log2(scale)))
    every = np.append(z, atoms)
    codec = RealCodec(line, np.dtype(np.float64))
    back = codec.decode(encode(codec, ColumnValues(every), 0)).values
    assert np.all(np.isin(back[len(z) :], atoms))
    near = np.abs(back - every) <= 2.0**-28 * np.maximum(np.abs(every), scale * max(1, len(atoms)))
    assert np.all(near)


@settings(max_examples=200)
@given(hnp.arrays(np.int64, st.integers(1, 40), elements=st.integers(-(2**52), 2**52)), st.integers(1, 10**6))
def test_lattices_round_trip_whole_numbers(n: NDArray[np.int64], whole: int) -> None:
    z = n // whole * whole
    codec = LatticeCodec(whole, 1, np.dtype(np.int64), float(z.min() // whole) - 1)
    assert np.array_equal(codec.decode(encode(codec, ColumnValues(z), 0)).values, z)


@settings(max_examples=200)
@given(st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=40), st.integers(1, 4))
def test_lattices_round_trip_decimals_to_the_last_digit(n: list[int], digits: int) -> None:
    z = np.array(n) / 10**digits
    codec = LatticeCodec(1, 10**digits, np.dtype(np.float64), min(n) - 1.0)
    assert np.array_equal(codec.decode(encode(codec, ColumnValues(z), 0)).values, z)


@settings(max_examples=200)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40, unique=True))
def test_levels_round_trip_whatever_their_spacing(levels: list[float]) -> None:
    codec = LevelsCodec(np.sort(np.array(levels)))
    z = np.array(levels)
    assert np.array_equal(codec.decode(encode(codec, ColumnValues(z), 0)).values, z)


def test_a_value_between_two_levels_stands_between_them() -> None:
    codec = LevelsCodec(np.array([0.0, 1.0, 10.0]))
    v = encode(codec, ColumnValues(np.array([-5.0, 0.5, 3.0, 99.0])), 0)[:, 0]
    assert v.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_onehot_has_a_dummy_less_than_states_and_the_first_dummy_wins() -> None:
    codec = fit_codec("c", Categorical(encoding="onehot"), TEXT, 3, ColumnValues(np.array([0, 1, 2], dtype=np.int32)))
    assert codec.dims == 2
    assert codec.decode(np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5]])).values.tolist() == [0, 1, 2, 1]
