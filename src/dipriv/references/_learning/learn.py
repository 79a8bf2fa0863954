"""Learning a private reference: a few passes over the rows, each measurement paid for, the rest post-processing.

1. Steps: are the values of a column of reals whole numbers, or hundredths?  2. Cells: a PrivTree for each column of
numbers, many levels a pass.  3. One noisy histogram a column, over the tree's leaves cut at octaves, or over levels.
4. Scores of pairs, edges, and one noisy two-way table an edge. The proof is in docs/theory/private-reference.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import Counts
from dipriv._base.coordinates import UniformCoordinate
from dipriv._random.bits import Bits
from dipriv.codecs import Codec
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import InputError
from dipriv.references._learning.counters import PairsCounter
from dipriv.references._learning.dependence import Builder, NoisyMarginal, Pair, coarsened, groups_for, second_parents
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.histograms import ColumnEstimate, learn_columns, weight
from dipriv.references._learning.measurements import Accountant
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references._models.network import Network, Node
from dipriv.references.protocol import CountableValues, Reference
from dipriv.schema import Kind

CHOICES = Fraction(1, 4)
"""The part of the reference's ε that chooses which pairs of columns to measure."""
MAX_MATRIX_STATES = 256
"""A single column with more states is released by the chain: building a matrix takes their square."""
OF_TABLE = Fraction(5, 2)
"""The weight of a two-way table, beside those of columns; measured to be good."""


MIN_COLUMN_EPSILON = Fraction(1, 10**9)
"""With less ε for a column the noise scale of its counts would not fit their integers."""


@dataclass(frozen=True, eq=False)
class LearnedNetwork:
    """What learning returns: each column's kind and codec, the reference, its chain order, and the ε that was spent."""

    kinds: tuple[Kind, ...]
    codecs: tuple[Codec, ...] = field(repr=False)
    reference: Reference = field(repr=False)
    order: tuple[int, ...]
    spent: Fraction


@dataclass(frozen=True, eq=False)
class NetworkPlan:
    """The columns' public domains, and how ε is divided between the reference and the rows."""

    domains: tuple[Domain, ...] = field(repr=False)
    target: str | None
    reference_epsilon: Fraction
    row_epsilon: float
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        count = len(self.domains)
        if self.reference_epsilon < MIN_COLUMN_EPSILON * count:
            raise InputError(
                f"the reference's part of epsilon is {float(self.reference_epsilon):.3g} for {count} columns; it needs "
                f"at least {float(MIN_COLUMN_EPSILON):g} for each.",
                "Use a larger epsilon or reference_share, or fewer columns.",
            )

    def coordinates(self) -> list[UniformCoordinate]:
        return [domain.coordinate(alone=len(self.domains) == 1) for domain in self.domains]

    def learn(self, rows: CountableValues, bits: Bits) -> LearnedNetwork:
        return learn(self.domains, rows, self.reference_epsilon, self.target, bits)


def learn(
    domains: Sequence[Domain], rows: CountableValues, epsilon: Fraction, target: str | None, bits: Bits
) -> LearnedNetwork:
    """A reference for these columns, ε-private with respect to replacing one of the rows."""
    accountant = Accountant(epsilon, bits)
    count = len(domains)
    second = second_parents(count, rows.n_rows, epsilon) if target is None else 0
    tables = max(0, count - 1 + second if target is None else 2 * count - 3)
    choices = tables if target is None else max(0, count - 2)
    for_choices = epsilon * CHOICES if choices > 1 else Fraction(0)
    weights = sum(weight(domain) for domain in domains)
    unit = (epsilon - for_choices) / (weights + OF_TABLE * tables)
    estimates = learn_columns(domains, rows, unit * weights, accountant)
    kinds = tuple(estimate.domain.kind(estimate.step) for estimate in estimates)
    if len(estimates) == 1:
        codec, reference = _alone(estimates[0])
        return LearnedNetwork(kinds, (codec,), reference, (0,), accountant.spent)
    max_groups = groups_for(rows.n_rows, float(2 / (unit * OF_TABLE)))
    groups = [coarsened(estimate.histogram, max_groups, estimate.domain.ordered) for estimate in estimates]
    marginals = [
        NoisyMarginal.of(estimate.histogram, of, estimate.scale, estimate.least)
        for estimate, of in zip(estimates, groups, strict=True)
    ]
    counts = _joint_counts(estimates, marginals, rows)
    builder = Builder(
        marginals, counts, accountant, rows.n_rows, for_choices / max(1, choices), unit * OF_TABLE, second
    )
    names = [domain.name for domain in domains]
    chain = builder.tree() if target is None else builder.around(names.index(target))
    codecs = tuple(estimate.codec for estimate in estimates)
    return LearnedNetwork(kinds, codecs, builder.network(chain), tuple(chain), accountant.spent)


def _alone(estimate: ColumnEstimate) -> tuple[Codec, Reference]:
    """A single column. Where each state is one value, the codec of levels, for which the mechanism has a short cut."""
    codec, histogram = estimate.codec, estimate.histogram
    absent = len(codec.missing)
    wide = isinstance(codec, BinnedCodec) and (np.any(codec.sizes > 1) or absent == np.count_nonzero(histogram))
    if codec.states > MAX_MATRIX_STATES or wide:
        return codec, Network((Node.of((), np.zeros(codec.states, np.int64), histogram, np.ones((1, 1))),))
    if isinstance(codec, BinnedCodec):
        levels = codec.line.to_values(codec.starts)
    else:
        levels = codec.levels
        histogram = np.concatenate([histogram[:absent], histogram[absent:][np.argsort(codec.order)]])
    there = (histogram[absent:] > 0) | isinstance(codec, RankedLevelsCodec)  # listed levels stay, released or not
    # the codec of levels has the kinds of missing cells in reverse, below all levels
    counts = np.concatenate([histogram[:absent][::-1], histogram[absent:][there]])
    return LevelsCodec(levels[there], codec.missing), Independent((LevelsDistribution.on_line(-float(absent), counts),))


def _joint_counts(
    estimates: Sequence[ColumnEstimate], marginals: Sequence[NoisyMarginal], rows: CountableValues
) -> dict[Pair, Counts]:
    """How many rows have each pair of groups, for all pairs of columns, in one pass: private."""
    counter = PairsCounter(
        tuple(estimate.domain for estimate in estimates),
        tuple(estimate.codec for estimate in estimates),
        tuple(marginal.group_of for marginal in marginals),
    )
    return dict(zip(counter.pairs, rows.count(counter), strict=True))
