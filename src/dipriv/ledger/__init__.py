"""Budgets and releases in a database: ε is spent before any output exists, and stays spent whatever happens next.

    reserve -> write -> commit

A release first reserves its ε, in one transaction that refuses to overspend the data set's budget; then its output is
written; then it is committed. A failure, a crash or a power cut after the reservation leaves the ε spent: what was
written by then may have been seen. The same database holds each data set's secret split key, so that every release
of a table holds out the same rows, and the secret key of content fingerprints.
"""

from __future__ import annotations

from dipriv.errors import BudgetError, LedgerError
from dipriv.ledger.ledger import Ledger
from dipriv.ledger.request import DatasetState, ReleaseRequest
from dipriv.ledger.values import Dataset, Record

__all__ = ["BudgetError", "Dataset", "DatasetState", "Ledger", "LedgerError", "Record", "ReleaseRequest"]
