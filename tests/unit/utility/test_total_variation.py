"""Total variation of a column: spikes, nulls, few values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dipriv.utility.total_variation import CELLS, cell_edges, number_variation


def test_a_spiked_column_that_became_constant() -> None:
    rng = np.random.default_rng(0)
    amounts = np.where(rng.random(10_000) < 0.047, rng.uniform(100, 4000, 10_000), 0.0)
    share = float(np.mean(amounts > 0))
    assert number_variation(amounts, np.zeros(10_000)) == pytest.approx(share)
    even = np.unique(np.quantile(amounts, np.arange(1, CELLS) / CELLS, method="inverted_cdf"))  # the control: one bin
    one, two = (np.bincount(np.searchsorted(even, x, side="right"), minlength=2) for x in (amounts, np.zeros(10_000)))
    assert np.array_equal(one, two)


def test_nulls_are_a_value() -> None:
    x = np.arange(100.0)
    assert number_variation(x, x, (0.2, 0.2)) == pytest.approx(0.0, abs=1e-12)
    assert number_variation(x, x, (0.2, 0.0)) == pytest.approx(0.2)
    assert number_variation(np.empty(0), np.empty(0), (1.0, 1.0)) == 0.0


def test_few_values_have_cells_and_others_count_as_the_nearest() -> None:
    codes = np.repeat([1.0, 18.0, 25.0], [50, 30, 20])
    assert cell_edges(codes) == pytest.approx([9.5, 21.5])
    assert number_variation(codes, np.where(codes == 1.0, 2.0, codes)) == 0.0
    assert number_variation(codes, np.where(codes == 1.0, 16.0, codes)) == pytest.approx(0.5)


@given(st.integers(0, 2**32), st.floats(0.0, 0.9))
def test_cells_have_about_equal_shares(seed: int, spike: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(5000) < spike, 0.0, rng.normal(size=5000))
    edges = cell_edges(values)
    counts = np.bincount(np.searchsorted(edges, values))
    assert len(counts) <= 2 * CELLS + 1
    assert np.delete(counts, np.searchsorted(edges, 0.0)).max() <= 5000 / CELLS + 1
    if np.sum(values == 0.0) >= 5000 / CELLS:
        assert counts[np.searchsorted(edges, 0.0)] == np.sum(values == 0.0)
    assert number_variation(values, values) == 0.0
