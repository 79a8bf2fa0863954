"""Real processes that use one ledger at once: `python -m tests.unit.racers TASK URL`, one line of JSON out.

The processes are forked by a process with one thread and wait at a gate, so that they start together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from sqlalchemy import create_engine

from dipriv.errors import DiprivError, DisclosureError
from dipriv.guarantee import Guarantee
from dipriv.ledger import BudgetError, Ledger

PROCESSES = 20
EPSILON = 0.3  # five of them are the budget below, and no more
BUDGET = 1.5
PROMISE = Guarantee(epsilon=EPSILON, protects="every row", kernel="laplace", reference="known law")


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
            return ledger.reserve("people", EPSILON, PROMISE)

    return together(task)


def spend_forked(url: str) -> list[object]:
    """All processes use the ledger that was opened, and used, before they were forked."""
    with Ledger.open(url) as ledger:
        ledger.dataset("people")
        return together(lambda _: ledger.reserve("people", EPSILON, PROMISE))


def register(url: str) -> list[object]:
    """Each process makes the ledger and registers the same table under the same or another suggestion."""
    import dipriv.split  # noqa: F401 (once, not in each process)

    def task(number: int) -> object:
        with Ledger.open(url) as ledger:
            found = ledger.identify(name=None, fingerprint=b"same", suggestion=f"people{number % 2}")
            try:
                apart = ledger.identify(name=None, fingerprint=b"own %d" % number, suggestion="other").name
            except BudgetError:
                apart = "refused"
            try:
                share, by = ledger.holdout(found.name, (number + 1) / 32, None)
            except DisclosureError:
                share, by = ledger.holdout(found.name, None, None)
            return [
                found.name,
                apart,
                ledger.split_key(found.name).hex(),
                ledger.fingerprint_key().hex(),
                share,
                by,
            ]

    return together(task)


def reserve_and_wait(url: str) -> None:
    """One process that reserves and then does not go on."""
    with Ledger.open(url) as ledger:
        print(ledger.reserve("people", EPSILON, PROMISE), flush=True)
        time.sleep(600)


def reserve_on_and_on(url: str) -> None:
    """One process that reserves without end and tells each number once it has it."""
    with Ledger.open(url) as ledger:
        while True:
            os.write(1, b"%d\n" % ledger.reserve("people", EPSILON, PROMISE))


if __name__ == "__main__":
    task, url = sys.argv[1:]
    create_engine(url.replace("postgresql:", "postgresql+psycopg:"))  # loads the driver once, not in each process
    print(json.dumps(globals()[task](url)))
