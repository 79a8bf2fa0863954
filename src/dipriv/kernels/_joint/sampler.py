"""Exact draws of the joint kernel's flips z, by one compiled loop over rows.

In each class one word gives the number of flips: U, the binary fraction of the word, is compared with the cumulative
probabilities, of which the table holds 64 binary digits. Further words pick which bits flip, by the first steps of a
Fisher-Yates shuffle: as many steps as fit share one word, whose U times their radices' product is, rounded down, the
number whose digits in these radices are the picks. Where the digits of a word do not decide a comparison or a pick
(about once in 2^24 words or less) the loop gives the row up, and `flip_exactly` repeats it from the same words with as
many further digits of U as it takes. So the distribution is exact, not approximate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse
from dipriv.kernels._joint.counts import FlipDistribution, leading_digits

WORD = 64
"""Binary digits that decide a number of flips."""
MAX_PRODUCT = 1 << 24
"""Picks share a word while the product of their radices is at most this; 48 digits of the word decide them."""
MAX_WORDS = 1 << 22
"""How many words are in memory at a time."""


@dataclass(frozen=True, eq=False)
class FlipTables:
    """What the loop reads. A row of `plan` describes a class:

    its size and weight, where its bits begin in `places`, the number of its first word, the lowest cost at which the
    side of z is open, where in `starts` the costs from there on begin, and where in `ends` its row of fair coins does.
    """

    flips: FlipDistribution
    places: NDArray[np.int64]
    """(bits, 2): the column of each bit, and its value in the column's bin number; class by class."""
    columns: int
    plan: NDArray[np.int64] = field(init=False, repr=False)
    starts: NDArray[np.int64] = field(init=False, repr=False)
    ends: Words = field(init=False, repr=False)
    last_pick: NDArray[np.int64] = field(init=False, repr=False)
    """For each word how many picks of its class are made when it is used up; 0 for a word that gives a number."""

    def __post_init__(self) -> None:
        flips = self.flips
        members, used = 0, 0
        plan: list[tuple[int, ...]] = []
        starts: list[int] = []
        ends: list[Words] = []
        last_pick: list[int] = []
        for j, (weight, size) in enumerate(flips.classes):
            lowest = max(0, flips.limit - flips.left[j] + 1)
            plan.append((size, weight, members, len(last_pick), lowest, len(starts), used))
            ends += [leading_digits(flips.ends(j, flips.limit + 1)), *flips.open_digits[j].values()]
            row_of = {cost: used + size * (1 + row) for row, cost in enumerate(flips.open_digits[j])}
            starts += [row_of.get(cost, -1) for cost in range(lowest, max(row_of, default=-1) + 1)]
            last_pick += [0, *_shared_words(size)]
            members, used = members + size, used + size * (1 + len(row_of))
        object.__setattr__(self, "plan", np.array(plan, dtype=np.int64))
        object.__setattr__(self, "starts", np.array(starts, dtype=np.int64))
        object.__setattr__(self, "ends", np.concatenate(ends))
        object.__setattr__(self, "last_pick", np.array(last_pick, dtype=np.int64))


