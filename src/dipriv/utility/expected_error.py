"""How far a released column is from the true one: its expected total variation, from the noise of its measurements.

A column's error has three parts. Noise of its counts, and the sampling of released rows: each cell is off by about a
normal error, whose mean absolute value is √(2/π) standard deviations. Labels that were merged into "(other)": all of
their rows. Rows that learning could not distinguish from noise, and took for none, such as rare labels, nulls and the
ends of a range: nothing says how many there are, but there is a threshold that they do not reach. Their
share is taken to have a density in proportion to 1/share between one row and the threshold, which prefers no order of
magnitude.

Histograms of numbers are smoothed, which removes noise where the distribution is smooth, and counts of rare labels are
shrunk towards their mean. So the error from noise lies between two bounds. The smaller one is that of the octaves'
totals, as if all inside them were smooth, and at most half of what a cell has; the larger one is that of single bins.
The geometric mean of the two is expected: this choice, and the half, were made by looking at results
(benchmarks/usefulness); all else is a formula or a threshold of learning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv.utility.total_variation import CELLS

MEAN_SIZE = math.sqrt(2.0 / math.pi)
"""The mean absolute value of a normal error, in standard deviations."""
BELOW, ABOVE = 1.645, 1.93
"""In standard deviations from the mean: what 95% of sums of many absolute errors are above, and what 95% of single
absolute errors are below. Each is the larger of the two cases."""
LABELS_SEEN = math.sqrt(2.0 * math.log(1.0 / 0.006))
"""In standard deviations of their noise: rows of labels that are not published are taken for none below this."""
NULLS_SEEN = math.sqrt(2.0 * math.log(1.0 / 0.01))
"""The same for missing cells."""
ENDS_SEEN = math.sqrt(2.0 * math.log(1.0 / 0.06))
"""The same for the octaves beyond the ends of a range."""
DIGITS_SEEN, DIGITS_MAX = 2.5 * 3.0 * math.sqrt(10.0), 1 / 3
"""The same for values with finer digits: of the noise of about ten counts, for which there is a ninth of the budget."""
POSITIVE_SEEN = math.sqrt(2.0 * 4.0 * (8.0 + 4.0))
"""The same for all positive values of a column that seems to have none, if they lie in about four octaves."""
SEGMENT_SEEN = 1.5
"""The same for bins inside the outermost octaves, of the noise of their sum."""
OCTAVE_VARIANCE = 1.5
"""The variance of the noise of an octave's own count, in those of a bin's: they share a budget 2 to 3."""


@dataclass(frozen=True, eq=False)
class Line:
    """Bins of numbers. An octave is what lies between two powers of two; its total is measured beside its bins."""

    octave_of: NDArray[np.intp]
    """The octave of each bin."""
    sizes: FloatArray
    """How many bins were measured in each of these octaves, empty ones included: about."""
    cut: tuple[float, float]
    """How many bins at both ends of the outermost octaves were taken as empty: about."""
    open: tuple[bool, bool]
    """Whether there could be values beyond the outermost octaves."""
    without_positive: bool = False
    """Whether there could be positive values, but none were found."""


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What a column is judged by: private output, and public facts about its type."""

    name: str
    shares: FloatArray = field(repr=False)
    """The reference's share of the rows in each state; kinds of missing cells come first."""
    noise: float
    """The standard deviation of the noise of a count, as a share of the rows."""
    missing: int = 0
    """How many states are kinds of missing cells."""
    nullable: bool = False
    found: bool = False
    """Whether its labels were found under differential privacy, and the others merged."""
    merged: float = 0.0
    """The share of the rows whose labels were merged into one."""
    rounded: bool = False
    """Whether numbers are released as multiples of a step that was found from the rows."""
    line: Line | None = None
    """The bins of a column of numbers; None where the states are values or labels."""
    several: bool = False
    """Whether a state that has rows is a bin of several values."""
    bounded: bool = False
    """Whether levels or bounds are declared."""


@dataclass(frozen=True)
class ExpectedError:
    """The expected total variation of a column and its parts, all of them shares of the rows."""

    noise: float
    """What noise of counts and sampling of rows move, on average."""
    noise_least: float
    noise_most: float
    """The same, if the distribution is as smooth, or as rough, as could be; the same for labels."""
    sampling: float
    """What sampling of rows alone moves."""
    merged: float
    """Rows whose labels became one."""
    labels: float
    """Fewer rows than this have labels that are missing."""
    nulls: float
    """Fewer are missing cells that are released as values."""
    ends: float
    """Fewer lie beyond the released range, on each side."""
    digits: float
    """Fewer have finer digits than those released, which matter where there are few values."""
    deviation: float
    """The standard deviation of the total variation, from noise and sampling."""
    rows: int
    """How many rows are released."""

    @property
    def mean(self) -> float:
        """What is to be expected."""
        return min(1.0, self.noise + self.merged + expected_below(self.hidden, self.rows))

    @property
    def hidden(self) -> float:
        """Fewer rows than this are hidden; not all of these reach their limits at once."""
        return min(1.0, math.hypot(self.labels, self.nulls, self.ends, self.ends, self.digits))

    @property
    def least(self) -> float:
        """It is larger than this in about 95% of cases."""
        return max(0.0, min(1.0, self.noise_least + self.merged) - BELOW * self.deviation)

    @property
    def most(self) -> float:
        """It is smaller than this in about 95% of cases."""
        hidden = below_in_most_cases(self.hidden, self.rows)
        return min(1.0, self.noise_most + self.merged + math.hypot(ABOVE * self.deviation, hidden))


