"""Finding 22: a mistyped name, a pooled table, a stream of other rows and lost columns met the wrong budget."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv.errors import LedgerError
from dipriv.ledger import Ledger
from tests.security.findings.test_03_second_budget import empty

__all__ = ["empty"]  # a fixture


def people(n: int, seed: int) -> pd.DataFrame:
    """Rows that mostly differ."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(18, 90, n), "pay": rng.lognormal(10, 1, n).round(2)})


def test_a_mistyped_name_has_no_budget_of_its_own(empty: Ledger) -> None:
    empty.set_budget("people", 1.0)
    with pytest.raises(LedgerError, match=r"(?s)did you mean 'people'.*new_dataset='poeple'"):
        dipriv.privatize(people(200, 1), 5.0, ledger=empty, dataset="poeple")
    assert [dataset.name for dataset in empty.datasets()] == ["people"]
    release = dipriv.privatize(people(200, 1), 5.0, ledger=empty, new_dataset="poeple")
    assert release.dataset == "poeple"
