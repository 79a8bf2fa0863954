"""The ledger itself: who has which budget, what was released, and the keys that must stay the same for ever."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from sqlalchemy import Connection, insert, select, update

from dipriv.errors import InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, check_epsilon
from dipriv.ledger import queries as accounts
from dipriv.ledger.database import Database, open_database
from dipriv.ledger.request import DatasetState, ReleaseRequest
from dipriv.ledger.tables import DATASETS, FINGERPRINTS, LEDGER, RELEASES, now
from dipriv.ledger.values import Dataset, Record, State, check_name, exact, overspent


class Ledger:
    """Data sets, their budgets and their releases.

    Each method is one transaction. Processes and threads, forked ones too, may use one ledger at once.

    >>> import tempfile
    >>> from dipriv.guarantee import ReferenceFacts, ReferenceSource
    >>> guarantee = Guarantee(0.5, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
    ...     account = ledger.set_budget("people", 0.75)
    ...     number = ledger.reserve("people", 0.5, guarantee, output="people.csv")
    ...     ledger.commit(number, rows=1000)
    ...     ledger.dataset("people").left
    0.25
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str | Path | None = None) -> Ledger:
        """The ledger at a path, `sqlite:///budget.db` or `postgresql://user:password@host/database`; made if new.

        By default it is where the environment variable DIPRIV_LEDGER says, else in the user's folder for data. A file
        is closed to all but its owner, for it holds secret keys.
        """
        return cls(open_database(url))

    @property
    def url(self) -> str:
        """Where the ledger is, without its password."""
        return self._database.place

    def fingerprint_key(self) -> bytes:
        """The secret key of content fingerprints: made with the ledger, the same for ever."""
        with self._database.reading() as connection:
            return bytes(connection.execute(select(LEDGER.c.fingerprint_key)).scalar_one())

    def preview(self, *, name: str | None, fingerprint: bytes, suggestion: str | None) -> DatasetState:
        """What is known of the data set that a table belongs to; nothing is entered.

        By name if one is given: rows that the name does not have yet were added to it. A table that belongs to another
        data set is refused, since the same table under two names would have two budgets. Without a name, by
        fingerprint. A fingerprint nobody has goes by `suggestion`; if that name has other content, it may be the same
        data set with rows added, or another one: that is refused, for only the keeper knows. A name that has no content
        yet, say because only its budget was set, is taken.
        """
        with self._database.reading() as connection:
            chosen = accounts.choose(connection, name, fingerprint, suggestion)
            return accounts.preview(connection, chosen)

    def enter(self, entry: ReleaseRequest, epsilon: float, guarantee: Guarantee, output: str | None = None) -> int:
        """Register a table if it is new, fix its hold-out, and spend ε: one transaction, or nothing at all.

        Refused when the table, its hold-out or its earlier rows are not what an earlier release had: rows that were
        held out could be released, or rows that were promised protection be held out.
        """
        epsilon = _checked(epsilon, guarantee)
        with self._registering() as connection:
            name = accounts.choose(connection, entry.name, entry.fingerprint, entry.name)
            found = accounts.preview(connection, name)
            entry.check(found)
            dataset = accounts.register(connection, name, entry.fingerprint, entry.rows)
            if entry.split_key is not None and found.holdout is None:
                fixed = {"split_key": entry.split_key, "holdout": entry.holdout, "split_by": json.dumps(entry.by)}
                connection.execute(update(DATASETS).where(DATASETS.c.id == dataset).values(**fixed))
            return self._spend(connection, name, epsilon, guarantee, output)

    def sizes(self) -> frozenset[int]:
        """How many rows the known tables have: where a table that grew from one of them may be recognized."""
        with self._database.reading() as connection:
            return frozenset(connection.execute(select(FINGERPRINTS.c.rows).distinct()).scalars())

    def split_key(self, name: str) -> bytes:
        """The secret key of the data set's `dipriv.Split`: fixed with its hold-out, the same for ever."""
        with self._database.reading() as connection:
            key = select(DATASETS.c.split_key).where(DATASETS.c.id == accounts.account(connection, name).id)
            return bytes(connection.execute(key).scalar_one())

    def reserve(self, name: str, epsilon: float, guarantee: Guarantee, output: str | None = None) -> int:
        """Spend ε, before any output exists; gives the release's number, or refuses with a BudgetError.

        The sum is exact, in the decimal numbers that ε and budget are written as: what is spent and asked may not
        exceed the budget by anything, and ten times 0.1 is 1.
        """
        epsilon = _checked(epsilon, guarantee)
        with self._database.writing() as connection:
            return self._spend(connection, name, epsilon, guarantee, output)

    def commit(self, number: int, rows: int) -> None:
        """The output of a reserved release is written, with so many rows."""
        rows = operator.index(rows)
        if rows < 0:
            raise InputError(f"rows={rows} is below 0.", "Give the number of rows that were written.")
        self._finish(number, "done", rows)

    def fail(self, number: int) -> None:
        """A reserved release did not succeed; its ε stays spent, for some of its output may have been seen."""
        self._finish(number, "failed", None)

    def set_budget(self, name: str, epsilon: float) -> Dataset:
        """Set the limit of all releases of a data set together; a new name is registered.

        A limit below what is spent is allowed, and takes nothing back: nothing is left then.
        """
        name, epsilon = check_name(name), check_epsilon(epsilon)
        with self._registering() as connection:
            dataset = accounts.find_or_register(connection, name)
            connection.execute(update(DATASETS).where(DATASETS.c.id == dataset).values(budget=epsilon))
            return accounts.account(connection, name).dataset

    def datasets(self) -> list[Dataset]:
        """All data sets, by name."""
        with self._database.reading() as connection:
            found = [account.dataset for account in accounts.accounts(connection)]
        return sorted(found, key=operator.attrgetter("name"))

    def dataset(self, name: str) -> Dataset:
        """One data set, which must be known."""
        with self._database.reading() as connection:
            return accounts.account(connection, name).dataset

    def records(self, name: str) -> list[Record]:
        """The releases of a data set, oldest first."""
        with self._database.reading() as connection:
            account = accounts.account(connection, name)
            ours = select(RELEASES).where(RELEASES.c.dataset == account.id).order_by(RELEASES.c.number)
            return [accounts.record(account.dataset.name, row) for row in connection.execute(ours).mappings()]

    def close(self) -> None:
        """Let go of the database; nothing is held between transactions, so this never loses anything."""
        self._database.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.url!r})"

    def _spend(
        self, connection: Connection, name: str, epsilon: float, guarantee: Guarantee, output: str | None
    ) -> int:
        account = accounts.locked_account(connection, name)
        budget = account.dataset.budget
        if budget is not None and account.spent + exact(epsilon) > exact(budget):
            raise overspent(account.dataset, epsilon)
        entry = insert(RELEASES).values(
            dataset=account.id,
            epsilon=epsilon,
            state="reserved",
            started=now(),
            guarantee=json.dumps(guarantee.to_dict()),
            output=_file_name(output),
        )
        return accounts.add(connection, entry)

    @contextmanager
    def _registering(self) -> Iterator[Connection]:
        with self._database.writing() as connection:
            accounts.lock_names(connection)
            yield connection

    def _finish(self, number: int, state: State, rows: int | None) -> None:
        this = RELEASES.c.number == operator.index(number)
        with self._database.writing() as connection:
            entry = update(RELEASES).where(this, RELEASES.c.state == "reserved")
            if connection.execute(entry.values(state=state, finished=now(), rows=rows)).rowcount == 1:
                return
            was = connection.execute(select(RELEASES.c.state).where(this)).scalar()
        raise LedgerError(
            f"release {number} is not in the ledger." if was is None else f"release {number} is already {was}.",
            "Give the number of a release that is reserved.",
        )


def _checked(epsilon: float, guarantee: Guarantee) -> float:
    epsilon = check_epsilon(epsilon)
    if not guarantee.epsilon <= epsilon:
        raise InputError(
            f"the guarantee says ε = {guarantee.epsilon!r}, but ε = {epsilon!r} is to be reserved.",
            "Reserve at least the ε of the guarantee.",
        )
    return epsilon


def _file_name(output: str | None) -> str | None:
    """The last part of a path, in characters that every database takes."""
    if output is None:
        return None
    return re.split(r"[/\\]", output)[-1].encode("utf-8", "replace").decode().replace("\0", "?")
