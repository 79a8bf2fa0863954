"""The report's charts, drawn from plain data by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from dipriv.report.facts import Axis, ColumnFacts, Downstream, HeatMap, Histogram, Levels, Matrix, Tails
from dipriv.report.formats import DAY, fixed, number, text, time, unit_of
from dipriv.report.svg import AFTER, BEFORE, INK, RULE, figure, plot, style, to_svg

WIDTH, HEIGHT = 4.6, 3.0
FEW = 12
"""Heat maps of at most this many columns are shown side by side."""
SPAN = 0.5
"""The end of the colour scale of differences: the same in every report, so that reports can be compared."""
MAX_TERMS = 25
"""How many coefficients of a regression are drawn."""
_NUMBERED = 8
"""In heat maps of at most this many columns the numbers are printed."""
_FIRST, _LAST = -719_162, 2_932_896
"""The days that matplotlib's calendar knows: the years 1 to 9999."""


def column_charts(facts: ColumnFacts, key: str) -> list[str]:
    """The charts of one column: bars of levels, or a histogram and its tails."""
    with style():
        if facts.levels is not None and facts.levels.labels:
            return [_bars(facts.levels, facts, key)]
        charts = []
        if facts.histogram is not None:
            charts.append(_histogram(facts.histogram, facts, f"{key}-main"))
        if facts.tails is not None:
            charts.append(_tails(facts.tails, facts, f"{key}-tails"))
        return charts


def heat_maps(chart: HeatMap, key: str) -> list[str]:
    """Before, after, and the difference."""
    before, after = (_array(matrix) for matrix in (chart.before, chart.after))
    signed = chart.measure == "Spearman"
    difference = np.nan_to_num(after) - before  # a constant column depends on nothing
    np.fill_diagonal(difference, 0.0 * before.diagonal())
    with style():
        return [
            _heat(before, chart, "original", 1.0, f"{key}-1", signed=signed),
            _heat(after, chart, "release", 1.0, f"{key}-2", signed=signed),
            _heat(difference, chart, "release − original", SPAN, f"{key}-3", signed=True),
        ]


