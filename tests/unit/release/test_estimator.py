"""DIP follows scikit-learn, and refuses to release the rows it was fitted on."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipriv import DIP, DisclosureError, InputError, Schema
from dipriv.errors import ReferenceDataError
from dipriv.guarantee import Unprotected, UnprotectedKind
from dipriv.references import Empirical, Known
from dipriv.schema import Continuous
from tests.support import TEXT_HAS_A_TYPE

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"a": RNG.normal(size=600), "b": RNG.poisson(3, 600), "c": RNG.choice(["x", "y"], 600)})
REFERENCE, REST = ROWS.iloc[:200], ROWS.iloc[200:]


def test_parameters_are_stored_untouched_and_cloned() -> None:
    parameters = {
        "epsilon": 2.0,
        "delta": None,
        "reference": Empirical(order="random"),
        "kernel": "laplace",
        "schema": Schema({"a": Continuous()}),
        "types": None,
        "missing": (),
        "columns": ["a"],
        "drop": (),
        "keep": ["c"],
        "public": None,
        "target": None,
        "reference_share": None,
        "labels": None,
        "pairs": (),
        "ledger": None,
        "dataset": None,
        "new_dataset": None,
        "seed": 3,
    }
    dip = DIP(**parameters)  # type: ignore[arg-type]
    assert dip.get_params() == parameters
    assert clone(dip).get_params() == parameters
    assert clone(dip.set_params(epsilon=5.0)).epsilon == 5.0
    assert DIP(epsilon=-1.0).epsilon == -1.0  # checked when fitted, not before


def test_fit_then_transform_releases_other_rows() -> None:
    dip = DIP(1.0, reference="holdout").fit(REFERENCE)
    released = dip.transform(REST)
    assert isinstance(released, pd.DataFrame)
    assert released.dtypes.equals(REST.dtypes)
    assert released.index.equals(REST.index)
    assert dip.feature_names_in_.tolist() == ["a", "b", "c"]
    assert dip.n_features_in_ == 3
    assert dip.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert dip.guarantee_.unprotected == (Unprotected(UnprotectedKind.FIT_ROWS),)
    assert set(dip.schema_) == {"a", "b", "c"}


def test_unfitted_use_is_an_error() -> None:
    for call in (lambda: DIP().transform(REST), lambda: DIP().get_feature_names_out(), lambda: DIP().export_local("x")):
        with pytest.raises(NotFittedError):
            call()


def test_the_rows_of_the_reference_are_never_released() -> None:
    dip = DIP(1.0, reference="holdout").fit(REFERENCE)
    with pytest.raises(DisclosureError, match="fitted on"):
        dip.transform(REFERENCE.copy())
    with pytest.raises(DisclosureError, match="fit_transform"):
        DIP(1.0, reference="holdout").fit_transform(ROWS)
    law = DIP(1.0, reference=Known(stats.norm()))
    assert law.fit_transform(ROWS[["a"]]).shape == (600, 1)


def test_it_works_in_pipelines() -> None:
    x, y = RNG.normal(size=(500, 3)), RNG.normal(size=500)
    law = Known({f"x{i}": stats.norm() for i in range(3)})
    model = make_pipeline(StandardScaler(), DIP(5.0, reference=law), LinearRegression()).fit(x, y)
    assert model.predict(x).shape == (500,)
    release = make_pipeline(StandardScaler(), DIP(5.0, reference="holdout")).fit(x[:250])
    assert release.transform(x[250:]).shape == (250, 3)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_chooses_the_container(kind: str) -> None:
    x = RNG.normal(size=(300, 2))
    dip = DIP(1.0, reference="holdout").set_output(transform=kind).fit(x[:100])
    released = dip.transform(x[100:])
    assert isinstance(released, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(released.columns) == ["x0", "x1"]


def test_a_public_table_is_the_reference_and_all_rows_are_released() -> None:
    dip = DIP(1.0, public=REFERENCE)
    assert len(dip.fit_transform(ROWS)) == 600
    assert dip.guarantee_.unprotected == ()


@TEXT_HAS_A_TYPE
def test_rows_must_match_the_reference() -> None:
    dip = DIP(1.0, reference="holdout").fit(REFERENCE)
    with pytest.raises(ReferenceDataError, match="'c' of the reference is not in the table"):
        dip.transform(REST[["a", "b"]])
    with pytest.raises(ReferenceDataError, match="'b' is"):
        dip.transform(REST.assign(b="text"))
    with pytest.raises(InputError, match="epsilon"):
        DIP(-1.0, reference="holdout").fit(REFERENCE)


def test_a_fitted_estimator_survives_pickling() -> None:
    dip = DIP(1.0, reference="holdout", seed=4).fit(REFERENCE)
    again = pickle.loads(pickle.dumps(dip))
    pd.testing.assert_frame_equal(again.transform(REST), dip.transform(REST))


def test_kept_columns_line_up() -> None:
    frame = ROWS.assign(row=np.arange(600))
    dip = DIP(1.0, reference="holdout", keep=["row"]).fit(frame.iloc[:200])
    assert dip.transform(frame.iloc[200:])["row"].tolist() == list(range(200, 600))


def test_columns_must_be_those_of_fit_in_their_order() -> None:
    dip = DIP(1.0, reference="holdout").fit(REFERENCE)
    for other in (REST[["b", "a", "c"]], REST.assign(extra=1)):
        with pytest.raises(InputError, match="not those that fit saw"):
            dip.transform(other)
