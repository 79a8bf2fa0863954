"""The ledger's database: its location, its transactions, and error messages without passwords."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from shlex import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from dipriv.errors import DiprivError, LedgerError, MissingDependencyError
from dipriv.ledger.migration import migrate
from dipriv.ledger.tables import MAX_VALUE_BYTES, VERSION, damaged, initialise, stored_version

VARIABLE = "DIPRIV_LEDGER"
LOCK_TIMEOUT = 30.0
"""Seconds to wait for a lock that another process holds."""

_CONNECT_TIMEOUT = 10
"""Seconds to wait for a server to accept the connection."""
_INITIALISE_LOCK = 0x6469707269
"""Key of PostgreSQL's advisory lock; an arbitrary number that other programs are unlikely to use."""
_PRINTED_OPTIONS = ("host", "port", "sslmode")
_NEW_FILE = threading.Lock()


@dataclass(frozen=True)
class Database:
    """An engine without open connections, so that threads and forked processes may share it.

    A transaction starts with the statement `to_read`, `to_write` or `to_initialise`. `place` may be printed.
    """

    place: str
    option: str
    """What a command needs behind it to use this ledger: nothing, or --ledger and where it is."""
    engine: Engine = field(repr=False)
    to_read: str = field(repr=False)
    to_write: str = field(repr=False)
    to_initialise: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False, default=())

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that changes nothing."""
        return self._begin(self.to_read)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that is on disk when it ends; an exception rolls it back."""
        return self._begin(self.to_write)

    def initialising(self) -> AbstractContextManager[Connection]:
        """A transaction that creates or changes the tables, while no other process does."""
        return self._begin(self.to_initialise)

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
        except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError):  # from parsing stored values
            raise damaged(self.place) from None


def open_database(url: str | Path | None) -> Database:
    """The database at a path or URL; the default is that of the environment or the user.

    The user's own is initialised where there is none yet; one of an older version is brought up to date.
    """
    where = _locate(url)
    if url is None and not os.environ.get(VARIABLE):
        return _prepared(where, url, create=True)
    if isinstance(where, Path) and not where.exists():
        raise _no_ledger(f"sqlite:///{where}", url)
    return _prepared(where, url, create=False)


def create_database(url: str | Path | None) -> Database:
    """A new database; refuses one that is a ledger already."""
    where = _locate(url)
    if isinstance(where, Path) and where.exists() and where.stat().st_size:
        _prepared(where, url, create=False)  # says what is wrong with it, if it is no ledger
        raise _is_ledger(f"sqlite:///{where}")
    return _prepared(where, url, create=True, must_be_new=True)


def _prepared(where: Path | URL, url: str | Path | None, *, create: bool, must_be_new: bool = False) -> Database:
    option = _option(where, url)
    database = _sqlite(where, option) if isinstance(where, Path) else _postgresql(where, option)
    if isinstance(where, Path) and create:
        _make_file(where, database.place)
    with database.reading() as connection:
        version = stored_version(connection, database.place)
    if isinstance(where, Path):
        _hide_file(where, database.place)
    if version is None and not create:
        raise _no_ledger(database.place, url)
    if version != VERSION or must_be_new:
        with database.initialising() as connection:
            version = stored_version(connection, database.place)  # another process may have done it in the meantime
            if version is not None and must_be_new:
                raise _is_ledger(database.place)
            if version is None:
                initialise(connection)
            elif version < VERSION:
                migrate(connection, version)
    return database


def names_in_file(url: str | Path | None) -> list[str]:
    """The names of the data sets of a ledger in a file, which is left as it is; none of one in a database."""
    where = _locate(url)
    if not isinstance(where, Path):
        return []
    with closing(sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True, timeout=0.5)) as link:
        return [name for (name,) in link.execute("SELECT name FROM dipriv_datasets ORDER BY name")]


def _option(where: Path | URL, url: str | Path | None) -> str:
    if url is None or str(url) == os.environ.get(VARIABLE):
        return ""
    return f" --ledger {quote(str(where))}" if isinstance(where, Path) else " --ledger URL"


def _no_ledger(place: str, url: str | Path | None) -> LedgerError:
    named = f" (from the variable {VARIABLE})" if url is None or str(url) == os.environ.get(VARIABLE) else ""
    return LedgerError(
        f"there is no ledger at {place}{named}.",
        "Correct the place, or create a ledger there, which starts with nothing spent: Ledger.create(place).",
        command="Correct the place, or create a ledger there, which starts with nothing spent: dipriv ledger create "
        "PLACE.",
    )


