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

CERTAIN = 1e-9
"""How often, in all, noise may be taken for values in an octave that has no neighbour with values."""
ZERO = 1e-3
"""The same for zeros in a column that has none."""
NEXT = 0.04
"""Half of this for the octave next to one with values; a quarter of that for each further octave in between."""
NEW_SIDE = 1e-5
"""The same as for certain octaves, on a side of zero that has none: positive values among zeros, say."""
EDGE = 2.5
"""In standard deviations of the noise: the outermost octave ends where the counts further out add up to this."""
CLEAR = 20.0
"""In noise scales: more than noise will ever make."""
PEAK = 1000.0
NARROW = 2.0**-6
"""A bin PEAK times denser than its neighbours, and narrower than NARROW of its octave, is taken for one value."""
ISOLATED_BIN_CHANCE = 0.05
"""How often, in all, noise may be taken for rows in the same octave as a far denser cell."""
TAIL = 4
"""The number of octaves beyond the last one taken that are searched for the rest of a tail."""
MISSING = 1e-3
"""The same for nulls in a column that has none."""
WINDOWS = (1, 2, 4, 8)
UNUSUAL = 0.25
"""Where nothing is clear, magnitudes are e^-0.25 times as likely for each octave they are further from the usual."""
_EXPONENTS = np.linspace(0.02, 0.98, 97)


def log_chance(total: FloatArray, cells: NDArray[np.intp], kind: NoiseKind) -> FloatArray:
    """Logarithm of Chernoff's bound on the chance that noise of scale 1 in `cells` bins adds up to `total` or more."""
    if kind == "gaussian":
        sizes = np.maximum(np.asarray(total, dtype=np.float64), 0.0)
        return np.asarray(-(sizes**2) / (2.0 * np.maximum(cells, 1)))
    t, n = np.asarray(total, dtype=np.float64)[..., np.newaxis], np.asarray(cells)[..., np.newaxis]
    bounds: FloatArray = np.min(-_EXPONENTS * t - n * np.log1p(-(_EXPONENTS**2)), axis=-1)
    return np.minimum(bounds, 0.0)


def occupied(
    octaves: Octaves, noisy: FloatArray, spread: Spread, needed: bool = True, usual: float = 4.0
) -> NDArray[np.bool_]:
    """Which octaves are taken as occupied, by their noisy counts. A spurious far octave distorts every moment.

    First those that are certain; on a side of zero that has none, the run that stands out most, if it does so by far.
    Then, outward and inward from what is taken already, runs of octaves whose total stands out; the further away, the
    more it must, by a factor of four in probability for a factor of two in value, so that the harm to be expected
    falls. What lies between is taken, too. Zero is taken by itself. Where nothing stands out but some octave is
    `needed`, the likeliest ones are taken, near the `usual` exponent.
    """
    kind, totals, cells = spread.kind, noisy / spread.scale, np.ones(len(noisy), dtype=np.intp)
    chance = log_chance(totals, cells, kind)
    taken: NDArray[np.bool_] = chance < math.log(CERTAIN / len(noisy))
    taken |= (octaves.signs == 0) & (chance < math.log(ZERO))
    if not np.any(taken) and needed:
        begin, end = _likeliest(totals, cells, np.abs(octaves.exponents - usual), kind)
        taken[begin:end] = True
    known = octaves.exponents[taken & (octaves.signs != 0)]
    top, slope = (float(known.max()), math.log(2.0)) if len(known) else (0.0, UNUSUAL)
    for sign in (-1, 1):
        side = np.flatnonzero(octaves.signs == sign)[::sign]  # from small magnitudes to large ones
        if not len(side):
            continue
        if not np.any(taken[side]):
            first = _first_run(totals[side], cells[side], slope * np.abs(octaves.exponents[side] - top), kind)
            taken[side[first]] = True
        if np.any(taken[side]):
            taken[side] = _run(taken[side], totals[side], cells[side], octaves.exponents[side], kind)
    return taken


