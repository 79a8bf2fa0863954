"""The few exceptions of dipriv: each says what is wrong and where, against which limit, and what to do.

No message ever contains a cell of the data: a message may name columns, types, counts and limits only.
"""

from __future__ import annotations


class DiprivError(Exception):
    """Base of all errors that dipriv raises on purpose: a fault, then a remedy on its own line.

    Parameters
    ----------
    fault : what is wrong and where, against which limit.
    remedy : what to do.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.fault}\n{self.remedy}"


class InputError(DiprivError, ValueError):
    """An argument or a table that cannot be used as given."""


class SchemaError(InputError):
    """The schema is not well formed, or contradicts the table's columns or types."""


class ReferenceDataError(InputError):
    """The reference rows do not suffice to estimate the distribution, or do not match the table."""


class SourceChangedError(DiprivError, RuntimeError):
    """The source gave other rows than at its first reading."""


class StorageError(DiprivError, OSError):
    """A file cannot be read or written: no space, no permission, not enough memory."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.errno = self.strerror = None  # OSError would take the two texts for them


class MissingDependencyError(DiprivError, ImportError):
    """An optional package is not installed; the remedy names the extra that brings it."""


class InternalError(DiprivError, RuntimeError):
    """A fault of dipriv itself: please report it."""


class PrivacyWarning(UserWarning):
    """The release is less private than it may seem: a seed, columns that pass through unprotected, a very large ε."""


class DisclosureError(DiprivError):
    """The request would publish rows that the guarantee does not protect."""


class LedgerError(DiprivError):
    """The ledger is locked, unreachable, not a ledger, of another version, or lacks the requested data set."""


class BudgetError(DiprivError):
    """The release would spend more than is left of the data set's budget, or evade that budget."""
