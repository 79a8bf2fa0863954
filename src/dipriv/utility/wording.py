"""The English of a verdict: the only place where its facts become sentences."""

from __future__ import annotations

from collections.abc import Sequence

from dipriv.utility.verdict import Advice, AdviceKind, ColumnVerdict, Grade, Reason, ReasonKind, Verdict

SYNTHETIC = 0.05
"""Rows whose values have a smaller correlation with the true ones are as good as synthetic."""
FAINT = 0.01
"""Expected correlations are simulated where columns depend on each other: smaller ones are within the error of that."""
LINES = 12
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
    ReasonKind.NULLS: "missing cells are lost if fewer than {share} of the rows have them",
    ReasonKind.ENDS: "the lowest and highest values are lost if fewer than {share} of the rows have them",
    ReasonKind.DIGITS: "values are rounded: finer decimals are lost if fewer than {share} of the rows have them",
    ReasonKind.NOISE: "noise moves about {share} of the rows to other values",
    ReasonKind.NOISE_ABOVE_COUNTS: "noise is larger than the counts",
    ReasonKind.SAMPLING: "drawing rows at random moves about {share} of them to other values",
    ReasonKind.KNOWN: "it is as good as the distribution that was stated, which nothing here compares with the rows",
    ReasonKind.PUBLIC: "it is as good as the public table resembles the private one, which nothing here compares",
    ReasonKind.HELD_OUT: "its reference is a random sample of the table's own rows",
    ReasonKind.NOT_MEASURED: "nothing was measured that says how good it is",
}
_HIDDEN = {
    ReasonKind.CONSTANT: "every released row has the same value, and noise hides whether there were others",
    ReasonKind.LABELS: "noise hides which labels there are",
    ReasonKind.NULLS: "noise hides whether cells are missing",
    ReasonKind.ENDS: "noise hides most of its range",
}
"""If they concern more rows than it is worth saying."""


def reason(one: Reason) -> str:
    """A reason as a clause.

    >>> reason(Reason(ReasonKind.MERGED, 0.153))
    'rare labels, 15% of the rows, became "(other)"'
    """
    if one.kind in _HIDDEN and (one.share or 0.0) > HIDES:
        return _HIDDEN[one.kind]
    return _REASONS[one.kind].format(share="" if one.share is None else percent(one.share))


def advice(one: Advice) -> str:
    """Advice as a sentence.

    >>> advice(Advice(AdviceKind.DROP, ("surname",)))
    "Drop 'surname'."
    """
    names, factor = listed(one.columns), f"{one.factor:,g}" if one.factor is not None else ""
    return {
        AdviceKind.EPSILON: f"About {factor} times as much ε, or as many rows, would make {names} good (a further "
        "release of this table adds its ε to this one's).",
        AdviceKind.FEWER_COLUMNS: "Release fewer columns (drop=[...], --drop), or more rows, or use more ε.",
        AdviceKind.DROP: f"Drop {names}.",
        AdviceKind.DECLARE_LEVELS: f"Declare the levels of {names} in a schema, if they are public: none of them "
        'becomes "(other)" then.',
        AdviceKind.DECLARE_RANGE: f"Declare levels or bounds of {names} in a schema, if they are public.",
        AdviceKind.PAIRS: "Name a target, or pairs, if you study how columns depend on each other.",
        AdviceKind.HOLDOUT: "If single rows matter, hold out a quarter of the rows (holdout=0.25, --holdout 0.25): "
        "more of each released row is kept, but errors of columns grow up to about 4 times, and fewer pairs are "
        "measured, or none (see dipriv plan).",
        AdviceKind.COMPARE: "Compare the release with the private table in a report before you publish it.",
    }[one.kind]


def summary(verdict: Verdict) -> str:
    """At most twelve lines, the worst first."""
    lines = [headline(verdict), f"  Use:     {use(verdict)}"]
    if warned := warning(verdict):
        lines.append(f"  Warning: {warned}")
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
    """The grade of single columns and how many have which, and how many relations between them were measured well.

    >>> from dipriv.guarantee.guarantee import ReferenceSource
    >>> columns = (ColumnVerdict("age", Grade.GOOD), ColumnVerdict("city", Grade.LOST), ColumnVerdict("x", Grade.GOOD))
    >>> headline(Verdict(10, 1.0, ReferenceSource.PRIVATE, columns))
    'Verdict: usable. 2 of 3 columns good, 1 lost.'
    >>> headline(Verdict(10, 1.0, ReferenceSource.PRIVATE, columns, all_pairs=3))
    'Verdict: usable for single columns; relations between columns: 0 of 3 measured well. 2 of 3 columns good, 1 lost.'
    """
    total, relations = len(verdict.columns), ""
    if verdict.all_pairs:
        of = " for single columns" if verdict.grade in (Grade.GOOD, Grade.USABLE) else ""
        relations = f"{of}; relations between columns: {_well(verdict):,} of {verdict.all_pairs:,} measured well"
    counts = [f"{len(verdict.good)} of {total} column{'s' * (total != 1)} good"]
    counts += [
        f"{len(names)} {grade.value}"
        for grade in (Grade.USABLE, Grade.LOST, Grade.UNKNOWN)
        if (names := verdict.named(grade))
    ]
    return f"Verdict: {verdict.grade.value}{relations}. {', '.join(counts)}."


