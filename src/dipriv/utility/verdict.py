"""The verdict on a release: which columns, pairs and rows mean something, and what would help. It may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dipriv.errors import InputError
from dipriv.guarantee.guarantee import ReferenceSource

FORMAT = 1
"""Of `Verdict.to_dict`."""
GOOD, LOST = 0.05, 0.2
"""A total variation below the first is good; above the second, what is left of a column is not its distribution."""
MAX_ITEMS, MAX_TEXT, MAX_NUMBER = 1 << 16, 1 << 16, 1e300


class Grade(StrEnum):
    """How well something is kept."""

    GOOD = "good"
    """A column: total variation below 0.05 in at least 95% of cases. A pair: association far above its noise."""
    USABLE = "usable"
    """A column: in between, and below 0.2 in at least 95% of cases: look at the expected error before you use it."""
    LOST = "lost"
    """A column: total variation above 0.2 in at least 95% of cases, or noise is larger than its counts, and what is
    right is right by chance. A pair: noise explains all of its association."""
    UNKNOWN = "unknown"
    """It may be lost or not: noise hides too much, or nothing private was measured. Only the private table can tell."""


class ReasonKind(StrEnum):
    """Why a column is not as it was."""

    CONSTANT = "constant"
    ONLY_OTHER = "only-other"
    MERGED = "merged"
    LABELS = "labels"
    NULLS = "nulls"
    ENDS = "ends"
    DIGITS = "digits"
    NOISE = "noise"
    NOISE_ABOVE_COUNTS = "noise-above-counts"
    SAMPLING = "sampling"
    KNOWN = "known"
    PUBLIC = "public"
    HELD_OUT = "held-out"
    NOT_MEASURED = "not-measured"


class AdviceKind(StrEnum):
    """What would make a release better."""

    EPSILON = "epsilon"
    FEWER_COLUMNS = "fewer-columns"
    DROP = "drop"
    DECLARE_LEVELS = "declare-levels"
    DECLARE_RANGE = "declare-range"
    PAIRS = "pairs"
    HOLDOUT = "holdout"
    COMPARE = "compare"


@dataclass(frozen=True)
class Reason:
    """Why a column is not as it was; `share` is the part of the rows that it concerns."""

    kind: ReasonKind
    share: float | None = None

    @property
    def text(self) -> str:
        """The reason in words."""
        from dipriv.utility.wording import reason

        return reason(self)


@dataclass(frozen=True)
class ColumnVerdict:
    """One column.

    Attributes
    ----------
    error : the expected total variation of its distribution; None where nothing is known.
    least, most : it is between these two in about 90% of cases, 5% on each side.
    fidelity : the expected correlation of released with true values; None where there is none.
    reasons : the gravest first.
    """

    name: str
    grade: Grade
    error: float | None = None
    least: float | None = None
    most: float | None = None
    fidelity: float | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class PairVerdict:
    """A pair of columns whose two-way table was measured.

    Attributes
    ----------
    error : the expected total variation of the table, from its noise.
    association : Cramér's V of the reference's table.
    noise : what Cramér's V noise alone would make of independent columns.
    """

    columns: tuple[str, str]
    grade: Grade
    error: float
    association: float
    noise: float


@dataclass(frozen=True)
class Advice:
    """Something to do; `columns` are those that it would help, `factor` by how much ε, or rows, must grow."""

    kind: AdviceKind
    columns: tuple[str, ...] = ()
    factor: float | None = None

    @property
    def text(self) -> str:
        """The advice in words."""
        from dipriv.utility.wording import advice

        return advice(self)


@dataclass(frozen=True)
class Verdict:
    """What a release is good for, from public facts and private output alone.

    Parameters
    ----------
    rows : how many rows are released.
    epsilon : the privacy budget.
    source : where the reference comes from.
    columns : in the order of the table.
    pairs : the pairs that were measured, best first.
    all_pairs : how many pairs of columns there are; those not measured are as if independent given the others. None
        where pairs are not measured.
    too_small : by what factor rows times ε is too small for this number of columns; None where it is not.
    advice : the most useful first.

    Examples
    --------
    >>> kept = ColumnVerdict("age", Grade.GOOD, 0.012, 0.006, 0.021, 0.01)
    >>> verdict = Verdict(1000, 1.0, ReferenceSource.PRIVATE, (kept,))
    >>> print(verdict)  # doctest: +ELLIPSIS
    Verdict: good. 1 of 1 column good.
      Use:     good for the distributions of single columns.
      Rows:    as good as synthetic data: a row says almost nothing about its original (expected correlation 0.01 ...).
    >>> Verdict.from_dict(verdict.to_dict()) == verdict
    True
    """

    rows: int
    epsilon: float
    source: ReferenceSource
    columns: tuple[ColumnVerdict, ...]
    pairs: tuple[PairVerdict, ...] = ()
    all_pairs: int | None = None
    too_small: float | None = None
    advice: tuple[Advice, ...] = ()

    def named(self, grade: Grade) -> tuple[str, ...]:
        """The columns with this grade.

        Parameters
        ----------
        grade : good, usable, lost or unknown.

        Returns
        -------
        tuple : their names, in the order of the table.
        """
        return tuple(column.name for column in self.columns if column.grade == grade)

    @property
    def good(self) -> tuple[str, ...]:
        return self.named(Grade.GOOD)

    @property
    def usable(self) -> tuple[str, ...]:
        return self.named(Grade.USABLE)

    @property
    def lost(self) -> tuple[str, ...]:
        return self.named(Grade.LOST)

    @property
    def grade(self) -> Grade:
        """Of the release: good if no column is lost and three in four are good; lost if half of them are lost, or are
        expected to be; unknown if more than half of them are lost or unknown.
        """
        total, doubtful = len(self.columns), len(self.lost) + len(self.named(Grade.UNKNOWN))
        expected = sum(one.grade is Grade.LOST or (one.error or 0.0) > LOST for one in self.columns)
        if total and 2 * expected >= total:
            return Grade.LOST
        if 2 * doubtful > total:
            return Grade.UNKNOWN
        return Grade.GOOD if not self.lost and 4 * len(self.good) >= 3 * total else Grade.USABLE

    @property
    def fidelity(self) -> float | None:
        """The largest expected correlation of released with true values; None where there is none."""
        return max((column.fidelity for column in self.columns if column.fidelity is not None), default=None)

    @property
    def by_gravity(self) -> tuple[ColumnVerdict, ...]:
        """The columns, the worst first."""
        order = [Grade.LOST, Grade.UNKNOWN, Grade.USABLE, Grade.GOOD]
        return tuple(sorted(self.columns, key=lambda one: (order.index(one.grade), -(one.error or 0.0))))

    def summary(self) -> str:
        """The verdict in at most twelve lines, the worst first."""
        from dipriv.utility.wording import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with texts for readers."""
        return {
            "format": FORMAT,
            "grade": self.grade.value,
            "summary": self.summary().splitlines(),
            "rows": self.rows,
            "epsilon": self.epsilon,
            "source": self.source.value,
            "columns": [
                {
                    "name": column.name,
                    "grade": column.grade.value,
                    "error": column.error,
                    "least": column.least,
                    "most": column.most,
                    "fidelity": column.fidelity,
                    "reasons": [{"kind": r.kind.value, "share": r.share, "text": r.text} for r in column.reasons],
                }
                for column in self.columns
            ],
            "pairs": [
                {
                    "columns": list(pair.columns),
                    "grade": pair.grade.value,
                    "error": pair.error,
                    "association": pair.association,
                    "noise": pair.noise,
                }
                for pair in self.pairs
            ],
            "all_pairs": self.all_pairs,
            "too_small": self.too_small,
            "advice": [
                {"kind": a.kind.value, "columns": list(a.columns), "factor": a.factor, "text": a.text}
                for a in self.advice
            ],
        }

    @classmethod
    def from_dict(cls, plain: Any) -> Verdict:
        """The inverse of `to_dict`; texts are made anew, never read.

        Parameters
        ----------
        plain : what `to_dict` returned.

        Returns
        -------
        Verdict : the same verdict.

        Raises
        ------
        InputError : this is not what a version of dipriv writes.
        """
        content = _mapping(plain)
        if content.get("format") != FORMAT:
            raise _not_ours(f"has a format that is not {FORMAT}")
        all_pairs = content.get("all_pairs")
        return cls(
            _count(content.get("rows")),
            _number(content.get("epsilon")),
            ReferenceSource(_member(ReferenceSource, content.get("source"))),
            tuple(_column(_mapping(one)) for one in _items(content.get("columns"))),
            tuple(_pair(_mapping(one)) for one in _items(content.get("pairs"))),
            None if all_pairs is None else _count(all_pairs),
            _maybe(content.get("too_small")),
            tuple(_advice(_mapping(one)) for one in _items(content.get("advice"))),
        )


