"""What a report says, as plain data: numbers, texts and tuples, ready for a template.

What would show a single private cell is left out, and stands here as None. No class here shows its content in its repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from dipriv.utility.verdict import Grade

if TYPE_CHECKING:
    from pathlib import Path

    from dipriv.auditing import Audit
    from dipriv.utility.plan import Forecast
    from dipriv.utility.verdict import Verdict

Scale: TypeAlias = Literal["number", "time", "label"]
Clock: TypeAlias = Literal["date", "timestamp", "time of day", "duration"]
Numbers: TypeAlias = tuple[float, ...]
Axis: TypeAlias = Literal["linear", "log", "asinh"]
"""The scale of an axis; log and asinh compress long tails, and asinh is log on both sides of zero."""
Matrix: TypeAlias = tuple[tuple[float | None, ...], ...]
GRADES = (Grade.LOST, Grade.USABLE, Grade.GOOD)
"""The worst first; `Grade.UNKNOWN` comes after them."""

MIN_ROWS_SHOWN = 5
"""A private value is shown only if at least five rows hold it, and a statistic only if it is of five rows or more."""
MAX_ROWS, MAX_CELLS, MIN_ROWS_COMPARED = 200_000, 4_000_000, 10_000
"""Tables of more rows are compared on a random sample of them, which has fewer rows of wide tables."""
MAX_DETAILED = 40
"""How many columns have charts and a place on the maps: of wider tables those that changed most."""


@dataclass(frozen=True, repr=False)
class Distance:
    """Distance between two distributions, and what two samples of the original's distribution would show."""

    name: str
    value: float
    typical: float
    limit: float

    @property
    def beyond(self) -> bool:
        """Whether it is more than 95% of what sampling alone gives."""
        return self.value > self.limit


@dataclass(frozen=True, repr=False)
class TableRow:
    """One line of a table: what it is, before and after."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, repr=False)
class Levels:
    """Shares of the rows that have each level; the last is "other" if `has_other`."""

    labels: tuple[str, ...]
    before: Numbers
    after: Numbers
    has_other: bool


@dataclass(frozen=True, repr=False)
class Histogram:
    """Shares of the rows in common bins, and the shares that lie outside of all bins."""

    edges: Numbers
    before: Numbers
    after: Numbers
    outside: tuple[float, float]
    axis: Axis
    unit: float


@dataclass(frozen=True, repr=False)
class Tails:
    """Shares of the rows below (left of the median) or above (right of it) each point; None for few rows."""

    points: Numbers
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]
    axis: Axis
    unit: float


@dataclass(frozen=True, repr=False)
class Fidelity:
    """How much a released row says about its original row, with a 95% interval.

    `expected` is what reference and kernel leave on average.
    """

    measure: Literal["correlation", "agreement beyond chance"]
    value: float
    low: float
    high: float
    expected: float | None


@dataclass(frozen=True, repr=False)
class ColumnFacts:
    """One column before and after."""

    name: str
    kind: str
    scale: Scale
    clock: Clock | None
    present: tuple[int, int]
    nulls: tuple[float, float]
    distinct: tuple[int, int]
    grade: Grade = Grade.UNKNOWN
    """What the release keeps of the column; unknown where too few cells can be compared."""
    reasons: tuple[str, ...] = ()
    """What is wrong with the column, in words."""
    unchanged: bool = False
    """Whether the column was passed through."""
    distances: tuple[Distance, ...] = ()
    fidelity: tuple[Fidelity, ...] = ()
    quantiles: tuple[TableRow, ...] = ()
    moments: tuple[TableRow, ...] = ()
    levels: Levels | None = None
    frequent: tuple[TableRow, ...] = ()
    histogram: Histogram | None = None
    tails: Tails | None = None
    note: str = ""

    def distance(self, name: str) -> Distance | None:
        """One of the distances."""
        return next((found for found in self.distances if found.name == name), None)


@dataclass(frozen=True, repr=False)
class HeatMap:
    """A measure of dependence between all pairs of some columns, before and after."""

    measure: Literal["Spearman", "Cramér's V"]
    names: tuple[str, ...]
    before: Matrix
    after: Matrix


@dataclass(frozen=True, repr=False)
class Change:
    """How the dependence of two columns changed."""

    one: str
    two: str
    measure: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def is_lost(self) -> bool:
        """Whether less than half of the dependence is left, or it has the other sign."""
        return self.after * self.before < self.before**2 / 2


@dataclass(frozen=True, repr=False)
class Dependence:
    """All heat maps, the largest changes, and the columns that had no place.

    Of the pairs that depend on each other in the original, `lost` of `strong` have lost half or more of it.
    """

    maps: tuple[HeatMap, ...]
    changes: tuple[Change, ...]
    left_out: tuple[str, ...]
    strong: int
    lost: int


@dataclass(frozen=True, repr=False)
class Estimate:
    """A coefficient with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Coefficient:
    """The same coefficient, estimated on both tables."""

    name: str
    before: Estimate
    after: Estimate

    @property
    def inside(self) -> bool:
        """Whether the released estimate lies in the original's interval."""
        return self.before.low <= self.after.value <= self.before.high

    @property
    def change(self) -> float:
        """How far the estimate moved, in widths of the original's interval."""
        width = self.before.high - self.before.low
        return abs(self.after.value - self.before.value) / width if width > 0 else 0.0


