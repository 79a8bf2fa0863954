"""The ledger: data sets are recognized, budgets hold to the last bit, keys stay, errors show no secrets."""

from __future__ import annotations

import dataclasses
import math
import sqlite3
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dipriv
from dipriv._base.decimals import exact, round_down, round_up
from dipriv._base.endings import NOTHING_IS_SPENT
from dipriv.errors import BudgetError, LedgerError
from dipriv.guarantee import Assumption, AssumptionKind, ReferenceFacts, ReferenceSource
from dipriv.guarantee.guarantee import MAX_EPSILON, MIN_EPSILON
from dipriv.ledger import Dataset, DatasetState, Ledger, ReleaseRequest, Reservation, database
from dipriv.ledger.values import as_name, check_name
from dipriv.release.accounting import LedgerSession
from tests.unit.ledger.contents import content, order
from tests.unit.postgres import Server
from tests.unit.refusal import SECRET, refused

EPSILONS = st.floats(MIN_EPSILON, MAX_EPSILON) | st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1e-9, 1e12])


def promise(epsilon: float = 1.0, delta: float = 0.0) -> dipriv.Guarantee:
    return dipriv.Guarantee(epsilon, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"), delta=delta)


def spend(ledger: Ledger, name: str, epsilon: float, delta: float = 0.0) -> Reservation:
    return ledger.reserve(name, epsilon, promise(epsilon, delta))


def table(
    ledger: Ledger,
    word: bytes,
    name: str | None = None,
    suggestion: str | None = None,
    after: tuple[bytes, ...] = (),
) -> LedgerSession:
    """A table of this content, as `identify` looks it up; its first rows are those of `after`."""
    found = content(word, len(after) + 1, after)
    known = ledger.preview(names=() if name is None else (name,), table=found, suggestion=suggestion)
    return LedgerSession(ledger, known, ReleaseRequest(known.name, found))


def enter(session: LedgerSession, epsilon: float = 1.0) -> Reservation:
    return session.ledger.reserve(session.request, epsilon, promise(epsilon))


def enter_held_out(session: LedgerSession, share: float | None = None, by: str | None = None) -> dipriv.Split:
    split = session.split(share, by, 0.25)
    enter(session)
    return split


def account(budget: float = 10.0, spent: float = 0.0) -> Dataset:
    return Dataset("people", budget, spent, 1, datetime.now(UTC))


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """A new ledger on each kind of database."""
    with Ledger.create(url) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.db") as opened:
        yield opened


# Which data set a table is


def test_a_table_is_recognized_by_its_content_or_its_name(ledger: Ledger) -> None:
    enter(table(ledger, b"a", suggestion="people"))
    for name, suggestion in ((None, "renamed"), (None, None), ("people", "renamed")):
        enter(table(ledger, b"a", name, suggestion))
    (found,) = ledger.datasets()
    assert (found.name, found.budget, found.spent, found.releases) == ("people", 10.0, 4.0, 4)


def test_looking_registers_nothing(ledger: Ledger) -> None:
    assert table(ledger, b"a", "pepole").known == DatasetState("pepole")
    assert table(ledger, b"a", suggestion="pepole").known == DatasetState("pepole")
    enter(table(ledger, b"a", "people"))
    assert table(ledger, b"b", "visits").known == DatasetState("visits")
    assert [dataset.name for dataset in ledger.datasets()] == ["people"]


def test_other_content_of_the_same_name_is_for_the_keeper_to_say(ledger: Ledger) -> None:
    enter_held_out(table(ledger, b"a", suggestion="people"))
    refused(
        BudgetError,
        "'people' is known with other rows and columns",
        "--dataset people",
        "--new-dataset NAME",
        call=lambda: table(ledger, b"b", suggestion="people"),
    )
    enter_held_out(table(ledger, b"b", "people, May", suggestion="people"))
    assert [dataset.name for dataset in ledger.datasets()] == ["people", "people, May"]
    assert ledger.split_key("people") != ledger.split_key("people, May")


def test_a_file_whose_name_is_similar_to_a_known_one_is_for_the_keeper_to_say(ledger: Ledger) -> None:
    """Before anything is spent, and with a remedy that suits a name that nobody gave."""
    enter(table(ledger, b"a", "people_north"))
    words = (
        "no data set is named",
        "'people_south', the name of the table's file, is similar to 'people_north'",
        "--dataset people_north",
        "--new-dataset people_south",
        "dataset='people_north'",
        "new_dataset='people_south'",
    )
    refused(LedgerError, *words, call=lambda: table(ledger, b"b", suggestion="people_south"))
    assert table(ledger, b"b", suggestion="visits").known == DatasetState("visits")
    assert table(ledger, b"a", suggestion="people_south").known.name == "people_north"  # known by its content
    assert [dataset.name for dataset in ledger.datasets()] == ["people_north"]


def test_a_file_whose_name_is_similar_to_a_known_one_spends_nothing(file: Ledger, tmp_path: Path) -> None:
    file.set_budget("people_north", 3.0)
    at = tmp_path / "people_south.csv"
    at.write_text("x,y\n" + "".join(f"{row},{row % 7}\n" for row in range(60)), encoding="utf-8")
    with pytest.raises(LedgerError, match="similar to 'people_north'") as caught:
        dipriv.privatize_file(at, tmp_path / "out.csv", 1.0, ledger=file)
    assert caught.value.__notes__ == [NOTHING_IS_SPENT]
    release = dipriv.privatize_file(at, tmp_path / "out.csv", 1.0, ledger=file, new_dataset="people_south")
    assert release.dataset == "people_south"


def test_a_table_nobody_knows_needs_a_name(ledger: Ledger) -> None:
    enter(table(ledger, b"a", "people"))
    refused(dipriv.InputError, "does not know this table", "dataset=", call=lambda: table(ledger, b"b"))


def test_appended_rows_stay_with_the_name_that_is_given(ledger: Ledger) -> None:
    enter(table(ledger, b"january", "people"))
    enter(table(ledger, b"february", "people", after=(b"january",)))
    for word in (b"january", b"february"):
        known = table(ledger, word).known
        assert (known.name, known.contents) == ("people", ((1, order(b"january")), (2, order(b"february"))))
    assert ledger.sizes() == {1, 2}
    assert len(ledger.datasets()) == 1


def test_a_second_name_for_the_same_table_is_refused(ledger: Ledger) -> None:
    enter(table(ledger, b"a", "people"))
    enter(table(ledger, b"b", "others"))
    for other in ("others", "new name"):
        words = "known as data set 'people'", "--dataset people"
        refused(BudgetError, *words, call=partial(table, ledger, b"a", other))
        refused(BudgetError, *words, call=partial(ledger.reserve, ReleaseRequest(other, content(b"a")), 1.0, promise()))
    found = [(dataset.name, dataset.releases) for dataset in ledger.datasets()]
    assert found == [("others", 1), ("people", 1)]  # a refusal registers nothing


def test_a_budget_that_was_set_first_is_found_by_the_table(ledger: Ledger) -> None:
    ledger.set_budget("people", 2.0)
    enter(table(ledger, b"a", suggestion="people"))
    (found,) = ledger.datasets()
    assert (found.name, found.budget, found.left) == ("people", 2.0, 1.0)


def test_a_refused_release_enters_nothing(ledger: Ledger) -> None:
    ledger.set_budget("people", 0.5)
    people, new = table(ledger, b"a", "people"), table(ledger, b"b", "new")
    refused(BudgetError, "only 0.5 is left", call=lambda: enter_held_out(people))
    refused(dipriv.InputError, "ε = 2.0", call=lambda: ledger.reserve(new.request, 1.0, promise(2.0)))
    known = table(ledger, b"a", "people").known
    assert (known.releases, known.holdout, known.contents) == (0, None, ())
    assert ledger.sizes() == frozenset()
    assert [dataset.name for dataset in ledger.datasets()] == ["people"]


@pytest.mark.parametrize("name", ["", "x" * 101, "a/b", "a\\b", "a\nb", "a\0b", " a", "a ", "\ud800", "a\u202eb"])
def test_names_that_cannot_be_told_apart_or_printed_are_refused(file: Ledger, name: str) -> None:
    refused(dipriv.InputError, "name of the data set", call=lambda: file.set_budget(name, 1.0))
    refused(dipriv.InputError, call=lambda: table(file, b"a", name, "x"))
    refused(dipriv.InputError, call=lambda: file.reserve(ReleaseRequest(name, content(b"a")), 1.0, promise()))
    refused(dipriv.InputError, call=lambda: file.dataset(name))
    refused(dipriv.InputError, call=lambda: spend(file, name, 1.0))
    assert file.datasets() == []


def test_names_that_look_the_same_are_the_same(file: Ledger) -> None:
    assert file.set_budget("Zu\u0308rich", 1.0).name == "Z\u00fcrich"
    enter(table(file, b"a", "Zu\u0308rich"))
    assert table(file, b"b", "Z\u00fcrich").known.contents == ((1, order(b"a")),)
    assert file.dataset("Zu\u0308rich") == file.dataset("Z\u00fcrich")
    refused(dipriv.InputError, "got int", call=lambda: file.dataset(3))  # type: ignore[arg-type]


@given(st.text(max_size=150))
def test_any_suggestion_becomes_a_name(text: str) -> None:
    name = as_name(text)
    assert check_name(name) == name
    assert check_name(f"{name}-999999999") == f"{name}-999999999"


# Budgets


def test_ten_times_one_tenth_is_one(file: Ledger) -> None:
    file.set_budget("people", 1.0)
    for _ in range(9):
        spend(file, "people", 0.1)
    assert (file.dataset("people").spent, file.dataset("people").left) == (0.9, 0.1)
    refused(BudgetError, "asks for ε = 0.11", "only 0.1 is left", call=lambda: spend(file, "people", 0.11))
    spend(file, "people", 0.1)
    refused(BudgetError, "nothing is left", call=lambda: spend(file, "people", 1e-9))
    assert file.dataset("people").spent == 1.0


def test_a_budget_is_spent_to_the_last_bit_and_not_beyond(ledger: Ledger) -> None:
    ledger.set_budget("people", 1.0)
    for _ in range(8):
        spend(ledger, "people", 0.125)
    assert (ledger.dataset("people").spent, ledger.dataset("people").left) == (1.0, 0.0)
    refused(BudgetError, "nothing is left", "dipriv ledger budget", call=lambda: spend(ledger, "people", 1e-9))
    ledger.set_budget("exact", 0.3)
    spend(ledger, "exact", 0.1)
    refused(BudgetError, "0.2", call=lambda: spend(ledger, "exact", math.nextafter(0.2, 1)))
    spend(ledger, "exact", 0.2)
    assert ledger.dataset("exact").spent == 0.3
    ledger.set_budget("large", 1e12)
    spend(ledger, "large", 1e12)
    refused(BudgetError, "nothing is left", call=lambda: spend(ledger, "large", 1e-9))  # 1e12 + 1e-9 == 1e12, as floats


def test_whatever_its_end_a_release_is_spent(ledger: Ledger) -> None:
    ledger.set_budget("people", 1.0)
    numbers = [spend(ledger, "people", 0.25) for _ in range(3)]
    ledger.commit(numbers[0], rows=7_000_000_000)
    ledger.fail(numbers[1])
    assert [record.state for record in ledger.records("people")] == ["done", "failed", "reserved"]
    found = ledger.dataset("people")
    assert (found.spent, found.left, found.releases) == (0.75, 0.25, 3)
    refused(BudgetError, "only 0.25 is left", "Ask for at most ε = 0.25", call=lambda: spend(ledger, "people", 0.5))


def test_without_a_budget_the_default_one_holds_until_it_is_raised_on_purpose(ledger: Ledger) -> None:
    enter(table(ledger, b"a", "people"), 4.0)
    found = ledger.dataset("people")
    assert (found.budget, found.left, found.delta_budget, found.budget_is_default) == (10.0, 6.0, 1e-6, True)
    assert str(found) == "ε spent 4, 6 of 10 left, the default budget; δ spent 0, 1e-6 of 1e-6 left"
    words = "the default budget ε = 10.0", "dipriv ledger budget people EPSILON"
    refused(BudgetError, *words, call=lambda: enter(table(ledger, b"a", "people"), 6.5))
    refused(BudgetError, "budget δ = 1e-6", call=lambda: spend(ledger, "people", 1.0, 2e-6))
    assert not ledger.set_budget("people", 20.0).budget_is_default
    enter(table(ledger, b"a", "people"), 16.0)
    assert ledger.dataset("people").left == 0.0


def test_a_budget_below_what_is_spent_leaves_nothing(ledger: Ledger) -> None:
    ledger.set_budget("people", 3.0)
    spend(ledger, "people", 2.0)
    found = ledger.set_budget("people", 1.0)
    assert (found.budget, found.spent, found.left) == (1.0, 2.0, 0.0)
    refused(BudgetError, "nothing is left", call=lambda: spend(ledger, "people", 1e-9))
    assert ledger.set_budget("people", 4.0).left == 2.0


def test_data_sets_do_not_share_a_budget(ledger: Ledger) -> None:
    for name in ("b", "a"):
        ledger.set_budget(name, 1.0)
        spend(ledger, name, 1.0)
    assert [(found.name, found.spent) for found in ledger.datasets()] == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, "1", None, 1e13])
