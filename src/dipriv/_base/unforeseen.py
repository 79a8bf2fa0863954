"""What is said of spending where a release is interrupted, or fails for a reason that is not dipriv's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dipriv.errors import DiprivError

NOTHING_IS_SPENT = "Nothing is spent, and nothing is written."
MAY_BE_SPENT = "ε may be spent: the ledger, if there is one, says so."


@contextmanager
def if_unforeseen(note: str) -> Iterator[None]:
    """An interrupt, or an error that is not dipriv's own, has this note, unless it says itself what is spent."""
    try:
        yield
    except DiprivError:
        raise
    except BaseException as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
