"""Codecs of cells and ranks: each value in its own cell, evenly inside it, and a place for whatever else there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, OrderedCodes
from tests.support import dkw, draws, ks_uniform

I64, U64, F64, F32 = (np.dtype(kind) for kind in (np.int64, np.uint64, np.float64, np.float32))
FULL: dict[str, OrderedCodes] = {
    "int64": GridCodes.of(I64),
    "uint64": GridCodes.of(U64),
    "float64": FloatBitCodes.of(F64),
    "float32": FloatBitCodes.of(F32),
}
every_full = pytest.mark.parametrize("line", FULL.values(), ids=FULL.keys())


def codec_of(
    starts: list[int], sizes: list[int], missing: tuple[int, ...] = (), line: OrderedCodes | None = None
) -> BinnedCodec:
    return BinnedCodec(line or GridCodes.of(I64), np.array(starts), np.array(sizes, dtype=np.uint64), missing)


def octave_cells(line: OrderedCodes, missing: tuple[int, ...] = ()) -> BinnedCodec:
    """Every octave is a cell: the whole line, and single cells of up to 2^62 codes."""
    starts = line.octaves.starts
    sizes = np.append(starts[1:], 0).astype(np.uint64) - starts.astype(np.uint64)
    sizes[-1] = np.uint64((line.last - int(starts[-1]) + 1) % 2**64)
    return BinnedCodec(line, starts, sizes, missing)


def encode(codec: BinnedCodec | RankedLevelsCodec, values: NDArray[Any], seed: int = 0) -> FloatArray:
    return codec.encode(ColumnValues(values), draws(seed, len(values)))[:, 0]


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 2**40, 2**62])
def test_codes_that_are_even_in_a_cell_are_uniform_there(size: int) -> None:
    n = 100_000
    codec = codec_of([-7, 100, 2**62 + 200], [3, size, 5])
    codes = 100 + np.random.default_rng(1).integers(0, size, n)
    inside = encode(codec, codes) - 1.0
    assert np.all((inside > 0) & (inside <= 1))
    assert ks_uniform(inside) < dkw(n)
    assert ks_uniform(inside**1.1) > dkw(n)  # control
    if size > 2:
        assert ks_uniform(encode(codec, np.full(n, 101)) - 1.0) > dkw(n)  # one code has its own share only


@settings(max_examples=100)
@given(st.data())
def test_decode_inverts_encode_in_every_cell(data: st.DataObject) -> None:
    edges = np.unique(data.draw(st.lists(st.integers(-(2**30), 2**30), min_size=2, max_size=40, unique=True)))
    gaps = np.diff(edges)
    sizes = [data.draw(st.integers(1, int(gap))) for gap in gaps]
    codec = codec_of(edges[:-1].tolist(), sizes, data.draw(st.sampled_from([(), (NULL,), (NULL, NAN)])))
    cell = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=20))
    values = np.array([edges[k] + data.draw(st.integers(0, sizes[k] - 1)) for k in cell])
    v = encode(codec, values)
    assert np.array_equal(codec.decode(v[:, np.newaxis]).values, values)
    states = np.array(cell) + len(codec.missing)
    assert np.array_equal(codec.to_states(ColumnValues(values)), states)
    assert np.all((v > states) & (v <= states + 1))


@settings(max_examples=100)
@given(st.data())
def test_nothing_outside_the_cells_is_ever_decoded(data: st.DataObject) -> None:
    edges = np.unique(data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=20, unique=True)))
    sizes = [data.draw(st.integers(1, int(gap))) for gap in np.diff(edges)]
    codec = codec_of(edges[:-1].tolist(), sizes)
    v = np.array(data.draw(st.lists(st.floats(-5, 25), min_size=1, max_size=50)))[:, np.newaxis]
    codes = codec.decode(v).values
    cell = np.searchsorted(codec.starts, codes, side="right") - 1
    assert np.all(cell >= 0)
    assert all(code < int(edges[k]) + sizes[k] for code, k in zip(codes.tolist(), cell.tolist(), strict=True))


@every_full
def test_cells_may_be_as_wide_as_octaves_of_64_bits(line: OrderedCodes) -> None:
    """V holds 53 digits: a wide cell's codes come back to within these, and in no other cell."""
    codec = octave_cells(line, (NULL,))
    for seed in range(5):
        share = np.random.default_rng(seed).uniform(0.001, 0.999, len(codec.starts))
        steps = np.minimum(codec.sizes - np.uint64(1), (share * codec.sizes).astype(np.uint64))
        codes = (codec.starts.astype(np.uint64) + steps).astype(np.int64)
        values = line.to_values(codes)
        back = codec.decode(encode(codec, values, seed)[:, np.newaxis]).values
        assert back.dtype == values.dtype
        assert np.array_equal(codec.to_states(ColumnValues(back)), 1 + np.arange(len(codes)))
        off = np.abs(line.to_codes(back) - codes)
        assert np.all(off <= 1 + codec.sizes.astype(np.float64) * codec.states * 2.0**-52)


