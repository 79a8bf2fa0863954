"""Private rows that break rules: the keeper is told, and nothing that is released depends on it."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv.cli import app
from dipriv.errors import RuleWarning
from tests.unit.rules.tables import broken, rows, schema

TABLE = rows(600)
FILES = ("", ".dipriv.json", ".sheet.json", ".sheet.html")


def told(table: Any, folder: Path, **options: Any) -> tuple[list[str], list[bytes]]:
    """What the keeper is told, and the bytes of everything that is released."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        release = dipriv.privatize(table, 4.0, schema=schema(), seed=1, **options)
        release.write(folder / "out.csv", force=True)
    said = [str(one.message) for one in found if one.category is RuleWarning]
    shown = [repr(release), str(release), release.summary(), release._repr_html_(), str(release.guarantee)]
    return said, [*((folder / f"out.csv{end}").read_bytes() for end in FILES), *(text.encode() for text in shown)]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"holdout": 0.4}, {"reference": "holdout"}], ids=str)
def test_rows_are_released_as_rules_have_them_and_the_warning_goes_to_the_keeper(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """A table that breaks rules gives what the same table gives after each row was put right by hand."""
    some = np.arange(600) % 7 == 0
    wrong = TABLE.copy()
    wrong.loc[some, "gross"] += 1000
    wrong.loc[some, "rate"] = -1.0
    wrong.loc[some, "class"] = "neither"
    wrong.loc[some, "high"] = wrong.loc[some, "low"] - 5
    wrong.loc[some, "end"] = wrong.loc[some, "start"] - pd.Timedelta(days=3)
    right = wrong.assign(
        gross=TABLE["gross"],
        rate=TABLE["rate"],
        high=wrong["high"].clip(lower=wrong["low"]),
        end=wrong["end"].where(wrong["end"] >= wrong["start"], wrong["start"]),
    )
    right["class"] = TABLE["class"]
    assert sum(broken(wrong).values()) > 300 > sum(broken(right).values()) == 0
    warned, of_wrong = told(wrong, tmp_path, **options)
    silent, of_right = told(right, tmp_path, **options)
    assert len(warned) == 5
    assert not silent
    assert of_wrong == of_right
    assert of_right != told(TABLE, tmp_path, **options)[1]  # control: other rows give another release


def test_labels_that_break_rules_are_in_no_type_and_no_file(tmp_path: Path) -> None:
    labels = ["class", "state", "married"]
    table = TABLE.astype(dict.fromkeys(labels, object))
    for number, name in enumerate(labels):
        table.loc[number, name] = f"SECRET {name}"
    categories = table.astype(dict.fromkeys(labels, "category"))
    for given in (table, categories, pa.Table.from_pandas(categories, preserve_index=False)):
        assert b"SECRET" in pickle.dumps(given)  # control
        with pytest.warns(RuleWarning) as found:
            release: Any = dipriv.privatize(given, 4.0, schema=schema(), seed=1)
        assert not any("SECRET" in str(one.message) for one in found)
        release.write(tmp_path / "out.parquet", force=True)
        files = [(tmp_path / f"out.parquet{end}").read_bytes() for end in FILES]
        assert not any(b"SECRET" in content for content in (*files, pickle.dumps(release), pickle.dumps(release.data)))


def test_the_command_line_tells_on_standard_error_alone(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text('rules = ["gross = regular + overtime"]\n')
    names = ["gross", "regular", "overtime", "age"]
    found = []
    for table in (TABLE, TABLE.assign(gross=TABLE["gross"] + np.where(np.arange(600) < 137, 5.0, 0.0))):
        table[names].to_csv(tmp_path / "in.csv", index=False)
        files = ["in.csv", "-o", "out.csv", "--epsilon", "4", "--schema", "schema.toml", "--force", "--no-ledger"]
        paths = [str(tmp_path / part) if "." in part else part for part in files]
        result = CliRunner().invoke(app, ["privatize", *paths, "--seed", "1"])
        assert result.exit_code == 0, result.output
        released = [(tmp_path / f"out.csv{end}").read_bytes() for end in FILES]
        found.append((result.stdout, result.stderr, released))
    assert "137 of 600 private rows break the rule" in found[1][1]
    assert "Private: " in found[1][1]
    assert "private rows break" not in found[0][1]  # control
    assert found[0][0] == found[1][0]
    assert found[0][2] == found[1][2]
