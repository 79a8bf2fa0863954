"""What a column is beyond its type: codes, postal codes, identifiers, text, money, percentages and years."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.api.types import is_string_dtype
from scipy import stats

import dipriv
from dipriv import (
    Categorical,
    Code,
    Discrete,
    Identifier,
    InputError,
    Money,
    Percent,
    Postal,
    Schema,
    SchemaError,
    Text,
    UtilityWarning,
    Year,
)
from dipriv.references._learning.learn import _threshold
from dipriv.references._learning.measurements import Spread
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.sources import open_source
from tests.contracts.test_totality import TYPES
from tests.spark_support import session
from tests.support import data_folder
from tests.unit.refusal import refused

N = 1500
CODES = (1, 2, 3, 24)
ZIPS = ("01234", "01239", "02139", "60601")
OTHER = "(other)"
EPSILON = 20.0  # large: what is tested here is form, not quality


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "zip": rng.choice(ZIPS, N),
            "ward": rng.choice(CODES, N, p=(0.4, 0.3, 0.2, 0.1)),
            "born": rng.integers(1930, 2010, N),
            "bill": np.round(rng.lognormal(8, 1, N), 2),
            "row": rng.permutation(N) + 10**6,
            "note": [f"note {i}" for i in range(N)],
        }
    )


EVERY = Schema(
    {
        "zip": Postal(digits=3),
        "ward": Code(),
        "born": Year(),
        "bill": Money(lower=0),
        "row": Identifier(anew=True),
        "note": Text(),
    }
)


@pytest.mark.parametrize(
    ("kind", "released_as"),
    [
        (Code(), Categorical()),
        (Code(levels=("01", "02")), Categorical(levels=("01", "02"))),
        (Postal(digits=3, levels=("012", "021")), Categorical(levels=("012", "021"))),
        (Identifier(), None),
        (Text(), None),
        (Text(levels=("a", "b")), Categorical(levels=("a", "b"))),
        (Money(), Discrete(step=0.01)),
        (Percent(step=0.5), Discrete(step=0.5, lower=0, upper=100)),
        (Year(lower=1900), Discrete(step=1, lower=1900, upper=2199)),
    ],
)
def test_each_is_released_as_a_kind_or_left_out(kind: Any, released_as: Any) -> None:
    schema = Schema({"x": kind})
    assert schema.get("x") == released_as
    assert schema.meanings == {"x": kind}
    assert schema.left_out == (("x",) if released_as is None else ())
    assert Schema.from_toml(schema.to_toml()) == Schema.from_json(schema.to_json()) == schema
    assert Schema.from_toml(schema.to_toml()).meanings == {"x": kind}
    assert schema != Schema({"x": released_as or Categorical()})
    assert repr(kind) in repr(schema)


def test_names_of_people_are_text() -> None:
    assert Schema.from_toml('[who]\nkind = "name"\n') == Schema({"who": Text()})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Postal(digits=0),
        lambda: Postal(digits=True),
        lambda: Postal(digits=2, levels=("012",)),
        lambda: Code(levels=("01", "01")),
        lambda: Text(levels=()),
        lambda: Identifier(anew="yes"),  # type: ignore[arg-type]
        lambda: Money(step=0),
        lambda: Percent(lower=5, upper=5),
        lambda: Year(lower=float("nan")),
        lambda: Discrete(levels=(1, 2), lower=0),
    ],
)
def test_what_cannot_be_used_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(SchemaError):
        wrong()


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas, as_arrow])
@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}, {"holdout": 0.5}, {"labels": "public"}])
def test_tables_of_every_library(as_frame: Callable[..., Any], options: dict[str, Any]) -> None:
    given = as_frame(table())
    released = dipriv.privatize(given, EPSILON, schema=EVERY, **options).data
    assert type(released) is type(given)
    check(as_arrow(released) if isinstance(released, pd.DataFrame) else pa.table(released))
    if isinstance(released, pd.DataFrame):
        types = released.dtypes.astype(str).to_dict()
        assert types == table().drop(columns="note").dtypes.astype(str).to_dict() | {"ward": "Int64"}


def check(released: pa.Table) -> None:
    assert released.column_names == ["zip", "ward", "born", "bill", "row"]
    columns = {
        name: [cell for cell in released[name].to_pylist() if cell is not None] for name in released.column_names
    }
    assert {*columns["zip"]} - {OTHER} == {"012", "021", "606"}
    assert {*columns["ward"]} == {*CODES}
    assert all(isinstance(year, int) and 1800 <= year <= 2199 for year in columns["born"])
    assert all(round(amount, 2) == amount >= 0 for amount in columns["bill"])
    assert [int(row) for row in columns["row"]] == list(range(1, released.num_rows + 1))


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_files(ending: str, tmp_path: Path) -> None:
    frame, file, out = table(), tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write: Any = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[ending]
    write(file, index=False)
    dipriv.privatize_file(file, out, EPSILON, schema=EVERY)
    if ending == "parquet":
        check(pq.read_table(out))
        assert pq.read_schema(out).field("ward").type == pa.int64()
        return
    read = pd.read_csv(out, dtype=str) if ending == "csv" else pd.read_excel(out, dtype=str)
    assert {*read["zip"].dropna()} - {OTHER} == {"012", "021", "606"}
    assert {*read["ward"].dropna()} - {OTHER} == {str(code) for code in CODES}
    assert read["row"].tolist() == [str(row) for row in range(1, N + 1)]
    assert "note" not in read


def test_zeros_stay_from_text_files_and_numbers_stay_numbers(tmp_path: Path) -> None:
    codes = np.random.default_rng(1).choice(["01", "02", "10"], 600)
    (tmp_path / "in.csv").write_text("code,x\n" + "".join(f"{code},{i % 7}\n" for i, code in enumerate(codes)))
    release = dipriv.privatize(tmp_path / "in.csv", EPSILON, schema={"code": Code()})
    assert {*release.data.to_table()["code"].drop_null().to_pylist()} - {OTHER} == {"01", "02", "10"}
    release = dipriv.privatize(tmp_path / "in.csv", EPSILON, schema={"code": Code(levels=("01", "02", "10", "11"))})
    assert {*release.data.to_table()["code"].drop_null().to_pylist()} <= {"01", "02", "10", "11"}
    floats = pd.DataFrame({"code": np.where(np.arange(600) % 20 == 0, np.nan, np.arange(600) % 3 + 7.0)})
    released = dipriv.privatize(floats, EPSILON, schema={"code": Code()}).data["code"]
    assert released.dtype == np.float64
    assert {*released.dropna()} == {7.0, 8.0, 9.0}
    assert released.isna().any()


def test_whole_numbers_whose_codes_are_declared_keep_their_type() -> None:
    released = dipriv.privatize(table(), EPSILON, columns=["ward"], schema={"ward": Code(levels=CODES)}).data
    assert released["ward"].dtype == np.int64
    array = np.array([[code, 1] for code in CODES] * 50)
    schema = {"x0": Code(levels=CODES)}
    assert {*dipriv.privatize(array, EPSILON, schema=schema).data[:, 0]} <= {*CODES}
    refused(SchemaError, "'x0'", "no nulls", call=lambda: dipriv.privatize(array, EPSILON, schema={"x0": Code()}))


def test_as_quantities_codes_are_invented() -> None:
    """The control of the tests above: what happens to codes that nothing is said about."""
    codes = np.random.default_rng(3).choice(9000, 40, replace=False) + 1000
    frame = table().assign(ward=np.random.default_rng(4).choice(codes, N))[["ward", "born"]]
    assert not {*dipriv.privatize(frame, 1.0).data["ward"]} <= {*codes}
    assert {*dipriv.privatize(frame, 1.0, schema={"ward": Code()}).data["ward"].dropna()} <= {*codes}


def test_the_estimator_and_exported_references_know_codes(tmp_path: Path) -> None:
    fitted = dipriv.DIP(EPSILON, schema=EVERY).fit(table())
    released = fitted.transform(table(1))
    assert {*released["zip"].dropna()} - {OTHER} == {"012", "021", "606"}
    assert {*released["ward"].dropna()} == {*CODES}
    fitted.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference")
    record = local.privatize({"zip": "01234", "ward": 24, "born": 1980, "bill": 12.5})
    assert record["zip"] in (None, "012", "021", "606", "(other)")
    assert record["ward"] in (None, *CODES)


def test_rules_are_about_codes_as_they_are_released() -> None:
    rules = {"rules": ["zip = '012' => ward = 1"]}
    frame = table()
    frame.loc[frame["zip"].str.startswith("012"), "ward"] = 1
    kinds: dict[str, Any] = {"zip": Postal(digits=3), "ward": Code()}
    schema = Schema(kinds, **rules)  # type: ignore[arg-type]
    released = dipriv.privatize(frame, EPSILON, columns=["zip", "ward"], schema=schema).data
    assert (released["ward"][released["zip"] == "012"] == 1).all()


def test_neighbours_stay_neighbours_when_codes_are_cut() -> None:
    """A row's cut code depends on its own cell alone: seeded releases of two tables differ in no other row."""
    one, other = table(), table()
    other.loc[0, "zip"] = "99999"
    schema = Schema({"zip": Postal(digits=3, levels=("012", "021", "606", "999"))})
    settings: dict[str, Any] = {"columns": ["zip"], "schema": schema, "seed": 1, "public": table(2)}
    settings["public"].loc[:5, "zip"] = "99999"
    released = [dipriv.privatize(frame, 1.0, **settings).data["zip"] for frame in (one, other)]
    assert (released[0][1:] == released[1][1:]).all()


