"""Audit of the guarantee of a person with several rows: neighbouring tables differ in all rows of one person.

A canary is a person: a fair coin replaces all of their rows by one of two records. The evidence for a coin is the sum
over the person's released rows, so rows beyond the contribution bound, or an ε that was not divided among the rows of a
person, show as a bound above the claim.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Seed, source
from dipriv.auditing.canaries import extremes, record_pairs
from dipriv.auditing.events import Score, shapes_of
from dipriv.auditing.exact import rounded_up
from dipriv.auditing.intervals import check_confidence
from dipriv.auditing.learning import MAX_ROWS
from dipriv.auditing.one_run import (
    MIN_GUESSES,
    CanaryRun,
    Features,
    Guesses,
    Runner,
    best_pair,
    best_threshold,
    count_right,
    learn_scores,
)
from dipriv.auditing.primitives import threshold_chance
from dipriv.auditing.procedure import ReleaseProcedure
from dipriv.auditing.results import Bound, Check, Exact, Scope
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon
from dipriv.references._learning.measurements import Accountant, NoiseKind
from dipriv.references._learning.zcdp import largest_rho
from dipriv.sources.contribution_bound import ContributionBound

Owners = NDArray[np.intp]
"""The number of the person whom each row belongs to."""


def owners(table: pa.Table, column: str) -> Owners:
    """Whose each row is, by this column; nulls belong to one person."""
    values = table.column(column).combine_chunks()
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.intp)


def one_row_each(table: pa.Table, column: str, rng: np.random.Generator) -> pa.Table:
    """A random row of each person, for audits whose trials must be independent."""
    order = rng.permutation(table.num_rows)
    first = np.unique(owners(table, column)[order], return_index=True)[1]
    return table.take(pa.array(np.sort(order[first])))


def sample_persons(table: pa.Table, column: str, rng: np.random.Generator) -> pa.Table:
    """The table, or all rows of some random persons where it is large."""
    if table.num_rows <= MAX_ROWS:
        return table
    whose = owners(table, column)
    order = rng.permutation(int(whose.max()) + 1)
    sizes = np.cumsum(np.bincount(whose)[order])
    chosen = order[: max(1, int(np.searchsorted(sizes, MAX_ROWS, side="right")))]
    return table.take(pa.array(np.flatnonzero(np.isin(whose, chosen))))


def audit_persons(
    release: ReleaseProcedure,
    table: pa.Table,
    unit: ContributionBound,
    epsilon: float,
    *,
    delta: float = 0.0,
    canaries: int | None = None,
    confidence: float = 0.95,
    seed: Seed = None,
    progress: Progress = no_progress,
) -> tuple[Bound, Check]:
    """A lower bound on the ε of all rows of a person, from persons as canaries; and whether the rows are bounded.

    Parameters
    ----------
    release : the procedure under audit.
    table : the table that canaries are planted in, with the column of the unit.
    unit : whose rows share ε, and how many of them may be released.
    epsilon, delta : the claim for a person.
    canaries : how many persons are canaries. The default balances the width of the interval against the change to the
        table; with a reference that does not come from the table, all persons can be canaries.
    confidence : of the bound.
    seed : of coins and releases.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The bound, and the check that no release has more than `unit.max_rows` rows of a person.

    Raises
    ------
    InputError : the table has too few persons.
    """
    epsilon = check_epsilon(epsilon)
    check_confidence(confidence)
    whose = owners(table, unit.column)
    n_persons = int(whose.max()) + 1
    count = min(n_persons, round(3 * n_persons ** (2 / 3))) if canaries is None else canaries
    if not MIN_GUESSES <= count <= n_persons:
        raise InputError(
            f"{count} canaries among {n_persons} persons; an audit needs at least {MIN_GUESSES}.",
            "Use a table of more persons, or leave canaries out.",
        )
    runner = Runner(release, table, seed, progress)
    first = runner.run(table)
    names = first.data.column_names
    chosen = np.sort(runner.rng.choice(n_persons, count, replace=False))
    positions = np.flatnonzero(np.isin(whose, chosen))
    canary_of = np.searchsorted(chosen, whose[positions])
    features = Features.of_table(table, names)
    pairs = record_pairs(table, names, runner.rng)
    pair = pairs[0]
    if len(pairs) > 1:
        pair = best_pair(pairs, runner.run_with(extremes(positions, pairs), canary_of), features)
    planted = extremes(positions, [pair])
    to_learn, to_choose, to_count = (runner.run_with(planted, canary_of) for _ in range(3))
    rows = features.of(to_learn)
    scores = learn_scores(rows, to_learn.coins, shapes_of(features.views(rows)))

    def of_persons(run: CanaryRun, score: Score) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The evidence and the coin of each canary, over all of its released rows."""
        evidence = np.zeros(count)
        np.add.at(evidence, canary_of[run.canaries], score.of(features.of(run)))
        coins = np.zeros(count, dtype=np.bool_)
        coins[canary_of[run.canaries]] = run.coins
        return evidence, coins

    best = max(scores, key=lambda score: best_threshold(*of_persons(to_choose, score))[0])
    threshold = best_threshold(*of_persons(to_choose, best))[1]
    right, made = count_right(*of_persons(to_count, best), threshold)
    words = f"all rows of a person: {pair.words}, by {features.words(best.shape)}: {right} of {made} guesses are right"
    bound = Guesses(count, made, right, words).bound("person", epsilon, delta, confidence, confidence, Scope.PERSON)
    released = (first, to_learn.released, to_choose.released, to_count.released)
    most = max(int(np.bincount(whose[one.row_positions]).max(initial=0)) for one in released)
    progress("guessing canaries", 1.0, 1.0)
    return bound, bounded_rows(most, unit)


