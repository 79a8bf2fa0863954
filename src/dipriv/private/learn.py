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

from dipriv.codecs import CellsCodec, Codec, LevelsCodec
from dipriv.columns import FittedColumn
from dipriv.private.counting import count_pairs, in_parallel
from dipriv.private.domains import Domain, Rows
from dipriv.private.noise import Counts, Purse
from dipriv.private.one_way import Law, learn_columns, weight
from dipriv.private.structure import Builder, Margin, Pair, coarsened, groups_for
from dipriv.randomness import Bits
from dipriv.references import Independent, LevelsLaw, Network, Node, Reference

CHOICES = Fraction(1, 10)
"""The part of the reference's ε that chooses which pairs of columns to measure."""
OF_TABLE = Fraction(5, 2)
"""The weight of a two-way table, beside those of columns; measured to be good."""
MOST_PAIR_COUNTS = 4_000_000_000
"""Scores are taken from a sample where all pairs of all rows would be more than this."""


@dataclass(frozen=True, eq=False)
class Learned:
    """The columns with their codecs, the reference, the order of the chain rule, and what was spent."""

    columns: tuple[FittedColumn, ...]
    reference: Reference = field(repr=False)
    order: tuple[int, ...]
    spent: Fraction


def learn(domains: Sequence[Domain], rows: Rows, epsilon: Fraction, target: str | None, bits: Bits) -> Learned:
    """A reference for these columns, ε-private with respect to replacing one of the rows."""
    purse = Purse(epsilon, bits)
    count = len(domains)
    tables = count - 1 if target is None or count == 1 else 2 * count - 3
    choices = epsilon * CHOICES if count > 2 else Fraction(0)
    weights = sum(weight(domain) for domain in domains)
    each = (epsilon - choices) / (weights + OF_TABLE * tables)
    laws = learn_columns(domains, rows, each * weights, purse)
    if count == 1:
        codec, reference = _alone(laws[0])
        return Learned((_fitted(laws[0], codec),), reference, (0,), purse.spent)
    builder = _builder(laws, rows, choices, each * OF_TABLE, purse)
    names = [domain.name for domain in domains]
    chain = builder.tree() if target is None else builder.around(names.index(target))
    columns = tuple(_fitted(law, law.codec) for law in laws)
    return Learned(columns, builder.network(chain), tuple(column for column, _ in chain), purse.spent)


def _builder(laws: Sequence[Law], rows: Rows, choices: Fraction, each: Fraction, purse: Purse) -> Builder:
    count = len(laws)
    scale = float(2 / each)
    margins = [coarsened(law.masses, groups_for(rows.count, scale), law.domain.ordered) for law in laws]
    joint = _Joint(laws, margins, rows)
    stride = max(1, rows.count * count * (count - 1) // 2 // MOST_PAIR_COUNTS)
    return Builder(
        margins,
        purse,
        rows.count,
        scoring=choices,
        each_table=each,
        table_scale=scale,
        sampled=lambda pairs: joint.counts(pairs, stride),
        sample=-(-rows.count // stride),
        whole=lambda pairs: joint.counts(pairs, 1),
    )


def _alone(law: Law) -> tuple[Codec, Reference]:
    """A single column. Where each state is one value, the codec of levels, for which the mechanism has a short cut."""
    codec, masses = law.codec, law.masses
    absent = len(codec.missing)
    if isinstance(codec, CellsCodec):
        if not np.all(codec.sizes == 1):
            return codec, Network((Node.of((), np.zeros(codec.states, np.int64), masses, np.ones((1, 1))),))
        levels = codec.line.to_values(codec.starts)
    else:
        levels = codec.levels
        masses = np.concatenate([masses[:absent], masses[absent:][np.argsort(codec.order)]])
    # the codec of levels has the kinds of missing cells in reverse, below all levels
    counts = np.concatenate([masses[:absent][::-1], masses[absent:]])
    return LevelsCodec(levels, codec.missing), Independent((LevelsLaw.on_line(-float(absent), counts),))


def _fitted(law: Law, codec: Codec) -> FittedColumn:
    return FittedColumn(law.domain.facts, law.domain.kind(law.step), law.domain.labels, codec)


@dataclass
class _Joint:
    """Joint counts of groups; those of all pairs are kept, and read from the rows but once."""

    laws: Sequence[Law]
    margins: Sequence[Margin]
    rows: Rows
    known: dict[tuple[int, Pair], Counts] = field(repr=False, default_factory=dict)

    def counts(self, pairs: Sequence[Pair], stride: int) -> dict[Pair, Counts]:
        """Of every stride-th row."""
        lacking = [pair for pair in pairs if (stride, pair) not in self.known]
        if lacking:
            sizes = [margin.groups for margin in self.margins]
            found = [np.zeros((sizes[i], sizes[j]), dtype=np.int64) for i, j in lacking]
            position = 0
            for table in self.rows.tables():
                every = slice(-position % stride, None, stride)

                def groups(number: int) -> np.ndarray:
                    law, margin = self.laws[number], self.margins[number]
                    cells = law.domain.cells(table).take(every)  # noqa: B023
                    return margin.group_of[law.codec.to_states(cells)].astype(np.int32)

                count_pairs(in_parallel(groups, range(len(sizes))), sizes, lacking, found)
                position += table.rows
            self.known.update({(stride, pair): table for pair, table in zip(lacking, found, strict=True)})
        return {pair: self.known[stride, pair] for pair in pairs}
