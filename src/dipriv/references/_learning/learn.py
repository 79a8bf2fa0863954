"""Learning a private reference: a few passes over the rows, each measurement paid for, the rest post-processing.

1. Labels and frequent values above a threshold.  2. The step of a column of reals, and the cells of a tree where rows
allow it.  3. One noisy histogram a column.  4. Two-way tables of the pairs that the current model gets most wrong, and
a maximum-entropy model fitted to all of them. The proof is in docs/theory/private-reference.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv._random.bits import Bits
from dipriv.codecs import Codec
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import InputError
from dipriv.references._learning.adaptive import fits, measure_pairs
from dipriv.references._learning.column_histograms import (
    OF_VALUES,
    cost_of_bins,
    grows_tree,
    learn_columns,
)
from dipriv.references._learning.counters import PairsCounter
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.estimates import ColumnEstimate
from dipriv.references._learning.groups import coarsened, digits_of
from dipriv.references._learning.junction_tree import Pair
from dipriv.references._learning.max_entropy import MarkovModel, NoisyTable
from dipriv.references._learning.measurements import Accountant, Spread
from dipriv.references._learning.shares import Shares, divide
from dipriv.references._learning.zeros import cut_groups, impossible_cells, masks_of, zeros_of
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references._models.network import Groups, Network, Node
from dipriv.references.exclusions import Exclusion
from dipriv.references.measured import MeasuredColumn, MeasuredPair, Measurements
from dipriv.references.protocol import CountableValues, Reference
from dipriv.schema import Kind

MAX_MATRIX_STATES = 256
"""A single column with more states is released by the chain: building a matrix takes their square."""
MIN_COLUMN_EPSILON = Fraction(1, 10**9)
"""With less ε for a column the noise scale of its counts would not fit their integers."""
VALUE_SHARE = 1 / 8
"""A value with this share of the rows should pass the threshold, else frequent values are not looked for."""
FIT_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class LearnedNetwork:
    """What learning returns: each column's kind and codec, the reference, its chain order, and what was spent."""

    kinds: tuple[Kind, ...]
    codecs: tuple[Codec, ...] = field(repr=False)
    reference: Reference = field(repr=False)
    order: tuple[int, ...]
    spent: Fraction
    measurements: Measurements = field(repr=False)
    pairs: tuple[Pair, ...] = ()
    """The pairs of columns that were measured, in order."""


@dataclass(frozen=True, eq=False)
class MarkovPlan:
    """The columns' public domains, how ε is divided between the reference and the rows, and the reference's shares."""

    domains: tuple[Domain, ...] = field(repr=False)
    first: tuple[Pair, ...]
    """Pairs that are measured before any choice."""
    shares: Shares
    reference_epsilon: Fraction
    row_epsilon: float
    exclusions: tuple[Exclusion, ...] = ()
    """Cells that no row has together."""
    leading: frozenset[int] = frozenset()
    """Columns that come first in the chain rule."""

    def __post_init__(self) -> None:
        count = len(self.domains)
        if self.reference_epsilon < MIN_COLUMN_EPSILON * count:
            raise InputError(
                f"the reference's part of epsilon is {float(self.reference_epsilon):.3g} for {count} columns; it needs "
                f"at least {float(MIN_COLUMN_EPSILON):g} for each.",
                "Use a larger epsilon or reference_share, or fewer columns.",
                command="Use a larger --epsilon or --reference-share, or fewer columns.",
            )

    @property
    def delta(self) -> Fraction:
        return self.shares.delta

    def count_noises(self, rows: int) -> list[float]:
        """The standard deviation of the noise of a count in each column's histogram."""
        kind = self.shares.kind
        return [
            Spread.of(kind, float(cost_of_bins(domain, kind, cost, rows))).deviation
            for domain, cost in zip(self.domains, self.shares.columns, strict=True)
        ]

    def coordinates(self) -> list[UniformCoordinate]:
        return [domain.coordinate(alone=len(self.domains) == 1) for domain in self.domains]

    def learn(self, rows: CountableValues, bits: Bits) -> LearnedNetwork:
        return learn(self.domains, rows, self.shares, self.first, bits, self.exclusions, self.leading)


def plan_shares(
    domains: Sequence[Domain], rows: int, epsilon: Fraction, delta: Fraction, first: int
) -> tuple[tuple[Domain, ...], Shares]:
    """The division of the reference's budget; frequent values are looked for only where their threshold is low."""
    shares = divide(domains, rows, epsilon, delta, first)
    useful = [
        domain.finds_values
        and not grows_tree(domain, shares.kind, cost, rows)
        and _threshold(shares, cost * OF_VALUES) <= VALUE_SHARE * rows
        for domain, cost in zip(domains, shares.columns, strict=True)
    ]
    settled = tuple(replace(domain, finds_values=use) for domain, use in zip(domains, useful, strict=True))
    return settled, divide(settled, rows, epsilon, delta, first)


def _threshold(shares: Shares, cost: Fraction) -> float:
    """About how many rows a value needs."""
    logs = math.log(1.0 / float(shares.chance)) if shares.chance else math.inf
    return Spread.of(shares.kind, float(cost)).scale * (logs if shares.kind == "laplace" else math.sqrt(2.0 * logs))


