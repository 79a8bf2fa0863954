"""Lines of codes: ordered as the values are, one code a value, octaves that cover, halves that are strictly inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, Octaves, OrderedCodes

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)
DAY = 86_400 * 10**9
WHOLES = [np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)]
BITS: dict[str, FloatBitCodes] = {
    "float64": FloatBitCodes.of(F64),
    "float32": FloatBitCodes.of(F32),
    "float64 from 0": FloatBitCodes.of(F64, lower=0.0),
    "float64 in (-3, 1e300)": FloatBitCodes.of(F64, -3.0, 1e300),
    "float64 in one octave": FloatBitCodes.of(F64, 1.0, 1.75),
    "float64 below 0": FloatBitCodes.of(F64, upper=-1e-300),
    "float64 subnormal": FloatBitCodes.of(F64, -5e-324, 1e-310),
    "float32 in (-0.5, 7)": FloatBitCodes.of(F32, -0.5, 7.0),
}
STEPS: dict[str, GridCodes] = {
    **{str(dtype): GridCodes.of(dtype) for dtype in WHOLES},
    "int8 by 7": GridCodes.of(np.dtype(np.int8), 7),
    "int8 by 100": GridCodes.of(np.dtype(np.int8), 100),
    "uint8 by 200": GridCodes.of(np.dtype(np.uint8), 200),
    "int16 in (-5, 900)": GridCodes.of(np.dtype(np.int16), lower=-5, upper=900),
    "int64 days": GridCodes.of(np.dtype(np.int64), DAY),
    "int64 weeks": GridCodes.of(np.dtype(np.int64), 7 * DAY),
    "uint64 by 2": GridCodes.of(np.dtype(np.uint64), 2),
    "uint64 in (10, 1e6)": GridCodes.of(np.dtype(np.uint64), lower=10, upper=1e6),
    "float64 cents": GridCodes.of(F64, 1, 100),
    "float64 quarters": GridCodes.of(F64, 25, 100),
    "float64 fives": GridCodes.of(F64, 5),
    "float64 whole in (0, 99)": GridCodes.of(F64, lower=0.0, upper=99.0),
    "float32 cents": GridCodes.of(F32, 1, 100),
}
LINES: dict[str, Any] = BITS | STEPS
every_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
every_bits = pytest.mark.parametrize("line", BITS.values(), ids=BITS.keys())
every_steps = pytest.mark.parametrize("line", STEPS.values(), ids=STEPS.keys())


def many_values(line: Any, seed: int = 1) -> NDArray[Any]:
    """Sorted values of the line's type: extremes, powers of two and their neighbours, random bits, infinities."""
    rng = np.random.default_rng(seed)
    dtype = line.dtype
    bits = rng.integers(0, 256, (2000, dtype.itemsize), dtype=np.uint8).view(dtype).ravel()
    on_line = line.to_values(many_codes(line, seed))
    if dtype.kind == "f":
        info = np.finfo(dtype)
        powers = np.ldexp(dtype.type(1), np.arange(info.minexp, info.maxexp, 7)).astype(dtype)
        odd = np.array([0.0, -0.0, info.max, info.tiny, info.smallest_subnormal, np.inf, 0.015, 0.125], dtype=dtype)
        some = np.concatenate([bits[np.isfinite(bits)], powers, np.nextafter(powers, dtype.type(0)), odd])
        return np.sort(np.concatenate([some, -some, on_line]))
    info_ = np.iinfo(dtype)
    powers = np.array([1 << k for k in range(info_.bits - 1)], dtype=dtype)
    ends = np.array([info_.min, info_.min + 1, 0, 1, info_.max - 1, info_.max], dtype=dtype)
    return np.sort(np.concatenate([bits, powers, powers - dtype.type(1), ends, on_line]))


def many_codes(line: OrderedCodes, seed: int = 1) -> NDArray[np.int64]:
    """Distinct codes: both ends, starts of octaves, and random ones, evenly and near each end and zero."""
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(line.first, line.last, 1000, endpoint=True)
    steps = rng.integers(0, min(1000, line.last - line.first), 200, endpoint=True)
    near = [line.first + steps, line.last - steps]
    zero = np.clip(np.arange(-300, 300), line.first, line.last)
    return np.unique(np.concatenate([anywhere, *near, zero, line.octaves.starts, [line.first, line.last]]))


def any_codes(line: OrderedCodes) -> st.SearchStrategy[NDArray[np.int64]]:
    inside = st.integers(line.first, line.last) | st.sampled_from([line.first, line.last])
    return st.lists(inside, min_size=2, max_size=30).map(lambda found: np.unique(np.array(found, dtype=np.int64)))


@every_line
def test_codes_are_ordered_as_the_values_and_held_to_the_line(line: Any) -> None:
    values = many_values(line)
    codes = line.to_codes(values)
    assert codes.dtype == np.int64
    assert np.all(codes[1:] >= codes[:-1])
    assert np.all((codes >= line.first) & (codes <= line.last))