def test_types_that_do_not_suit_are_refused_all_at_once() -> None:
    frame = table().assign(day=pd.Timestamp("2024-01-01"))
    schema: dict[str, Any] = {"ward": Postal(digits=2), "day": Code(), "row": Identifier(anew=True)}
    refused(
        SchemaError,
        "'ward'",
        "no leading zeros",
        "'day'",
        call=lambda: dipriv.privatize(frame, 1.0, schema=schema),
    )
    refused(
        SchemaError,
        "'bill'",
        "made anew",
        call=lambda: dipriv.privatize(frame, 1.0, schema={"bill": Identifier(anew=True)}),
    )
    narrow = frame.assign(row=(frame["row"] % 100).astype(np.int8))
    refused(SchemaError, "'row'", "int8", call=lambda: dipriv.privatize(narrow, 1.0, schema={"row": schema["row"]}))
    refused(
        InputError,
        "'note'",
        "columns",
        call=lambda: dipriv.privatize(frame, 1.0, columns=["note"], schema={"note": Text()}),
    )
    refused(InputError, "'nowhere'", call=lambda: dipriv.privatize(frame, 1.0, schema={"nowhere": Identifier()}))


def test_problems_of_several_columns_are_one_error(tmp_path: Path) -> None:
    frame = pa.table(
        {
            "odd": ["1", "2", "x"] * 20,
            "list": [[1]] * 60,
            "void": pa.nulls(60),
            "fine": list(range(60)),
        }
    )
    pq.write_table(frame, tmp_path / "t.parquet")
    for data in (frame, tmp_path / "t.parquet"):
        refused(SchemaError, "'odd'", "'list'", "'void'", call=partial(dipriv.privatize, data, 1.0))
    texts = pd.DataFrame({name: [f"{name} {i}" for i in range(200)] for name in ("one", "two")})
    given: list[dict[str, Any]] = [{"labels": "public"}, {"reference": "holdout"}]
    for options in given:
        refused(SchemaError, "'one'", "'two'", call=partial(dipriv.privatize, texts, 1.0, **options))
    wrong = Schema({"zip": Discrete(step=1), "note": Money()})
    refused(SchemaError, "'zip'", "'note'", call=lambda: dipriv.privatize(table(), 1.0, schema=wrong))


