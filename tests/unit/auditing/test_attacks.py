"""Attacks catch a release that gives people away, stay at chance on one that cannot, and know what ε allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dipriv._random.bits import Seed
from dipriv.auditing.attacks.attribute_inference import TOLERANCE
from dipriv.auditing.attacks.membership import best_threshold
from dipriv.auditing.attacks.outcome import compare, max_advantage
from dipriv.auditing.attacks.reidentification import CANDIDATES
from dipriv.auditing.attacks.run import run_attacks
from dipriv.auditing.attacks.setup import MIN_PEOPLE, MIN_ROWS, AttackSetup, assign_cohorts, set_up
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.procedure import Privatize, ReleasedTable, ReleaseProcedure
from dipriv.auditing.results import AttackResult
from dipriv.errors import InputError
from dipriv.guarantee.trade_off import largest_probability
from tests.support import ALARM

SURE = 1 - ALARM
"""The confidence of the intervals: a right attack leaves its interval with at most this chance."""
ROWS = 3_000


def people(rows: int, seed: int) -> pa.Table:
    """Numbers, a date, labels and a flag that go together, with nulls and with repeated values."""
    rng = np.random.default_rng([rows, seed])
    age = rng.integers(18, 90, rows)
    sector = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    income = np.exp(9.5 + 0.01 * age + 0.2 * sector + rng.normal(0, 0.5, rows))
    joined = 12_000 + 40 * age + rng.integers(0, 2_000, rows)
    return pa.table(
        {
            "age": age,
            "income": pa.array(income, mask=rng.random(rows) < 0.05),
            "sector": pa.array(np.array(["care", "trade", "office", "farm"])[sector]),
            "joined": pa.array(joined.astype(np.int32)).cast(pa.date32()),
            "hours": rng.normal(38, 6, rows),
            "owner": rng.random(rows) < 0.2 + 0.005 * age,
        }
    )


def identity(table: pa.Table, seed: Seed) -> ReleasedTable:
    return ReleasedTable(table, np.arange(table.num_rows))


def fresh(table: pa.Table, seed: Seed) -> ReleasedTable:
    """Rows of other people in place of those of the table."""
    return ReleasedTable(people(table.num_rows, 77), np.arange(table.num_rows))


def out_of_order(table: pa.Table, seed: Seed) -> ReleasedTable:
    """Rows as they are, each in the place of another."""
    return ReleasedTable(table.take(np.roll(np.arange(table.num_rows), 1)), np.arange(table.num_rows))


PROCEDURES: dict[str, ReleaseProcedure] = {
    "identity": identity,
    "fresh": fresh,
    "out of order": out_of_order,
    "private": Privatize(1.0),
    "holdout": Privatize(1.0, {"reference": "holdout"}),
    "private, from a hold-out": Privatize(1.0, {"holdout": 0.25}),
}


@cache
def setup(how: str) -> AttackSetup:
    return set_up(people(ROWS, 1), PROCEDURES[how], 2)


@cache
def attacks(how: str) -> dict[str, AttackResult]:
    return {attack.name: attack for attack in run_attacks(setup(how), 1.0, confidence=SURE, seed=3)}


def at_chance(attack: AttackResult) -> bool:
    return attack.advantage.lower <= 0 <= attack.advantage.upper


def by_row_identity(name: str) -> bool:
    return name.startswith("same row") or name.endswith("own row")


def test_every_attack_catches_rows_that_are_released_as_they_are() -> None:
    found = attacks("identity")
    assert {name for name, attack in found.items() if at_chance(attack)} == set()
    assert {name for name, attack in found.items() if not attack.exceeded} == set()
    for name in ("exposure, verbatim", "membership, closest row", "same row of 100, nearest", "attribute age, own row"):
        assert found[name].targets.value == 1.0


def test_no_attack_succeeds_on_rows_of_other_people() -> None:
    found = attacks("fresh")
    assert {name for name, attack in found.items() if not at_chance(attack) or attack.exceeded} == set()


def test_attacks_by_row_identity_need_it_and_others_do_not() -> None:
    found = attacks("out of order")
    by_identity = {name for name in found if by_row_identity(name)}
    assert len(by_identity) == 2 * len(CANDIDATES) + 6
    assert {name for name, attack in found.items() if at_chance(attack)} == by_identity


def test_the_hold_out_is_exposed_by_its_empirical_distribution_and_nobody_by_a_private_one() -> None:
    exposed, safe = (attacks(how)["exposure, nearly verbatim"] for how in ("holdout", "private"))
    # three released rows fall on each held-out row on average: all but e^-3 of these are hit, and nearly all are near
    assert exposed.advantage.lower > 0.5
    assert exposed.allowed is None
    assert not exposed.exceeded
    assert at_chance(safe)
    assert safe.allowed is not None
    for how in ("private", "holdout"):
        assert not any(attack.exceeded for attack in attacks(how).values())
    assert all(at_chance(attack) for name, attack in attacks("private").items() if not by_row_identity(name))


def test_the_hold_out_of_a_private_reference_is_protected_too() -> None:
    safe = attacks("private, from a hold-out")["exposure, nearly verbatim"]
    assert "held-out" in safe.what
    assert at_chance(safe)
    assert safe.allowed is not None
    assert not safe.exceeded


def test_verbatim_exposure_of_a_hold_out_of_discrete_columns() -> None:
    table = people(ROWS, 5).select(["age", "sector", "owner"])
    whole = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), "code": np.arange(ROWS) // 2})
    found = {}
    for how in ("holdout", "private"):
        given = set_up(whole, PROCEDURES[how], 2)
        found[how] = run_attacks(given, 1.0, confidence=SURE, seed=3)[0]
    assert found["holdout"].name == "exposure, verbatim"
    assert found["holdout"].advantage.lower > 0.3
    assert at_chance(found["private"])


def some_equal(rows: int, seed: int) -> pa.Table:
    """A fifth of the people have the same row, as in tables of few levels; the others' rows are far from each other."""
    rng = np.random.default_rng([rows, seed])
    usual = rng.random(rows) < 0.2
    return pa.table({name: np.where(usual, 0.0, rng.normal(size=rows)) for name in ("x", "y", "z")})


