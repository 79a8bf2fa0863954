"""Whether the tables of the joint kernel draw the flips that they should: counted anew, for audits.

It shares no code with `counts` and `sampler`, which build and use the tables.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dipriv._base.arrays import Words
from dipriv.kernels._joint.counts import FlipDistribution


def draws_what_it_says(flips: FlipDistribution) -> bool:
    """Whether the digits that flips are drawn by are those of a distribution that gives each z the weight A or B.

    The total weight of all ways to go on is counted anew, from the last class backwards.
    """
    classes, limit = flips.classes, flips.limit
    left = [sum(weight * size for weight, size in classes[j:]) for j in range(len(classes) + 1)]
    coins = [sum(size for _, size in classes[j:]) for j in range(len(classes) + 1)]

    @cache
    def weight_of(j: int, cost: int) -> int:
        if cost > limit:
            return flips.outside << coins[j]
        if cost + left[j] <= limit:
            return flips.inside << coins[j]
        return sum(ways(j, cost))

    def ways(j: int, cost: int) -> list[int]:
        weight, size = classes[j]
        return [math.comb(size, count) * weight_of(j + 1, cost + weight * count) for count in range(size + 1)]

    costs = {0}
    for j, (weight, size) in enumerate(classes):
        open_costs = {cost for cost in costs if cost <= limit < cost + left[j]}
        if open_costs != set(flips.open_digits[j]):
            return False
        if any(not np.array_equal(flips.open_digits[j][cost], _digits(ways(j, cost))) for cost in open_costs):
            return False
        costs = {cost + weight * count for cost in open_costs for count in range(size + 1)}
    return True


def _digits(weights: list[int]) -> Words:
    """64 binary digits of the cumulative probabilities below 1."""
    total, below, digits = sum(weights), 0, []
    for weight in weights[:-1]:
        below += weight
        digits.append((below << 64) // total)
    return np.array(digits, dtype=np.uint64)
