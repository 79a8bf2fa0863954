"""Groups of states: all states in order, even counts, round numbers, functions that stay functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.groups import A_FEW_MORE, TOLERANCE, coarsened, digits_of
from dipriv.references._learning.shares import MAX_GROUPS


def plain(count: int) -> FloatArray:
    """Digits of numbers that are all as round."""
    return np.zeros(count)


@settings(max_examples=300)
@given(
    hnp.arrays(np.float64, st.integers(1, 80), elements=st.sampled_from([0.0, 0.0, 1.0, 5.0, 300.0])),
    st.integers(3, 32),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([0.0, 4.0, np.inf]),
)
def test_groups_cover_all_states_and_states_without_rows_have_none(
    own: FloatArray, most: int, ordered: bool, missing: int, clear: float
) -> None:
    own = own if ordered else np.sort(own)[::-1]  # labels come by their counts
    histogram = np.concatenate([np.full(missing, 7.0), own])
    group_of = coarsened(
        histogram, digits_of(np.arange(len(own), dtype=np.float64)) if ordered else None, missing, most, clear
    )
    assert len(group_of) == len(histogram)
    assert group_of[: missing + 1].tolist() == list(range(missing + 1))  # kinds of missing cells stand alone
    assert np.count_nonzero(group_of < missing) == missing
    assert {*np.diff(group_of).tolist()} <= {0, 1}
    assert group_of[-1] < missing + max(A_FEW_MORE * most, 0 if ordered else MAX_GROUPS)
    rows = np.bincount(group_of[missing:] - missing, own)
    assert np.all(rows > 0) or not own.any()


def test_groups_are_even_where_states_have_an_order_and_single_where_they_have_none() -> None:
    group_of = coarsened(np.ones(1000), plain(1000), 0, 10)
    assert np.bincount(group_of).tolist() == pytest.approx([100] * 10, abs=2)
    heavy = coarsened(np.array([500.0, 1.0, 1.0, 1.0, 1.0, 496.0]), plain(6), 0, 3)
    assert heavy[0] != heavy[1] or heavy[-1] != heavy[-2]
    labels = np.array([9.0, 5.0, 2.0, 1.0, 1.0, 0.0])
    assert coarsened(labels, None, 0, 4).tolist() == [0, 1, 2, 3, 4, 4]
    assert coarsened(labels, None, 0, 3).tolist() == [0, 1, 2, 2, 2, 2]
    assert coarsened(labels, None, 0, 3, clear=1.5).tolist() == [0, 1, 2, 3, 3, 3]  # three stand out of the noise
    assert coarsened(np.array([0.0, 5.0, 0.0, 0.0, 2.0, 0.0]), plain(6), 0, 4).tolist() == [0, 0, 0, 0, 1, 1]


def test_groups_of_ages_begin_at_round_numbers_and_stay_about_even() -> None:
    ages = np.arange(90.0)
    counts = np.where(ages < 60, 300.0, 150.0)
    starts = np.flatnonzero(np.diff(coarsened(counts, digits_of(ages), 0, 14), prepend=-1))
    assert np.all(starts % 5 == 0)
    assert 15 in starts
    sizes = np.add.reduceat(counts, starts)
    assert sizes.max() / sizes[:-1].min() < (1 + TOLERANCE) ** 2 / (1 - TOLERANCE) ** 2
    even = np.flatnonzero(np.diff(coarsened(counts, plain(90), 0, 14), prepend=-1))
    assert np.any(even % 5 != 0)  # control: without digits


def test_single_values_among_bins_have_groups_of_their_own() -> None:
    """Twenty densities of one area each, and a few rows that noise put between them."""
    histogram = np.full(41, 2.0)
    histogram[1::2] = 100.0
    group_of = coarsened(histogram, plain(41), 0, 15)
    assert len(np.unique(group_of[1::2])) == 20
    spread = coarsened(np.full(41, 50.0), plain(41), 0, 15)
    assert len(np.unique(spread)) <= 15  # control: no value stands out


def test_numbers_have_the_digits_that_are_written() -> None:
    numbers = np.array([0.0, 7.0, -7.0, 10.0, 5.0, 65.0, 18.0, 2500.0, 0.125, 1e300, 1 / 3])
    assert digits_of(numbers).tolist() == [0.0, 1.0, 1.0, 1.0, 0.5, 1.5, 2.0, 1.5, 2.5, 1.0, 13.0]


def test_positive_values_among_zeros_have_groups_of_their_own() -> None:
    """Zeros were nearly all rows, so the column was one group, and depended on no other."""
    counts = np.array([9200.0, *[80.0] * 10])  # no value but zero is heavy
    digits = digits_of(np.arange(11.0))
    groups = coarsened(counts, digits, 0, 12)
    assert groups[0] == 0
    assert (groups[1:] > 0).all()
    assert 2 <= len(set(groups.tolist())) <= 1 + 800 // (0.25 * 10_000 / 12)
    few = np.array([9990.0, *[1.0] * 10])
    assert set(coarsened(few, digits, 0, 12).tolist()) == {0}
    below = np.array([*[80.0] * 10, 9200.0])
    assert len(set(coarsened(below, digits, 0, 12).tolist())) > 1
