"""How a file presents its table, beside names and types, so that a release can be written in kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dipriv._tables.notation import Notation


@dataclass(frozen=True)
class Presentation:
    """Separator and quotes of a text file, how its columns write numbers, and the labels of a file that has such."""

    separator: str | None = None
    quotes_texts: bool = True
    """Whether all texts are in quotes, as the names of columns are; else those that need it."""
    has_plain_numbers: bool = False
    """Whether numbers have a type of their own, so that a decimal mark is that of columns of text alone."""
    notations: Mapping[str, Notation] = field(default_factory=dict)
    """Of columns whose numbers or dates are not all written plainly."""
    value_labels: Mapping[str, Mapping[int | float, str]] = field(default_factory=dict)
    """{column: {code: label}} of columns whose cells are read as their labels. Which labels there are is private."""
    column_labels: Mapping[str, str] = field(default_factory=dict)
    """{column: what it is}."""

    def without(self, name: str | None) -> Presentation:
        """The same for a table where a column, if one is named, has other cells, which are presented plainly."""
        notations = {column: said for column, said in self.notations.items() if column != name}
        labels = {column: said for column, said in self.value_labels.items() if column != name}
        return replace(self, notations=notations, value_labels=labels)


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a source without types are text, and what else of its columns cells settle."""

    stated: frozenset[str] = frozenset()
    """The source says so."""
    found: frozenset[str] = frozenset()
    """Nearly all cells are stored as text."""
    undecided: frozenset[str] = frozenset()
    """One row more or less could matter for that."""
    settled: frozenset[str] = frozenset()
    """Cells settle, for all given types, that these are columns, or that they are read as labels."""

    def is_text(self, name: str) -> bool | None:
        """Whether a column is text; None if that is undecided."""
        if name in self.undecided:
            return None
        return name in self.stated or name in self.found

    @classmethod
    def by_cells(cls, are_texts: Mapping[str, bool | None], settled: frozenset[str] = frozenset()) -> TextColumns:
        """Columns of which `fits` says whether nearly all cells are text."""
        found, undecided = (frozenset(name for name, of in are_texts.items() if of is one) for one in (True, None))
        return cls(found=found, undecided=undecided, settled=settled)
