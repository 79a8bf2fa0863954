"""Mistyped names: all at once, with what was meant, and never a cell."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dipriv
from dipriv._base.near_names import did_you_mean, listed, near_names, unknown_columns
from dipriv.schema import Continuous
from tests.unit.refusal import SECRET, refused

FRAME = pd.DataFrame({"age": range(50), "Affairs": [0, 1] * 25, "city": [SECRET, "b"] * 25})


def test_near_names_do_not_mind_capitals_and_know_what_is_far() -> None:
    assert near_names("AFAIRS", FRAME.columns) == ["Affairs"]
    assert near_names("AFAIRS", FRAME.columns, cutoff=0.99) == []
    assert near_names("zzz", FRAME.columns) == []
    assert near_names(3, FRAME.columns) == []
    assert did_you_mean("zzz", FRAME.columns) == ""
    assert listed([f"x{i}" for i in range(40)]).endswith("'x11' and 28 more")


def test_columns_that_are_known_are_no_fault() -> None:
    assert unknown_columns([("drop", ["age"]), ("keep", [])], list(FRAME.columns)) is None


def test_all_unknown_columns_of_all_options_are_named_at_once() -> None:
    told = refused(
        dipriv.errors.InputError,
        "drop names 'ages' (did you mean 'age'?), 'nobody'",
        "keep names 'citty' (did you mean 'city'?)",
        "unit names 'person'",
        "target names 'afairs' (did you mean 'Affairs'?)",
        "types names 'town'",
        "the schema names 'Aeg' (did you mean 'age'?), which are not columns of the table (3 columns)",
        "The columns are 'age', 'Affairs', 'city'.",
        call=lambda: dipriv.privatize(
            FRAME,
            1.0,
            drop=["ages", "nobody"],
            keep=["citty"],
            unit="person",
            target="afairs",
            types={"town": "text"},
            schema={"Aeg": Continuous()},
        ),
    )
    assert "Correct the names" in told.remedy


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"kernel": "optimum"}, "'optimal'"),
        ({"reference": "privat"}, "'private'"),
        ({"labels": "pubic"}, "'public'"),
        ({"types": {"city": "nummber"}}, "'number'"),
        ({"pairs": [("aeg", "city")]}, "'age'"),
    ],
)
def test_values_of_options_have_near_names(options: dict[str, object], meant: str) -> None:
    refused(
        dipriv.errors.InputError,
        f"did you mean {meant}?",
        call=lambda: dipriv.privatize(FRAME, 1.0, **options),  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('[age]\nkind = "contnuous"', "'continuous'"),
        ('[age]\nkind = "continuous"\nlowr = 3', "'lower'"),
        ('[file]\nseperator = ";"', "'separator'"),
    ],
)
def test_words_of_a_schema_have_near_names(text: str, meant: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    refused(dipriv.errors.SchemaError, f"did you mean {meant}?", call=lambda: dipriv.Schema.load(tmp_path / "s.toml"))