def test_a_column_that_is_called_an_identifier_is_warned_of_by_its_name_alone() -> None:
    frame = table()[["ward", "born"]]
    for cells in (frame, frame * 0):  # whatever is in it
        with pytest.warns(UtilityWarning, match="'ward_id'"):
            dipriv.privatize(cells.rename(columns={"ward": "ward_id"}), EPSILON)
    renamed = frame.rename(columns={"ward": "ward_id"})
    with pytest.warns(UtilityWarning) as seen:
        dipriv.privatize(renamed, 0.01, schema={"ward_id": Code()})  # too few rows for that
    assert not any("identifier" in str(warning.message) for warning in seen)


@pytest.mark.parametrize("name", ["Name", "Vorname", "last_name", "customerName", "patient", "E-Mail", "phone number"])
def test_a_column_that_is_called_names_of_people_is_warned_of_by_its_name_alone(name: str) -> None:
    frame = table()[["ward", "born"]]
    for cells in (frame, frame * 0):  # whatever is in it
        with pytest.warns(UtilityWarning, match=f"'{name}': by the name, names of people.* Leave it out"):
            dipriv.privatize(cells.rename(columns={"ward": name}), EPSILON)
    for other, schema in ((name, {name: Code()}), ("country_name", {}), ("patient_age", {})):
        with pytest.warns(UtilityWarning) as seen:
            dipriv.privatize(frame.rename(columns={"ward": other}), 0.01, schema=schema)  # too few rows for that
        assert not any("of people" in str(warning.message) for warning in seen)


