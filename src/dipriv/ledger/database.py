"""The ledger's database: where it is, its transactions, and its faults in plain words without a password."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from dipriv.errors import DiprivError, LedgerError
from dipriv.ledger.tables import LONGEST_ENTRY, damaged, is_initialised, set_up

VARIABLE = "DIPRIV_LEDGER"
PATIENCE = 30.0
"""How many seconds to wait for other processes."""

_ANSWER_WITHIN = 10  # seconds, for a server to take the connection
_SET_UP_LOCK = 0x6469707269  # any number that other programs do not use for an advisory lock
_PRINTED_OPTIONS = ("host", "port", "sslmode")
_NEW_FILE = threading.Lock()


@dataclass(frozen=True)
class Database:
    """An engine without open connections, so that threads and forked processes may share it.

    A transaction starts with the statement `to_read`, `to_write` or `to_set_up`; `place` may be printed.
    """

    place: str
    engine: Engine = field(repr=False)
    to_read: str = field(repr=False)
    to_write: str = field(repr=False)
    to_set_up: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False, default=())

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that changes nothing."""
        return self._begin(self.to_read)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that is on disk when it ends; an exception takes all of it back."""
        return self._begin(self.to_write)

    def initialising(self) -> AbstractContextManager[Connection]:
        """A transaction that makes the tables, alone."""
        return self._begin(self.to_set_up)

    @contextmanager
    def _begin(self, first: str) -> Iterator[Connection]:
        try:
            with self.engine.begin() as connection:
                connection.exec_driver_sql(first)
                yield connection
        except SQLAlchemyError as error:
            raise _explained(error, self) from None
        except DiprivError:
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError):  # of reading what is stored
            raise damaged(self.place) from None


def open_database(url: str | Path | None) -> Database:
    """The database at a path or URL, by default the one of the environment or of the user, set up if it is new."""
    where = _locate(url)
    database = _sqlite(where) if isinstance(where, Path) else _postgresql(where)
    if isinstance(where, Path):
        _make_file(where, database.place)
    with database.reading() as connection:
        ready = is_initialised(connection, database.place)
    if isinstance(where, Path):
        _hide_file(where, database.place)
    if not ready:
        with database.initialising() as connection:
            if not is_initialised(connection, database.place):  # nobody else did in the meantime
                set_up(connection)
    return database


def _locate(url: str | Path | None) -> Path | URL:
    if url is None:
        url = os.environ.get(VARIABLE) or _home()
    if isinstance(url, Path) or "://" not in url:
        if not str(url) or re.match(r"(sqlite|postgres)\w*(\+\w+)?:", str(url)):
            raise _not_a_place()
        return _absolute(Path(url))
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _not_a_place() from None
    family = parsed.drivername.partition("+")[0]
    if family == "sqlite" and parsed.database not in (None, "", ":memory:") and not (parsed.query or parsed.host):
        return _absolute(Path(str(parsed.database)))
    if parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise _not_a_place()
    if "@" in f"{parsed.host}{parsed.database}{parsed.query}":  # the rest of a password that has this sign in it
        raise LedgerError("the ledger's URL has a second @.", "In user name and password, write %40 for @, %2F for /.")
    return parsed.set(drivername="postgresql+psycopg")


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:  # the folder of a user that does not exist
        raise _not_a_place() from None


def _home() -> Path:
    import platformdirs

    return platformdirs.user_data_path("dipriv", appauthor=False) / "ledger.db"


def _not_a_place() -> LedgerError:
    return LedgerError(
        "the ledger's URL is neither a file nor a PostgreSQL database.",
        "Use a path, sqlite:///budget.db, or postgresql://user:password@host/database.",
    )


def _sqlite(path: Path) -> Database:
    def connect() -> sqlite3.Connection:
        link = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ENTRY)
            link.execute("PRAGMA trusted_schema = OFF")  # what the file itself says may run no function of ours
            link.execute("PRAGMA cell_size_check = ON")
            link.execute("PRAGMA synchronous = EXTRA")  # what is committed outlives a power cut
            link.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            link.close()
            raise
        return link

    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    return Database(f"sqlite:///{path}", engine, "BEGIN", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE")


def _postgresql(url: URL) -> Database:
    printed = {name: url.query[name] for name in _PRINTED_OPTIONS if name in url.query}
    place = url.set(drivername="postgresql", query=printed).render_as_string(hide_password=True)
    wait = {} if "connect_timeout" in url.query else {"connect_timeout": _ANSWER_WITHIN}
    try:
        engine = create_engine(
            url,
            connect_args=wait | {"prepare_threshold": None},
            poolclass=NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",  # so that what is read after a lock is got is what is true by then
        )
    except ModuleNotFoundError:
        raise LedgerError("the driver for PostgreSQL is missing.", 'Run: pip install "dipriv[postgres]".') from None
    digits = "set_config('extra_float_digits', '3', true)"  # floats come back as they went in
    to_write = (
        f"SELECT {digits}, set_config('lock_timeout', '{round(PATIENCE * 1000)}ms', true), "
        "set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)"
    )
    to_set_up = f"{to_write}, pg_advisory_xact_lock({_SET_UP_LOCK})"
    options_with_secrets = [values for name, values in url.normalized_query.items() if "password" in name]
    secrets = tuple(filter(None, (url.password, *chain(*options_with_secrets))))
    return Database(place, engine, f"SELECT {digits}", to_write, to_set_up, secrets)


def _make_file(path: Path, place: str) -> None:
    """An empty file that only its owner may read, in a folder likewise, unless they exist.

    An existing file is never opened here: a process that closes a file loses SQLite's locks on it (POSIX), even
    those that another thread relies on.
    """
    try:
        for folder in reversed([path.parent, *path.parent.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        with _NEW_FILE:
            if not path.exists():
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass  # another process made it just now
    except OSError as error:
        raise LedgerError(
            f"the ledger {place} cannot be made: {error.strerror or 'the system refuses'}.",
            "Choose a folder that you may write to, with --ledger or in the variable " + VARIABLE + ".",
        ) from None


def _hide_file(path: Path, place: str) -> None:
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError:
        raise LedgerError(
            f"others may read the secret keys in {place}, and it is not yours to close.",
            "Let its owner run: chmod 600 on that file.",
        ) from None


def _explained(error: SQLAlchemyError, database: Database) -> LedgerError:
    """What went wrong, by the database's own code for it; never the statement or its values."""
    fault = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(fault, "sqlite_errorname", None) or getattr(fault, "sqlstate", None) or "unknown"
    place, reason = f"the ledger {database.place}", _reason(fault, database.secrets)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "55P03")):
        return LedgerError(
            f"{place} is locked: another process has held it for {PATIENCE:g} seconds.",
            "Wait until the other one has ended, and try again.",
        )
    if code.startswith(("SQLITE_NOTADB", "SQLITE_ERROR", "42P01", "42703")):
        return LedgerError(
            f"{database.place} is not a dipriv ledger: {reason}.", "Give the ledger's own file or URL, or a new one."
        )
    if code.startswith("SQLITE_CORRUPT"):
        return LedgerError(f"{place} is damaged: {reason}.", "Restore it from a backup, and release nothing before.")
    if code.startswith("SQLITE_CANTOPEN"):
        return LedgerError(f"{place} cannot be opened.", "Check that it is a file, and that you may read and write it.")
    if code.startswith("28"):
        return LedgerError(f"{place} refuses you: {reason}.", "Check the user name and the password in its URL.")
    if type(fault).__module__.startswith("psycopg") and code == "unknown":
        return LedgerError(f"{place} cannot be reached: {reason}.", "Check its URL, the network and the server.")
    return LedgerError(f"{place} failed: {reason}.", "What was reserved stays spent; put it right and try again.")


def _reason(fault: BaseException | None, secrets: tuple[str, ...]) -> str:
    primary = getattr(getattr(fault, "diag", None), "message_primary", None)  # without PostgreSQL's details of values
    text = " ".join(str(primary or fault or "no reason was given").split())
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:300].rstrip(".")
