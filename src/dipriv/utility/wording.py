"""The English of a verdict: the only place where its facts become sentences."""

from __future__ import annotations

from collections.abc import Sequence

from dipriv.utility.verdict import Advice, AdviceKind, ColumnVerdict, Grade, Reason, ReasonKind, Verdict

SYNTHETIC = 0.05
"""Rows whose values have a smaller correlation with the true ones are as good as synthetic."""
LINES = 11
"""How many lines a summary has at most."""
SHOWN = 3
"""How many columns a line of the summary names."""

HIDES = 0.5
"""Up to this share of the rows it is worth saying how many may be hidden."""

_REASONS = {
    ReasonKind.CONSTANT: "it became constant; other values, if any, are in fewer than {share} of the rows",
    ReasonKind.ONLY_OTHER: 'every label became "(other)": drop it',
    ReasonKind.MERGED: 'rare labels, {share} of the rows, became "(other)"',
    ReasonKind.LABELS: "labels of fewer than {share} of the rows may be lost",
    ReasonKind.NULLS: "nulls are lost if fewer than {share} of the rows have them",
    ReasonKind.ENDS: "the ends of the range are lost if fewer than {share} of the rows are there",
    ReasonKind.DIGITS: "finer digits are lost if fewer than {share} of the rows have them",
    ReasonKind.NOISE: "noise moves about {share} of the rows",
    ReasonKind.NOISE_ABOVE_COUNTS: "noise is larger than the counts",
    ReasonKind.SAMPLING: "with so few rows, sampling alone moves about {share} of them",
    ReasonKind.KNOWN: "it is as good as the distribution that was stated, which nothing here compares with the rows",
    ReasonKind.PUBLIC: "it is as good as the public table resembles the private one, which nothing here compares",
    ReasonKind.HELD_OUT: "its reference is a random sample of the table's own rows",
    ReasonKind.NOT_MEASURED: "nothing was measured that says how good it is",
}


def reason(one: Reason) -> str:
    """A reason as a clause.

    >>> reason(Reason(ReasonKind.MERGED, 0.153))
    'rare labels, 15% of the rows, became "(other)"'
    """
    if one.kind is ReasonKind.CONSTANT and (one.share or 0.0) > HIDES:
        return "it became constant, and noise hides whether it was"
    return _REASONS[one.kind].format(share="" if one.share is None else percent(one.share))


def advice(one: Advice) -> str:
    """Advice as a sentence.

    >>> advice(Advice(AdviceKind.DROP, ("surname",)))
    "Drop 'surname'."
    """
    names, factor = listed(one.columns), f"{one.factor:,g}" if one.factor is not None else ""
    return {
        AdviceKind.EPSILON: f"About {factor} times as much ε, or as many rows, would make {names} good.",
        AdviceKind.FEWER_COLUMNS: f"Release fewer columns, or about {factor} times as many rows or as much ε.",
        AdviceKind.DROP: f"Drop {names}.",
        AdviceKind.DECLARE_LEVELS: f"Declare the levels of {names}, if they are public: none is merged then.",
        AdviceKind.DECLARE_RANGE: f"Declare levels or bounds of {names}, if they are public.",
        AdviceKind.PAIRS: "Name a target, or pairs, if you study how columns depend on each other.",
        AdviceKind.HOLDOUT: "Use a hold-out (holdout=0.25) if single rows matter: it keeps more of each.",
        AdviceKind.COMPARE: "Compare the release with the private table in a report before you publish it.",
    }[one.kind]


def summary(verdict: Verdict) -> str:
    """At most eleven lines, the worst first."""
    lines = [headline(verdict)]
    if verdict.too_small is not None:
        lines.append(f"  Warning: {too_small(verdict)}")
    for grade in (Grade.LOST, Grade.UNKNOWN, Grade.USABLE):
        found = [column for column in verdict.by_gravity if column.grade is grade]
        if found:
            lines.append(f"  {grade.value.capitalize() + ':':8} {_columns(found)}.")
    if verdict.all_pairs:
        lines.append(f"  Pairs:   {pairs(verdict)}")
    if kept := rows(verdict):
        lines.append(f"  Rows:    {kept}")
    lines += [f"  Advice:  {one.text}" for one in verdict.advice[: LINES - len(lines)]]
    return "\n".join(lines)