def _column(plain: Mapping[str, Any]) -> ColumnVerdict:
    reasons = [_mapping(one) for one in _items(plain.get("reasons"))]
    error, least, most, fidelity = (_maybe(plain.get(name)) for name in ("error", "least", "most", "fidelity"))
    return ColumnVerdict(
        _text(plain.get("name")),
        Grade(_member(Grade, plain.get("grade"))),
        error,
        least,
        most,
        fidelity,
        tuple(Reason(ReasonKind(_member(ReasonKind, one.get("kind"))), _maybe(one.get("share"))) for one in reasons),
    )


def _pair(plain: Mapping[str, Any]) -> PairVerdict:
    names = _items(plain.get("columns"))
    if len(names) != 2:
        raise _not_ours("has a pair that is not of two columns")
    error, association, noise = (_number(plain.get(name)) for name in ("error", "association", "noise"))
    grade = Grade(_member(Grade, plain.get("grade")))
    return PairVerdict((_text(names[0]), _text(names[1])), grade, error, association, noise)


def _advice(plain: Mapping[str, Any]) -> Advice:
    return Advice(
        AdviceKind(_member(AdviceKind, plain.get("kind"))),
        tuple(_text(name) for name in _items(plain.get("columns"))),
        _maybe(plain.get("factor")),
    )


