"""A data set's account in a ledger, as a release uses it: recognize it, hold out the same rows, spend first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from dipriv.errors import DisclosureError, InputError
from dipriv.fingerprint import Fingerprint
from dipriv.guarantee import Guarantee
from dipriv.ledger import Ledger
from dipriv.split import Split


@dataclass(frozen=True)
class Account:
    """A data set that a ledger knows."""

    ledger: Ledger = field(repr=False)
    name: str

    def split(self, asked: float | None, by: str | None) -> Split:
        """The data set's own split: the same for this and every later release."""
        holdout, column = self.ledger.holdout(self.name, asked, by)
        return Split(holdout, self.ledger.split_key(self.name), column)

    @contextmanager
    def spending(self, guarantee: Guarantee, output: str | None = None) -> Iterator[Callable[[int], None]]:
        """Spend ε, then release inside, then say how many rows were released. A failure inside leaves ε spent."""
        number = self.ledger.reserve(self.name, guarantee.epsilon, guarantee, output)
        released: list[int] = []
        try:
            yield released.append
        except BaseException:
            self.ledger.fail(number)
            raise
        self.ledger.commit(number, released[-1] if released else 0)


def open_account(
    ledger: Ledger | str | Path | None, dataset: str | None, batches: Iterable[pa.RecordBatch], suggestion: str
) -> Account:
    """The account of these rows: by name, else by their keyed fingerprint, else a new one."""
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    earlier = [] if dataset is None else book.contents(dataset)
    seen: _Prefixes | None = None
    for batch in batches:
        seen = seen or _Prefixes(Fingerprint(book.fingerprint_key(), batch.schema.names), earlier)
        seen.update(batch)
    if seen is None:
        raise InputError("the table has no rows.", "Give a table with at least one row.")
    if dataset is not None and seen.moved and book.holds_out_positions(dataset):
        raise DisclosureError(
            f"the rows that data set {dataset!r} had before are not the first rows of this table, unchanged: rows that "
            "were held out by their positions could now be released.",
            "Add rows at the end only and leave the columns as they are, or hold out by a key column from the first "
            "release on (a unit). A table of other rows is another data set.",
        )
    found = book.identify(name=dataset, fingerprint=seen.digest, suggestion=suggestion, rows=seen.rows)
    return Account(book, found.name)


@dataclass
class _Prefixes:
    """A fingerprint on its way, compared with earlier ones of the same data set where these ended."""

    fingerprint: Fingerprint
    earlier: list[tuple[int, bytes]]
    rows: int = 0
    met: set[bytes] = field(default_factory=set)

    def update(self, batch: pa.RecordBatch) -> None:
        for rows in sorted({rows for rows, _ in self.earlier if self.rows < rows <= self.rows + batch.num_rows}):
            self.fingerprint.update(batch.slice(0, rows - self.rows))
            self.met.add(self.fingerprint.digest())
            batch, self.rows = batch.slice(rows - self.rows), rows
        self.fingerprint.update(batch)
        self.rows += batch.num_rows

    @property
    def digest(self) -> bytes:
        return self.fingerprint.digest()

    @property
    def moved(self) -> bool:
        """Whether some earlier content is not the beginning of this one."""
        return not {digest for _, digest in self.earlier} <= {*self.met, self.digest}
