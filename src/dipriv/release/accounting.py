"""A release in the ledger: recognize the data set, hold out the same rows, reserve ε, commit when rows are written."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

from dipriv._base.table_fingerprint import TableFingerprint
from dipriv.errors import BudgetError, DiprivError
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
        name = options.new_dataset if is_new else options.dataset
        known = ledger.preview(name=name, table=table, suggestion=suggestion, is_new=is_new)
        return cls(ledger, known, ReleaseRequest(known.name, table, is_new))

    @property
    def name(self) -> str:
        return self.known.name

    def split(self, holdout: float | None, by: str | None, default: float) -> Split:
        """The data set's own split: the same for this and every later release."""
        share = self.known.holdout if self.known.holdout is not None and holdout is None else holdout
        split = Split.new(default if share is None else share, by)
        if self.known.holdout is not None and self.known.split_key is not None:
            split = Split(split.holdout, self.known.split_key, by)
        self.request = replace(self.request, holdout=split.holdout, by=split.by, split_key=split.key)
        self.request.check(self.known)
        return split

    def fingerprint_key(self) -> bytes:
        """The key for fingerprints of further tables."""
        return _cells_key(self.ledger)

    def check(self, table: TableFingerprint, more: str = "") -> None:
        """Raise BudgetError if a table is or resembles another data set than this one; `more` is added to the fault."""
        try:
            self.ledger.preview(name=self.name, table=table, suggestion=None)
        except BudgetError as error:
            raise BudgetError(
                f"{error.fault} Rows of transform are counted for data set {self.name!r}, that of fit.{more}",
                "Release this table with dipriv.privatize, or fit with the name of its data set (dataset=...).",
            ) from None

    def add_table(self, table: TableFingerprint) -> None:
        """Register a further table with the data set."""
        self.ledger.add_table(self.name, table)

    def reserve(self, guarantee: Guarantee, output: str | None = None) -> Receipt:
        """Spend ε and δ, before any output exists."""
        reservation = self.ledger.reserve(self.request, guarantee.epsilon, guarantee, output)
        return Receipt(guarantee, self.ledger, reservation, self.name)


@dataclass
class TransformReceipts:
    """Reservations of a fitted transformer: that of the fit covers one transform, each further one reserves anew."""

    guarantee: Guarantee
    """Of a further transform: with the ε of the rows' noise."""
    session: LedgerSession | None = field(repr=False, default=None)
    first: Receipt | None = None

    def next(self, table: TableFingerprint | None = None) -> Receipt:
        """A receipt of its own for each transform, also of several threads or generators.

        The table is registered with the data set of the fit.
        """
        if self.session is not None and table is not None:
            self.session.check(table)
        receipt = self._next()
        with receipt.failing():
            if self.session is not None and table is not None:
                self.session.add_table(table)
        return receipt

    def stream(self, names: Sequence[str]) -> StreamedTable:
        """A table with these columns that comes in batches."""
        key = None if self.session is None else self.session.fingerprint_key()
        return StreamedTable(self, None if key is None else Fingerprint(key, names))

    def _next(self) -> Receipt:
        with _LOCK:
            first, self.first = self.first, None
        if first is not None:
            return first
        return Receipt(self.guarantee) if self.session is None else self.session.reserve(self.guarantee)


@dataclass(eq=False)
class StreamedTable:
    """The rows of a stream that have been seen so far, registered with the data set of the fit as they leave.

    At least half of the rows that have left are registered, so that the table is recognized if the stream is not read
    to its end. Where it is closed, by an error or its reader, all of them are.
    """

    receipts: TransformReceipts
    fingerprint: Fingerprint | None = field(repr=False)
    """Of the rows that were seen; None without a ledger."""
    registered: int = 0

    def reserve(self) -> Receipt:
        """Ask whose rows the first ones are, spend ε, and register them."""
        seen = None if self.fingerprint is None or not self.fingerprint.rows else self.fingerprint.result()
        receipt = self.receipts.next(seen)
        self.registered = 0 if seen is None else seen.rows
        return receipt

    def register_before_leaving(self) -> None:
        """Register all rows that were seen if they are twice as many as those that are registered."""
        if self.fingerprint is not None and self.fingerprint.rows >= 2 * self.registered:
            self.register()

    def register(self) -> None:
        """Register all rows that were seen; raise BudgetError if they are or resemble another data set."""
        session = self.receipts.session
        if session is None or self.fingerprint is None or self.fingerprint.rows == self.registered:
            return
        seen = self.fingerprint.result()
        session.check(seen, " Discard what was released.")
        session.add_table(seen)
        self.registered = seen.rows

    def __enter__(self) -> StreamedTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(DiprivError):  # what has left is spent, and at least half of it is registered
                self.register()


@dataclass
class Receipt:
    """What was reserved for one release. Without a ledger nothing is counted, and ε and δ are spent all the same."""

    guarantee: Guarantee
    ledger: Ledger | None = field(repr=False, default=None)
    reservation: Reservation | None = None
    dataset: str | None = None
    is_open: bool = True

    def commit(self, n_rows: int) -> None:
        """The rows are written. Only the first call counts: reading a release again is the same release."""
        if self.is_open and self.ledger is not None and self.reservation is not None:
            self.ledger.commit(self.reservation, n_rows)
        self.is_open = False

    def fail(self, error: BaseException) -> None:
        """The release did not succeed; its ε stays spent, and the error says so."""
        if self.is_open:
            error.add_note(self._spent())
            if self.ledger is not None and self.reservation is not None:
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
        return f"{spent(self.guarantee.epsilon, self.guarantee.delta)}{where}: some of the output may have been seen."
