"""Files that version 0.1.0.dev0 wrote are still read, and say what they said; see make_files.py."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dipriv.errors import DisclosureError
from dipriv.guarantee import PrivacyUnit, UnprotectedKind
from dipriv.ledger import Reservation
from tests.golden.calls import (
    BudgetError,
    Schema,
    Split,
    held_out,
    open_ledger,
    privatize,
    promise_in,
    released_rows,
    sidecar_beside,
)
from tests.golden.make_files import (
    FILES,
    KEYS,
    KINDS,
    again,
    local_results,
    mask,
    masks,
    padded_visits,
    read_csv,
)

EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
ODD_KEYS = ("007", "", " ", "1e3")
PLACES = (b"/work", b"/home", b"/root", b"/tmp", b"/Users", b"file:")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copy(FILES / "ledger.db", tmp_path))


def test_the_ledger_says_what_was_spent(ledger: Path) -> None:
    with open_ledger(ledger) as book:
        told = {each.name: (each.budget, each.spent, each.left, each.releases) for each in book.datasets()}
        records = book.records("people")
    assert told == {
        "people": (3.0, 1.5, 1.5, 5),
        "readings": (10.0, 0.7, 9.3, 1),  # the default budget, as none was set
        "visits": (10.0, 2.0, 8.0, 2),
    }
    assert {each.delta for each in records} == {0.0}  # version 1 had none
    assert [(each.epsilon, each.state, each.rows, each.output) for each in records] == [
        (0.5, "done", 120, None),
        (0.1, "done", records[1].rows, None),
        (0.2, "done", 120, "people-2.csv"),
        (0.3, "failed", None, "people-3.csv"),
        (0.4, "reserved", None, None),
    ]
    assert all(each.started.year == 2026 and not each.guarantee.unprotected for each in records)


def test_the_ledger_is_written_on(ledger: Path) -> None:
    with open_ledger(ledger) as book:
        promised = promise_in(book.records("people")[1])
        book.fail(Reservation(5, 5))
        book.commit(book.reserve("people", 1.5, promised), 7)
        assert book.dataset("people").left == 0.0
        with pytest.raises(BudgetError):
            book.reserve("people", 0.1, promised)
        assert book.set_budget("visits", 2.5).left == 0.5
    assert open_ledger(ledger).dataset("people").spent == 3.0


def test_the_ledger_of_version_2_says_what_was_spent(tmp_path: Path) -> None:
    with open_ledger(Path(shutil.copy(FILES / "ledger-2.db", tmp_path))) as book:
        found, records = book.dataset("people"), book.records("people")
        assert (found.budget, found.spent, found.left, found.releases) == (3.0, 1.75, 1.25, 3)
        assert (found.delta_budget, found.delta_spent, found.delta_left) == (1e-8, 2e-9, 8e-9)
        assert [(each.epsilon, each.delta, each.state, each.rows) for each in records] == [
            (0.5, 1e-9, "done", 120),
            (0.75, 1e-9, "failed", None),
            (0.5, 0.0, "done", 60),
        ]
        assert [each.guarantee.delta for each in records] == [1e-9, 1e-9, 0.0]
        with pytest.raises(BudgetError):
            book.reserve("people", 0.5, replace(promise_in(records[0]), delta=1e-7))
        book.reserve("people", 0.5, promise_in(records[0]))
        assert book.dataset("people").delta_left == 7e-9


@pytest.mark.slow
def test_the_ledger_asks_about_tables_of_older_versions_and_holds_out_the_same_rows(ledger: Path) -> None:
    for name in ("people", "visits", "readings"):
        with pytest.raises(BudgetError, match="older version"):
            released_rows(read_csv(f"{name}.csv"), 0.25, ledger=ledger, dataset="another", seed=5)
    assert again(ledger) == EXPECTED["ledger"]
    with open_ledger(ledger) as book:
        assert [book.dataset(name).releases for name in ("people", "visits", "readings")] == [6, 3, 2]
        by_person = Split(0.4, book.split_key("visits"), "person")
        by_position = Split(0.25, book.split_key("readings"))
    for name, split in {"visits": by_person, "readings": by_position}.items():
        released = [not held for held in held_out(split, read_csv(f"{name}.csv"))]
        assert mask(released) == EXPECTED["ledger"][name]
        assert 0 < sum(released) < len(released)


@pytest.mark.slow
def test_the_ledger_of_version_3_knows_its_tables(tmp_path: Path) -> None:
    ledger = Path(shutil.copy(FILES / "ledger-3.db", tmp_path))
    people, readings = read_csv("people.csv"), read_csv("readings.csv")
    with open_ledger(ledger) as book:
        told = {each.name: (each.budget, each.spent, each.releases, each.power() is None) for each in book.datasets()}
        split = Split(0.25, book.split_key("readings"))
    assert told == {
        "people": (10.0, 0.5, 1, False),
        "readings": (2.0, 0.7, 1, True),  # rows were held out
        "others": (10.0, 0.25, 1, False),
    }
    privatize(people, 0.25, ledger=ledger, seed=None)
    privatize(people.sort_by("age"), 0.25, ledger=ledger, seed=None)  # affirmed to be other people, and known as such
    later = people.sort_by("age").slice(1)
    with pytest.raises(BudgetError, match="data set 'people'"):  # what was affirmed does not hold for another table
        privatize(later, 0.25, ledger=ledger, seed=None)
    privatize(later, 0.25, ledger=ledger, seed=None, new_dataset="others")
    released = released_rows(readings, 0.25, ledger=ledger, reference="holdout", seed=5)
    assert released == [not held for held in held_out(split, readings)]
    for name in (None, "more"):
        with pytest.raises(BudgetError, match="has rows of data set"):
            privatize(people.slice(1), 0.25, ledger=ledger, seed=None, dataset=name)
    with open_ledger(ledger) as book:
        assert [book.dataset(name).releases for name in ("people", "readings", "others")] == [2, 2, 3]


def test_the_ledger_of_version_4_knows_parts_and_repetitions(tmp_path: Path) -> None:
    ledger = Path(shutil.copy(FILES / "ledger-4.db", tmp_path))
    people = read_csv("people.csv")
    with open_ledger(ledger) as book:
        assert {each.name: (each.spent, each.releases) for each in book.datasets()} == {
            "people": (0.5, 1),
            "others": (0.25, 1),
        }
    privatize(people, 0.25, ledger=ledger, seed=None)
    privatize(people.slice(0, 40), 0.25, ledger=ledger, seed=None)
    for table in (people.slice(100), pa.concat_tables([people, people]), people.slice(1).drop_columns("age")):
        for name in (None, "more"):
            with pytest.raises(BudgetError, match="data set 'people'"):
                privatize(table, 0.25, ledger=ledger, seed=None, dataset=name)
    with pytest.raises(BudgetError, match="data set 'people'"):
        privatize(people.slice(100), 0.25, ledger=ledger, seed=None, dataset="others")
    both = ["others", "people"]
    privatize(people.slice(1).drop_columns("age"), 0.25, ledger=ledger, seed=None, dataset=both)
    with open_ledger(ledger) as book:
        assert [book.dataset(name).releases for name in ("people", "others")] == [3, 3]


@pytest.mark.slow
def test_the_ledger_of_version_5_tells_own_releases_from_streams_of_others(tmp_path: Path) -> None:
    ledger = Path(shutil.copy(FILES / "ledger-5.db", tmp_path))
    with open_ledger(ledger) as book:
        assert {each.name: (each.spent, each.releases) for each in book.datasets()} == {
            "visits": (1.5, 2),
            "later": (1.0, 1),
        }
        assert book.dataset("visits").power() == pytest.approx(0.05 * math.exp(1.5))  # of a row, with both releases
    privatize(read_csv("visits.csv"), 0.25, ledger=ledger, seed=None, unit="person", rows_per_unit=4)
    with pytest.raises(BudgetError, match="protect"):
        privatize(read_csv("visits.csv"), 0.25, ledger=ledger, seed=None)


def test_the_ledger_of_version_6_holds_out_persons_however_they_are_written(tmp_path: Path) -> None:
    ledger = Path(shutil.copy(FILES / "ledger-6.db", tmp_path))
    options: dict[str, Any] = {"reference": "holdout", "unit": "person", "rows_per_unit": 5, "seed": 5}
    found = [
        released_rows(one, 0.25, ledger=ledger, dataset="padded", **options)
        for one in (padded_visits(), read_csv("visits.csv"))
    ]
    assert found[0] == found[1]
    assert {*found[0]} == {True, False}


@pytest.mark.parametrize("name", EXPECTED["references"])
def test_an_exported_reference_releases_the_same_record(name: str) -> None:
    kept = EXPECTED["references"][name]
    found = local_results(name, kept["record"])
    assert found["epsilon"] == kept["epsilon"]
    for now, before in zip(found["released"], kept["released"], strict=True):
        assert now.keys() == before.keys()
        for column, value in before.items():
            assert now[column] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
    assert len({str(each) for each in kept["released"]}) > 1  # control: seeds matter


def test_a_split_holds_out_the_same_rows() -> None:
    by_position, by_person = Split.load(FILES / "split.json"), Split.load(FILES / "split-by-person.json")
    with pytest.raises(DisclosureError, match="as it is written"):  # "007" and 7 were different persons
        masks(by_position, by_person)
    found = masks(by_position, replace(by_person, as_written=False))
    plain = [place for place, key in enumerate(KEYS) if key not in ODD_KEYS]
    same = held_out(by_person, pa.table({"person": [KEYS[place] for place in plain]}))
    assert mask(same) == "".join(EXPECTED["splits"]["keys"][place] for place in plain)
    for part in ("positions", "numbers"):
        assert found[part] == EXPECTED["splits"][part]
    other = Split(0.3, bytes(32))
    assert masks(other, Split(0.5, bytes(32), "person"))["positions"] != found["positions"]  # control: keys matter


UNITS = {"private": PrivacyUnit(), "holdout": PrivacyUnit(), "unit": PrivacyUnit.rows_of("person", 4)}


@pytest.mark.parametrize("name", EXPECTED["notes"])
def test_a_note_says_what_it_said(name: str) -> None:
    kept = EXPECTED["notes"][name]
    found = sidecar_beside(FILES / f"{name}.csv")
    plain = json.loads((FILES / f"{name}.csv.dipriv.json").read_text(encoding="utf-8"))
    said = found.guarantee
    assert (said.epsilon, said.delta, dict(found.fidelity)) == (kept["epsilon"], 0.0, kept["fidelity"])
    assert said.secure_randomness == kept["facts"]["secure_randomness"]
    assert said.unit == UNITS[name]
    assert said.has_unprotected_rows == ("no formal protection" in kept["facts"]["protects"])
    assert said.legacy == ()  # every sentence was recognised
    kept_columns = sum(part.kind is UnprotectedKind.UNCHANGED_COLUMNS for part in said.unprotected)
    assert len(said.assumptions) + kept_columns == len(plain["guarantee"]["conditions"])
    assert (found.rows_read, found.rows_released) == (plain["rows"]["read"], plain["rows"]["released"])


def test_a_note_of_format_3_says_what_it_said() -> None:
    found = sidecar_beside(FILES / "format-3.csv")
    plain = json.loads((FILES / "format-3.csv.dipriv.json").read_text(encoding="utf-8"))
    assert plain["format"] == 3
    assert (found.schema, found.declared, found.provenance) == (None, (), None)
    now = json.loads(json.dumps(found.to_dict()))
    statement, before = (said.pop("statement") for said in (now, plain))  # its sentences may be worded anew
    assert now == plain | {"format": 4, "provenance": None}
    assert before[0] in statement
    assert len(statement) == len(before)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_schema_is_what_it_was(ending: str) -> None:
    assert Schema.load(FILES / f"schema.{ending}") == Schema(KINDS)


def test_no_file_tells_of_the_machine_that_made_it() -> None:
    contents = dict(_contents())
    assert len(contents) > len(list(FILES.iterdir())) > 10  # control: what is packed is looked at, too
    assert not [name for name, content in contents.items() if any(place in content for place in PLACES)]


def _contents() -> Iterator[tuple[str, bytes]]:
    for path in FILES.iterdir():
        yield path.name, path.read_bytes()
        if path.suffix == ".dipriv":
            with zipfile.ZipFile(path) as packed:
                yield from ((f"{path.name}/{part}", packed.read(part)) for part in packed.namelist())
