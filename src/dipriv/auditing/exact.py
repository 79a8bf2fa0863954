"""The ε that a finite kernel truly spends, from its integers alone: no draw, and no rounding that is in our favour.

Where cells go through a matrix of whole numbers, the chance of every outcome is a fraction, and the largest ratio of
two chances of one outcome is e to the ε of the kernel. The checks that kernels make of themselves are not used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np

from dipriv._arrays import Words
from dipriv.auditing.results import Exact
from dipriv.kernels._joint.counts import FlipDistribution
from dipriv.kernels._joint.kernel import JointKernel
from dipriv.kernels._per_column.kernel import ColumnsKernel
from dipriv.mechanism import Chain, Levels, Mechanism, Separate, compose
from dipriv.release.fitting import FittedMechanism


def exact_epsilon(fitted: FittedMechanism, epsilon: float | None = None) -> tuple[Exact, ...]:
    """The exact ε of each column whose kernel is finite, and of a whole row if all are; nothing for noise on reals.

    A column is compared with its part of ε, a row with `epsilon`, the claim, by default that of the kernel.
    """
    claimed = fitted.kernel.epsilon if epsilon is None else epsilon
    mechanism = compose([column.codec for column in fitted.columns], fitted.reference, fitted.kernel, fitted.order)
    if isinstance(mechanism, Chain) and isinstance(mechanism.kernel, JointKernel):
        return (Exact("a row, all columns together", claimed, smallest_exponent(joint_ratio(mechanism.kernel))),)
    of_v = [column.name for column in fitted.columns for _ in range(column.codec.dims)]
    found = [matrix and (largest_ratio(matrix[0]), matrix[1]) for matrix in _matrices(mechanism, len(of_v))]
    if len(found) == 1:
        return tuple(Exact(f"column {of_v[0]!r}", claimed, smallest_exponent(one[0])) for one in found if one)
    names = (of_v[position] for position in fitted.order)
    each = tuple(
        Exact(f"column {name!r}", _rounded_up(one[1]), smallest_exponent(one[0]))
        for name, one in zip(names, found, strict=True)
        if one
    )
    if None in found:
        return each
    together: Fraction | None = Fraction(1)
    for one in found:
        together = None if one is None or one[0] is None or together is None else together * one[0]
    return (*each, Exact("a row, all columns", claimed, smallest_exponent(together)))


def largest_ratio(weights: Sequence[Sequence[int]]) -> Fraction | None:
    """Over outcomes, of the largest chance to the smallest; None where some row can have an outcome and another not."""
    totals = [sum(row) for row in weights]
    largest = Fraction(1)
    for outcome in range(len(weights[0])):
        chances = [Fraction(row[outcome], total) for row, total in zip(weights, totals, strict=True)]
        most, least = max(chances), min(chances)
        if most and not least:
            return None
        if most:
            largest = max(largest, most / least)
    return largest


def joint_ratio(kernel: JointKernel) -> Fraction | None:
    """A/B, if there are flips of both weights; None where the tables that are drawn from give another law."""
    law = kernel._tables.law
    if law.inside < law.outside or law.outside < 1 or not _draws_what_it_says(law):
        return None
    some_outside = law.limit < sum(weight * size for weight, size in law.classes)
    return Fraction(law.inside, law.outside) if law.limit >= 0 and some_outside else Fraction(1)


def smallest_exponent(ratio: Fraction | None) -> float:
    """The smallest double f with ratio <= e^f, decided exactly: f exceeds a claim just if the ratio does e to it."""
    if ratio is None:
        return math.inf
    with localcontext(prec=60):
        f = float((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())
    f = max(f, 0.0)
    while f > 0 and is_at_most_exp(ratio, lower := math.nextafter(f, 0.0)):
        f = lower
    while not is_at_most_exp(ratio, f):
        f = math.nextafter(f, math.inf)
    return f


def is_at_most_exp(ratio: Fraction, f: float) -> bool:
    """Whether ratio <= e^f: with as many digits as it takes, for e to a rational other than 0 is no rational."""
    if f == 0:
        return ratio <= 1
    digits = 40
    while True:
        with localcontext(prec=digits):
            power = Fraction(Decimal(f).exp())  # within half a unit of the last of its digits
        error = power / 10 ** (digits - 1)
        if ratio <= power - error:
            return True
        if ratio > power + error:
            return False
        digits *= 2


def _matrices(mechanism: Mechanism, width: int) -> list[tuple[Sequence[Sequence[int]], Fraction] | None]:
    """The integer matrix and the budget of each column of U; None for a column whose noise is not finite."""
    if isinstance(mechanism, Separate):
        return [_matrices(part, 1)[0] for part in mechanism.parts]
    if isinstance(mechanism, Levels):
        return [(mechanism.transition.weights, mechanism.transition.budget)]
    if isinstance(mechanism, Chain) and isinstance(mechanism.kernel, ColumnsKernel):
        swaps = [mechanism.kernel.swaps[number].transition for number in mechanism.kernel.which]
        return [(transition.weights, transition.budget) for transition in swaps]
    return [None] * width


def _draws_what_it_says(law: FlipDistribution) -> bool:
    """Whether the digits that flips are drawn by are those of a law that gives each z the weight A or B.

    The total weight of all ways to go on is counted anew, from the last class backwards.
    """
    classes, limit = law.classes, law.limit
    left = [sum(weight * size for weight, size in classes[j:]) for j in range(len(classes) + 1)]
    coins = [sum(size for _, size in classes[j:]) for j in range(len(classes) + 1)]

    @cache
    def weight_of(j: int, cost: int) -> int:
        if cost > limit:
            return law.outside << coins[j]
        if cost + left[j] <= limit:
            return law.inside << coins[j]
        return sum(ways(j, cost))

    def ways(j: int, cost: int) -> list[int]:
        weight, size = classes[j]
        return [math.comb(size, flips) * weight_of(j + 1, cost + weight * flips) for flips in range(size + 1)]

    costs = {0}
    for j, (weight, size) in enumerate(classes):
        open_costs = {cost for cost in costs if cost <= limit < cost + left[j]}
        if open_costs != set(law.open_digits[j]):
            return False
        if any(not np.array_equal(law.open_digits[j][cost], _digits(ways(j, cost))) for cost in open_costs):
            return False
        costs = {cost + weight * flips for cost in open_costs for flips in range(size + 1)}
    return True


def _digits(weights: list[int]) -> Words:
    """64 binary digits of the cumulative probabilities below 1."""
    total, below, digits = sum(weights), 0, []
    for weight in weights[:-1]:
        below += weight
        digits.append((below << 64) // total)
    return np.array(digits, dtype=np.uint64)


def _rounded_up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
