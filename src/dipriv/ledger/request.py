"""A request to release a table, the stored state of its data set, and the check that both are compatible."""

from __future__ import annotations

from dataclasses import dataclass, field

from dipriv._base.table_fingerprint import ColumnFingerprint, TableFingerprint
from dipriv.errors import DisclosureError, LedgerError


@dataclass(frozen=True)
class DatasetState:
    """What the ledger knows about a data set.

    `contents` are (number of rows, order) of all its tables so far, of those that an older version fingerprinted the
    order without the names of columns; `old_sizes` the numbers of rows of tables that were
    fingerprinted by versions 1 and 2 of the ledger, with which no table can be compared. `also` names the other data
    sets that count the table of the request, because it has their rows, too. `protects_rows` is whether earlier
    releases protect a row, and not a person with all of their rows. `splits_as_written` is `Split.as_written`.
    """

    name: str
    releases: int = 0
    holdout: float | None = None
    by: str | None = None
    split_key: bytes | None = field(default=None, repr=False)
    contents: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)
    old_sizes: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    protects_rows: bool = False
    splits_as_written: bool = False


@dataclass(frozen=True)
class ReleaseRequest:
    """A table's data set, its fingerprint and its split.

    `is_new` affirms that the table describes other people than the data sets that it resembles, but for its own and
    those in `also`, which count it, too. `keys_digest` is that of `Split.digest_of`, if persons are held out.
    """

    name: str
    table: TableFingerprint
    is_new: bool = False
    holdout: float | None = None
    by: str | None = None
    split_key: bytes | None = field(default=None, repr=False)
    also: tuple[str, ...] = ()
    keys_digest: bytes | None = field(default=None, repr=False)

    def column(self, name: str | None) -> ColumnFingerprint | None:
        """The fingerprint of a column, if the table has one of this name."""
        return next((found for found in self.table.columns if found.name == name), None)

    def check(self, known: DatasetState) -> None:
        """Raise DisclosureError if rows that were held out would be released, or the other way round."""
        name = f"data set {known.name!r}"
        if known.releases and (known.holdout is None) != (self.holdout is None):
            before, now = ("none", "some") if known.holdout is None else ("some", "none")
            raise DisclosureError(
                f"earlier releases of {name} held out {before} of its rows, and this one would hold out {now}.",
                "Use the kind of reference that the earlier releases had: held-out rows are exposed, released rows are "
                "protected, and no row can be both.",
            )
        if known.holdout is not None and (known.holdout, known.by) != (self.holdout, self.by):
            raise DisclosureError(
                f"the hold-out of {name} is fixed: {_in_words(known.holdout, known.by)}; "
                f"{_in_words(self.holdout or 0.0, self.by)} would release rows that were held out.",
                "Ask for the fixed share and unit, or leave the share out.",
            )
        if known.holdout is not None and known.split_key != self.split_key:
            raise LedgerError(f"{name} was registered by another release in the meantime.", "Give the command again.")
        if known.holdout is None or known.by is not None:
            return
        unverified = max(known.old_sizes, default=0)
        if unverified > max((rows for rows, _ in known.contents), default=0) and self.table.rows != unverified:
            raise DisclosureError(
                f"the table that {name} had before was fingerprinted by an older version of dipriv: whether its "
                f"{unverified:,} rows are the first of these {self.table.rows:,} cannot be verified, and rows that "
                "were held out by their positions could now be released.",
                f"Release the table of {unverified:,} rows, unchanged, once: later ones are then compared with it.",
            )
        earlier = {order for _, order in known.contents}
        beginnings = {order for both in self.table.prefixes for order in both}
        if not ({self.table.order, self.table.named_order} & earlier or earlier <= beginnings):
            raise DisclosureError(
                f"the rows that {name} had before are not the first rows of this table, unchanged: rows that were held "
                "out by their positions could now be released.",
                "Add rows at the end only and leave the columns as they are, or hold out by a key column from the "
                "first release on (a unit). A table of other rows is another data set.",
            )

    def check_also(self, other: DatasetState) -> None:
        """Raise DisclosureError if the table has rows of another data set, too, and one of the two holds out rows."""
        if self.holdout is not None or other.holdout is not None:
            raise DisclosureError(
                f"this table has rows of data set {other.name!r}, too, and a hold-out is that of one data set: rows "
                "that were held out of one could be released with the other.",
                "Release the tables one by one, or pooled from the first release on.",
            )


def _in_words(share: float, column: str | None) -> str:
    """A hold-out in words, for messages."""
    return f"a share of {share!r} by " + ("position" if column is None else f"column {column!r}")
