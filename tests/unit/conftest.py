"""Fixtures of several unit tests: a PostgreSQL server, and a new ledger on each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with ExitStack() as stack:
        try:
            started = stack.enter_context(postgres.server())
        except (postgres.NoServerError, ImportError, OSError) as reason:
            pytest.skip(f"no PostgreSQL for this test: {reason}")
        yield started


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may be, on each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    started: postgres.Server = request.getfixturevalue("postgres_server")
    return started.new_database()
