"""The report: its numbers against scipy and statsmodels, what it must not show, and that it is one safe HTML file."""

from __future__ import annotations

import errno
import os
import stat
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

import dipriv
from dipriv.report import compare, render, write_report
from dipriv.report.dependence import cramers_v, spearman
from dipriv.report.facts import ColumnFacts, Comparison
from dipriv.utility.total_variation import number_variation
from tests.unit.refusal import NUMBER, SECRET, refused

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

ROWS = 1500
MARKER, UNIQUE = "zq7-marker-xv", 987654.321
COLUMN, LABEL = "<b>x & 'y'", '<script>alert("1")</script>'


def survey(seed: int, rows: int = ROWS) -> pd.DataFrame:
    """Columns of every kind, dependent on one another, with nulls and awkward names."""
    rng = np.random.default_rng(seed)
    pay = rng.lognormal(3.0, 0.5, rows)
    return pd.DataFrame(
        {
            COLUMN: rng.standard_normal(rows),
            "pay": np.where(rng.random(rows) < 0.1, np.nan, pay),
            "age": np.clip((30 + 4 * np.log(pay) + 8 * rng.standard_normal(rows)).astype(int), 18, 90),
            "children": rng.integers(0, 4, rows),
            "since": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3000, rows), unit="D"),
            "town": rng.choice(["Bern", LABEL, "a\nb", "$x_1$"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "works": pay + rng.normal(0, 10, rows) > 20,
        }
    )


@pytest.fixture(scope="module")
def pair() -> tuple[pd.DataFrame, dipriv.Release[Any]]:
    table = survey(1)
    return table, dipriv.privatize(table, 3.0, reference="holdout", seed=2)


@pytest.fixture(scope="module")
def compared(pair: tuple[pd.DataFrame, dipriv.Release[Any]]) -> Comparison:
    table, release = pair
    return compare(
        table,
        release.data,
        schema=release.schema,
        rows=release.secrets.row_positions,
        guarantee=release.guarantee,
        target="works",
    )


@pytest.fixture(scope="module")
def page(compared: Comparison) -> str:
    return render(compared)


def column(comparison: Comparison, name: str) -> ColumnFacts:
    return next(facts for facts in comparison.columns if facts.name == name)


def of_line(lines: Any, name: str) -> tuple[float, float]:
    return next((line.before, line.after) for line in lines if line.name == name)


# --- the numbers ---


def test_moments_and_quantiles_are_those_of_numpy(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison
) -> None:
    table, release = pair
    for name in (COLUMN, "pay", "age"):
        facts = column(compared, name)
        for side, frame in enumerate((table, release.data)):
            values = frame[name].dropna().to_numpy(np.float64)
            assert of_line(facts.moments, "mean")[side] == pytest.approx(values.mean())
            assert of_line(facts.moments, "standard deviation")[side] == pytest.approx(values.std())
            assert of_line(facts.moments, "skewness")[side] == pytest.approx(stats.skew(values))
            assert facts.nulls[side] == pytest.approx(frame[name].isna().mean())
            ordered = np.sort(values)
            for share in (0.05, 0.25, 0.5, 0.75, 0.95):
                place = int(np.ceil(round(len(values) * share, 9))) - 1
                around = ordered[place - 2 : place + 3]
                assert around[0] <= of_line(facts.quantiles, f"{share:.0%}")[side] <= around[-1]
    whole = column(compared, "age").quantiles
    median = np.quantile(table["age"].to_numpy(), 0.5, method="inverted_cdf")
    assert of_line(whole, "50%")[0] == median  # many rows hold it: it is shown as it is


