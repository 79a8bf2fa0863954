"""Many real processes at once, and processes that are killed: the budget holds, and what was spent stays spent."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dipriv.errors import BudgetError
from dipriv.ledger import DatasetState, Ledger
from tests.unit.ledger.racers import BUDGET, EPSILON, KEY, PROCESSES, PROMISE, SHARE, held_out
from tests.unit.postgres import Server

ROOT = Path(__file__).parents[3]


def command(task: str, url: str) -> list[str]:
    return [sys.executable, "-m", "tests.unit.ledger.racers", task, url if "://" in url else f"sqlite:///{url}"]


def race(task: str, url: str) -> list[Any]:
    done = subprocess.run(command(task, url), cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    told: list[Any] = json.loads(done.stdout)
    assert len(told) == PROCESSES
    return told


def check_five_of_twenty(url: str, told: list[Any]) -> None:
    numbers = sorted(answer for answer in told if isinstance(answer, int))
    assert (len(numbers), told.count("refused")) == (5, 15), told
    with Ledger.open(url) as ledger:
        assert [record.number for record in ledger.records("people")] == numbers
        assert {record.state for record in ledger.records("people")} == {"reserved"}
        account = ledger.dataset("people")
        assert account.releases == 5
        assert account.spent <= BUDGET < account.spent + EPSILON


@pytest.mark.parametrize(
    "task", ["spend_anew", *(pytest.param(task, marks=pytest.mark.slow) for task in ("spend_forked", "enter_anew"))]
)
def test_twenty_processes_cannot_overspend(task: str, url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
    check_five_of_twenty(url, race(task, url))


@pytest.mark.slow
def test_a_server_set_to_old_snapshots_cannot_be_overspent_either(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    name = url.partition("@/")[2].partition("?")[0]
    postgres_server.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
    check_five_of_twenty(url, race("spend_forked", url))


@pytest.mark.slow
def test_twenty_processes_make_one_ledger_and_one_data_set(url: str) -> None:
    told = race("register", url)
    assert sorted(entry[1] for entry in told) == ["other"] + ["refused"] * (PROCESSES - 1)
    names, _, split_keys, fingerprint_keys, shares, columns = (set(part) for part in zip(*told, strict=True))
    assert len(names) == len(split_keys) == len(fingerprint_keys) == len(shares) == 1, told
    assert columns == {None}
    with Ledger.open(url) as ledger:
        assert {found.name: found.releases for found in ledger.datasets()} == {"other": 1, names.pop(): PROCESSES}


@pytest.mark.slow
def test_of_twenty_first_releases_at_once_one_fixes_the_hold_out(url: str) -> None:
    told = race("enter_after_one_look", url)
    (number,) = (answer for answer in told if isinstance(answer, int))
    late = [answer for answer in told if answer != number]
    assert len(late) == PROCESSES - 1
    assert all("registered by another release in the meantime" in answer for answer in late), told
    with Ledger.open(url) as ledger:
        assert [record.number for record in ledger.records("people")] == [number]


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    outcomes: list[bool] = []
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("people", BUDGET)

        def spend() -> None:
            try:
                ledger.reserve("people", EPSILON, PROMISE)
                outcomes.append(True)
            except BudgetError:
                outcomes.append(False)

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == [False] * 3 + [True] * 5


def test_opening_a_ledger_again_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    try_to_write = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    outside = [sys.executable, "-c", try_to_write, str(path)]
    with Ledger.open(path) as ledger:
        ledger.set_budget("people", BUDGET)
        with ledger._database.writing():
            path.chmod(0o644)
            Ledger.open(path).close()
            tried = subprocess.run(outside, capture_output=True, text=True, check=False)
            assert "database is locked" in tried.stderr
            path.open("rb").close()  # the control: this is how the locks would be lost
            assert subprocess.run(outside, capture_output=True, check=False).returncode == 0


def look(ledger: Ledger, name: str) -> DatasetState:
    return ledger.preview(name=None, fingerprint=held_out(name).fingerprint, suggestion=None)


def test_killed_between_enter_and_commit_it_stays_entered(url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
        with subprocess.Popen(command("enter_and_wait", url), cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        (record,) = ledger.records("people")
        assert (record.number, record.state, record.epsilon, record.finished) == (number, "reserved", EPSILON, None)
        assert ledger.dataset("people").spent == EPSILON
        assert look(ledger, "people") == DatasetState("people", 1, SHARE, None, KEY, ((1, b"people"),))
        assert ledger.reserve(held_out("people"), EPSILON, PROMISE) > number


@pytest.mark.slow
def test_killed_at_any_moment_all_of_a_release_is_entered_or_nothing(tmp_path: Path) -> None:
    path, told, moments = tmp_path / "ledger.db", set[int](), random.Random(5)
    with Ledger.open(path) as ledger:
        for killed in range(1, 5):
            with subprocess.Popen(command("enter_on_and_on", str(path)), cwd=ROOT, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                first = process.stdout.readline()
                time.sleep(moments.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
                told |= {int(line) for line in (first + process.stdout.read()).splitlines()}
            names = [found.name for found in ledger.datasets()]
            numbers = [record.number for name in names for record in ledger.records(name)]
            assert told <= set(numbers)
            assert 0 <= len(numbers) - len(told) <= killed  # spent, but not yet told
            for name in names:
                assert look(ledger, name) == DatasetState(name, 1, SHARE, None, KEY, ((1, name.encode()),))
        assert len(told) > 4
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (contents,) = connection.execute("SELECT count(*) FROM dipriv_fingerprints").fetchone()
        assert contents == len(names)
    connection.close()
