"""From noisy counts of cells to a column's law: nothing far out that is noise, nothing negative, N rows in all.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dipriv.codecs.lines import ORDINARY, BitsLine, Codes, Octaves
from dipriv.randomness import FloatArray

CERTAIN = 1e-9
"""How often, in all, noise may be taken for values in an octave that has no neighbour with values."""
NEXT = 1e-3
"""The same for the octave next to one with values; half of that for each further octave in between."""
CLEAR = 20.0
"""So many noise scales: more than noise will ever make."""
PEAK = 1000.0
NARROW = 2.0**-6
"""A cell so many times denser than its neighbours, and so much narrower than its octave, is taken for one value."""
MISSING = 1e-4
"""The same for nulls in a column that has none."""
WINDOWS = (1, 2, 4, 8)
_EXPONENTS = np.linspace(0.02, 0.98, 97)


def log_chance(total: FloatArray, cells: NDArray[np.intp]) -> FloatArray:
    """Logarithm of Chernoff's bound on the chance that `cells` unit Laplace variables add up to `total` or more."""
    t, n = np.asarray(total, dtype=np.float64)[..., np.newaxis], np.asarray(cells)[..., np.newaxis]
    bounds: FloatArray = np.min(-_EXPONENTS * t - n * np.log1p(-(_EXPONENTS**2)), axis=-1)
    return np.minimum(bounds, 0.0)


def occupied(
    octaves: Octaves, octave_of: NDArray[np.intp], noisy: FloatArray, scale: float, needed: bool = True
) -> NDArray[np.bool_]:
    """Which octaves are taken to hold values. A spurious far octave is a catastrophe for every moment of the column.

    First those that are certain. Then, on either side of zero, outward and inward from what is taken already, runs of
    octaves whose total stands out; the further away, the more it must, by a factor of two in probability for a factor
    of two in value, so that the harm to be expected stays the same. What lies between is taken, too. Zero is taken by
    itself. Where nothing stands out but some octave is `needed`, the most likely one of ordinary magnitude is taken.
    """
    count = len(octaves.starts)
    totals = np.bincount(octave_of, noisy, minlength=count) / scale
    cells = np.bincount(octave_of, minlength=count)
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, octave_of, noisy / scale)
    chance = np.minimum(log_chance(totals, cells), np.log(cells) - highest)
    taken: NDArray[np.bool_] = chance < math.log(CERTAIN / count)
    taken |= (octaves.signs == 0) & (chance < math.log(NEXT))
    if not np.any(taken) and needed:
        far = np.abs(octaves.exponents - ORDINARY)
        taken[np.argmin(chance + 3.0 * np.log1p(far))] = True
    known = octaves.exponents[taken & (octaves.signs != 0)]
    top = float(known.max()) if len(known) else 0.0
    for sign in (-1, 1):
        side = np.flatnonzero(octaves.signs == sign)[::sign]  # from small magnitudes to large ones
        if len(side):
            taken[side] = _run(taken[side], totals[side], cells[side], octaves.exponents[side], top)
    return taken


def _run(
    taken: NDArray[np.bool_], totals: FloatArray, cells: NDArray[np.intp], exponents: FloatArray, top: float
) -> NDArray[np.bool_]:
    """One side of zero, magnitudes rising: the octaves taken, as one run. `top` is the largest exponent known."""
    sums, sizes = np.append(0.0, np.cumsum(totals)), np.append(0, np.cumsum(cells))
    windows = [(begin, begin + width) for width in WINDOWS for begin in range(len(totals) - width + 1)]
    begins, ends = np.array(windows).T
    chance = log_chance(sums[ends] - sums[begins], sizes[ends] - sizes[begins])
    largest, smallest = exponents[ends - 1], exponents[begins]
    run = np.flatnonzero(taken)
    begin, end = (run[0], run[-1] + 1) if len(run) else (0, 0)
    while True:
        if begin == end:
            away = 1.0 + np.maximum(np.abs(largest - top), np.abs(smallest - top))
        else:
            outside = (begins >= end) | (ends <= begin)
            away = np.where(begins >= end, largest - exponents[end - 1], exponents[begin] - smallest)
            away = np.where(outside, away, np.inf)
        found = chance < math.log(NEXT) - away * math.log(2.0)
        if not np.any(found):
            break
        nearest = int(np.argmin(np.where(found, away, np.inf)))
        if begin == end:
            begin, end = begins[nearest], ends[nearest]
        else:
            begin, end = min(begin, begins[nearest]), max(end, ends[nearest])
    whole = np.zeros(len(taken), dtype=bool)
    whole[begin:end] = True
    return whole


def to_total(noisy: FloatArray, total: float) -> FloatArray:
    """Counts that are not negative and add up to `total`: all shortened alike where they are too many, in least
    squares the nearest such counts, and all stretched alike where they are too few, so that what is empty stays so.
    """
    held: FloatArray = np.maximum(noisy, 0.0)
    if held.sum() <= total:
        return held * (total / held.sum()) if held.any() else np.full(len(noisy), total / max(1, len(noisy)))
    largest = np.sort(noisy)[::-1]
    excess = (np.cumsum(largest) - total) / np.arange(1, len(noisy) + 1)
    last = int(np.flatnonzero(largest > excess)[-1])
    shortened: FloatArray = np.maximum(noisy - excess[last], 0.0)
    return shortened


def single_values(
    line: BitsLine, starts: Codes, sizes: NDArray[np.uint64], masses: FloatArray, scale: float
) -> tuple[Codes, NDArray[np.uint64]]:
    """The same cells, but those that hold a single value to all appearance are cut down to the shortest number in them:
    cells that are narrow, clearly occupied, and far denser than what is beside them.

    The halving of a line stops short of single floating-point numbers; without this a column of 42.0s would be released
    as 42.0000001s.
    """
    widths = sizes.astype(np.float64)
    density = masses / widths
    beside = np.maximum(np.append(0.0, density[:-1]), np.append(density[1:], 0.0))
    narrow = widths < math.ldexp(NARROW, np.finfo(line.dtype).nmant)
    starts, sizes = starts.copy(), sizes.copy()
    for cell in np.flatnonzero(narrow & (masses > CLEAR * scale) & (density > PEAK * beside)):
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


def missing_found(noisy: FloatArray, scale: float) -> FloatArray:
    """Counts of missing cells, taken as none where noise alone could have made them."""
    return np.where(noisy > -scale * math.log(MISSING), noisy, 0.0)


def finest_step(noisy: FloatArray, scale: float, rows: int) -> int:
    """The number of the coarsest step that nearly all values are multiples of; the last one where noise hides it.

    noisy[k] counts the values that are multiples of step k, but of no coarser one; the last counts all others.
    """
    allowed = 2.5 * scale * math.sqrt(len(noisy))
    beyond = np.append(np.cumsum(noisy[::-1])[::-1][1:], 0.0)
    return int(np.flatnonzero(beyond <= allowed)[0]) if allowed <= 0.1 * rows else len(noisy) - 1