def test_nearly_verbatim_is_more_than_verbatim_where_many_have_a_verbatim_twin() -> None:
    def shaken(table: pa.Table, seed: Seed) -> ReleasedTable:
        """Each number becomes another that has nearly its rank; 0 stays as it is."""
        columns = {name: np.nextafter(table[name].to_numpy(), 0) for name in table.column_names}
        return ReleasedTable(pa.table(columns), np.arange(table.num_rows))

    for procedure, caught in ((shaken, True), (PROCEDURES["private"], False)):
        given = set_up(some_equal(ROWS, 6), procedure, 2)
        verbatim, nearly = run_attacks(given, 1.0, confidence=SURE, seed=3)[:2]
        assert nearly.name == "exposure, nearly verbatim"
        assert verbatim.control.lower > 0.01  # more than the share that counts as near
        assert at_chance(verbatim)
        assert at_chance(nearly) is not caught
        assert nearly.exceeded is caught
        # 1% of those who have no equal row are near by chance, and all who have one
        share = verbatim.control.value + 0.01 * (1 - verbatim.control.value)
        assert nearly.control.lower < share < nearly.control.upper


def test_what_is_near_without_being_equal_needs_somebody_without_an_equal_row() -> None:
    given = set_up(pa.table({"same": [1] * 600, "word": ["a"] * 600}), identity, 1)
    exposed = [attack.name for attack in run_attacks(given, 1.0, seed=1) if attack.name.startswith("exposure")]
    assert exposed == ["exposure, verbatim"]


def test_who_knows_the_reference_is_the_strongest_and_within_what_epsilon_allows() -> None:
    table = people(12_000, 4).select(["income", "hours"])
    given = set_up(table, Privatize(2.0, {"reference": "holdout"}), 5)
    found = {attack.name: attack for attack in run_attacks(given, 2.0, seed=6)}
    strong, blind = (found[f"same row of 2, {how}"] for how in ("reference", "nearest"))
    assert strong.advantage.lower > 0
    assert strong.targets.value > blind.targets.lower
    assert not any(attack.exceeded for attack in found.values())


