"""What a comparison found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from dipriv.guarantee.wording import PRIVATE
from dipriv.report.facts import GRADES, ColumnFacts, Comparison
from dipriv.report.formats import fixed, text
from dipriv.utility.verdict import Grade
from dipriv.utility.wording import SYNTHETIC, rows

MAX_LISTED = 12
"""How many columns of a grade are named in a sentence."""


def of_grade(comparison: Comparison, grade: Grade) -> tuple[ColumnFacts, ...]:
    """The columns of a grade, the worst first."""
    return tuple(facts for facts in comparison.columns if facts.grade == grade)


def headline(comparison: Comparison) -> str:
    """How many columns are lost, usable and good."""
    counts = {grade: len(of_grade(comparison, grade)) for grade in GRADES}
    total = sum(counts.values())
    if not total:
        return "No column has enough cells to be graded."
    if counts[Grade.GOOD] == total:
        return "The only column is good." if total == 1 else f"All {total} columns are good."
    said = ", ".join(f"{count} {grade}" for grade, count in counts.items() if count)
    return f"Of {total} columns: {said}." if total > 1 else f"The only column is {said.partition(' ')[2]}."


def by_reason(columns: Sequence[ColumnFacts]) -> list[tuple[str, str]]:
    """(names, what is wrong with them): columns with the same reasons are named together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for facts in columns:
        groups.setdefault(facts.reasons, []).append(text(facts.name, 40))
    return [(listed(names), "; ".join(reasons)) for reasons, names in groups.items()]


def listed(names: Sequence[str]) -> str:
    """Some of the names, and how many more there are."""
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def of_pairs(comparison: Comparison) -> str:
    """How much of the dependence between columns is left."""
    found = comparison.dependence
    if found is None:
        return ""
    if not found.strong:
        return "Pairs: no two columns depend on each other much in the original (0.1 or more)."
    pairs = "1 pair of columns depends" if found.strong == 1 else f"{found.strong:,} pairs of columns depend"
    lost = "none of them lost" if not found.lost else f"{found.lost:,} of them lost"
    return f"Pairs: {pairs} on each other in the original (0.1 or more); {lost} half of it or more."


def of_rows(comparison: Comparison) -> str:
    """Whether a released row says anything about its original: as the release states it, else as it was measured."""
    if comparison.verdict is not None and (stated := rows(comparison.verdict)):
        return f"Rows: {stated}"
    found = [facts.fidelity[0] for facts in comparison.columns if facts.fidelity and not facts.unchanged]
    if not found:
        return ""
    low, high = min(one.value for one in found), max(one.value for one in found)
    if max(one.low for one in found) < SYNTHETIC:
        return (
            f"Rows: as good as synthetic; the correlation with the true values is {fixed(max(0.0, high), 2)} at most."
        )
    return f"Rows: the correlation of released with true values is {fixed(max(0.0, low), 2)} to {fixed(high, 2)}."


def of_regression(comparison: Comparison) -> str:
    """Whether the regression has the same result."""
    found = comparison.downstream
    if found is None:
        return ""
    if found.failure:
        return f"Regression of {text(found.target)}: none. {found.failure}"
    inside = f"{found.inside} of {len(found.coefficients)} released estimates lie inside the original's 95% intervals"
    return f"Regression of {text(found.target)}: {inside}."


def of_rules(comparison: Comparison) -> str:
    """Whether rules of the schema hold in the released rows; nothing where there are none."""
    if not comparison.rules:
        return ""
    broken = [rule for rule in comparison.rules if rule.broken[1]]
    if not broken:
        return "The rules of the schema hold in every released row."
    return f"Released rows break {len(broken)} of {len(comparison.rules)} rules of the schema."


def summary(comparison: Comparison) -> str:
    """All findings, a line for each."""
    lines = [headline(comparison)]
    for grade in GRADES:
        columns = of_grade(comparison, grade)
        if grade is Grade.GOOD:
            said = [listed([text(facts.name, 40) for facts in columns])]
        else:
            said = [f"{names} ({reason})" if reason else names for names, reason in by_reason(columns)]
        if columns:
            lines.append(f"  {grade.capitalize()}: {listed(said)}.")
    said_of = (of_pairs, of_rows, of_regression, of_rules)
    more = filter(None, [say(comparison) for say in said_of])
    return "\n".join([*lines, *more, PRIVATE])
