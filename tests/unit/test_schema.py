"""Schemas are frozen public facts: they round trip through TOML and JSON and never show a level."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dipriv
from dipriv import Categorical, Continuous, Datetime, Discrete, InputError, Mixed, Schema, SchemaError
from dipriv.schema import RESOLUTIONS, Kind, lattice
from tests.unit.refusal import refused

finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.lists(finite | st.integers(-(2**60), 2**60), min_size=1, max_size=5, unique=True).map(tuple)
text = st.text("aZ0 .=#[]\"'\\\n\té漢\U0001f600", max_size=8)
kinds: st.SearchStrategy[Kind] = st.one_of(
    st.tuples(finite, finite).filter(lambda b: b[0] < b[1]).map(lambda b: Continuous(*b)),
    st.just(Continuous()),
    numbers.map(lambda levels: Discrete(levels=levels)),
    st.sampled_from([1, 5, 0.1, 0.01]).map(lambda step: Discrete(step=step)),
    numbers.map(lambda atoms: Mixed(atoms=atoms)),
    st.lists(text, min_size=1, max_size=5, unique=True).map(lambda levels: Categorical(levels=tuple(levels))),
    st.just(Categorical(levels=(False, True), encoding="onehot")),
    st.sampled_from(RESOLUTIONS).map(lambda unit: Datetime(resolution=unit)),
)


@given(st.dictionaries(text, kinds, max_size=5))
def test_schemas_round_trip(plain: dict[str, Kind]) -> None:
    schema = Schema(plain)
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_schemas_are_saved_and_loaded(tmp_path: Path, ending: str) -> None:
    schema = Schema({"größe": Continuous(lower=0), "sex": Categorical(levels=("f", "m"))})
    schema.save(tmp_path / f"schema.{ending}")
    assert Schema.load(tmp_path / f"schema.{ending}") == schema
    (tmp_path / f"broken.{ending}").write_text("age = [")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load(tmp_path / f"broken.{ending}")


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: Continuous(2, 1), "not below"),
        (lambda: Continuous(lower=float("nan")), "finite"),
        (lambda: Discrete(levels=(1, 1)), "repeat"),
        (lambda: Discrete(levels=()), "empty"),
        (lambda: Discrete(levels=("a",)), "type"),  # type: ignore[arg-type]
        (lambda: Discrete(levels=(1,), step=1), "both"),
        (lambda: Discrete(step=1 / 3), "step"),
        (lambda: Discrete(step=0), "step"),
        (lambda: Mixed(atoms=(float("inf"),)), "cannot be used"),
        (lambda: Categorical(levels="abc"), "expected levels as a list"),  # type: ignore[arg-type]
        (lambda: Categorical(encoding="dummy"), "unknown"),  # type: ignore[arg-type]
        (lambda: Datetime(resolution="week"), "unknown"),  # type: ignore[arg-type]
        (lambda: Schema({"a": "continuous"}), "expected a kind"),  # type: ignore[dict-item]
        (lambda: Schema({1: Continuous()}), "text names"),  # type: ignore[dict-item]
        (lambda: Schema.from_dict({"a": {"kind": "real"}}), "no known kind"),
        (lambda: Schema.from_dict({"a": {"kind": "discrete", "step": 0}}), "column 'a': Discrete"),
        (lambda: Schema.from_dict({"a": {"kind": "continuous", "min": 0}}), "no field 'min'"),
    ],
)
def test_bad_schemas_are_refused(build: object, match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        build()  # type: ignore[operator]


def test_a_type_is_no_kind() -> None:
    call = partial(Schema.from_toml, '[age]\nkind = "number"\n')
    fault = refused(SchemaError, "'age'", "number is a type", "--type", call=call)
    assert 'kind = "continuous" or kind = "discrete"' in fault.remedy
    assert "did you mean" not in str(fault)


def test_all_that_is_wrong_with_a_schema_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(
        'rules = ["a <> b"]\n[a]\nkind = "discrete"\nmin = 0\nmax = 1\n'
        '[b]\nkind = "reel"\n[c]\nkind = "discrete"\nstep = 0\n'
    )
    words = ("schema.toml", "'a'", "'min'", "'max'", "'b'", "no known kind", "'c'", "step=0", "a <> b")
    refused(SchemaError, *words, call=lambda: Schema.load(file))
    file.write_text('rules = ["a <= b"]\n[a]\nkind = "discrete"\n[b]\nkind = "discrete"\n')  # control
    assert len(Schema.load(file)) == 2


@pytest.mark.parametrize("as_path", [str, Path])
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_schema_may_be_the_path_of_its_file(tmp_path: Path, ending: str, as_path: Any) -> None:
    table = pd.DataFrame({"age": [20, 30, 40, 50] * 15, "sex": ["f", "m"] * 30})
    table.to_csv(tmp_path / "table.csv", index=False)
    schema = Schema({"age": Discrete(step=1, lower=0, upper=120), "sex": Categorical(levels=("f", "m"))})
    file = as_path(tmp_path / f"schema.{ending}")
    schema.save(file)
    out = tmp_path / "out.csv"
    release = dipriv.privatize(table, 1.0, schema=file)
    written = dipriv.privatize_file(tmp_path / "table.csv", out, 1.0, schema=file)
    fitted = dipriv.DIP(schema=file).fit(table)
    for found in (release.schema, written.schema, fitted.schema_):
        assert found["age"] == schema["age"]
    assert dipriv.plan(table, 1.0, schema=file) == dipriv.plan(table, 1.0, schema=schema)
    assert {one.name for one in dipriv.compare(table, release.data, schema=file).columns} == {"age", "sex"}


def test_errors_name_the_file_of_a_schema(tmp_path: Path) -> None:
    table, file = pd.DataFrame({"age": range(60)}), tmp_path / "broken.toml"
    refused(InputError, "broken.toml", "not a file", call=lambda: dipriv.privatize(table, 1.0, schema=str(file)))
    file.write_text('[age]\nkind = "discrete"\nstep = "one"\n')
    refused(SchemaError, "broken.toml", "'age'", call=lambda: dipriv.privatize(table, 1.0, schema=file))
    refused(SchemaError, "Schema.load", call=lambda: dipriv.privatize(table, 1.0, schema=[]))  # type: ignore[call-overload]


def test_a_repr_counts_levels_and_shows_none() -> None:
    schema = Schema(
        {"a": Discrete(levels=(111, 222)), "b": Categorical(levels=("secret",)), "c": Mixed(atoms=(333.0,))}
    )
    assert not any(word in repr(schema) for word in ("111", "222", "secret", "333"))
    assert "Discrete(levels=2)" in repr(schema)


def test_steps_are_exact_lattices() -> None:
    assert lattice(1) == (1, 1)
    assert lattice(0.001) == (1, 1000)
    assert lattice(True) is None
    assert lattice(2.5) == (25, 10)
    assert lattice(1 / 7) is None


def test_inference_reads_what_people_mean() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    frame = pd.DataFrame(
        {
            "height": rng.normal(170, 10, n),
            "rating": rng.integers(1, 11, n) / 2,
            "pay": np.round(rng.lognormal(10, 1, n), 2),
            "hours": np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n)),
            "count": rng.integers(0, 10**6, n),
            "age": rng.integers(18, 90, n),
            "smokes": rng.random(n) < 0.2,
            "sex": rng.choice(["f", "m"], n),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), unit="D"),
            "constant": 1.5,
        }
    )
    expected = {
        "height": Continuous(),
        "rating": Discrete(levels=tuple(np.arange(1, 11) / 2)),
        "pay": Discrete(step=0.01),
        "hours": Mixed(atoms=(0.0,)),
        "count": Discrete(step=1),
        "age": Discrete(levels=tuple(range(18, 90))),
        "smokes": Categorical(),
        "sex": Categorical(levels=("f", "m")),
        "born": Datetime(resolution="day"),
        "constant": Discrete(levels=(1.5,)),
    }
    assert dict(dipriv.infer_schema(frame)) == expected


def test_errors_are_values_too() -> None:
    with pytest.raises(ValueError, match="not below"):
        Continuous(2, 1)
    assert issubclass(SchemaError, InputError)


def test_a_year_is_no_time_of_day() -> None:
    with pytest.raises(SchemaError, match="not a date or a time"):
        Datetime(lower="2025")
    with pytest.raises(SchemaError, match="not a date or a time"):
        Datetime(lower=pd.NaT)  # type: ignore[arg-type]
    assert Datetime(lower="20:25").lower == "20:25:00"  # control