# --- what ε allows ---


def randomized_response(epsilon: float, levels: int) -> NDArray[np.float64]:
    """(true, released): the chances of a level to come out as each."""
    kept = np.exp(epsilon)
    return np.asarray((np.ones((levels, levels)) + (kept - 1) * np.eye(levels)) / (kept + levels - 1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_event_of_a_private_mechanism_is_likelier_than_allowed(epsilon: float) -> None:
    def worst(spent: float, levels: int) -> float:
        law = randomized_response(spent, levels)
        events = np.array(list(product([0.0, 1.0], repeat=levels)))
        p, q = (events @ law[row] for row in (0, 1))
        return max(float(one) - largest_probability(float(other), epsilon) for one, other in zip(p, q, strict=True))

    assert worst(epsilon, 2) == pytest.approx(0, abs=1e-12)  # reached: the bound is the smallest that holds
    assert worst(epsilon, 5) < 1e-12
    assert worst(1.1 * epsilon, 2) > 0.001  # control: more is spent than claimed
    chances = np.linspace(0, 1, 100_001)
    most = max(max_advantage(epsilon, chance) for chance in chances)
    assert most == pytest.approx(np.tanh(epsilon / 2), abs=1e-4)
    assert largest_probability(0.5, 1e9) == 1.0


@pytest.mark.parametrize(("k", "levels"), [(2, 2), (2, 6), (3, 4), (4, 3)])
def test_the_best_pick_among_k_is_within_the_bound(k: int, levels: int) -> None:
    """Exactly, by all releases: the person has level 0, the others any level, and the best guess sees all k rows."""

    def best(epsilon: float) -> float:
        law = randomized_response(epsilon, levels)
        own, other = law[0], law.mean(axis=0)
        right = 0.0
        for rows in product(range(levels), repeat=k):
            at = [own[rows[j]] * np.prod([other[rows[i]] for i in range(k) if i != j]) for j in range(k)]
            right += max(at) / k
        return right

    for epsilon in (0.2, 1.0, 2.0):
        assert 1 / k < best(epsilon) <= largest_probability(1 / k, epsilon)
    assert best(6.0) > largest_probability(1 / k, 0.2)  # control
    two_replacements = np.exp(2.0) / (np.exp(2.0) + k - 1)
    assert largest_probability(1 / k, 1.0) <= two_replacements


def test_a_claim_is_refuted_if_and_only_if_it_is_too_small() -> None:
    def noisy(table: pa.Table, seed: Seed) -> ReleasedTable:
        """Randomized response with ε = 1 on fair bits."""
        keep = np.random.default_rng(8).random(table.num_rows) < np.e / (1 + np.e)
        bits = table["bit"].to_numpy()
        return ReleasedTable(pa.table({"bit": np.where(keep, bits, ~bits)}), np.arange(table.num_rows))

    # 2,000 on each side: the interval is 5 standard errors of 0.01 wide for either rate, so the advantage of 0.23 is at
    # least 0.13, where a claim of 0.2 allows 0.08 at the most likely control rate that is still inside its interval
    table = pa.table({"bit": np.random.default_rng(9).random(14_000) < 0.5})
    given = set_up(table, noisy, 1)
    for claim, refuted in ((1.0, False), (0.2, True)):
        found = {attack.name: attack for attack in run_attacks(given, claim, confidence=SURE, seed=3)}
        own = found["attribute bit, own row"]
        assert own.targets.lower < np.e / (1 + np.e) < own.targets.upper
        assert own.exceeded is refuted


def test_what_is_allowed_is_at_the_control_rate_and_the_limit_at_its_upper_end() -> None:
    hits, few, none = (np.arange(100) < count for count in (100, 10, 0))
    found = compare("", "", hits, few, 0.95, 1.0)
    assert found.allowed == max_advantage(1.0, 0.1)
    assert found.allowed is not None
    assert found.limit is not None
    assert found.limit > max_advantage(1.0, found.control.upper) > found.allowed
    assert found.exceeded
    doubtful = compare("", "", np.arange(100) < 40, few, 0.95, 1.0)
    assert doubtful.advantage.value > found.allowed
    assert not doubtful.exceeded
    blatant = compare("", "", hits, none, 0.95, 1.0)
    assert blatant.exceeded
    assert blatant.allowed == 0
    assert blatant.limit is not None
    assert blatant.control.upper * (np.e - 1) < blatant.limit < 0.5
    assert not compare("", "", hits, hits, 0.95, 1.0).exceeded
    nothing = compare("", "", hits, none, 0.95, None)
    assert (nothing.allowed, nothing.limit, nothing.verdict) == (None, None, "no promise")
    known = compare("", "", hits, none, 0.95, 1.0, 0.1)
    assert known.allowed == known.limit == max_advantage(1.0, 0.1)


# --- distances ---


def odd_table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, rows])
    nulls = rng.random(rows) < 0.2
    reals = rng.choice([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, 7.25], rows)
    words = pa.array(rng.choice(["a", "b", "c"], rows), mask=nulls)
    return pa.table(
        {
            "real": pa.array(reals, mask=nulls, from_pandas=False),
            "large": rng.integers(2**62, 2**62 + 4, rows),
            "word": words,
            "view": words.cast(pa.string_view()),
            "label": words.dictionary_encode(),
            "flag": pa.array(rng.random(rows) < 0.5, mask=nulls),
            "time": pa.array(rng.integers(0, 5, rows)).cast(pa.timestamp("s")),
        }
    )


