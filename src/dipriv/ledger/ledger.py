"""The ledger: privacy budgets per data set, a record of every release, and keys that must never change."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, insert, select, update

from dipriv._base.decimals import exact
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv.errors import InputError, LedgerError
from dipriv.guarantee.guarantee import Guarantee, check_epsilon
from dipriv.ledger import queries
from dipriv.ledger.database import Database, create_database, open_database
from dipriv.ledger.recognition import add_content
from dipriv.ledger.request import DatasetState, ReleaseRequest
from dipriv.ledger.tables import CONTENTS, DATASETS, LEDGER, RELEASES, now
from dipriv.ledger.values import (
    Dataset,
    Record,
    Reservation,
    State,
    check_name,
    check_unit,
    overspent,
    overspent_delta,
)


class Ledger:
    """Data sets, their privacy budgets and their releases, in a SQLite file or a PostgreSQL database.

    Each method is one transaction. Several threads and processes, including forked ones, may use a ledger at once.

    Examples
    --------
    >>> import tempfile
    >>> from dipriv.guarantee import ReferenceFacts, ReferenceSource
    >>> guarantee = Guarantee(0.5, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known distribution"))
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder) / "ledger.db") as ledger:
    ...     dataset = ledger.set_budget("people", 0.75)
    ...     release = ledger.reserve("people", 0.5, guarantee, output="people.csv")
    ...     ledger.commit(release, rows=1000)
    ...     ledger.dataset("people").left
    0.25
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str | Path | None = None) -> Ledger:
        """Open a ledger that exists: a mistyped path would be a new budget.

        Parameters
        ----------
        url : a path, `sqlite:///budget.db` or `postgresql://user:password@host/database`. The default is the value of
            the environment variable DIPRIV_LEDGER, or else a file in the user's data folder, which is created.

        Returns
        -------
        The ledger. A file is readable for its owner only, because it holds secret keys.

        Raises
        ------
        LedgerError : the database does not exist or cannot be opened, is not a ledger, or has another version.
        MissingDependencyError : the PostgreSQL driver is not installed.
        """
        return cls(open_database(url))

    @classmethod
    def create(cls, url: str | Path | None = None) -> Ledger:
        """Create a ledger.

        Parameters
        ----------
        url : as for `open`; a PostgreSQL database must exist and have no ledger.

        Returns
        -------
        The new ledger.

        Raises
        ------
        LedgerError : there is a ledger already, or it cannot be created.
        MissingDependencyError : the PostgreSQL driver is not installed.
        """
        return cls(create_database(url))

    @property
    def url(self) -> str:
        """The location of the ledger, without its password."""
        return self._database.place

    def fingerprint_key(self) -> bytes:
        """The secret key of content fingerprints; it never changes.

        Raises
        ------
        LedgerError : the database failed.
        """
        with self._database.reading() as connection:
            return bytes(connection.execute(select(LEDGER.c.fingerprint_key)).scalar_one())

    def preview(
        self,
        *,
        names: Sequence[str],
        table: TableFingerprint,
        suggestion: str | None,
        is_new: bool = False,
        fitted: TableFingerprint | None = None,
    ) -> DatasetState:
        """The state of the data set that a table belongs to; nothing is stored.

        Parameters
        ----------
        names : that of its data set, and those of others that count it, too. A table that is not known then means that
            the data set has changed.
        table : the table's fingerprint; it identifies the data set if no name is given.
        suggestion : the name for a table that resembles no other, used only if no content is stored under it, and it
            is not similar to a known one.
        is_new : affirms that the table describes other people than the data sets that it resembles and that are not
            named.
        fitted : a table of which that was affirmed; it holds for its parts.

        Returns
        -------
        The state; empty except for the name if the data set is new. `also` names the other data sets that count the
        table.

        Raises
        ------
        BudgetError : the table belongs to another data set and would get a second budget; or it resembles a data set
            that is not named, or content is stored under the suggested name, so that only the user knows whether it
            describes the same people.
        InputError : the table is not known, and there is neither a name nor a suggestion.
        LedgerError : the name is unknown and similar to a known one, so that it may be mistyped, or the database
            failed.
        """
        with self._database.reading() as connection:
            option = self._database.option
            found = queries.resolve_names(connection, names, is_new, table, suggestion, option, fitted)
            return replace(queries.dataset_state(connection, found.name), also=found.also)

    def sizes(self) -> frozenset[int]:
        """The numbers of rows of all known tables, to recognize a table that begins with one of them.

        Raises
        ------
        LedgerError : the database failed.
        """
        with self._database.reading() as connection:
            return frozenset(connection.execute(select(CONTENTS.c.rows).distinct()).scalars())

    def split_key(self, name: str) -> bytes:
        """The secret key of the data set's `dipriv.Split`, fixed together with its hold-out.

        Of a data set that a version before 0.2 released, the split is one with `as_written=True`.

        Parameters
        ----------
        name : of the data set.

        Returns
        -------
        The key.

        Raises
        ------
        LedgerError : the data set is unknown, or the database failed.
        """
        with self._database.reading() as connection:
            stored = queries.stored_dataset(connection, name, self._database.option)
            key = select(DATASETS.c.split_key).where(DATASETS.c.id == stored.id)
            return bytes(connection.execute(key).scalar_one())

    def reserve(
        self, release: ReleaseRequest | str, epsilon: float, guarantee: Guarantee, output: str | None = None
    ) -> Reservation:
        """Spend ε, and the δ of the guarantee, before any output exists, in one transaction.

        Sums are exact in the decimal numbers that ε, δ and budget are written as: ten times 0.1 is 1.

        Parameters
        ----------
        release : the request of a table, which is registered if it is new, and whose hold-out is fixed; or the name of
            a known data set.
        epsilon : the ε to reserve, at least that of the guarantee.
        guarantee : stored with the release; its δ is reserved.
        output : path or name of the output; only its last part is stored.

        Returns
        -------
        What identifies the release, and its number among those of the data set. A table of several data sets, as a
        pooled one is, is counted in each of them (`also`).

        Raises
        ------
        BudgetError : more ε or δ is requested than is left; the table belongs to another data set or resembles one; or
            earlier releases protect another privacy unit, or took it from another column.
        DisclosureError : the hold-out or the earlier rows of the table differ from those of an earlier release, so that
            held-out rows could be released, or protected rows be held out.
        InputError : ε is outside its limits, or below that of the guarantee.
        LedgerError : the data set is unknown, or its new name is similar to a known one, or the database failed.
        """
        epsilon = _checked(epsilon, guarantee)
        if not isinstance(release, ReleaseRequest):
            with self._database.writing() as connection:
                return self._spend(connection, release, epsilon, guarantee, output)
        with self._registering() as connection:
            table, named, option = release.table, (release.name, *release.also), self._database.option
            names = queries.resolve_names(connection, named, release.is_new, table, None, option)
            name, also = names
            known = queries.dataset_state(connection, name)
            release.check(known)
            for other in also:
                release.check_also(queries.dataset_state(connection, other))
            unit = release.column(guarantee.unit.column or release.by)
            digest = None if unit is None else unit.digest
            for each in (name, *also):
                queries.check_unit_column(connection, each, table, unit)
            if release.keys_digest is not None and unit is not None:
                queries.check_held_persons(connection, name, table, unit, release.keys_digest)
            if release.is_new:
                queries.affirm(connection, names, table)
            dataset, *_ = [_register(connection, each, table) for each in (name, *also)]
            if release.split_key is not None and known.holdout is None:
                split = {"split_key": release.split_key, "holdout": release.holdout, "split_by": json.dumps(release.by)}
                split["splits_by_cells"] = 1
                connection.execute(update(DATASETS).where(DATASETS.c.id == dataset).values(**split))
            of_keys = {"unit_digest": digest, "keys_digest": release.keys_digest}
            first, *more = [
                self._spend(connection, each, epsilon, guarantee, output, of_keys) for each in (name, *also)
            ]
            return replace(first, also=tuple(more))

    def add_table(
        self, release: Reservation, table: TableFingerprint, fitted: TableFingerprint | None = None
    ) -> Reservation:
        """Register further rows of a reserved release, some of which may have left.

        If they are those of other data sets, too, the ε and δ of the release are spent there as well, even beyond the
        budget: what has left cannot be refused any more. There it is no release of the data set's own: its privacy unit
        and its rows may be others, and later releases need not agree with them.

        Parameters
        ----------
        release : as `reserve` or this method gave it.
        table : the fingerprint of all rows so far.
        fitted : that of the table which the release was reserved for. What was affirmed of it holds for its parts.

        Returns
        -------
        The reservation, with the data sets that were added.

        Raises
        ------
        LedgerError : the release is unknown, or the database failed.
        """
        with self._registering() as connection:
            counted = [release.dataset, *(one.dataset for one in release.also)]
            found = queries.others_of(connection, counted, table, fitted)
            more = [self._repeat(connection, release, other.dataset) for other in found]
            whole = replace(release, also=(*release.also, *more))
            is_own = all(one.is_own for one in whole.also)  # else it has rows of several data sets
            for one in (whole, *whole.also):
                _register(connection, one.dataset, table, is_own=is_own)
        return whole

    def commit(self, release: Reservation, rows: int) -> None:
        """Record that the output of a reserved release is written, and its number of rows.

        Parameters
        ----------
        release : as `reserve` gave it.
        rows : how many rows were written.

        Raises
        ------
        InputError : `rows` is below 0.
        LedgerError : the release is unknown or not reserved any more, or the database failed.
        """
        rows = operator.index(rows)
        if rows < 0:
            raise InputError(f"rows={rows} is below 0.", "Give the number of rows that were written.")
        self._finish(release, "done", rows)

    def fail(self, release: Reservation) -> None:
        """Record that a reserved release failed. Its ε stays spent, because parts of its output may have been seen.

        Parameters
        ----------
        release : as `reserve` gave it.

        Raises
        ------
        LedgerError : the release is unknown or not reserved any more, or the database failed.
        """
        self._finish(release, "failed", None)

    def set_budget(self, name: str, epsilon: float, delta: float | None = None, *, is_new: bool = False) -> Dataset:
        """Set the total privacy budget of a data set; a new name is registered.

        A budget below what is spent is allowed; nothing is left then.

        Parameters
        ----------
        name : of the data set.
        epsilon : the total ε that all its releases may spend.
        delta : the total δ that they may spend, from 0 to 1; None leaves that limit as it is, 1e-6 at first.
        is_new : registers a name that is similar to a known one, too.

        Returns
        -------
        The data set with its new budget.

        Raises
        ------
        InputError : the name cannot be used, or ε or δ is outside its limits.
        LedgerError : the name is unknown and similar to a known one, so that it may be mistyped, or the database
            failed.
        """
        budget = {"budget": check_epsilon(epsilon)} | ({} if delta is None else {"delta_budget": _probability(delta)})
        name = check_name(name)
        with self._registering() as connection:
            if not is_new:
                queries.check_spelling(connection, name, "is_new=True", "--new")
            dataset = queries.find_or_register(connection, name)
            connection.execute(update(DATASETS).where(DATASETS.c.id == dataset).values(**budget))
            return queries.stored_dataset(connection, name, self._database.option).dataset

    def datasets(self) -> list[Dataset]:
        """All data sets, by name.

        Raises
        ------
        LedgerError : the database failed.
        """
        with self._database.reading() as connection:
            datasets = [stored.dataset for stored in queries.stored_datasets(connection)]
        return sorted(datasets, key=operator.attrgetter("name"))

    def dataset(self, name: str) -> Dataset:
        """One data set, with its budget and what is spent.

        Parameters
        ----------
        name : of the data set.

        Returns
        -------
        The data set.

        Raises
        ------
        LedgerError : the data set is unknown, or the database failed.
        """
        with self._database.reading() as connection:
            return queries.stored_dataset(connection, name, self._database.option).dataset

    def records(self, name: str) -> list[Record]:
        """The releases of a data set, oldest first.

        Parameters
        ----------
        name : of the data set.

        Returns
        -------
        A record for each release.

        Raises
        ------
        LedgerError : the data set is unknown, or the database failed.
        """
        with self._database.reading() as connection:
            stored = queries.stored_dataset(connection, name, self._database.option)
            releases = select(RELEASES).where(RELEASES.c.dataset == stored.id).order_by(RELEASES.c.number)
            rows = connection.execute(releases).mappings()
            return [queries.record(stored.dataset.name, number, row) for number, row in enumerate(rows, start=1)]

    def close(self) -> None:
        """Close the database. Nothing is held between transactions, so nothing can be lost."""
        self._database.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self  # one database, however often an estimator is cloned

    def __reduce__(self) -> Any:
        raise TypeError("a ledger is not pickled: pass where it is, a path or a URL")

    def __repr__(self) -> str:
        return f"Ledger({self.url!r})"

    def _spend(
        self,
        connection: Connection,
        name: str,
        epsilon: float,
        guarantee: Guarantee,
        output: str | None,
        of_keys: Mapping[str, bytes | None] | None = None,
    ) -> Reservation:
        option = self._database.option
        stored = queries.locked_dataset(connection, name, option)
        dataset = stored.dataset
        check_unit(dataset.name, guarantee.unit, stored.guarantees)
        if stored.spent + exact(epsilon) > exact(dataset.budget):
            raise overspent(dataset, epsilon, option)
        if stored.delta_spent + exact(guarantee.delta) > exact(dataset.delta_budget):
            raise overspent_delta(dataset, guarantee.delta, option)
        release = insert(RELEASES).values(
            dataset=stored.id,
            epsilon=epsilon,
            delta=guarantee.delta,
            state="reserved",
            started=now(),
            guarantee=json.dumps(guarantee.to_dict()),
            output=_file_name(output),
            **(of_keys or {}),
        )
        return Reservation(queries.add(connection, release), dataset.releases + 1, dataset.name)

    def _repeat(self, connection: Connection, release: Reservation, other: str) -> Reservation:
        """Spend what a release spent in another data set, too, even beyond its budget."""
        spent = connection.execute(select(RELEASES).where(RELEASES.c.number == release.id)).mappings().one_or_none()
        if spent is None:
            raise _not_reserved(release, None)
        stored = queries.locked_dataset(connection, other, self._database.option)
        values = {name: value for name, value in spent.items() if name != RELEASES.c.number.name}
        values |= {"dataset": stored.id, "is_own": 0, "unit_digest": None, "keys_digest": None}
        number = queries.add(connection, insert(RELEASES).values(**values))
        return Reservation(number, stored.dataset.releases + 1, other, is_own=False)

    @contextmanager
    def _registering(self) -> Iterator[Connection]:
        with self._database.writing() as connection:
            queries.lock_names(connection)
            yield connection

    def _finish(self, release: Reservation, state: State, rows: int | None) -> None:
        with self._database.writing() as connection:
            for one in (release, *release.also):
                this = RELEASES.c.number == one.id
                reserved = update(RELEASES).where(this, RELEASES.c.state == "reserved")
                if connection.execute(reserved.values(state=state, finished=now(), rows=rows)).rowcount != 1:
                    raise _not_reserved(one, connection.execute(select(RELEASES.c.state).where(this)).scalar())


