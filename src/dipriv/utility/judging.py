"""From evidence to a verdict: a pure function of private output and public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dipriv.guarantee.guarantee import Guarantee, ReferenceSource, UnprotectedKind
from dipriv.references.measured import MeasuredPair
from dipriv.utility.expected_error import ABOVE, MEAN_SIZE, ColumnEvidence, ExpectedError, expected_error
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

CLEARLY_LOST = 0.3
"""An expected total variation, without rows that may be hidden, from which a column is lost, however uncertain it is.
"""
TOO_NOISY, NOISE_WANTED = 1 / (2 * CELLS), 1 / (5 * CELLS)
"""If the noise of a count is more than half of a cell's rows, a table is too small; a fifth of it would do."""
WORTH_SAYING = 0.01
"""A reason that concerns fewer rows is left out."""
BY_CHANCE, CLEAR = 1.5, 2.0
"""How many times that of noise alone the association of a pair must be to be usable, and to be good."""
MAX_FACTOR = 100.0
"""More ε than this factor is no advice."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a private reference was learned from, as far as a verdict needs it."""

    rows: int
    """How many rows it was learned from."""
    columns: tuple[ColumnEvidence, ...]
    pairs: tuple[MeasuredPair, ...] = ()
    pairs_named: bool = False
    """Whether pairs, or a target, were named to be measured first."""
    foreseen: tuple[float, ...] = ()
    """The noise of a count of each column, as a share of the rows, as it was expected before learning."""


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
    needed = factor_needed(evidence.foreseen or [column.noise for column in evidence.columns])
    verdict = Verdict(
        rows,
        guarantee.epsilon,
        source,
        tuple(
            _column(column, error, kept.get(column.name))
            for column, error in zip(evidence.columns, errors, strict=True)
        ),
        tuple(sorted((_pair(pair, evidence.rows) for pair in evidence.pairs), key=lambda pair: -pair.association)),
        len(names) * (len(names) - 1) // 2,
        needed,
    )
    held_out = guarantee.reference.rows is not None
    return replace(verdict, advice=tuple(_advice(verdict, evidence, held_out)))


def factor_needed(noises: Sequence[float]) -> float | None:
    """By what factor rows times ε are too small for columns with this noise of a count, as shares of the rows.

    None where they are not: half of the columns, or more, have enough.
    """
    noise = float(np.median(noises))
    return _two_digits_up(noise / NOISE_WANTED) if noise > TOO_NOISY else None


def _column(column: ColumnEvidence, error: ExpectedError, fidelity: float | None) -> ColumnVerdict:
    reasons = tuple(_reasons(column, error))
    constant = any(reason.kind is ReasonKind.CONSTANT for reason in reasons)  # it is named, however rare the others are
    if error.most < GOOD and not constant:
        grade = Grade.GOOD
    elif error.least > LOST or error.noise + error.merged > CLEARLY_LOST:
        grade = Grade.LOST
    else:
        grade = Grade.USABLE if error.most <= LOST else Grade.UNKNOWN
    mean, least, most = (round(value, 4) for value in (error.mean, error.least, error.most))
    return ColumnVerdict(column.name, grade, mean, least, most, fidelity, reasons)


def _reasons(column: ColumnEvidence, error: ExpectedError) -> list[Reason]:
    """What is worth saying, the gravest first; rows that may be lost weigh half as much as those that are."""
    occupied = int(np.count_nonzero(column.shares))
    if column.merged and not occupied:
        return [Reason(ReasonKind.ONLY_OTHER)]
    shares = {
        ReasonKind.MERGED: error.merged,
        ReasonKind.NOISE: min(1.0, error.noise) if error.sampling < error.noise / 2 else 0.0,
        ReasonKind.SAMPLING: error.sampling if error.sampling >= error.noise / 2 else 0.0,
        ReasonKind.LABELS: error.labels / 2,
        ReasonKind.NULLS: error.nulls / 2,
        ReasonKind.ENDS: error.ends / 2,
        ReasonKind.DIGITS: error.digits / 2,
    }
    certain = (ReasonKind.MERGED, ReasonKind.NOISE, ReasonKind.SAMPLING)
    found = [
        Reason(kind, round(share if kind in certain else 2 * share, 4))
        for kind, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= WORTH_SAYING
    ]
    if error.noise > CLEARLY_LOST:
        found.insert(0, Reason(ReasonKind.NOISE_ABOVE_COUNTS))
    if occupied == 1 and not column.several and not column.merged and error.hidden >= WORTH_SAYING:
        found.insert(0, Reason(ReasonKind.CONSTANT, round(error.hidden, 4)))
    return found


