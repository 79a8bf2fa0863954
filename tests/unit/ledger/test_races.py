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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dipriv.errors import BudgetError
from dipriv.ledger import DatasetState, Ledger
from tests.unit.ledger.contents import order
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
        assert [record.id for record in ledger.records("people")] == numbers
        assert {record.state for record in ledger.records("people")} == {"reserved"}
        account = ledger.dataset("people")
        assert account.releases == 5
        assert account.spent <= BUDGET < account.spent + EPSILON


@pytest.mark.parametrize(
    "task", ["spend_anew", *(pytest.param(task, marks=pytest.mark.slow) for task in ("spend_forked", "enter_anew"))]
)
def test_twenty_processes_cannot_overspend(task: str, url: str) -> None:
    with Ledger.create(url) as ledger:
        ledger.set_budget("people", BUDGET)
    check_five_of_twenty(url, race(task, url))


@pytest.mark.slow
def test_a_server_set_to_old_snapshots_cannot_be_overspent_either(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    name = url.partition("@/")[2].partition("?")[0]
    postgres_server.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with Ledger.create(url) as ledger:
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
    Ledger.create(url).close()
    told = race("enter_after_one_look", url)
    (number,) = (answer for answer in told if isinstance(answer, int))
    late = [answer for answer in told if answer != number]
    assert len(late) == PROCESSES - 1
    assert all("registered by another release in the meantime" in answer for answer in late), told
    with Ledger.open(url) as ledger:
        assert [record.id for record in ledger.records("people")] == [number]


CLIENTS, MANY_RELEASES = 50, 400


@pytest.mark.slow
def test_fifty_clients_some_killed_and_a_restarted_server(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a client was told is lost, nothing is spent twice or beyond the budget."""
    url, budget = postgres_server.new_database(), EPSILON * MANY_RELEASES
    with Ledger.create(url) as ledger:
        ledger.set_budget("people", budget)
    monkeypatch.setenv("RACERS_FOLDER", str(tmp_path))

    def client() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command("spend_until_stopped", url), cwd=ROOT, stderr=subprocess.DEVNULL)

    clients, moments = [client() for _ in range(CLIENTS)], random.Random(17)
    waited_until(lambda: len(list(tmp_path.glob("*.log"))) >= CLIENTS // 2)
    for victim in moments.sample(clients, 15):
        time.sleep(moments.uniform(0, 0.1))
        victim.kill()
    postgres_server.restart()
    for victim in moments.sample(clients, 10):
        victim.kill()
    waited_until(lambda: any(b"refused" in log.read_bytes() for log in tmp_path.glob("*.log")))
    (tmp_path / "stop").touch()
    for process in clients:
        process.wait(60)
    lines = [line.split() for log in tmp_path.glob("*.log") for line in log.read_bytes().splitlines()]
    reserved, done = ({int(n) for state, n in lines if state == told} for told in (b"reserved", b"done"))
    assert len(reserved) == sum(state == b"reserved" for state, _ in lines)  # no release is two clients'
    with Ledger.open(url) as ledger:
        records, account = ledger.records("people"), ledger.dataset("people")
    states = {record.id: record.state for record in records}
    assert reserved <= {*states}
    assert {states[release] for release in done} == {"done"}
    untold = {*states} - reserved
    assert len(untold) <= 25 + CLIENTS  # a killed client, and each one at the restart, may miss an answer
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert len(records) == MANY_RELEASES  # to the last bit of the budget, and not beyond
    assert account.spent == pytest.approx(budget)
    assert account.spent <= budget


def waited_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    outcomes: list[bool] = []
    with Ledger.create(tmp_path / "ledger.db") as ledger:
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
    with Ledger.create(path) as ledger:
        ledger.set_budget("people", BUDGET)
        with ledger._database.writing():
            path.chmod(0o644)
            Ledger.open(path).close()
            tried = subprocess.run(outside, capture_output=True, text=True, check=False)
            assert "database is locked" in tried.stderr
            path.open("rb").close()  # the control: this is how the locks would be lost
            assert subprocess.run(outside, capture_output=True, check=False).returncode == 0


def look(ledger: Ledger, name: str) -> DatasetState:
    return ledger.preview(names=(), table=held_out(name).table, suggestion=None)


def test_killed_between_enter_and_commit_it_stays_entered(url: str) -> None:
    with Ledger.create(url) as ledger:
        ledger.set_budget("people", BUDGET)
        with subprocess.Popen(command("enter_and_wait", url), cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        (record,) = ledger.records("people")
        assert (record.id, record.state, record.epsilon, record.finished) == (number, "reserved", EPSILON, None)
        assert ledger.dataset("people").spent == EPSILON
        known = DatasetState("people", 1, SHARE, None, KEY, ((1, order(b"people")),), protects_rows=True)
        assert look(ledger, "people") == known
        assert ledger.reserve(held_out("people"), EPSILON, PROMISE).id > number


@pytest.mark.slow
def test_killed_at_any_moment_all_of_a_release_is_entered_or_nothing(tmp_path: Path) -> None:
    path, told, moments = tmp_path / "ledger.db", set[int](), random.Random(5)
    with Ledger.create(path) as ledger:
        for killed in range(1, 5):
            with subprocess.Popen(command("enter_on_and_on", str(path)), cwd=ROOT, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                first = process.stdout.readline()
                time.sleep(moments.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
                told |= {int(line) for line in (first + process.stdout.read()).splitlines()}
            names = [found.name for found in ledger.datasets()]
            numbers = [record.id for name in names for record in ledger.records(name)]
            assert told <= set(numbers)
            assert 0 <= len(numbers) - len(told) <= killed  # spent, but not yet told
            for name in names:
                contents = ((1, order(name.encode())),)
                assert look(ledger, name) == DatasetState(name, 1, SHARE, None, KEY, contents, protects_rows=True)
        assert len(told) > 4
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (contents,) = connection.execute("SELECT count(*) FROM dipriv_contents").fetchone()
        assert contents == len(names)
    connection.close()