def test_distances_are_those_of_scipy(pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison) -> None:
    table, release = pair
    for name in (COLUMN, "pay", "age", "children"):
        one, two = (frame[name].dropna().to_numpy(np.float64) for frame in (table, release.data))
        found = {distance.name: distance.value for distance in column(compared, name).distances}
        assert found["KS"] == pytest.approx(stats.ks_2samp(one, two).statistic)
        assert found["Wasserstein / sd"] == pytest.approx(stats.wasserstein_distance(one, two) / one.std())
    one, two = (frame["town"].value_counts(normalize=True) for frame in (table, release.data))
    towns = {distance.name: distance.value for distance in column(compared, "town").distances}
    assert towns == {"Total variation": pytest.approx(0.5 * one.sub(two, fill_value=0).abs().sum())}
    one, two = (frame["children"].value_counts(normalize=True) for frame in (table, release.data))
    few = {distance.name: distance.value for distance in column(compared, "children").distances}
    assert few["Total variation"] == pytest.approx(0.5 * one.sub(two, fill_value=0).abs().sum())
    for name in (COLUMN, "pay", "age"):
        one, two = (frame[name].dropna().to_numpy(np.float64) for frame in (table, release.data))
        many = {distance.name: distance.value for distance in column(compared, name).distances}
        assert many["Total variation"] == pytest.approx(number_variation(one, two, column(compared, name).nulls))


def test_the_sampling_baseline_is_kolmogorovs_law() -> None:
    """Mean 0.8687 and 95% quantile 1.3581 of sqrt(nm/(n+m)) KS; 5 standard errors of 200 draws, and 2% for finite n."""
    rng = np.random.default_rng(3)
    n, m = 4000, 3000
    table, other = (pd.DataFrame({"x": rng.standard_normal(size)}) for size in (n, m))
    found = column(compare(table, other), "x").distances[0]
    root = np.sqrt(n * m / (n + m))
    assert abs(found.typical * root - 0.8687) < 5 * 0.2603 / np.sqrt(200) + 0.02 * 0.8687
    density = 8 * 1.3581 * np.exp(-2 * 1.3581**2)  # of Kolmogorov's law, near its 95% quantile
    assert abs(found.limit * root - 1.3581) < 5 * np.sqrt(0.05 * 0.95 / 200) / density + 0.02 * 1.3581


@pytest.mark.slow
def test_samples_of_one_law_look_like_sampling_and_a_shift_does_not() -> None:
    rng = np.random.default_rng(4)
    names = [f"x{i}" for i in range(20)]
    table, same = (pd.DataFrame(rng.standard_normal((500, 20)), columns=names) for _ in range(2))
    beyond = sum(facts.distances[0].beyond for facts in compare(table, same).columns)
    assert beyond <= stats.binom(20, 0.07).ppf(1 - 1e-6)  # 5%, and 2% for the 95% quantile being an estimate
    shifted = compare(table, same + 0.5)  # control
    assert all(distance.beyond for facts in shifted.columns for distance in facts.distances)


def test_levels_are_the_shares_of_the_most_frequent_labels(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison
) -> None:
    table, release = pair
    for name, labels in (("town", ["Bern", LABEL, "a\nb", "$x_1$"]), ("children", ["0", "1", "2", "3"])):
        levels = column(compared, name).levels
        assert levels is not None
        assert not levels.has_other
        assert levels.labels == tuple(labels)
        for shares, frame in ((levels.before, table), (levels.after, release.data)):
            expected = [(frame[name].astype(str) == label).mean() for label in labels]
            assert shares == pytest.approx(expected)


def test_rare_and_further_labels_are_other() -> None:
    codes = [f"code {i:02d}" for i in range(30) for _ in range(40 - i)] + ["rare"] * 4
    levels = column(compare(pd.DataFrame({"c": codes}), pd.DataFrame({"c": codes})), "c").levels
    assert levels is not None
    assert levels.labels == (*(f"code {i:02d}" for i in range(20)), "other")
    assert sum(levels.before) == pytest.approx(1.0)
    few = compare(pd.DataFrame({"c": ["a"] * 50 + ["b"] * 4}), pd.DataFrame({"c": ["a"] * 50 + ["b"] * 4}))
    kept = column(few, "c").levels
    assert kept is not None
    assert kept.labels == ("a", "other")


