"""From a matrix of doubles to integers that keep π exactly and hold the ratio bound exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv.errors import InputError
from dipriv.kernels._per_column.linear_program import best_excess, lazy_excess
from dipriv.kernels.transition import Transition, Weights, has_ratios_within

WHOLE = 1 << 48
"""Probabilities of bins are multiples of 2^-48."""
_SHRINKS = (0.0, *(10.0**-digits for digits in range(14, 0, -1)), 1.0)
"""How much of the excess over π is given up until the ratios hold in integers: the rounding of doubles."""


@serializable(former_name="Swap")
@dataclass(frozen=True, eq=False)
class InvariantChannel:
    """Bins with probabilities masses[i]/2^48, and a private transition between them that keeps these exactly.

    weights[i] of the transition adds up to 2^48 masses[i], and column j to 2^48 masses[j]; a bin without mass is
    never released, and what is found there is released by the masses alone.
    """

    masses: tuple[int, ...] = field(repr=False)
    transition: Transition

    def __post_init__(self) -> None:
        weights = self.transition.weights
        require(len(self.masses) == len(weights), self, "each bin has a mass")
        rows = [(mass, row) for mass, row in zip(self.masses, weights, strict=True) if mass]
        columns = [sum(row[j] for _, row in rows) for j in range(len(weights))]
        if (
            sum(self.masses) != WHOLE
            or any(sum(row) != WHOLE * mass for mass, row in rows)
            or columns != [WHOLE * mass for mass in self.masses]
        ):
            raise InputError("InvariantChannel: the transition does not keep the masses of its bins.", "Build it anew.")

    @cached_property
    def cuts(self) -> FloatArray:
        """Where the bins end on [0, 1], from 0 on."""
        return np.concatenate([[0], np.cumsum(self.masses)]).astype(np.float64) / WHOLE

    @cached_property
    def joint_probabilities(self) -> FloatArray:
        """(k, k): the probability of bin i before and bin j after."""
        return np.asarray(self.transition.matrix * (np.array(self.masses) / WHOLE)[:, np.newaxis])


def masses_of(probabilities: FloatArray) -> tuple[int, ...]:
    """Probabilities as multiples of 2^-48 that add up to 1; the largest takes what rounding leaves."""
    masses = [round(Fraction(float(p)) * WHOLE) for p in probabilities / probabilities.sum()]
    masses[int(np.argmax(probabilities))] += WHOLE - sum(masses)
    return tuple(masses)


def best_swap(masses: tuple[int, ...], cost: FloatArray, budget: Fraction) -> InvariantChannel:
    """The swap between these bins with the least expected cost at this budget, in exact integers."""
    return _cached(masses, np.ascontiguousarray(cost, dtype=np.float64).tobytes(), budget)


@lru_cache(maxsize=64)
def _cached(masses: tuple[int, ...], cost_bytes: bytes, budget: Fraction) -> InvariantChannel:
    n = np.array(masses, dtype=np.float64)
    there = np.flatnonzero(n)
    pi, cost = n[there] / WHOLE, np.frombuffer(cost_bytes).reshape(len(n), len(n))[np.ix_(there, there)]
    few = tuple(masses[i] for i in there)
    epsilon = float(budget)
    found = [
        _within(budget, masses, few, excess) for excess in (best_excess(pi, cost, epsilon), lazy_excess(pi, epsilon))
    ]
    return min(found, key=lambda swap: float((swap.joint_probabilities[np.ix_(there, there)] * cost).sum()))


def _within(budget: Fraction, masses: tuple[int, ...], few: tuple[int, ...], excess: FloatArray) -> InvariantChannel:
    """In integers, with as little of the excess given up as makes the ratios hold; with none of it they do."""
    for shrink in _SHRINKS:
        flows = _flows(few, (1 - shrink) * excess)
        if min(min(row) for row in flows) > 0 and has_ratios_within(flows, budget):
            return InvariantChannel(masses, Transition(budget, _with_empty_bins(flows, masses)))
    raise AssertionError("a release by the masses alone is private")


def _flows(masses: tuple[int, ...], excess: FloatArray) -> list[list[int]]:
    """Integers close to n_i n_j (1 + excess_ij) with rows and columns that add up to 2^48 n exactly.

    The rounding of a row goes into the largest bin's column, then that of a column into the largest bin's row.
    """
    n = np.array(masses, dtype=np.float64)
    extra = [[int(x) for x in row] for row in np.outer(n, n) * excess]
    most = int(np.argmax(n))
    for row in extra:
        row[most] -= sum(row)
    for column in range(len(masses)):
        extra[most][column] -= sum(row[column] for row in extra)
    return [[a * b + more for b, more in zip(masses, row, strict=True)] for a, row in zip(masses, extra, strict=True)]


def _with_empty_bins(flows: list[list[int]], masses: tuple[int, ...]) -> Weights:
    """The same for all bins: those without mass are never released, and are released by the masses."""
    there = [i for i, mass in enumerate(masses) if mass]
    weights = [list(masses) for _ in masses]
    for i, row in zip(there, flows, strict=True):
        weights[i] = [0] * len(masses)
        for j, weight in zip(there, row, strict=True):
            weights[i][j] = weight
    return tuple(map(tuple, weights))