def test_what_is_no_epsilon_is_no_budget_and_no_release(file: Ledger, epsilon: float) -> None:
    file.set_budget("people", 1.0)
    refused(dipriv.InputError, "epsilon", call=lambda: file.set_budget("people", epsilon))
    refused(dipriv.InputError, "epsilon", call=lambda: file.reserve("people", epsilon, promise()))
    request = ReleaseRequest("people", content(b"a"))
    refused(dipriv.InputError, "epsilon", call=lambda: file.reserve(request, epsilon, promise()))


def test_less_than_the_guarantee_says_cannot_be_reserved(file: Ledger) -> None:
    file.set_budget("people", 9.0)
    refused(dipriv.InputError, "ε = 2.0", "ε = 1.0", call=lambda: file.reserve("people", 1.0, promise(2.0)))
    refused(dipriv.InputError, call=lambda: file.reserve("people", 1.0, promise(math.nan)))
    assert file.dataset("people").releases == 0


@given(st.lists(EPSILONS, max_size=30), EPSILONS)
def test_spent_is_never_understated_and_left_never_overstated(epsilons: list[float], budget: float) -> None:
    total = sum(map(exact, epsilons), Fraction())
    spent = round_up(total)
    assert exact(spent) >= total
    assert exact(math.nextafter(spent, -math.inf)) < total
    left = account(budget, spent).left
    assert left is not None
    assert 0 <= exact(left) <= max(Fraction(), exact(budget) - total)


