"""The privacy budget ledger: a database of data sets, their budgets and their releases.

    reserve -> write -> commit

A release first reserves its ε and δ, in one transaction that fails if the data set's budget does not suffice. Then its
output is written, and then it is committed. After a failure, a crash or a power cut what is reserved stays spent,
because parts of the output may have been seen. The database also holds the secret split key of each data set, so that
every release of a table holds out the same rows, and the secret key of fingerprints, by which a table is recognized
that was sorted or renamed, or that lost or gained columns or rows.
"""

from __future__ import annotations

from dipriv._base.extras import needs_extra
from dipriv.errors import BudgetError, LedgerError

with needs_extra("ledger", "a ledger"):
    from dipriv.ledger.ledger import Ledger
    from dipriv.ledger.request import DatasetState, ReleaseRequest
    from dipriv.ledger.values import Dataset, Record, Reservation

__all__ = [
    "BudgetError",
    "Dataset",
    "DatasetState",
    "Ledger",
    "LedgerError",
    "Record",
    "ReleaseRequest",
    "Reservation",
]
