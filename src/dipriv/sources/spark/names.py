"""Names of columns as Spark takes them: it ignores upper and lower case, and reads dots and backticks as its own."""

from __future__ import annotations

from collections.abc import Iterable


def new_name(taken: Iterable[str]) -> str:
    """A name for a column that none of these has, in upper or lower case."""
    lower = {name.lower() for name in taken}
    return next(name for name in map("row{}".format, range(len(lower) + 1)) if name not in lower)


def quoted(name: str) -> str:
    """A column's name, quoted for Spark's expressions."""
    return "`" + name.replace("`", "``") + "`"
