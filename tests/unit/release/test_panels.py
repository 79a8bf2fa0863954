"""Several rows a person: rows stay together under new keys, in their order, and constant columns are released once."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dipriv
from dipriv.errors import InputError, RuleWarning
from dipriv.guarantee import AssumptionKind
from dipriv.kernels._cap.kernel import CapKernel
from dipriv.references import Known
from dipriv.release.options import ReleaseOptions
from dipriv.schema import Categorical, Continuous, Discrete, Kind, Schema
from dipriv.sources import stream
from dipriv.sources.protocol import Persons
from tests.support import ALARM
from tests.unit.refusal import refused

PERSONS, EACH = 300, 4
RNG = np.random.default_rng(5)
WHOSE = RNG.permutation(np.repeat(np.arange(PERSONS), EACH))
PANEL = pd.DataFrame(
    {
        "sex": np.where(WHOSE % 3 == 0, "f", "m"),
        "who": [f"key-{number:04d}" for number in WHOSE],
        "wave": RNG.integers(1, 6, len(WHOSE)),
        "born": 1940 + WHOSE % 60,
        "pay": RNG.normal(30, 5, len(WHOSE)),
    },
    index=np.arange(len(WHOSE)) + 7,
)
ARROW = pa.Table.from_pandas(PANEL, preserve_index=False)
KINDS: dict[str, Kind] = {
    "sex": Categorical(levels=("f", "m")),
    "wave": Discrete(levels=(1, 2, 3, 4, 5)),
    "born": Discrete(step=1),
    "pay": Continuous(lower=0.0, upper=60.0),
}
ASKED: dict[str, Any] = {"unit": "who", "rows_per_unit": 3, "schema": KINDS, "kernel": "laplace", "seed": 4}
CONSTANT = ["sex", "born"]


def numbers(values: Any) -> list[int]:
    return (pd.factorize(np.asarray(values))[0] + 1).tolist()


@pytest.fixture(scope="module")
def released() -> Any:
    return dipriv.privatize(PANEL, 4.0, constant=CONSTANT, **ASKED)


def test_rows_of_a_person_have_the_same_new_key_in_the_order_of_the_table(released: Any) -> None:
    chosen = PANEL.iloc[released.secrets.row_positions]
    assert list(released.data) == list(PANEL)
    assert released.data.index.tolist() == chosen.index.tolist()
    assert released.data["who"].tolist() == numbers(chosen["who"])
    assert released.data["who"].dtype == np.int64
    assert np.bincount(released.data["who"]).max() == 3
    assert "who" not in released.schema


def test_constant_columns_are_equal_in_all_rows_of_a_person_and_others_are_not(released: Any) -> None:
    different = released.data.groupby("who").nunique().max()
    assert different[CONSTANT].tolist() == [1, 1]
    assert (different[["wave", "pay"]] > 1).all()
    without = dipriv.privatize(PANEL, 4.0, **ASKED).data.groupby("who").nunique().max()  # control
    assert (without > 1).all()


def test_persons_do_not_share_their_constants(released: Any) -> None:
    assert len(released.data["born"].unique()) > 20


def test_the_guarantee_says_what_belongs_together(released: Any) -> None:
    kinds = {one.kind: one.names for one in released.guarantee.assumptions}
    assert kinds[AssumptionKind.UNIT_RENUMBERED] == ("who",)
    assert kinds[AssumptionKind.UNIT_CONSTANTS] == ("sex", "born")
    said = str(released.guarantee)
    assert "every person, with all of their rows together" in said
    assert "the release shows which rows belong to one person: 'who' has new keys" in said
    assert "a person's rows have the same released values of 'sex', 'born'" in said
    assert dipriv.Guarantee.from_dict(released.guarantee.to_dict()) == released.guarantee


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"drop": ["who"]}, None),
        ({"columns": ["pay", "sex"]}, None),
        ({"columns": ["pay", "who"]}, "new"),
        ({"keep": ["who"]}, "old"),
    ],
    ids=["drop", "columns", "columns with it", "keep"],
)
def test_the_column_of_the_unit_can_be_left_out_or_kept(options: dict[str, Any], expected: str | None) -> None:
    release = dipriv.privatize(PANEL, 4.0, **ASKED | options)
    said = {one.kind for one in release.guarantee.assumptions}
    assert (AssumptionKind.UNIT_RENUMBERED in said) is (expected == "new")
    if expected is None:
        assert "who" not in release.data
    else:
        chosen = PANEL["who"].iloc[release.secrets.row_positions]
        assert release.data["who"].tolist() == (numbers(chosen) if expected == "new" else chosen.tolist())


@pytest.fixture(scope="module")
def of_arrow() -> pa.Table:
    """Where every column may have nulls, as in files."""
    return dipriv.privatize(ARROW, 4.0, constant=CONSTANT, **ASKED).data


def test_other_libraries_have_the_same_rows(of_arrow: pa.Table) -> None:
    found = dipriv.privatize(pl.DataFrame(pl.from_arrow(ARROW)), 4.0, constant=CONSTANT, **ASKED).data
    assert found.to_dicts() == of_arrow.to_pylist()
    assert found["who"].dtype == pl.Int64
    assert of_arrow.schema.field("who").type == pa.int64()


@pytest.mark.parametrize(("persons", "dtype"), [(100, np.int8), (256, np.int64)])
def test_numpy_has_room_for_all_keys(persons: int, dtype: Any) -> None:
    rows = np.stack([np.arange(512) % persons - persons // 2, np.arange(512) % 7], axis=1).astype(np.int8)
    found = dipriv.privatize(rows, 1.0, unit="x0", seed=1).data
    assert found.dtype == dtype
    assert found[:, 0].tolist() == numbers(rows[:, 0])


def test_no_original_key_is_in_what_is_published(tmp_path: Path) -> None:
    PANEL.to_csv(tmp_path / "in.csv", index=False)
    options: dict[str, Any] = {name: value for name, value in ASKED.items() if name != "seed"}

    def published(**more: Any) -> bytes:
        out = tmp_path / "out.csv"
        release = dipriv.privatize_file(tmp_path / "in.csv", out, 4.0, force=True, constant=CONSTANT, **options, **more)
        in_memory = dipriv.privatize(PANEL, 4.0, constant=CONSTANT, **options, **more)
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("out.csv"))
        return files + pickle.dumps(in_memory) + repr(release).encode() + str(release.guarantee).encode()

    assert b"key-0" not in published()
    assert b"key-0" in published(keep=["who"])  # control


@pytest.mark.parametrize("rows", [16, 100])
def test_files_in_blocks_have_the_rows_of_the_table_in_memory(
    rows: int, of_arrow: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", rows)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", rows)
    pq.write_table(ARROW, tmp_path / "in.parquet")
    found = dipriv.privatize(tmp_path / "in.parquet", 4.0, constant=CONSTANT, **ASKED).data
    for _ in range(2):  # reading again gives the same rows
        assert found.to_table().to_pylist() == of_arrow.to_pylist()
    assert found.schema.field("who").type == pa.int64()


def test_a_person_whose_rows_differ_is_told_to_the_keeper_before_anything_is_spent(tmp_path: Path) -> None:
    table = PANEL.copy()
    twice = table.index[table["who"] == table["who"].iloc[0]][:2]
    table.loc[twice, "sex"] = ["f", "m"]
    options = ASKED | {"rows_per_unit": EACH, "constant": CONSTANT}
    with pytest.warns(RuleWarning, match="'sex' is called constant, but rows of 1 persons differ"):
        release = dipriv.privatize(table, 4.0, **options)
    assert release.data.groupby("who")[CONSTANT].nunique().max().tolist() == [1, 1]
    ledger = dipriv.Ledger.create(tmp_path / "ledger.db")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuleWarning)
        with pytest.raises(RuleWarning):
            dipriv.privatize(table, 4.0, ledger=ledger, dataset="panel", **options)
    assert ledger.datasets() == []


def test_nulls_in_constant_columns_are_cells_like_others() -> None:
    table = PANEL.assign(born=PANEL["born"].astype("Int64").where(PANEL["born"] % 2 == 0))
    found = dipriv.privatize(table, 8.0, constant=["born"], **ASKED).data
    by_person = found.groupby("who")["born"]
    assert (by_person.nunique(dropna=False) == 1).all()
    assert 0 < found["born"].isna().mean() < 1


def test_what_is_refused() -> None:
    refused(InputError, "without a unit", call=lambda: dipriv.privatize(PANEL, 1.0, constant=["sex"]))
    refused(
        InputError,
        "'who', which is not privatized",
        call=lambda: dipriv.privatize(PANEL, 1.0, unit="who", constant=["sex", "who"]),
    )
    refused(InputError, "'sax'", call=lambda: dipriv.privatize(PANEL, 1.0, unit="who", constant=["sax"]))
    refused(
        InputError,
        "would decide all others",
        call=lambda: dipriv.privatize(PANEL, 1.0, unit="who", constant=["sex"], reference="holdout"),
    )
    refused(InputError, "list of names", call=lambda: dipriv.privatize(PANEL, 1.0, unit="who", constant="sex"))


def test_a_constant_column_that_follows_from_others_needs_them_constant() -> None:
    table = PANEL.assign(old=np.where(PANEL["born"] < 1970, "yes", "no"))
    schema = Schema(KINDS | {"old": Categorical(levels=("no", "yes"))}, rules=["born < 1970 => old = 'yes'"])
    options = ASKED | {"schema": schema}
    refused(
        InputError,
        "'old' may differ where 'born' does",
        call=lambda: dipriv.privatize(table, 4.0, constant=["old"], **options),
    )
    found = dipriv.privatize(table, 4.0, constant=["old", "born"], **options).data
    assert found.groupby("who")[["old", "born"]].nunique().max().tolist() == [1, 1]
    assert (found["old"][found["born"] < 1970] == "yes").all()


def dependence(frame: pd.DataFrame) -> float:
    """How much likelier `late` is for men than for women, in all but the first rows of persons."""
    later = frame[frame.groupby("who").cumcount() > 0]
    share = later.groupby("sex")["late"].mean()
    return float(share["m"] - share["f"])


def test_constant_and_varying_columns_depend_on_each_other_as_before() -> None:
    """n rows a sex have shares within Hoeffding's bound; noise on the counts of the reference is far below that."""
    persons, true = 8000, {"f": 0.2, "m": 0.8}
    rng = np.random.default_rng(3)
    who = rng.permutation(np.repeat(np.arange(persons), 2))
    sex = np.where(who % 2 == 0, "f", "m")
    table = pd.DataFrame({"who": who, "late": rng.random(len(who)) < np.where(sex == "m", 0.8, 0.2), "sex": sex})
    asked: dict[str, Any] = {"unit": "who", "rows_per_unit": 2, "schema": {"sex": KINDS["sex"]}, "seed": 11}
    found = dipriv.privatize(table, 2.0, constant=["sex"], **asked).data
    allowed = 4 * np.sqrt(np.log(4 / ALARM) / (2 * 0.45 * persons))  # private and released, two shares each
    expected = true["m"] - true["f"]
    assert abs(dependence(found) - expected) < allowed
    copied = dipriv.privatize(table, 2.0, **asked).data  # control: the first row's label, copied without the chain rule
    copied["sex"] = copied.groupby("who")["sex"].transform("first")
    assert abs(dependence(copied) - expected) > allowed


