"""What a report says first: grades with reasons, the worst column first, on scales that are the same everywhere."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dipriv
from dipriv.report import compare, render
from dipriv.report.facts import MAX_DETAILED, ColumnFacts, Comparison
from dipriv.report.fidelity import fisher_interval, kappa_interval
from dipriv.utility.verdict import Grade
from tests.unit.refusal import refused
from tests.unit.report.test_report import parsed

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

ROWS = 4000


def spiked(rng: np.random.Generator, rows: int = ROWS) -> np.ndarray:
    """Zeros in 95% of the rows, amounts in the others."""
    return np.where(rng.random(rows) < 0.95, 0.0, rng.lognormal(7.0, 0.5, rows).round())


def facts_of(comparison: Comparison, name: str) -> ColumnFacts:
    return next(facts for facts in comparison.columns if facts.name == name)


def moved(comparison: Comparison, name: str) -> float:
    found = facts_of(comparison, name).distance("Total variation")
    assert found is not None
    return found.value


def test_a_spiked_column_that_became_constant_is_lost_and_measured_right() -> None:
    """Twenty bins with equal shares would all be the one of the zeros, and the distance 0."""
    table = pd.DataFrame({"loss": spiked(np.random.default_rng(1))})
    found = compare(table, table * 0.0)
    assert moved(found, "loss") == pytest.approx(np.mean(table["loss"] != 0))
    assert facts_of(found, "loss").grade is Grade.LOST
    assert facts_of(found, "loss").reasons[0] == "every released row has the same value"
    same = compare(table, table)  # control
    assert moved(same, "loss") == 0
    assert facts_of(same, "loss").grade is Grade.GOOD
    assert facts_of(same, "loss").reasons == ()


def test_missing_cells_count_and_are_a_reason() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(ROWS)
    table = pd.DataFrame({"x": np.where(rng.random(ROWS) < 0.15, np.nan, x)})
    found = facts_of(compare(table, pd.DataFrame({"x": x})), "x")
    assert found.grade is Grade.USABLE
    assert found.reasons[0] == f"missing cells {table['x'].isna().mean():.1%} before, 0.0% after"
    nothing = facts_of(compare(table, table * np.nan), "x")
    assert nothing.grade is Grade.LOST


def test_labels_that_are_gone_or_new_and_ranges_that_are_cut_are_reasons() -> None:
    rng = np.random.default_rng(3)
    codes = rng.choice(["a", "b", "c", "secret"], ROWS, p=[0.5, 0.3, 0.199, 0.001])
    codes[:3], codes[codes == "secret"] = "rare", "a"
    table = pd.DataFrame({"code": codes, "age": rng.integers(18, 94, ROWS)})
    released = table.assign(code=np.where(np.isin(codes, ["b", "rare"]), "new", codes), age=table["age"].clip(upper=47))
    found = compare(table, released)
    reasons = facts_of(found, "code").reasons
    assert reasons[0] == "1 of 3 labels that 5 rows or more have is gone (b)"
    assert reasons[1] == "1 released label occurs in no original row"
    assert "rare" not in " ".join(reasons)  # three rows have it
    cut = f"{np.mean(table['age'] > 47):.1%}"
    assert facts_of(found, "age").reasons[0] == f"{cut} of the original rows lie outside the released range"
    assert facts_of(found, "age").grade is Grade.LOST


def test_the_worst_column_comes_first_in_data_text_and_page() -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({name: rng.standard_normal(ROWS) for name in ("fine", "shifted", "gone", "nudged")})
    released = table.assign(gone=0.0, shifted=table["shifted"] + 0.4, nudged=table["nudged"] + 0.04)
    found = compare(table, released)
    assert [facts.name for facts in found.columns] == ["gone", "shifted", "nudged", "fine"]
    assert [facts.grade.value for facts in found.columns] == ["lost", "usable", "good", "good"]
    lines = str(found).splitlines()
    assert lines[0] == "Of 4 columns: 1 lost, 1 usable, 2 good."
    assert lines[1] == "  Lost: gone (every released row has the same value)."
    text = "".join(parsed(render(found)).texts)
    places = [text.index(part) for part in ("Of 4 columns: 1 lost", "The worst first.", "No guarantee was given")]
    assert places == sorted(places)
    assert str(compare(table, table)).startswith("All 4 columns are good.")


def test_columns_with_the_same_reason_are_named_together() -> None:
    rng = np.random.default_rng(14)
    table = pd.DataFrame({f"x{i}": rng.standard_normal(50) for i in range(15)})
    found = compare(table, table * 0)
    names = ", ".join(facts.name for facts in found.columns[:12])
    lost = f"  Lost: {names} and 3 more (every released row has the same value)."
    assert str(found).splitlines()[:2] == ["Of 15 columns: 15 lost.", lost]


def test_few_rows_are_not_blamed_for_what_sampling_gives() -> None:
    rng = np.random.default_rng(5)
    table, other = (pd.DataFrame({"x": rng.standard_normal(60)}) for _ in range(2))
    reasons = facts_of(compare(table, other), "x").reasons
    assert reasons[-1].endswith("which sampling alone may give")
    assert not any("sampling" in reason for reason in facts_of(compare(table, other + 9), "x").reasons)  # control


def test_a_spiked_column_has_cramers_v_and_a_constant_one_lost_its_pairs() -> None:
    rng = np.random.default_rng(6)
    loss = spiked(rng)
    table = pd.DataFrame({"loss": loss, "sex": np.where((loss > 0) | (rng.random(ROWS) < 0.3), "f", "m")})
    found = compare(table, table).dependence
    assert found is not None
    assert (found.strong, found.lost) == (1, 0)
    assert found.maps[0].before[0][1] is not None
    constant = compare(table, table.assign(loss=0.0)).dependence
    assert constant is not None
    assert constant.maps[0].after[0][1] is None
    assert (constant.strong, constant.lost) == (1, 1)
    assert constant.changes[0].difference == -found.changes[0].before
    assert "Grey: one of the two columns is constant" in render(compare(table, table))


def test_columns_of_many_labels_are_on_the_map() -> None:
    rng = np.random.default_rng(7)
    code = rng.zipf(1.5, ROWS).clip(max=600)
    table = pd.DataFrame({"code": [f"c{n}" for n in code], "y": np.where(code == 1, "yes", "no")})
    assert table["code"].nunique() > 200
    found = compare(table, table.assign(y=rng.permutation(table["y"])))
    assert found.dependence is not None
    assert found.dependence.maps[0].names == ("code", "y")
    assert found.dependence.changes[0].before > 0.9
    assert found.dependence.lost == 1


def test_differences_have_the_same_colours_in_every_report() -> None:
    from dipriv.report import charts

    rng = np.random.default_rng(8)
    x = rng.standard_normal(ROWS)
    table = pd.DataFrame({"x": x, "y": x + rng.standard_normal(ROWS)})
    for released in (table, table.assign(y=-table["y"])):
        drawn = render(compare(table, released))
        assert ">−0.5</text>" in drawn.replace("\n", "")
        assert ">0.5</text>" in drawn.replace("\n", "")
    assert charts.SPAN == 0.5


@pytest.mark.slow
def test_a_wide_table_is_quick_and_small() -> None:
    """Beyond the worst columns there is one line for each, and neither charts nor a place on the maps."""
    rng = np.random.default_rng(9)
    names = [f"x{i}" for i in range(120)]
    table = pd.DataFrame(rng.standard_normal((500, 120)), columns=names)
    released = table.assign(x119=0.0, x118=table["x118"] + 5)
    started = time.process_time()
    found = compare(table, released)
    page = render(found)
    assert time.process_time() - started < 60  # about 5 s; each chart of all columns would take minutes
    assert len(found.columns) == 120
    assert [facts.name for facts in found.columns[:2]] == ["x118", "x119"]
    assert page.count("<h3 id=") == MAX_DETAILED
    assert len(page) < 3_000_000
    assert found.dependence is not None
    assert len(found.dependence.maps[0].names) == MAX_DETAILED
    assert {"x118", "x119"} <= {*found.dependence.maps[0].names}
    assert all(name in page for name in names)
    assert "have charts and a place on the maps" in page


def test_intervals_of_fidelity_cover_what_they_should() -> None:
    """Of independent rows, 95% of 2,000 intervals contain 0, within five standard errors; shorter ones do not."""
    rng = np.random.default_rng(10)
    n, repeats = 400, 2000
    bound = 5 * np.sqrt(0.05 * 0.95 / repeats)
    covered, short = 0, 0
    for _ in range(repeats):
        x, y = rng.standard_normal((2, n))
        r = float(np.corrcoef(x, y)[0, 1])
        low, high = fisher_interval(r, n)
        covered += low <= 0 <= high
        short += r - (high - low) / 4 <= 0 <= r + (high - low) / 4  # control
    assert abs(covered / repeats - 0.95) < bound + 0.005
    assert short / repeats < 0.95 - bound
    kappas = 0
    for _ in range(repeats):
        one, two = rng.integers(0, 2, (2, n))
        agree = float(np.mean(one == two))
        chance = one.mean() * two.mean() + (1 - one.mean()) * (1 - two.mean())
        low, high = kappa_interval((agree - chance) / (1 - chance), agree, n)
        kappas += low <= 0 <= high
    assert abs(kappas / repeats - 0.95) < bound + 0.005


@pytest.fixture(scope="module")
def released() -> tuple[pd.DataFrame, dipriv.Release[Any]]:
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"age": rng.integers(18, 90, ROWS), "sex": rng.choice(["f", "m"], ROWS)})
    return table, dipriv.privatize(table, 1.0, seed=12)


def test_a_release_brings_what_is_known_about_it(released: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    table, release = released
    found = compare(table, release, target="age")
    assert found.verdict is release.verdict is not None
    assert found.guarantee == str(release.guarantee)
    assert found.paired
    for facts in found.columns:
        expected = facts.fidelity[0].expected
        assert expected is not None
        assert 0 <= expected <= np.tanh(0.5)
    by_hand = compare(
        table,
        release.data,
        schema=release.schema,
        rows=release.secrets.row_positions,
        guarantee=release.guarantee,
        fidelity=release.fidelity,
        verdict=release.verdict,
        forecast=release.forecast,
        target="age",
    )
    assert found == by_hand
    page = render(found)
    assert "As the release" in page
    assert "Pairs whose table was measured" in page
    assert "As the release" not in render(compare(table, release.data))  # control: two tables have no verdict


def test_a_release_with_a_holdout_or_of_a_stream_is_paired_where_it_can_be(
    released: tuple[pd.DataFrame, dipriv.Release[Any]],
) -> None:
    table, _ = released
    held = dipriv.privatize(table, 1.0, reference="holdout", seed=13)
    assert compare(table, held).paired
    streamed = dipriv.privatize(pl.from_pandas(table).lazy(), 1.0, seed=14)
    assert compare(table, streamed).rows == (ROWS, ROWS)


def test_a_release_of_another_table_is_refused(released: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    table, release = released
    refused(dipriv.InputError, "3,999 rows", "4,000", call=lambda: compare(table.iloc[1:], release))


def test_rows_on_a_cluster_are_refused_with_a_remedy(released: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    from dataclasses import replace

    table, release = released
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    refused(dipriv.InputError, "cluster", call=lambda: compare(table, replace(release, data=frame)))