def test_a_histogram_has_the_shares_of_its_bins(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison
) -> None:
    table, release = pair
    drawn = column(compared, COLUMN).histogram
    assert drawn is not None
    for side, frame in enumerate((table, release.data)):
        shares = (drawn.before, drawn.after)[side]
        counts = np.histogram(frame[COLUMN], drawn.edges)[0]
        shown = np.where(counts < 5, 0, counts) if side == 0 else counts  # a bar of one private row would be a cell
        np.testing.assert_allclose(shares, shown / len(frame))
        assert counts.sum() / len(frame) + drawn.outside[side] == pytest.approx(1.0)
    assert drawn.axis == "linear"
    wide = pd.DataFrame({"x": stats.pareto(1.0).rvs(2000, random_state=np.random.default_rng(5))})
    axes = [column(compare(wide * sign, wide * sign), "x").histogram for sign in (1, -1)]
    assert [chart.axis for chart in axes if chart is not None] == ["log", "asinh"]


def test_tails_stop_where_five_rows_are_left(
    compared: Comparison, pair: tuple[pd.DataFrame, dipriv.Release[Any]]
) -> None:
    tails, values = column(compared, COLUMN).tails, pair[0][COLUMN].to_numpy()
    assert tails is not None
    for point, share in zip(tails.points, tails.before, strict=True):
        beyond = (values <= point).sum() if point < np.median(values) else (values >= point).sum()
        assert share == (beyond / len(values) if beyond >= 5 else None)


def test_a_value_that_most_rows_hold_is_listed_and_not_drawn() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"x": np.where(rng.random(1000) < 0.7, 0.0, rng.lognormal(size=1000))})
    facts = column(compare(table, table), "x")
    assert [line.name for line in facts.frequent] == ["0"]
    assert facts.frequent[0].before == (table["x"] == 0).mean()
    assert facts.histogram is not None
    assert sum(facts.histogram.before) < 0.35


def test_dependence_is_that_of_scipy(pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison) -> None:
    table, release = pair
    assert compared.dependence is not None
    ranks, bins = compared.dependence.maps
    assert ranks.names == (COLUMN, "pay", "age", "children", "since")
    for matrix, frame in ((ranks.before, table), (ranks.after, release.data)):
        expected = stats.spearmanr(frame[COLUMN], frame["age"]).statistic
        assert matrix[0][2] == pytest.approx(expected)
    assert bins.measure == "Cramér's V"
    town, works = (np.unique(table[name], return_inverse=True)[1] for name in ("town", "works"))
    assert bins.before[5][6] == pytest.approx(cramers_v(town, works))
    changes = [abs(change.difference) for change in compared.dependence.changes]
    assert changes == sorted(changes, reverse=True)
    assert len(changes) == 10


def test_cramers_v_is_chi_squared_with_bergsmas_correction() -> None:
    rng = np.random.default_rng(7)
    one = rng.integers(0, 4, 500)
    two = np.where(rng.random(500) < 0.5, one % 3, rng.integers(0, 3, 500))
    table = pd.crosstab(one, two).to_numpy()
    squared = stats.chi2_contingency(table, correction=False).statistic / 500 - 3 * 2 / 499
    assert cramers_v(one, two) == pytest.approx(np.sqrt(squared / (3 - 2**2 / 499 - 1)))
    assert np.isnan(cramers_v(one, np.zeros(500, dtype=np.intp)))


def test_spearman_takes_the_rows_where_both_are_there() -> None:
    rng = np.random.default_rng(8)
    x, y, constant = rng.standard_normal(400), rng.standard_normal(400), np.ones(400)
    y += x
    matrix = spearman([x, y, constant])
    assert matrix[0][1] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert matrix[2][2] is None
    x[:100] = np.nan
    holes = spearman([x, y])[0][1]
    ranks = stats.rankdata(y)[100:]  # within the whole column, not among the rows that are left
    assert holes == pytest.approx(np.corrcoef(stats.rankdata(x[100:]), ranks)[0, 1])


def test_at_most_forty_columns_are_on_the_maps() -> None:
    table = pd.DataFrame(np.random.default_rng(9).standard_normal((50, 43)))
    found = compare(table, table).dependence
    assert found is not None
    assert len(found.maps[0].names) == 40
    assert found.left_out == ("40", "41", "42")


# --- rows ---