def _windows(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where runs of some octaves begin and end."""
    windows = [(begin, begin + width) for width in WINDOWS for begin in range(count - width + 1)]
    begins, ends = np.array(windows).T
    return begins, ends


def _likeliest(totals: FloatArray, cells: NDArray[np.intp], away: FloatArray, kind: NoiseKind) -> tuple[int, int]:
    """The run of octaves that stands out most, for its noise and for how unusual its magnitudes are."""
    sums, sizes = np.append(0.0, np.cumsum(totals)), np.append(0, np.cumsum(cells))
    begins, ends = _windows(len(totals))
    furthest = np.maximum(away[begins], away[ends - 1])
    chance = log_chance(sums[ends] - sums[begins], sizes[ends] - sizes[begins], kind)
    best = int(np.argmin(chance + UNUSUAL * furthest))
    return int(begins[best]), int(ends[best])


def _first_run(totals: FloatArray, cells: NDArray[np.intp], unlikely: FloatArray, kind: NoiseKind) -> slice:
    """A run of octaves on a side of zero where none is certain; an empty one where noise explains the counts."""
    sums, sizes = np.append(0.0, np.cumsum(totals)), np.append(0, np.cumsum(cells))
    begins, ends = _windows(len(totals))
    chance = log_chance(sums[ends] - sums[begins], sizes[ends] - sizes[begins], kind)
    chance = chance + np.maximum(unlikely[begins], unlikely[ends - 1])
    best = int(np.argmin(chance))
    return slice(int(begins[best]), int(ends[best])) if chance[best] < math.log(NEW_SIDE) else slice(0, 0)


def _run(
    taken: NDArray[np.bool_], totals: FloatArray, cells: NDArray[np.intp], exponents: FloatArray, kind: NoiseKind
) -> NDArray[np.bool_]:
    """One side of zero, magnitudes rising: the octaves taken and what stands out around them, as one run."""
    sums, sizes = np.append(0.0, np.cumsum(totals)), np.append(0, np.cumsum(cells))
    begins, ends = _windows(len(totals))
    chance = log_chance(sums[ends] - sums[begins], sizes[ends] - sizes[begins], kind)
    run = np.flatnonzero(taken)
    begin, end = int(run[0]), int(run[-1]) + 1
    while True:
        outside = (begins >= end) | (ends <= begin)
        away = np.where(begins >= end, exponents[ends - 1] - exponents[end - 1], exponents[begin] - exponents[begins])
        away = np.where(outside, away, np.inf)
        found = chance < math.log(NEXT) - (2.0 * away - 1.0) * math.log(2.0)
        if not np.any(found):
            break
        nearest = int(np.argmin(np.where(found, away, np.inf)))
        begin, end = min(begin, int(begins[nearest])), max(end, int(ends[nearest]))
    whole = np.zeros(len(taken), dtype=bool)
    whole[begin:end] = True
    return whole


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


def up_to_bounds(octaves: Octaves, taken: NDArray[np.bool_], bounded: frozenset[int]) -> NDArray[np.bool_]:
    """The octaves taken, on sides with a declared bound all the way to it: noise cannot lead beyond."""
    for sign in bounded:
        side = np.flatnonzero(octaves.signs == sign)[::sign]
        run = np.flatnonzero(taken[side])
        if len(run):
            taken[side[run[0] :]] = True
    return taken


def without_empty_ends(
    octaves: Octaves,
    octave_of: NDArray[np.intp],
    histogram: FloatArray,
    taken: NDArray[np.bool_],
    deviation: float,
) -> NDArray[np.bool_]:
    """Which bins are kept: on either side of zero those up to where noise explains all that is further out."""
    kept: NDArray[np.bool_] = taken[octave_of]
    for sign in (-1, 1):
        last = np.flatnonzero(kept & (octaves.signs[octave_of] == sign))[::sign]  # from small magnitudes to large ones
        if len(last):
            outside = np.cumsum(histogram[last][::-1])[::-1]
            clear = np.flatnonzero(outside > EDGE * deviation * np.sqrt(np.arange(len(last), 0, -1)))
            edge = int(clear[-1]) if len(clear) else int(np.argmax(histogram[last]))
            kept[last[edge + 1 :]] = False
    return kept


def with_tails(
    octaves: Octaves, octave_of: NDArray[np.intp], histogram: FloatArray, beyond: FloatArray, taken: NDArray[np.bool_]
) -> FloatArray:
    """The histogram of the bins kept, whose outermost octaves get what stands beyond them, up to a few octaves out.

    Those rows are too few to show where they are, but not to show that they are: a tail keeps its mass.
    """
    counts = histogram.copy()
    for sign in (-1, 1):
        side = np.flatnonzero(octaves.signs == sign)[::sign]
        run = np.flatnonzero(taken[side])
        if len(run):
            last = octave_of == side[run[-1]]
            rest = float(beyond[side[run[-1] + 1 : run[-1] + 1 + TAIL]].sum())
            there = np.maximum(counts[last], 0.0)
            if rest > 0 and there.sum() > 0:
                counts[last] += rest * there / there.sum()
    return counts


def without_isolated_bins(
    octave_of: NDArray[np.intp], noisy: FloatArray, sizes: NDArray[np.uint64], spread: Spread
) -> FloatArray:
    """Counts without those that noise alone could have made, in the same octave as a far denser cell.

    The tree splits off what is empty around a heavy value. Other small counts are left as they are: they
    make up a tail, and to drop every one of them would drop the tail.
    """
    density = np.maximum(noisy, 0.0) / sizes.astype(np.float64)
    densest = np.zeros(int(octave_of.max(initial=0)) + 1)
    np.maximum.at(densest, octave_of, density)
    noise = noisy < quantile(spread, ISOLATED_BIN_CHANCE / max(1, len(noisy)))
    return np.where(noise & (densest[octave_of] > PEAK * density), 0.0, noisy)


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
    allowed = min(max(2.5 * noise, min(8.0 * noise, rows / 1000)), rows / 3)
    beyond = np.append(np.cumsum(noisy[::-1])[::-1][1:], 0.0)
    return int(np.flatnonzero(beyond <= allowed)[0])
