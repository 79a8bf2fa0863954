"""Small pieces of HTML for notebooks: every text is escaped, nothing is loaded, the notebook's own style applies."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text(content: object) -> str:
    """A text on one line, escaped, without control characters.

    >>> text("<b>a & b")
    '&lt;b&gt;a &amp; b'
    """
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(content)))


def paragraph(content: object, *, strong: bool = False) -> str:
    """A paragraph of text."""
    return f"<p><b>{text(content)}</b></p>" if strong else f"<p>{text(content)}</p>"


def lines(content: str) -> str:
    """A text of several lines, as it is laid out."""
    return f'<pre style="white-space: pre-wrap">{"&#10;".join(map(text, content.splitlines()))}</pre>'


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with a line of names; texts are to the left."""
    head = "".join(f'<th style="text-align: left">{text(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{text(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def items(contents: Sequence[object]) -> str:
    """A list of texts."""
    return f"<ul>{''.join(f'<li>{text(content)}</li>' for content in contents)}</ul>"


def folded(title: str, content: str) -> str:
    """HTML that is shown on a click."""
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def document(*parts: str) -> str:
    """Pieces of HTML, one below the other."""
    return f"<div>{''.join(parts)}</div>"
