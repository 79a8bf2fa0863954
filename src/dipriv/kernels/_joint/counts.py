"""The distribution of the joint kernel's flips, in whole numbers of any size.

A flip of a bit of weight w costs w. Bits of equal weight form a class, and all z with the same number of flips in every
class are equally likely: z has weight A if its cost is at most the limit, else B. So the numbers of flips can be drawn
class by class, heaviest first, and all that matters of the classes before is what their flips cost together. Once the
rest can no longer change on which side of the limit z ends, the bits that are left are fair coins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import TypeAlias

import numpy as np

from dipriv._base.arrays import Words

Classes: TypeAlias = tuple[tuple[int, int], ...]
"""(weight of a bit, number of such bits), heaviest first."""


def classes_of(weights: Iterable[int], bits: int) -> Classes:
    """Column l has bits of weight a_l 4^(K-1), ..., a_l; a column of weight 0 has none.

    >>> classes_of([4, 1, 0], 2)
    ((16, 1), (4, 2), (1, 1))
    """
    sizes = Counter(int(a) << 2 * k for a in weights if a for k in range(bits))
    return tuple(sorted(sizes.items(), reverse=True))


def bits_of(classes: Classes) -> int:
    return sum(size for _, size in classes)


def total_cost(classes: Classes) -> int:
    """What it costs to flip every bit."""
    return sum(weight * size for weight, size in classes)


@lru_cache(maxsize=4)
def cost_counts(classes: Classes) -> tuple[int, ...]:
    """How many z have cost 0, 1, ...: the coefficients of the product of (1 + x^w) over all bits.

    The polynomial is held as one integer, its value at x = 2^(8 room), where no coefficient can spill into the next.
    Flipping all bits mirrors the counts, so half of them are enough.
    """
    room, total = bits_of(classes) // 8 + 1, total_cost(classes)
    half = total // 2 + 1
    polynomial, degree = 1, 0
    for weight, size in reversed(classes):
        for _ in range(size):
            polynomial += polynomial << 8 * room * weight
            degree += weight
            if degree >= 2 * half:
                polynomial &= (1 << 8 * room * half) - 1
                degree = half
    digits = (polynomial & ((1 << 8 * room * half) - 1)).to_bytes(room * half, "little")
    counts = [int.from_bytes(digits[at : at + room], "little") for at in range(0, len(digits), room)]
    return tuple(counts + counts[: total + 1 - half][::-1])


@lru_cache(maxsize=64)
def counts_within(classes: Classes, limit: int, weights: tuple[int, ...]) -> tuple[int, ...]:
    """For each set of some bits that flips, written as a binary number, how many z of the other bits keep to the limit.

    The costs of the other bits are counted by the polynomial divided by the (1 + x^w) of these.
    """
    counts = list(cost_counts(classes)[: max(limit, -1) + 1])
    for weight in weights:
        for cost in range(weight, len(counts)):
            counts[cost] -= counts[cost - weight]
    within = list(accumulate(counts))
    costs = [sum(weight for k, weight in enumerate(weights) if b >> k & 1) for b in range(1 << len(weights))]
    return tuple(within[limit - cost] if cost <= limit else 0 for cost in costs)


def best_limit(classes: Classes, inside: int, outside: int) -> int:
    """The limit with the largest expected score, s = total - 2 cost.

    E s = (A - B) Σ s / (|S| A + |Sᶜ| B), with the sum over S, because all scores add up to 0. A further z raises this
    fraction exactly if its own score is larger than it: S grows until the next score is not.
    """
    total, more = total_cost(classes), inside - outside
    size, scores, limit = 0, 0, 0
    for cost, count in enumerate(cost_counts(classes)):
        score = total - 2 * cost
        if size and score * ((outside << bits_of(classes)) + more * size) <= more * scores:
            break
        if count:
            size, scores, limit = size + count, scores + count * score, cost
    return limit


def table_size(classes: Classes) -> int:
    """An upper bound on the numbers in the tables of a distribution on these classes, for any limit."""
    left, spent, step, reached, numbers = total_cost(classes), 0, 1, 1, 0
    for weight, size in classes:
        window = min(left, spent) + 1
        numbers += (size + 1) * (min(reached, window // step + 1) + 1) + window
        reached *= size + 1
        step = math.gcd(step, weight) if spent else weight
        left, spent = left - weight * size, spent + weight * size
    return numbers


@dataclass(frozen=True, eq=False)
class FlipDistribution:
    """P(z) = A/D if the cost of z is at most the limit, else B/D, as a chain over the classes.

    For each class j, and each cost of the classes before that is possible and leaves the side of z open, open_weights
    has the total weight of all ways to go on, and open_digits 64 binary digits of the cumulative probabilities.
    """

    classes: Classes
    limit: int
    inside: int
    outside: int
    left: tuple[int, ...] = field(init=False, repr=False)
    """What the classes from j on can cost."""
    coins: tuple[int, ...] = field(init=False, repr=False)
    """How many bits they have."""
    ways: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    open_weights: list[dict[int, int]] = field(init=False, repr=False)
    open_digits: list[dict[int, Words]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        costs = (weight * size for weight, size in reversed(self.classes))
        sizes = (size for _, size in reversed(self.classes))
        object.__setattr__(self, "left", tuple(accumulate(costs, initial=0))[::-1])
        object.__setattr__(self, "coins", tuple(accumulate(sizes, initial=0))[::-1])
        object.__setattr__(self, "ways", tuple(_binomials(size) for _, size in self.classes))
        object.__setattr__(self, "open_weights", self._open_costs())
        object.__setattr__(self, "open_digits", [{} for _ in self.classes])
        for j in reversed(range(len(self.classes))):
            for cost in self.open_weights[j]:
                ends = self.ends(j, cost)
                self.open_weights[j][cost] = ends[-1]
                self.open_digits[j][cost] = leading_digits(ends)

    @property
    def total(self) -> int:
        """D, the total weight of all z."""
        return self.ends(0, 0)[-1]

    def ends(self, j: int, cost: int) -> list[int]:
        """The cumulative weights of 0, 1, ..., all flips in class j, when the classes before cost this much."""
        (weight, size), after = self.classes[j], self.open_weights[j + 1]
        surely_inside = _clip((self.limit - self.left[j + 1] - cost) // weight + 1, size + 1)
        perhaps_inside = _clip((self.limit - cost) // weight + 1, size + 1)
        weights = [self.inside << self.coins[j + 1]] * surely_inside
        weights += [after[cost + weight * flips] for flips in range(surely_inside, perhaps_inside)]
        weights += [self.outside << self.coins[j + 1]] * (size + 1 - perhaps_inside)
        return list(accumulate(map(mul, self.ways[j], weights)))

    def _open_costs(self) -> list[dict[int, int]]:
        costs: list[dict[int, int]] = [{0: 0} if 0 <= self.limit < self.left[0] else {}]
        for j, (weight, size) in enumerate(self.classes):
            lowest = self.limit - self.left[j + 1] + 1
            after = {cost + weight * flips for cost in costs[j] for flips in range(size + 1)}
            costs.append({cost: 0 for cost in after if lowest <= cost <= self.limit})
        return costs


def leading_digits(ends: list[int]) -> Words:
    """64 binary digits of the cumulative probabilities below 1."""
    return np.array([(end << 64) // ends[-1] for end in ends[:-1]], dtype=np.uint64)


def _clip(number: int, most: int) -> int:
    return min(max(number, 0), most)


def _binomials(n: int) -> tuple[int, ...]:
    return tuple(accumulate(range(n), lambda ways, k: ways * (n - k) // (k + 1), initial=1))
