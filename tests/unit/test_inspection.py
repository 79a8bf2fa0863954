"""Inspection warns of what points to people, drafts a schema that loads as it is, and shows no cell anywhere else."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dipriv
from dipriv import Categorical, Continuous, Datetime, Discrete, Mixed, Schema, SchemaError
from dipriv._tables import frames as tables
from dipriv._tables.arrow import is_text
from dipriv._tables.identifiers import EXPECTED_REPEATS
from dipriv.inspection import MAX_LISTED, ColumnFacts, Inspection, free_text, inspect, refuse_free_text
from tests.support import ALARM, data_folder
from tests.unit.refusal import NUMBER, SECRET, refused

RNG = np.random.default_rng(0)
N = 400
WORDS = ["he", "was", "seen", "again", "in", "march", "with", "the", "same", "cough"]


def facts(values: Any, name: str = "x") -> ColumnFacts:
    return inspect(pa.table({name: values})).columns[0]


def warning(values: Any, name: str = "x") -> str | None:
    return facts(values, name).warning


def remarks(n: int) -> list[str]:
    rng = np.random.default_rng(n)
    return [" ".join(rng.choice(WORDS, 8)) for _ in range(n)]


def unwarned(inspection: Inspection) -> dict[str, Any]:
    return {column.name: column.kind for column in inspection.columns if column.kind and not column.warning}


def drafted(inspection: Inspection) -> Schema:
    return Schema({column.name: column.drafted for column in inspection.columns if column.drafted is not None})


def uncommented(draft: str) -> str:
    """The draft of a keeper who declares all that was read from the rows."""
    fields = "levels|atoms|lower|upper|step|resolution|kind"
    read = re.sub(rf"^# (?=(({fields}) = |\[.*\]$))", "", draft, flags=re.MULTILINE)
    return re.sub(r"^step = .*\n(?=(?:# .*\n)*(levels|step) = )", "", read, flags=re.MULTILINE)


def measurements() -> dict[str, Any]:
    """Columns of every kind, none of which may cause an alarm."""
    rng = np.random.default_rng(1)
    return {
        "height": rng.normal(170, 10, N),
        "pay": np.round(rng.lognormal(10, 1, N), 2),
        "income": rng.lognormal(10, 1, N).astype(np.int64) * 10,
        "hours": np.where(rng.random(N) < 0.3, 0.0, rng.exponential(size=N)),
        "age": rng.integers(18, 90, N),
        "paid": rng.integers(10**6, 10**8, N),
        "number_of_steps": rng.permutation(10**6)[:N],
        "shop_id": rng.integers(0, 12, N),
        "smokes": rng.random(N) < 0.2,
        "job": rng.choice(["nurse", "teacher", "farmer"], N),
        "born": (np.datetime64("1950-01-01") + rng.permutation(N)).astype("datetime64[D]"),
        "answer": rng.choice(["yes, I agree with all of this", "no, not at all, not even a little"], N),
    }


def test_facts_of_each_kind() -> None:
    columns = measurements()
    columns["job"] = [None, *columns["job"][1:-1].tolist(), "priest"]
    columns["hours"][:2] = np.nan
    found = {column.name: column for column in inspect(pd.DataFrame(columns)).columns}
    assert {name: type(column.kind) for name, column in found.items()} == {
        **dict.fromkeys(["height"], Continuous),
        **dict.fromkeys(["pay", "income", "age", "paid", "number_of_steps", "shop_id"], Discrete),
        **dict.fromkeys(["hours"], Mixed),
        **dict.fromkeys(["smokes", "job", "answer"], Categorical),
        **dict.fromkeys(["born"], Datetime),
    }
    assert {name: column.facts for name, column in found.items()} == {
        "height": (),
        "pay": ("step",),
        "income": ("step",),
        "hours": ("atoms", "nulls"),
        "age": ("levels",),
        "paid": ("step",),
        "number_of_steps": ("step",),
        "shop_id": ("levels",),
        "smokes": (),
        "job": ("levels", "nulls"),
        "born": ("resolution",),
        "answer": ("levels",),
    }
    assert (found["job"].nulls, found["hours"].nulls, found["age"].nulls) == (1, 2, 0)
    assert (found["job"].distinct, found["job"].rare) == (4, 1)
    assert found["hours"].distinct == len(np.unique(columns["hours"][2:]))
    assert found["age"].storage == "int64"
    assert all(column.warning is None and column.refused is None for column in found.values())


@pytest.mark.parametrize("as_frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_libraries_agree(as_frame: Callable[..., Any]) -> None:
    columns = measurements() | {"row": np.arange(N), "remark": remarks(N)}
    found, expected = inspect(as_frame(columns)), inspect(pa.table(columns))
    assert found.rows == expected.rows == N
    for one, other in zip(found.columns, expected.columns, strict=True):
        assert (one.name, one.kind, one.distinct, one.warning) == (
            other.name,
            other.kind,
            other.distinct,
            other.warning,
        )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", np.arange(20)),
        ("x", np.arange(1000, 0, -1)),
        ("x", RNG.permutation(500) + 10**9),
        ("x", RNG.permutation(500) * 10),
        ("x", RNG.permutation(5000)[:500]),  # chance would repeat some of 500 draws from 5000
        ("x", [None, *RNG.permutation(100).astype(float).tolist()]),
        ("x", [uuid.UUID(int=i).hex for i in range(30)]),
        ("x", [str(uuid.UUID(int=i * 7)) for i in range(30)]),
        ("customer_id", RNG.choice(10**9, 50, replace=False)),
        ("customerID", [f"c-{i}" for i in range(30)]),
        ("IDCustomer", [f"c-{i}" for i in range(30)]),
        ("case.nr", [f"c-{i}" for i in range(30)]),
        ("Account Number", RNG.choice(10**9, 50, replace=False)),
        ("userId", np.repeat(RNG.choice(10**6, 300, replace=False), 40)),  # one person, many rows
        ("patient_key", [f"p{i // 3}" for i in range(90)]),
    ],
)
def test_identifiers(name: str, values: Any) -> None:
    assert warning(values, name) == "identifier"
    assert warning(pa.array(values).dictionary_encode(), name) in ("identifier", "near-unique key")


@pytest.mark.parametrize(
    "values",
    [
        [f"person{i}@example.org" for i in range(50)],
        [*(f"person{i}" for i in range(95)), *["person0"] * 5],
        np.sort(RNG.choice(10**9, 200, replace=False)),
        np.sort(RNG.choice(10**9, 200, replace=False))[::-1],
        RNG.permutation(np.append(RNG.permutation(130)[:97], [1, 2, 3])),
    ],
)
def test_near_unique_keys(values: Any) -> None:
    assert warning(values) == "near-unique key"


@pytest.mark.parametrize(
    "values",
    [
        remarks(300),
        [*remarks(40), *[""] * 960],  # mostly empty
        [f"{name} {place}" for name in "abcdefghij" for place in range(7)] * 1 + ["a 1"] * 30,
        [f"{'x' * 39}{i % 11}" for i in range(1000)],
        ["one two three four " * (1 + i % 11) for i in range(1000)],
    ],
)
def test_free_text(values: list[str]) -> None:
    assert warning(values) == "free text"
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert free_text(tables.read(pa.table({"x": pa.array(values).cast(kind)})), "x")


@pytest.mark.parametrize(
    "values",
    [
        [f"p{i}" for i in range(19)],  # too few to tell
        [f"p{i // 2}" for i in range(100)],  # half of them, not more
        ["one two three four five six", "seven eight nine ten " * 9] * 50,
        [f"{'x' * 60}{i % 10}" for i in range(1000)],
        np.arange(19),
        RNG.choice(10**7, 200, replace=False),  # distinct as chance has it
        RNG.permutation(160)[:40],  # distinct as chance has it once in 200 tables
        [None] * 50 + ["a"],
    ],
)
def test_no_alarm(values: Any) -> None:
    assert warning(values) is None
    assert not free_text(tables.read(pa.table({"x": values})), "x")


@pytest.mark.parametrize("name", ["paid", "valid", "number of visits", "monkey", "covid19"])
def test_a_name_is_read_by_words(name: str) -> None:
    values = RNG.choice(10**8, 100, replace=False)
    assert warning(values, name) is None
    assert warning(values, f"{name}_id") == "identifier"


def test_chance_rarely_looks_like_an_identifier() -> None:
    rng, trials = np.random.default_rng(2), 500
    alarms = sum(warning(rng.integers(0, 100, 40)) is not None for _ in range(trials))
    assert alarms <= stats.binom.isf(ALARM, trials, np.exp(-EXPECTED_REPEATS))  # 40 * 39 / 2 / 100 > 7
    assert all(warning(rng.permutation(100)[:40]) == "identifier" for _ in range(20))  # control: 40 of 100 numbers


def test_columns_that_are_refused_are_told_apart() -> None:
    frame = pa.table(
        {
            "list": pa.array([[1]] * 30),
            "empty": pa.nulls(30),
            "void": pa.array([None] * 30, pa.string()),
            "infinite": [np.inf] * 30,
            "fields": pa.array([{SECRET: 1}] * 30),
            "binary": pa.array([b"x"] * 30),
        }
    )
    inspection = inspect(frame)
    assert [column.storage for column in inspection.columns] == ["list", "null", "string", "double", "struct", "binary"]
    assert [column.nulls for column in inspection.columns] == [0, 30, 30, 0, 0, 0]
    for column in inspection.columns:
        assert column.kind is None
        assert column.refused is not None
        assert repr(column.name) in column.refused
    assert SECRET not in repr(inspection) + inspection.schema_toml()
    assert not Schema.from_toml(inspection.schema_toml())
    mixed = inspect(pd.DataFrame({"mixed": [1, SECRET, None] * 10}))
    assert (mixed.columns[0].kind, mixed.columns[0].storage) == (None, "object")
    assert SECRET not in repr(mixed) + mixed.schema_toml()


def test_cells_show_in_the_draft_only_and_never_those_of_a_suspect() -> None:
    frame = pd.DataFrame(
        {
            "label": [SECRET, "a", "b", "c"] * 10,
            "level": [NUMBER, 1, 2, 3] * 10,
            "category": pd.Categorical([SECRET, "a"] * 20),
            "free": [f"{SECRET} {i}" for i in range(40)],
        }
    )
    inspection = inspect(frame)
    for shown in (repr(inspection), str(inspection), *map(repr, inspection.columns)):
        assert SECRET not in shown
        assert str(NUMBER) not in shown
    assert str(NUMBER) not in repr(inspect(pa.table({"one": [NUMBER]})))  # its step is the cell
    draft = inspection.schema_toml()
    assert draft.count(SECRET) == 2
    assert draft.count(str(NUMBER)) == 1
    assert all(line.startswith("# ") for line in draft.splitlines() if SECRET in line or str(NUMBER) in line)
    assert SECRET in inspection.summary()
    assert "Private" in inspection.summary()


def test_the_draft_says_what_it_is() -> None:
    frame = {
        "job": ["nurse"] * 30 + ["bishop"] * 4 + ["pope"],
        "hours": [0.0] * 4 + RNG.normal(size=31).tolist(),
        "row": range(35),
        "note": [None, *remarks(34)],
        "list": [[1]] * 35,
    }
    draft = inspect(pa.table(frame)).schema_toml()
    header = draft.partition("\n\n")[0]
    for words in ("private rows", "assumed public", "Do not publish", "remove what is not public"):
        assert words in header
    sections = dict(zip(frame, draft.split("\n\n")[1 : 1 + len(frame)], strict=True))
    assert "Read from the private rows" in sections["job"]
    assert "2 of these levels occur fewer than 5 times" in sections["job"]
    assert "1 of these atoms occur fewer than 5 times" in sections["hours"]
    assert sections["job"].count("pope") == 1
    assert "levels" not in Schema.from_toml(draft).to_dict()["job"]
    for suspect, suspicion in (("row", "identifier"), ("note", "free text")):
        assert suspicion in sections[suspect]
        assert "left out" in sections[suspect]
    assert "type list" in sections["list"]
    assert all(line.startswith("# ") for line in sections["list"].splitlines())
    assert not any(f" {word} " in sections["note"].partition("WARNING")[0] for word in WORDS)
    declared = Schema.from_toml(draft)
    assert declared.left_out == ("row", "note")
    assert set(declared) == {"job"}
    assert set(Schema.from_toml(uncommented(draft))) == {"job", "hours"}


def test_a_draft_is_known_again_until_its_section_is_removed() -> None:
    frame = pd.DataFrame(measurements())
    text = inspect(frame).schema_toml()
    draft, listed = Schema.from_toml(text), Schema.from_toml(uncommented(text))
    for schema in (draft, listed, Schema.from_toml(draft.to_toml()), Schema.from_json(draft.to_json())):
        assert schema.is_draft
    with pytest.warns(dipriv.PrivacyWarning, match="draft that dipriv made from the private rows"):
        release = dipriv.privatize(frame, 1.0, schema=draft)
    assert "drafted" not in str(release.guarantee)  # it declares what the types say
    with pytest.warns(dipriv.PrivacyWarning, match="draft that dipriv made from the private rows"):
        release = dipriv.privatize(frame, 1.0, schema=listed)
    stated = next(line for line in str(release.guarantee).splitlines() if "drafted from the private rows" in line)
    assert {*re.findall(r"'(\w+)'", stated)} == {*frame} - {"smokes"}
    checked = Schema.from_toml(uncommented(text).replace("[draft]\n", ""))  # control
    assert checked == listed
    assert not checked.is_draft
    assert "drafted" not in str(dipriv.privatize(frame, 1.0, schema=checked).guarantee)


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("name", ["age", "year_of_birth"])
def test_one_bound_that_a_draft_read_is_a_condition(name: str, bound: str) -> None:
    first = 18 if name == "age" else 1931
    frame = pd.DataFrame({name: np.arange(N) % 70 + first})
    text = inspect(frame).schema_toml()
    unedited, edited = Schema.from_toml(text), Schema.from_toml(text.replace(f"# {bound} = ", f"{bound} = "))
    assert unedited != edited
    with pytest.warns(dipriv.PrivacyWarning):
        found = [str(dipriv.privatize(frame, 1.0, schema=schema).guarantee) for schema in (unedited, edited)]
    assert ["drafted from the private rows" in guarantee for guarantee in found] == [False, True]


def test_what_a_draft_declares_does_not_depend_on_one_cell() -> None:
    """But for meanings, which its keeper is told to check. Nor is there a digest of cells, which could be searched."""
    amounts = np.random.default_rng(0).integers(1, 5000, 2000)
    columns: dict[str, list[Any]] = {
        "real": [amounts * 1.0, *(np.append(amounts[1:], odd) for odd in (17.35, 1e-300, 0.5))],
        "whole": [amounts * 10, np.append(amounts[1:] * 10, 3)],
        "label": [["a", "b"] * 1000, ["a", "b"] * 999 + ["a", "c"]],
        "when": [pd.Timestamp("2024-01-01") + pd.to_timedelta(amounts * unit, "s") for unit in (86400, 60, 1)],
    }
    for name, variants in columns.items():
        drafts = [inspect(pd.DataFrame({name: cells})).schema_toml() for cells in variants]
        assert len({*drafts}) == len(variants)  # control: comments differ
        active = [[line for line in draft.splitlines() if not line.startswith("#")] for draft in drafts]
        assert all(lines == active[0] for lines in active)
        assert active[0][-1] == "[draft]"


@pytest.mark.parametrize("section", ["unedited = 1", 'unedited = "a"\nread = { x = "b" }\n', "x = 1"])
def test_a_section_of_a_draft_that_dipriv_did_not_write_is_refused(section: str) -> None:
    refused(SchemaError, "[draft]", call=lambda: Schema.from_toml(f"[draft]\n{section}"))


def test_long_lists_are_not_drafted() -> None:
    many = inspect(pa.table({"code": [f"c{i}" for i in range(MAX_LISTED + 1)] * 3}))
    assert unwarned(many) == {"code": Categorical()}
    assert "not listed" in many.schema_toml()
    assert many.columns[0].distinct == MAX_LISTED + 1
    few = inspect(pa.table({"code": [f"c{i:04}" for i in range(MAX_LISTED)] * 3}))
    assert unwarned(few) == {"code": Categorical(levels=tuple(f"c{i:04}" for i in range(MAX_LISTED)))}
    assert few.columns[0].rare == MAX_LISTED


def test_a_draft_is_accepted_as_it_is() -> None:
    columns: dict[str, Any] = measurements() | {
        "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(np.arange(N), unit="D")
    }
    columns["note"] = pd.Categorical(RNG.choice(["a", "b"], N), categories=["b", "a", "unused"])
    columns["grade"] = pd.Categorical(RNG.integers(1, 4, N), categories=[3, 2, 1])
    columns["band"] = pd.cut(RNG.normal(size=N), 3)
    columns["job"] = pd.Series(columns["job"]).where(RNG.random(N) < 0.9, None)
    frame = pd.DataFrame(columns)
    polars = pl.DataFrame({name: frame[name].to_numpy() for name in ("age", "smokes")}).with_columns(
        pl.Series("sex", ["f", "m"] * (N // 2), dtype=pl.Enum(["m", "f", "x"]))
    )
    arrow = pa.table({"code": pa.array([1, 2] * (N // 2)).dictionary_encode(), "age": columns["age"]})
    for table in (frame, polars, arrow):
        inspection = inspect(table)
        schema = Schema.from_toml(inspection.schema_toml())
        assert schema == drafted(inspection)
        dipriv.privatize(table, 1.0, reference="holdout", schema=schema, seed=1)
        declared = Schema.from_toml(uncommented(inspection.schema_toml()))
        assert {*declared, *declared.left_out} == set(tables.read(table).names)
        dipriv.privatize(table, 1.0, reference="holdout", schema=declared, seed=1)


AWKWARD = st.text("aZ0 .=#[]\"'\\\n\r\té漢\x00\x1b\x7f\x85\u2028\U0001f600", max_size=8)
N_ROWS = 24
CELLS = st.one_of(
    st.lists(AWKWARD, min_size=1, max_size=9).map(lambda labels: (labels * N_ROWS)[:N_ROWS]),
    st.lists(AWKWARD | st.none(), min_size=N_ROWS, max_size=N_ROWS),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 30), min_size=N_ROWS, max_size=N_ROWS),
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=N_ROWS, max_size=N_ROWS),
    st.lists(st.booleans() | st.none(), min_size=N_ROWS, max_size=N_ROWS),
    st.lists(st.datetimes(), min_size=N_ROWS, max_size=N_ROWS),
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.dictionaries(AWKWARD, CELLS, min_size=1, max_size=4))
def test_drafts_load_back(columns: dict[str, list[Any]]) -> None:
    inspection = inspect(pa.table(columns))
    assert Schema.from_toml(inspection.schema_toml()) == drafted(inspection)
    assert Schema.from_toml(inspection.schema_toml()).is_draft or "draft" in columns
    Schema.from_toml(uncommented(inspection.schema_toml()))
    assert SECRET not in inspection.summary()
    assert [column.name for column in inspection.columns] == list(columns)


def test_free_text_is_refused_until_the_keeper_decides() -> None:
    table = tables.read(pa.table({"note": [f"{SECRET} {i}" for i in range(40)], "sex": ["f", "m"] * 20}))
    names, undeclared = ("note", "sex"), Schema({})
    refused(
        SchemaError,
        "'note'",
        "40 of 40 values",
        "50%",
        "drop",
        "keep",
        "Categorical(levels=...)",
        call=lambda: refuse_free_text(table, names, undeclared, ()),
    )
    refused(
        SchemaError, "'note'", call=lambda: refuse_free_text(table, names, Schema({"note": Categorical()}), ())
    )  # its levels would still be read from the rows
    refuse_free_text(table, names, undeclared, ["note"])
    refuse_free_text(table, ["sex"], undeclared, ())
    refuse_free_text(table, names, Schema({"note": Categorical(levels=("a", "b"))}), ())
    refuse_free_text(table, ["absent"], undeclared, ())
    long = tables.read(pa.table({"note": [f"{SECRET} a b c {i % 12}" for i in range(40)]}))
    refused(SchemaError, "12 distinct", "4 words", call=lambda: refuse_free_text(long, ["note"], undeclared, ()))


def test_only_the_selected_rows_are_judged() -> None:
    table = tables.read(pa.table({"note": ["a"] * 40 + [f"p{i}" for i in range(40)]}))
    first = np.arange(80) < 40
    assert not free_text(table.take(first), "note")
    assert free_text(table.take(~first), "note")


def real(path: str) -> pa.Table:
    file: Path = data_folder() / path
    if not file.exists():
        pytest.skip(f"{path} not found in the data folder {data_folder().name}; set DIPRIV_DATA")
    return pq.read_table(file)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("adult/adult-train.parquet", set()),
        ("adult/adult-test.parquet", set()),
        ("bank/bank-additional-full.parquet", set()),
        ("uc_salary/uc-salary-2010-nine-locations.parquet", set()),
        ("sdnist/ma2019.parquet", set()),
        ("sdnist/national2019.parquet", set()),
        ("pums/pums-california-demographics-1000.parquet", set()),
        ("movielens/ml-1m-users.parquet", {"userId"}),
        ("movielens/ml-1m-ratings.parquet", {"userId", "movieId"}),
        ("movielens/ml-100k-ratings.parquet", {"userId", "movieId"}),
        ("movielens/ml-latest-small-ratings.parquet", {"userId", "movieId"}),
        ("movielens/ml-25m-ratings-users-1-to-2687.parquet", {"userId", "movieId"}),
    ],
)
def test_real_tables(path: str, keys: set[str]) -> None:
    table = real(path)
    texts = [column.name for column in table.schema if is_text(column.type)]
    inspection = inspect(table, types=dict.fromkeys(texts, "text"))  # some are codes of digits
    assert {column.name: column.warning for column in inspection.columns if column.warning} == dict.fromkeys(
        keys, "identifier"
    )
    assert Schema.from_toml(inspection.schema_toml()) == drafted(inspection)
    assert dict(dipriv.infer_schema(table.drop_columns(list(keys)))) == unwarned(inspection)


def test_a_column_whose_type_is_undecided_is_shown_with_its_question(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("pay,sex\n" + "12,f\n13,m\nlots,f\n" * 40, encoding="utf-8")
    for frame in (file, pd.read_csv(file)):
        pay, sex = inspect(frame).columns
        assert (pay.undecided, sex.undecided) == (True, False)
        assert "66% of its cells are numbers (number or text?)" in str(pay.refused)
        assert list(Schema.from_toml(inspect(frame).schema_toml())) == ["sex"]
        assert inspect(frame, types={"pay": "number"}).columns[0].nulls == 40


def visits(rows: int = 300) -> pd.DataFrame:
    """Three rows for each patient, dates in order but for one row, ages with few gaps."""
    rng = np.random.default_rng(4)
    admitted = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, rows), "D")
    discharged = admitted + pd.to_timedelta(rng.integers(0, 20, rows), "D")
    return pd.DataFrame(
        {
            "patient_id": [f"P{row // 3:05}" for row in range(rows)],
            "age": np.delete(np.arange(18, 91), [3, 7, 8])[rng.integers(0, 70, rows)],
            "discharged": discharged.where(np.arange(rows) > 0, discharged - pd.Timedelta("40D")),
            "admitted": admitted,
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), "D"),
        }
    )


def test_a_key_of_several_rows_is_a_unit_and_nothing_else() -> None:
    several, one = inspect(visits()[["patient_id"]]), inspect(visits()[["patient_id"]].drop_duplicates())
    shown = " ".join(several.summary().split())
    assert "3.0 rows for each of 100 values, at most 3: if these are persons, protect them, not rows" in shown
    assert "leave it out" not in shown
    assert "THIS FILE ALONE PROTECTS ROWS, NOT PERSONS" in several.schema_toml()
    assert Schema.from_toml(several.schema_toml()).left_out == ("patient_id",)
    assert "leave it out" in one.summary()  # control
    assert "unit" not in one.summary()
    assert "PROTECTS ROWS" not in one.schema_toml()


def test_ages_are_not_called_codes() -> None:
    codes = pd.DataFrame({"x": np.array([110, 170, 180, 190, 270, 280, 290, 370, 490, 570, 1070, 3680, 8190])})
    assert "codes" in inspect(pd.concat([codes] * 30)).summary()  # control
    assert "codes" not in inspect(pd.concat([visits()[["age"]]] * 10)).summary()


def test_orders_of_dates_that_nearly_all_rows_keep_are_comments() -> None:
    found = inspect(visits())
    assert found.orders == ("admitted <= discharged", "born <= admitted")  # and so born <= discharged
    draft = found.schema_toml()
    assert '# rules = ["admitted <= discharged", "born <= admitted"]' in draft
    assert not Schema.from_toml(draft).rules
    assert Schema.from_toml(draft.replace("# rules =", "rules =")).rules.texts == found.orders
    assert "admitted <= discharged" in found.summary()
    assert inspect(visits(), schema=Schema({}, rules=found.orders)).orders == ()
    shuffled = visits().assign(admitted=visits()["admitted"].to_numpy()[::-1])
    assert inspect(shuffled).orders == ("born <= discharged", "born <= admitted")  # control
    odd = visits().rename(columns={"admitted": 'day "in"', "discharged": "in"})
    names = inspect(odd).orders
    assert names[0] == '"day ""in""" <= "in"'
    assert Schema({}, rules=names).rules.texts == names