def sums(space: Space, points: Points, among: Points, columns: Sequence[int]) -> NDArray[np.int64]:
    """(people, points): the distances, one column after the other, by the definition."""
    total = np.zeros((points.shape[1], among.shape[1]), dtype=np.int64)
    for column in columns:
        axis = space.axes[column]
        gap = np.abs(points[column].astype(np.int64)[:, np.newaxis] - among[column])
        total += np.minimum(gap, axis.limit) * axis.weight
    return total


@pytest.mark.parametrize("make", [odd_table, people])
def test_nearest_rows_are_those_of_the_definition(make: Any) -> None:
    released = make(1_100, 1)  # two blocks and a part of one
    space, points = Space.of(released), Space.of(released).place(make(40, 2))
    every = range(len(space.axes))
    for columns in (list(every), [0, 2]):
        expected = sums(space, points, space.released, columns)
        order = np.argsort(expected, axis=1, kind="stable")[:, :5]
        distances, places = space.nearest(points, space.released, 5, columns)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(distances, np.take_along_axis(expected, order, axis=1))
    without = space.nearest_without_each(points, space.released)
    for column in every:
        others = [other for other in every if other != column]
        np.testing.assert_array_equal(without[:, column], sums(space, points, space.released, others).argmin(axis=1))
    np.testing.assert_array_equal(
        space.distances(points[:, :, np.newaxis], space.released[:, np.newaxis, :]).sum(axis=0),
        sums(space, points, space.released, every),
    )


def test_the_distance_is_zero_for_equal_cells_alone_and_one_for_others_labels_and_nulls() -> None:
    released, others = odd_table(300, 3), odd_table(200, 4)
    space = Space.of(released)
    apart = space.distances(space.place(others)[:, :, np.newaxis], space.released[:, np.newaxis, :])
    for column, name in enumerate(released.column_names):
        cells, theirs = (
            [None if cell is None or cell != cell else cell for cell in table[name].to_pylist()]
            for table in (released, others)
        )
        equal = np.array([[mine == cell for cell in cells] for mine in theirs])
        one_null = np.array([[(mine is None) != (cell is None) for cell in cells] for mine in theirs])
        np.testing.assert_array_equal(apart[column] == 0, equal)
        assert (apart[column][one_null] == space.max_distance).all()
        assert apart[column].max() <= space.max_distance
        if name in ("word", "view", "label", "flag"):
            assert set(np.unique(apart[column])) == {0, space.max_distance}


