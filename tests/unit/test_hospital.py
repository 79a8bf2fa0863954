"""The messy table of a hospital goes from file to release with one schema, in one try after `inspect`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv import Categorical, Code, Dialect, Discrete, Inspection, Postal, Schema
from dipriv.inspection import ColumnFacts
from tests.hospital import ICD_CODES, ZIPS, Writer, hospital, write_european, write_excel, write_plain

ROWS = 4000
EPSILON = 8.0
LEFT_OUT = {"patient_id": "identifier", "name": "text", "account": "identifier", "note": "text"}
VARIANTS: dict[str, tuple[str, Writer, Dialect | None]] = {
    "commas": ("hospital.csv", write_plain, None),
    "semicolons, decimal commas, Latin-1": ("hospital.csv", write_european, Dialect(encoding="latin-1")),
    "workbook": ("hospital.xlsx", write_excel, None),
}


@pytest.fixture(scope="module")
def original() -> pd.DataFrame:
    return hospital(ROWS)


@pytest.fixture(scope="module")
def folder(original: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("hospital")
    write_plain(original, found / "hospital.csv")
    return found


@pytest.fixture(scope="module")
def seen(folder: Path) -> Inspection:
    return dipriv.inspect(folder / "hospital.csv")


@pytest.fixture(scope="module")
def schema(seen: Inspection) -> Schema:
    """The draft, with what the keeper knows: the level of postal codes, that wards are codes, the answers for sex."""
    draft = Schema.from_toml(seen.schema_toml())
    known: dict[str, Any] = {"zip": Postal(digits=3), "ward": Code(), "sex": Categorical(levels=("F", "M"))}
    return Schema({**draft, **draft.meanings, **known})


@pytest.fixture(scope="module")
def released(folder: Path, schema: Schema) -> pd.DataFrame:
    """As it is written in the released file: text."""
    dipriv.privatize_file(folder / "hospital.csv", folder / "released.csv", EPSILON, schema=schema)
    return pd.read_csv(folder / "released.csv", dtype=str, keep_default_na=False)


def facts(seen: Inspection, name: str) -> ColumnFacts:
    return next(column for column in seen.columns if column.name == name)


def numbers(cells: pd.Series) -> np.ndarray:
    return pd.to_numeric(cells[cells != ""].str.replace(r"[$,%]", "", regex=True)).to_numpy()


def multiples(values: np.ndarray, decimals: int) -> bool:
    return bool(np.all(np.round(values, decimals) == values))


def test_the_draft_alone_is_enough(seen: Inspection, folder: Path) -> None:
    draft = Schema.from_toml(seen.schema_toml())
    assert draft.left_out == tuple(LEFT_OUT)
    reals = {"base_excess", "weight_kg", "lab_crp"}  # their type says nothing that could be declared
    assert {*draft, *draft.left_out} == {column.name for column in seen.columns} - reals
    with pytest.warns(dipriv.PrivacyWarning, match=r"remove its section \[draft\]"):
        release = dipriv.privatize(folder / "hospital.csv", EPSILON, schema=draft)
    assert release.n_rows == ROWS


def test_all_problems_are_shown_at_once(seen: Inspection) -> None:
    shown = seen.summary()
    assert max(map(len, shown.splitlines())) <= 82
    for column in seen.columns:
        assert f"\n{column.name}: " in shown
    for name, kind in LEFT_OUT.items():
        part = shown.partition(f"\n{name}: ")[2].partition("\n\n")[0]
        assert f'declare kind = "{kind}" and leave it out' in part


@pytest.mark.parametrize("name", LEFT_OUT)
def test_identifiers_names_and_free_text_are_left_out(name: str, seen: Inspection, released: pd.DataFrame) -> None:
    found = facts(seen, name).meaning
    assert found is not None
    assert found.name == LEFT_OUT[name]
    assert name not in released


def test_nothing_of_them_is_in_any_file(folder: Path, original: pd.DataFrame, released: pd.DataFrame) -> None:
    del released
    for file in folder.glob("released.csv*"):
        text = file.read_text(encoding="utf-8")
        for name in ("patient_id", "account", "note"):
            assert not any(cell in text for cell in original[name][:200])


def test_postal_codes_keep_their_zeros_and_none_is_invented(seen: Inspection, released: pd.DataFrame) -> None:
    assert facts(seen, "zip").meaning == Postal()
    assert {*released["zip"]} - {"", "(other)"} == {code[:3] for code in ZIPS}


def test_labels_that_few_patients_have_are_not_published(original: pd.DataFrame, released: pd.DataFrame) -> None:
    times = original["icd"].value_counts()
    assert len(times) > ICD_CODES / 4
    found = {*released["icd"]} - {"", "(other)"}
    assert found <= {*times.index}
    assert times[list(found)].min() > 1
    assert {*times.index[:3]} <= found  # hundreds of patients each
    assert (released["icd"].isin(times.index[:3]).mean() - original["icd"].isin(times.index[:3]).mean()) < 0.1


def test_whole_numbers_with_missing_cells_stay_whole(original: pd.DataFrame, released: pd.DataFrame) -> None:
    assert multiples(numbers(released["visits"]), 0)
    shares = [(table["visits"] == "").mean() for table in (original, released)]
    assert abs(shares[0] - shares[1]) < 0.03


@pytest.mark.parametrize(("name", "decimals"), [("base_excess", 1), ("weight_kg", 4), ("lab_crp", 1)])
def test_decimals_stay(name: str, decimals: int, seen: Inspection, released: pd.DataFrame) -> None:
    values = numbers(released[name])
    assert multiples(values, decimals)
    assert not multiples(values, decimals - 1)  # control
    assert f"{decimals} decimal" in facts(seen, name).taken_as


def test_times_stay_on_the_minute_and_in_their_zone(seen: Inspection, released: pd.DataFrame) -> None:
    assert facts(seen, "admitted").taken_as == "times to the minute"
    times = pd.to_datetime(released["admitted"][released["admitted"] != ""])
    assert str(times.dt.tz) == "UTC"
    assert (times.dt.second == 0).all()
    assert (times.dt.year == 2025).mean() > 0.8


def test_dates_in_two_formats_are_dates(original: pd.DataFrame, seen: Inspection, released: pd.DataFrame) -> None:
    assert facts(seen, "birth_date").written == "day first"
    years = pd.to_datetime(released["birth_date"][released["birth_date"] != ""]).dt.year
    true = 2025 - numbers(original["age"]).mean()
    assert abs(years.mean() - true) < 10


def test_marks_of_missing_cells_are_no_labels(original: pd.DataFrame, seen: Inspection, released: pd.DataFrame) -> None:
    absent = original["lab_crp"].isin(["-", "NA", ""])
    assert facts(seen, "lab_crp").nulls == absent.sum()
    assert abs((released["lab_crp"] == "").mean() - absent.mean()) < 0.05
    assert not released["lab_crp"].isin(["-", "NA", "(other)"]).any()


@pytest.mark.parametrize(
    ("name", "kind", "pattern"),
    [
        ("bill", "money", r"\$[0-9]{1,3}(,[0-9]{3})*\.[0-9]{2}"),
        ("occupancy", "percent", r"[0-9]{1,3}%"),
        ("steps", "discrete", r"-?[0-9]{1,3}(,[0-9]{3})*"),
    ],
)
def test_numbers_are_written_as_they_were(
    name: str, kind: str, pattern: str, seen: Inspection, released: pd.DataFrame
) -> None:
    found = facts(seen, name)
    assert found.drafted is not None
    assert found.drafted.name == kind
    cells = released[name][released[name] != ""]
    assert cells.str.fullmatch(pattern).all()
    if kind == "percent":
        assert np.all(np.abs(numbers(cells) - 50) <= 50)


def test_labels_that_are_nearly_the_same_are_shown(seen: Inspection, released: pd.DataFrame) -> None:
    assert any("'F', 'F ', 'f'" in note or "'F', 'f', 'F '" in note for note in facts(seen, "sex").notes)
    assert {*released["sex"]} - {""} == {"F", "M"}


def test_numbers_that_are_codes_are_suspected_and_none_is_invented(seen: Inspection, released: pd.DataFrame) -> None:
    assert any('kind = "code"' in note for note in facts(seen, "ward").advice)
    assert {*released["ward"]} - {"", "(other)"} == {"1", "2", "3", "24", "31"}


def test_persons_with_several_rows_are_suggested_as_units() -> None:
    panel = hospital(300).assign(person=np.arange(300) // 5)[["person", "age", "sex"]]
    note = facts(dipriv.inspect(panel, types={"age": "number"}), "person").unit
    assert "unit='person'" in note
    assert "5.0 rows" in note
    alone = panel.assign(person=np.random.default_rng(0).integers(0, 10**6, 300))  # control
    assert not facts(dipriv.inspect(alone, types={"age": "number"}), "person").unit


def test_the_inspection_agrees_with_the_release(seen: Inspection, folder: Path) -> None:
    """What is shown as "taken as" is what a release without a schema takes each column as."""
    names = [column.name for column in seen.columns if column.name not in LEFT_OUT and not column.undecided]
    release = dipriv.privatize(folder / "hospital.csv", EPSILON, columns=names)
    for name in names:
        taken, kind = facts(seen, name).taken_as, release.schema[name]
        digits = {"whole": 1, "numbers with 1": 0.1, "numbers with 2": 0.01, "numbers with 4": 0.0001}
        step = next((step for words, step in digits.items() if taken.startswith(words)), None)
        assert getattr(kind, "step", None) == step, name
        assert (kind.name == "categorical") == (taken == "labels")
        assert (kind.name == "datetime") == taken.startswith(("dates", "times"))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_one_schema_serves_every_variant(variant: str, original: pd.DataFrame, schema: Schema, tmp_path: Path) -> None:
    name, write, dialect = VARIANTS[variant]
    write(original, tmp_path / name)
    out = tmp_path / f"out{Path(name).suffix}"
    declared = Schema({**schema, **schema.meanings, "lab_crp": Discrete(step=0.1)})  # stored as text in the workbook
    dipriv.privatize_file(tmp_path / name, out, EPSILON, schema=declared, dialect=dialect)
    comma = variant.startswith("semicolons")
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    found = (
        pd.read_csv(out, sep=";" if comma else ",", **options)
        if out.suffix == ".csv"
        else pd.read_excel(out, **options)
    )
    assert list(found) == [column for column in original if column not in LEFT_OUT]
    assert {*found["zip"]} - {"", "(other)"} == {code[:3] for code in ZIPS}
    assert {*found["ward"]} - {"", "(other)"} == {"1", "2", "3", "24", "31"}
    bills = found["bill"][found["bill"] != ""]
    assert bills.str.fullmatch(r"\$[0-9.]+,[0-9]{2}" if comma else r"\$?[0-9,]+(\.[0-9]{1,2})?").all()


def test_a_refusal_names_the_columns_that_inspect_names(folder: Path, seen: Inspection) -> None:
    asked = [column for column in seen.columns if column.undecided]
    with pytest.raises(dipriv.SchemaError) as refusal:
        dipriv.privatize(folder / "hospital.csv", EPSILON)
    assert [column.name for column in asked] == ["zip"]
    assert all(str(column.refused) in refusal.value.fault for column in asked)


def test_a_repr_shows_no_cell(seen: Inspection) -> None:
    shown = repr(seen) + str(seen) + repr([replace(column, nulls=0) for column in seen.columns])
    assert "Dunden" not in shown
    assert "B00.1" not in shown
    assert "Dunden" in seen.summary()  # control