def test_row_fidelity_of_a_release_is_what_epsilon_allows() -> None:
    rng = np.random.default_rng(11)
    n = 8000
    table = pd.DataFrame({"x": rng.standard_normal(n)})
    release = dipriv.privatize(table, 3.0, public=pd.DataFrame({"x": rng.standard_normal(n)}), seed=12)
    told: dict[str, Any] = {"schema": release.schema, "rows": release.secrets.row_positions}
    kept = release.fidelity
    found = column(compare(table, release.data, fidelity=kept, **told), "x").fidelity[0]
    assert found.value == pytest.approx(np.corrcoef(table["x"], release.data["x"])[0, 1])
    assert found.expected == kept["x"]
    assert abs(found.value - kept["x"]) < 5 / np.sqrt(n)
    less = dipriv.privatize(table, 1.0, public=table, seed=12).fidelity["x"]
    assert found.value - less > 5 / np.sqrt(n)  # control
    assert column(compare(table, release.data, **told), "x").fidelity[0].expected is None


def test_agreement_counts_rows_with_the_same_label(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison
) -> None:
    table, release = pair
    found = column(compared, "town").fidelity[0]
    assert found.measure == "agreement beyond chance"
    before, after = table["town"].to_numpy()[release.secrets.row_positions], release.data["town"].to_numpy()
    assert found.value == pytest.approx(cohen_kappa_score(before, after))