def _pair(pair: MeasuredPair, rows: int) -> PairVerdict:
    """Cramér's V of a table, and what noise alone would make of it."""
    counts = np.maximum(pair.counts, 0.0)
    total = float(counts.sum()) or 1.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    there = expected > 0
    squares = float(np.sum((counts - expected)[there] ** 2 / expected[there]))
    smaller = max(1, min(int(np.count_nonzero(counts.sum(axis=axis))) for axis in (0, 1)) - 1)
    # of a cell with fewer rows than noise, what noise makes is cut off at zero
    per_cell = np.minimum(pair.deviation**2 / expected[there], np.maximum(expected[there], pair.deviation))
    noise = math.sqrt(float(per_cell.sum()) / (total * smaller))
    association = math.sqrt(squares / (total * smaller))
    error = min(1.0, 0.5 * MEAN_SIZE * pair.deviation * counts.size / max(1, rows))
    grade = (
        Grade.LOST if association <= BY_CHANCE * noise else Grade.GOOD if association > CLEAR * noise else Grade.USABLE
    )
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
    spread = ABOVE * deviation * math.sqrt(CELLS * (1 - MEAN_SIZE**2)) / 2
    mean, least, most = (round(min(1.0, max(0.0, value)), 4) for value in (error, error - spread, error + spread))
    reasons = (Reason(kind), Reason(ReasonKind.SAMPLING, mean))
    return ColumnVerdict(name, Grade.UNKNOWN, mean, least, most, fidelity, reasons)


def _advice(verdict: Verdict, evidence: Evidence, held_out: bool) -> list[Advice]:
    """The most useful first; to hold out rows only where columns are good enough to bear it."""
    own = {column.name: column for column in evidence.columns}
    bad = [column.name for column in verdict.by_gravity if column.grade is not Grade.GOOD]
    useless = {column.name for column in verdict.columns if Reason(ReasonKind.ONLY_OTHER) in column.reasons}
    helped = {
        AdviceKind.DROP: [name for name in bad if name in useless],
        AdviceKind.DECLARE_LEVELS: [name for name in bad if own[name].found and name not in useless],
        AdviceKind.DECLARE_RANGE: [
            name for name in bad if (own[name].line is not None or own[name].rounded) and not own[name].bounded
        ],
    }
    found = [Advice(kind, tuple(names)) for kind, names in helped.items() if names]
    if verdict.too_small is not None:
        return [Advice(AdviceKind.FEWER_COLUMNS, factor=verdict.too_small), *found]
    factors = {name: _needed(own[name], verdict.rows) for name in bad if not own[name].merged}
    within = [name for name, factor in factors.items() if factor <= MAX_FACTOR]
    if within:
        most = max(factors[name] for name in within)
        found.append(Advice(AdviceKind.EPSILON, tuple(within), _two_digits_up(most)))
    if not evidence.pairs_named and len(verdict.pairs) < (verdict.all_pairs or 0):
        found.append(Advice(AdviceKind.PAIRS))
    synthetic = verdict.fidelity is not None and verdict.fidelity < SYNTHETIC
    if synthetic and verdict.grade is Grade.GOOD and not held_out:
        found.append(Advice(AdviceKind.HOLDOUT))
    return found


def _needed(column: ColumnEvidence, rows: int) -> float:
    """By what factor ε must grow to make a column good, if all but sampling error is in proportion to 1/ε."""
    error = expected_error(column, rows)
    if error.sampling >= GOOD:
        return math.inf
    return max(1.0, (error.most - error.sampling) / (GOOD - error.sampling))


def _two_digits_up(factor: float) -> float:
    """Rounded up to two digits."""
    size = 10.0 ** (math.floor(math.log10(factor)) - 1)
    return float(f"{math.ceil(factor / size) * size:.2g}")
