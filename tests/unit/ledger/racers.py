"""Real processes that use one ledger at once: `python -m tests.unit.ledger.racers TASK URL`, one line of JSON out.

The processes are forked by a process with one thread and wait at a gate, so that they start together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from sqlalchemy import create_engine

from dipriv.errors import BudgetError, DiprivError, LedgerError
from dipriv.guarantee import Guarantee, ReferenceFacts, ReferenceSource
from dipriv.ledger import Ledger, ReleaseRequest
from tests.unit.ledger.contents import content

PROCESSES = 20
EPSILON = 0.3  # five of them are the budget below, and no more
BUDGET = 1.5
PROMISE = Guarantee(EPSILON, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
SHARE = 0.25
KEY = bytes(range(32))


def together(task: Callable[[int], object]) -> list[object]:
    """What `task` gives in each of the processes."""
    gate_out, gate_in = os.pipe()
    answers = []
    children = []
    for number in range(PROCESSES):
        answer_out, answer_in = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate_in)
            os.read(gate_out, 1)  # until the gate is closed
            try:
                answer = task(number)
            except BudgetError:
                answer = "refused"
            except DiprivError as error:
                answer = str(error)
            os.write(answer_in, json.dumps(answer).encode())
            os._exit(0)
        os.close(answer_in)
        answers.append(answer_out)
        children.append(child)
    os.close(gate_in)
    told = []
    for answer_out, child in zip(answers, children, strict=True):
        with os.fdopen(answer_out) as pipe:
            told.append(json.loads(pipe.read() or '"died"'))
        os.waitpid(child, 0)
    return told


def spend_anew(url: str) -> list[object]:
    """Each process opens the ledger."""

    def task(_: int) -> object:
        with Ledger.open(url) as ledger:
            return ledger.reserve("people", EPSILON, PROMISE).id

    return together(task)


def spend_forked(url: str) -> list[object]:
    """All processes use the ledger that was opened, and used, before they were forked."""
    with Ledger.open(url) as ledger:
        ledger.dataset("people")
        return together(lambda _: ledger.reserve("people", EPSILON, PROMISE).id)


def enter_anew(url: str) -> list[object]:
    """Each process opens the ledger and enters the same table."""

    def task(_: int) -> object:
        with Ledger.open(url) as ledger:
            return ledger.reserve(ReleaseRequest("people", content(b"same")), EPSILON, PROMISE).id

    return together(task)


def opened(url: str) -> Ledger:
    """The ledger, made by the process that comes first."""
    try:
        return Ledger.create(url)
    except LedgerError:
        return Ledger.open(url)


def register(url: str) -> list[object]:
    """Each process opens the ledger, made by the first of them, and releases two tables that have no name.

    One is a table that all have, the other one of its own.

    The first is in a file of one of two names, the others are in files of one name. Each process would hold out another
    share; whoever is refused asks once more.
    """
    from dipriv.release.accounting import LedgerSession

    def enter(ledger: Ledger, word: bytes, suggestion: str, share: float) -> LedgerSession:
        known = ledger.preview(names=(), table=content(word), suggestion=suggestion)
        session = LedgerSession(ledger, known, ReleaseRequest(known.name, content(word)))
        session.split(None, None, default=share)
        ledger.reserve(session.request, EPSILON, PROMISE)
        return session

    def task(number: int) -> object:
        same, own = (b"same", f"people{number % 2}"), (b"own %d" % number, "other")
        share = (number + 1) / 32
        with opened(url) as ledger:
            try:
                entered = enter(ledger, *same, share)
            except DiprivError:
                entered = enter(ledger, *same, share)
            try:
                apart = enter(ledger, *own, share).name
            except DiprivError:
                apart = "refused"
            return [
                entered.name,
                apart,
                ledger.split_key(entered.name).hex(),
                ledger.fingerprint_key().hex(),
                entered.request.holdout,
                entered.request.by,
            ]

    return together(task)


def enter_after_one_look(url: str) -> list[object]:
    """All processes know what the ledger knew before any of them entered; each brings a split of its own."""
    from dipriv.release.accounting import LedgerSession

    with Ledger.open(url) as ledger:
        known = ledger.preview(names=("people",), table=content(b"same"), suggestion=None)

        def task(_: int) -> object:
            session = LedgerSession(ledger, known, ReleaseRequest("people", content(b"same")))
            session.split(None, None, default=SHARE)
            return ledger.reserve(session.request, EPSILON, PROMISE).id

        return together(task)


def spend_until_stopped(url: str) -> None:
    """One client: reserves and commits until the file `stop` beside it exists, and writes down what it was told."""
    folder, number = os.environ["RACERS_FOLDER"], os.getpid()
    request = ReleaseRequest("people", content(b"same"))
    with open(f"{folder}/{number}.log", "ab", buffering=0) as log, Ledger.open(url) as ledger:
        while not os.path.exists(f"{folder}/stop"):
            try:
                release = ledger.reserve(request, EPSILON, PROMISE)
                log.write(b"reserved %d\n" % release.id)
                ledger.commit(release, rows=number)
                log.write(b"done %d\n" % release.id)
            except BudgetError:
                log.write(b"refused 0\n")
                return
            except LedgerError:  # the database is being restarted
                time.sleep(0.05)


def enter_and_wait(url: str) -> None:
    """One process that enters a table and then does not go on."""
    with Ledger.open(url) as ledger:
        print(ledger.reserve(held_out("people"), EPSILON, PROMISE).id, flush=True)
        time.sleep(600)


def enter_on_and_on(url: str) -> None:
    """One process that enters new tables without end and tells each number once it has it."""
    with Ledger.open(url) as ledger:
        while True:
            os.write(1, b"%d\n" % ledger.reserve(held_out(os.urandom(8).hex()), EPSILON, PROMISE).id)


def held_out(name: str) -> ReleaseRequest:
    """The first release of a table, whose content is its name, with a hold-out."""
    return ReleaseRequest(name, content(name.encode()), holdout=SHARE, split_key=KEY)


if __name__ == "__main__":
    task, url = sys.argv[1:]
    create_engine(url.replace("postgresql:", "postgresql+psycopg:"))  # loads the driver once, not in each process
    print(json.dumps(globals()[task](url)))
