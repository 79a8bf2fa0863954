"""Finding 4: `dataset=` without `ledger=` was not counted, and DIPRIV_LEDGER was not honoured by the library."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dipriv
from dipriv.errors import BudgetError, LedgerError
from dipriv.ledger import Ledger

FRAME = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})


@pytest.fixture(params=["variable", "home"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default ledger: that of the environment, or of the user."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    if request.param == "home":
        monkeypatch.delenv("DIPRIV_LEDGER", raising=False)
        return tmp_path / "share" / "dipriv" / "ledger.db"
    monkeypatch.setenv("DIPRIV_LEDGER", str(tmp_path / "ledger.db"))
    Ledger.create().close()
    return tmp_path / "ledger.db"


def test_a_named_data_set_is_counted_in_the_default_ledger(place: Path, tmp_path: Path) -> None:
    release = dipriv.privatize(FRAME, 1.0, dataset="people")
    assert release.dataset == "people"
    FRAME.to_csv(tmp_path / "in.csv", index=False)
    dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 0.5, dataset="people")
    dipriv.DIP(0.25, dataset="people").fit_transform(FRAME)
    with Ledger.open(place) as ledger:
        assert (ledger.dataset("people").spent, ledger.dataset("people").releases) == (1.75, 3)
        ledger.set_budget("people", 2.0)
    with pytest.raises(BudgetError):
        dipriv.privatize(FRAME, 5.0, dataset="people")
    dipriv.privatize(pd.DataFrame({"x": range(50)}), 1.0, new_dataset="others")
    with Ledger.open(place) as ledger:
        assert {found.name: found.spent for found in ledger.datasets()} == {"others": 1.0, "people": 1.75}


def test_a_mistyped_place_is_no_new_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_LEDGER", str(tmp_path / "leger.db"))
    with pytest.raises(LedgerError, match="there is no ledger at"):
        dipriv.privatize(FRAME, 1.0, dataset="people")
    with pytest.raises(LedgerError, match="there is no ledger at"):
        dipriv.privatize(FRAME, 1.0, ledger=tmp_path / "other.db", dataset="people")
    assert list(tmp_path.iterdir()) == []


def test_without_a_name_and_a_ledger_nothing_is_counted(place: Path) -> None:
    """Control: a library is used without a ledger, too."""
    assert dipriv.privatize(FRAME, 1.0).dataset is None
    assert not place.exists() or not Ledger.open(place).datasets()
