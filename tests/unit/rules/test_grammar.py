"""Rules are parsed by hand, all their problems are reported at once, and schemas keep them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dipriv
from dipriv import Schema, SchemaError
from dipriv._rules import Formula, Implication, Name, Number, Operation, Order, Test, parse
from dipriv._rules.grammar import MAX_TERMS, RuleSyntaxError


def implication(one: Test, other: Test) -> Implication:
    return Implication(one, other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b + c", Formula("a", Operation("+", Name("b"), Name("c")))),
        ("rate=pay/hours", Formula("rate", Operation("/", Name("pay"), Name("hours")))),
        (
            "x = a - b * (2 + c)",
            Formula("x", Operation("-", Name("a"), Operation("*", Name("b"), Operation("+", Number(2), Name("c"))))),
        ),
        ("x = -a", Formula("x", Operation("-", Number(0), Name("a")))),
        ("start <= end", Order("start", "end")),
        ("start < end", Order("start", "end", strict=True)),
        ("end > start", Order("start", "end", strict=True)),
        ("end >= start", Order("start", "end")),
        ('"net pay" <= "gross ""pay"""', Order("net pay", 'gross "pay"')),
        ("größe <= länge_2", Order("größe", "länge_2")),
        ("age < 15 => income is missing", implication(Test("age", "<", (15,)), Test("income", "missing"))),
        ("age <= 14.5 => m = 'it''s'", implication(Test("age", "<=", (14.5,)), Test("m", "=", ("it's",)))),
        ("a = 'x' => b in ('y', 2, true)", implication(Test("a", "=", ("x",)), Test("b", "in", ("y", 2, True)))),
        ("a not in [1, -2] => b >= -3", implication(Test("a", "not in", (1, -2)), Test("b", ">=", (-3,)))),
        ("a is not missing => b <= 1e3", implication(Test("a", "not missing"), Test("b", "<=", (1000.0,)))),
        ("a = -1 => b = false", implication(Test("a", "=", (-1,)), Test("b", "=", (False,)))),
        ("d < '2024-02-01' => b != 1", implication(Test("d", "<", ("2024-02-01",)), Test("b", "!=", (1,)))),
    ],
)
def test_texts_are_parsed(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "a column is expected at its end"),
        ("a", "= is expected at its end"),
        ("a = ", "at its end"),
        ("a = 3", "names no column"),
        ("a <= 5", "bounds one column"),
        ("a = 'x'", "bounds one column"),
        ("a < b c", "its end is expected at character 7"),
        ("a = b c", "its end is expected at character 7"),
        ("a = (b", r"\) is expected"),
        ("a in 'x' => b = 1", "a list in parentheses"),
        ("a < 1 => b", "is missing, in, or one of"),
        ("a < 1 => 3 = b", "a column is expected"),
        ("a = b; import os", "character 6 begins nothing"),
        ("a = __import__('os')", "its end is expected"),
        ("is = a", "a column is expected"),
        ("a = 3x", "begins nothing"),
        ("a < 1e999 => b = 1", "too large"),
        ("a = " + "(" * 100 + "b" + ")" * 100, "nested"),
        ("a = " + "+".join(["b"] * (MAX_TERMS + 1)), "terms"),
        ("a" * (1 << 17), "characters"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str, match: str) -> None:
    with pytest.raises(RuleSyntaxError, match=match):
        parse(text)


@given(st.text("ab12 <=>+-*/().,'\"is not missing in true", max_size=40))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    with suppress(RuleSyntaxError):
        parse(text)


def all_rules() -> Schema:
    return Schema(
        {"age": dipriv.Discrete(step=1)},
        rules=["gross = regular + overtime", "start <= end", "age < 15 => income is missing"],
        functions={"cat": {"of": "age", "map": {"0..14": "child", 15: "x", "16..": "adult"}, "other": "none"}},
        combinations=[{"columns": ["state", "city"], "rows": [["x", 1], ["y", 2.5], ["y", 3]]}],
    )


def test_schemas_keep_their_rules(tmp_path: Path) -> None:
    schema = all_rules()
    assert schema != Schema({"age": dipriv.Discrete(step=1)})
    assert Schema({}, rules=["a <= b"]) != Schema({}, rules=["b <= a"])
    assert Schema({}, rules=["a <= b"]) != Schema({}, rules=["a < b"]) == Schema({}, rules=["b > a"])
    assert Schema.from_json(schema.to_json()) == schema
    for ending in ("toml", "json"):
        schema.save(tmp_path / f"schema.{ending}")
        assert Schema.load(tmp_path / f"schema.{ending}") == schema
    assert "5 rules" in repr(schema)
    assert "start &lt;= end" in schema._repr_html_()


def test_columns_may_be_called_like_the_keys_of_rules() -> None:
    schema = Schema({name: dipriv.Continuous() for name in ("rules", "functions", "combinations")})
    assert Schema.from_toml(schema.to_toml()) == schema
    with pytest.raises(SchemaError, match="'rules' cannot be written"):
        Schema({"rules": dipriv.Continuous()}, rules=["a <= b"]).to_toml()


def test_rules_as_people_write_them_in_toml() -> None:
    schema = Schema.from_toml(
        """
        rules = ["gross = regular + overtime", "age < 15 => married = 'no'"]
        [age]
        kind = "discrete"
        step = 1
        [functions.INDP_CAT]
        of = "INDP"
        map = { 170 = "farm", "180..199" = "food" }
        [[combinations]]
        columns = ["a", "b"]
        rows = [["x", 1], ["y", 2]]
        """
    )
    assert len(schema.rules.all) == 4
    assert list(schema) == ["age"]


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema(
            {},
            rules=[
                "x = ",
                "a = b + c",
                "a = d",
                "b = a",
                "p = 1 => a is missing",
                "p = 1 => q != 2",
                "p = 1 => p = 2",
                "r = 1 => s = 1",
                "s = 1 => r = 1",
            ],
            functions={"f": {"map": {"a": "b"}}, "g": {"of": "p", "map": {"1": 1, "2": "x"}}},
            combinations=[{"columns": ["a", "z"], "rows": [[1, 2]]}, {"columns": ["u", "v"], "rows": [[1]]}],
        )
    text = str(caught.value)
    for part in (
        "rule 1 ('x = ')",
        "column 'a' is already defined by",
        "which is a cycle",
        "column 'a' is defined by",
        "(!=) does not say what a cell is",
        "both sides are about one column",
        "implications lead from",
        "function 'f': it does not say of which column",
        "function 'g': its map gives texts and other values",
        "combination 2: its rows are not different lists of 2 values",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    "given",
    [
        {"rules": "a <= b"},
        {"rules": [1]},
        {"functions": ["x"]},
        {"functions": {"x": {"of": "a", "map": {}}}},
        {"functions": {"x": {"of": "a", "map": {"1": None}}}},
        {"functions": {"x": {"of": "a", "map": {"1": 1}, "more": 1}}},
        {"combinations": {"columns": ["a", "b"]}},
        {"combinations": [{"columns": ["a"], "rows": [[1]]}]},
        {"combinations": [{"columns": ["a", "b"], "rows": []}]},
        {"combinations": [{"columns": ["a", "b"], "rows": [[1, 2], [1, 2]]}]},
    ],
)
def test_other_forms_are_schema_errors(given: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        Schema.from_dict(given)
