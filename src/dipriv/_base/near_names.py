"""What a mistyped name may have been meant as. Names of columns, options and data sets are public; cells never are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

MAX_NAMES = 12
"""How many names a message lists."""


def near_names(name: object, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Those of the known names, the nearest first, that this one is a mistyped form of; capitals do not count.

    >>> near_names("Afairs", ["age", "affairs"])
    ['affairs']
    """
    if not isinstance(name, str):
        return []
    by_letters = {other.casefold(): other for other in sorted(known, reverse=True)}
    return [by_letters[other] for other in get_close_matches(name.casefold(), by_letters, 3, cutoff)]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A question to put behind an unknown name, or nothing.

    >>> did_you_mean("optimum", ["optimal", "laplace"])
    " (did you mean 'optimal'?)"
    """
    near = near_names(name, known)
    return f" (did you mean {near[0]!r}?)" if near else ""


def listed(names: Collection[object]) -> str:
    """Names as a list in words, of many the first ones."""
    shown = ", ".join(map(repr, list(names)[:MAX_NAMES]))
    return f"{shown} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else shown


def unknown_columns(given: Iterable[tuple[str, Iterable[object]]], names: Collection[str]) -> tuple[str, str] | None:
    """The fault and the remedy where names are no columns of a table, all of them at once; None if all are.

    Parameters
    ----------
    given : (what names them, names).
    names : those of the table's columns.
    """
    wrong = [(where, list({repr(name): name for name in some if name not in names}.values())) for where, some in given]
    wrong = [(where, some) for where, some in wrong if some]
    if not wrong:
        return None
    said = "; ".join(
        f"{where} names {', '.join(f'{name!r}{did_you_mean(name, names)}' for name in some)}" for where, some in wrong
    )
    unknown = [name for _, some in wrong for name in some]
    are = "which is not a column" if len(unknown) == 1 else "which are not columns"
    remedy = "Correct the name, or remove it." if len(unknown) == 1 else "Correct the names, or remove them."
    if not all(near_names(name, names) for name in unknown):
        remedy += f" The columns are {listed(names)}."
    return f"{said}, {are} of the table ({len(names)} columns).", remedy