def use(verdict: Verdict) -> str:
    """What the release may be used for, in a sentence."""
    see_pairs = " For how columns depend on each other, see Pairs." if verdict.all_pairs else ""
    if verdict.all_pairs and not _well(verdict):
        see_pairs = " Not for how columns depend on each other."
    return {
        Grade.GOOD: f"good for the distributions of single columns.{see_pairs}",
        Grade.USABLE: f"with care; look at the columns below before you rely on them.{see_pairs}",
        Grade.UNKNOWN: "compare it with the private table (a report, or dipriv compare) before you publish it, or "
        "rely on it.",
        Grade.LOST: "do not publish it as it is: half of its columns, or more, are lost, or probably are.",
    }[verdict.grade]


def too_small(rows: int, columns: int, epsilon: float, factor: float) -> str:
    """Why little can be expected of a table for whose columns rows times ε are too small by a factor.

    >>> too_small(1000, 6, 1.0, 2.7).partition(". ")[2]
    'About 2.7 times as many rows, or as much ε, are needed.'
    """
    return (
        f"{rows:,} row{'s' * (rows != 1)} at ε = {epsilon:g} {'is' if rows == 1 else 'are'} too few for {columns:,} "
        f"column{'s' * (columns != 1)}: noise hides much of their distributions. About {factor:,g} times as many rows, "
        "or as much ε, are needed."
    )


def warning(verdict: Verdict) -> str:
    """The same of a release; nothing where rows times ε are enough."""
    if verdict.too_small is None:
        return ""
    return too_small(verdict.rows, len(verdict.columns), verdict.epsilon, verdict.too_small)


def pairs(verdict: Verdict) -> str:
    """How many pairs were measured, and what the others are."""
    total, measured = verdict.all_pairs or 0, len(verdict.pairs)
    if not measured:
        return f"none of {total:,} measured: the columns are released as if they were independent."
    well = _well(verdict)
    noise = sum(pair.grade is Grade.LOST for pair in verdict.pairs)
    if total == 1:
        return f"the only one is measured{', but it is no more than noise' if noise else ''}."
    detail = f", {well:,} of them well" + (f", {noise:,} no more than noise" if noise else "")
    if measured == total:
        return f"all {total:,} measured{detail}."
    rest = f"{total - measured:,} are" if total - measured > 1 else "one is"
    others = f"The other {rest} released as if independent given those: what they show may be wrong."
    return f"{measured:,} of {total:,} measured{detail}. {others}"


def _well(verdict: Verdict) -> int:
    """How many pairs were measured well."""
    return sum(pair.grade is Grade.GOOD for pair in verdict.pairs)


def rows(verdict: Verdict) -> str:
    """Whether single rows mean anything."""
    most = verdict.fidelity
    if most is None:
        return ""
    if most < SYNTHETIC:
        return (
            "as good as synthetic data: a row says almost nothing about its original (expected correlation "
            f"{correlation(most)} in the best column)."
        )
    return f"the expected correlation of released with true values is {most:.2g} in the best column."


def expected_error(column: ColumnVerdict) -> str:
    """The expected error; of an unknown column, which may be kept or lost, how large it may be."""
    if column.error is None:
        return ""
    if column.grade is Grade.UNKNOWN and column.most is not None:
        return f"up to {column.most:.3f}"
    return f"{column.error:.3f}"


def correlation(kept: float) -> str:
    """An expected correlation with two digits; a faint one is not distinguished from none.

    >>> correlation(0.0312), correlation(0.0034)
    ('0.031', 'below 0.01')
    """
    return f"below {FAINT:g}" if kept < FAINT else f"{kept:.2g}"


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
    same, more = {column.reasons[:1] for column in columns}, len(columns) - SHOWN
    where = " (all in the data sheet)" if more > 0 else ""
    if len(columns) > 1 and len(same) == 1 and columns[0].reasons and columns[0].reasons[0].share is None:
        return f"{listed([column.name for column in columns])}{where}: {columns[0].reasons[0].text}"
    worst = [
        repr(column.name) + (f" ({column.reasons[0].text})" if column.reasons else "") for column in columns[:SHOWN]
    ]
    return ", ".join(worst) + (f" and {more} more{where}" if more > 0 else "")


def identifiers_released(names: Sequence[str]) -> str:
    """That columns, by their names, are identifiers, which noise makes useless."""
    return (
        f"{', '.join(map(repr, names))}: by the name an identifier, but privatized as any other column. Leave it out, "
        'or declare in a schema what it is: kind = "identifier", or "code" for labels.'
    )


def people_released(names: Sequence[str]) -> str:
    """That columns, by their names, hold names of people or how to reach them: those that many rows share come out."""
    return (
        f"{', '.join(map(repr, names))}: by the name, names of people or how to reach them, but privatized as any "
        "other column: what many rows share is released as it is. Leave it out, or declare in a schema what it is."
    )