def coefficient_chart(found: Downstream, key: str) -> str:
    """A dot and a whisker for each coefficient, original above release; the intercept is in the table only.

    Of many coefficients those are shown that changed most.
    """
    shown = [coefficient for coefficient in found.coefficients if coefficient.name != "intercept"]
    if len(shown) > MAX_TERMS:
        shown = sorted(shown, key=lambda coefficient: -coefficient.change)[:MAX_TERMS]
    with style():
        drawn = figure(WIDTH, 0.9 + 0.26 * len(shown))
        axes = drawn.subplots()
        places = np.arange(len(shown))
        for side, colour, marker, shift in (("before", BEFORE, "o", -0.17), ("after", AFTER, "D", 0.17)):
            estimates = [getattr(coefficient, side) for coefficient in shown]
            values = np.array([e.value for e in estimates])
            ends = np.abs(np.array([[e.low for e in estimates], [e.high for e in estimates]]) - values)
            label = "original" if side == "before" else "release"
            axes.errorbar(
                values, places + shift, xerr=ends, fmt=marker, ms=4, color=colour, label=label, elinewidth=1.4
            )
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(places, [text(coefficient.name, 26) for coefficient in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("coefficient, 95% interval")
        _legend(drawn)
        said = f"{found.inside} of {len(found.coefficients)} released estimates lie inside the original's interval."
        return to_svg(drawn, key, f"Coefficients of the regression of {text(found.target)} on both tables. {said}")


def _bars(levels: Levels, facts: ColumnFacts, key: str) -> str:
    from matplotlib import ticker

    labels = [text(label, 22) for label in levels.labels]
    places = np.arange(len(labels))
    upright = facts.scale == "number"
    drawn = figure(WIDTH, HEIGHT if upright else 0.9 + 0.3 * len(labels))
    axes = drawn.subplots()
    for shares, colour, shift, name in (
        (levels.before, BEFORE, -0.2, "original"),
        (levels.after, AFTER, 0.2, "release"),
    ):
        percents = 100 * np.array(shares)
        if upright:
            axes.bar(places + shift, percents, 0.4, color=colour, label=name)
        else:
            axes.barh(places + shift, percents, 0.4, color=colour, label=name)
    if upright:
        crowded = sum(len(label) + 1 for label in labels) > 44
        axes.set_xticks(places, labels, rotation=90 if crowded else 0)
        axes.set_ylabel("% of the rows")
        axes.grid(visible=False, axis="x")
    else:
        axes.set_yticks(places, labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel("% of the rows")
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6))
        axes.grid(visible=False, axis="y")
    _legend(drawn)
    return to_svg(drawn, key, f"Bars: shares of the levels of {text(facts.name)}, original and release.")


def _histogram(bins: Histogram, facts: ColumnFacts, key: str) -> str:
    drawn, axes = plot(WIDTH, HEIGHT)
    edges = _line(axes, np.array(bins.edges), bins.axis, bins.unit, facts)
    before, after = (100 * np.array(shares) for shares in (bins.before, bins.after))
    axes.stairs(before, edges, fill=True, color=BEFORE, alpha=0.45, label="original")
    axes.stairs(after, edges, color=AFTER, linewidth=1.7, label="release")
    axes.set_ylabel("% of the rows")
    axes.set_ylim(bottom=0)
    axes.set_xlim(edges[0], edges[-1])
    _legend(drawn)
    return to_svg(drawn, key, f"Histogram of {text(facts.name)}, original and release.")


def _tails(tails: Tails, facts: ColumnFacts, key: str) -> str:
    drawn, axes = plot(WIDTH, HEIGHT)
    points = _line(axes, np.array(tails.points), tails.axis, tails.unit, facts)
    for shares, colour, dashes, name in (
        (tails.before, BEFORE, "-", "original"),
        (tails.after, AFTER, (0, (4, 1.5)), "release"),
    ):
        percents = 100 * np.array([np.nan if share is None else share for share in shares])
        axes.plot(points, percents, color=colour, linestyle=dashes, linewidth=1.7, label=name)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.yaxis.minorticks_off()
    axes.set_ylabel("% of the rows beyond")
    _legend(drawn)
    return to_svg(
        drawn, key, f"Tails of {text(facts.name)}: share of the rows below (left) or above (right) a value, log scale."
    )


def _heat(values: Any, chart: HeatMap, title: str, span: float, key: str, *, signed: bool) -> str:
    from matplotlib.colors import LinearSegmentedColormap

    count = len(chart.names)
    side = 3.5 if count <= FEW else WIDTH + 0.06 * (count - FEW)
    drawn = figure(side, side + 0.2)
    axes = drawn.subplots()
    ends = ["#0071b2", "#ffffff", "#d45e00"] if signed else ["#ffffff", "#0071b2"]
    colours = LinearSegmentedColormap.from_list("report", ends).with_extremes(bad="#999999")
    image = axes.imshow(values, cmap=colours, vmin=-span if signed else 0.0, vmax=span, interpolation="nearest")
    names = [text(name, 16) for name in chart.names]
    axes.set_xticks(range(count), names, rotation=90, fontsize=7.5)
    axes.set_yticks(range(count), names, fontsize=7.5)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    if count <= _NUMBERED:
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                ink = "#ffffff" if abs(value) > 0.65 * span else "#000000"
                axes.text(column, row, fixed(value, 2), ha="center", va="center", fontsize=6, color=ink)
    axes.set_title(title)
    ticks = [-span, 0.0, span] if signed else [0.0, span / 2, span]
    extend = "neither" if span == 1.0 else "both"
    bar = drawn.colorbar(
        image, ax=axes, orientation="horizontal", shrink=0.7, aspect=30, pad=0.02, ticks=ticks, extend=extend
    )
    bar.ax.set_xticklabels([number(tick) for tick in ticks])
    bar.outline.set_edgecolor(RULE)
    bar.ax.tick_params(labelsize=8)
    return to_svg(drawn, key, f"Heat map: {chart.measure} between all pairs of {count} columns, {title}.")


def _legend(drawn: Any) -> None:
    place = "upper right" if drawn.get_layout_engine() is None else "outside upper right"
    drawn.legend(loc=place, ncols=2, handlelength=1.6, borderaxespad=0.1)


def _line(axes: Any, values: Any, axis: Axis, unit: float, facts: ColumnFacts) -> Any:
    """Set up the horizontal axis: a calendar, a clock, or a line of numbers; the values on its scale."""
    from matplotlib import ticker

    name = text(facts.name, 40)
    if facts.clock in ("date", "timestamp") and values[0] > _FIRST * DAY and values[-1] < _LAST * DAY:
        _calendar(axes.xaxis)
        axes.set_xlabel(name)
        return values / DAY
    if facts.clock == "time of day":
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 3, 4, 6, 10]))
        axes.xaxis.set_major_formatter(lambda x, _: time(x * 3600.0, "time of day"))
        axes.set_xlabel(name)
        return values / 3600.0
    if facts.clock is not None:
        scale, unit_name = unit_of(float(np.max(np.abs(values))))
        name, values, unit = f"{name} ({unit_name})", values / scale, unit / scale
    if axis == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(numticks=6))
    elif axis == "asinh":
        axes.set_xscale("asinh", linear_width=unit)
        axes.xaxis.set_major_locator(ticker.AsinhLocator(unit, numticks=7))
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda x, _: number(x))
    axes.xaxis.minorticks_off()
    axes.set_xlabel(name)
    return values


def _calendar(axis: Any) -> None:
    import matplotlib.dates

    dates: Any = matplotlib.dates  # has no types
    locator = dates.AutoDateLocator(minticks=3, maxticks=6)
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))


def _array(matrix: Matrix) -> Any:
    return np.array([[np.nan if cell is None else cell for cell in row] for row in matrix])
