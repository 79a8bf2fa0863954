"""A real PostgreSQL server for tests: in a folder of its own, reached by a socket, stopped at the end."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

PASSWORD = "zq7-marker-xv"  # the text that `refused` looks for in messages
_NUMBERS = count(1)


class NoServerError(Exception):
    """Why there is no server here."""


@dataclass
class Server:
    folder: Path
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes]

    def restart(self) -> None:
        """End at once, in the middle of transactions, and start again: the database recovers from its log."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)
        self.process = self.start()
        _ready(self)

    def url(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql://keeper:{password}@/{database}?host={self.folder}"

    def run(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"ledger{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)


@contextmanager
def server() -> Iterator[Server]:
    """PostgreSQL refuses to run as root; root starts it as another user that every system has."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="dipriv-pg-", dir="/tmp"))  # short: a socket's path has few characters
    account = _account()
    try:
        (folder / "password").write_text(PASSWORD)
        for path in (folder, folder / "password"):
            os.chown(path, account.get("user", -1), account.get("group", -1))
        access = ("--auth=scram-sha-256", f"--pwfile={folder / 'password'}")
        made = subprocess.run(
            [f"{binaries}/initdb", "-D", f"{folder}/data", "-U", "keeper", "-E", "UTF8", "--no-sync", *access],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **account,
        )
        if made.returncode:
            raise NoServerError(f"initdb failed: {made.stderr.strip()[-300:]}")
        settings = ("listen_addresses=", "fsync=off", "max_connections=80", f"unix_socket_directories={folder}")
        options = [word for setting in settings for word in ("-c", setting)]

        def start() -> subprocess.Popen[bytes]:
            with (folder / "log").open("ab") as log:
                return subprocess.Popen(
                    [f"{binaries}/postgres", "-D", f"{folder}/data", *options],
                    cwd=folder,
                    stdout=log,
                    stderr=log,
                    **account,
                )

        started = Server(folder, start, start())
        try:
            yield _ready(started)
        finally:
            started.process.send_signal(signal.SIGINT)
            started.process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """The folder of PostgreSQL's programs: from the wheel `pgserver`, else from the system."""
    wheel = importlib.util.find_spec("pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        return folder
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    raise NoServerError("there is no PostgreSQL here: pip install pgserver")


def _account() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServerError("root needs a user `postgres` or `nobody` to run PostgreSQL as")


def _ready(started: Server) -> Server:
    import psycopg

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and started.process.poll() is None:
        try:
            started.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return started
    raise NoServerError(f"PostgreSQL did not start: {(started.folder / 'log').read_text()[-300:]}")
