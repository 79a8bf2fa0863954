"""Finding 8: the ε of rows and of persons were added up, and an attacker's power was stated for exposed hold-outs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv.cli import app
from dipriv.errors import BudgetError, PrivacyWarning
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


def test_rows_are_not_released_after_persons(ledger: Ledger) -> None:
    """For a person of 100 rows the release of rows alone is 100 ε."""
    privatize(ledger, "visits", unit="who")
    with pytest.raises(BudgetError, match="do not add up") as caught:
        privatize(ledger, "visits")
    assert "--unit who" in caught.value.command
    assert (ledger.dataset("visits").spent, ledger.dataset("visits").releases) == (1.0, 1)
    privatize(ledger, "visits", unit="who")  # control: the same unit adds up
    found = ledger.dataset("visits")
    assert found.spent == 2.0
    assert found.power() == pytest.approx(0.05 * np.exp(2), rel=1e-6)


def test_persons_after_rows_are_counted_for_a_row(ledger: Ledger, tmp_path: Path) -> None:
    """What protects a person protects each of their rows; of a person, the ledger states nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        privatize(ledger, "visits")
    with pytest.warns(PrivacyWarning, match="together protect one row"):
        privatize(ledger, "visits", unit="who")
    found = ledger.dataset("visits")
    assert found.spent == 2.0
    assert found.power() == pytest.approx(0.05 * np.exp(2), rel=1e-6)
    shown = CliRunner().invoke(app, ["ledger", "show", "visits", "--ledger", str(tmp_path / "ledger.db")]).stdout
    assert "After 2 releases the best test of one row's true value" in shown
    assert "together they protect a row" in shown
    assert "all rows of a person" not in shown


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
