"""A forecast as HTML with a picture, for notebooks and as a page: every text is escaped, and nothing is loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dipriv._base.decimals import in_full
from dipriv._base.html import document, items, paragraph, table, text
from dipriv.utility.forecast import ColumnForecast
from dipriv.utility.plan import Forecast
from dipriv.utility.plan_wording import error_range, grade, grouped, labels_read, pairs, percent, rows
from dipriv.utility.verdict import GOOD, LOST

MAX_DRAWN = 24
"""How many lines the picture has, those with the largest errors."""
COLOURS = ("#56b4e9", "#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7")
"""Okabe and Ito: the same for any kind of colour vision, on a bright page and on a dark one."""
LEFT, RIGHT, LINE, TOP, BOTTOM = 14, 430, 40, 34, 36
"""In pixels. Names stand above their lines, so that letters are large enough on a phone."""
LOWEST, HIGHEST = 1e-3, 1.0
CHARACTERS = 60
CAPTION = (
    "Expected error of the columns, a dot for each ε: left of the first dashed line a column is good, right of the "
    "second it is lost. The bar is the range at the recommended ε, or the largest, for few and for many labels or "
    "values."
)


def forecast_html(plan: Forecast) -> str:
    """The recommendation, the picture, and the numbers."""
    head = ("ε", "columns good / usable / lost", "median error", "pairs measured", "correlation of rows")
    lines = []
    for found in plan.epsilons:
        grades = [grade(column.error) for column in found.columns]
        counts = " / ".join(str(grades.count(word)) for word in ("good", "usable", "lost"))
        lines.append((in_full(found.epsilon), counts, percent(found.error), pairs(found), rows(found)))
    names = ("column", *(f"ε = {in_full(found.epsilon)}" for found in plan.epsilons))
    by_column = [(name, *map(error_range, one)) for name, one in grouped(plan)]
    offs = [
        (name, *(percent(error) for _, error in one[place].share_errors))
        for place in [plan.epsilons.index(plan.chosen)]
        for name, one in grouped(plan)
    ]
    shares = ("column", *(f"true share {share:.0%}" for share, _ in plan.chosen.columns[0].share_errors))
    use, _, more = plan.recommendation.partition(". ")
    return document(
        paragraph(f"{use}.", strong=True),
        paragraph(more),
        picture(plan),
        paragraph(CAPTION),
        table(head, lines),
        paragraph("Expected error of each column's distribution (total variation):"),
        table(names, by_column),
        paragraph(f"By how much the share of a label or value is off at ε = {in_full(plan.chosen.epsilon)}:"),
        table(shares, offs),
        paragraph(f"At ε = {in_full(plan.chosen.epsilon)}, other options would change:"),
        items([change.text for change in plan.changes]),
        paragraph(
            f"Computed from public facts alone: {plan.rows:,} rows, names and types of columns, schema and options. "
            f"{labels_read(plan)}Ranges are for few and for many labels or values, where nothing declares how many."
        ),
    )


def picture(plan: Forecast) -> str:
    """An <svg>: a line for columns with the same forecast, a dot for each ε, small errors left and large ones right.

    A pale bar is the range at the recommended ε, for few and for many labels or values.
    """
    shown = sorted(grouped(plan), key=lambda group: -group[1][0].error)[:MAX_DRAWN]
    chosen = plan.epsilons.index(plan.chosen)
    height = TOP + LINE * len(shown) + BOTTOM
    said = (
        f"Expected total variation of {len(plan.names)} columns at ε = "
        f"{', '.join(in_full(found.epsilon) for found in plan.epsilons)}, on a logarithmic scale."
    )
    parts = [
        *_axis(TOP, height - BOTTOM),
        *_legend([found.epsilon for found in plan.epsilons]),
        *(
            part
            for place, (name, one) in enumerate(shown)
            for part in _column(name, one, chosen, TOP + LINE * (place + 0.75))
        ),
    ]
    style = "display: block; width: 100%; max-width: 600px; font: 13px sans-serif; fill: currentColor"
    return (
        f'<svg viewBox="0 0 {LEFT + RIGHT + 26} {height}" role="img" aria-label="{text(said)}" style="{style}">'
        f"{''.join(parts)}</svg>"
    )


def page(plan: Forecast) -> str:
    """A whole page."""
    style = (
        "body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;"
        " overflow-wrap: break-word }"
        " :root { color-scheme: light dark } h1 { font-size: 1.5em; line-height: 1.2 }"
        " table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1em 0;"
        " background: linear-gradient(to left, Canvas 50%, transparent) right / 3rem 100% no-repeat local,"
        " linear-gradient(to left, #8889, transparent) right / .8rem 100% no-repeat scroll }"
        " th, td { padding: .2em .8em .2em 0; border-bottom: 1px solid #8884; vertical-align: top }"
        " table:not(:first-of-type) td:first-child { min-width: 8em } td:not(:first-child) { white-space: nowrap }"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What a release will be good for</title><style>{style}</style></head><body>"
        f"<h1>What a release will be good for</h1>{forecast_html(plan)}</body></html>\n"
    )


def _x(error: float) -> float:
    """Where an error stands, on a logarithmic scale."""
    inside = min(max(error, LOWEST), HIGHEST)
    return LEFT + RIGHT * math.log(inside / LOWEST) / math.log(HIGHEST / LOWEST)


def _axis(top: float, bottom: float) -> list[str]:
    """Grid lines at powers of ten, and dashed ones where good ends and lost begins."""
    parts = []
    for error in (1e-3, 1e-2, 1e-1, 1.0):
        x = f"{_x(error):.1f}"
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke="#888" stroke-opacity=".35"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{100 * error:g}%</text>')
    for error, word in ((GOOD, "good"), (LOST, "lost")):
        x, side, shift = f"{_x(error):.1f}", "end" if word == "good" else "start", -4 if word == "good" else 4
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke="currentColor" stroke-dasharray="3 3"/>')
        arrow = "← good" if word == "good" else "lost →"
        parts.append(f'<text x="{float(x) + shift:.1f}" y="{bottom + 28}" text-anchor="{side}">{arrow}</text>')
    return parts


def _legend(epsilons: Sequence[float]) -> list[str]:
    parts = []
    for number, epsilon in enumerate(epsilons):
        x = LEFT + number * RIGHT / max(5, len(epsilons))
        parts.append(f'<circle cx="{x:.1f}" cy="12" r="4" fill="{_colour(number)}"/>')
        parts.append(f'<text x="{x + 8:.1f}" y="16">ε = {text(in_full(epsilon))}</text>')
    return parts


def _column(name: str, one: Sequence[ColumnForecast], chosen: int, y: float) -> list[str]:
    """The names of columns, their range at the chosen ε, and a dot for each ε."""
    short = name if len(name) <= CHARACTERS else f"{name[: CHARACTERS - 1]}…"
    low, high = _x(one[chosen].least), _x(one[chosen].most)
    bar = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_colour(chosen)}"'
    return [
        f'<text x="{LEFT}" y="{y - 10:.1f}">{text(short)}<title>{text(name)}</title></text>',
        f'{bar} stroke-width="8" stroke-opacity=".25"/>',
        *(
            f'<circle cx="{_x(column.error):.1f}" cy="{y:.1f}" r="4.5" fill="{_colour(number)}">'
            f"<title>{text(error_range(column))}</title></circle>"
            for number, column in enumerate(one)
        ),
    ]


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
