"""Local use: public references are exported as data and privatize records where they are; others refuse."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random import bits
from dipriv._tables import frames
from dipriv.guarantee import Model
from dipriv.references import Empirical, Grouped, Known, Mixture, Parametric
from dipriv.schema import Categorical
from tests.support import dkw, ks

RNG = np.random.default_rng(0)
N = 500
PUBLIC = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "pay": np.where(RNG.random(N) < 0.2, 0.0, RNG.lognormal(size=N)),
        "sex": pd.Categorical(RNG.choice(["f", "m", "x"], N), categories=["m", "f", "x"], ordered=True),
        "city": pd.Series(RNG.choice(["Bonn", "Köln", ""], N)).replace("", None),
        "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(RNG.integers(0, 9000, N), unit="D"),
        "ok": RNG.random(N) < 0.5,
    }
)
RECORD = {"age": 44, "pay": 1.25, "sex": "f", "city": None, "born": dt.datetime(1999, 5, 1), "ok": True}


def exported(path: Path, frame: pd.DataFrame = PUBLIC, **parameters: object) -> dipriv.LocalReference:
    dipriv.DIP(2.0, **parameters).fit(frame).export_local(path / "reference.dipriv")  # type: ignore[arg-type]
    return dipriv.load_local(path / "reference.dipriv")


def test_one_record_comes_back_as_a_record(tmp_path: Path) -> None:
    local = exported(tmp_path, reference=Empirical(order="random"), public=PUBLIC)
    released = local.privatize(RECORD)
    assert released.keys() == RECORD.keys()
    assert isinstance(released["age"], int)
    assert isinstance(released["ok"], bool)
    assert released["sex"] in ("m", "f", "x")
    assert released["city"] in ("Bonn", "Köln", None)
    assert released["born"].hour == 0
    assert local.guarantee.model is Model.LOCAL
    assert "local differential privacy" in str(local.guarantee)
    assert "from everyone else, the collector included" in str(local.guarantee)


def test_a_batch_comes_back_as_a_table_with_the_same_law(tmp_path: Path) -> None:
    n = 50_000
    local = exported(tmp_path, PUBLIC[["pay"]], reference=Known(stats.expon()))
    released = local.privatize(pd.DataFrame({"pay": RNG.exponential(size=n)}))
    assert ks(released["pay"].to_numpy(), stats.expon()) < dkw(n)
    assert ks(released["pay"].to_numpy(), stats.expon(scale=1.1)) > dkw(n)  # control


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_other_libraries_may_load_what_one_exported(tmp_path: Path, library: str) -> None:
    columns = ["age", "pay", "city", "ok"]
    local = exported(tmp_path, PUBLIC[columns], public=PUBLIC)
    frames = {
        "pandas": PUBLIC[columns],
        "polars": pl.from_pandas(PUBLIC[columns]),
        "pyarrow": pa.table(PUBLIC[columns]),
    }
    released = local.privatize(frames[library])
    assert type(released) is type(frames[library])
    assert released.shape == (N, 4)


@pytest.mark.parametrize(
    "recipe",
    [
        Known(stats.norm(3, 2)),
        Known(stats.gamma(2.0, scale=3.0)),
        Known(stats.poisson(4)),
        Known(stats.rv_discrete(values=([1, 2, 8], [0.2, 0.3, 0.5]))),
        Known(Mixture({0.0: 0.5}, stats.norm())),
        Known(stats.multivariate_normal([0], [[2.0]])),
        Parametric("norm"),
        Empirical(edge="paper"),
    ],
    ids=lambda recipe: recipe.describe(),
)
def test_loading_gives_the_same_mechanism(tmp_path: Path, recipe: Known | Parametric | Empirical) -> None:
    frame = pd.DataFrame({"z": RNG.poisson(3, 300)})
    dip = dipriv.DIP(2.0, reference=recipe, public=None if isinstance(recipe, Known) else frame).fit(frame)
    dip.export_local(tmp_path / "r.dipriv")
    local = dipriv.load_local(tmp_path / "r.dipriv", seed=5)
    assert not local.guarantee.secure_randomness
    expected = dip.mechanism_.release(frames.read(frame), (), bits.source(5))
    pd.testing.assert_frame_equal(local.privatize(frame), expected)


def test_onehot_is_exported_too(tmp_path: Path) -> None:
    frame = PUBLIC[["sex", "city"]].astype(object)
    schema = {"sex": Categorical(encoding="onehot"), "city": Categorical(encoding="onehot")}
    local = exported(tmp_path, frame, public=frame, schema=schema)
    assert local.privatize({"sex": "f", "city": None})["sex"] in ("m", "f", "x")


def test_references_with_private_rows_refuse_to_be_exported(tmp_path: Path) -> None:
    for recipe in ("holdout", Parametric("norm"), Grouped(by="age")):
        frame = PUBLIC[["age", "pay"]] if isinstance(recipe, Grouped) else PUBLIC[["pay"]]
        dip = dipriv.DIP(1.0, reference=recipe).fit(frame)
        with pytest.raises(dipriv.DisclosureError, match="not known to be public"):
            dip.export_local(tmp_path / "reference.dipriv")
    assert list(tmp_path.iterdir()) == []


def test_a_record_with_other_columns_is_refused(tmp_path: Path) -> None:
    local = exported(tmp_path, public=PUBLIC)
    with pytest.raises(dipriv.InputError, match="1 columns that the reference does not have") as caught:
        local.privatize(RECORD | {"many": 1})
    assert "many" not in str(caught.value)


@pytest.mark.parametrize("record", [{}, {"age": 3}, RECORD | {"age": "many"}], ids=["none", "some", "text"])
def test_what_a_record_lacks_is_missing(tmp_path: Path, record: dict[str, object]) -> None:
    released = exported(tmp_path, public=PUBLIC).privatize(record)
    assert released.keys() == RECORD.keys()
    assert [name for name, value in released.items() if value is None] in ([], ["city"])


@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=["pandas", "polars", "arrow"]
)
def test_a_table_of_nothing_but_nulls_has_the_types_of_the_reference(tmp_path: Path, library: Any) -> None:
    local = exported(tmp_path, PUBLIC[["age", "city"]], public=PUBLIC)
    released = local.privatize(library([{"age": None, "city": None}] * 3))
    assert released.shape == (3, 2)
    assert all(18 <= int(str(age)) < 90 for age in released["age"])


@pytest.mark.parametrize("content", [b"", b"PK", b'{"format": 1}', b"\x80\x04pickle"])
def test_files_that_are_not_ours_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.dipriv").write_bytes(content)
    with pytest.raises(dipriv.InputError, match="not a file that dipriv exported"):
        dipriv.load_local(tmp_path / "r.dipriv")


def test_a_crafted_file_cannot_name_code(tmp_path: Path) -> None:
    import json

    for plain in ({"law": "os", "args": [], "kwds": {}}, {"class": "Path", "fields": {}}, {"law": "test"}):
        manifest = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
        np.savez(tmp_path / "r.npz", manifest=manifest)
        with pytest.raises(dipriv.InputError):
            dipriv.load_local(tmp_path / "r.npz")
