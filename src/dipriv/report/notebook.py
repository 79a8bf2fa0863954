"""A comparison in a notebook: the findings and one line for each of the worst columns."""

from __future__ import annotations

from dipriv._base.html import document, paragraph, table
from dipriv.guarantee.wording import PRIVATE
from dipriv.report.facts import Comparison
from dipriv.report.formats import fixed, text
from dipriv.report.wording import headline, of_pairs, of_regression, of_rows

MAX_COLUMNS = 20


def comparison_html(comparison: Comparison) -> str:
    """The findings as HTML; they contain statistics of the private table, and say so."""
    shown = comparison.columns[:MAX_COLUMNS]
    distances = [facts.distance("Total variation") for facts in shown]
    rows = [
        (text(facts.name, 40), facts.grade, fixed(None if moved is None else moved.value), "; ".join(facts.reasons))
        for facts, moved in zip(shown, distances, strict=True)
    ]
    more = len(comparison.columns) - len(shown)
    said = (of_pairs(comparison), of_rows(comparison), of_regression(comparison))
    return document(
        paragraph(PRIVATE, strong=True),
        paragraph(headline(comparison)),
        *map(paragraph, filter(None, said)),
        table(("column", "grade", "total variation", "why"), rows),
        paragraph(f"and {more:,} more columns") if more else "",
    )