def test_a_number_is_inferred_within_a_share_of_ranks() -> None:
    space = Space.of(pa.table({"x": np.arange(100.0)}))
    true, near, far = (space.place(pa.table({"x": [value]})) for value in (50.0, 55.0, 57.0))
    assert space.distances(true, near)[0, 0] <= TOLERANCE * space.max_distance < space.distances(true, far)[0, 0]


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.auditing.nearness.MAX_CELLS", 99)
    with pytest.raises(InputError, match="100 cells"):
        Space.of(pa.table({"x": np.arange(100)}))


def test_thresholds_separate_members_from_non_members() -> None:
    members, non_members = np.array([3.0, 4.0, 5.0, 1.0]), np.array([0.0, 1.0, 2.0, 2.5])
    assert best_threshold(members, non_members) == 3.0
    assert best_threshold(non_members, non_members) in non_members


# --- setups ---


def test_cohorts_are_disjoint() -> None:
    table = pa.table({"number": np.arange(1_000)})
    given = set_up(table, Privatize(1.0, {"reference": "holdout"}), 1)
    cohorts = assign_cohorts(given, 150, np.random.default_rng(1))
    groups = (
        cohorts.members,
        cohorts.training_members,
        cohorts.held_out,
        cohorts.non_members,
        cohorts.known_non_members,
    )
    numbers = np.concatenate([group.rows["number"].to_numpy() for group in groups])
    assert len(np.unique(numbers)) == len(numbers) == sum(len(group) for group in groups)
    assert all(0 < len(group) <= 150 for group in groups)
    places = np.concatenate(
        [
            cohorts.members.release_positions,
            cohorts.training_members.release_positions,
            cohorts.other_positions,
        ]
    )
    np.testing.assert_array_equal(np.sort(places), np.arange(given.released.num_rows))
    true = given.table["number"].to_numpy()[given.row_positions[cohorts.members.release_positions]]
    np.testing.assert_array_equal(cohorts.members.rows["number"].to_numpy(), true)


def test_a_setup_splits_its_people_and_repeats_for_a_seed() -> None:
    table = people(400, 1)
    one, again, other = (set_up(table, identity, seed, control=0.25) for seed in (1, 1, 2))
    assert (one.table.num_rows, one.control.num_rows) == (300, 100)
    everybody = pa.concat_tables([one.table, one.control])
    by = [("hours", "ascending")]
    assert everybody.sort_by(by).equals(table.sort_by(by))
    assert one.table.equals(again.table)
    assert not one.table.equals(other.table)
    assert not one.table.equals(table.slice(0, 300))
    first, second, third = (run_attacks(one, 1.0, seed=seed) for seed in (1, 1, 2))
    assert first == second != third
    assert set_up(table, identity).table.num_rows == 280


def test_columns_that_pass_through_are_not_attacked() -> None:
    table = people(300, 1).append_column("number", pa.array(np.arange(300)))
    given = set_up(table, Privatize(1.0, {"keep": ["number"]}), 1)
    assert (
        given.table.column_names == given.control.column_names == given.released.column_names == table.column_names[:-1]
    )
    assert given.fitted is not None


@pytest.mark.parametrize("how", ["identity", "private", "holdout"])
@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": np.random.default_rng(1).normal(size=MIN_ROWS)}),
        pa.table({"same": ["a"] * 60, "x": np.arange(60.0)}),
        pa.table({"same": [1] * 60, "word": ["a"] * 60}),
        pa.table({"x": pa.array([None, 1.0] * 40), "word": pa.array([None, "b"] * 40)}),
        pa.table({"x": pa.array([None] * 55 + [1.0] * 25), "y": np.arange(80)}),
        pa.table({"x": [1, 2, 3, 4] * 20, "word": ["a", "b", "a", "b"] * 20}),
        odd_table(200, 1).drop_columns("real"),
    ],
    ids=["one column", "one level", "constant", "nulls", "mostly null", "duplicates", "odd types"],
)
def test_tables_at_the_edge(table: pa.Table, how: str) -> None:
    given = set_up(table, PROCEDURES[how], 1)
    reported: list[tuple[str, float]] = []

    def report(what: str, done: float, total: float | None) -> None:
        reported.append((what, done / (total or 1)))

    found = run_attacks(given, 1.0, seed=1, progress=report)
    assert reported[-1] == ("attacking", 1.0)
    assert len({attack.name for attack in found}) == len(found)
    for attack in found:
        assert attack.targets.tries > 0
        assert attack.control.tries > 0
        assert -1 <= attack.advantage.lower <= attack.advantage.value <= attack.advantage.upper <= 1
    several = len(table.column_names) > 1
    assert any(attack.name.startswith("linkage") for attack in found) is several
    assert any(attack.name.endswith("nearest row") for attack in found) is several