def test_new_identifiers_say_nothing_but_the_place() -> None:
    one, other = table(), table()
    other["row"] = other["row"].sample(frac=1, random_state=1).to_numpy() * 3
    schema = {"row": Identifier(anew=True)}
    released = [dipriv.privatize(frame, 1.0, seed=1, schema=schema).data for frame in (one, other)]
    pd.testing.assert_frame_equal(released[0], released[1])
    assert "row" not in dipriv.privatize(one, 1.0, schema={"row": Identifier()}).data
    assert (dipriv.privatize(one, 1.0, schema=schema, keep=["row"]).data["row"] == one["row"]).all()
    held = dipriv.privatize(one, 1.0, schema=schema, holdout=0.5).data
    assert held["row"].tolist() == list(range(1, len(held) + 1))


@pytest.mark.parametrize("odd", [7, "A7", None])
def test_no_cell_changes_the_type_of_new_identifiers(odd: object, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": pd.Series([*range(99), odd], dtype=object), "x": np.arange(100) % 7})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for file in ("t.jsonl", "t.csv"):
        found = dipriv.privatize(tmp_path / file, 1.0, schema={"id": Identifier(anew=True)}).data.to_table()["id"]
        assert found.type == pa.int64()
        assert found.to_pylist() == list(range(1, 101))


def test_bounded_steps_are_levels_in_order() -> None:
    assert Discrete(step=5, lower=1, upper=21).multiples() == (5, 10, 15, 20)
    assert Discrete(step=0.01, lower=0, upper=1e6).multiples() is None
    bounded, unbounded = (
        ~dipriv.privatize(table(), 2.0, columns=["born", "ward"], schema=schema).data["born"].between(1930, 2009)
        for schema in ({"born": Year()}, {})
    )
    assert bounded.mean() < 0.2 < unbounded.mean()
    inside = Discrete(step=1, lower=1950, upper=1999)
    released = dipriv.privatize(table(), 1.0, columns=["born"], schema={"born": inside}).data["born"]
    assert released.between(1950, 1999).all()
    refused(
        SchemaError,
        "outside the declared bounds",
        call=lambda: dipriv.privatize(table(), 1.0, reference="holdout", columns=["born"], schema={"born": inside}),
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}])
@pytest.mark.parametrize(
    "name", ["int64", "int8", "uint64", "float64", "float32", "text", "text view", "labels", "labels of numbers"]
)
def test_no_cell_of_a_column_of_codes_is_refused(name: str, options: dict[str, Any]) -> None:
    arrow_type, ordinary, odd = TYPES[name]
    is_text = name in ("text", "text view", "labels")
    for kind in (Code(), *([Postal(digits=2)] if is_text else [])):
        for cell in (*odd, None):
            cells = [ordinary(k) for k in range(120)]
            cells[7] = cell
            frame = pa.table({"x": pa.array(cells, arrow_type), "y": np.arange(120) % 5})
            schema: dict[str, Any] = {"x": kind}
            release = dipriv.privatize(frame, 1.0, schema=schema, seed=3, **options)
            assert release.data.schema.field("x").type == arrow_type
            assert "x" in str(release.guarantee)


def test_later_tables_with_odd_objects_are_cut_cell_by_cell() -> None:
    frame = pd.DataFrame({"zip": table()["zip"].astype(object), "born": table()["born"]})
    fitted = dipriv.DIP(EPSILON, schema={"zip": Postal(digits=3)}).fit(frame)
    for odd in ([1234] * 10, [None] * 10, ["01234", 5, None, 2.5, "02139"] * 2, [b"01"] * 10):
        later = pd.DataFrame({"zip": pd.Series(odd, dtype=object), "born": [1990] * 10})
        released = fitted.transform(later)["zip"]
        assert {*released.dropna()} <= {"012", "021", "606", "(other)"}
    labels = frame.assign(zip=frame["zip"].astype("category"))
    released = dipriv.privatize(labels, EPSILON, schema={"zip": Postal(digits=3)}).data["zip"]
    assert {*released.dropna()} - {OTHER} == {"012", "021", "606"}
    assert released.dtype == "category"


RUNS = 20


def national() -> pd.DataFrame:
    path = data_folder() / "sdnist" / "national2019.parquet"
    if not path.exists():
        pytest.skip(f"national2019 not found in the data folder {data_folder().name}; set DIPRIV_DATA")
    frame = pd.read_parquet(path)
    return frame.assign(PUMA=frame["PUMA"].str[3:])  # five digits, some with leading zeros


