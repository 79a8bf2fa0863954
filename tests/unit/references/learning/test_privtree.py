"""PrivTree: private by exact arithmetic over all its outputs, and the enumeration is about the code that runs.

The paper (Zhang, Xiao, Xie 2016) has λ = 3/ε where one row is added or removed. Here one row is replaced: the path that
it leaves costs 3/λ, the path that it joins 1/λ.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dipriv.codecs.code_index import CodeIndex
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, GridCodes, OrderedCodes
from dipriv.references._learning import privtree
from dipriv.references._learning.measurements import Accountant
from dipriv.references._learning.privtree import PrivTree
from tests.support import ALARM, bits, chi_square_tail
from tests.unit.exact_laplace import DIGITS, chances

I64 = np.dtype(np.int64)
Leaves = tuple[int, ...]
Table = tuple[int, ...]
"""The codes of a table's rows, sorted."""


def tree(line: OrderedCodes, epsilon: Fraction, seed: int = 1) -> PrivTree:
    return PrivTree(line.first, line.last, line.octaves, Accountant("laplace", Fraction(10**9), bits(seed)), epsilon)


def grown(line: OrderedCodes, epsilon: Fraction, codes: Codes, seed: int = 1) -> PrivTree:
    found = tree(line, epsilon, seed)
    while not found.grown:
        boundaries = found.boundaries()
        found.grow(boundaries, CodeIndex.over(boundaries, 0).below(codes), len(codes))
    return found


class Exact:
    """The law of PrivTree's leaves, as its docstring has it: b + noise > 0, b = max(-δ, count - depth δ)."""

    def __init__(self, line: OrderedCodes, like: PrivTree, noise: Fraction = Fraction(1)) -> None:
        self.line, self.digits = line, like._digits
        self.scale, self.bias = math.ceil(like._scale * noise), math.ceil(like._bias * noise)

    def split(self, count: int, depth: int) -> tuple[Decimal, Decimal]:
        """P(a node is split), P(it is not)."""
        biased = max((count << self.digits) - depth * self.bias, -self.bias)
        return chances(1 - biased, self.scale)

    def law(self, rows: Table) -> dict[Leaves, Decimal]:
        """The probability of every set of leaves."""

        @cache
        def below_node(low: int, last: int, depth: int) -> dict[Leaves, Decimal]:
            if low == last:
                return {(low,): Decimal(1)}
            split, leaf = self.split(sum(low <= row <= last for row in rows), depth)
            middle = int(self.line.octaves.middle(np.array([low]), np.array([last]))[0])
            found: dict[Leaves, Decimal] = {(low,): leaf}
            for left, chance in below_node(low, middle - 1, depth + 1).items():
                for right, other in below_node(middle, last, depth + 1).items():
                    found[left + right] = split * chance * other
            return found

        with localcontext(prec=DIGITS):
            return below_node(self.line.first, self.line.last, 0)

    def loss(self, one: Table, other: Table) -> Decimal:
        """The largest ln(P(leaves | one) / P(leaves | other)) over all sets of leaves."""
        with localcontext(prec=DIGITS):
            laws = self.law(one), self.law(other)
            return max((chance / laws[1][leaves]).ln() for leaves, chance in laws[0].items())


def decimal(number: Fraction) -> Decimal:
    with localcontext(prec=DIGITS):
        return Decimal(number.numerator) / number.denominator


EIGHT = GridCodes.of(I64, lower=8, upper=15)  # inside one octave: three even halvings
FOUR = GridCodes.of(I64, lower=0, upper=3)  # 0 | 1 | 2 3: octaves first
LINES = {"four codes in octaves": FOUR, "eight codes": EIGHT}


def neighbours(line: OrderedCodes, stacks: list[int]) -> list[tuple[Table, Table]]:
    """Pairs that differ in one row, replaced or gone missing: all tables of up to three rows at both ends of the line,
    and stacks of rows at one place.
    """
    places = [line.first, line.first + 1, line.last]
    rest = [found for size in range(3) for found in combinations_with_replacement(places, size)]
    rest += [(place,) * (size - 1) for size in stacks for place in places]
    pairs = []
    for others in rest:
        for here in places:
            ends = [(*others, there) for there in places if there != here] + [others]
            pairs += [(tuple(sorted((*others, here))), tuple(sorted(end))) for end in ends]
    return pairs + [(other, one) for one, other in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4)], ids=str)
