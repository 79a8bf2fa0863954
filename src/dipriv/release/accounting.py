"""A release in the ledger: recognize the data set, hold out the same rows, reserve ε, commit when rows are written."""

from __future__ import annotations

import hmac
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

from dipriv._base.table_fingerprint import TableFingerprint
from dipriv.errors import BudgetError, DiprivError, PrivacyWarning
from dipriv.guarantee import Guarantee
from dipriv.guarantee.wording import spent
from dipriv.sources._fingerprint import Fingerprint
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import FingerprintRequest

if TYPE_CHECKING:
    from dipriv.ledger import DatasetState, Ledger, ReleaseRequest, Reservation
    from dipriv.release.options import ReleaseOptions

_LOCK = Lock()


def open_ledger(options: ReleaseOptions) -> Ledger | None:
    """The ledger that counts a release, if any: the given one, or the default one for a data set that is named.

    Databases are loaded only where there is one.
    """
    if not options.is_counted:
        return None
    from dipriv.ledger import Ledger

    return options.ledger if isinstance(options.ledger, Ledger) else Ledger.open(options.ledger)


def fingerprint_request(ledger: Ledger | None) -> FingerprintRequest | None:
    """How a table is to be fingerprinted so that the ledger can recognize it.

    The key is derived from the ledger's secret one, which stays here: workers of a cluster get the derived key, which
    must be the same for each release, or a table could not be recognized.
    """
    if ledger is None:
        return None
    return FingerprintRequest(_cells_key(ledger), ledger.sizes())


def _cells_key(ledger: Ledger) -> bytes:
    return hmac.digest(ledger.fingerprint_key(), b"cells", "sha256")


@dataclass
class LedgerSession:
    """What the ledger knows of a table's data set; nothing is stored before ε is reserved."""

    ledger: Ledger = field(repr=False)
    known: DatasetState
    request: ReleaseRequest

    @classmethod
    def identify(
        cls, ledger: Ledger, options: ReleaseOptions, table: TableFingerprint, suggestion: str | None
    ) -> LedgerSession:
        """The data set of a table: by name, else by its fingerprint, else a new one."""
        from dipriv.ledger import ReleaseRequest

        is_new = options.new_dataset is not None
        known = ledger.preview(names=options.dataset_names, table=table, suggestion=suggestion, is_new=is_new)
        return cls(ledger, known, ReleaseRequest(known.name, table, is_new, also=known.also))

    @property
    def name(self) -> str:
        return self.known.name

    @property
    def fitted(self) -> TableFingerprint:
        """The fingerprint of the table of the fit."""
        return self.request.table

    def split(self, holdout: float | None, by: str | None, default: float) -> Split:
        """The data set's own split: the same for this and every later release."""
        share = self.known.holdout if self.known.holdout is not None and holdout is None else holdout
        split = Split.new(default if share is None else share, by)
        if self.known.holdout is not None and self.known.split_key is not None:
            split = Split(split.holdout, self.known.split_key, by, self.known.splits_as_written)
        self.request = replace(self.request, holdout=split.holdout, by=split.by, split_key=split.key)
        self.request.check(self.known)
        return split

    def holds_out(self, keys_digest: bytes | None) -> None:
        """Who is held out, if that is decided by keys of persons; `reserve` refuses others than before."""
        if self.request.by is not None:
            self.request = replace(self.request, keys_digest=keys_digest)

    def fingerprint_key(self) -> bytes:
        """The key for fingerprints of further tables."""
        return _cells_key(self.ledger)

    def check(self, table: TableFingerprint) -> None:
        """Raise BudgetError if a table is or resembles another data set than those that count the fit."""
        names, fault = (self.name, *self.known.also), None
        try:
            found = self.ledger.preview(names=names, table=table, suggestion=None, fitted=self.fitted)
            if others := {*found.also} - {*names}:
                fault = f"this table has rows of data set {min(others)!r}, too."
        except BudgetError as error:
            fault = error.fault
        if fault is not None:
            raise BudgetError(
                f"{fault} Rows of transform are counted for data set {' and '.join(map(repr, names))}, that of fit.",
                "Release this table with dipriv.privatize, or fit with the names of all its data sets (dataset=[...]).",
            )

    def reserve(self, guarantee: Guarantee, output: str | None = None) -> Receipt:
        """Spend ε and δ, before any output exists."""
        if self.known.protects_rows and guarantee.unit.column is not None:
            warnings.warn(
                f"earlier releases of data set {self.name!r} protect one row, not a person: this release protects a "
                "person by itself, and all of them together protect one row. The ledger adds up their ε for a row.",
                PrivacyWarning,
                stacklevel=3,
            )
        reservation = self.ledger.reserve(self.request, guarantee.epsilon, guarantee, output)
        return Receipt(guarantee, self.ledger, reservation, self.name, fitted=self.fitted)


@dataclass
class TransformReceipts:
    """Reservations of a fitted transformer: that of the fit covers one transform, each further one reserves anew."""

    guarantee: Guarantee
    """Of a further transform: with the ε of the rows' noise."""
    session: LedgerSession | None = field(repr=False, default=None)
    first: Receipt | None = None
    process: int = field(repr=False, default_factory=os.getpid)
    """That of the fit: a forked copy must not use its reservation a second time."""

    def next(self, table: TableFingerprint | None = None) -> Receipt:
        """A receipt of its own for each transform, also of several threads or generators.

        The table is registered with the data set of the fit, unless other people may have the same rows by chance.
        """
        table = table if table is not None and _is_telling(table) else None
        if self.session is not None and table is not None:
            self.session.check(table)
        receipt = self._next()
        with receipt.failing():
            if table is not None:
                receipt.add_table(table)
        return receipt

    def stream(self, names: Sequence[str]) -> StreamedTable:
        """A table with these columns that comes in batches."""
        key = None if self.session is None else self.session.fingerprint_key()
        return StreamedTable(self, None if key is None else Fingerprint(key, names))

    def _next(self) -> Receipt:
        with _LOCK:
            first, self.first = self.first, None
        if first is not None and self.process == os.getpid():
            return first
        return Receipt(self.guarantee) if self.session is None else self.session.reserve(self.guarantee)


