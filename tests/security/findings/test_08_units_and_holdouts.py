"""Finding 8: the ε of rows and of persons were added up, and an attacker's power was stated for exposed hold-outs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv.cli import app
from dipriv.errors import BudgetError
from dipriv.ledger import Ledger

N = 400
RNG = np.random.default_rng(8)
VISITS = pd.DataFrame({"who": np.arange(N) // 100, "age": RNG.integers(18, 90, N), "pay": RNG.normal(size=N)})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.db") as opened:
        yield opened


def privatize(ledger: Ledger, dataset: str, **options: Any) -> None:
    dipriv.privatize(VISITS, 1.0, columns=["age", "pay"], ledger=ledger, dataset=dataset, **options)


@pytest.mark.parametrize("first", ["who", None])
def test_rows_and_persons_do_not_mix(first: str | None, ledger: Ledger) -> None:
    """For a person of 100 rows the release of rows alone is 100 ε."""
    person: dict[str, Any] = {"unit": "who"}
    before, after = (person, {}) if first else ({}, person)
    privatize(ledger, "visits", **before)
    with pytest.raises(BudgetError, match="do not add up") as caught:
        privatize(ledger, "visits", **after)
    assert ("--unit who" if first else "without --unit") in caught.value.command
    assert (ledger.dataset("visits").spent, ledger.dataset("visits").releases) == (1.0, 1)
    privatize(ledger, "visits", **before)  # control: the same unit adds up
    found = ledger.dataset("visits")
    assert found.spent == 2.0
    assert found.power() == pytest.approx(0.05 * np.exp(2), rel=1e-6)


def test_no_power_is_stated_where_rows_are_exposed(ledger: Ledger, tmp_path: Path) -> None:
    privatize(ledger, "exposed", reference="holdout")
    assert ledger.dataset("exposed").power() is None
    others = pd.DataFrame({"x": RNG.normal(size=200), "y": RNG.normal(size=200)})
    dipriv.privatize(others, 1.0, ledger=ledger, dataset="protected", holdout=0.3)  # a private reference protects them
    assert ledger.dataset("protected").power() is not None
    listing = CliRunner().invoke(app, ["ledger", "--ledger", str(tmp_path / "ledger.db")]).stdout
    lines = {line.split()[0]: line for line in listing.splitlines() if line.strip()}
    assert "not bounded" in lines["exposed"]
    assert "%" not in lines["exposed"]
    assert "%" in lines["protected"]
    for name, stated in (("exposed", False), ("protected", True)):
        shown = CliRunner().invoke(app, ["ledger", "show", name, "--ledger", str(tmp_path / "ledger.db")]).stdout
        assert ("has power at most" in shown) == stated
        assert ("no formal protection" in shown) != stated