def test_columns_of_nulls_can_be_attacked() -> None:
    table = pa.table({"x": pa.array([None] * 90, pa.float64()), "word": pa.array([None] * 90, pa.string())})
    found = run_attacks(set_up(table, identity, 1), 1.0, seed=1)
    assert all(at_chance(attack) for attack in found)


def test_a_constant_table_gives_no_advantage_whatever_is_released() -> None:
    given = set_up(pa.table({"same": [1] * 600, "word": ["a"] * 600}), identity, 1)
    found = {attack.name: attack for attack in run_attacks(given, 1.0, confidence=SURE, seed=1)}
    assert all(at_chance(attack) and not attack.exceeded for attack in found.values())
    for k in CANDIDATES:  # all candidates look the same, so the pick is blind
        picks = found[f"same row of {k}, nearest"]
        assert all(rate.lower <= 1 / k <= rate.upper for rate in (picks.targets, picks.control))


def test_the_secret_column_alone_is_inferred() -> None:
    found = run_attacks(setup("identity"), 1.0, secret="income", seed=1)
    names = [attack.name for attack in found if attack.name.startswith("attribute")]
    assert names == ["attribute income, nearest row", "attribute income, own row"]
    every = {attack.name: attack for attack in run_attacks(setup("identity"), 1.0, seed=1)}
    assert [attack for attack in found if attack.name == names[0]] == [every[names[0]]]
    alone = set_up(people(100, 1).select(["income"]), identity, 1)
    assert run_attacks(alone, 1.0, secret="income", seed=1)[-1].name == "attribute income, own row"


def test_nothing_that_is_said_shows_a_cell() -> None:
    table = pa.table({"word": [f"secret{number}" for number in range(200)], "x": np.arange(200) + 0.125})
    given = set_up(table, identity, 1)
    said = (
        repr(given) + repr(assign_cohorts(given, 100, np.random.default_rng(1))) + repr(run_attacks(given, 1.0, seed=1))
    )
    assert "secret" not in said
    assert ".125" not in said


def test_bad_setups_are_refused() -> None:
    table = people(100, 1)
    rows = np.arange(100)
    with pytest.raises(InputError, match=f"49 rows; attacks need at least {MIN_ROWS}"):
        set_up(people(49, 1), identity)
    with pytest.raises(InputError, match="control=1"):
        set_up(table, identity, control=1.0)
    with pytest.raises(InputError, match=f"the control group has 9 rows.*{MIN_PEOPLE}"):
        AttackSetup(table, table, rows, table.slice(0, 9))
    with pytest.raises(InputError, match="columns of the release"):
        AttackSetup(table, table.drop_columns("age"), rows, table)
    for wrong in (rows[1:], rows + 1, rows - 1, rows // 2, rows.astype(float), rows[:, np.newaxis]):
        with pytest.raises(InputError, match="positions are given for 100 released rows"):
            AttackSetup(table, table, wrong, table)


def test_bad_arguments_are_refused() -> None:
    given = setup("identity")
    for options, said in (
        ({"confidence": 1.0}, "confidence=1"),
        ({"max_people": 5}, "max_people=5"),
        ({"secret": "wealth"}, "secret names 'wealth'"),
    ):
        with pytest.raises(InputError, match=said):
            run_attacks(given, 1.0, **options)
    with pytest.raises(InputError, match="epsilon"):
        run_attacks(given, -1.0)
    with pytest.raises(InputError, match="seed"):
        run_attacks(given, 1.0, seed=-1)
    with pytest.raises(InputError, match="seed"):
        set_up(given.table, identity, -1)