def _register(connection: Connection, name: str, table: TableFingerprint, *, is_own: bool = True) -> int:
    """The primary key of the data set of this name; registers name and content if new. Needs `lock_names`."""
    dataset = queries.find_or_register(connection, name)
    add_content(connection, dataset, table, is_own=is_own)
    return dataset


def _not_reserved(release: Reservation, state: str | None) -> LedgerError:
    return LedgerError(
        f"release {release.number} is not in the ledger."
        if state is None
        else f"release {release.number} is already {state}.",
        "Give a release that is reserved.",
    )


def _checked(epsilon: float, guarantee: Guarantee) -> float:
    epsilon = check_epsilon(epsilon)
    if not guarantee.epsilon <= epsilon:
        raise InputError(
            f"ε = {epsilon!r} is to be reserved, less than the ε = {guarantee.epsilon!r} of the guarantee.",
            "Reserve at least the ε of the guarantee.",
        )
    return epsilon


def _probability(delta: object) -> float:
    value = float(delta) if isinstance(delta, (int, float)) and not isinstance(delta, bool) else -1.0
    if not 0 <= value <= 1:
        raise InputError(
            "delta is not a number from 0 to 1.", "Use a small number such as 1e-8, or 0 for pure releases alone."
        )
    return value


def _file_name(output: str | None) -> str | None:
    """The last part of a path, in characters that every database can store."""
    if output is None:
        return None
    return re.split(r"[/\\]", output)[-1].encode("utf-8", "replace").decode().replace("\0", "?")
