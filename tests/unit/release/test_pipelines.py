"""DIP inside scikit-learn: what is unprotected is said, and each fit of a search is counted, or said not to be."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dipriv import DIP, BudgetError, Ledger, PrivacyWarning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 2)), RNG.integers(0, 2, 300)
EPSILONS, FOLDS = (0.5, 1.0), 3


def said(dip: DIP, y: np.ndarray | None) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_pipeline(dip, StandardScaler()).fit(X, y)
    return [str(one.message) for one in caught if one.category is PrivacyWarning]


def search(dip: DIP) -> GridSearchCV:
    """A search over ε whose model needs no time."""
    steps = Pipeline([("dip", dip), ("model", DummyClassifier())])
    return GridSearchCV(steps, {"dip__epsilon": EPSILONS}, cv=FOLDS, error_score="raise")


def test_an_unprotected_target_is_said_once_for_each_fit() -> None:
    (warning,) = said(DIP(1.0), Y)
    assert warning.startswith("y is not protected")
    assert "No ledger counts this" in warning
    assert said(DIP(1.0), None) == []  # control: there is no target
    with pytest.warns(PrivacyWarning, match="y is not protected"):
        DIP(1.0).fit_transform(X, Y)


def test_a_search_without_a_ledger_says_that_nothing_counts() -> None:
    with pytest.warns(PrivacyWarning, match="a search over parameters or folds fits many times"):
        search(DIP()).fit(X, Y)
    with pytest.warns(PrivacyWarning, match="No ledger counts this"):
        cross_val_score(make_pipeline(DIP(1.0), DummyClassifier()), X, Y, cv=FOLDS)


@pytest.mark.parametrize("is_open", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_search_with_a_ledger_counts_every_fit(tmp_path: Path, is_open: bool) -> None:
    """Each candidate is fitted on each fold and the best one on all rows; rows of the other fold are released, too."""
    place = tmp_path / "ledger.db"
    with Ledger.create(place) as ledger, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = search(DIP(ledger=ledger if is_open else str(place), dataset="people")).fit(X, Y)
    messages = [str(one.message) for one in caught if one.category is PrivacyWarning]
    assert messages
    assert not any("No ledger" in message for message in messages)
    with Ledger.open(place) as ledger:
        account = ledger.dataset("people")
    fits = FOLDS * sum(EPSILONS) + found.best_params_["dip__epsilon"]
    assert account.spent > fits
    assert (
        account.releases == 2 * FOLDS * len(EPSILONS) + 1
    )  # a fit, and a score, which spends the ε of the rows' noise


def test_a_search_stops_at_the_budget(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with Ledger.create(place) as ledger:
        ledger.set_budget("people", 2.0)
    with pytest.raises(BudgetError):
        search(DIP(ledger=str(place), dataset="people")).fit(X, Y)
    with Ledger.open(place) as ledger:
        assert ledger.dataset("people").spent <= 2.0
