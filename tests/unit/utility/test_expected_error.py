"""The expected total variation of a column: formulas against simulated noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dipriv.references._learning import column_histograms, postprocess
from dipriv.references._learning.measurements import Spread
from dipriv.utility import expected_error as module
from dipriv.utility.expected_error import ColumnEvidence, Line, expected_error

ROWS, RUNS = 4000, 3000


def simulated(shares: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Total variations of tables drawn from noisy shares."""
    found = np.empty(RUNS)
    for run in range(RUNS):
        noisy = shares + noise * rng.normal(size=len(shares))
        noisy = np.maximum(noisy - (noisy.sum() - 1.0) / len(shares), 0.0)
        found[run] = 0.5 * np.abs(rng.multinomial(ROWS, noisy / noisy.sum()) / ROWS - shares).sum()
    return found


@pytest.mark.parametrize("noise", [0.002, 0.01])
@pytest.mark.parametrize("cells", [2, 6, 20])
def test_the_mean_and_the_range_of_labels(cells: int, noise: float) -> None:
    shares = np.full(cells, 1 / cells)
    error = expected_error(ColumnEvidence("x", shares, noise), ROWS)
    found = simulated(shares, noise, np.random.default_rng(1))
    tolerance = 5 * found.std() / math.sqrt(RUNS)
    assert abs(found.mean() - error.mean) < tolerance
    alarm = 0.05 + 5 * math.sqrt(0.05 * 0.95 / RUNS)
    assert np.mean(found > error.most) < alarm
    assert np.mean(found < error.least) < alarm
    control = expected_error(ColumnEvidence("x", shares, 6 * noise), ROWS)
    assert abs(found.mean() - control.mean) > tolerance


def test_merged_labels_are_lost_rows() -> None:
    shares = np.array([0.5, 0.3])
    whole = expected_error(ColumnEvidence("x", np.array([0.6, 0.4]), 0.001, found=True), ROWS)
    merged = expected_error(ColumnEvidence("x", shares, 0.001, found=True, merged=0.2), ROWS)
    assert merged.mean == pytest.approx(0.2 + merged.noise)
    assert merged.labels == 0.0 < whole.labels


@pytest.mark.parametrize("rows", [10, 1000, 100_000])
@pytest.mark.parametrize("limit", [0.02, 0.3, 1.0])
def test_hidden_rows_are_expected_at_no_order_of_magnitude_more_than_at_another(limit: float, rows: int) -> None:
    found = module.expected_below(limit, rows)
    if limit * rows <= 1:
        assert found == module.below_in_most_cases(limit, rows) == limit
        return
    shares = np.exp(np.linspace(math.log(1 / rows), math.log(limit), 100_001))
    assert found == pytest.approx(shares.mean(), rel=1e-3)  # uniform in the logarithm
    assert module.below_in_most_cases(limit, rows) == pytest.approx(np.quantile(shares, 0.95), rel=1e-3)
    assert found < (1 / rows + limit) / 2  # what a uniform distribution would give


def test_hidden_rows_are_part_of_what_is_expected() -> None:
    open_ends = Line(np.arange(2), np.ones(2), (0.0, 0.0), (True, True))
    closed = Line(np.arange(2), np.ones(2), (0.0, 0.0), (False, False))
    hidden, control = (
        expected_error(ColumnEvidence("x", np.full(2, 0.5), 0.08, line=line), 1000) for line in (open_ends, closed)
    )
    assert control.mean == pytest.approx(control.noise)
    assert hidden.mean == pytest.approx(control.mean + module.expected_below(hidden.hidden, 1000))
    assert hidden.least == control.least < control.mean < hidden.mean < hidden.most


def test_thresholds_are_those_of_learning() -> None:
    one = Spread("gaussian", 1.0)
    assert postprocess.quantile(one, column_histograms.OTHER) == pytest.approx(module.LABELS_SEEN)
    assert postprocess.quantile(one, postprocess.MISSING) == pytest.approx(module.NULLS_SEEN)
    assert math.sqrt(-2 * math.log(2 * postprocess.OUTERMOST)) == pytest.approx(module.ENDS_SEEN)
    assert postprocess.EDGE == module.SEGMENT_SEEN
    part = column_histograms.OF_GROUPS
    assert float((1 - part) / part) == module.OCTAVE_VARIANCE
    octaves = 4
    gain = (postprocess.ON_A_SIDE + octaves * postprocess.EMPTY["gaussian"]) * 2 * octaves
    assert math.sqrt(gain) == pytest.approx(module.POSITIVE_SEEN)


def test_numbers_lie_between_smooth_and_rough() -> None:
    bins = 64
    line = Line(np.repeat([0, 1], bins // 2), np.array([32.0, 32.0]), (0.0, 0.0), (False, False))
    error = expected_error(ColumnEvidence("x", np.full(bins, 1 / bins), 0.01, line=line), ROWS)
    assert error.sampling < error.noise_least < error.noise < error.noise_most
    assert error.hidden == 0.0
    beyond = expected_error(
        ColumnEvidence("x", np.full(bins, 1 / bins), 0.01, line=Line(line.octave_of, line.sizes, (0, 9), (True, True))),
        ROWS,
    )
    assert beyond.ends == pytest.approx(0.01 * (module.ENDS_SEEN * math.sqrt(1.5) + 1.5 * 3))
    assert beyond.most > error.most
    assert beyond.mean > error.mean


def test_nothing_is_above_one() -> None:
    error = expected_error(ColumnEvidence("x", np.full(5, 0.2), 30.0, nullable=True, found=True), 12)
    assert 0.0 <= error.least <= error.mean <= error.most == 1.0