def _mapping(plain: Any) -> Mapping[str, Any]:
    if not isinstance(plain, Mapping):
        raise _not_ours("has something else where a JSON object belongs")
    return plain


def _items(plain: Any) -> Sequence[Any]:
    if not isinstance(plain, list) or len(plain) > MAX_ITEMS:
        raise _not_ours("has something else where a list belongs")
    return plain


def _member(of: type[StrEnum], plain: Any) -> str:
    if not isinstance(plain, str) or plain not in of._value2member_map_:
        raise _not_ours(f"has something else where a {of.__name__} belongs")
    return plain


def _count(plain: Any) -> int:
    if type(plain) is not int or not 0 <= plain <= 1 << 62:
        raise _not_ours("has a count that is not a whole number from 0 to 2^62")
    return plain


def _number(plain: Any) -> float:
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not -MAX_NUMBER < plain < MAX_NUMBER:
        raise _not_ours("has something else where a number belongs")
    return float(plain)


def _maybe(plain: Any) -> float | None:
    return None if plain is None else _number(plain)


def _text(plain: Any) -> str:
    if not isinstance(plain, str) or len(plain) > MAX_TEXT:
        raise _not_ours("has something else where a name belongs")
    return plain


def _not_ours(fault: str) -> InputError:
    return InputError(f"the verdict {fault}.", "Give what Verdict.to_dict() returned, unchanged.")