def test_no_output_is_likelier_by_more_than_was_paid_for(line: OrderedCodes, epsilon: Fraction) -> None:
    """Every set of leaves of every small table, beside all its neighbours."""
    like = tree(line, epsilon)
    paid = decimal(like.accountant.spent)
    delta = like._bias >> like._digits
    pairs = neighbours(line, [delta // 2 + 2, delta + 2])  # where two levels of a path are near their thresholds
    exact, thin = Exact(line, like), Exact(line, like, Fraction(1, 2))
    assert like.accountant.spent <= epsilon
    worst = max(exact.loss(*pair) for pair in pairs)
    assert worst <= paid
    assert worst > paid / 4
    if line is EIGHT:
        assert worst > paid / 2
        assert max(thin.loss(*pair) for pair in pairs) > paid  # control: half the noise


def test_the_law_adds_up_to_one() -> None:
    law = Exact(EIGHT, tree(EIGHT, Fraction(1))).law((8, 8, 11))
    assert len(law) == 26  # trees of at most three levels: a(n + 1) = a(n)² + 1
    with localcontext(prec=DIGITS):
        assert abs(sum(law.values(), Decimal(-1))) < Decimal(10) ** -50


def worst_path(like: PrivTree, levels: int, noise: Fraction = Fraction(1)) -> tuple[Decimal, Decimal]:
    """What a row can cost by leaving a path of nodes with any counts, and by joining one; for trees of any shape.

    Counts do not grow from a node to its child. Leaving costs ln(P(split | c) / P(split | c - 1)) at each node that is
    split, joining ln(P(leaf | c) / P(leaf | c + 1)) at the one leaf: there all other factors favour the other table.
    """
    exact = Exact(GridCodes.of(I64), like, noise)
    most = levels * (like._bias >> like._digits) + levels + 40
    with localcontext(prec=DIGITS):
        best = [Decimal(0)] * (most + 1)  # the most that is lost from here on, where the count is at most so many
        joining = Decimal(0)
        for depth in reversed(range(levels)):
            so_far, here = Decimal(0), []
            for count in range(most + 1):
                split, leaf = exact.split(count, depth)
                if count:
                    lost = (split / exact.split(count - 1, depth)[0]).ln() + best[count]
                    so_far = max(so_far, lost)
                    joining = max(joining, (exact.split(count - 1, depth)[1] / leaf).ln())
                here.append(so_far)
            best = here
        return best[-1], joining


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)], ids=str)
def test_deep_trees_cost_no_more_than_was_paid_for(epsilon: Fraction) -> None:
    """The worst counts on the way down, at many levels: the sum of both paths, which have no node in common."""
    like = tree(GridCodes.of(I64), epsilon)
    levels = 40 if epsilon >= 1 else 10
    leaving, joining = worst_path(like, levels)
    paid = decimal(like.accountant.spent)
    assert leaving + joining <= paid
    assert leaving + joining > paid * 3 / 4
    assert sum(worst_path(like, levels, Fraction(1, 2))) > paid  # control


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "rows"), [(EIGHT, (8, 8, 8, 9, 9, 14)), (FOUR, (0, 0, 0, 3, 3))], ids=["eight codes", "octaves"]
)
def test_leaves_come_as_often_as_the_exact_law_says(line: OrderedCodes, rows: Table) -> None:
    n, epsilon = 2000, Fraction(2)
    codes = np.array(rows)
    counts: dict[Leaves, int] = {}
    for seed in range(n):
        leaves = tuple(grown(line, epsilon, codes, seed).leaves.tolist())
        counts[leaves] = counts.get(leaves, 0) + 1
    like = tree(line, epsilon)
    law = Exact(line, like).law(rows)
    assert set(counts) <= set(law)
    seen = np.array([counts.get(leaves, 0) for leaves in law])
    assert chi_square_tail(seen, np.array([float(chance) for chance in law.values()])) > ALARM
    thin = Exact(line, like, Fraction(1, 2)).law(rows)
    assert chi_square_tail(seen, np.array([float(thin[leaves]) for leaves in law])) < ALARM  # control
    shallow = Exact(line, like)
    shallow.bias = 0
    assert chi_square_tail(seen, np.array([float(shallow.law(rows)[leaves]) for leaves in law])) < ALARM  # control


@settings(max_examples=100)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1000)))
def test_prices_and_parameters(epsilon: Fraction) -> None:
    """λ >= 4/ε, and two counts at least; δ >= λ ln 2."""
    found = tree(EIGHT, epsilon)
    scale = Fraction(found._scale, 1 << found._digits)
    assert scale >= 2
    assert scale >= 4 / epsilon
    assert found.accountant.spent <= epsilon
    assert found.accountant.spent >= min(epsilon, Fraction(2)) * Fraction(999, 1000)
    assert found._bias >= found._scale * math.log(2)
    assert found._bias <= found._scale * math.log(2) * (1 + 1e-8) + 1


