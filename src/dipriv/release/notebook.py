"""A release in a notebook: its verdict, its first rows and its guarantee. Nothing private is among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dipriv._base.html import document, folded, lines, paragraph, table
from dipriv._tables import frames
from dipriv.errors import InputError
from dipriv.guarantee.wording import claim
from dipriv.release.result import Release, is_lazy
from dipriv.sources.stream import ReleasedBatches
from dipriv.utility.wording import expected_error, headline, pairs, rows, use, warning

MAX_COLUMNS, MAX_ROWS, MAX_TEXT = 12, 5, 40


def release_html(release: Release[Any]) -> str:
    """All of it may be published, as the release itself."""
    of = f"Release of {release.n_rows:,} rows, {len(release.schema):,} columns, under "
    return document(
        paragraph(f"{of}{claim(release.guarantee)}", strong=True),
        _verdict(release),
        _first_rows(release.data),
        folded("Guarantee", lines(str(release.guarantee))),
    )


def _verdict(release: Release[Any]) -> str:
    """What it is good for; the worst columns with the gravest reason of each."""
    found = release.verdict
    if found is None:
        return ""
    worst = found.by_gravity[:MAX_COLUMNS]
    columns = [
        (
            _short(one.name),
            one.grade.value,
            expected_error(one),
            one.reasons[0].text if one.reasons else "",
        )
        for one in worst
    ]
    more = len(found.columns) - len(worst)
    said = [
        headline(found),
        f"Use: {use(found)}",
        warning(found),
        f"Pairs: {pairs(found)}" if found.all_pairs else "",
        f"Rows: {kept}" if (kept := rows(found)) else "",
        *(f"Advice: {one.text}" for one in found.advice),
    ]
    return "".join(
        [
            *(paragraph(sentence) for sentence in said if sentence),
            folded("Columns", table(("column", "grade", "expected error", "why"), columns)),
            paragraph(f"and {more:,} more columns") if more > 0 else "",
        ]
    )


def _first_rows(data: Any) -> str:
    """The first released rows, where they are in memory."""
    if isinstance(data, ReleasedBatches) or is_lazy(data):
        return ""
    try:
        released = frames.read(data)
    except InputError:  # a release without rows
        return ""
    first = released.take(np.arange(released.rows) < MAX_ROWS)
    names = [name for name in first.names if name in first.batch().schema.names][:MAX_COLUMNS]
    cells = [["" if cell is None else _short(cell) for cell in first.array(name).to_pylist()] for name in names]
    return folded("First rows", table([_short(name) for name in names], list(zip(*cells, strict=True))))


def _short(cell: object) -> str:
    """A cell with a length that fits in a table."""
    content = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return content if len(content) <= MAX_TEXT else content[: MAX_TEXT - 1] + "…"