def test_rows_are_paired_only_if_known(pair: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    table, release = pair
    unknown = compare(table[["age"]], release.data[["age"]])
    assert not unknown.paired
    assert not unknown.columns[0].fidelity
    assert "no row fidelity" in render(unknown)
    mixed = np.random.default_rng(13).permutation(ROWS)
    found = compare(table[["age"]], table[["age"]].iloc[mixed], rows=mixed)
    assert found.columns[0].fidelity[0].value == pytest.approx(1.0)
    assert compare(table[["age"]], table[["age"]].iloc[mixed]).columns[0].fidelity[0].value < 0.5  # control


def test_a_column_passed_through_is_said_and_gets_no_budget(pair: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    table, release = pair
    kept = release.data.assign(pay=table["pay"].to_numpy()[release.secrets.row_positions])
    expected = {name: value for name, value in release.fidelity.items() if name != "pay"}
    found = compare(table, kept, rows=release.secrets.row_positions, guarantee=release.guarantee, fidelity=expected)
    assert "passed through" in column(found, "pay").note
    assert column(found, "pay").fidelity[0].expected is None
    assert column(found, "age").fidelity[0].expected == release.fidelity["age"]


# --- the regression ---


def test_the_regression_is_that_of_statsmodels(pair: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    from statsmodels.api import OLS, add_constant

    table, release = pair
    names = [COLUMN, "age", "works"]
    found = compare(table[names], release.data[names], target=COLUMN).downstream
    assert found is not None
    assert found.model == "least squares"
    assert [coefficient.name for coefficient in found.coefficients] == ["intercept", "age", "works = True"]
    for side, frame in (("before", table), ("after", release.data)):
        direct = OLS(frame[COLUMN].to_numpy(), add_constant(frame[["age", "works"]].to_numpy(np.float64))).fit()
        for place, scale in ((1, table["age"].std(ddof=0)), (2, 1.0)):
            estimate = getattr(found.coefficients[place], side)
            assert estimate.value == pytest.approx(direct.params[place] * scale)
            assert [estimate.low, estimate.high] == pytest.approx(direct.conf_int()[place] * scale)
    assert found.inside == sum(c.before.low <= c.after.value <= c.before.high for c in found.coefficients)


def test_two_labels_are_a_logistic_regression(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison
) -> None:
    from statsmodels.discrete.discrete_model import Logit

    found = compared.downstream
    assert found is not None
    assert found.model == "logistic regression"
    whole, table = pair[0], pair[0].dropna()
    assert found.rows[0] == len(table)
    numbers = [(table[n] - whole[n].mean()) / whole[n].std(ddof=0) for n in (COLUMN, "pay", "age", "children", "since")]
    labels = [table["town"] == town for town in (LABEL, "Bern", "a\nb")]  # against the first in order, "$x_1$"
    design = np.column_stack([np.ones(len(table)), *numbers, *labels]).astype(np.float64)
    direct = Logit(table["works"].to_numpy(np.float64), design).fit(disp=0)
    assert [coefficient.before.value for coefficient in found.coefficients] == pytest.approx(direct.params, rel=1e-6)
    assert found.coefficients[7].name == "town = Bern"


def test_a_regression_that_cannot_be_fitted_is_a_sentence_on_the_page() -> None:
    rng = np.random.default_rng(14)
    x = rng.standard_normal(200)
    table = pd.DataFrame({"x": x, "y": x > 0, "z": rng.choice(["a", "b", "c"], 200), "one": 1.0})
    separated = compare(table[["x", "y"]], table[["x", "y"]], target="y")
    assert separated.downstream is not None
    assert separated.downstream.model == "least squares"
    assert "The logistic regression failed" in separated.downstream.notes[-1]
    labels = compare(table, table, target="z")
    three = labels.downstream
    assert three is not None
    assert "3 labels" in three.failure
    assert "No regression:" in render(labels)
    constant = compare(table, table, target="one").downstream
    assert constant is not None
    assert "fewer than two" in constant.failure


def test_what_a_regression_leaves_out_is_said() -> None:
    rng = np.random.default_rng(15)
    n = 600
    x = rng.standard_normal(n)
    table = pd.DataFrame(
        {
            "y": x + rng.standard_normal(n),
            "x": x,
            "twice": 2 * x,
            "code": rng.choice([f"c{i}" for i in range(31)], n),
            "holes": np.where(rng.random(n) < 0.8, np.nan, x),
        }
    )
    found = compare(table, table, target="y").downstream
    assert found is not None
    assert [coefficient.name for coefficient in found.coefficients] == ["intercept", "x"]
    said = " ".join(found.notes)
    assert "twice" in said
    assert "“code” is left out" in said
    assert "“holes” is left out" in said


# --- the page ---


class _Balanced(HTMLParser):
    """Every element is closed in order, no id is used twice, and what is loaded or pointed at is collected."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.ids: list[str] = []
        self.pointers: list[str] = []
        self.texts: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.pointers.append(value)
            if name.startswith("on"):
                self.faults.append(name)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(page: str) -> _Balanced:
    parser = _Balanced()
    parser.feed(page)
    parser.close()
    return parser


def test_the_page_is_well_formed_and_loads_nothing(page: str) -> None:
    found = parsed(page)
    assert not found.open
    assert not found.faults
    assert len(found.ids) == len(set(found.ids))
    assert {"svg", "figure", "figcaption", "table", "th", "h1"} <= found.seen
    assert not {"script", "iframe", "object", "embed", "img"} & found.seen
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert all(pointer.startswith(("#", "data:")) for pointer in found.pointers)
    assert {pointer[1:] for pointer in found.pointers if pointer.startswith("#")} <= set(found.ids)
    assert set(_targets(page)) <= set(found.ids)
    broken = parsed(page.replace("</table>", "", 1))
    assert broken.faults  # control


def _targets(page: str) -> list[str]:
    return [part.split(")")[0] for part in page.split("url(#")[1:]]


def test_names_and_labels_are_escaped(page: str) -> None:
    assert "<script" not in page
    assert "<b>x" not in page
    texts = parsed(page).texts
    assert COLUMN in texts
    assert LABEL in texts
    assert "$x_1$" in texts  # not set as a formula


def test_the_page_says_first_that_it_is_private_and_what_is_promised(
    page: str, pair: tuple[pd.DataFrame, dipriv.Release[Any]]
) -> None:
    text = " ".join("".join(parsed(page).texts[2:]).split())
    assert "Contains statistics of the private data; do not publish." in text
    assert text.index("do not publish") < text.index("Guarantee")
    assert " ".join(str(pair[1].guarantee).split()) in text
    assert "table-header-group" in page  # repeated on every printed page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme" in page
    assert "1,500" in text
    assert "is “True”" in text


def test_every_chart_has_a_description(page: str) -> None:
    assert page.count("<svg") == page.count('role="img" aria-label=')
    assert page.count("<figure>") == page.count("<figcaption>") == page.count("<svg")


@pytest.mark.slow
def test_no_cell_that_occurs_once_is_on_the_page() -> None:
    rng = np.random.default_rng(16)
    n = 400
    labels = rng.choice(["a", "b"], n).astype(object)
    labels[7] = MARKER
    numbers = rng.lognormal(8.0, 1.0, n).round(3)
    numbers[7] = UNIQUE
    codes = rng.integers(0, 5, n)
    codes[7] = NUMBER
    days = np.datetime64("2020-01-01") + rng.integers(0, 300, n)
    days[7] = np.datetime64("1931-07-13")
    names = np.array([f"{SECRET} {i}" for i in range(n)])
    table = pd.DataFrame({"label": labels, "number": numbers, "code": codes, "day": days, "name": names})
    table["y"] = rng.random(n) < 0.5
    page = render(compare(table, table.sample(frac=1.0, random_state=1), target="y"))
    for told in (MARKER, SECRET, "987654", "987,654", "987,700", str(NUMBER), f"{NUMBER:,}", f"{NUMBER:g}", "1931"):
        assert told not in page
    text = " ".join(parsed(page).texts)
    assert not [number for number in numbers if f"{number:.3f}" in text or f"{number:,.3f}" in text]
    assert "More than 200 different labels" in text
    many = table[["label"]].assign(label=MARKER)
    often = render(compare(many, many))
    assert MARKER in often  # control: a label of many rows is shown


def test_nothing_about_the_rows_is_in_a_repr(compared: Comparison) -> None:
    assert (
        repr(compared)
        == f"Comparison(rows=({ROWS}, {compared.rows[1]}), used=({ROWS}, {compared.used[1]}), paired=True)"
    )
    assert "Bern" not in repr(compared.columns) + repr(compared.dependence) + repr(compared.downstream)
    assert "mean" not in repr(compared.columns[0].moments)


@pytest.mark.slow
def test_the_same_tables_give_the_same_bytes(
    pair: tuple[pd.DataFrame, dipriv.Release[Any]], compared: Comparison, page: str
) -> None:
    import matplotlib as mpl

    table, release = pair
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "svg.hashsalt": None}):
        settings = dict(mpl.rcParams)
        again = render(
            compare(
                table,
                release.data,
                schema=release.schema,
                rows=release.secrets.row_positions,
                guarantee=release.guarantee,
                target="works",
            )
        )
        assert dict(mpl.rcParams) == settings  # a report leaves the user's settings alone
    assert again == page
    other = compare(table, release.data, schema=release.schema, rows=release.secrets.row_positions, seed=1)
    assert column(other, "age").distances != column(compared, "age").distances  # the samples of the baseline
    assert column(other, "age").moments == column(compared, "age").moments


def test_all_libraries_give_the_same_report(pair: tuple[pd.DataFrame, dipriv.Release[Any]]) -> None:
    names = ["pay", "age", "since", "town", "works"]
    table, released = pair[0][names], pair[1].data[names]
    facts = []
    for convert in (lambda t: t, pl.from_pandas, lambda t: pa.Table.from_pandas(t, preserve_index=False)):
        found = compare(convert(table), convert(released), rows=pair[1].secrets.row_positions)
        facts.append((found.columns, found.dependence))
    assert facts[0] == facts[1] == facts[2]
    crossed = compare(table, pl.from_pandas(released), rows=pair[1].secrets.row_positions)
    assert (crossed.columns, crossed.dependence) == facts[0]


def test_times_are_told_as_times(compared: Comparison, page: str) -> None:
    since = column(compared, "since")
    assert since.clock == "date"
    text = parsed(page).texts
    assert any(cell.startswith("2005-") for cell in text)
    assert any(cell.endswith(" days") for cell in text)
    clocks = pd.DataFrame(
        {
            "moment": pd.to_datetime(np.arange(400) * 4000, unit="s"),
            "took": pd.to_timedelta(np.arange(400) * 60, unit="s"),
        }
    )
    both = compare(clocks, clocks)
    assert [facts.clock for facts in both.columns] == ["timestamp", "duration"]
    page = render(both)
    assert "1970-01-05 " in page
    assert "3.317 hours" in page  # the median of 0, 1, .. 399 minutes, a mean of five


# --- large, bad and odd input ---


@pytest.mark.slow
def test_large_tables_are_sampled_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.report.pairing.MAX_ROWS", 500)
    table = survey(17)[["age", "town"]]
    found = compare(table, table, seed=3)
    assert (found.rows, found.used) == ((ROWS, ROWS), (500, 500))
    assert column(found, "age").fidelity[0].value == pytest.approx(1.0)  # rows stay beside their originals
    assert column(found, "town").fidelity[0].value == 1.0
    assert "random sample" in render(found)
    assert found == compare(table, table, seed=3)
    assert found != compare(table, table, seed=4)


def test_columns_that_cannot_be_compared_are_listed() -> None:
    table = pd.DataFrame({"a": [1.0] * 9, "b": ["x"] * 9, "mine": 1, "list": [[1]] * 9, "far": [np.inf] * 9})
    other = pd.DataFrame({"a": [1.0] * 9, "b": [2] * 9, "yours": 1, "list": [[1]] * 9, "far": [np.inf] * 9})
    left_out = dict(compare(table, other).left_out)
    assert left_out["mine"] == "only in the original"
    assert left_out["yours"] == "only in the release"
    assert left_out["b"] == "text in the original, int64 in the release"
    assert "list" in left_out["list"]
    assert "infinite" in left_out["far"]


def test_bad_input_is_refused_without_a_cell() -> None:
    table = pd.DataFrame({"a": [SECRET] * 9, "n": [NUMBER] * 9})
    refused(dipriv.InputError, "no column in common", call=lambda: compare(table, table.rename(columns=str.upper)))
    refused(dipriv.InputError, "the original: the table has no rows", call=lambda: compare(table.iloc[:0], table))
    refused(dipriv.InputError, "the release: the table has no rows", call=lambda: compare(table, table.iloc[:0]))
    refused(dipriv.InputError, "target 'z'", call=lambda: compare(table, table, target="z"))
    refused(dipriv.InputError, "9 rows", call=lambda: compare(table, table, rows=np.arange(8)))
    refused(dipriv.InputError, "outside", call=lambda: compare(table, table, rows=np.arange(1, 10)))
    refused(dipriv.InputError, "guarantee", call=lambda: compare(table, table, guarantee={"epsilon": "much"}))
    refused(dipriv.InputError, "expected a table", call=lambda: compare(table, SECRET))


def test_a_missing_package_is_told_with_its_remedy(compared: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    refused(dipriv.InputError, "jinja2", "dipriv[report]", call=lambda: render(compared))
    monkeypatch.setitem(sys.modules, "statsmodels.regression.linear_model", None)
    table = survey(18)[["age", "children"]]
    refused(dipriv.InputError, "statsmodels", call=lambda: compare(table, table, target="age"))


@pytest.mark.parametrize("rows", [1, 4, 6, 12, 25])
def test_small_tables_have_a_page(rows: int) -> None:
    table = survey(19, rows).assign(constant=1.5, nothing=np.nan)
    found = compare(table, survey(20, rows).assign(constant=1.5, nothing=np.nan), target="pay")
    assert len(found.columns) == 9
    if rows < 5:
        assert not [line for facts in found.columns for line in facts.quantiles]
        assert parsed(render(found)).faults == []


def test_extreme_numbers_have_a_page() -> None:
    rng = np.random.default_rng(21)
    table = pd.DataFrame(
        {
            "huge": rng.uniform(1e307, 1.7e308, 60) * rng.choice([-1, 1], 60),
            "tiny": rng.random(60) * 1e-310,
            "whole": rng.integers(2**60, 2**62, 60),
            "old": np.datetime64("0001-01-01", "s") + rng.integers(-(10**11), 10**10, 60).astype("timedelta64[s]"),
        }
    )
    assert not parsed(render(compare(table, table, target="whole"))).faults


# --- the file ---


@pytest.fixture(scope="module")
def small() -> Comparison:
    table = survey(22)[["town"]]
    return compare(table, table)


def test_the_file_is_whole_and_the_owners_only(small: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    path.chmod(0o644)
    write_report(small, path)
    assert path.read_text(encoding="utf-8") == render(small)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_no_part(
    small: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    refused(dipriv.StorageError, "report.html", "No space left", call=lambda: write_report(small, path))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"
    refused(dipriv.StorageError, "No such file", call=lambda: write_report(small, tmp_path / "none" / "report.html"))
