"""The few exceptions of dipriv: each says what is wrong and where, against which limit, and what to do.

No message ever contains a cell of the data: a message may name columns, types, counts and limits only. A remedy is in
the words of Python; where the command line has other words, it has a remedy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


class DiprivError(Exception):
    """Base of all errors that dipriv raises on purpose: a fault, then a remedy on its own line.

    Parameters
    ----------
    fault : what is wrong and where, against which limit.
    remedy : what to do.
    command : what to do in the words of the command line, if these are others.
    """

    def __init__(self, fault: str, remedy: str, *, command: str | None = None) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy
        self.command = command or remedy

    def __str__(self) -> str:
        return f"{self.fault}\n{self.remedy}"


class InputError(DiprivError, ValueError):
    """An argument or a table that cannot be used as given."""


class SchemaError(InputError):
    """The schema is not well formed, or contradicts the table's columns or types."""


class ReferenceDataError(InputError):
    """The reference rows do not suffice to estimate the distribution, or do not match the table."""


def refuse_all(found: Sequence[DiprivError]) -> None:
    """Raise one error about all that was found: the error itself, or a `SchemaError` with every fault and remedy."""
    if not found:
        return
    if len(found) == 1:
        raise found[0]
    faults = "; ".join(dict.fromkeys(one.fault.removesuffix(".") for one in found))
    remedies, commands = ([getattr(one, which) for one in found] for which in ("remedy", "command"))
    raise SchemaError(f"{faults}.", " ".join(dict.fromkeys(remedies)), command=" ".join(dict.fromkeys(commands)))


def unusable(names: Iterable[str], check: Callable[[str], object]) -> list[DiprivError]:
    """What `check` refuses about each of these columns."""
    found: list[DiprivError] = []
    for name in names:
        try:
            check(name)
        except DiprivError as fault:
            found.append(fault)
    return found


class SourceChangedError(DiprivError, RuntimeError):
    """The source gave other rows than at its first reading."""


class StorageError(DiprivError, OSError):
    """A file cannot be read or written: no space, no permission, not enough memory."""

    def __init__(self, fault: str, remedy: str, *, command: str | None = None) -> None:
        super().__init__(fault, remedy, command=command)
        self.errno = self.strerror = None  # OSError would take the two texts for them


class MissingDependencyError(DiprivError, ImportError):
    """An optional package is not installed; the remedy names the extra that brings it."""


class InternalError(DiprivError, RuntimeError):
    """A fault of dipriv itself: please report it."""


class PrivacyWarning(UserWarning):
    """The release is less private than it may seem: a seed, columns that pass through unprotected, a very large ε."""


class UtilityWarning(UserWarning):
    """The release will say little about the table: rows times ε are too small for its columns."""


class RuleWarning(UserWarning):
    """Rows of the private table break a rule of the schema: for its keeper alone. Released rows do not break it."""


class DisclosureError(DiprivError):
    """The request would publish rows that the guarantee does not protect."""


class LedgerError(DiprivError):
    """The ledger is locked, unreachable, not a ledger, of another version, or lacks the requested data set."""


class BudgetError(DiprivError):
    """The release would spend more than is left of the data set's budget, or evade that budget."""
