"""A data sheet as a page to read: one HTML file without scripts, for wide and narrow screens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from dipriv._base.decimals import in_short
from dipriv._tables.arrow import OTHER
from dipriv._tables.identifiers import is_named_identifier
from dipriv.utility.verdict import GOOD, LOST, Grade
from dipriv.utility.wording import correlation, expected_error, headline, pairs, rows, use, warning

if TYPE_CHECKING:
    from dipriv.release.bootstrap import BootstrapModel
    from dipriv.release.sheet import Sheet

SHOWN_PAIRS = 200
GRADES = frozenset(grade.value for grade in Grade)
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --good: #1a7f37; --lost: #c62828; --usable: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --lost: #ff7b72; --usable: #d4a72c; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
body { overflow-wrap: break-word; }
h1, td:first-child { overflow-wrap: anywhere; } td:first-child { min-width: 7rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.verdict { background: var(--soft); padding: .5rem 1rem; }
.verdict p:first-child { font-size: 1.15rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--soft); padding: .8rem; white-space: pre-wrap; }
.good { color: var(--good); } .lost { color: var(--lost); } .usable, .unknown { color: var(--usable); }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  td, td.number { display: block; border: 0; padding: .05rem 0; text-align: left; } td:empty { display: none; }
  td:first-child { font-weight: 600; } td:not(:first-child)::before { content: attr(data-head) ": "; opacity: .7; }
}
"""


def page(sheet: Sheet) -> str:
    """The whole page."""
    parts = [
        f"<h1>{escape(sheet.released)}</h1>",
        f"<p>{escape(sheet.citation)}</p>",
        _verdict(sheet),
        _columns(sheet),
        _rules(sheet),
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
    """The verdict in sentences; the columns and their reasons are in the table below."""
    found = sheet.verdict
    if found is None:
        return ""
    said = [
        headline(found),
        f"Use: {use(found)}",
        warning(found),
        f"Pairs: {pairs(found)}" if found.all_pairs else "",
        f"Rows: {kept}" if (kept := rows(found)) else "",
    ]
    lines = "".join(f"<p>{escape(sentence)}</p>" for sentence in said if sentence)
    return f'<h2>What it is good for</h2>\n<div class="verdict">{lines}</div>'


def _columns(sheet: Sheet) -> str:
    from dipriv.release.sheet import described

    verdict = sheet.verdict
    judged = {} if verdict is None else {column.name: column for column in verdict.columns}
    lines = []
    for name in sheet.schema:
        column, kept = judged.get(name), sheet.sidecar.fidelity.get(name)
        grade = "" if column is None else column.grade.value
        lines.append(
            (
                name,
                described(name, sheet.schema, sheet.declared),
                grade,
                "" if column is None else expected_error(column),
                "" if kept is None or math.isnan(kept) else correlation(kept),
                "" if column is None else "; ".join(reason.text for reason in column.reasons),
            )
        )
    head = ("column", "taken as", "grade", "expected error", "fidelity", "why")
    return (
        "<h2>Columns</h2>\n"
        + _table(head, lines, numbers=(3, 4))
        + "<p>Expected error: the total variation between the released and the true distribution of a column. It is "
        f"below {GOOD} in 95% of cases where a column is good, below {LOST} where it is usable, and above that where "
        "it is lost; unknown columns may be lost or not, and have the largest error of 95% of cases. Fidelity: the "
        "expected correlation of a released with the true value of the same row.</p>"
    )


def _rules(sheet: Sheet) -> str:
    rules = sheet.schema.rules
    if not rules:
        return ""
    lines = "".join(f"<li>{escape(text)}</li>" for text in rules.texts)
    return f"<h2>Rules</h2>\n<p>They hold in every released row; a missing cell breaks none.</p><ul>{lines}</ul>"


def _pairs(sheet: Sheet) -> str:
    verdict = sheet.verdict
    judged = {} if verdict is None else {frozenset(pair.columns): pair for pair in verdict.pairs}
    lines = []
    for one, two in sheet.pairs[:SHOWN_PAIRS]:
        pair = judged.get(frozenset((one, two)))
        known = ("",) * 3 if pair is None else (pair.grade.value, f"{pair.association:.2f}", f"{pair.error:.3f}")
        lines.append((f"{one} x {two}", *known))
    if not lines:
        return ""
    more = f"<p>And {len(sheet.pairs) - SHOWN_PAIRS} more.</p>" if len(sheet.pairs) > SHOWN_PAIRS else ""
    return (
        "<h2>Measured pairs</h2>\n<p>What these columns say about each other was measured; all other pairs are as if "
        "independent, given these. A pair is good if its association, Cramér's V, is more than twice what noise alone "
        "would make, and lost if noise alone would explain it. Expected error: the total variation of the two-way "
        "table by its noise. It may be large in a good pair: the association is clear then, single cells are not.</p>"
        + _table(("pair", "grade", "Cramér's V", "expected error"), lines, numbers=(2, 3))
        + more
    )


def _analysis(sheet: Sheet) -> str:
    from dipriv.release.sheet import HOW_TO_ANALYSE

    if sheet._model is None:
        return f"<h2>How to analyse it</h2>\n<p>There are no intervals: {escape(str(sheet.no_model))}</p>"
    lines = "".join(f"<li>{escape(line)}</li>" for line in HOW_TO_ANALYSE)
    code = "import dipriv\nfrom dipriv.statistics import Mean, Share, Slope\n\n"
    code += f"sheet = dipriv.load_sheet({sheet.released!r})\n"
    code += f"print(sheet.interval({_example(sheet._model)}, progress=True))"
    return f"<h2>How to analyse it</h2>\n<ul>{lines}</ul>\n<pre>{escape(code)}</pre>"


def _example(model: BootstrapModel) -> str:
    """A statistic that the release has: the mean of its first column of numbers, else the share of a label."""
    for facts in model.facts:
        if facts.storage.family in ("integer", "real", "boolean") and not is_named_identifier(facts.name):
            return f"Mean({facts.name!r})"
    for column in model.columns:
        labels = () if column.labels is None else column.labels.to_pylist()
        named = [label for label in labels if label not in (None, OTHER)]
        if named and column.name in model.released_names:
            return f"Share({column.name!r}, {named[0]!r})"
    return f"Share({model.released_names[0]!r}, None)"


def _options(sheet: Sheet) -> str:
    from dipriv.release.sheet import options_of

    sidecar, made = sheet.sidecar, sheet.sidecar.provenance
    options = options_of(sheet._model)
    options |= {name: in_short(options[name]) for name in ("epsilon of a row", "delta of a row") if name in options}
    options |= {"dipriv": sidecar.version, "rows released": sidecar.rows_released}
    if made is not None:
        options |= {**made.versions, "date": made.date, "command": made.command}
    shown = {name: value for name, value in options.items() if value not in (None, [], "")}
    return "<h2>How it was made</h2>\n" + _table(("option", "value"), [(name, str(shown[name])) for name in shown])


def _table(head: Sequence[str], lines: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; on a narrow screen each line is a paragraph of its own, with the heads before the cells."""

    def cell(place: int, content: str) -> str:
        kinds = ["number"] * (place in numbers) + [content] * (place > 0 and content in GRADES)
        of = f' class="{" ".join(kinds)}"' if kinds else ""
        return f'<td{of} data-head="{escape(head[place])}">{escape(content)}</td>'

    titles = "".join(
        f"<th{' class=number' if place in numbers else ''}>{escape(title)}</th>" for place, title in enumerate(head)
    )
    body = "".join(f"<tr>{''.join(cell(place, one) for place, one in enumerate(line))}</tr>" for line in lines)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
