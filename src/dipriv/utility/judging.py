"""From evidence to a verdict: a pure function of private output and public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dipriv.guarantee.guarantee import Guarantee, ReferenceSource, UnprotectedKind
from dipriv.references.measured import MeasuredPair
from dipriv.utility.expected_error import MEAN_SIZE, SURE, ColumnEvidence, ExpectedError, expected_error
from dipriv.utility.total_variation import CELLS
from dipriv.utility.verdict import (
    GOOD,
    LOST,
    Advice,
    AdviceKind,
    ColumnVerdict,
    Grade,
    PairVerdict,
    Reason,
    ReasonKind,
    Verdict,
)
from dipriv.utility.wording import SYNTHETIC

CLEARLY_LOST = 0.25
"""An expected total variation from which a column is lost, however uncertain the expectation is."""
TOO_NOISY, NOISE_WANTED = 1 / (2 * CELLS), 1 / (5 * CELLS)
"""If the noise of a count is more than half of a cell's rows, a table is too small; a fifth of it would do."""
WORTH_SAYING = 0.01
"""A reason that concerns fewer rows is left out."""
CLEAR = 2.0
"""A pair is good if its association is more than this many times that of noise."""
MOST_FACTOR = 100.0
"""More ε than this factor is no advice."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a private reference was learned from, as far as a verdict needs it."""

    rows: int
    """How many rows it was learned from."""
    columns: tuple[ColumnEvidence, ...]
    pairs: tuple[MeasuredPair, ...] = ()


def judge(
    names: Sequence[str], rows: int, guarantee: Guarantee, fidelity: Mapping[str, float], evidence: Evidence | None
) -> Verdict:
    """The verdict on a release.

    Parameters
    ----------
    names
        The privatized columns, in order.
    rows
        How many rows are released.
    guarantee
        The guarantee of the release.
    fidelity
        The expected correlation of each column with its true values, NaN where there is none.
    evidence
        What a private reference was learned from; None for other references.

    Returns
    -------
    Verdict
        What the release is good for.
    """
    kept = {name: None if math.isnan(value) else float(value) for name, value in fidelity.items()}
    source = guarantee.reference.source
    if evidence is None:
        columns = tuple(_not_measured(name, rows, guarantee, kept.get(name)) for name in names)
        return Verdict(rows, guarantee.epsilon, source, columns, advice=(Advice(AdviceKind.COMPARE),))
    errors = [expected_error(column, rows) for column in evidence.columns]
    columns = tuple(
        _column(column, error, kept.get(column.name)) for column, error in zip(evidence.columns, errors, strict=True)
    )
    pairs = sorted((_pair(pair, evidence.rows) for pair in evidence.pairs), key=lambda pair: -pair.association)
    noise = float(np.median([column.noise for column in evidence.columns]))
    verdict = Verdict(
        rows,
        guarantee.epsilon,
        source,
        columns,
        tuple(pairs),
        len(names) * (len(names) - 1) // 2,
        noise / NOISE_WANTED if noise > TOO_NOISY else None,
    )
    return Verdict(*(getattr(verdict, name) for name in list(vars(verdict))[:-1]), tuple(_advice(verdict, evidence)))


def _column(column: ColumnEvidence, error: ExpectedError, fidelity: float | None) -> ColumnVerdict:
    reasons = _reasons(column, error)
    if error.most < GOOD:
        grade = Grade.GOOD
    elif error.least > LOST or error.mean > CLEARLY_LOST:
        grade = Grade.LOST
    else:
        grade = Grade.USABLE
    numbers = (round(value, 4) for value in (error.mean, error.least, error.most))
    return ColumnVerdict(column.name, grade, *numbers, fidelity, tuple(reasons))


def _reasons(column: ColumnEvidence, error: ExpectedError) -> list[Reason]:
    """What is worth saying, the gravest first."""
    occupied = int(np.count_nonzero(column.shares))
    found = [
        Reason(kind, share)
        for kind, share in (
            (ReasonKind.MERGED, error.merged),
            (ReasonKind.LABELS, error.labels),
            (ReasonKind.NULLS, error.nulls),
            (ReasonKind.ENDS, error.ends),
            (ReasonKind.DIGITS, error.digits),
            (ReasonKind.NOISE, min(1.0, error.noise)),
            (ReasonKind.SAMPLING, error.sampling),
        )
        if share is not None and share >= WORTH_SAYING
    ]
    if error.sampling < error.noise / 2:
        found = [reason for reason in found if reason.kind is not ReasonKind.SAMPLING]
    found.sort(key=lambda reason: -(reason.share or 0.0) * (1.0 if reason.kind in _CERTAIN else 0.5))
    if error.noise > CLEARLY_LOST:
        found.insert(0, Reason(ReasonKind.NOISE_ABOVE_COUNTS))
    if column.merged and not occupied:
        return [Reason(ReasonKind.ONLY_OTHER)]
    if occupied + bool(column.merged) == 1 and not column.merged and error.hidden >= WORTH_SAYING:
        found.insert(0, Reason(ReasonKind.CONSTANT, error.hidden))
    return found