@given(st.fractions())
def test_rounding_takes_the_next_float_on_the_safe_side(number: Fraction) -> None:
    assert exact(round_down(number)) <= number <= exact(round_up(number))
    assert exact(math.nextafter(round_up(number), -math.inf)) < number
    assert number < exact(math.nextafter(round_down(number), math.inf))


@given(st.floats(0, 800), st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_power_is_never_too_small_and_hardly_too_large(spent: float, level: float) -> None:
    with localcontext(prec=60, rounding=ROUND_DOWN):
        factor = Decimal(spent).exp()
        largest = min(Decimal(level) * factor, 1 - (1 - Decimal(level)) / factor)
    power = account(spent=spent).power(level)
    assert power is not None
    assert largest <= Decimal(power) <= 1
    if spent < 700 and level > 1e-300:
        assert power <= float(largest) * (1 + 1e-14) + 1e-15 * (largest > 0.1)


def test_power_grows_with_every_release(file: Ledger) -> None:
    file.set_budget("people", 9.0)
    assert file.dataset("people").power() == 0.05
    for _ in range(2):
        spend(file, "people", 1.0)
    assert file.dataset("people").power() == pytest.approx(0.05 * math.e**2)
    for level in (0.0, 1.0, math.nan):
        refused(dipriv.InputError, "level", call=partial(account().power, level))


@settings(max_examples=8)
@given(st.lists(EPSILONS, min_size=1, max_size=4), EPSILONS)
def test_what_is_left_can_be_asked_for(
    tmp_path_factory: pytest.TempPathFactory, epsilons: list[float], budget: float
) -> None:
    with Ledger.create(tmp_path_factory.mktemp("left") / "ledger.db") as ledger:
        ledger.set_budget("people", budget)
        total = Fraction()
        for epsilon in epsilons:
            if total + exact(epsilon) > exact(budget):
                with pytest.raises(BudgetError):
                    spend(ledger, "people", epsilon)
            else:
                spend(ledger, "people", epsilon)
                total += exact(epsilon)
        found = ledger.dataset("people")
        assert found.spent == round_up(total)
        if found.left is not None and found.left >= MIN_EPSILON:
            spend(ledger, "people", found.left)
            assert ledger.dataset("people").spent <= budget


# Records


def test_a_record_tells_the_release(ledger: Ledger) -> None:
    said = dataclasses.replace(promise(0.5), assumptions=(Assumption(AssumptionKind.LABELS_PUBLIC, ("ü\0\ud800",)),))
    ledger.set_budget("people", 1.0)
    number = ledger.reserve("people", 0.5, said, output=f"/home/{SECRET}/people\ud800.csv")
    (record,) = ledger.records("people")
    assert record.guarantee == said
    assert (record.id, record.number, record.dataset, record.epsilon) == (number.id, number.number, "people", 0.5)
    assert record.rows is None
    assert (record.state, record.finished, record.output) == ("reserved", None, "people?.csv")
    ledger.commit(number, rows=3)
    (record,) = ledger.records("people")
    assert (record.state, record.rows) == ("done", 3)
    assert record.finished is not None
    assert record.started.tzinfo is UTC
    assert datetime.now(UTC) - timedelta(minutes=5) < record.started <= record.finished <= datetime.now(UTC)


def test_a_release_ends_once(ledger: Ledger) -> None:
    ledger.set_budget("people", 9.0)
    done, failed = spend(ledger, "people", 1.0), spend(ledger, "people", 1.0)
    ledger.commit(done, rows=1)
    ledger.fail(failed)
    refused(LedgerError, "release 1 is already done", call=lambda: ledger.fail(done))
    refused(LedgerError, "release 1 is already done", call=lambda: ledger.commit(done, rows=2))
    refused(LedgerError, "release 2 is already failed", call=lambda: ledger.commit(failed, rows=2))
    refused(LedgerError, "release 999 is not in the ledger", call=lambda: ledger.commit(Reservation(999, 999), rows=2))
    refused(dipriv.InputError, "rows=-1", call=lambda: ledger.commit(done, rows=-1))
    assert [record.rows for record in ledger.records("people")] == [1, None]


def test_an_unknown_data_set_is_told(ledger: Ledger) -> None:
    ledger.set_budget("visits", 1.0)
    calls = (
        lambda: ledger.dataset("people"),
        lambda: ledger.records("people"),
        lambda: ledger.split_key("people"),
        lambda: spend(ledger, "people", 1.0),
    )
    for call in calls:
        fault = refused(LedgerError, "no data set 'people'", "dipriv ledger", call=call)
        assert "visits" not in str(fault)


# Keys and the hold-out


def test_keys_stay_the_same_for_ever(ledger: Ledger, url: str) -> None:
    ledger.set_budget("people", 9.0)
    split = enter_held_out(table(ledger, b"a", "people"))
    keys = ledger.fingerprint_key(), ledger.split_key("people")
    assert [len(key) for key in keys] == [32, 32]
    assert keys[0] != keys[1] == split.key
    ledger.close()
    with Ledger.open(url) as again:
        again.set_budget("people", 5.0)
        assert enter_held_out(table(again, b"b", "people", after=(b"a",))) == split
        assert (again.fingerprint_key(), again.split_key("people")) == keys


@pytest.mark.parametrize("by", [None, "n\xe4me\0\ud800"], ids=["by position", "by column"])
def test_the_hold_out_is_fixed_by_the_first_release(ledger: Ledger, by: str | None) -> None:
    first = enter_held_out(table(ledger, b"a", "people"), 0.1, by)
    assert (first.holdout, first.by) == (0.1, by)
    for share in (None, 0.1):
        assert table(ledger, b"a").split(share, by, 0.5) == first
    fixed = f"fixed: a share of 0.1 by {'position' if by is None else f'column {by!r}'}; "
    others = (0.3, by, "a share of 0.3 by "), (None, "id", "by column 'id'"), (0.1, None if by else "id", "by ")
    for share, column, words in others:
        call = partial(table(ledger, b"a").split, share, column, 0.25)
        refused(dipriv.DisclosureError, f"{fixed}a share of ", words, call=call)
    refused(dipriv.InputError, "holdout=2", call=lambda: table(ledger, b"a").split(2, by, 0.25))
    assert enter_held_out(table(ledger, b"a"), by=by) == first
    assert ledger.dataset("people").releases == 2


def test_who_looked_before_the_first_release_cannot_hold_out_other_rows(ledger: Ledger) -> None:
    """No check but that of `enter` can know of a release that came between."""
    ledger.set_budget("people", 9.0)
    first, again, share, column, everybody = (table(ledger, b"a", "people") for _ in range(5))
    split = enter_held_out(first)
    refused(LedgerError, "by another release in the meantime", "again", call=lambda: enter_held_out(again))
    refused(dipriv.DisclosureError, "a share of 0.3 by position", call=lambda: enter_held_out(share, 0.3))
    refused(dipriv.DisclosureError, "by column 'id'", call=lambda: enter_held_out(column, by="id"))
    refused(dipriv.DisclosureError, "held out some", call=lambda: enter(everybody))
    assert ledger.dataset("people").releases == 1
    assert enter_held_out(table(ledger, b"a", "people")) == split


def test_rows_that_were_released_are_never_held_out(ledger: Ledger) -> None:
    early = table(ledger, b"a", "people")
    enter(table(ledger, b"a", "people"))
    for late in (early, table(ledger, b"a"), table(ledger, b"b", "people", after=(b"a",))):
        refused(dipriv.DisclosureError, "held out none", call=partial(enter_held_out, late))
    enter(table(ledger, b"b", "people", after=(b"a",)))
    assert ledger.dataset("people").releases == 2


def test_rows_held_out_by_position_stay_where_they_were(ledger: Ledger) -> None:
    split = enter_held_out(table(ledger, b"january", "people"))
    assert enter_held_out(table(ledger, b"february", "people", after=(b"january",))) == split
    for after in ((), (b"january",), (b"february",)):
        moved = table(ledger, b"march", "people", after=after)
        refused(
            dipriv.DisclosureError, "not the first rows", "Add rows at the end", call=partial(enter_held_out, moved)
        )
    assert enter_held_out(table(ledger, b"march", "people", after=(b"january", b"february"))) == split
    assert enter_held_out(table(ledger, b"january")) == split
    by_person = enter_held_out(table(ledger, b"a", "persons"), by="id")
    assert enter_held_out(table(ledger, b"a, sorted", "persons"), by="id") == by_person


def test_nothing_printed_shows_a_secret(ledger: Ledger) -> None:
    split = enter_held_out(table(ledger, b"a", "people"))
    known = table(ledger, b"b", "people", after=(b"a",))
    fingerprint, prefix = content(b"b").content, order(b"a")
    assert known.split(None, None, 0.25) == split
    shown = repr((ledger, ledger._database, ledger.datasets(), ledger.records("people"), ledger.url, known))
    for key in (ledger.fingerprint_key(), split.key, fingerprint, prefix):
        assert key.hex() not in shown
        assert repr(key)[2:-1] not in shown
    assert SECRET not in shown


# Where the ledger is


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_and_its_folders_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder with ? and #" / "ledger.db"
    with Ledger.create(path) as ledger:
        ledger.set_budget("people", 1.0)
        assert ledger.url == f"sqlite:///{path}"
    assert [mode(p) for p in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    assert sorted(p.name for p in path.parent.iterdir()) == ["ledger.db"]


def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o666)
    Ledger.create(path).close()
    assert mode(path) == 0o600
    path.chmod(0o644)
    Ledger.open(path).close()
    assert mode(path) == 0o600


def test_the_place_is_an_argument_a_variable_or_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("DIPRIV_LEDGER", raising=False)
    with Ledger.open() as ledger:
        assert ledger.url == f"sqlite:///{tmp_path}/share/dipriv/ledger.db"
    monkeypatch.setenv("DIPRIV_LEDGER", "sqlite:///of-environment.db")
    places = (None, "of-environment.db"), ("plain.db", "plain.db"), ("sqlite:///url.db", "url.db"), ("~/h.db", "h.db")
    for given_, expected in places:
        words = "no ledger at", expected, "dipriv ledger create", *(["DIPRIV_LEDGER"] if given_ is None else [])
        refused(LedgerError, *words, call=partial(Ledger.open, given_))
        assert not (tmp_path / expected).exists()
        with Ledger.create(given_) as ledger:
            assert ledger.url == f"sqlite:///{tmp_path / expected}"
            assert (tmp_path / expected).exists()
        Ledger.open(given_).close()
        refused(LedgerError, "is a ledger already", call=partial(Ledger.create, given_))
    with Ledger.open(Path("plain.db")) as ledger:
        monkeypatch.chdir("/")
        assert ledger.datasets() == []


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        f"sqlite:///x.db?password={SECRET}",
        f"mysql://user:{SECRET}@host/x",
        f"postgresql+asyncpg://user:{SECRET}@host/x",
        f"postgresql:user:{SECRET}@host/x",
        f"postgresql://user:{SECRET}@host:port/x",
        f"postgresql://user:p@{SECRET}@host/x",
        f"postgresql://user:p@x/{SECRET}@host/x",
        "",
        "://",
        "~no-such-user/ledger.db",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(LedgerError, "URL", call=lambda: Ledger.open(url))
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_never_shown(url: str) -> None:
    with Ledger.create(url) as ledger:
        assert SECRET not in ledger.url
        assert (ledger.url == url) == url.startswith("sqlite")


# Faults


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "people.csv", tmp_path / "other.db"
    text.write_text("age,name\n1,Ann\n" * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (note TEXT)")
    connection.close()
    for path in (text, other):
        path.chmod(0o644)
        before = path.read_bytes()
        refused(LedgerError, "not a dipriv ledger", path.name, call=partial(Ledger.open, path))
        assert path.read_bytes() == before
        assert mode(path) == 0o644
    refused(LedgerError, "cannot be opened", call=lambda: Ledger.open(tmp_path))
    refused(LedgerError, "cannot be created", call=lambda: Ledger.create(text / "ledger.db"))


def alter(ledger: Ledger, statement: str) -> None:
    with ledger._database.writing() as connection:
        connection.exec_driver_sql(statement)


def test_another_version_is_refused(ledger: Ledger, url: str) -> None:
    alter(ledger, "UPDATE dipriv_ledger SET version = 8")
    refused(LedgerError, "has version 8", "reads versions 1 to 7", call=lambda: Ledger.open(url))
    alter(ledger, "DELETE FROM dipriv_ledger")
    refused(LedgerError, "has version None", call=lambda: Ledger.open(url))
    alter(ledger, "ALTER TABLE dipriv_ledger RENAME version TO edition")
    refused(LedgerError, "not a dipriv ledger", call=lambda: Ledger.open(url))


def test_delta_adds_up_exactly(ledger: Ledger) -> None:
    ledger.set_budget("people", 9.0)
    for _ in range(10):
        number = spend(ledger, "people", 0.1, 1e-10)
    ledger.commit(number, 7)
    ledger.fail(spend(ledger, "people", 0.5))
    found = ledger.dataset("people")
    assert (found.spent, found.delta_spent, found.releases) == (1.5, 1e-9, 11)
    assert (found.delta_budget, found.delta_left) == (1e-6, 9.99e-7)
    assert [record.delta for record in ledger.records("people")] == [1e-10] * 10 + [0.0]
    assert found.power() == pytest.approx(0.05 * math.exp(1.5) + 1e-9, rel=1e-12)
    assert str(found) == "ε spent 1.5, 7.5 of 9 left; δ spent 1e-9, 9.99e-7 of 1e-6 left"


def test_a_budget_of_delta_holds_to_the_last_bit(ledger: Ledger) -> None:
    assert ledger.set_budget("people", 9.0, 3e-9).delta_left == 3e-9
    for _ in range(3):
        spend(ledger, "people", 0.1, 1e-9)
    assert ledger.dataset("people").delta_left == 0.0
    refused(
        BudgetError,
        "δ = 1e-30",
        "only 0 is left",
        "δ = 3e-9",
        "--delta",
        call=lambda: spend(ledger, "people", 0.1, 1e-30),
    )
    spend(ledger, "people", 0.1)  # a pure release spends none
    assert ledger.set_budget("people", 8.0).delta_budget == 3e-9  # as it was
    ledger.set_budget("people", 8.0, 4e-9)
    spend(ledger, "people", 0.1, 1e-9)
    refusals: list[Any] = [-1e-9, 1.5, math.nan, True, "0"]
    for wrong in refusals:
        refused(dipriv.InputError, "delta", call=partial(ledger.set_budget, "people", 8.0, wrong))


def as_version_1(ledger: Ledger) -> None:
    """Take away what later versions added."""
    for statement in (
        "DROP TABLE dipriv_samples",
        "DROP TABLE dipriv_distinct",
        "DROP TABLE dipriv_columns",
        "DROP TABLE dipriv_contents",
        "ALTER TABLE dipriv_releases DROP COLUMN is_own",
        "ALTER TABLE dipriv_releases DROP COLUMN keys_digest",
        "ALTER TABLE dipriv_releases DROP COLUMN unit_digest",
        "ALTER TABLE dipriv_releases DROP COLUMN delta",
        "ALTER TABLE dipriv_datasets DROP COLUMN delta_budget",
        "ALTER TABLE dipriv_datasets DROP COLUMN splits_by_cells",
        "UPDATE dipriv_ledger SET version = 1",
    ):
        alter(ledger, statement)


def test_version_1_gets_a_delta_of_0_for_what_it_holds(ledger: Ledger, url: str) -> None:
    ledger.set_budget("people", 3.0)
    ledger.commit(spend(ledger, "people", 0.5), 7)
    spend(ledger, "people", 0.25)
    key, before = ledger.fingerprint_key(), ledger.records("people")
    as_version_1(ledger)
    with Ledger.open(url) as again:
        assert again.fingerprint_key() == key
        assert again.records("people") == before
        spend(again, "people", 1.0, 1e-9)
        found = again.dataset("people")
        assert (found.spent, found.delta_spent, found.budget, found.delta_budget) == (1.75, 1e-9, 3.0, 1e-6)
    Ledger.open(url).set_budget("people", 3.0, 1e-9)  # opening it again changes nothing
    assert ledger.dataset("people").delta_left == 0.0


def test_version_1_gets_the_delta_of_its_guarantees(ledger: Ledger, url: str) -> None:
    ledger.set_budget("people", 3.0)
    spend(ledger, "people", 0.5, 1e-6)
    as_version_1(ledger)
    assert Ledger.open(url).dataset("people").delta_spent == 1e-6


def test_a_ledger_that_vanishes_is_not_made_anew(file: Ledger, tmp_path: Path) -> None:
    (tmp_path / "ledger.db").unlink()
    refused(LedgerError, "cannot be opened", call=lambda: file.set_budget("people", 1.0))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_ledger_is_told(file: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    file.set_budget("people", 1.0)
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    refused(LedgerError, "is damaged", "backup", call=lambda: file.dataset("people"))


def test_a_locked_ledger_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.2)
    with Ledger.create(url) as ledger:
        ledger.set_budget("people", 1.0)
        with ledger._database.writing() as holder:
            holder.exec_driver_sql("UPDATE dipriv_datasets SET budget = 2")
            refused(LedgerError, "is locked", "0.2 seconds", call=lambda: spend(ledger, "people", 1.0))
        assert (ledger.dataset("people").budget, ledger.dataset("people").releases) == (2.0, 0)


def test_a_write_that_fails_spends_nothing(ledger: Ledger) -> None:
    ledger.set_budget("people", 1.0)
    alter(ledger, "ALTER TABLE dipriv_releases RENAME output TO result")
    refused(LedgerError, "not a dipriv ledger", call=lambda: spend(ledger, "people", 1.0))
    for name in ("people", "new"):
        session = table(ledger, b"a", name)
        refused(LedgerError, "not a dipriv ledger", call=partial(enter_held_out, session))
        assert table(ledger, b"a", name).known == session.known
    assert [(found.name, found.releases) for found in ledger.datasets()] == [("people", 0)]


def test_a_server_that_is_not_there_is_told() -> None:
    for url in (f"postgresql://u:{SECRET}@127.0.0.1:1/x", f"postgres://127.0.0.1:1/x?user=u&password={SECRET}"):
        refused(LedgerError, "cannot be reached", "127.0.0.1:1/x", "refused", call=partial(Ledger.open, url))


def test_a_wrong_password_or_database_is_told(postgres_server: Server) -> None:
    wrong = postgres_server.url("postgres", password=f"not-{SECRET}")
    refused(LedgerError, "authentication failed", "keeper:***@", call=lambda: Ledger.open(wrong))
    nowhere = postgres_server.url("nowhere")
    refused(LedgerError, '"nowhere" does not exist', call=lambda: Ledger.open(nowhere))


def test_a_server_that_rounds_or_forgets_is_told_not_to(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    name = url.partition("@/")[2].partition("?")[0]
    postgres_server.run(f"ALTER DATABASE {name} SET extra_float_digits = 0")
    with Ledger.create(url) as ledger:
        assert ledger.set_budget("people", 0.1 + 0.2).budget == ledger.dataset("people").budget == 0.1 + 0.2 != 0.3
    postgres_server.run(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with Ledger.open(url) as ledger, ledger._database.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    postgres_server.run(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
    with Ledger.open(url) as ledger, ledger._database.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"


def test_a_file_is_written_through(file: Ledger) -> None:
    with file._database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3  # EXTRA


def test_a_driver_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused(
        dipriv.MissingDependencyError,
        "driver",
        "pip install",
        call=lambda: Ledger.open(f"postgresql://u:{SECRET}@host/x"),
    )
