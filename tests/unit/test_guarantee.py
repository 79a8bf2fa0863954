"""The guarantee says exactly what was proved, for each way to come by a reference."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv.references import Empirical, Grouped, Known, Parametric

FRAME = pd.DataFrame({"who": np.repeat(np.arange(50), 8), "a": np.arange(400.0), "b": pd.Categorical(["x", "y"] * 200)})


def test_a_known_law_protects_every_row() -> None:
    said = dipriv.privatize(FRAME[["a"]], 0.5, reference=Known(stats.norm(200, 100))).guarantee
    assert said.epsilon == 0.5
    assert said.protects == "every row"
    assert said.secure_randomness
    assert any("without looking at these rows" in condition for condition in said.conditions)


def test_a_public_table_protects_every_row() -> None:
    release = dipriv.privatize(FRAME, 1.0, public=FRAME, reference=Empirical(), keep=["who"])
    assert release.guarantee.protects == "every row"
    assert len(release.data) == len(FRAME)
    assert release.secrets.split is None
    assert any("'who'" in condition for condition in release.guarantee.conditions)
    assert any("categories" in condition for condition in release.guarantee.conditions)


@pytest.mark.parametrize("reference", ["holdout", Parametric("multivariate_normal")])
def test_a_hold_out_names_whom_it_does_not_protect(reference: str) -> None:
    release = dipriv.privatize(FRAME[["who", "a"]].astype(float), 1.0, reference=reference)
    n = len(release.data)
    assert release.guarantee.protects == (
        f"the {n} released rows; the {400 - n} hold-out rows have no formal protection"
    )
    verbatim = any("nearly verbatim" in condition for condition in release.guarantee.conditions)
    assert verbatim == (reference == "holdout")


def test_groups_name_whom_they_do_not_protect() -> None:
    said = dipriv.privatize(FRAME, 1.0, reference=Grouped(by="who", first=3), keep=["who"]).guarantee
    assert said.protects == "the 250 released rows; the 150 held-out rows of the groups have no formal protection"


def test_a_seed_takes_the_guarantee_away() -> None:
    said = dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout", seed=1).guarantee
    assert not said.secure_randomness
    assert "NOT PRIVATE: SEEDED" in str(said)
    assert "SEEDED" not in str(dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout").guarantee)


def test_lemma_1_bounds_the_attackers_power() -> None:
    said = dipriv.Guarantee(epsilon=0.7, protects="every row", kernel="laplace", reference="known law")
    assert said.power(level=0.05) == pytest.approx(0.05 * math.exp(0.7))
    assert said.power(level=0.01, releases=3) == pytest.approx(0.01 * math.exp(2.1))
    assert said.power(level=0.5, releases=9) == 1.0
    assert dipriv.Guarantee(epsilon=1e5, protects="", kernel="", reference="").power() == 1.0
    with pytest.raises(dipriv.InputError):
        said.power(level=0)


def test_it_is_plain_data_too() -> None:
    said = dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout").guarantee
    plain = json.loads(said.to_json())
    assert plain["epsilon"] == 1.0
    assert plain["neighbours"] == "replace one row"
    assert plain["conditions"] == list(said.conditions)
    assert plain["power_at_5_percent"] == pytest.approx(0.05 * math.e)


def test_words_and_reprs_show_no_cell() -> None:
    frame = pd.DataFrame({"a": [918273.0, 918274.0] * 50, "b": ["sesame", "open"] * 50})
    release = dipriv.privatize(frame, 1.0, reference="holdout")
    dip = dipriv.DIP(1.0, reference="holdout").fit(frame)
    shown = "".join(
        map(repr, (release, release.schema, dip, dip.mechanism_, dip.mechanism_.columns, dip.mechanism_.reference))
    )
    shown += str(release.guarantee)
    numbers = pd.DataFrame({"c": 918273 + np.arange(200), "d": np.where(np.arange(200) % 9 == 0, np.nan, 918274.5)})
    numbers["d"] += np.random.default_rng(0).random(200) * 1e-3
    fitted = dipriv.DIP(1.0, reference="holdout").fit(numbers).mechanism_
    shown += "".join(map(repr, [fitted, *(column.codec for column in fitted.columns), fitted.reference.guide]))
    assert not any(secret in shown for secret in ("91827", "sesame", "open"))
