"""What is said of spending where a release is refused, is interrupted, or fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dipriv.errors import BudgetError, DisclosureError

NOTHING_IS_SPENT = "Nothing is spent, and nothing is written."
MAY_BE_SPENT = "ε may be spent: the ledger, if there is one, says so."


@contextmanager
def if_it_ends(note: str) -> Iterator[None]:
    """An error or interrupt has this note, unless it says itself what is spent. What the ledger refuses is not."""
    try:
        yield
    except BaseException as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(NOTHING_IS_SPENT if isinstance(error, BudgetError | DisclosureError) else note)
        raise
