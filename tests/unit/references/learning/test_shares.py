"""How a budget is divided: costs add up, follow rows and cells, and depend on public facts alone."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv._base.decimals import exact
from dipriv._tables import frames as tables
from dipriv.references import Private
from dipriv.references._learning import shares as module
from dipriv.references._learning.domain import Domain, domain_of
from dipriv.references._learning.learn import plan_shares
from dipriv.references._learning.measurements import Spread
from dipriv.references._learning.shares import Shares, divide, planned_cells
from dipriv.references._learning.zcdp import delta_of
from dipriv.schema import Categorical, Discrete, Kind, Schema

NINE = Fraction(1, 10**9)
SORTS = ("real", "whole", "labels", "found", "many", "flag", "levels")


def domains(*sorts: str, finds_values: bool = False) -> list[Domain]:
    """Columns of these sorts, by type and schema alone: the only row is null."""
    types: dict[str, tuple[pa.DataType, Kind | None, int | None]] = {
        "real": (pa.float64(), None, None),
        "whole": (pa.int64(), None, None),
        "labels": (pa.string(), None, 5),
        "found": (pa.string(), None, None),
        "many": (pa.string(), None, 2000),
        "flag": (pa.bool_(), None, None),
        "levels": (pa.int64(), Discrete(levels=tuple(range(40))), None),
    }
    found = []
    for number, sort in enumerate(sorts):
        kind, declared, labels = types[sort]
        name = f"c{number}"
        table = tables.read(pa.table({name: pa.array([None], kind)}))
        listed = None if labels is None else pa.array([str(label) for label in range(labels)])
        found.append(domain_of(table.column(name).numeric(listed), declared, finds_values))
    return found


sorts_of_columns = st.lists(st.sampled_from(SORTS), min_size=1, max_size=12)
row_numbers = st.sampled_from([1, 30, 1000, 30_000, 10**6])
epsilons = st.sampled_from([Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(10)])


@settings(max_examples=80)
@given(
    sorts_of_columns, row_numbers, epsilons, st.sampled_from([Fraction(0), NINE, Fraction(1, 10**6)]), st.integers(0, 9)
)
def test_columns_and_rounds_never_cost_more_than_the_budget(
    sorts: list[str], rows: int, epsilon: Fraction, delta: Fraction, first: int
) -> None:
    sorts = [sort for sort in sorts if delta or sort != "found"] or ["flag"]
    settled, shares = plan_shares(domains(*sorts, finds_values=delta > 0), rows, epsilon, delta, first)
    assert len(shares.columns) == len(settled)
    assert all(cost > 0 for cost in shares.columns)
    spent, pairs = sum(shares.columns), len(sorts) * (len(sorts) - 1) // 2
    if shares.round is None:
        assert spent == shares.budget
    else:
        rounds = (shares.budget - spent) / shares.round.total
        assert rounds.denominator == 1
        assert min(first, pairs) <= rounds <= pairs
        assert shares.round.table >= shares.round.choice >= 0
        assert (shares.round.choice == 0) == (rounds == pairs or rounds <= first)
    if shares.kind == "laplace":
        assert shares.budget == epsilon
    else:
        assert delta_of(shares.budget, epsilon) + shares.chance * _thresholds(settled) <= delta
    assert shares.chance * _thresholds(settled) < delta or not _thresholds(settled)


def _thresholds(found: Any) -> int:
    return sum(domain.has_thresholds for domain in found)


def test_a_division_depends_on_public_facts_alone() -> None:
    """Domains, which come from types and the schema, the number of rows, ε, δ and how many pairs are listed."""
    for function in (divide, plan_shares):
        names = set(inspect.signature(function).parameters)
        assert names <= {"domains", "rows", "epsilon", "delta", "tables_first", "first"}
        assert inspect.signature(function).parameters["rows"].annotation == "int"
    assert not any("Countable" in str(value) for value in vars(module).values())
    one, other = (divide(domains("real", "found", "flag"), 5000, Fraction(1), NINE) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("sort", ["real", "whole", "labels", "flag", "levels"])
def test_more_rows_mean_a_smaller_share_for_one_column(sort: str) -> None:
    shares = [
        Private()._share(domains(sort), rows, Fraction(1), Fraction(0), 0) for rows in (100, 1000, 10_000, 10**5, 10**6)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < shares[0]
    assert Private(reference_share=0.25)._share(domains(sort), 100, Fraction(1), Fraction(0), 0) == Fraction(1, 4)


@pytest.mark.parametrize("delta", [Fraction(0), NINE], ids=["pure", "approximate"])
def test_more_rows_mean_more_rounds(delta: Fraction) -> None:
    def rounds(rows: int) -> Fraction:
        shares = divide(domains("real", "whole", "labels", "flag", "flag", "whole"), rows, Fraction(1), delta)
        if shares.round is None:
            return Fraction(0)
        return (shares.budget - sum(shares.columns)) / shares.round.total

    found = [rounds(rows) for rows in (50, 1000, 3000, 10_000, 10**5, 10**6)]
    assert found == sorted(found)
    assert found[0] == 0  # columns alone
    assert found[-1] == 15  # all pairs


def test_listed_pairs_have_a_table_even_where_rows_are_few() -> None:
    few = domains("flag", "flag", "flag", "flag")
    assert divide(few, 20, Fraction(1), Fraction(0)).round is None
    shares = divide(few, 20, Fraction(1), Fraction(0), 2)
    assert shares.round is not None
    assert (shares.budget - sum(shares.columns)) / shares.round.total == 2


def test_delta_is_0_where_nothing_needs_it() -> None:
    one = divide(domains("labels"), 5000, Fraction(1), NINE)
    assert one.kind == "laplace"
    assert one.delta == 0
    assert divide(domains("flag", "labels"), 5000, Fraction(1), NINE).delta in (0, NINE)
    for sorts in (("found",), ("found", "flag")):
        assert divide(domains(*sorts), 5000, Fraction(1), NINE).delta == NINE  # thresholds do
    many = divide(domains(*["labels"] * 12), 30_000, Fraction(1), NINE)
    assert (many.kind, many.delta) == ("gaussian", NINE)
    pure = divide(domains(*["labels"] * 12), 30_000, Fraction(1), Fraction(0))
    assert pure.kind == "laplace"
    assert pure.delta == 0


@pytest.mark.parametrize("sort", ["labels", "flag"])
@pytest.mark.parametrize("rows", [100, 10**6])
def test_declared_labels_of_one_column_have_laplace_noise(sort: str, rows: int) -> None:
    assert divide(domains(sort), rows, Fraction(1), NINE).kind == "laplace"


@pytest.mark.parametrize("rows", [1000, 100_000])
@pytest.mark.parametrize("count", [2, 6, 20])
def test_the_noise_is_the_smaller_one_of_both(rows: int, count: int) -> None:
    """As the squared noise of all columns says, in which Laplace noise of many columns loses."""
    found = domains(*["labels", "flag"] * (count // 2))
    taken = divide(found, rows, Fraction(1), NINE)
    pure = divide(found, rows, Fraction(1), Fraction(0))

    def noise(shares: Shares) -> float:
        return module._noise(shares, found)

    assert noise(taken) <= noise(pure)
    assert (taken.kind == "laplace") == (noise(taken) == noise(pure))


def test_many_levels_need_more_of_the_budget() -> None:
    """The noise of k cells is √k times that of one beside sampling: 100 times more cells, ten times the error."""

    def error(levels: int) -> float:
        domain = replace(domains("labels")[0], levels=np.arange(levels - 1))  # nulls are one cell more
        return divide([domain], 200_000, Fraction(1), NINE).error(200_000)

    assert error(6400) == pytest.approx(10 * error(64), rel=0.01)
    assert error(32) == error(64)  # fewer bins than an ordered column may have change nothing


def test_columns_of_more_cells_get_more() -> None:
    for delta in (Fraction(0), Fraction(1, 10**6)):
        few, many = divide(domains("flag", "many"), 5000, Fraction(1), delta).columns
        assert few < many
        even = divide(domains("flag", "flag"), 5000, Fraction(1), delta).columns
        assert even[0] == even[1]
    assert planned_cells(domains("many")[0], 10) == 2001  # and one for nulls
    assert planned_cells(domains("levels")[0], 10) == 10


@pytest.mark.parametrize("rows", [100, 3000, 10**5, 10**7])
def test_groups_follow_rows_and_noise(rows: int) -> None:
    shares = divide(domains(*["labels"] * 6), rows, Fraction(1), Fraction(0), 15)
    groups = shares.groups(rows)
    assert module.MIN_GROUPS <= groups <= module.MAX_GROUPS
    assert groups <= shares.groups(10 * rows)
    assert shares.round is not None
    cell = rows / groups**2
    noise = Spread.of(shares.kind, float(shares.round.table)).mean_size
    assert cell >= noise or groups == module.MIN_GROUPS


def test_a_plan_says_what_is_spent_of_epsilon() -> None:
    """The reference and the rows have all of ε, to the last digit; a hold-out has all of it by itself."""
    table = tables.read(pa.table({"x": pa.array([1]), "y": pa.array([True])}))
    columns = [table.column(name).numeric(None) for name in table.names]
    for epsilon in (0.1, 1.0, 3.7):
        plan = Private().plan(columns, Schema({}), epsilon, 0.0, 1000, disjoint=False)
        assert plan.reference_epsilon + Fraction(plan.row_epsilon) == min(Fraction(epsilon), exact(epsilon))
        assert plan.shares.budget == plan.reference_epsilon
        apart = Private().plan(columns, Schema({}), epsilon, 0.0, 1000, disjoint=True)
        assert (apart.reference_epsilon, apart.row_epsilon) == (min(Fraction(epsilon), exact(epsilon)), epsilon)


def test_kinds_of_columns_are_what_they_should_be() -> None:
    """Control of the columns above."""
    found = domains(*SORTS, finds_values=True)
    assert [domain.finds_labels for domain in found] == [sort == "found" for sort in SORTS]
    assert [domain.finds_values for domain in found] == [sort in ("real", "whole") for sort in SORTS]
    assert isinstance(found[2].kind(0), Categorical)
    assert np.array_equal(found[6].levels if found[6].levels is not None else [], np.arange(40))