_CERTAIN = (ReasonKind.MERGED, ReasonKind.NOISE)


def _pair(pair: MeasuredPair, rows: int) -> PairVerdict:
    """Cramér's V of a table, and what noise alone would make of it."""
    counts = np.maximum(pair.counts, 0.0)
    total = float(counts.sum()) or 1.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    there = expected > 0
    squares = float(np.sum((counts - expected)[there] ** 2 / expected[there]))
    smaller = max(1, min(np.count_nonzero(counts.sum(axis=1)), np.count_nonzero(counts.sum(axis=0))) - 1)
    # of a cell with fewer rows than noise, what noise makes is cut off at zero
    per_cell = np.minimum(pair.deviation**2 / expected[there], np.maximum(expected[there], pair.deviation))
    noise = math.sqrt(float(per_cell.sum()) / (total * smaller))
    association = math.sqrt(squares / (total * smaller))
    error = min(1.0, 0.5 * MEAN_SIZE * pair.deviation * counts.size / max(1, rows))
    if association > CLEAR * noise:
        grade = Grade.GOOD
    else:
        grade = Grade.LOST if association <= noise else Grade.USABLE
    return PairVerdict(pair.names, grade, round(error, 4), round(min(1.0, association), 4), round(min(1.0, noise), 4))


def _not_measured(name: str, rows: int, guarantee: Guarantee, fidelity: float | None) -> ColumnVerdict:
    """A column of another reference: only of a hold-out something is known, its sampling error."""
    source = guarantee.reference.source
    kind = {
        ReferenceSource.KNOWN: ReasonKind.KNOWN,
        ReferenceSource.PUBLIC: ReasonKind.PUBLIC,
        ReferenceSource.HOLDOUT: ReasonKind.HELD_OUT,
    }.get(source, ReasonKind.NOT_MEASURED)
    held = [part.rows for part in guarantee.unprotected if part.kind is UnprotectedKind.HOLDOUT_ROWS and part.rows]
    if kind is not ReasonKind.HELD_OUT or not held:
        return ColumnVerdict(name, Grade.UNKNOWN, fidelity=fidelity, reasons=(Reason(kind),))
    deviation = math.sqrt((1 / CELLS) * (1 - 1 / CELLS) * (1 / held[0] + 1 / max(1, rows)))
    error = 0.5 * MEAN_SIZE * CELLS * deviation
    spread = SURE * deviation * math.sqrt(CELLS * (1 - MEAN_SIZE**2)) / 2
    bounds = (round(min(1.0, max(0.0, value)), 4) for value in (error, error - spread, error + spread))
    return ColumnVerdict(name, Grade.UNKNOWN, *bounds, fidelity, (Reason(kind), Reason(ReasonKind.SAMPLING, error)))


def _advice(verdict: Verdict, evidence: Evidence) -> list[Advice]:
    """The most useful first."""
    found = []
    useless = [column.name for column in verdict.columns if Reason(ReasonKind.ONLY_OTHER) in column.reasons]
    if verdict.too_small is not None:
        found.append(Advice(AdviceKind.FEWER_COLUMNS, factor=_rounded_up(verdict.too_small)))
    if useless:
        found.append(Advice(AdviceKind.DROP, tuple(useless)))
    bad = {column.name: column for column in verdict.by_gravity if column.grade in (Grade.LOST, Grade.USABLE)}
    own = {column.name: column for column in evidence.columns}
    labels = [name for name in bad if own[name].found and name not in useless]
    if labels:
        found.append(Advice(AdviceKind.DECLARE_LEVELS, tuple(labels)))
    numbers = [name for name in bad if own[name].line is not None]
    if numbers:
        found.append(Advice(AdviceKind.DECLARE_RANGE, tuple(numbers)))
    factor = max((_needed(own[name], verdict.rows) for name in bad if name not in useless), default=1.0)
    within = [name for name in bad if 1.0 < _needed(own[name], verdict.rows) <= MOST_FACTOR and name not in useless]
    if within and verdict.too_small is None:
        factor = max(_needed(own[name], verdict.rows) for name in within)
        found.append(Advice(AdviceKind.EPSILON, tuple(within), _rounded_up(factor)))
    if verdict.all_pairs and len(verdict.pairs) < verdict.all_pairs and verdict.too_small is None:
        found.append(Advice(AdviceKind.PAIRS))
    if verdict.fidelity is not None and verdict.fidelity < SYNTHETIC and verdict.too_small is None:
        found.append(Advice(AdviceKind.HOLDOUT))
    return found


def _needed(column: ColumnEvidence, rows: int) -> float:
    """By what factor ε must grow to make a column good, if noise is in proportion to 1/ε; infinite if it does not."""
    error = expected_error(column, rows)
    fixed = error.merged + error.sampling
    if fixed >= GOOD:
        return math.inf
    return max(1.0, (error.most - fixed) / (GOOD - fixed))


def _rounded_up(factor: float) -> float:
    """Two digits, rounded up."""
    size = 10.0 ** math.floor(math.log10(factor) - 1)
    return math.ceil(factor / size) * size