@dataclass(eq=False)
class StreamedTable:
    """The rows of a stream that have been seen so far, registered with the data set of the fit as they leave.

    At least half of the rows that have left are registered, so that the table is recognized if the stream is not read
    to its end. Where it is closed, by an error or its reader, all of them are. If rows after the first batch are those
    of another data set, ε and δ are spent there, too, even beyond its budget, and a warning says so at the end: rows
    have left, and a refusal would be an output that depends on private rows.
    """

    receipts: TransformReceipts
    fingerprint: Fingerprint | None = field(repr=False)
    """Of the rows that were seen; None without a ledger."""
    registered: int = 0
    receipt: Receipt | None = field(repr=False, default=None)
    counted: int = 0
    """How many other data sets counted the stream when it began."""

    def reserve(self) -> Receipt:
        """Ask whose rows the first ones are, spend ε, and register them."""
        seen = None if self.fingerprint is None or not self.fingerprint.rows else self.fingerprint.result()
        self.receipt = receipt = self.receipts.next(seen)
        self.counted = len(receipt.also)
        self.registered = seen.rows if seen is not None and _is_telling(seen) else 0
        return receipt

    def register_before_leaving(self) -> None:
        """Register all rows that were seen if they are twice as many as those that are registered."""
        if self.fingerprint is not None and self.fingerprint.rows >= 2 * self.registered:
            self.register()

    def register(self) -> None:
        """Register all rows that were seen, also with other data sets whose rows they are."""
        if self.receipt is None or self.fingerprint is None or self.fingerprint.rows == self.registered:
            return
        seen = self.fingerprint.result()
        if _is_telling(seen):
            self.receipt.add_table(seen)
            self.registered = seen.rows

    def __enter__(self) -> StreamedTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(DiprivError):  # what has left is spent, and at least half of it is registered
                self.register()
        if self.receipt is not None and (later := self.receipt.also[self.counted :]):
            guarantee = self.receipt.guarantee
            what = spent(guarantee.epsilon, guarantee.delta)
            text = f"Rows of the stream are those of another data set. {what} also in {_listed(later)}"
            exceeded = self.receipt.exceeded(later)
            text += f", more than the budget of {' and '.join(map(repr, exceeded))} allows." if exceeded else "."
            text += " Where that has another privacy unit or a hold-out, the sums there do not bound what is learned."
            warnings.warn(text, PrivacyWarning, stacklevel=3)


def _is_telling(table: TableFingerprint) -> bool:
    """Whether a table with the same rows, in their order at least, has the same people, and not by chance others."""
    return table.is_telling or table.has_telling_order


def _listed(reservations: Sequence[Reservation]) -> str:
    return " and ".join(f"{one.dataset!r} (release {one.number})" for one in reservations)


@dataclass
class Receipt:
    """What was reserved for one release. Without a ledger nothing is counted, and ε and δ are spent all the same."""

    guarantee: Guarantee
    ledger: Ledger | None = field(repr=False, default=None)
    reservation: Reservation | None = None
    dataset: str | None = None
    is_open: bool = True
    process: int = field(repr=False, default_factory=os.getpid)
    """A forked copy says nothing to the ledger."""
    fitted: TableFingerprint | None = field(repr=False, default=None)
    """Of the table that ε was reserved for."""

    @property
    def also(self) -> tuple[Reservation, ...]:
        """The release in the other data sets whose rows it has."""
        return () if self.reservation is None else self.reservation.also

    def add_table(self, table: TableFingerprint) -> None:
        """Register further rows of the release; they are counted in every data set whose rows they are."""
        if self.ledger is not None and self.reservation is not None:
            self.reservation = self.ledger.add_table(self.reservation, table, self.fitted)

    def exceeded(self, reservations: Sequence[Reservation]) -> list[str]:
        """The data sets of these reservations whose budget is exceeded, as far as the ledger can be read."""
        found = []
        with suppress(DiprivError):
            found = [] if self.ledger is None else [self.ledger.dataset(one.dataset) for one in reservations]
        return [one.name for one in found if one.spent > one.budget or one.delta_spent > one.delta_budget]

    def commit(self, n_rows: int) -> None:
        """The rows are written. Only the first call counts: reading a release again is the same release."""
        if self.is_open and self.ledger is not None and self.reservation is not None:
            self.ledger.commit(self.reservation, n_rows)
        self.is_open = False

    def fail(self, error: BaseException) -> None:
        """The release did not succeed; its ε stays spent, and the error says so."""
        if self.is_open:
            error.add_note(self._spent())
            if self.ledger is not None and self.reservation is not None and self.process == os.getpid():
                with suppress(DiprivError):  # a release that stays reserved is spent, too
                    self.ledger.fail(self.reservation)
        self.is_open = False

    @contextmanager
    def failing(self) -> Iterator[Receipt]:
        """An error inside makes the release fail."""
        try:
            yield self
        except BaseException as error:
            self.fail(error)
            raise

    def _spent(self) -> str:
        where = ""
        if self.reservation is not None:
            where = f" in the ledger, as release {self.reservation.number} of data set {self.dataset!r}"
            where += f" and also in {_listed(self.also)}" if self.also else ""
        return f"{spent(self.guarantee.epsilon, self.guarantee.delta)}{where}: some of the output may have been seen."
