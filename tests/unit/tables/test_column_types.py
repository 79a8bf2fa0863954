"""No single row moves a column of text from one type to another; every cell is read, or missing."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dipriv
from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.column_types import (
    NO_CELLS,
    Given,
    Question,
    TypeRules,
    ask,
    count_classes,
    few,
    fits,
    parse,
    settle,
    settle_text,
)
from dipriv.errors import SchemaError
from dipriv.schema import MISSING_MARKS, Categorical, ColumnType, Continuous, Datetime, Discrete, Kind, Mixed
from tests.unit.refusal import refused

C = CellClass
GIVEN = {
    "nothing": None,
    "number": Given.type("number"),
    "datetime": Given.type("datetime"),
    "seconds": Given.type("seconds"),
    "date": Given.type("date"),
    "Continuous": Given.kind(Continuous()),
    "Datetime": Given.kind(Datetime()),
    "Categorical": Given.kind(Categorical()),
    "levels": Given.kind(Categorical(levels=(1, 2))),
}


def neighbours(rows: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """One row changes from one class to another."""
    for i, j in itertools.permutations(range(len(rows)), 2):
        if rows[i]:
            yield tuple(size - (k == i) + (k == j) for k, size in enumerate(rows))


def outcome(classes: tuple[CellClass, ...], rows: tuple[int, ...], said: Given | None) -> str:
    """The type, or "refused" where a release is: by a question, or since few cells have the type that is given."""
    counts = NO_CELLS.copy()
    counts[list(classes)] = rows
    try:
        found = settle("x", counts, said)
    except SchemaError:
        return "refused"
    return "refused" if isinstance(found, Question) else str(found)


def flips(
    classes: tuple[CellClass, ...], tables: Iterator[tuple[int, ...]], said: Given | None
) -> tuple[int, set[str]]:
    known = {rows: outcome(classes, rows, said) for rows in tables}
    wrong = sum(
        "refused" not in (found, other := known.get(near, found)) and found != other
        for rows, found in known.items()
        for near in neighbours(rows)
    )
    return wrong, set(known.values())


SIZES = [
    pytest.param((*range(1, 42), 99, 100, 101, 199, 200, 300), id="some up to 300"),
    pytest.param(range(1, 301), id="all up to 300", marks=pytest.mark.slow),
]
"""Numbers of rows. A row changes a table, not its size: the rules differ where a twentieth or a hundredth does."""


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("some", [C.WHOLE, C.DATE, C.BOOLEAN])
def test_no_row_turns_a_type_into_text_for_any_counts(some: CellClass, sizes: Sequence[int]) -> None:
    tables = ((0, n - k, k) for n in sizes for k in range(n + 1))
    wrong, seen = flips((C.MISSING, some, C.OTHER), tables, None)
    assert not wrong
    assert len(seen) == 3  # the type, text, and undecided in between


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("classes", [(C.WHOLE, C.DECIMAL), (C.DATE, C.SECONDS), (C.SECONDS, C.MICROSECONDS)])
def test_no_row_turns_a_type_into_a_finer_one_for_any_counts(
    classes: tuple[CellClass, ...], sizes: Sequence[int]
) -> None:
    wrong, seen = flips(classes, ((n - k, k) for n in sizes for k in range(n + 1)), None)
    assert not wrong
    assert len(seen) == 3


@pytest.mark.parametrize("said", GIVEN)
@pytest.mark.parametrize(
    "classes",
    [
        (C.MISSING, C.WHOLE, C.DECIMAL, C.OTHER),
        (C.MISSING, C.WHOLE, C.DATE, C.UTC_SECONDS),
        (C.MISSING, C.DATE, C.SECONDS, C.MICROSECONDS),
        (C.MISSING, C.BOOLEAN, C.TIME, C.OTHER),
    ],
)
def test_no_row_changes_the_type_of_a_small_table(classes: tuple[CellClass, ...], said: str) -> None:
    tables = (
        (n - sum(rest), *rest)
        for n in range(1, 13)
        for rest in itertools.product(range(n + 1), repeat=3)
        if sum(rest) <= n
    )
    assert flips(classes, tables, GIVEN[said])[0] == 0


KINDS: dict[str, Kind] = {
    "Continuous": Continuous(),
    "Discrete": Discrete(step=1),
    "Mixed": Mixed(atoms=(0,)),
    "Categorical": Categorical(),
    "whole levels": Categorical(levels=(1, 2)),
    "real levels": Categorical(levels=(0.5, 2.0)),
    "boolean levels": Categorical(levels=(False, True)),
    "text levels": Categorical(levels=("a", "b")),
    "Datetime": Datetime(),
}


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((*range(1, 42), 100), id="some up to 100"),
        pytest.param(range(1, 101), id="all up to 100", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_changes_the_type_of_a_declared_kind_for_any_counts(kind: str, sizes: Sequence[int]) -> None:
    said = Given.kind(KINDS[kind])
    alike = (
        (C.WHOLE, C.DECIMAL),
        (C.WHOLE, C.BOOLEAN),
        (C.WHOLE, C.DATE),
        (C.DATE, C.UTC_SECONDS),
        (C.DATE, C.SECONDS),
    )
    for classes in [*itertools.product((C.WHOLE, C.BOOLEAN, C.DATE, C.OTHER_DATE), (C.MISSING, C.OTHER)), *alike]:
        tables = ((n - k, k) for n in sizes for k in range(n + 1))
        assert flips(classes, tables, said)[0] == 0
    for some in (C.WHOLE, C.BOOLEAN, C.DATE):
        larger = ((n - k - m, k, m) for n in range(1, 21) for k in range(n + 1) for m in range(n + 1 - k))
        assert flips((C.MISSING, some, C.OTHER), larger, said)[0] == 0


@pytest.mark.parametrize("kind", ["Continuous", "Discrete", "Mixed", "whole levels", "real levels", "boolean levels"])
def test_a_declared_kind_that_half_of_the_cells_have_is_questioned(kind: str) -> None:
    said, cell = Given.kind(KINDS[kind]), "true" if kind == "boolean levels" else "1"
    found = [settle("x", counted([cell] * n + ["x"] * (100 - n)), said) for n in (51, 50, 49)]
    assert found[0] == (pa.bool_() if cell == "true" else pa.int64())
    assert isinstance(found[1], Question)
    assert found[1].answers == (("boolean" if cell == "true" else "number"), "text")
    assert found[2] == pa.string()


def test_a_rule_without_a_gap_flips() -> None:
    """A control: what the tests above count."""
    counts: list[tuple[int, ...]] = [(n - k, k) for n in range(1, 50) for k in range(n + 1)]
    types = {rows: rows[1] <= sum(rows) // 20 for rows in counts}
    assert any(types[rows] != types.get(near, types[rows]) for rows in counts for near in neighbours(rows))


def test_the_rules_cover_all_counts() -> None:
    for n in range(1, 2000):
        assert fits(n, n)
        assert few(0, n)
        assert few(n, n) is (None if n < 2 else False)
        assert fits(0, n) is (None if n < 2 else False)


TWIN = [
    (C.MISSING, "|".join(re.escape(mark) for mark in MISSING_MARKS)),
    (C.WHOLE, r"[+-]?(0|[1-9]\d{0,17})"),
    (C.DECIMAL, r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:inf|infinity)"),
    (C.BOOLEAN, r"(?i:true|false)"),
    (C.TIME, r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?"),
]
LETTERS = st.text(alphabet="0123456789+-.eE:/T Zinfatrue\té", max_size=12)
WRITTEN = st.one_of(
    LETTERS,
    st.integers().map(str),
    st.floats().map(repr),
    st.dates().map(str),
    st.datetimes().map(str),
    st.datetimes(timezones=st.just(dt.UTC)).map(dt.datetime.isoformat),
    st.times().map(str),
    st.sampled_from(MISSING_MARKS),
)


def twin(text: str) -> CellClass:
    """The same by regular expressions and the standard library, for what is not a very long number."""
    text = text.strip(" \t\n\r\v\f")
    for of, pattern in TWIN:
        if re.fullmatch(pattern, text, re.ASCII):
            return of
    if not re.fullmatch(r"\d{4}-\d\d-\d\d([ Tt].*)?", text, re.ASCII):
        return C.OTHER
    zone = re.search(r"(?<=\d)([Zz]|[+-]\d\d(:?\d\d)?)$", text[11:])
    clock = text[11:] if zone is None else text[11 : 11 + zone.start()]
    if text[10:] and not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?(\.\d+)?", clock, re.ASCII):
        return C.OTHER
    try:
        dt.date.fromisoformat(text[:10])
    except ValueError:
        return C.OTHER
    if not text[10:]:
        return C.DATE
    return CellClass((C.MICROSECONDS if "." in clock else C.SECONDS) + (2 if zone else 0))


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(WRITTEN)
def test_the_loop_agrees_with_regular_expressions(text: str) -> None:
    found = CellClass(int(classify(pa.array([text]), MISSING_MARKS).classes[0]))
    found = C.OTHER if found == C.OTHER_DATE else found
    expected = twin(text)
    if expected == C.DECIMAL and re.fullmatch(r"[+-]?\d{19,}", text.strip()):
        expected = found  # beyond 64 bits or not
    assert found == expected


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | WRITTEN | st.text(), max_size=30))
def test_every_cell_is_read_or_missing_as_every_type(cells: list[str | None]) -> None:
    texts = pa.array(cells, pa.string())
    narrow = [pa.int8(), pa.uint64(), pa.float32(), pa.timestamp("ns"), pa.timestamp("ms", "UTC"), pa.date64()]
    usual = [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.time32("s"), pa.timestamp("s")]
    for of in (*usual, *narrow):
        found = parse(texts, of, ["-9"])
        found.validate(full=True)
        assert (found.type, len(found)) == (of, len(cells))


@settings(max_examples=300, deadline=None)
@given(st.datetimes(dt.datetime(1678, 1, 1), dt.datetime(2261, 1, 1)))
def test_times_are_what_the_standard_library_says(seen: dt.datetime) -> None:
    for text in (str(seen), seen.isoformat()):
        assert parse(pa.array([text]), pa.timestamp("us"), ())[0].as_py() == seen
        assert parse(pa.array([text]), pa.date32(), ())[0].as_py() == seen.date()
    zoned = seen.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30)))
    assert parse(pa.array([zoned.isoformat()]), pa.timestamp("us", "UTC"), ())[0].as_py() == zoned


def counted(cells: list[str], *marks: str) -> np.ndarray:
    return count_classes(classify(pa.array(cells), (*MISSING_MARKS, *marks)))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"] * 50, pa.int64()),
        (["1", "2"] * 50 + ["x"], pa.int64()),
        (["1", "2.5"] * 50, pa.float64()),
        (["01", "02", "03"] * 50, pa.string()),
        (["9" * 25, "8" * 25] * 50, pa.float64()),
        (["true", "False"] * 50, pa.bool_()),
        (["2020-01-01"] * 50 + [""] * 50, pa.date32()),
        (["2020-01-01 10:00"] * 50, pa.timestamp("s")),
        (["2020-01-01 10:00:00.5"] * 50, pa.timestamp("us")),
        (["2020-01-01T10:00Z"] * 50, pa.timestamp("s", "UTC")),
        (["10:30"] * 50, pa.time32("s")),
        (["a", "b", "NA"] * 50, pa.string()),
    ],
)
def test_plain_columns(cells: list[str], expected: pa.DataType) -> None:
    assert settle("x", counted(cells)) == expected


@pytest.mark.parametrize(
    ("cells", "words", "answers"),
    [
        (["1"] * 88 + ["x"] * 12, "88% of its cells are numbers", ("number", "text")),
        (["1"] * 985 + ["1.5"] * 15, "1% of its numbers have decimals", ("whole", "decimal")),
        (["2020-01-01"] * 197 + ["2020-01-01 10:00"] * 3, "have a time of day", ("date", "datetime")),
        ([""] * 100, "it is nearly empty", ("number", "text")),
        (["1"] * 9 + [""] * 100, "it is nearly empty", ("number", "text")),
        (["31/12/2020"] * 100, "not written as 2024-12-31", ("text",)),
        (["true"] * 60 + ["maybe"] * 40, "60% of its cells are true or false", ("boolean", "text")),
    ],
)
def test_questions(cells: list[str], words: str, answers: tuple[str, ...]) -> None:
    found = settle("x", counted(cells))
    assert isinstance(found, Question)
    assert words in found.looks
    assert found.answers == answers
    for answer in answers:
        assert isinstance(settle("x", counted(cells), Given.type(answer)), pa.DataType)  # type: ignore[arg-type]


def test_all_questions_are_asked_at_once() -> None:
    half = counted(["1"] * 60 + ["x"] * 40)
    asked = [found for name in ("pay", "my zip") if isinstance(found := settle(name, half), Question)]
    words = ("column 'pay'", "column 'my zip'", "--type pay=number --type 'my zip=number'", "types={'pay': 'number',")
    refused(SchemaError, *words, call=lambda: ask(asked))


def test_to_leave_out_a_nearly_empty_column_is_advised_first() -> None:
    asked = [found for name in ("pay", "my note") if isinstance(found := settle(name, counted([""] * 100)), Question)]
    with pytest.raises(SchemaError) as caught:
        ask(asked)
    error = caught.value
    assert error.command.startswith("Leave out what is nearly empty: --drop pay --drop 'my note'. Or say what each is,")
    assert error.remedy.startswith("Leave out what is nearly empty: drop=['pay', 'my note']. Or say")


def test_marks_of_the_keeper() -> None:
    cells = ["1", "2", "-9"] * 30
    assert parse(pa.array(cells[:3]), pa.int64(), ["-9"]).to_pylist() == [1, 2, None]
    assert parse(pa.array(["a", "NA", "", "-9"]), pa.string(), ["-9"]).to_pylist() == ["a", "NA", None, None]
    assert counted(cells, "-9")[C.MISSING] == 30


def test_text_stays_text_unless_most_of_it_is_numbers_or_dates() -> None:
    assert settle_text("x", counted(["a", "b"] * 50)) is None
    assert settle_text("x", counted(["1"] * 50 + ["x"] * 50)) is None
    assert isinstance(settle_text("x", counted(["1"] * 51 + ["x"] * 49)), Question)
    assert settle_text("x", counted(["1"] * 100), Given.type("text")) is None
    assert settle_text("x", counted(["1"] * 100), Given.kind(Categorical())) is None
    assert settle_text("x", counted(["1"] * 100), Given.kind(Discrete(step=1))) == pa.int64()


def test_a_type_by_its_name_is_settled_for_any_cells() -> None:
    for cells in (["1"] * 100, ["1"] * 50 + ["2020-01-01"] * 50, [""] * 100):
        assert settle("x", counted(cells), Given.type("date")) == pa.date32()
        assert settle("x", counted(cells), Given.type("boolean")) == pa.bool_()


def test_a_public_table_with_other_types_is_refused(tmp_path: Path) -> None:
    words = ("column 'x' is date in the table that it is compared with, but not even half", "the same types")
    refused(SchemaError, *words, call=lambda: settle("x", counted(["1"] * 100), Given.arrow(pa.date32())))
    public = tmp_path / "public.csv"
    public.write_text("x\n" + "1\n" * 100, encoding="utf-8")
    days = pa.table({"x": pa.array([dt.date(2020, 1, 1 + n % 28) for n in range(100)])})
    refused(SchemaError, *words, call=lambda: dipriv.privatize(days, 1.0, public=public))


def test_types_that_have_no_effect_are_refused() -> None:
    table = pa.table({"a": [1, 2, 3] * 10, "b": ["x", "y", "z"] * 10})
    words = "a type is given for column 'a', which is int64, not text", "Leave it out"
    refused(SchemaError, *words, call=lambda: dipriv.privatize(table, 1.0, types={"a": "number"}))
    refused(
        dipriv.errors.InputError,
        "types names 'c'",
        call=lambda: dipriv.privatize(table, 1.0, types={"c": "number"}),
    )
    refused(
        dipriv.errors.InputError,
        "the type of column 'b' is unknown: 'integer'",
        call=lambda: dipriv.privatize(table, 1.0, types={"b": "integer"}),  # type: ignore[dict-item]
    )


def test_rules_know_what_is_to_be_judged() -> None:
    rules = TypeRules.of({"a": Categorical(), "b": Continuous()}, {"c": "text", "d": "number"})
    assert [rules.judges(name) for name in "abcde"] == [False, True, False, True, True]


def test_cells_settle_what_is_not_given_exactly() -> None:
    exact: dict[str, ColumnType] = {name: name for name in ("text", "whole", "decimal", "boolean", "date", "time")}
    vague: dict[str, ColumnType] = {name: name for name in ("number", "datetime", "seconds")}  # decimals? a zone?
    kinds: dict[str, Kind] = {
        "levels": Categorical(levels=("a", "b")),
        "label": Categorical(),
        "Continuous": Continuous(),
    }
    rules = TypeRules.of(kinds, {**exact, **vague})
    names = (*exact, *vague, *kinds, "nothing")
    said = {name for name in names if rules.is_settled_by_cells(name, is_text=False)}
    assert said == {*vague, "label", "Continuous", "nothing"}
    in_typed_table = {name for name in names if rules.is_settled_by_cells(name, is_text=True)}
    assert in_typed_table == {*vague, "Continuous"}


def test_what_cells_may_overrule_is_not_exact() -> None:
    """A kind that its column does not fit is dropped; the classes of objects overrule kinds, but no type by name."""
    truth, text = Given.kind(Categorical(levels=(True, False))), Given.kind(Categorical(levels=("a", "b")))
    assert not truth.is_exact
    assert text.is_exact
    assert Given.type("boolean").is_exact
    rules = TypeRules({"kind": text, "type": Given.type("text")})
    assert not rules.is_settled_by_cells("kind", is_text=False)
    assert rules.is_settled_by_cells("kind", is_text=False, is_objects=True)
    assert not rules.is_settled_by_cells("type", is_text=False, is_objects=True)


def test_cells_of_another_family_do_not_make_a_type_finer() -> None:
    """99 or 100 times with a zone in whole seconds, and one or two without a zone in fractions: the same type."""
    found = []
    for zoned in (100, 99):
        cells = ["2024-01-01T00:00:00Z"] * zoned + ["2024-01-01T00:00:00.5"] * (101 - zoned)
        found.append(settle("x", count_classes(classify(pa.array(cells), MISSING_MARKS))))
    assert found == [pa.timestamp("s", "UTC")] * 2
