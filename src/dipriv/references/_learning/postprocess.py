"""From noisy counts of bins to a histogram: no outlying bins that noise made, no negative counts, N rows in all.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, Octaves
from dipriv.references._learning.measurements import NoiseKind, Spread

EMPTY: dict[NoiseKind, float] = {"laplace": 2.0, "gaussian": 1.0}
"""In units of log-likelihood: what an octave costs that is taken as occupied. Noise alone gains a half or a quarter; it
extends a run by d octaves with a chance below 0.53^d (Laplace) or 0.71^d (Gaussian)."""
OUTERMOST, FURTHER = 0.03, 0.25
"""How often noise may make what octaves on the outside of a run add up to; a quarter of that for each octave further
from a clear one, so that the harm to be expected falls."""
CERTAIN: dict[NoiseKind, float] = {"laplace": 9.0, "gaussian": 5.0}
"""In standard deviations of the noise: what makes an octave clear."""
ZERO = 4.0
"""What zeros must gain."""
ON_A_SIDE = 8.0
"""What the octaves of one sign must gain in all: positive values among zeros, say."""
UNUSUAL, FAR = 0.2, 2.0
"""Magnitudes are e^-0.2 times as likely for each octave they are further from the usual, but those that are d octaves
from it not less than (1 + d)^-2 times: clear counts are found anywhere."""
EDGE, OF_OCTAVE = 1.5, 0.25
"""In standard deviations of the noise: segments at the ends that add up to less are taken as empty, unless they have
more than this part of their octave, whose total is known better than its bins are."""
CLEAR = 20.0
"""In noise scales: more than noise will ever make."""
PEAK = 1000.0
NARROW = 2.0**-6
"""A bin PEAK times denser than its neighbours, and narrower than NARROW of its octave, is taken for one value."""
NARROW_PART = 1e-6
POWERS = (-1.0, 3.0)
"""The exponents of power laws of density that may be taken from neighbouring octaves."""
BEYOND_NOISE = 4.0
"""In standard deviations of all counts of steps together: how many values may be multiples of finer steps alone before
a finer step is taken. Gaussian noise exceeds that in fewer than one column of 30,000."""
MISSING = 1e-2
"""How often noise may be taken for nulls in a column that has none."""


def occupied(
    octaves: Octaves, totals: FloatArray, deviations: FloatArray, kind: NoiseKind, needed: bool, usual: float
) -> NDArray[np.bool_]:
    """Which octaves are taken as occupied: on each side of zero the run with the largest gain in log-likelihood.

    An octave gains what its count is less probable under noise alone, and costs EMPTY. So a spurious octave far from
    all others, which would distort every moment, must gain what all empty ones in between cost. Zero is taken by
    itself. Where nothing stands out but some octave is `needed`, the likeliest run is taken, near the `usual` exponent.
    """
    sizes = np.maximum(totals, 0.0) / deviations
    gains = (sizes**2 / 2.0 if kind == "gaussian" else math.sqrt(2.0) * sizes) - EMPTY[kind]
    taken: NDArray[np.bool_] = (octaves.signs == 0) & (gains > ZERO)
    runs = []
    for sign in (-1, 1):
        side = np.flatnonzero(octaves.signs == sign)
        if len(side):
            gain, begin, end = _best_run(gains[side], _unusual(octaves.exponents[side] - usual))
            middle = octaves.exponents[side[begin:end]].mean(keepdims=True)
            run = _without_ends(side[begin:end], totals, deviations, kind)
            runs.append((gain - float(_unusual(middle - usual)[0]), run))
    for gain, run in runs:
        taken[run] = gain > ON_A_SIDE
    if needed and runs and not np.any(taken):
        taken[max(runs, key=lambda found: found[0])[1]] = True
    return taken


def _unusual(distances: FloatArray) -> FloatArray:
    """In units of log-likelihood: the cost of magnitudes at these distances, in octaves, from the usual."""
    cost: FloatArray = np.minimum(UNUSUAL * np.abs(distances), FAR * np.log1p(np.abs(distances)))
    return cost


def _best_run(gains: FloatArray, costs: FloatArray) -> tuple[float, int, int]:
    """The sum and the ends of the best run of octaves, which is at least one; to begin at octave i costs costs[i]."""
    sums = np.append(0.0, np.cumsum(gains))
    before = sums[:-1] + costs
    end = int(np.argmax(sums[1:] - np.minimum.accumulate(before))) + 1
    begin = int(np.argmin(before[:end]))
    return float(sums[end] - sums[begin]), begin, end


def _without_ends(
    run: NDArray[np.intp], totals: FloatArray, deviations: FloatArray, kind: NoiseKind
) -> NDArray[np.intp]:
    """The run up to where noise explains all that is further out, on both ends; at least its fullest octave."""
    for _ in range(2):
        run = run[::-1]
        outside = np.cumsum(totals[run]) / np.sqrt(np.cumsum(deviations[run] ** 2))
        certain = np.flatnonzero(totals[run] > CERTAIN[kind] * deviations[run])
        away = np.maximum((certain[0] if len(certain) else len(run)) - np.arange(len(run)) - 1, 0)
        logs = -math.log(2.0 * OUTERMOST) - away * math.log(FURTHER)
        clear = np.flatnonzero(outside > (np.sqrt(2.0 * logs) if kind == "gaussian" else logs / math.sqrt(2.0)))
        run = run[int(clear[0]) if len(clear) else int(np.argmax(totals[run])) :]
    return run


def masses_between_octaves(
    octaves: Octaves,
    last: int,
    starts: Codes,
    sizes: NDArray[np.uint64],
    octave_of: NDArray[np.intp],
    totals: FloatArray,
    deviations: FloatArray,
) -> FloatArray:
    """What bins would have if density inside an octave followed the power law between the octaves beside it.

    Between a full and an empty octave density falls; an even one would put too much at the far end, and into the mean.
    """
    logs = np.log2(np.maximum(totals, deviations))
    powers = np.ones(len(totals))
    for sign in (-1, 1):
        side = np.flatnonzero(octaves.signs == sign)[::sign]  # from small magnitudes to large ones
        if len(side) > 2:
            powers[side[1:-1]] = np.clip(1.0 - (logs[side[2:]] - logs[side[:-2]]) / 2.0, *POWERS)
    ends = np.append(octaves.starts[1:].astype(np.float64), last + 1.0)
    lengths = np.maximum(ends - octaves.starts, 1.0)[octave_of]
    near = (starts - octaves.starts[octave_of]).astype(np.float64) / lengths
    parts = sizes.astype(np.float64) / lengths
    far = near + parts
    below = octaves.signs[octave_of] < 0
    low, high = np.where(below, 2.0 - far, 1.0 + near), np.where(below, 2.0 - near, 1.0 + far)
    exponents = 1.0 - powers[octave_of]
    flat = np.abs(exponents) < 1e-9
    safe = np.where(flat, 1.0, exponents)
    masses = np.where(flat, np.log(high / low), (high**safe - low**safe) / safe)
    return np.where(parts < NARROW_PART, parts * low ** (exponents - 1.0), masses)  # else it would be rounded away


def to_total(noisy: FloatArray, total: float) -> FloatArray:
    """Counts that are not negative and add up to `total`: if they are too large, the projection in least
    squares; if they are too small, all are scaled by one factor, so that empty bins stay empty.
    """
    clipped: FloatArray = np.maximum(noisy, 0.0)
    if clipped.sum() <= total:
        return clipped * (total / clipped.sum()) if clipped.any() else np.full(len(noisy), total / max(1, len(noisy)))
    largest = np.sort(noisy)[::-1]
    excess = (np.cumsum(largest) - total) / np.arange(1, len(noisy) + 1)
    last = int(np.flatnonzero(largest > excess)[-1])
    shortened: FloatArray = np.maximum(noisy - excess[last], 0.0)
    return shortened


def single_values(
    line: FloatBitCodes, starts: Codes, sizes: NDArray[np.uint64], histogram: FloatArray, spread: Spread
) -> tuple[Codes, NDArray[np.uint64]]:
    """The same cells, but those that hold a single value to all appearance are cut down to the shortest number in them:
    cells that are narrow, clearly occupied, and far denser than what is beside them.

    The halving of a line stops short of single floating-point numbers; without this a column of 42.0s would be released
    as 42.0000001s.
    """
    widths = sizes.astype(np.float64)
    density = histogram / widths
    beside = np.maximum(np.append(0.0, density[:-1]), np.append(density[1:], 0.0))
    narrow = widths < math.ldexp(NARROW, np.finfo(line.dtype).nmant)
    starts, sizes = starts.copy(), sizes.copy()
    for cell in np.flatnonzero(narrow & (histogram > CLEAR * spread.scale) & (density > PEAK * beside)):
        ends = line.to_values(np.array([starts[cell], starts[cell] + np.int64(sizes[cell]) - 1]))
        starts[cell] = line.to_codes(np.array([shortest_between(*ends.tolist())]))[0]
        sizes[cell] = 1
    return starts, sizes


def shortest_between(low: float, high: float) -> float:
    """The number between these two, both included, that has the fewest digits.

    >>> shortest_between(41.9999, 42.0003), shortest_between(0.0994, 0.1002)
    (42.0, 0.1)
    """
    for digits in range(1, 17):
        short = float(f"{low / 2 + high / 2:.{digits}g}")
        if low <= short <= high:
            return short
    return low


def without_empty_ends(
    octaves: Octaves,
    octave_of: NDArray[np.intp],
    histogram: FloatArray,
    widths: FloatArray,
    deviation: float,
) -> NDArray[np.bool_]:
    """Which bins are kept of the outermost and innermost octaves on either side of zero.

    They are smoothed already: segments of even density at the ends whose totals noise explains are left out.
    """
    kept = np.ones(len(histogram), dtype=bool)
    for sign in (-1, 1):
        own = np.flatnonzero(octaves.signs[octave_of] == sign)
        for end in (own, own[::-1]):
            inside = end[octave_of[end] == octave_of[end[0]]] if len(end) else end
            density = histogram[inside] / widths[inside]
            ends = np.flatnonzero(~np.isclose(density[1:], density[:-1], rtol=1e-6)) + 1
            outside = np.append(0.0, np.cumsum(histogram[inside]))
            for stop in ends.tolist():
                if outside[stop] > min(EDGE * deviation * math.sqrt(stop), OF_OCTAVE * outside[-1]):
                    break
                kept[inside[:stop]] = False
            if len(inside) and not np.any(kept[inside]):  # both ends, and nothing between them
                kept[inside] = True
    return kept


def missing_found(noisy: FloatArray, spread: Spread) -> FloatArray:
    """Counts of missing cells, taken as none where noise alone could have made them."""
    return np.where(noisy > quantile(spread, MISSING), noisy, 0.0)


def quantile(spread: Spread, chance: float) -> float:
    """A value that noise exceeds with at most this chance."""
    logs = math.log(1.0 / chance)
    return spread.scale * (logs if spread.kind == "laplace" else math.sqrt(2.0 * logs))


def finest_step(noisy: FloatArray, spread: Spread, rows: int) -> int:
    """The number of the coarsest step that nearly all values are multiples of.

    noisy[k] counts the values that are multiples of step k, but of no coarser one; the last counts all others. Where
    noise hides which step is right, a coarse one does less harm than digits that no value has.
    """
    noise = spread.deviation * math.sqrt(len(noisy))
    allowed = min(max(BEYOND_NOISE * noise, min(8.0 * noise, rows / 1000)), rows / 3)
    beyond = np.append(np.cumsum(noisy[::-1])[::-1][1:], 0.0)
    return int(np.flatnonzero(beyond <= allowed)[0])
