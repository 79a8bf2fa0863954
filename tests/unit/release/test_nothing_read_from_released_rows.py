"""Swap one released row for another: nothing but its own release may change, and no list may carry its cells."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv._random import bits
from dipriv._tables import frames
from dipriv.guarantee import Assumption, AssumptionKind
from dipriv.references import Grouped, Known, Mixture, Parametric
from dipriv.schema import Categorical

RNG = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "real": RNG.normal(size=N),
        "mixed": np.where(RNG.random(N) < 0.3, 0.0, RNG.exponential(size=N)),
        "count": RNG.poisson(4, N),
        "cents": np.round(RNG.lognormal(3, 1, N), 2),
        "text": RNG.choice(["a", "b", "c"], N),
        "label": pd.Categorical(RNG.choice(["x", "y"], N), categories=["x", "y", "other"]),
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "null": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
    }
)
STRANGE: dict[str, Any] = {
    "real": 1e17,
    "mixed": -5.0,
    "count": 10**12,
    "cents": 0.123456789,
    "text": "SECRET",
    "label": "other",
    "when": pd.Timestamp("1700-03-04 05:06:07.123456"),
    "null": -1e9,
}


def swapped(row: int) -> pd.DataFrame:
    frame = FRAME.copy()
    for name, value in STRANGE.items():
        frame.loc[row, name] = value
    return frame


@pytest.mark.parametrize("columns", [*([name] for name in STRANGE), list(STRANGE)], ids="-".join)
@pytest.mark.parametrize("path", ["holdout", "public", "fit"])
def test_another_row_changes_no_other_release(columns: list[str], path: str) -> None:
    split = dipriv.Split.new(0.4, bits=bits.source(1))
    row = int(np.flatnonzero(~split.held_out(frames.read(FRAME)))[5])
    released = []
    for frame in (FRAME[columns], swapped(row)[columns]):
        if path == "holdout":
            release = dipriv.privatize(frame, 1.0, reference="holdout", split=split, seed=2)
            released.append((release.data, release.guarantee, release.schema))
        elif path == "public":
            release = dipriv.privatize(frame, 1.0, public=FRAME, seed=2)
            released.append((release.data, release.guarantee, release.schema))
        else:
            dip = dipriv.DIP(1.0, reference="holdout", seed=2).fit(FRAME[columns].iloc[:100])
            released.append((dip.transform(frame), dip.guarantee_, dip.schema_))
    (data, *facts), (other, *others) = released
    assert facts == others
    assert data.dtypes.equals(other.dtypes)
    pd.testing.assert_frame_equal(data.drop(index=row), other.drop(index=row))


def test_strange_cells_never_come_out() -> None:
    frame = swapped(7).astype({"label": "category"})
    for seed in range(5):
        release = dipriv.privatize(frame, 1e6, public=FRAME, seed=seed)
        assert "SECRET" not in release.data["text"].tolist()
        assert "other" not in release.data["label"].tolist()
        assert release.data["cents"].mul(100).round(6).mod(1).eq(0).all()


def test_no_cell_decides_the_type_of_objects() -> None:
    from decimal import Decimal

    seen = dt.datetime(2020, 1, 1, 12)
    odd: list[Any] = [
        Decimal("1.234567"),
        10**30,
        seen,
        dt.date(2020, 1, 1),
        dt.time(1),
        "text",
        True,
        None,
        (1,),
        -2.5,
    ]
    for cells in ([Decimal("1.5"), Decimal("2.25")], [1, 2], [1, 2.5], [seen, seen + dt.timedelta(1)], ["a", "b"]):
        dtypes = set()
        for other in (cells[0], *odd):
            frame = pd.DataFrame({"x": pd.Series([*(cells * 50)[1:], other], dtype=object)})
            dtypes.add(dipriv.privatize(frame, 1.0, reference="holdout").data.dtypes["x"])
        assert len(dtypes) == 1


def test_an_exported_reference_has_the_public_tables_labels_only(tmp_path: Path) -> None:
    private = FRAME[["label", "text"]].assign(label=FRAME["label"].cat.add_categories(["SECRET-DISEASE"]))
    public = pd.DataFrame({"label": ["x", "y"] * 20, "text": ["a", "b"] * 20})
    dip = dipriv.DIP(1.0, public=public).fit(private)
    dip.export_local(tmp_path / "reference")
    with np.load(tmp_path / "reference") as archive:
        manifest = archive["manifest"].tobytes()
    assert b"SECRET" not in manifest
    assert b"other" not in manifest
    assert "SECRET" not in repr(dip.mechanism_)
    assert dip.transform(private)["label"].cat.categories.tolist() == ["x", "y"]
    assert dipriv.load_local(tmp_path / "reference").privatize({"label": "x", "text": "a"})["label"] in ("x", "y")


def test_a_law_is_not_cut_at_the_reference_rows() -> None:
    """The hold-out of a parametric law sets its parameters, not its smallest value."""
    frame = pd.DataFrame({"z": RNG.poisson(50, 40)})
    dip = dipriv.DIP(1.0, reference=Parametric("poisson")).fit(frame)
    released = dip.transform(pd.DataFrame({"z": RNG.poisson(50, 200_000)}))["z"]
    law = stats.poisson(frame["z"].mean())
    assert released.min() < frame["z"].min()
    at_minimum = int((released == frame["z"].min()).sum())
    assert stats.binomtest(at_minimum, len(released), law.pmf(frame["z"].min())).pvalue > 1e-6


@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e12])
def test_a_mixture_keeps_its_parts_at_any_scale(scale: float) -> None:
    n = 50_000
    law = Mixture({0.0: 0.3}, stats.expon(scale=scale))
    frame = pd.DataFrame({"z": np.where(RNG.random(n) < 0.3, 0.0, RNG.exponential(scale, n))})
    released = dipriv.privatize(frame, 1.0, reference=Known(law), seed=1).data["z"]
    assert stats.binomtest(int((released == 0).sum()), n, 0.3).pvalue > 1e-6
    assert stats.kstest(released[released > 0], stats.expon(scale=scale).cdf).pvalue > 1e-6


def test_columns_are_in_the_order_of_the_law() -> None:
    frame = pd.DataFrame({"a": np.zeros(500), "id": range(500), "b": np.zeros(500)})
    law = Known(stats.multivariate_normal([100.0, 0.0], np.eye(2)))
    release = dipriv.privatize(frame, 1.0, reference=law, columns=["b", "a"], keep=["id"])
    assert list(release.data.columns) == ["a", "id", "b"]
    assert abs(release.data["b"].mean() - 100) < 1
    assert abs(release.data["a"].mean()) < 1


def test_what_decides_sides_and_groups_is_said_to_be_public() -> None:
    frame = FRAME[["real", "text"]].assign(who=np.repeat(np.arange(60), 5))
    by_person = dipriv.privatize(frame, 1.0, reference="holdout", split=dipriv.Split.new(0.4, by="who"))
    assert "who" not in by_person.data
    assert Assumption(AssumptionKind.SPLIT_COLUMN_PUBLIC, ("who",)) in by_person.guarantee.assumptions
    grouped = dipriv.privatize(frame[["who", "real"]], 1.0, reference=Grouped(by="who", first=2))
    assert Assumption(AssumptionKind.GROUP_COLUMN_PUBLIC, ("who",)) in grouped.guarantee.assumptions
    assert grouped.guarantee.assumes(AssumptionKind.REFERENCE_ROWS_EXPOSED)
    declared = dipriv.privatize(frame[["text"]], 1.0, public=frame, schema={"text": Categorical()})
    assert Assumption(AssumptionKind.SCHEMA_PUBLIC, ("text",)) in declared.guarantee.assumptions