@every_full
def test_the_ends_of_a_line_stay_on_it(line: OrderedCodes) -> None:
    codec = octave_cells(line)
    ends = line.to_values(np.array([line.first, line.last]))
    back = line.to_codes(codec.decode(encode(codec, ends)[:, np.newaxis]).values)
    assert np.array_equal(codec.to_states(ColumnValues(line.to_values(back))), [0, codec.states - 1])
    beyond = codec.decode(np.array([[-5.0], [0.0], [codec.states + 5.0]])).values
    assert np.array_equal(codec.to_states(ColumnValues(beyond)), [0, 0, codec.states - 1])


@every_full
def test_a_cells_first_code_is_not_taken_for_the_cell_before(line: OrderedCodes) -> None:
    """Where cells have gaps between them that would be far off: 1024 must not come back as 5."""
    whole = octave_cells(line)
    codec = BinnedCodec(line, whole.starts[::3], whole.sizes[::3])
    for seed in range(5):
        back = codec.decode(encode(codec, line.to_values(codec.starts), seed)[:, np.newaxis]).values
        assert np.array_equal(codec.to_states(ColumnValues(back)), np.arange(codec.states))


def test_what_is_between_or_beyond_cells_stands_where_they_meet() -> None:
    codec = codec_of([10, 20, 1000], [5, 5, 2**61], (NULL,))
    v = encode(codec, np.array([-(2**63), 9, 15, 19, 25, 999, 2**63 - 1]))
    assert v.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]
    assert np.all(np.diff(encode(codec, np.arange(0, 1100))) >= -1)


def test_missing_cells_of_any_kind_have_a_place() -> None:
    """Those that have no state of their own are anywhere, as likely in any state."""
    n = 20_000
    kinds = np.resize(np.array([PRESENT, NULL, NAN], dtype=np.uint8), n)
    for codec in (
        codec_of([0, 5], [5, 5], (NAN,)),
        RankedLevelsCodec(np.array([0, 7]), np.array([0, 1]), (NAN,)),
    ):
        cells = ColumnValues(np.full(n, 7), kinds)
        v = codec.encode(cells, draws(1, n))[:, 0]
        assert np.all((v[kinds == NAN] > 0) & (v[kinds == NAN] <= 1))
        assert np.all((v[kinds == PRESENT] > 2) & (v[kinds == PRESENT] <= 3))
        anywhere = v[kinds == NULL] / codec.states
        assert ks_uniform(anywhere) < dkw(len(anywhere))
        assert ks_uniform(anywhere**1.2) > dkw(len(anywhere))  # control
        assert np.array_equal(codec.to_states(cells)[:3], [2, 0, 0])
        decoded = codec.decode(v[:, np.newaxis]).missing
        assert decoded is not None
        assert np.all(decoded[kinds == NAN] == NAN)
        assert np.all(decoded[kinds == PRESENT] == PRESENT)
        assert NULL not in decoded
    without = codec_of([0, 5], [5, 5])
    assert np.all(np.isfinite(without.encode(ColumnValues(np.full(n, 7), kinds), draws(1, n))))
    assert without.decode(np.array([[0.0], [np.nextafter(0, 1)], [2.0], [99.0], [-3.0]])).missing is None


def test_both_kinds_of_missing_cells_are_told_apart() -> None:
    n = 20_000
    kinds = np.resize(np.array([NULL, NAN, PRESENT], dtype=np.uint8), n)
    for codec in (codec_of([3], [1], (NULL, NAN)), RankedLevelsCodec(np.array([3]), np.array([0]), (NULL, NAN))):
        v = codec.encode(ColumnValues(np.full(n, 3), kinds), draws(2, n))
        decoded = codec.decode(v).missing
        assert decoded is not None
        assert np.array_equal(decoded, kinds)
        for state, kind in enumerate((NULL, NAN, PRESENT)):
            inside = v[kinds == kind, 0] - state
            assert ks_uniform(inside) < dkw(len(inside))
            assert ks_uniform(inside**1.2) > dkw(len(inside))  # control


@settings(max_examples=60)
@given(st.permutations(range(12)), st.sampled_from([(), (NULL,), (NULL, NAN)]))
def test_ranks_follow_their_own_order(order: list[int], missing: tuple[int, ...]) -> None:
    codec = RankedLevelsCodec(np.arange(12) * 10, np.array(order), missing)
    values = np.arange(12) * 10
    states = codec.to_states(ColumnValues(values))
    assert np.array_equal(codec.levels[codec.order[states - len(missing)]], values)
    assert np.array_equal(codec.from_states(states).values, values)
    v = encode(codec, values)
    assert np.array_equal(np.ceil(v).astype(int) - 1, states)
    assert np.array_equal(codec.decode(v[:, np.newaxis]).values, values)


def test_a_value_that_is_no_level_has_the_place_of_one() -> None:
    codec = RankedLevelsCodec(np.array([0, 10, 20]), np.array([2, 0, 1]))
    assert codec.to_states(ColumnValues(np.array([-1, 5, 11, 99]))).tolist() == [1, 2, 0, 0]
    assert np.all(np.isfinite(encode(codec, np.array([-1, 5, 11, 99]))))