def test_nothing_is_suggested_for_declared_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["Max", "Eva"] * 60, "grade": [1, 2, 3] * 40, "job": ["nurse", "priest"] * 60})
    file = tmp_path / "schema.toml"
    Schema({"name": dipriv.Text(), "grade": dipriv.Code()}).save(file)
    free, declared = inspect(frame).summary(), inspect(frame, schema=file).summary()
    for words in ('declare kind = "text"', 'declare kind = "code"', "taken as whole numbers"):
        assert words in " ".join(free.split())  # control
        assert words not in " ".join(declared.split())
    for words in ('declared kind = "text"', 'declared kind = "code"', "taken as labels"):
        assert words in declared
    for column in inspect(frame, schema=file).columns:
        assert "Max" not in repr(column)


def test_cells_that_are_missing_in_numbers_and_labels_elsewhere_are_told(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = [
        f"{'k.A.' if row % 50 == 0 else '' if row % 50 == 1 else row},{'k.A.' if row % 3 else 'Bau'}"
        for row in range(300)
    ]
    file.write_text("\n".join(["pay,Branche", *rows, ""]), encoding="utf-8")
    shown = " ".join(inspect(file).summary().split())
    assert "missing: 'k.A.' (6 cells); the same text is a label in 'Branche': --na 'k.A.'" in shown
    assert "k.A." not in repr(inspect(file))
    marked = inspect(file, missing=["k.A."])
    assert marked.columns[1].nulls == 200
    assert "missing: 'k.A." not in marked.summary()


def test_a_draft_of_postal_codes_says_how_they_are_cut() -> None:
    draft = inspect(pa.table({"plz": [f"{row % 90:02}123" for row in range(900)]}), types={"plz": "text"}).schema_toml()
    assert 'kind = "postal"' in draft
    assert "digits = 3" in draft