@pytest.mark.slow
def test_codes_of_a_national_survey_in_a_text_file(tmp_path: Path) -> None:
    """A code is never invented; one that the codebook lists, or enough rows have, is kept in every run.

    A label is published if its noisy count reaches the threshold, so one with as many rows as the threshold and z
    standard deviations more is kept with probability Φ(z): here for all codes of all runs together 1 - 1e-4. Noise adds
    digits to the one column of reals that has none (PINCP) in a run with a chance of 6e-6.
    """
    frame = national()
    frame.to_csv(tmp_path / "national.csv", index=False)
    texts = [str(name) for name in frame if is_string_dtype(frame[name]) and name not in ("PUMA", "POVPIP")]
    codebook: dict[str, Any] = {"HISP": Code(levels=tuple("01234")), "PUMA": Postal(), "POVPIP": Discrete(step=1)}
    schema = Schema({**dict.fromkeys(texts, Code()), **codebook})
    plan = prepare(open_source(tmp_path / "national.csv"), ReleaseOptions(1.0, schema=schema))
    learning: Any = plan.fit_plan._learning
    costs = {of.name: cost for of, cost in zip(learning.domains, learning.shares.columns, strict=True)}
    shares, margin = learning.shares, stats.norm.isf(1e-4 / (RUNS * 100))
    beyond = {name: margin * Spread.of(shares.kind, float(cost)).deviation for name, cost in costs.items()}
    true = {name: frame[name].value_counts() for name in ("HISP", "RAC1P", "PUMA")}
    enough = {name: 1 + _threshold(shares, costs[name]) + beyond[name] for name in ("RAC1P", "PUMA")}
    enough["HISP"] = beyond["HISP"]  # declared: there is no threshold
    kept = {name: {*times.index[times >= enough[name]]} for name, times in true.items()}
    assert len(kept["HISP"]) >= 3 <= len(kept["RAC1P"])
    assert true["RAC1P"].min() < enough["RAC1P"]  # control: some codes are too rare to be published
    for _ in range(RUNS):
        released = dipriv.privatize(tmp_path / "national.csv", 1.0, schema=schema).data.to_table()
        for name, codes in kept.items():
            assert codes <= {*released[name].to_pylist()} <= {*true[name].index, None, "(other)"}
        for name in ("AGEP", "PWGTP", "WGTP", "PINCP", "POVPIP"):
            numbers = released[name].drop_null().to_numpy()
            assert np.all(numbers == np.rint(numbers)), name


@pytest.mark.slow
def test_whole_numbers_of_a_national_survey_keep_their_rare_codes(tmp_path: Path) -> None:
    """Hispanic origin 0 to 4 and race 1 to 9, of which one has two rows, in a text file of which nothing is declared.

    A rare code has about ten rows in the reference, so that it is missing from a release with a chance of exp(-10).
    """
    frame = national()[["AGEP", "SEX", "MSP", "HISP", "RAC1P", "EDU", "PINCP_DECILE", "DVET", "PUMA"]]
    frame.to_csv(tmp_path / "national.csv", index=False)
    for seed in range(5):
        released = dipriv.privatize(tmp_path / "national.csv", 1.0, missing=["N"], seed=seed).data.to_table()
        assert {*released["HISP"].to_pylist()} == {*range(5)}
        assert {*released["RAC1P"].to_pylist()} == {*range(1, 10)}
        assert {*released["PUMA"].to_pylist()} <= {*frame["PUMA"], None, "(other)"}  # control: labels have no floor


@pytest.mark.slow
def test_an_audit_takes_codes_as_a_release_does() -> None:
    found = dipriv.audit(table(), 1.0, schema=EVERY, draws=20_000, seed=1)
    assert found.passed


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from session(tmp_path_factory.mktemp("log"))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}])
def test_spark_knows_codes(spark: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    table().to_parquet(tmp_path / "t.parquet")
    frame = spark.read.parquet(f"file://{tmp_path}/t.parquet")
    released = dipriv.privatize(frame, EPSILON, schema=EVERY, **options).data.toPandas()
    assert list(released) == ["zip", "ward", "born", "bill", "row"]
    assert {*released["zip"].dropna()} - {OTHER} == {"012", "021", "606"}
    assert {*released["ward"].dropna()} == {*CODES}
    assert sorted(released["row"]) == list(range(1, len(released) + 1))