def draw_flips(tables: FlipTables, draws: Draws, digits: int = WORD) -> NDArray[np.uint8]:
    """(n, p) numbers to XOR the bins with. Only the leading `digits` of each word are used: few of them give the
    same distribution, by many more rows that the loop must leave to `flip_exactly`.
    """
    z = np.zeros((draws.count, tables.columns), dtype=np.uint8)
    ends = tables.ends >> np.uint64(WORD - digits)
    chunk = max(1, MAX_WORDS // len(tables.last_pick))
    for first in range(0, draws.count, chunk):
        rows = Draws(draws.bits, draws.first + first, min(chunk, draws.count - first), draws.column)
        words, part = _words(tables, rows), z[first : first + chunk]
        undecided = np.zeros(rows.count, dtype=np.bool_)
        flip_rows(
            words, tables.plan, tables.last_pick, tables.starts, ends, tables.places, tables.flips.limit, digits,
            part, undecided,
        )  # fmt: skip
        for row in np.flatnonzero(undecided):
            part[row] = flip_exactly(tables, words[row], _more_digits(rows, int(row)), digits)
    return z


def draw_flips_exactly(tables: FlipTables, draws: Draws, digits: int = WORD) -> NDArray[np.uint8]:
    """The same numbers, every row by `flip_exactly`."""
    words = _words(tables, draws)
    rows = [flip_exactly(tables, words[row], _more_digits(draws, row), digits) for row in range(draws.count)]
    return np.array(rows, dtype=np.uint8).reshape(draws.count, tables.columns)


@jit
def flip_rows(
    words: Words,
    plan: NDArray[np.int64],
    last_pick: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: Words,
    places: NDArray[np.int64],
    limit: int,
    digits: int,
    z: NDArray[np.uint8],
    undecided: NDArray[np.bool_],
) -> None:
    """Each row of words -> a row of z, or the row is undecided."""
    one = np.uint64(1) << np.uint64(48)
    unseen, unseen_in_pick = np.uint64(64 - digits), np.uint64(max(48 - digits, 0))
    order = np.empty(len(places), dtype=np.int64)
    for i in range(len(words)):
        cost = 0
        sure = True
        for j in range(len(plan)):
            size, weight, members, word, lowest, at, row = plan[j]
            if lowest <= cost <= limit:
                row = starts[at + cost - lowest]
            leading = words[i, word] >> unseen
            flips = 0
            for k in range(row, row + size):
                flips += ends[k] <= leading
            sure &= flips == 0 or ends[row + flips - 1] != leading
            cost += weight * flips
            for k in range(size):
                order[k] = members + k
            picks = flips
            if 2 * flips > size:
                picks = size - flips
                for k in range(members, members + size):
                    z[i, places[k, 0]] ^= np.uint8(places[k, 1])
            pick = 0
            while pick < picks:
                word += 1
                rest = words[i, word] >> np.uint64(16) >> unseen_in_pick << unseen_in_pick
                product = np.uint64(1)
                stop = min(picks, last_pick[word])
                for step in range(pick, stop):
                    radix = np.uint64(size - step)
                    product *= radix
                    rest *= radix
                    other = step + np.int64(rest >> np.uint64(48))
                    rest &= one - np.uint64(1)
                    k = order[other]
                    order[other] = order[step]
                    z[i, places[k, 0]] ^= np.uint8(places[k, 1])
                pick = stop
                sure &= product <= (one - rest) >> unseen_in_pick
        undecided[i] = not sure


def flip_exactly(tables: FlipTables, words: Words, more: Iterator[int], digits: int = WORD) -> NDArray[np.uint8]:
    """The same for one row, in whole numbers; each word has the leading `digits` of a U and `more` has the others."""
    z = np.zeros(tables.columns, dtype=np.uint8)
    leading = [int(word) >> (WORD - digits) for word in words]
    cost = 0
    for j, (size, weight, members, first_word, *_) in enumerate(tables.plan.tolist()):
        word = first_word
        flips = locate(leading[word], digits, tables.flips.ends(j, cost), more)
        cost += weight * flips
        order = list(range(members, members + size))
        picks = min(flips, size - flips)
        pick = 0
        while pick < picks:
            word += 1
            steps = range(pick, min(picks, int(tables.last_pick[word])))
            for step, other in zip(steps, _picks(leading[word], digits, [size - k for k in steps], more), strict=True):
                order[step], order[step + other] = order[step + other], order[step]
            pick = steps.stop
        for k in order[:flips] if flips == picks else order[picks:]:
            z[tables.places[k, 0]] ^= np.uint8(tables.places[k, 1])
    return z


def locate(word: int, length: int, ends: Sequence[int], more: Iterator[int]) -> int:
    """How many of the ends are at most U ends[-1], for a uniform U in [word, word + 1)/2^length and further digits."""
    while True:
        lowest = bisect_right(ends, word * ends[-1] >> length)
        highest = bisect_right(ends, (word + 1) * ends[-1] - 1 >> length)
        if lowest == highest:
            return lowest
        word, length = word << WORD | next(more), length + WORD


def _picks(word: int, length: int, radices: list[int], more: Iterator[int]) -> list[int]:
    """Independent uniform numbers below each radix: the digits, in these radices, of U times their product."""
    number = locate(word, length, range(1, int(np.prod(radices, dtype=object)) + 1), more)
    picks = []
    for radix in reversed(radices):
        number, pick = divmod(number, radix)
        picks.append(pick)
    return picks[::-1]


def _shared_words(size: int) -> list[int]:
    """How many picks are made at the end of each word, when up to half of a class is picked."""
    done, product = [0], 1
    for pick in range(size // 2):
        product *= size - pick
        if product > MAX_PRODUCT and pick > done[-1]:
            done.append(pick)
            product = size - pick
    return [*done[1:], size // 2] if size > 1 else []


def _words(tables: FlipTables, draws: Draws) -> Words:
    """(n, words a row), two words for each use of the flips' column."""
    uses = (len(tables.last_pick) + 1) // 2
    words = np.empty((draws.count, 2 * uses), dtype=np.uint64)
    for use in range(uses):
        words[:, 2 * use : 2 * use + 2] = draws.blocks(use)
    return words


def _more_digits(draws: Draws, row: int) -> Iterator[int]:
    """Further random words for one row: further attempts of the first use."""
    number = 0
    while True:
        number += 1
        yield from (int(word) for word in draws.blocks_again(NoiseUse.DRAW, number, np.array([row]))[0])