def expected_below(limit: float, rows: int) -> float:
    """The expectation of a share of the rows of which no more is known than that it is below a limit.

    >>> round(expected_below(0.1, 1000), 3)
    0.021
    """
    one = 1.0 / max(1, rows)
    return limit if limit <= one else (limit - one) / math.log(limit / one)


def below_in_most_cases(limit: float, rows: int) -> float:
    """What such a share is below in 95% of cases.

    >>> round(below_in_most_cases(0.1, 1000), 3)
    0.079
    """
    one = 1.0 / max(1, rows)
    return limit if limit <= one else limit**0.95 * one**0.05


def expected_error(column: ColumnEvidence, rows: int) -> ExpectedError:
    """The expected error of a column of which `rows` rows are released."""
    cells, smooth, rough = _cells(column)
    count = max(2, len(cells) + column.found)
    of_noise = column.noise**2 * (1.0 - 1.0 / count)  # counts add up to the rows, which removes a part of the noise
    sampled = cells * (1.0 - np.minimum(cells, 1.0)) / max(1, rows)
    least, most = (variance * of_noise + sampled for variance in (smooth, rough))
    least = np.minimum(least, (cells / (2.0 * MEAN_SIZE)) ** 2)  # rare cells, if their error is half of what they have
    smallest, largest, sampling = (
        float(0.5 * MEAN_SIZE * np.sqrt(squares).sum()) for squares in (least, most, sampled)
    )
    kept = len(column.shares) - column.missing
    unseen = column.found and not column.merged
    ends = 0.0 if column.line is None else _ends(column.line)
    return ExpectedError(
        math.sqrt(smallest * min(1.0, largest)),
        smallest,
        largest,
        sampling,
        column.merged,
        min(1.0, LABELS_SEEN * math.sqrt(1.0 + kept) * column.noise) if unseen else 0.0,
        min(1.0, NULLS_SEEN * column.noise) if column.nullable and not column.missing else 0.0,
        min(1.0, ends * column.noise),
        min(DIGITS_MAX, DIGITS_SEEN * column.noise) if column.rounded and len(cells) < CELLS else 0.0,
        math.sqrt(float(np.sqrt(least * most).sum()) * (1.0 - MEAN_SIZE**2) / 4 * count / (count - 1)),
        rows,
    )


def _cells(column: ColumnEvidence) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The cells in which total variation is measured: their shares, and the least and largest variances of their noise.

    Variances are in units of that of a count.
    """
    if column.line is None:
        ones = np.ones(len(column.shares))
        return column.shares, ones, ones
    line, own = column.line, column.shares[column.missing :]
    cell_of = _cell_of(own)
    shares = np.bincount(cell_of, own)
    octaves = len(line.sizes)
    inside = np.bincount(line.octave_of, minlength=octaves)
    weight = (line.sizes / np.maximum(inside, 1))[line.octave_of]  # empty bins go with those of their octave
    bins = np.bincount(cell_of * octaves + line.octave_of, weight, minlength=len(shares) * octaves)
    part = bins.reshape(len(shares), octaves) / line.sizes
    total = line.sizes * OCTAVE_VARIANCE / (line.sizes + OCTAVE_VARIANCE)
    smooth = (part**2 * total).sum(axis=1)
    rough = smooth + (line.sizes * part * (1.0 - part)).sum(axis=1)
    missing = column.shares[: column.missing]
    ones = np.ones(len(missing))
    return np.concatenate([missing, shares]), np.concatenate([ones, smooth]), np.concatenate([ones, rough])


def _cell_of(shares: FloatArray) -> NDArray[np.intp]:
    """Consecutive bins in about twenty cells; a bin with the share of a cell is one."""
    alone = shares >= 1.0 / CELLS
    light = np.where(alone, 0.0, shares)
    run = np.cumsum(alone) * 2 - alone
    before = np.cumsum(light) - light
    part = np.floor((before + light / 2) * CELLS)
    new = (run[1:] != run[:-1]) | (part[1:] != part[:-1])
    return np.concatenate([[0], np.cumsum(new)]).astype(np.intp)


def _ends(line: Line) -> float:
    """In standard deviations of a count's noise: how many rows may be unseen at an end."""
    octave = math.sqrt(OCTAVE_VARIANCE)
    beyond = (ENDS_SEEN, POSITIVE_SEEN if line.without_positive else ENDS_SEEN)
    return max(
        is_open * seen * octave + SEGMENT_SEEN * math.sqrt(cut)
        for is_open, seen, cut in zip(line.open, beyond, line.cut, strict=True)
    )