def bounded_rows(most: int, unit: ContributionBound) -> Check:
    """Whether this largest number of released rows of a person is within the contribution bound."""
    return Check(
        f"at most {unit.max_rows} rows of one {unit.column!r} are released",
        most <= unit.max_rows,
        f"{most} rows of one {unit.column!r} are released, more than promised: {unit.max_rows}.",
        Scope.PERSON,
    )


def add_up(
    unit: ContributionBound, row_epsilon: float, reference_epsilon: Fraction, epsilon: float, *, disjoint: bool
) -> Exact:
    """The ε of all rows of a person by basic composition: K times that of a row and of learning from it.

    If the reference is learned from other persons (`disjoint`), the larger of the two counts (parallel composition).
    """
    parts = Fraction(row_epsilon), reference_epsilon
    total = rounded_up(unit.max_rows * (max(parts) if disjoint else sum(parts, Fraction(0))))
    return Exact(f"{unit.max_rows} rows of one {unit.column!r}, added up", epsilon, total, scope=Scope.PERSON)


def audit_label_of_a_person(
    unit: ContributionBound, reference_epsilon: Fraction, row_delta: float, epsilon: float, delta: float
) -> tuple[Exact, ...]:
    """Whether a label that all rows of one person have, and nobody else, is published with probability at most δ.

    A label of one row may show with the smaller δ of a row; group privacy must make up for the other rows.
    """
    if not row_delta:
        return ()
    bits, chance = source(0), Fraction(row_delta)
    rho = largest_rho(reference_epsilon, chance)
    costs: tuple[tuple[NoiseKind, Fraction], ...] = (("laplace", reference_epsilon), ("gaussian", rho))
    found = []
    for kind, cost in costs:
        shows = threshold_chance(Accountant(kind, 8 * cost, bits.child(kind)), cost, row_delta, unit.max_rows)
        what = f"label of {unit.max_rows} rows of one {unit.column!r}, {kind.capitalize()} noise"
        found.append(Exact(what, epsilon, 0.0 if shows <= delta else np.inf, delta, Scope.PERSON))
    return tuple(found)
