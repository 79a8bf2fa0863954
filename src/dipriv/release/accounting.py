"""A data set's account in a ledger, as a release uses it: recognize it, hold out the same rows, spend first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.guarantee import Guarantee
from dipriv.ledger import DatasetState, Ledger, ReleaseRequest
from dipriv.sources._fingerprint import Fingerprint
from dipriv.sources.holdout import Split


@dataclass
class Account:
    """A table at the ledger's door: nothing is entered before ε is spent."""

    ledger: Ledger = field(repr=False)
    known: DatasetState
    entry: ReleaseRequest

    @property
    def name(self) -> str:
        return self.known.name

    def split(self, asked: float | None, by: str | None, default: float) -> Split:
        """The data set's own split: the same for this and every later release."""
        share = self.known.holdout if self.known.holdout is not None and asked is None else asked
        split = Split.new(default if share is None else share, by)
        if self.known.holdout is not None and self.known.split_key is not None:
            split = Split(split.holdout, self.known.split_key, by)
        self.entry = replace(self.entry, holdout=split.holdout, by=split.by, split_key=split.key)
        self.entry.check(self.known)
        return split

    @contextmanager
    def spending(self, guarantee: Guarantee, output: str | None = None) -> Iterator[Callable[[int], None]]:
        """Spend ε, then release inside, then say how many rows were released. A failure inside leaves ε spent."""
        number = self.ledger.reserve(self.entry, guarantee.epsilon, guarantee, output)
        released: list[int] = []
        try:
            yield released.append
        except BaseException:
            with suppress(DiprivError):  # a release that is reserved stays spent, too
                self.ledger.fail(number)
            raise
        self.ledger.commit(number, released[-1] if released else 0)


def identify(
    ledger: Ledger | str | Path | None, dataset: str | None, batches: Iterable[pa.RecordBatch], suggestion: str | None
) -> Account:
    """The account of these rows: by name, else by their keyed fingerprint, else a new one."""
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    seen: _PrefixFingerprints | None = None
    for batch in batches:
        if seen is None:
            seen = _PrefixFingerprints(Fingerprint(book.fingerprint_key(), batch.schema.names), book.sizes())
        seen.update(batch)
    if seen is None:
        raise InputError("the table has no rows.", "Give a table with at least one row.")
    digest = seen.fingerprint.digest()
    known = book.preview(name=dataset, fingerprint=digest, suggestion=suggestion)
    return Account(book, known, ReleaseRequest(known.name, digest, seen.rows, frozenset(seen.met)))


@dataclass
class _PrefixFingerprints:
    """A fingerprint on its way, and what it was wherever some known content of that many rows ended."""

    fingerprint: Fingerprint
    ends: frozenset[int]
    rows: int = 0
    met: set[bytes] = field(default_factory=set)

    def update(self, batch: pa.RecordBatch) -> None:
        for end in sorted(end for end in self.ends if self.rows < end <= self.rows + batch.num_rows):
            self.fingerprint.update(batch.slice(0, end - self.rows))
            self.met.add(self.fingerprint.digest())
            batch, self.rows = batch.slice(end - self.rows), end
        self.fingerprint.update(batch)
        self.rows += batch.num_rows