def _is_ledger(place: str) -> LedgerError:
    return LedgerError(f"{place} is a ledger already.", "Use it as it is, or choose another place for a new one.")


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
    if "@" in f"{parsed.host}{parsed.database}{parsed.query}":  # the rest of a password with an unescaped @
        raise LedgerError("the ledger's URL has a second @.", "In user name and password, write %40 for @, %2F for /.")
    return parsed.set(drivername="postgresql+psycopg")


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:  # the home folder of an unknown user
        raise _not_a_place() from None


def _home() -> Path:
    import platformdirs

    return platformdirs.user_data_path("dipriv", appauthor=False) / "ledger.db"


def _not_a_place() -> LedgerError:
    return LedgerError(
        "the ledger's URL is neither a file nor a PostgreSQL database.",
        "Use a path, sqlite:///budget.db, or postgresql://user:password@host/database.",
    )


def _sqlite(path: Path, option: str) -> Database:
    def connect() -> sqlite3.Connection:
        link = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            link.execute("PRAGMA trusted_schema = OFF")  # the file's schema may not call application functions
            link.execute("PRAGMA cell_size_check = ON")
            link.execute("PRAGMA synchronous = EXTRA")  # commits survive a power cut
            link.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            link.close()
            raise
        return link

    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    return Database(f"sqlite:///{path}", option, engine, "BEGIN", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE")


def _postgresql(url: URL, option: str) -> Database:
    printed = {name: url.query[name] for name in _PRINTED_OPTIONS if name in url.query}
    place = url.set(drivername="postgresql", query=printed).render_as_string(hide_password=True)
    wait = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_TIMEOUT}
    try:
        engine = create_engine(
            url,
            connect_args=wait | {"prepare_threshold": None},
            poolclass=NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",  # a read after a lock sees what was committed before
        )
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "the driver for PostgreSQL is not installed.", 'Run: pip install "dipriv[postgres]".'
        ) from None
    digits = "set_config('extra_float_digits', '3', true)"  # floats are returned without loss
    to_write = (
        f"SELECT {digits}, set_config('lock_timeout', '{round(LOCK_TIMEOUT * 1000)}ms', true), "
        "set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)"
    )
    to_initialise = f"{to_write}, pg_advisory_xact_lock({_INITIALISE_LOCK})"
    options_with_secrets = [values for name, values in url.normalized_query.items() if "password" in name]
    secrets = tuple(filter(None, (url.password, *chain(*options_with_secrets))))
    return Database(place, option, engine, f"SELECT {digits}", to_write, to_initialise, secrets)


def _make_file(path: Path, place: str) -> None:
    """Create an empty file, and its folders, readable for the owner only, unless they exist.

    An existing file is never opened here: by POSIX rules a process that closes a file loses SQLite's locks on it, even
    those of other threads.
    """
    try:
        for folder in reversed([path.parent, *path.parent.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        with _NEW_FILE:
            if not path.exists():
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass  # another process created it in the meantime
    except OSError as error:
        raise LedgerError(
            f"the ledger {place} cannot be created: {error.strerror or 'the system refuses'}.",
            f"Choose a folder that you may write to, with ledger=... or in the variable {VARIABLE}.",
            command=f"Choose a folder that you may write to, with --ledger or in the variable {VARIABLE}.",
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
    """The error for a database's error code; it never shows the statement or its values."""
    fault = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(fault, "sqlite_errorname", None) or getattr(fault, "sqlstate", None) or "unknown"
    place, reason = f"the ledger {database.place}", _reason(fault, database.secrets)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "55P03")):
        return LedgerError(
            f"{place} is locked: another process has held it for {LOCK_TIMEOUT:g} seconds.",
            "Wait until the other one has ended, and try again.",
        )
    if code.startswith(("SQLITE_NOTADB", "SQLITE_ERROR", "42P01", "42703")):
        return LedgerError(f"{database.place} is not a dipriv ledger: {reason}.", "Give the ledger's own file or URL.")
    if code.startswith("SQLITE_CORRUPT"):
        return LedgerError(f"{place} is damaged: {reason}.", "Restore it from a backup, and release nothing before.")
    if code.startswith("SQLITE_CANTOPEN"):
        return LedgerError(f"{place} cannot be opened.", "Check that it is a file, and that you may read and write it.")
    if code.startswith("28"):
        return LedgerError(f"{place} refuses you: {reason}.", "Check the user name and the password in its URL.")
    if type(fault).__module__.startswith("psycopg") and code == "unknown":
        return LedgerError(f"{place} cannot be reached: {reason}.", "Check its URL, the network and the server.")
    return LedgerError(f"{place} failed: {reason}.", "Reserved ε stays spent. Repair the database, and try again.")


def _reason(fault: BaseException | None, secrets: tuple[str, ...]) -> str:
    primary = getattr(
        getattr(fault, "diag", None), "message_primary", None
    )  # without PostgreSQL's detail, which shows values
    text = " ".join(str(primary or fault or "no reason was given").split())
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:300].rstrip(".")
