"""A data set's account in a ledger, as a release uses it: recognize it, hold out the same rows, spend first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from dipriv.errors import InputError
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
    print_of_rows: Fingerprint | None = None
    for batch in batches:
        if print_of_rows is None:
            print_of_rows = Fingerprint(book.fingerprint_key(), batch.schema.names)
        print_of_rows.update(batch)
    if print_of_rows is None:
        raise InputError("the table has no rows.", "Give a table with at least one row.")
    found = book.identify(name=dataset, fingerprint=print_of_rows.digest(), suggestion=suggestion)
    return Account(book, found.name)
