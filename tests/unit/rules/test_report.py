"""The report and the data sheet show the rules, and that they hold in every released row."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dipriv
from dipriv.errors import RuleWarning
from tests.unit.rules.tables import rows, schema

TABLE = rows(400)


@pytest.mark.slow
def test_the_report_counts_the_rows_that_break_rules(tmp_path: Path) -> None:
    noted = TABLE.assign(gross=TABLE["gross"] + np.where(np.arange(400) < 137, 1.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        release: Any = dipriv.privatize(noted, 4.0, schema=schema(), seed=1)
    found = dipriv.compare(noted, release)
    assert [rule.text for rule in found.rules] == list(schema().rules.texts)
    assert [rule.broken for rule in found.rules] == [(137, 0), *[(0, 0)] * (len(found.rules) - 1)]
    assert "The rules of the schema hold in every released row." in str(found)
    found.write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "The rules of the schema hold in every released row." in page
    assert "gross = regular + overtime" in page
    without: Any = dipriv.privatize(TABLE, 4.0, seed=1).data
    broken = dipriv.compare(TABLE, without, schema=schema())
    assert broken.rules[0].broken[1] > 300  # control
    assert "Released rows break" in str(broken)
    assert "hold in every released row" not in str(broken)
    assert not dipriv.compare(TABLE, without).rules


def test_rules_of_another_table_are_not_counted() -> None:
    def texts(original: Any) -> set[str]:
        return {rule.text for rule in dipriv.compare(original, TABLE, schema=schema()).rules}

    assert "gross = regular + overtime" not in texts(TABLE.assign(gross=TABLE["gross"].astype(str)))
    assert "gross = regular + overtime" in texts(TABLE)  # control


def test_the_data_sheet_lists_the_rules_and_no_private_count(tmp_path: Path) -> None:
    noted = TABLE.assign(gross=TABLE["gross"] + np.where(np.arange(400) < 137, 1.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        dipriv.privatize(noted, 4.0, schema=schema(), seed=1).write(tmp_path / "out.csv")
    page = (tmp_path / "out.csv.sheet.html").read_text()
    assert "<h2>Rules</h2>" in page
    assert "They hold in every released row" in page
    assert "gross = regular + overtime" in page
    assert "private rows break" not in page