@settings(max_examples=200)
@given(st.sampled_from(sorted(BITS)), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_any_two_reals_have_codes_in_their_order(name: str, one: float, other: float) -> None:
    line = BITS[name]
    low, high = line.to_codes(np.array([min(one, other), max(one, other)]))
    assert low <= high
    if line.dtype == F64 and line.first < low and high < line.last and one != other:
        assert low < high


@every_bits
def test_every_floating_point_number_has_a_code_of_its_own(line: FloatBitCodes) -> None:
    codes = many_codes(line)
    values = line.to_values(codes)
    assert values.dtype == line.dtype
    assert np.all(np.isfinite(values))
    assert np.all(values[1:] > values[:-1])
    assert np.array_equal(line.to_codes(values), codes)
    low, high = line.to_values(np.array([line.first, line.last]))
    anything = many_values(line)
    assert np.array_equal(line.to_values(line.to_codes(anything)), np.clip(anything, low, high))


@every_steps
def test_every_multiple_of_a_step_has_a_code_of_its_own(line: GridCodes) -> None:
    """Among reals as far as they are exact: float64 to 2^45 steps, float32 to 2^20."""
    codes = many_codes(line)
    if line.dtype.kind == "f":
        reach = 2**45 if line.dtype == F64 else 2**20
        codes = np.unique(np.clip(codes, -reach, reach))
    values = line.to_values(codes)
    assert values.dtype == line.dtype
    assert np.array_equal(line.to_codes(values), codes)
    exact = [(code + line.origin) * line.whole for code in codes.tolist()]
    expected = [number / line.per_unit for number in exact] if line.dtype.kind == "f" else exact
    assert np.array_equal(values, np.array(expected, dtype=line.dtype))


@every_steps
def test_values_between_steps_go_to_the_nearest(line: GridCodes) -> None:
    values = many_values(line)
    back = line.to_values(line.to_codes(values))
    low, high = line.to_values(np.array([line.first, line.last])).tolist()
    for value, found in zip(values.tolist(), back.tolist(), strict=True):
        held = min(max(value, low), high)
        off = abs(held - found) * line.per_unit
        assert 2 * off <= line.whole * (1 + 1e-6) + 1e-6 * abs(held) * line.per_unit


@pytest.mark.parametrize("dtype", WHOLES, ids=str)
def test_the_extremes_of_a_type_are_on_its_line(dtype: np.dtype[Any]) -> None:
    info = np.iinfo(dtype)
    line = GridCodes.of(dtype)
    values = np.array([info.min, info.max, 0, 1, info.max - 1], dtype=dtype)
    assert np.array_equal(line.to_values(line.to_codes(values)), values)
    assert line.last - line.first == int(info.max) - int(info.min)


@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
def test_infinities_and_zeros_have_a_place(dtype: np.dtype[Any]) -> None:
    info = np.finfo(dtype)
    line = FloatBitCodes.of(dtype)
    odd = np.array([-np.inf, np.inf, -0.0, 0.0, info.smallest_subnormal, -info.smallest_subnormal], dtype=dtype)
    codes = line.to_codes(odd)
    assert codes.tolist() == [line.first, line.last, 0, 0, 1, -1]
    assert line.to_values(codes).tolist() == [info.min, info.max, 0.0, 0.0, *odd[4:].tolist()]
    assert not np.signbit(line.to_values(codes)[2])


@every_line
def test_not_a_number_has_some_place_too(line: Any) -> None:
    if line.dtype.kind == "f" and isinstance(line, FloatBitCodes):
        codes = line.to_codes(np.array([np.nan, -np.nan], dtype=line.dtype))
        assert np.all((codes >= line.first) & (codes <= line.last))


@pytest.mark.parametrize("dtype", WHOLES, ids=str)
def test_reals_find_their_place_among_whole_numbers(dtype: np.dtype[Any]) -> None:
    """An estimator fitted on whole numbers may be given the same numbers as reals."""
    line = GridCodes.of(dtype)
    whole = np.array([0, 5, 100, 127], dtype=dtype)
    assert np.array_equal(line.to_codes(whole.astype(np.float64)), line.to_codes(whole))
    wild = line.to_codes(np.array([-np.inf, -1e300, -7.0, 2.4, 2.6, 1e300, np.inf]))
    assert np.all(wild[1:] >= wild[:-1])


@every_line
def test_octaves_cover_the_line_in_order(line: Any) -> None:
    octaves: Octaves = line.octaves
    assert len(octaves.starts) == len(octaves.signs) == len(octaves.exponents)
    assert octaves.starts[0] == line.first
    assert octaves.starts[-1] <= line.last
    assert np.all(octaves.starts[1:] > octaves.starts[:-1])
    assert np.all(np.diff(octaves.places) > 0)
    assert np.all(np.diff(octaves.signs) >= 0)
    zero = line.to_codes(np.zeros(1, line.dtype))
    alone = octaves.starts[octaves.signs == 0]
    assert alone.tolist() == (zero.tolist() if line.to_values(zero)[0] == 0 else [])


@every_line
def test_an_octave_has_one_sign_and_one_power_of_two(line: Any) -> None:
    octaves = line.octaves
    ends = np.append(octaves.starts[1:] - 1, line.last)
    for codes in (octaves.starts, ends):
        if isinstance(line, FloatBitCodes):
            values = line.to_values(codes).astype(np.float64)
            mantissas, powers = np.frexp(values)
            below = np.finfo(line.dtype).minexp - 1  # all numbers below the smallest normal one make up one octave
            powers = np.maximum(powers - 1, below)
            signs = np.sign(mantissas)
        else:
            whole = [code + line.origin for code in codes.tolist()]
            signs = np.sign(np.array([float(n) for n in whole]))
            powers = np.array([abs(n).bit_length() - 1 for n in whole])
            powers[np.array(whole, dtype=object) == -(2**63)] = 62  # the one code below its octave goes with it
        assert np.array_equal(signs, octaves.signs)
        away = octaves.signs != 0
        assert np.array_equal(powers[away], octaves.exponents[away])


@every_line
def test_the_middle_is_strictly_inside(line: Any) -> None:
    """Of neighbouring codes, of random ranges and of the whole line."""
    octaves, codes = line.octaves, many_codes(line)
    other = np.random.default_rng(2).permutation(codes)
    low, last = np.append(codes[:-1], np.minimum(codes, other)), np.append(codes[1:], np.maximum(codes, other))
    wide = low < last
    middle = octaves.middle(low[wide], last[wide])
    assert np.all((middle > low[wide]) & (middle <= last[wide]))
    assert np.array_equal(octaves.middle(codes[1:] - 1, codes[1:]), codes[1:])


@settings(max_examples=150)
@given(st.sampled_from(sorted(LINES)), st.data())
def test_halving_ends_at_every_code(name: str, data: st.DataObject) -> None:
    """As the tree does it: from the whole line down to one code, in no more halvings than the tree could ever count."""
    line = LINES[name]
    octaves = line.octaves
    codes = data.draw(any_codes(line))
    low, last = np.full(len(codes), line.first), np.full(len(codes), line.last)
    halvings = 0
    while np.any(wide := low < last):
        middle = np.where(wide, octaves.middle(low, last), low)
        assert np.all((middle > low) & (middle <= last) | ~wide)
        upper = codes >= middle
        low, last = np.where(wide & upper, middle, low), np.where(wide & ~upper, middle - 1, last)
        halvings += 1
    assert np.array_equal(low, codes)
    assert halvings <= 64 + 20


def test_ordinary_magnitudes_are_met_first() -> None:
    line = FloatBitCodes.of(F64)

    def halvings(value: float) -> int:
        code = int(line.to_codes(np.array([value]))[0])
        low, last, count = np.array([line.first]), np.array([line.last]), 0
        while np.count_nonzero((line.octaves.starts > low[0]) & (line.octaves.starts <= last[0])):
            middle = line.octaves.middle(low, last)
            low, last = (middle, last) if code >= middle[0] else (low, middle - 1)
            count += 1
        return count

    ordinary = [halvings(value) for value in (1.0, 50.0, 300.0, 5e4, -300.0)]
    assert max(ordinary) < min(halvings(value) for value in (1e200, 1e-200, -1e200))
    assert max(ordinary) < np.log2(len(line.octaves.starts))  # an even tree over octaves


@settings(max_examples=100)
@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_declared_bounds_of_reals_are_kept(lower: float, width: float, values: list[float]) -> None:
    upper = lower + width
    line = FloatBitCodes.of(F64, lower, upper)
    assert line.to_values(np.array([line.first, line.last])).tolist() == [lower, upper]
    back = line.to_values(line.to_codes(np.array(values)))
    assert np.array_equal(back, np.clip(values, lower, upper))


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from(WHOLES), st.integers(1, 50), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_declared_bounds_of_whole_numbers_are_kept(
    dtype: np.dtype[Any], whole: int, lower: float, width: float
) -> None:
    """All multiples of the step inside the bounds and the type, and no others."""
    line = GridCodes.of(dtype, whole, 1, lower, lower + width)
    info = np.iinfo(dtype)
    low, high = max(lower, info.min), min(lower + width, info.max)
    inside = [n for n in (line.first - 1, line.first, line.last, line.last + 1) if low <= n * whole <= high]
    if -(-low // whole) <= high // whole:
        assert inside == sorted([line.first, line.last])
    else:
        assert line.first == line.last


@pytest.mark.parametrize("dtype", [np.dtype(np.int8), np.dtype(np.int64), np.dtype(np.uint64), F64], ids=str)
@pytest.mark.parametrize(("lower", "upper"), [(300.0, 400.0), (-5e30, -1e30), (1e300, None), (None, -1e300)])
def test_bounds_beyond_the_type_leave_a_line_of_its_values(
    dtype: np.dtype[Any], lower: float | None, upper: float | None
) -> None:
    line = GridCodes.of(dtype, lower=lower, upper=upper)
    codes = line.to_codes(np.array([0, 5, 100], dtype=dtype))
    assert np.all((codes >= line.first) & (codes <= line.last))
    assert line.to_values(codes).dtype == dtype
    assert line.octaves.starts[0] == line.first
