"""A data sheet as a page to read: one HTML file without scripts, for wide and narrow screens."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dipriv.release.sheet import Sheet

SHOWN_PAIRS = 200
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td:last-child { min-width: 10rem; }
pre { background: var(--soft); overflow-x: auto; padding: .8rem; white-space: pre-wrap; }
.good { color: #1a7f37; } .lost { color: #c62828; } .usable, .unknown { color: #9a6700; }
@media (prefers-color-scheme: dark) { .good { color: #4ac26b; } .lost { color: #ff7b72; }
  .usable, .unknown { color: #d4a72c; } }
"""


def page(sheet: Sheet) -> str:
    """The whole page."""
    parts = [
        f"<h1>{escape(sheet.released)}</h1>",
        f"<p>{escape(sheet.citation)}</p>",
        _verdict(sheet),
        _columns(sheet),
        _pairs(sheet),
        _analysis(sheet),
        "<h2>Guarantee</h2>",
        f"<pre>{escape(str(sheet.guarantee))}</pre>",
        _options(sheet),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(sheet.released)}: data sheet</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _verdict(sheet: Sheet) -> str:
    verdict = sheet.verdict
    return "" if verdict is None else f"<h2>What it is good for</h2>\n<pre>{escape(str(verdict))}</pre>"


def _columns(sheet: Sheet) -> str:
    verdict = sheet.verdict
    judged = {} if verdict is None else {column.name: column for column in verdict.columns}
    rows = []
    for name, kind in sheet.schema.items():
        column, kept = judged.get(name), sheet.sidecar.fidelity.get(name)
        grade = "" if column is None else column.grade.value
        reasons = "" if column is None else "; ".join(reason.text for reason in column.reasons)
        error = "" if column is None or column.error is None else f"{column.error:.3f}"
        rows.append(
            f"<tr><td>{escape(name)}</td><td>{escape(kind.name)}{' (declared)' if name in sheet.declared else ''}</td>"
            f'<td class="{grade}">{grade}</td><td class="number">{error}</td>'
            f'<td class="number">{"" if kept is None or math.isnan(kept) else f"{kept:.3f}"}</td>'
            f"<td>{escape(reasons)}</td></tr>"
        )
    head = ["column", "taken as", "grade", "expected error", "fidelity", "why"]
    return (
        "<h2>Columns</h2>\n"
        + _table(head, rows)
        + (
            "<p>Expected error: the total variation between the released and the true distribution of a column. "
            "Fidelity: the expected correlation of a released with the true value of the same row.</p>"
        )
    )


def _pairs(sheet: Sheet) -> str:
    verdict = sheet.verdict
    judged = {} if verdict is None else {frozenset(pair.columns): pair for pair in verdict.pairs}
    rows = []
    for one, two in sheet.pairs[:SHOWN_PAIRS]:
        pair = judged.get(frozenset((one, two)))
        cells = "<td></td><td></td><td></td>"
        if pair is not None:
            cells = (
                f'<td class="{pair.grade.value}">{pair.grade.value}</td><td class="number">{pair.association:.2f}</td>'
                f'<td class="number">{pair.error:.3f}</td>'
            )
        rows.append(f"<tr><td>{escape(one)} x {escape(two)}</td>{cells}</tr>")
    if not rows:
        return ""
    more = f"<p>And {len(sheet.pairs) - SHOWN_PAIRS} more.</p>" if len(sheet.pairs) > SHOWN_PAIRS else ""
    head = ["pair", "grade", "Cramér's V", "expected error"]
    return (
        "<h2>Measured pairs</h2>\n<p>What these columns say about each other was measured; all other pairs are as if "
        "independent, given these.</p>" + _table(head, rows) + more
    )


def _analysis(sheet: Sheet) -> str:
    from dipriv.release.sheet import HOW_TO_ANALYSE

    if sheet.no_model is not None:
        return f"<h2>How to analyse it</h2>\n<p>There are no intervals: {escape(sheet.no_model)}</p>"
    lines = "".join(f"<li>{escape(line)}</li>" for line in HOW_TO_ANALYSE)
    code = "import dipriv\nfrom dipriv.statistics import Mean, Share, Slope\n\n"
    code += f"sheet = dipriv.load_sheet({sheet.released!r})\n"
    code += f"print(sheet.interval(Mean({next(iter(sheet.schema), 'column')!r}), progress=True))"
    return f"<h2>How to analyse it</h2>\n<ul>{lines}</ul>\n<pre>{escape(code)}</pre>"


def _options(sheet: Sheet) -> str:
    from dipriv.release.sheet import options_of

    options = options_of(sheet._model) | {"dipriv": sheet.sidecar.version, "rows released": sheet.sidecar.rows_released}
    shown = {name: value for name, value in options.items() if value not in (None, [], "")}
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in shown.items()]
    return "<h2>How it was made</h2>\n" + _table(["option", "value"], rows)


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
