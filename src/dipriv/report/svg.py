"""matplotlib's figures as SVG for use inside an HTML page: same bytes each time, page colours, no ids that collide."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

INK, RULE, BEFORE, AFTER = "#010203", "#b0b1b2", "#0072b2", "#d55e00"
"""Text, grid lines, original (blue) and release (vermilion of Okabe and Ito); the page replaces them in the dark."""
_VARIABLES = {INK: "var(--ink)", RULE: "var(--rule)", BEFORE: "var(--before)", AFTER: "var(--after)"}
_POINTER = re.compile(r"(?:url\(|^)#([\w-]+)(?=\)|$)")
_STYLE: Any = {
    "svg.hashsalt": "dipriv",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": RULE,
    "grid.alpha": 0.5,
    "grid.linewidth": 0.6,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """Use the report's Matplotlib settings inside, and restore the user's at the end."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # the browser has the fonts
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def figure(width: float, height: float) -> Any:
    """An empty figure, in inches, with room for labels of any length."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def plot(width: float, height: float) -> Any:
    """A figure with fixed margins for numbers on both axes, which is drawn twice as fast, and its axes."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height))
    return drawn, drawn.add_axes((0.6 / width, 0.45 / height, 1 - 0.75 / width, 1 - 0.75 / height))


def to_svg(drawn: Any, key: str, described: str) -> str:
    """The figure as an <svg> element with this description; `key` makes its ids unique."""
    file = io.BytesIO()
    drawn.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314 (made a line above, not read from outside)
    for node in root.iter():
        node.tag = _local(node.tag)
        node.attrib = {_local(name): value for name, value in node.attrib.items()}
    _drop(root, {"metadata", "style"})
    used = {found for node in root.iter() for value in node.attrib.values() for found in _POINTER.findall(value)}
    for node in root.iter():
        _adapt(node, key, used)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": described}
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """Inside HTML, the names of SVG need no namespace."""
    return name.rpartition("}")[2]


def _adapt(node: Any, key: str, used: set[str]) -> None:
    """Ids that are pointed at get the key in front, others go; colours and fonts become those of the page."""
    name = node.attrib.pop("id", None)
    for attribute, value in node.attrib.items():
        painted = re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], value)
        painted = _POINTER.sub(lambda found: found[0].replace("#", f"#{key}-"), painted)
        node.attrib[attribute] = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", painted)
    if name in used:
        node.attrib["id"] = f"{key}-{name}"


def _drop(node: Any, tags: set[str]) -> None:
    for child in list(node):
        if child.tag in tags:
            node.remove(child)
        else:
            _drop(child, tags)