def learn(
    domains: Sequence[Domain],
    rows: CountableValues,
    shares: Shares,
    first: Sequence[Pair],
    bits: Bits,
    exclusions: Sequence[Exclusion] = (),
    leading: frozenset[int] = frozenset(),
) -> LearnedNetwork:
    """A reference for these columns, private with respect to replacing one of the rows."""
    accountant = Accountant(shares.kind, shares.budget, bits)
    estimates = learn_columns(domains, rows, shares, accountant)
    kinds = tuple(estimate.domain.kind(estimate.step) for estimate in estimates)
    if len(estimates) == 1:
        codec, reference = _alone(estimates[0])
        return LearnedNetwork(kinds, (codec,), reference, (0,), accountant.spent, _measurements(estimates, rows.n_rows))
    most, clear = shares.groups(rows.n_rows), shares.clear
    groups = [
        coarsened(estimate.found, _digits(estimate), len(estimate.codec.missing), most, clear) for estimate in estimates
    ]
    zeros = zeros_of(exclusions, estimates, rows)
    groups = [cut_groups(of, masks) if (masks := masks_of(zeros, i)) else of for i, of in enumerate(groups)]
    model = MarkovModel([int(of.max()) + 1 for of in groups], float(rows.n_rows), leading)
    model.add(*(_in_groups(number, *column) for number, column in enumerate(zip(estimates, groups, strict=True))))
    for pair, cells in impossible_cells(zeros, groups).items():
        if fits(model, pair):
            model.exclude(pair, cells)
    model.fit(FIT_ROUNDS)
    pairs: list[Pair] = []
    if shares.round is not None:
        joint = _joint_counts(estimates, groups, rows)
        pairs = measure_pairs(model, joint, shares.round, accountant, first)
    network, order = _network(model, estimates, groups)
    codecs = tuple(estimate.codec for estimate in estimates)
    measurements = _measurements(estimates, rows.n_rows, model, pairs_named=bool(first))
    return LearnedNetwork(kinds, codecs, network, order, accountant.spent, measurements, tuple(pairs))


def _in_groups(number: int, estimate: ColumnEstimate, groups: Groups) -> NoisyTable:
    """The histogram of a column in groups of its states."""
    counts = np.bincount(groups, estimate.histogram).astype(np.float64)
    variance = np.bincount(groups).astype(np.float64) * estimate.spread.deviation**2
    return NoisyTable((number,), counts, variance)


def _measurements(
    estimates: Sequence[ColumnEstimate], rows: int, model: MarkovModel | None = None, *, pairs_named: bool = False
) -> Measurements:
    """What was measured, for those who judge or use the reference."""
    names = [estimate.domain.name for estimate in estimates]
    columns = tuple(
        MeasuredColumn(name, estimate.histogram, estimate.spread.deviation)
        for name, estimate in zip(names, estimates, strict=True)
    )
    tables = {} if model is None else {edge: model.measured[edge] for edge in model.pairs_measured}
    pairs = tuple(
        MeasuredPair((names[i], names[j]), model.marginal((i, j)), float(np.sqrt(table.variance.mean())))
        for (i, j), table in tables.items()
        if model is not None
    )
    return Measurements(rows, columns, pairs, pairs_named)


def _network(
    model: MarkovModel, estimates: Sequence[ColumnEstimate], groups: Sequence[Groups]
) -> tuple[Network, tuple[int, ...]]:
    """The chain rule on the junction tree: each column depends on the earlier ones of its clique."""
    place: dict[int, int] = {}
    nodes = []
    for column, number, given in model.chain_rule():
        joint = model.marginal_in(number, (*given, column))
        weights = joint.reshape(-1, model.sizes[column])
        totals = np.bincount(groups[column], estimates[column].histogram)
        usable = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, totals)
        parents = tuple(place[parent] for parent in given)
        nodes.append(Node.of(parents, groups[column], estimates[column].histogram, usable))
        place[column] = len(place)
    return Network(tuple(nodes)), tuple(place)


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


def _digits(estimate: ColumnEstimate) -> FloatArray | None:
    """How many digits the numbers have with which ordered states begin; None for states without an order."""
    codec = estimate.codec
    if not estimate.domain.ordered:
        return None
    if estimate.domain.column.storage.family == "temporal":
        return np.zeros(codec.states - len(codec.missing))
    values = codec.line.to_values(codec.starts) if isinstance(codec, BinnedCodec) else codec.levels[codec.order]
    return digits_of(values.astype(np.float64))


def _joint_counts(
    estimates: Sequence[ColumnEstimate], groups: Sequence[Groups], rows: CountableValues
) -> dict[Pair, Counts]:
    """How many rows have each pair of groups, for all pairs of columns, in one pass: private."""
    counter = PairsCounter(
        tuple(estimate.domain for estimate in estimates),
        tuple(estimate.codec for estimate in estimates),
        tuple(groups),
    )
    return dict(zip(counter.pairs, rows.count(counter), strict=True))
