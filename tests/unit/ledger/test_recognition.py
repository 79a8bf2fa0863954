"""A table that resembles a data set is a question for the keeper, whose answer is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

import dipriv
from dipriv._base.table_fingerprint import ColumnFingerprint, TableFingerprint, packed_sample
from dipriv.errors import BudgetError
from dipriv.guarantee import PrivacyUnit, ReferenceFacts, ReferenceSource, Unprotected, UnprotectedKind
from dipriv.guarantee.trade_off import largest_probability
from dipriv.guarantee.wording import unit_name
from dipriv.ledger import DatasetState, Ledger, ReleaseRequest
from dipriv.ledger.tables import COLUMNS
from dipriv.ledger.values import counted_for
from tests.unit.ledger.contents import content, digest
from tests.unit.refusal import refused

PROMISE = dipriv.Guarantee(0.1, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
ROWS = 1000


def sketch(first: int, last: int) -> bytes:
    """Of the set of these numbers; the hash of each is ten times the number."""
    return (10 * np.arange(first, last, dtype="<u8"))[:256].tobytes()


def sample(first: int, last: int, times: int = 1, step: int = 1) -> bytes:
    """Of every `step`-th of these numbers, each of which occurs as often as `times` says, and others between them."""
    numbers = np.arange(first, last)
    hashes = (np.where(numbers % step == 0, 2 * numbers, 2 * numbers + 1) << 20).astype(np.uint64)
    return packed_sample(hashes, np.full(len(hashes), times, np.uint64), 2**64 - 1)


def column(word: str, n_distinct: int = 500, values: bytes = b"", tags: bytes = b"") -> ColumnFingerprint:
    label = digest(b"name of " + word.encode())
    return ColumnFingerprint(digest(word.encode()), n_distinct, values, tags, (0.02, 0.02), label)


PEOPLE = replace(
    content(b"people", ROWS),
    columns=(
        column("id", ROWS, sample(0, 256)),
        column("age", 70, tags=sketch(1000, 1070)),
        column("sex", 2, tags=sketch(0, 2)),
        column("pay"),
    ),
    row_sketch=sketch(5000, 5256),
    samples=(sample(5000, 6000), sample(7000, 8000)),
)
OTHERS = replace(
    content(b"others", ROWS), columns=(column("sex", 2), column("home", 20)), row_sketch=sketch(9000, 9256)
)


@pytest.fixture
def ledger(url: str) -> Any:
    with Ledger.create(url) as opened:
        opened.reserve(ReleaseRequest("people", PEOPLE), 0.1, PROMISE)
        yield opened


def look(ledger: Ledger, table: TableFingerprint, name: str | None = None, **options: Any) -> DatasetState:
    return ledger.preview(names=() if name is None else (name,), table=table, suggestion="file", **options)


def changed(word: str, **facts: Any) -> TableFingerprint:
    names = {"content": digest(word.encode()), "order": digest(b"o" + word.encode()), "samples": ()}
    return replace(PEOPLE, **(names | facts))


def alike(ages: int, sexes: int, more: int = 0) -> tuple[ColumnFingerprint, ...]:
    """Columns with the tags of age and sex from these numbers on, and others."""
    others = tuple(column(f"more {i}", 20, tags=sketch(3000 + 20 * i, 3020 + 20 * i)) for i in range(more))
    ages_and_sexes = sketch(ages, ages + 70), sketch(sexes, sexes + 2)
    return (*(column(f"{tags!r}", 70, tags=tags) for tags in ages_and_sexes), *others)


def expected(*columns: ColumnFingerprint) -> tuple[ColumnFingerprint, ...]:
    """Columns half of whose tags are expected in unrelated tables."""
    return tuple(replace(each, equal_tags=(len(each.tags) / 16,) * 2) for each in columns)


RESEMBLING = {
    "sorted": (
        replace(PEOPLE, order=bytes(16)),
        "has the rows of data set 'people', in another order or with cells in other columns",
    ),
    "renamed": (changed("renamed", row_sketch=b""), "has 4 of the 4 columns of data set 'people'"),
    "a column less": (changed("narrow", columns=PEOPLE.columns[1:], row_sketch=b""), "has 3 of the 4 columns"),
    "one column": (changed("age", columns=PEOPLE.columns[1:2], row_sketch=b""), "has 1 of the 4 columns"),
    "equal rows": (changed("long", columns=(), row_sketch=sketch(5000, 5256)), "equally often, about 100% of the"),
    "half of the rows": (changed("half", columns=(), row_sketch=sketch(5128, 5240)), "rows of data set 'people'"),
    "few rows": (changed("few", rows=12, columns=(), row_sketch=b"", samples=(sample(5100, 5112),)), "about 100%"),
    "rows with names": (
        changed("named", rows=12, columns=(), row_sketch=b"", samples=(b"", sample(7100, 7112))),
        "has rows of data set 'people', about 100% of the smaller of the two",
    ),
    "repeated rows": (
        changed("twice", rows=2 * ROWS, columns=(), row_sketch=b"", samples=(sample(5000, 6000, times=2),)),
        "has rows of data set 'people', about 100% of the smaller of the two",
    ),
    "a third of other rows": (
        changed("mixed", columns=(), row_sketch=b"", samples=(sample(5000, 6000, step=3),)),
        "has rows of data set 'people', about 33% of the smaller of the two",
    ),
    "all columns of few values": (
        changed("few", columns=(column("sex", 2),), row_sketch=b""),
        "has 1 of the 4 columns",
    ),
    "counts": (changed("counts", rows=ROWS - 1, columns=alike(1035, 1), row_sketch=b""), "has 2 columns with mostly"),
    "counts of 5% fewer rows": (changed("95%", rows=950, columns=alike(1000, 0), row_sketch=b""), "2 columns with"),
    "other rows and columns": (
        changed("both", columns=(column("more", 900, sample(100, 356)),), row_sketch=b""),
        "has a column with many values of one of data set 'people'",
    ),
}


@pytest.mark.parametrize(("table", "how"), RESEMBLING.values(), ids=RESEMBLING.keys())
def test_a_table_that_resembles_a_data_set_is_asked_about(table: TableFingerprint, how: str, ledger: Ledger) -> None:
    for name in (None, "again"):
        words = how, "--dataset people", "dataset='people'", "--new-dataset NAME", "new_dataset=..."
        refused(BudgetError, *words, call=partial(look, ledger, table, name))
    again = ReleaseRequest("again", table)
    refused(BudgetError, how, call=lambda: ledger.reserve(again, 0.1, PROMISE))  # nor in the last moment
    assert [found.name for found in ledger.datasets()] == ["people"]
    ledger.reserve(ReleaseRequest("people", table), 0.1, PROMISE)  # the same people
    assert look(ledger, table).name == "people"  # known from now on


@pytest.mark.parametrize(
    "table",
    [
        OTHERS,
        changed("few", columns=(column("sex", 2), column("home", 20)), row_sketch=b""),  # a column that says nothing
        changed("34 of 70", rows=ROWS - 1, columns=alike(1036, 1), row_sketch=b""),
        changed("one of two", rows=ROWS - 1, columns=alike(1000, 2), row_sketch=b""),
        changed("two", rows=ROWS - 1, columns=expected(*alike(1035, 1)), row_sketch=b""),  # may be chance
        changed("longer", rows=ROWS + 60, columns=alike(1000, 0), row_sketch=b""),
        changed("nine", columns=(), row_sketch=sketch(5000, 5009)),  # nor do so few rows
        changed("fifth", columns=(), row_sketch=b"", samples=(sample(5000, 6000, step=5),)),
        changed("other way", columns=(), row_sketch=b"", samples=(sample(7000, 8000), sample(5000, 6000))),
    ],
    ids=[
        "nothing",
        "a common column",
        "too few tags",
        "one column's tags",
        "two columns of the same distribution",
        "more rows",
        "few rows",
        "a fifth of the rows",
        "rows hashed otherwise",
    ],
)
def test_what_resembles_no_data_set_is_new(table: TableFingerprint, ledger: Ledger) -> None:
    assert look(ledger, table) == DatasetState("file")
    assert look(ledger, table, "again") == DatasetState("again")


@pytest.mark.slow
@pytest.mark.parametrize("table", [case[0] for case in RESEMBLING.values()], ids=RESEMBLING.keys())
def test_the_keeper_may_affirm_that_it_describes_other_people(table: TableFingerprint, ledger: Ledger) -> None:
    assert look(ledger, table, "again", is_new=True) == DatasetState("again")
    ledger.reserve(ReleaseRequest("again", table, is_new=True), 0.1, PROMISE)
    assert look(ledger, table).name == "again"
    again = replace(table, order=digest(b"sorted"))
    assert look(ledger, again, "again").name == "again"  # this table was affirmed, in any order
    grown = replace(table, content=digest(b"grown"), order=digest(b"grown"))
    for name in ("third", "again", None):  # another one was not
        refused(BudgetError, "data set ", call=partial(look, ledger, grown, name))
    both = ledger.preview(names=("again", "people"), table=grown, suggestion=None)
    assert (both.name, both.also) == ("again", ("people",))  # it is counted in both
    assert look(ledger, grown, "again", is_new=True).name == "again"
    assert {found.name: found.releases for found in ledger.datasets()} == {"again": 1, "people": 1}


def test_the_same_content_is_never_new(ledger: Ledger) -> None:
    for options in ({}, {"is_new": True}):
        words = "already known as data set 'people'", "second budget", "--dataset people"
        refused(BudgetError, *words, call=partial(look, ledger, PEOPLE, "again", **options))
    assert look(ledger, PEOPLE).name == look(ledger, PEOPLE, "people").name == "people"


def test_the_order_of_an_engine_is_no_fact_of_a_table_but_matters_for_positions(ledger: Ledger) -> None:
    elsewhere = replace(PEOPLE, order=bytes(16), is_ordered=False)
    assert look(ledger, elsewhere).name == "people"
    held = {"holdout": 0.25, "split_key": bytes(32)}
    ledger.reserve(ReleaseRequest("others", OTHERS, **held), 0.1, PROMISE)  # type: ignore[arg-type]
    moved = ReleaseRequest("others", replace(OTHERS, order=bytes(16), is_ordered=False), **held)  # type: ignore[arg-type]
    call = partial(ledger.reserve, moved, 0.1, PROMISE)
    refused(dipriv.DisclosureError, "not the first rows", call=call)


def old_content(ledger: Ledger, name: str, rows: int) -> None:
    """What version 2 stored of a table."""
    ledger.set_budget(name, 3.0)
    with ledger._database.writing() as connection:
        number = connection.exec_driver_sql(f"SELECT id FROM dipriv_datasets WHERE name = '{name}'").scalar()
        value = f"'{name}-{rows}'" if connection.dialect.name == "postgresql" else f"x'{rows:04d}'"
        connection.exec_driver_sql(f"INSERT INTO dipriv_fingerprints VALUES ({value}, {number}, {rows})")


def test_tables_of_older_versions_are_asked_about_by_their_number_of_rows(ledger: Ledger) -> None:
    old_content(ledger, "visits", ROWS)
    words = "as many rows as data set 'visits'", "older version", "--dataset visits"
    for name in (None, "again"):
        refused(BudgetError, *words, call=partial(look, ledger, OTHERS, name))
    by_file = partial(ledger.preview, names=(), table=content(b"x"), suggestion="visits")
    refused(BudgetError, "'visits' is known", call=by_file)
    assert look(ledger, replace(OTHERS, rows=ROWS + 1)).name == "file"
    ledger.reserve(ReleaseRequest("visits", OTHERS), 0.1, PROMISE)
    assert look(ledger, OTHERS).name == "visits"
    assert look(ledger, changed("other", columns=(), row_sketch=b"")).name == "file"  # all of it is known now


def test_rows_held_out_under_an_older_version_must_come_unchanged_once(ledger: Ledger) -> None:
    old_content(ledger, "visits", ROWS)
    with ledger._database.writing() as connection:
        connection.exec_driver_sql("UPDATE dipriv_datasets SET holdout = 0.25 WHERE name = 'visits'")
    held: dict[str, Any] = {"holdout": 0.25, "split_key": ledger.split_key("visits")}
    longer = replace(content(b"longer", ROWS + 5), prefixes=frozenset({(OTHERS.order, b"")}))
    words = f"{ROWS:,} rows", "older version", "unchanged, once"
    call = partial(ledger.reserve, ReleaseRequest("visits", longer, **held), 0.1, PROMISE)
    refused(dipriv.DisclosureError, *words, call=call)
    ledger.reserve(ReleaseRequest("visits", OTHERS, **held), 0.1, PROMISE)
    call()
    assert ledger.dataset("visits").releases == 2


def test_a_ledger_of_version_3_keeps_what_it_knows(ledger: Ledger, url: str) -> None:
    """Sketches of values become samples without counts; a table that is released again gets its own samples."""
    hashes = np.arange(0, 512, 2, dtype="<u8") << np.uint64(20)
    statements = [
        "DROP TABLE dipriv_samples",
        "ALTER TABLE dipriv_contents DROP COLUMN repeats",
        "ALTER TABLE dipriv_contents DROP COLUMN is_own",
        "ALTER TABLE dipriv_contents DROP COLUMN named_order",
        "ALTER TABLE dipriv_releases DROP COLUMN is_own",
        "ALTER TABLE dipriv_releases DROP COLUMN keys_digest",
        "ALTER TABLE dipriv_columns DROP COLUMN label",
        "ALTER TABLE dipriv_distinct DROP COLUMN content",
        "ALTER TABLE dipriv_datasets DROP COLUMN splits_by_cells",
        "UPDATE dipriv_ledger SET version = 3",
    ]
    with ledger._database.writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.execute(update(COLUMNS).where(COLUMNS.c.n_distinct == ROWS).values(sketch=hashes.tobytes()))
    with Ledger.open(url) as again:
        assert look(again, PEOPLE).name == "people"
        narrow = changed("narrow", columns=(column("ids", 900, sample(0, 400)),), row_sketch=b"")
        refused(BudgetError, "many values of one of data set 'people'", call=lambda: look(again, narrow))
        part = changed("part", columns=(), row_sketch=b"", samples=PEOPLE.samples)
        assert look(again, part).name == "file"
        again.reserve(ReleaseRequest("people", PEOPLE), 0.1, PROMISE)
        refused(BudgetError, "has rows of data set 'people'", call=lambda: look(again, part))


PERSON, HOUSE = PrivacyUnit.rows_of("person", 3), PrivacyUnit.rows_of("house", 3)


def test_units_do_not_mix(ledger: Ledger) -> None:
    rows, person, house = (replace(PROMISE, unit=unit) for unit in (PrivacyUnit(), PERSON, HOUSE))
    ledger.set_budget("visits", 1.0)
    ledger.reserve("visits", 0.1, person)
    ledger.reserve("visits", 0.1, replace(PROMISE, unit=replace(PERSON, max_rows=5)))  # ε is that of all rows
    for other in (rows, house):
        refused(BudgetError, "do not add up", "--unit person", call=partial(ledger.reserve, "visits", 0.1, other))
    assert ledger.dataset("visits").releases == 2
    assert ledger.dataset("visits").power() is not None


def test_what_protects_persons_adds_up_for_a_row(ledger: Ledger) -> None:
    rows, person = (replace(PROMISE, unit=unit) for unit in (PrivacyUnit(), PERSON))
    earlier = ledger.dataset("people")
    ledger.reserve("people", 0.1, person)
    found = ledger.dataset("people")
    assert found.spent == pytest.approx(earlier.spent + 0.1)
    assert found.power() == largest_probability(0.05, found.spent, found.delta_spent)
    words = f"protect {unit_name(PERSON)}", "would protect one row", "do not add up", "--unit person"
    refused(BudgetError, *words, call=lambda: ledger.reserve("people", 0.1, rows))  # what persons are promised stays
    ledger.reserve("people", 0.1, person)  # control
    records = ledger.records("people")
    assert counted_for(record.guarantee.unit for record in records) == PrivacyUnit()
    assert counted_for([PERSON, HOUSE]) is None
    assert counted_for([PERSON, replace(PERSON, max_rows=5)]) is not None


def test_a_unit_is_known_by_its_cells_and_not_only_by_its_name(ledger: Ledger) -> None:
    """Else two columns could change their names, and ε of other persons be added up, or other rows be held out."""
    cells = (
        column("person", values=sample(20_000, 20_300)),
        column("house", values=sample(2000, 2300)),
    )
    person = replace(PROMISE, unit=PERSON)

    def reserve(word: bytes, *names: str, columns: Any = cells) -> None:
        pairs = zip(columns, names, strict=True)
        named = tuple(replace(one, name=name, label=digest(name.encode())) for one, name in pairs)
        ledger.reserve(ReleaseRequest("visits", replace(content(word), columns=named)), 0.1, person)

    reserve(b"visits", "person", "house")
    reserve(b"visits", "person", "home")
    words = "'visits'", "another name in this table", "do not add up", "names that they had"
    fewer = column("some persons", values=sample(20_000, 20_290)), column("some houses", values=sample(2000, 2290))
    for columns in (cells, fewer):
        refused(BudgetError, *words, call=partial(reserve, b"visits", "house", "person", columns=columns))
        refused(BudgetError, *words, call=partial(reserve, b"visits", "person", columns=columns[1:]))  # dropped
    reserve(b"fewer visits", "person", "house", columns=fewer)
    reserve(b"more visits", "person", "house", columns=(column("more persons"), column("more houses")))
    assert ledger.dataset("visits").releases == 4


def test_no_power_is_stated_where_nothing_bounds_it(ledger: Ledger) -> None:
    exposed = replace(PROMISE, unprotected=(Unprotected(UnprotectedKind.HOLDOUT_ROWS, 250),))
    seeded = replace(PROMISE, secure_randomness=False)
    kept = replace(PROMISE, unprotected=(Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=("id",)),))
    for name, promise, why in (("exposed", exposed, "held out"), ("seeded", seeded, "seeded"), ("kept", kept, None)):
        ledger.set_budget(name, 1.0)
        ledger.reserve(name, 0.1, PROMISE)
        assert ledger.dataset(name).power() is not None
        ledger.reserve(name, 0.1, promise)
        found = ledger.dataset(name)
        assert (found.power() is None) == (why is not None)
        assert why is None or why in str(found.unbounded)


def test_releases_are_numbered_within_their_data_set(ledger: Ledger) -> None:
    ledger.set_budget("visits", 1.0)
    made = [ledger.reserve(name, 0.1, PROMISE) for name in ("visits", "people", "visits")]
    assert [release.number for release in made] == [1, 2, 2]
    assert len({release.id for release in made}) == 3
    ledger.commit(made[2], rows=7)
    assert [(record.number, record.rows) for record in ledger.records("visits")] == [(1, None), (2, 7)]
    assert [record.id for record in ledger.records("visits")] == [made[0].id, made[2].id]


def test_remedies_name_the_ledger(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "the ledger.db"
    with Ledger.create(path) as opened:
        refused(dipriv.LedgerError, f"dipriv ledger --ledger '{path}'", call=lambda: opened.dataset("people"))
        opened.set_budget("people", 0.05)
        words = f"dipriv ledger budget people EPSILON --ledger '{path}'"
        refused(BudgetError, words, call=lambda: opened.reserve("people", 0.1, PROMISE))
    monkeypatch.setenv("DIPRIV_LEDGER", str(path))
    with Ledger.open() as opened:
        fault = refused(BudgetError, "EPSILON.", call=lambda: opened.reserve("people", 0.1, PROMISE))
        assert "--ledger" not in str(fault)