def test_constant_columns_of_a_known_distribution() -> None:
    law = Known({"height": stats.norm(170, 10), "pulse": stats.norm(70, 8)})
    person = np.repeat(np.arange(2000), 3)
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"pulse": rng.normal(70, 8, 6000), "who": person, "height": rng.normal(170, 10, 2000)[person]})
    found = dipriv.privatize(table, 9.0, reference=law, unit="who", rows_per_unit=3, constant=["height"], seed=2)
    assert (found.data.groupby("who")["height"].nunique() == 1).all()
    heights = found.data.groupby("who")["height"].first()
    assert stats.kstest(heights, stats.norm(170, 10).cdf).pvalue > ALARM
    assert stats.kstest(found.data["pulse"], stats.norm(70, 8).cdf).pvalue > ALARM
    both = np.corrcoef(heights, table.groupby("who")["height"].first())[0, 1]
    assert both == pytest.approx(
        found.fidelity["height"], abs=6 / np.sqrt(2000)
    )  # the noise of one row, and no other's


def test_what_is_shared_comes_from_the_first_row_whatever_the_blocks() -> None:
    values = np.arange(12.0).reshape(6, 2)
    whose = np.array([1, 2, 1, 2, 3, 1])
    expected = values[[0, 1, 0, 1, 4, 0]]
    for cut in range(7):
        persons = Persons(whose)
        parts = [persons.share(values[:cut], 0), persons.share(values[cut:], cut)] if 0 < cut < 6 else []
        found = np.concatenate(parts) if parts else Persons(whose).share(values, 0)
        assert found.tolist() == expected.tolist()


def test_the_kernel_perturbs_constant_columns_independently_of_the_others() -> None:
    """The directions of the cap kernel are of all columns together."""
    for constant in ((), ("sex",)):
        options = ReleaseOptions(8.0, unit="person", constant=constant)
        spec: Any = options.kernel_spec
        kernel = spec.build(4.0, ["sex", "pay"])
        assert isinstance(kernel, CapKernel) == (not constant)  # control: it would be chosen