def headline(verdict: Verdict) -> str:
    """The grade, and how many columns have which.

    >>> from dipriv.guarantee.guarantee import ReferenceSource
    >>> columns = (ColumnVerdict("age", Grade.GOOD), ColumnVerdict("city", Grade.LOST), ColumnVerdict("x", Grade.GOOD))
    >>> headline(Verdict(10, 1.0, ReferenceSource.PRIVATE, columns))
    'Verdict: usable. 2 of 3 columns good, 1 lost.'
    """
    total = len(verdict.columns)
    counts = [f"{len(verdict.good)} of {total} column{'s' * (total != 1)} good"]
    counts += [
        f"{len(names)} {grade.value}"
        for grade in (Grade.USABLE, Grade.LOST, Grade.UNKNOWN)
        if (names := verdict.named(grade))
    ]
    return f"Verdict: {verdict.grade.value}. {', '.join(counts)}."


def too_small(verdict: Verdict) -> str:
    """Why nothing can be expected of a table that is too small."""
    return (
        f"{verdict.rows:,} row{'s' * (verdict.rows != 1)} at ε = {verdict.epsilon:g} are too few for "
        f"{len(verdict.columns)} column{'s' * (len(verdict.columns) != 1)}: noise hides most of their distributions. "
        f"About {verdict.too_small or 1:,g} times as many rows, or as much ε, are needed."
    )


def pairs(verdict: Verdict) -> str:
    """How many pairs were measured, and what the others are."""
    total, measured = verdict.all_pairs or 0, len(verdict.pairs)
    if not measured:
        return f"none of {total:,} measured: the columns are released as if they were independent."
    well = sum(pair.grade is Grade.GOOD for pair in verdict.pairs)
    noise = sum(pair.grade is Grade.LOST for pair in verdict.pairs)
    detail = f", {well:,} of them well" + (f", {noise:,} no more than noise" if noise else "")
    if measured == total:
        return f"all {total:,} measured{detail}."
    return f"{measured:,} of {total:,} measured{detail}; the others are as if independent given those."


def rows(verdict: Verdict) -> str:
    """Whether single rows mean anything."""
    most = verdict.fidelity
    if most is None:
        return ""
    if most < SYNTHETIC:
        return (
            "as good as synthetic data: the correlation of a released with the true value is "
            f"{max(0.0, most):.2g} at most."
        )
    return f"the correlation of a released with the true value is up to {most:.2g}."


def percent(share: float) -> str:
    """A share in percent, with one digit more where it is small.

    >>> percent(0.153), percent(0.0213), percent(1.0)
    ('15%', '2.1%', '100%')
    """
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def listed(names: Sequence[str], shown: int = SHOWN) -> str:
    """Some of the names, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    if len(names) <= shown:
        return " and ".join(filter(None, [", ".join(map(repr, names[:-1])), *map(repr, names[-1:])]))
    return f"{', '.join(map(repr, names[:shown]))} and {len(names) - shown} more"


def _columns(columns: Sequence[ColumnVerdict]) -> str:
    """The worst columns with the gravest reason of each."""
    same = {column.reasons[:1] for column in columns}
    if len(columns) > 1 and len(same) == 1 and columns[0].reasons and columns[0].reasons[0].share is None:
        return f"{listed([column.name for column in columns])}: {columns[0].reasons[0].text}"
    worst = [
        repr(column.name) + (f" ({column.reasons[0].text})" if column.reasons else "") for column in columns[:SHOWN]
    ]
    more = len(columns) - len(worst)
    return ", ".join(worst) + (f" and {more} more" if more else "")
