"""An option that would have no effect is refused: whoever gives it believes that it has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv.errors import InputError, PrivacyWarning
from dipriv.references import Empirical, Grouped, Known, Parametric, Private
from dipriv.release.options import DEFAULT_ROWS_PER_UNIT, ReleaseOptions
from dipriv.sources.holdout import Split
from tests.unit.refusal import refused

ROWS = 300
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({"who": np.arange(ROWS) // 3, "pay": RNG.normal(size=ROWS), "age": RNG.normal(40, 9, ROWS)})
PUBLIC = FRAME.sample(frac=1.0, random_state=1)
LAW = Known({"pay": stats.norm(), "age": stats.norm(40, 9)})

# (what is refused, a needle of the message, the same call with the option that gives it an effect, or without it)
Pair = tuple[dict[str, Any], str, dict[str, Any]]
REVIEWED: dict[str, Pair] = {
    "dataset and new_dataset": (
        {"dataset": "a", "new_dataset": "b", "ledger": ...},
        "dataset and new_dataset are both given",
        {"dataset": "a", "ledger": ...},
    ),
    "public and holdout": ({"public": PUBLIC, "holdout": 0.3}, "nothing is held out", {"public": PUBLIC}),
    "public and private": (
        {"public": PUBLIC, "reference": "private"},
        "not fitted on it",
        {"public": PUBLIC, "reference": Empirical()},
    ),
    "public and hold-out": (
        {"public": PUBLIC, "reference": "holdout"},
        "not fitted on it",
        {"reference": "holdout"},
    ),
    "rows per unit without a unit": ({"rows_per_unit": 3}, "without a unit", {"rows_per_unit": 3, "unit": "who"}),
    "a known law and holdout": (
        {"reference": LAW, "columns": ["pay", "age"], "holdout": 0.3},
        "nothing is held out",
        {"reference": LAW, "columns": ["pay", "age"]},
    ),
}
OTHERS: dict[str, Pair] = {
    "public and split": ({"public": PUBLIC, "split": Split.new()}, "nothing is held out", {"split": Split.new()}),
    "a known law and split": (
        {"reference": LAW, "columns": ["pay", "age"], "split": Split.new()},
        "nothing is held out",
        {"reference": "holdout", "columns": ["pay", "age"], "split": Split.new()},
    ),
    "split and holdout": (
        {"reference": "holdout", "split": Split.new(), "holdout": 0.3},
        "both given",
        {"reference": "holdout", "holdout": 0.3},
    ),
    "public and a private reference": (
        {"public": PUBLIC, "reference": Private()},
        "not fitted on it",
        {"reference": Private()},
    ),
    "public and groups": (
        {"public": PUBLIC, "reference": Grouped("who", 1)},
        "not fitted on it",
        {"reference": Grouped("who", 1)},
    ),
    "public and a known law": (
        {"public": PUBLIC, "reference": LAW, "columns": ["pay", "age"]},
        "not fitted on one",
        {"public": PUBLIC, "reference": Parametric({"pay": "norm", "age": "norm"}), "columns": ["pay", "age"]},
    ),
    "target and hold-out": ({"target": "pay", "reference": "holdout"}, "not private", {"target": "pay"}),
    "target and public": ({"target": "pay", "public": PUBLIC}, "not private", {"public": PUBLIC}),
    "labels and hold-out": ({"labels": "public", "reference": "holdout"}, "not private", {"labels": "public"}),
    "unknown labels": ({"labels": "secret"}, "labels='secret' is unknown", {"labels": "declared"}),
    "pairs and hold-out": (
        {"pairs": [("pay", "age")], "reference": "holdout"},
        "pairs is given",
        {"pairs": [("pay", "age")]},
    ),
    "one name as a pair": ({"pairs": ["pay"]}, "two column names", {"pairs": [["pay", "age"]]}),
    "one pair instead of several": ({"pairs": ("pay", "age")}, "two column names", {"pairs": (("pay", "age"),)}),
    "a share and a hold-out": (
        {"reference_share": 0.5, "reference": "holdout"},
        "not private",
        {"reference_share": 0.5, "reference": "private"},
    ),
    "target and a reference of one's own": (
        {"target": "pay", "reference": Private()},
        "target is given",
        {"reference": Private("pay")},
    ),
    "columns and drop": ({"columns": ["pay"], "drop": ["age"]}, "both given", {"columns": ["pay"]}),
    "columns and keep": ({"columns": ["pay"], "keep": ["pay"]}, "in columns and in keep", {"keep": ["pay"]}),
    "drop and keep": ({"drop": ["who"], "keep": ["who"]}, "it is used", {"drop": ["who"]}),
    "drop and a unit that is kept": (
        {"drop": ["who"], "unit": "who", "keep": ["who"]},
        "it is used",
        {"unit": "who", "drop": ["who"]},
    ),
    "unit and groups": (
        {"unit": "who", "reference": Grouped("who", 1)},
        "a unit is given with a reference per group",
        {"unit": "who", "reference": "holdout"},
    ),
    "unit and the split of rows": (
        {"unit": "who", "reference": "holdout", "split": Split.new()},
        "rows of one 'who' on one side",
        {"unit": "who", "reference": "holdout", "split": Split.new(by="who")},
    ),
    "ledger and split": (
        {"ledger": ..., "dataset": "a", "reference": "holdout", "split": Split.new()},
        "keeps the hold-out",
        {"ledger": ..., "dataset": "a", "reference": "holdout"},
    ),
    "ledger and groups": (
        {"ledger": ..., "dataset": "a", "reference": Grouped("who", 1)},
        "keeps the hold-out",
        {"reference": Grouped("who", 1)},
    ),
}


@pytest.mark.parametrize("given", [{"pairs": ...}, {"reference": ...}], ids=["option", "reference"])
def test_all_wrong_pairs_are_named_at_once_with_close_matches(given: dict[str, Any]) -> None:
    pairs = (("agee", "pay"), ("nobody", "pay"), ("age", "age"), ("who", "pay"))
    options: Any = {"pairs": pairs} if "pairs" in given else {"reference": Private(pairs=pairs)}
    said = refused(
        InputError,
        "'agee' is not a privatized column (did you mean 'age'?)",
        "'nobody' is not a privatized column;",
        "'age' is paired with itself",
        "'who' is not a privatized column",
        call=lambda: dipriv.privatize(FRAME, 1.0, drop=["who"], **options),
    )
    assert "pay" not in said.fault


def given(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {name: folder / "ledger.db" if value is ... else value for name, value in options.items()}


@pytest.mark.parametrize(("idle", "needle", "valid"), (REVIEWED | OTHERS).values(), ids=(REVIEWED | OTHERS).keys())
def test_options_without_effect_are_refused(
    idle: dict[str, Any], needle: str, valid: dict[str, Any], tmp_path: Path
) -> None:
    refused(InputError, needle, call=lambda: dipriv.privatize(FRAME, 1.0, **given(idle, tmp_path)))
    dipriv.Ledger.create(tmp_path / "ledger.db").close()  # the refusal came before the ledger was looked for
    release = dipriv.privatize(FRAME, 1.0, **given(valid, tmp_path))  # control
    assert 0 < release.n_rows <= ROWS


@pytest.mark.parametrize("idle", [case[0] for case in REVIEWED.values()], ids=REVIEWED.keys())
def test_files_and_the_estimator_refuse_them_too(idle: dict[str, Any], tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(InputError):
        dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1.0, **given(idle, tmp_path))
    assert [found.name for found in tmp_path.iterdir()] == ["in.csv"]
    dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1.0)  # control
    if {*idle} <= {*dipriv.DIP().get_params()}:
        with pytest.raises(InputError):
            dipriv.DIP(1.0, **given(idle, tmp_path)).fit(FRAME)


def test_a_schema_may_describe_columns_that_are_kept_or_dropped() -> None:
    schema: dict[str, Any] = {"who": dipriv.Discrete(), "pay": dipriv.Continuous(), "age": dipriv.Continuous()}
    release: Any = dipriv.privatize(FRAME, 1.0, schema=schema, keep=["who"], drop=["age"])
    assert release.declared == ("pay",)
    assert [*release.data.columns] == ["who", "pay"]
    refused(
        InputError,
        "the schema names 'nobody'",
        call=lambda: dipriv.privatize(FRAME, 1.0, schema={"nobody": dipriv.Discrete()}),
    )


def test_defaults() -> None:
    plain = ReleaseOptions(1.0)
    assert isinstance(plain.spec, Private)
    assert not plain.uses_holdout
    assert ReleaseOptions(1.0, holdout=0.2).uses_holdout
    assert ReleaseOptions(1.0, reference="holdout").uses_holdout
    assert isinstance(ReleaseOptions(1.0, public=PUBLIC).spec, Empirical)
    unit = ReleaseOptions(1.0, unit="who").contribution_bound
    assert unit is not None
    assert unit.max_rows == DEFAULT_ROWS_PER_UNIT
    assert ReleaseOptions(1.0, unit="who").row_epsilon * DEFAULT_ROWS_PER_UNIT <= 1.0
    assert plain.row_epsilon == 1.0


def test_names_may_come_from_any_iterable() -> None:
    asked: Any = (name for name in ["who"])
    release: Any = dipriv.privatize(FRAME, 1.0, keep=asked, columns=np.array(["pay"]))  # type: ignore[call-overload]
    assert [*release.data.columns] == ["who", "pay"]


@pytest.mark.parametrize(
    ("options", "needle"),
    [({"seed": 3}, "NOT PRIVATE"), ({"keep": ["who"]}, "'who'"), ({"epsilon": 11.0}, "protects little")],
    ids=["seed", "keep", "large epsilon"],
)
def test_what_takes_protection_away_is_warned_of(options: dict[str, Any], needle: str) -> None:
    with pytest.warns(PrivacyWarning, match=needle) as caught:
        dipriv.privatize(FRAME, **{"epsilon": 1.0} | options)
    assert sum(one.category is PrivacyWarning for one in caught) == 1


def test_an_ordinary_release_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    dipriv.privatize(FRAME, 10.0, drop=["who"])
    assert not [warning for warning in recwarn if issubclass(warning.category, PrivacyWarning)]


def test_options_show_neither_tables_nor_seeds_of_cells() -> None:
    shown = repr(ReleaseOptions(1.0, public=PUBLIC))
    assert "public" not in shown
    assert str(FRAME["pay"][0])[:6] not in shown
