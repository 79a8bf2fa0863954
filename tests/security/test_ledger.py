"""Ledgers that somebody edited or damaged are refused."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dipriv
from dipriv._base.table_fingerprint import ColumnFingerprint, TableFingerprint
from dipriv.errors import LedgerError
from dipriv.guarantee import Model, ReferenceFacts, ReferenceSource
from dipriv.ledger import Ledger, ReleaseRequest
from tests.security.support import little


@pytest.fixture
def book(tmp_path: Path) -> Path:
    place = tmp_path / "ledger.db"
    promise = dipriv.Guarantee(0.5, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
    with Ledger.create(place) as ledger:
        ledger.set_budget("people", 3.0)
        ledger.commit(ledger.reserve("people", 0.5, promise), 1)
        for name in ("visits", "others"):
            columns = (ColumnFingerprint(bytes(16), 20, bytes(8)),)
            facts: Any = {"columns": columns, "row_sketch": bytes(8), "samples": (bytes(8),)}
            table = TableFingerprint(30, name.encode().ljust(16), bytes(16), **facts)
            ledger.reserve(ReleaseRequest(name, table, is_new=True), 0.5, promise)
    return place


STATEMENTS: list[tuple[str, str]] = [
    ("UPDATE dipriv_releases SET epsilon = -5", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = 9e999", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = '1e999999999x'", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = x'00'", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET delta = -1e-9", "dipriv_releases.delta"),
    ("UPDATE dipriv_releases SET delta = 'little'", "dipriv_releases.delta"),
    ("UPDATE dipriv_datasets SET delta_budget = 1.5", "dipriv_datasets.delta_budget"),
    ("ALTER TABLE dipriv_releases DROP COLUMN delta", "dipriv_releases.delta"),
    ("UPDATE dipriv_releases SET dataset = 99", "dipriv_releases.dataset"),
    ("UPDATE dipriv_releases SET state = 'free'", "dipriv_releases.state"),
    ("UPDATE dipriv_releases SET rows = -1", "dipriv_releases.rows"),
    ("UPDATE dipriv_releases SET started = 'yesterday'", "is damaged"),
    ("UPDATE dipriv_datasets SET budget = 'much'", "dipriv_datasets.budget"),
    ("UPDATE dipriv_datasets SET budget = -1.0", "dipriv_datasets.budget"),
    ("UPDATE dipriv_datasets SET split_key = 1000000000000", "dipriv_datasets.split_key"),
    ("UPDATE dipriv_datasets SET split_key = x'00'", "dipriv_datasets.split_key"),
    ("UPDATE dipriv_datasets SET holdout = 1.5", "dipriv_datasets.holdout"),
    ("UPDATE dipriv_datasets SET name = x'00' WHERE id = 1", "dipriv_datasets.name"),
    ("UPDATE dipriv_datasets SET name = '' WHERE id = 1", "dipriv_datasets.name"),
    ("UPDATE dipriv_datasets SET created = 5", "is damaged"),
    ("UPDATE dipriv_ledger SET fingerprint_key = 'text'", "dipriv_ledger.fingerprint_key"),
    ("UPDATE dipriv_ledger SET version = 8", "has version 8"),
    ("UPDATE dipriv_ledger SET version = 0", "has version 0"),
    ("UPDATE dipriv_ledger SET version = 1", "not a dipriv ledger"),
    ("DELETE FROM dipriv_ledger", "has version None"),
    ("CREATE TRIGGER t AFTER INSERT ON dipriv_releases BEGIN DELETE FROM dipriv_releases; END", "triggers"),
    ("CREATE VIEW v AS SELECT * FROM dipriv_releases", "views"),
    ("DROP TABLE dipriv_fingerprints", "tables, views or triggers"),
    ("DROP TABLE dipriv_columns", "tables, views or triggers"),
    ("UPDATE dipriv_contents SET content = 'text'", "dipriv_contents.content"),
    ("UPDATE dipriv_contents SET row_sketch = zeroblob(7)", "dipriv_contents.row_sketch"),
    ("UPDATE dipriv_contents SET is_ordered = 2", "dipriv_contents.is_ordered"),
    ("UPDATE dipriv_columns SET digest = x'00'", "dipriv_columns.digest"),
    ("UPDATE dipriv_columns SET content = 99", "dipriv_columns.content"),
    ("UPDATE dipriv_columns SET sketch = zeroblob(262144)", "dipriv_columns.sketch"),
    ("UPDATE dipriv_columns SET tags = zeroblob(4096)", "dipriv_columns.tags"),
    ("UPDATE dipriv_columns SET label = zeroblob(8)", "dipriv_columns.label"),
    ("UPDATE dipriv_contents SET repeats = 0", "dipriv_contents.repeats"),
    ("UPDATE dipriv_samples SET sample = zeroblob(262144)", "dipriv_samples.sample"),
    ("UPDATE dipriv_samples SET content = 99", "dipriv_samples.content"),
    ("UPDATE dipriv_samples SET way = 'x'", "dipriv_samples.way"),
    ("UPDATE dipriv_distinct SET content = 'x'", "dipriv_distinct.content"),
    ("UPDATE dipriv_distinct SET other = 99", "dipriv_distinct.other"),
    ("ALTER TABLE dipriv_releases ADD COLUMN more AS (epsilon * 2)", "tables, views or triggers"),
]


@pytest.mark.parametrize("stored", ["no json", "[" * 3000, "[]", "null", "{}", '{"format": 2}', '{"format": 3}'])
def test_a_guarantee_that_cannot_be_read_guarantees_nothing(stored: str, book: Path) -> None:
    with sqlite3.connect(book) as link:
        link.execute("UPDATE dipriv_releases SET guarantee = ?", (stored,))
    link.close()
    with little(), Ledger.open(book) as ledger:
        (record,) = ledger.records("people")
        assert ledger.dataset("people").spent == record.epsilon == 0.5
    assert (record.guarantee.model, record.guarantee.epsilon) == (Model.NONE, math.inf)
    assert "cannot be read" in str(record.guarantee)


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "told"), STATEMENTS, ids=[statement[:60] for statement, _ in STATEMENTS])
def test_ledgers_that_say_what_dipriv_did_not_write(statement: str, told: str, book: Path) -> None:
    with sqlite3.connect(book) as link:
        link.execute("PRAGMA ignore_check_constraints = ON")
        link.execute(statement)
    link.close()

    def use() -> None:
        with Ledger.open(book) as ledger:
            ledger.records("people")

    with little(), pytest.raises(LedgerError) as caught:
        use()
    assert told in caught.value.fault
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_view_in_place_of_a_table_is_not_run(book: Path) -> None:
    endless = "WITH RECURSIVE n(version) AS (SELECT 1 UNION ALL SELECT version + 1 FROM n)"
    with sqlite3.connect(book) as link:
        link.execute("DROP TABLE dipriv_ledger")
        link.execute(f"CREATE VIEW dipriv_ledger AS {endless} SELECT max(version) AS version FROM n")
    link.close()
    with little(), pytest.raises(LedgerError, match="tables, views or triggers"):
        Ledger.open(book)


@pytest.mark.parametrize("start", [0, 24, 100, 4096])
def test_damaged_ledgers_are_refused(start: int, book: Path) -> None:
    content = bytearray(book.read_bytes())
    content[start : start + 400] = b"\xff" * 400
    book.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(book).records("people")
