"""Schema files that somebody crafted are refused soon and in little memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import dipriv
from dipriv.errors import InputError, SchemaError
from tests.security.support import little

SCHEMAS: list[tuple[str, str, str]] = [
    ("json", "[" * 100_000, "nested too deeply"),
    ("json", '{"a": {"kind": ' + "[" * 500 + "]" * 500 + "}}", "no known kind"),
    ("json", "[]", "got list"),
    ("json", "3", "got int"),
    ("json", '{"a": []}', "no known kind"),
    ("json", '{"a": {"kind": "continuous", "lower": 1' + "0" * 400 + "}}", "very long number"),
    ("json", '{"a": {"kind": "continuous", "lower": 1' + "0" * 5000 + "}}", "cannot be read"),
    ("json", '{"a": {"kind": "continuous", "lower": 1e999}}', "not a finite number"),
    ("json", '{"a": {"kind": "continuous", "lower": [1]}}', "not a finite number"),
    ("json", '{"a": {"kind": "discrete", "levels": [1' + "0" * 30 + "]}}", "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "levels": [[1]]}}', "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "levels": {"a": 1}}}', "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "step": 1' + "0" * 400 + "}}", "very long number"),
    ("json", '{"a": {"kind": "categorical", "levels": ["\\ud800"]}}', "cannot be used here"),
    ("json", '{"\\ud800": {"kind": "continuous"}}', "column name"),
    ("json", '{"a": {"kind": "mixed", "unit": -1}}', "not a positive number"),
    ("json", '{"a": {"kind": "mixed", "unit": 1e308}}', "not a positive number"),
    ("json", '{"a": {"kind": "mixed", "unit": "x"}}', "not a positive number"),
    ("json", '{"a": {"kind": "datetime", "resolution": ["day"]}}', "unknown"),
    ("json", "\ufeff{}", "cannot be read"),
    ("toml", "a = " + "[" * 5000, "nested too deeply"),
    ("toml", "a" + ".a" * 200_000 + " = 1", "many parts"),
    ("toml", "x = {a" + ".a" * 200_000 + " = 1}", "many parts"),
    ("toml", '["a".' + "'b' . " * 50 + "c]", "many parts"),
    ("toml", "[a]\nkind = 'continuous'\nlower = 0x" + "f" * 10_000, "very long number"),
    ("toml", "[a]\nkind = 'discrete'\nlevels = [0x" + "f" * 10_000 + "]", "cannot be used here"),
    ("toml", "[a]\nkind = 'discrete'\nlevels = [1979-05-27]", "cannot be used here"),
    ("toml", "a = 1", "no known kind"),
]


@pytest.mark.parametrize(("ending", "text", "told"), SCHEMAS, ids=range(len(SCHEMAS)))
def test_schemas_that_are_none(ending: str, text: str, told: str, tmp_path: Path) -> None:
    place = tmp_path / f"schema.{ending}"
    place.write_text(text, encoding="utf-8")
    with little(), pytest.raises(SchemaError) as caught:
        dipriv.Schema.load(place)
    assert told in caught.value.fault
    assert len(caught.value.fault) < 400


def test_a_schema_of_many_labels_with_dots_is_read() -> None:
    """The control: dots in quoted names, in labels and in numbers are no keys of many parts."""
    levels = ", ".join(f'"{".".join("abcdefg")} {i}.{i}.{i}"' for i in range(200))
    numbers = ", ".join(f"{i}.25" for i in range(200))
    text = f'["a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p"]\nkind = "categorical"\nlevels = [{levels}]\n'
    text += f'[b]\nkind = "discrete"\nlevels = [{numbers}]\n'
    assert len(dipriv.Schema.from_toml(text)) == 2


def test_a_schema_file_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is not a file"):
        dipriv.Schema.load(tmp_path)
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="not in UTF-8"):
        dipriv.Schema.load(tmp_path / "s.toml")
    monkeypatch.setattr("dipriv.schema.MAX_FILE", 1)
    with pytest.raises(SchemaError, match="more than 1 bytes"):
        dipriv.Schema.load(tmp_path / "s.toml")
