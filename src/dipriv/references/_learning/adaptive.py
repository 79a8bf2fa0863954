"""Which pairs of columns are measured: those that the current model gets most wrong, one round after the other.

A round compares the exact counts of all pairs with the model, chooses one pair under differential privacy, measures
its table and fits the model anew (McKenna, Mullins, Sheldon, Miklau 2022, AIM). Where a table moved the model by no
more than its noise, the budget of all further rounds is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.jit import jit
from dipriv.references._learning.empty_cells import without_noise
from dipriv.references._learning.junction_tree import Pair, largest_clique
from dipriv.references._learning.max_entropy import MarkovModel, NoisyTable
from dipriv.references._learning.measurements import Accountant, Spread

MAX_CLIQUE = 30_000
"""The largest number of cells of a clique: time and memory grow with it."""
SCORE_DIGITS = 4
"""Scores are counted in steps of 2^-4 rows."""
MAX_COUNT = 2.0**40
SENSITIVITY = 2 << SCORE_DIGITS
"""One row that is replaced changes two counts of a pair by one."""
MOVED = 0.5
"""A round must move the model by this part of its table's noise, else all further rounds get a larger budget."""
RAISE = {"laplace": 2, "gaussian": 4}
"""By which factor, so that noise is halved."""
FIT_ROUNDS, LAST_FIT_ROUNDS = 25, 100


@dataclass(frozen=True)
class RoundCost:
    """What a round may spend."""

    choice: Fraction
    table: Fraction

    @property
    def total(self) -> Fraction:
        return self.choice + self.table

    def times(self, factor: Fraction | int) -> RoundCost:
        return RoundCost(self.choice * factor, self.table * factor)


def measure_pairs(
    model: MarkovModel, counts: Mapping[Pair, Counts], cost: RoundCost, accountant: Accountant, first: Sequence[Pair]
) -> list[Pair]:
    """Spend the rest of the budget on tables of pairs, and fit the model to them.

    Parameters
    ----------
    model
        Fitted to the columns alone.
    counts
        The joint counts of all pairs of columns: private.
    cost
        What the first rounds may spend; later ones spend more where tables turn out to be mostly noise. Where choices
        cost nothing, all pairs are measured, one after the other.
    first
        Pairs that are measured before any choice: public.

    Returns
    -------
    list
        The pairs that were measured, in order.
    """
    measured: list[Pair] = []
    impossible: set[Pair] = set()
    waiting = list(first) if cost.choice else list(dict.fromkeys([*first, *counts]))
    least = cost.total / 2
    while (waiting or cost.choice) and len(impossible) < len(counts) and accountant.left >= least:
        if accountant.left < 2 * cost.total:  # the last round takes the rest
            cost = cost.times(accountant.left / cost.total)
        chosen = not waiting
        pair, before = _choose(model, counts, impossible, cost, accountant) if chosen else (waiting.pop(0), None)
        if not fits(model, pair):
            impossible.add(pair)
            continue
        noisy, spread = accountant.noisy_counts(counts[pair], cost.table)
        independent = np.outer(model.marginal(pair[:1]), model.marginal(pair[1:])) / model.total
        noisy = without_noise(noisy, independent, spread)
        if pair in model.impossible:
            noisy = np.where(model.impossible[pair], 0.0, noisy)
        model.add(NoisyTable(pair, noisy, np.full(noisy.shape, spread.deviation**2)))
        model.fit(FIT_ROUNDS)
        measured.append(pair)
        noise = spread.mean_size * noisy.size
        if before is not None and np.abs(model.marginal(pair) - before).sum() <= MOVED * noise:
            cost = cost.times(RAISE[accountant.kind])
    model.fit(LAST_FIT_ROUNDS)
    return measured


def _choose(
    model: MarkovModel,
    counts: Mapping[Pair, Counts],
    impossible: set[Pair],
    cost: RoundCost,
    accountant: Accountant,
) -> tuple[Pair, FloatArray]:
    """A pair that the model gets wrong, and what the model makes of it."""
    pairs = [pair for pair in counts if pair not in impossible]
    expected = model.pairs()
    noise = Spread.of(accountant.kind, float(cost.table)).mean_size
    scores = np.array([_score(counts[pair], expected[pair], noise) for pair in pairs], dtype=np.int64)
    pair = pairs[accountant.choose(scores, SENSITIVITY, cost.choice)]
    return pair, expected[pair]


def _score(counts: Counts, expected: FloatArray, noise: float) -> int:
    """Σ |count - expected|, less the noise that measuring adds, which is public."""
    difference = difference_of(counts.reshape(-1), np.ascontiguousarray(expected).reshape(-1))
    return int(difference) - round(noise * counts.size * (1 << SCORE_DIGITS))


@jit
def difference_of(counts: Counts, expected: FloatArray) -> int:
    """Σ |count - expected| in steps of 2^-SCORE_DIGITS."""
    total = 0
    for i in range(len(counts)):
        # no overflow: the sensitivity rests on it
        finite = min(expected[i], MAX_COUNT) if expected[i] >= 0.0 else 0.0
        total += abs((counts[i] << SCORE_DIGITS) - np.int64(np.rint(finite * 2.0**SCORE_DIGITS)))
    return total


def fits(model: MarkovModel, pair: Pair) -> bool:
    """Whether no clique becomes too large with this edge: the graph and the sizes are public."""
    return pair in model.logs or largest_clique(model.sizes, [*model.edges, pair], model.leading) <= MAX_CLIQUE