@dataclass(frozen=True, repr=False)
class Downstream:
    """The same regression on both tables, or why there is none."""

    target: str
    model: str
    rows: tuple[int, int]
    coefficients: tuple[Coefficient, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""

    @property
    def inside(self) -> int:
        return sum(coefficient.inside for coefficient in self.coefficients)


@dataclass(frozen=True)
class RuleFacts:
    """A rule of the schema, and how many rows of the original and of the release break it."""

    text: str
    broken: tuple[int, int]


@dataclass(frozen=True)
class Comparison:
    """How a private table and its release differ; `dipriv.compare` makes it, and it contains private statistics.

    `print(comparison)` shows the findings, and `comparison.write("report.html")` makes a page of them: neither is for
    publication.

    Attributes
    ----------
    rows, used : how many rows original and release have, and how many of them were compared.
    paired : whether each released row is matched with its original.
    columns : facts about each column, before and after, the worst first.
    left_out : columns that were not compared, each with the reason.
    guarantee : the guarantee in words, if it was given.
    dependence : measures of dependence between pairs of columns, before and after.
    downstream : a regression on both tables, if a target was given.
    verdict, forecast : what the release says about itself, and what more ε would give, if they were given; these
        parts may be published.
    audit : the result of `dipriv.audit`, if it was given.
    repeats : how many pairs of samples were drawn to see what sampling alone gives.
    rules : the rules of the schema, each with how many rows of original and release break it.
    """

    rows: tuple[int, int]
    used: tuple[int, int]
    paired: bool
    columns: tuple[ColumnFacts, ...] = field(repr=False)
    left_out: tuple[tuple[str, str], ...] = field(repr=False, default=())
    guarantee: str = field(repr=False, default="")
    dependence: Dependence | None = field(repr=False, default=None)
    downstream: Downstream | None = field(repr=False, default=None)
    verdict: Verdict | None = field(repr=False, default=None)
    forecast: Forecast | None = field(repr=False, default=None)
    audit: Audit | None = field(repr=False, default=None)
    repeats: int = field(repr=False, default=0)
    rules: tuple[RuleFacts, ...] = field(repr=False, default=())

    def write(self, path: str | Path) -> None:
        """Write a report, one HTML file, whole or not at all, readable by its owner only.

        Parameters
        ----------
        path : of the file; an existing one is replaced.

        Raises
        ------
        InputError : a package that only a report needs is not installed.
        StorageError : the file cannot be written.
        """
        from dipriv.report.page import write_report

        write_report(self, path)

    def __str__(self) -> str:
        from dipriv.report.wording import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from dipriv.report.notebook import comparison_html

        return comparison_html(self)