@settings(max_examples=30)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=0, max_size=200),
    st.sampled_from([Fraction(1, 10), Fraction(4), Fraction(40)]),
    st.integers(0, 1000),
)
def test_leaves_tile_the_line(values: list[float], epsilon: Fraction, seed: int) -> None:
    line = FloatBitCodes.of(np.dtype(np.float64))
    codes = line.to_codes(np.array(values * 20, dtype=np.float64))
    found = grown(line, epsilon, codes, seed)
    leaves = found.leaves
    assert leaves[0] == line.first
    assert np.all(leaves[1:] > leaves[:-1])
    assert leaves[-1] <= line.last
    assert np.array_equal(leaves, np.unique(_by_hand(line, found, codes, seed)))


def _by_hand(line: OrderedCodes, like: PrivTree, codes: Codes, seed: int) -> list[int]:
    """The same tree, level by level and node by node, from the same noise."""
    accountant = Accountant("laplace", Fraction(10**9), bits(seed))
    level, leaves, depth = [(line.first, line.last)], [], 0
    ordered = np.sort(codes)
    while level:
        wide = any(low < last for low, last in level)
        noise = accountant.laplace(len(level), like._scale).tolist() if wide else [0] * len(level)
        below_them = []
        for (low, last), z in zip(level, noise, strict=True):
            count = int(np.searchsorted(ordered, last, side="right") - np.searchsorted(ordered, low))
            biased = max((count << like._digits) - depth * like._bias, -like._bias)
            if low == last or biased + z <= 0:
                leaves.append(low)
            else:
                middle = int(line.octaves.middle(np.array([low]), np.array([last]))[0])
                below_them += [(low, middle - 1), (middle, last)]
        level, depth = below_them, depth + 1
    assert like.depth in (depth, depth - 1)  # a last level of single codes needs no decision
    return leaves


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 1000])
def test_the_number_of_passes_does_not_change_the_tree(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = FloatBitCodes.of(np.dtype(np.float64))
    values = np.concatenate([np.zeros(500), np.random.default_rng(1).lognormal(3, 2, 500), np.full(300, 42.0)])
    codes = line.to_codes(values)
    whole = grown(line, Fraction(2), codes)
    monkeypatch.setattr(privtree, "MAX_CELLS", cells)
    passes = 0
    found = tree(line, Fraction(2))
    while not found.grown:
        boundaries = found.boundaries()
        assert np.all(boundaries[1:] > boundaries[:-1])
        found.grow(boundaries, CodeIndex.over(boundaries, 0).below(codes), len(codes))
        passes += 1
    assert np.array_equal(found.leaves, whole.leaves)
    assert found.depth == whole.depth
    assert len(whole.leaves) > 60  # down to 42.0 itself
    assert passes > (2 if cells < 1000 else 1)


def test_more_boundaries_than_were_asked_for_do_no_harm() -> None:
    line = GridCodes.of(I64)
    codes = np.random.default_rng(2).poisson(50, 2000)
    one, other = tree(line, Fraction(1)), tree(line, Fraction(1))
    while not one.grown:
        asked = one.boundaries()
        more = np.unique(np.concatenate([other.boundaries(), line.octaves.starts, np.arange(40, 60)]))
        one.grow(asked, CodeIndex.over(asked, 0).below(codes), len(codes))
        other.grow(more, CodeIndex.over(more, 0).below(codes), len(codes))
    assert np.array_equal(one.leaves, other.leaves)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_line_of_one_code_is_a_leaf(count: int) -> None:
    line = GridCodes.of(I64, lower=7, upper=7)
    found = grown(line, Fraction(1), np.full(count, 7))
    assert found.leaves.tolist() == [7]


def test_an_atom_is_found_to_the_last_digit_and_empty_space_is_not_split() -> None:
    line = FloatBitCodes.of(np.dtype(np.float64))
    codes = line.to_codes(np.full(100_000, 0.1))
    for seed in range(5):
        found = grown(line, Fraction(1), codes, seed)
        atom = int(codes[0])
        assert {atom, atom + 1} <= set(found.leaves.tolist())
        assert found.depth >= 52
        assert len(found.leaves) < 400  # a path of some 60 halvings, and now and then a split by noise beside it


def test_counts_below_boundaries_are_exact() -> None:
    rng: NDArray[np.int64] = np.random.default_rng(3).integers(-50, 50, 1000)
    boundaries = np.array([-(2**63), -50, -3, 0, 7, 49, 2**63 - 1])
    assert CodeIndex.over(boundaries, 0).below(rng).tolist() == [int((rng < edge).sum()) for edge in boundaries]
    assert CodeIndex.over(boundaries, 0).below(rng[:0]).tolist() == [0] * 7
