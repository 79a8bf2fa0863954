"""The exact ε of a finite kernel, computed from its integer weights: no sampling, and rounding only upwards.

Where cells go through a transition matrix of integers, the probability of every outcome is a fraction, and the largest
ratio of two probabilities of one outcome is e^ε. The checks that kernels make of themselves are not used here.
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
    """The exact ε of each column with a finite kernel, and of a row if all are finite; nothing for noise on reals.

    A column is compared with its part of ε, a row with `epsilon`, the claim; the default is the ε of the kernel.
    """
    claimed = fitted.kernel.epsilon if epsilon is None else epsilon
    mechanism = compose([column.codec for column in fitted.columns], fitted.reference, fitted.kernel, fitted.order)
    if isinstance(mechanism, Chain) and isinstance(mechanism.kernel, JointKernel):
        return (Exact("a row, all columns together", claimed, smallest_exponent(joint_ratio(mechanism.kernel))),)
    of_v = [column.name for column in fitted.columns for _ in range(column.codec.dims)]
    found = [matrix and (largest_ratio(matrix[0]), matrix[1]) for matrix in _matrices(mechanism, len(of_v))]
    if len(found) == 1:
        return tuple(Exact(f"column {of_v[0]!r}", claimed, smallest_exponent(each[0])) for each in found if each)
    names = (of_v[position] for position in fitted.order)
    each = tuple(
        Exact(f"column {name!r}", _rounded_up(ratio[1]), smallest_exponent(ratio[0]))
        for name, ratio in zip(names, found, strict=True)
        if ratio
    )
    if None in found:
        return each
    together: Fraction | None = Fraction(1)
    for ratio in found:
        together = None if ratio is None or ratio[0] is None or together is None else together * ratio[0]
    return (*each, Exact("a row, all columns", claimed, smallest_exponent(together)))


def largest_ratio(weights: Sequence[Sequence[int]]) -> Fraction | None:
    """The largest ratio of two probabilities of one outcome; None if only some of the rows can have an outcome."""
    totals = [sum(row) for row in weights]
    ratio = Fraction(1)
    for outcome in range(len(weights[0])):
        probabilities = [Fraction(row[outcome], total) for row, total in zip(weights, totals, strict=True)]
        high, low = max(probabilities), min(probabilities)
        if high and not low:
            return None
        if high:
            ratio = max(ratio, high / low)
    return ratio


def joint_ratio(kernel: JointKernel) -> Fraction | None:
    """A/B, if there are flips of both weights; None if the sampling tables have another distribution."""
    law = kernel._tables.law
    if law.inside < law.outside or law.outside < 1 or not _samples_its_weights(law):
        return None
    some_outside = law.limit < sum(weight * size for weight, size in law.classes)
    return Fraction(law.inside, law.outside) if law.limit >= 0 and some_outside else Fraction(1)


def smallest_exponent(ratio: Fraction | None) -> float:
    """The smallest double f with ratio <= e^f, decided exactly: f exceeds a claim iff the ratio exceeds e^claim."""
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
    """Whether ratio <= e^f. Enough digits always decide it, since e to a rational other than 0 is irrational."""
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


def _samples_its_weights(law: FlipDistribution) -> bool:
    """Whether the digits by which flips are drawn are those of a distribution with weight A or B for each z.

    The total weight of all continuations is computed independently, from the last class backwards.
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
