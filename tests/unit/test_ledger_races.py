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

from dipriv.ledger import BudgetError, Ledger
from tests.unit.postgres import Server
from tests.unit.racers import BUDGET, EPSILON, PROCESSES, PROMISE

ROOT = Path(__file__).parents[2]


def command(task: str, url: str) -> list[str]:
    return [sys.executable, "-m", "tests.unit.racers", task, url if "://" in url else f"sqlite:///{url}"]


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


@pytest.mark.parametrize("task", ["spend_anew", "spend_forked"])
def test_twenty_processes_cannot_overspend(task: str, url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
    check_five_of_twenty(url, race(task, url))


def test_a_server_set_to_old_snapshots_cannot_be_overspent_either(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    name = url.partition("@/")[2].partition("?")[0]
    postgres_server.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
    check_five_of_twenty(url, race("spend_forked", url))


def test_twenty_processes_make_one_ledger_and_one_data_set(url: str) -> None:
    told = race("register", url)
    assert sorted(entry[1] for entry in told) == ["other"] + ["refused"] * (PROCESSES - 1)
    names, _, split_keys, fingerprint_keys, shares, columns = (set(part) for part in zip(*told, strict=True))
    assert len(names) == len(split_keys) == len(fingerprint_keys) == len(shares) == 1, told
    assert columns == {None}


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


def test_killed_between_reserve_and_commit_it_stays_spent(url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.set_budget("people", BUDGET)
        with subprocess.Popen(command("reserve_and_wait", url), cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        (record,) = ledger.records("people")
        assert (record.number, record.state, record.epsilon, record.finished) == (number, "reserved", EPSILON, None)
        assert ledger.dataset("people").spent == EPSILON
        assert ledger.reserve("people", EPSILON, PROMISE) > number


def test_killed_at_any_moment_what_was_told_is_spent(tmp_path: Path) -> None:
    path, told, moments = tmp_path / "ledger.db", 0, random.Random(5)
    with Ledger.open(path) as ledger:
        ledger.set_budget("people", 1e6)
        for _ in range(4):
            before = ledger.dataset("people").releases
            with subprocess.Popen(command("reserve_on_and_on", str(path)), cwd=ROOT, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                first = process.stdout.readline()
                time.sleep(moments.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
                numbers = {int(line) for line in (first + process.stdout.read()).splitlines()}
            assert numbers <= {record.number for record in ledger.records("people")}
            assert 0 <= ledger.dataset("people").releases - before - len(numbers) <= 1  # spent, but not yet told
            told += len(numbers)
        assert told > 4
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
