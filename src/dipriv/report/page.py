"""Plain data -> one HTML page that needs nothing else: no script, no network, no other file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from dipriv._base.atomic_write import OWNER_ONLY, write_atomic
from dipriv._base.decimals import in_full
from dipriv.guarantee.wording import PRIVATE
from dipriv.report import formats, wording
from dipriv.report.charts import FEW, MAX_TERMS, SPAN, coefficient_chart, column_charts, heat_maps
from dipriv.report.extra import needed
from dipriv.report.facts import GRADES, MAX_DETAILED, MIN_ROWS_SHOWN, ColumnFacts, Comparison
from dipriv.utility.plan_html import forecast_html
from dipriv.utility.verdict import GOOD, LOST
from dipriv.utility.wording import headline, pairs, warning


def render(comparison: Comparison) -> str:
    """The report as HTML. It contains statistics of the private table, and says so on top and on every printed page."""
    with needed():
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        detailed = [
            (facts, [Markup(chart) for chart in column_charts(facts, f"c{place}")])  # noqa: S704 (our own SVG)
            for place, facts in enumerate(comparison.columns[:MAX_DETAILED])
        ]
        found, regression = comparison.dependence, comparison.downstream
        maps = [
            (chart, [Markup(svg) for svg in heat_maps(chart, f"d{place}")])  # noqa: S704
            for place, chart in enumerate(found.maps if found else ())
        ]
        effects = coefficient_chart(regression, "r") if regression and regression.coefficients else ""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        number=formats.number,
        digits=in_full,
        fixed=formats.fixed,
        signed=formats.signed,
        percent=formats.percent,
        count=formats.count,
        label=formats.text,
    )
    return environment.from_string(_template()).render(
        report=comparison,
        title="Original and release" if comparison.audit is None else "Audit of a release",
        headline=wording.headline(comparison),
        grades=[(grade, wording.of_grade(comparison, grade)) for grade in GRADES],
        sentences=[said(comparison) for said in (wording.of_pairs, wording.of_rows)],
        stated=comparison.verdict,
        expected={} if comparison.verdict is None else {one.name: one for one in comparison.verdict.columns},
        pairs_measured=pairs,
        said_of_itself=headline,
        said_of_rules=wording.of_rules(comparison),
        warning_of=warning,
        guarantee=guarantee_lines(comparison.guarantee),
        detailed=detailed,
        maps=maps,
        effects=Markup(effects),  # noqa: S704
        more_epsilon=None if comparison.forecast is None else Markup(forecast_html(comparison.forecast)),  # noqa: S704
        warning=PRIVATE,
        fewest=MIN_ROWS_SHOWN,
        by_reason=wording.by_reason,
        listed=wording.listed,
        max_listed=wording.MAX_LISTED,
        max_terms=MAX_TERMS,
        scales=(GOOD, LOST),
        span=SPAN,
        few=FEW,
        quantity=quantity,
        spread=spread,
    )


def style() -> str:
    """The style sheet of a report, for other pages that look like it."""
    return _template().partition("<style>\n")[2].partition("</style>")[0]


def _template() -> str:
    return resources.files("dipriv.report").joinpath("template.html").read_text(encoding="utf-8")


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Write the report whole or not at all, readable by its owner only."""
    write_atomic(Path(path), render(comparison).encode("utf-8"), OWNER_ONLY)


def guarantee_lines(guarantee: str) -> list[tuple[int, str]]:
    """The lines of a guarantee, each with how far it is indented."""
    return [(len(line) - len(line.lstrip()), " ".join(line.split())) for line in guarantee.splitlines()]


def quantity(facts: ColumnFacts, x: float | None) -> str:
    """A value of the column: a number, or a time."""
    return formats.number(x) if facts.clock is None else formats.time(x, facts.clock)


def spread(facts: ColumnFacts, name: str, x: float | None) -> str:
    """A moment of the column: the mean is a value, the standard deviation of times a duration, skewness a number."""
    if name == "mean":
        return quantity(facts, x)
    return formats.duration(x) if name == "standard deviation" and facts.clock is not None else formats.number(x)
